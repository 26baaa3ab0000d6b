//! The results of a calibration, as text and as JSON.

use std::fmt::Write as _;

use iosched_advise::calibrate::{Calibration, Header, Measurements, NOISY, Pair, Residual, Spread, TraceFit};
use iosched_advise::io_cost::IoCost;
use iosched_disk::Model;
use iosched_lab::grouped;
use iosched_lab::validate::Closeness;
use serde_json::{Value, json};

use super::io_cost;

/// Width of the column with the names of probes.
const NAME_WIDTH: usize = 52;

/// Returns the results as text.
pub fn text(measurements: &Measurements, calibration: &Calibration) -> String {
    let mut text = String::new();
    head(&mut text, measurements);
    table(&mut text, "probes", &calibration.residuals);
    if !calibration.held_out.is_empty() {
        text.push('\n');
        table(&mut text, "workloads that the fit did not use", &calibration.held_out);
    }
    text.push('\n');
    kinds(&mut text, calibration);
    if let Some(drift) = calibration.drift() {
        let _ = writeln!(text, "{drift}");
    }
    let target = &measurements.header.target;
    let io_cost = IoCost::of_measurements(measurements, &calibration.profile);
    let _ = writeln!(text, "\nio.cost:\n{}", io_cost::text(&io_cost, target.model_name.as_deref()));
    let _ = writeln!(text, "{}", calibration.verdict);
    text
}

/// Writes the result of each kind of model.
pub fn kinds(text: &mut String, calibration: &Calibration) {
    for (kind, fit) in &calibration.kinds {
        let _ = match fit {
            Ok(off) => writeln!(text, "{kind:11}{:.1} % off on average", off * 100.0),
            Err(reason) => writeln!(text, "{kind:11}not tried: {reason}"),
        };
    }
}

fn head(text: &mut String, measurements: &Measurements) {
    let Header { target, probes, .. } = &measurements.header;
    let gigabytes = target.capacity_sectors as f64 * 512.0 / 1e9;
    let rounds = measurements.samples.iter().map(|sample| sample.round + 1).max().unwrap_or(0);
    let rounds = if rounds == 1 { "1 round".to_owned() } else { format!("{rounds} rounds") };
    let access = if target.writable { "read and written" } else { "only read" };
    let _ = writeln!(text, "{}    {gigabytes:.1} GB, depth {}", target.name, target.depth);
    let _ = writeln!(text, "{} probes, {rounds}, {access}", probes.len());
    for condition in &target.conditions {
        let _ = writeln!(text, "{condition}");
    }
    text.push('\n');
}

/// Writes a table of residuals, with measured values and values of the model.
pub fn table(text: &mut String, title: &str, residuals: &[Residual]) {
    let _ = writeln!(
        text,
        "{title:NAME_WIDTH$}{:>10}{:>8}{:>10}{:>9}{:>10}{:>8}{:>10}{:>9}",
        "IOPS", "±", "model", "off", "p99 us", "±", "model", "off"
    );
    for residual in residuals {
        let _ = write!(text, "{:NAME_WIDTH$}", residual.probe.to_string());
        pair(text, &residual.iops, 1.0);
        pair(text, &residual.p99_ns, 1e3);
        text.push('\n');
    }
}

/// Writes a measured value, its variation, the value of the model and the difference. If the value
/// was not measured, writes a hyphen.
fn pair(text: &mut String, pair: &Pair, divisor: f64) {
    if !pair.is_known() {
        let model = grouped((pair.model / divisor).round() as u64);
        let _ = write!(text, "{:>10}{:>8}{model:>10}{:>9}", "-", "", "");
        return;
    }
    let number = |value: f64| grouped((value / divisor).round() as u64);
    let Spread { median, variation } = pair.measured;
    let variation = variation.map_or_else(String::new, |variation| {
        // A large variation is marked.
        format!("{:.0} %{}", variation * 100.0, if variation > NOISY { "!" } else { " " })
    });
    // Adding 0.0 removes the sign of a negative zero.
    let off = format!("{:+.1} %", (pair.difference() * 1000.0).round() / 10.0 + 0.0);
    let _ = write!(text, "{:>10}{variation:>8}{:>10}{off:>9}", number(median), number(pair.model));
}

