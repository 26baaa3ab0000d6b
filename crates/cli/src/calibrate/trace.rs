//! `iosched calibrate --trace`: fits a profile to a trace of a rotating disk.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use iosched_advise::calibrate::{TraceFit, fit_trace};
use iosched_disk::disksim::service_times;
use iosched_disk::{Model, Profile};
use iosched_lab::grouped;
use iosched_lab::validate::Closeness;
use serde_json::json;

use super::CalibrateArgs;
use crate::import;
use crate::invocation::Invocation;
use iosched_terminal::fail::{INTERRUPTED, usage};
use iosched_terminal::output::{Kind, Outputs, all_of};
use iosched_terminal::progress::Meter;

/// Capacity above that of any disk, sectors.
const CAPACITY_SECTORS_MAX: u64 = 1 << 48;

pub(super) fn run(
    args: &CalibrateArgs,
    given: &Invocation,
    trace: &Path,
    name: &str,
    interrupt: &AtomicBool,
) -> Result<ExitCode> {
    let start = args.start.as_deref().map(Profile::load).transpose()?;
    let capacity_sectors = start.as_ref().map_or(CAPACITY_SECTORS_MAX, |start| start.card().capacity_sectors);
    let shown = trace.display().to_string();
    let services = service_times(&shown, &import::read(trace)?, capacity_sectors).map_err(usage)?;
    let mut outputs = Outputs::new(args.write).prints("the figures").reads(trace).reads_all(&args.start);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let bar = Meter::new("{spinner} fitting: {pos} models tried, {msg}");
    let fit = fit_trace(name, &shown, &services, start.as_ref(), |tried, nearest_ns| {
        bar.set_position(tried.into());
        bar.message(format_args!("error of the best one {:.3} ms", nearest_ns / 1e6));
        !interrupt.load(Ordering::Relaxed)
    });
    bar.clear();
    let fit = fit.map_err(usage)?;
    let made =
        out.map(|out| out.text(&(preface(&fit, &given.rerun().to_string()) + &fit.profile.to_toml()?))).transpose();
    let text = if args.json { json_of(&fit, &shown)? } else { text_of(&fit, &shown, args.start.is_some()) };
    all_of([made.map(|_| ()), iosched_terminal::show::answer(&text, args.json)])?;
    Ok(if interrupt.load(Ordering::Relaxed) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn percent(own: &Closeness) -> f64 {
    100.0 * own.rms_ms / own.measured_mean_ms
}

fn json_of(fit: &TraceFit, trace: &str) -> Result<String> {
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

fn text_of(fit: &TraceFit, trace: &str, refined: bool) -> String {
    let TraceFit { profile, fitted, held_out, tried } = fit;
    let mut text = format!(
        "{trace}    {} requests, one at a time\n{}\n\n",
        grouped((fitted.requests + held_out.requests) as u64),
        profile.about()
    );
    let _ = writeln!(
        text,
        "                            requests   mean, ms: measured  of the model   rms, ms   of the mean"
    );
    for (name, own) in [("requests of the fit", fitted), ("held-out requests", held_out)] {
        let _ = writeln!(
            text,
            "{name:26} {:>9} {:20.3} {:13.3} {:9.3} {:11.1} %",
            grouped(own.requests as u64),
            own.measured_mean_ms,
            own.mean_ms,
            own.rms_ms,
            percent(own)
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
fn preface(fit: &TraceFit, command: &str) -> String {
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
