//! Validations of profiles: on a device, and with a recording of a disk.

use std::fmt::Write as _;

use anyhow::Result;
use iosched::Op;
use iosched_advise::validation::{Battery, Cell, Header, Judged, Measured, RATE_WITHIN, TAIL_WITHIN};
use iosched_disk::Profile;
use iosched_lab::grouped;
use iosched_lab::validate::{Closeness, Validation};
use serde_json::json;

use super::grid::Look;

/// Width of the column with the names of schedulers.
const NAME_WIDTH: usize = 14;
/// Variation above which a metric is marked.
const NOISY: f64 = 0.1;

/// Returns the validation of a profile on a device as one JSON document.
///
/// # Errors
/// The document cannot be written.
pub fn json(measured: &Measured, profile: &Profile, battery: &Battery) -> Result<String> {
    Ok(serde_json::to_string_pretty(&battery.document(measured, profile))? + "\n")
}

/// Returns the validation of a profile on a device as text.
pub fn text(measured: &Measured, profile: &Profile, battery: &Battery, look: Look) -> String {
    let Header { target, schedulers, rounds, measured_ns, .. } = &measured.header;
    let mut text = format!("{}\n\n", look.wrap(&battery.decision(), ""));
    let access = if target.writable { "read and written" } else { "only read" };
    let _ = writeln!(text, "{}    {:.1} GB, {access}", target.name, target.capacity_sectors as f64 * 512.0 / 1e9);
    for condition in &target.conditions {
        let _ = writeln!(text, "{condition}");
    }
    let _ = writeln!(text, "{}    {}", profile.name(), profile.about());
    let seconds = *measured_ns as f64 / 1e9;
    let _ = writeln!(
        text,
        "{} schedulers; {rounds} runs of each workload under each scheduler, {seconds} s per run",
        schedulers.len()
    );
    let trials = measured.header.trials();
    for (number, trial) in trials.iter().enumerate() {
        let cells: Vec<&Cell> = battery.cells.iter().filter(|cell| cell.number == number).collect();
        if cells.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}: {}", trial.name, trial.about);
        let _ = writeln!(
            text,
            "{:NAME_WIDTH$}{:>10}{:>8}{:>11}{:>9}{:>11}{:>8}{:>11}{:>9}",
            "", "IOPS", "±", "predicted", "off", "p99 us", "±", "predicted", "off"
        );
        for cell in cells {
            let _ = write!(text, "{:NAME_WIDTH$}", cell.scheduler);
            figure(&mut text, &cell.iops, 1.0, RATE_WITHIN);
            figure(&mut text, &cell.p99_ns, 1e3, TAIL_WITHIN);
            text.push('\n');
        }
    }
    text.push('\n');
    for wrong in &battery.wrong_orders {
        let _ = writeln!(text, "wrong: {wrong}");
    }
    let _ = writeln!(text, "{battery}");
    text
}

/// Writes a measured value, its variation, the prediction and
/// the difference. A difference above `within` is marked.
fn figure(text: &mut String, judged: &Judged, divisor: f64, within: f64) {
    let number = |value: f64| grouped((value / divisor).round() as u64);
    let variation = judged.variation.map_or_else(String::new, |variation| {
        format!("{:.0} %{}", variation * 100.0, if variation > NOISY { "!" } else { " " })
    });
    let difference = judged.difference();
    let mark = if difference.abs() > within { "*" } else { " " };
    // Adding 0.0 removes the sign of a negative zero.
    let off = format!("{:+} %{mark}", (difference * 100.0).round() + 0.0);
    let width = if divisor > 1.0 { 11 } else { 10 };
    let _ = write!(text, "{:>width$}{variation:>8}{:>11}{off:>9}", number(judged.measured), number(judged.predicted));
}

/// Returns the distances from a recorded disk as one JSON document.
///
/// # Errors
/// A value cannot be written as JSON.
pub fn disk_json(validation: &Validation) -> Result<String> {
    let document = json!({
        "device": validation.device,
        "about": validation.about,
        "trace": validation.trace,
        "seed": validation.seed,
        "decision": validation.overall().decision(),
        "all": validation.overall(),
        "kinds": validation.kinds(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the distances from a recorded disk as text.
pub fn disk_text(validation: &Validation, look: Look) -> String {
    let overall = validation.overall();
    let kinds = validation.kinds();
    let reads = validation.served.iter().filter(|served| served.service.op == Op::Read).count();
    let mut text = format!("{}\n\n", look.wrap(&overall.decision(), ""));
    let _ = writeln!(
        text,
        "{}    {} requests, one at a time, {} reads",
        validation.trace,
        grouped(overall.requests as u64),
        grouped(reads as u64)
    );
    let _ = writeln!(text, "{}    {}\n", validation.device, validation.about);
    let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0).max(12);
    let _ = writeln!(text, "{:width$}                   mean, ms            median, ms          p95, ms", "");
    let _ =
        writeln!(text, "{:width$} requests   rms ms  measured simulated  measured simulated  measured simulated", "");
    let mut row = |name: &str, c: &Closeness| {
        let at = |quantile: f64| c.quantiles.iter().find(|pair| pair.quantile == quantile);
        let _ = write!(text, "{name:width$} {:>8} {:8.3}", grouped(c.requests as u64), c.rms_ms);
        let _ = write!(text, "  {:8.3}  {:8.3}", c.measured_mean_ms, c.mean_ms);
        for pair in [at(0.5), at(0.95)].into_iter().flatten() {
            let _ = write!(text, "  {:8.3}  {:8.3}", pair.measured_ms, pair.simulated_ms);
        }
        text.push('\n');
    };
    row("all", &overall);
    kinds.iter().for_each(|kind| row(&kind.name, &kind.closeness));
    let Closeness { rms_ms, mean_ms, measured_mean_ms, requests, .. } = overall;
    let _ = writeln!(
        text,
        "\nrms_ms {rms_ms:.3} mean_ms {mean_ms:.2} measured_mean_ms {measured_mean_ms:.2} requests {requests}"
    );
    text
}
