//! `iosched calibrate --trace`: fits a profile to a trace of a rotating disk.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use iosched_advise::calibrate::fit_trace;
use iosched_disk::Profile;
use iosched_disk::disksim::service_times;

use super::CalibrateArgs;
use crate::import;
use crate::invocation::Invocation;
use iosched_terminal::fail::{INTERRUPTED, all_of, usage};
use iosched_terminal::output::{Kind, Outputs};
use iosched_terminal::progress::Meter;
use iosched_terminal::show::calibration;
use iosched_terminal::signals::on_signal;

/// A capacity that no disk exceeds, sectors.
const CAPACITY_SECTORS_MAX: u64 = 1 << 48;

pub(super) fn run(
    args: &CalibrateArgs,
    given: &Invocation,
    trace: &Path,
    name: &str,
    interrupt: &Arc<AtomicBool>,
) -> Result<ExitCode> {
    let start = args.start.as_deref().map(Profile::load).transpose()?;
    let capacity_sectors = start.as_ref().map_or(CAPACITY_SECTORS_MAX, |start| start.card().capacity_sectors);
    let shown = trace.display().to_string();
    let services = service_times(&shown, &import::read(trace)?, capacity_sectors).map_err(usage)?;
    // Until here, a signal ends the command at once. From here on, a signal ends the search.
    let flag = Arc::clone(interrupt);
    on_signal(move |_| flag.store(true, Ordering::Relaxed))?;
    let mut outputs = Outputs::new(args.write).prints("the result").reads(trace).reads_all(&args.start);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let bar = Meter::new("{spinner} fitting: tried {pos} models, {msg}");
    let fit = fit_trace(name, &shown, &services, start.as_ref(), |tried, nearest_ns| {
        bar.set_position(tried.into());
        bar.message(format_args!("the error of the best model is {:.3} ms", nearest_ns / 1e6));
        !interrupt.load(Ordering::Relaxed)
    });
    bar.clear();
    let fit = fit.map_err(usage)?;
    let profile_written = out
        .map(|out| {
            out.text(&(calibration::trace_fit_comments(&fit, &given.rerun().to_string()) + &fit.profile.to_toml()?))
        })
        .transpose();
    let text = if args.json {
        calibration::trace_fit_json(&fit, &shown)?
    } else {
        calibration::trace_fit_text(&fit, &shown, args.start.is_some())
    };
    all_of([profile_written.map(|_| ()), iosched_terminal::show::answer(&text, args.json)])?;
    Ok(if interrupt.load(Ordering::Relaxed) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}