/// Returns the results as one JSON document.
///
/// # Errors
/// The results cannot be written as JSON.
pub fn json(measurements: &Measurements, calibration: &Calibration) -> anyhow::Result<String> {
    let document = json!({
        "target": measurements.header.target,
        "probes": rows(&calibration.residuals),
        "held_out": rows(&calibration.held_out),
        "kinds": kinds_json(calibration),
        "io_cost": IoCost::of_measurements(measurements, &calibration.profile),
        "verdict": calibration.verdict,
        "answer": calibration.verdict.to_string(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn percent(closeness: &Closeness) -> f64 {
    100.0 * closeness.rms_ms / closeness.measured_mean_ms
}

/// Returns the fit to a trace as one JSON document.
///
/// # Errors
/// The results cannot be written as JSON.
pub fn trace_fit_json(fit: &TraceFit, trace: &str) -> anyhow::Result<String> {
    let document = json!({
        "trace": trace,
        "about": fit.profile.about(),
        "tried": fit.tried,
        "fitted": fit.fitted,
        "held_out": fit.held_out,
        "held_out_rms_percent": percent(&fit.held_out),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the fit to a trace as text. `refined` says whether the user gave an initial profile.
pub fn trace_fit_text(fit: &TraceFit, trace: &str, refined: bool) -> String {
    let TraceFit { profile, fitted, held_out, tried } = fit;
    let mut text = format!(
        "{trace}    {} requests, one at a time\n{}\n\n",
        grouped((fitted.requests + held_out.requests) as u64),
        profile.about()
    );
    let _ = writeln!(text, "                                        mean time, ms         error (rms)");
    let _ = writeln!(text, "                            requests   measured     model        ms   of mean");
    for (name, closeness) in [("requests of the fit", fitted), ("held-out requests", held_out)] {
        let _ = writeln!(
            text,
            "{name:26} {:>9} {:10.3} {:9.3} {:9.3} {:7.1} %",
            grouped(closeness.requests as u64),
            closeness.measured_mean_ms,
            closeness.mean_ms,
            closeness.rms_ms,
            percent(closeness)
        );
    }
    if let Model::Hdd(config) = profile.model() {
        let cache = &config.read_cache;
        let _ = writeln!(
            text,
            "\n{:.0} rpm; reads ahead after {}, until {}; {} segments of {} KiB; {}",
            config.rpm,
            cache.read_ahead_after,
            cache.read_ahead_until,
            cache.segments,
            cache.segment_sectors / 2,
            if config.write_cache.enabled { "writes are cached" } else { "writes are not cached" }
        );
    }
    let begun = if refined { "the given profile" } else { "the trace alone" };
    let _ = writeln!(text, "{} models tried, starting from {begun}", grouped((*tried).into()));
    text
}

/// Returns comments about how the profile was made.
pub fn trace_fit_comments(fit: &TraceFit, command: &str) -> String {
    format!(
        "# A model of a rotating disk, fitted by iosched {} to a trace of requests.\n#\n# Made by: {command}\n# \
         Fitted to {} requests, rms {:.3} ms; {} held-out requests, rms {:.3} ms, {:.1} % of their mean.\n# The \
         numbers of cylinders, heads and sectors are chosen to give the right times; the real disk may differ.\n\n",
        env!("CARGO_PKG_VERSION"),
        fit.fitted.requests,
        fit.fitted.rms_ms,
        fit.held_out.requests,
        fit.held_out.rms_ms,
        percent(&fit.held_out)
    )
}

/// Returns residuals in JSON. A value that was not measured is null.
pub fn rows(residuals: &[Residual]) -> Vec<Value> {
    residuals
        .iter()
        .map(|residual| {
            let mut row = json!(residual);
            row["name"] = residual.probe.to_string().into();
            row["iops"]["difference"] = residual.iops.difference().into();
            row["p50_ns"]["difference"] = residual.p50_ns.difference().into();
            row["p99_ns"]["difference"] = residual.p99_ns.difference().into();
            row
        })
        .collect()
}

/// Returns the result of each kind of model in JSON.
pub fn kinds_json(calibration: &Calibration) -> Vec<Value> {
    calibration
        .kinds
        .iter()
        .map(|(kind, fit)| match fit {
            Ok(off) => json!({ "kind": kind, "off": off }),
            Err(reason) => json!({ "kind": kind, "not_tried": reason }),
        })
        .collect()
}
