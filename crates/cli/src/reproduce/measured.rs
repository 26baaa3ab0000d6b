//! `iosched reproduce measured`: compares published measurements with simulated ones.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use iosched_disk::Profile;
use iosched_lab::Control;
use iosched_lab::measured::{MeasuredOptions, Source, simulate};

use super::ReproduceArgs;
use crate::invocation::Invocation;
use crate::options::or_cpus;
use iosched_terminal::fail::{INTERRUPTED, usage};
use iosched_terminal::output;
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::{Look, measured};

/// Name of this group of experiments.
pub(super) const MEASURED: &str = "measured";
/// Default number of runs of each case. One is enough, because the rates of runs differ by less
/// than 1 %.
const RUNS: u32 = 1;
/// Duration of the measured part of a simulated run, s.
const SECONDS: u32 = 1;

pub(super) fn run(args: &ReproduceArgs, given: &Invocation) -> Result<ExitCode> {
    if args.experiments.len() > 1 {
        return Err(usage(
            "the experiment \"measured\" cannot run together with other experiments; remove the other experiments"
                .to_owned(),
        ));
    }
    let device = args.device.as_deref().map(Profile::load).transpose()?;
    let mut cases = Source::cases(args.data.as_deref())?;
    if let Some(text) = &args.case {
        cases.retain(|case| case.group.contains(text.as_str()) || case.source.name() == text);
        if cases.is_empty() {
            let names = Source::ALL.map(Source::name).join(", ");
            return Err(usage(format!("no case of {names} has the text {text:?} in its name")));
        }
    }
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let options =
        MeasuredOptions { runs: args.runs.unwrap_or(RUNS), seed: args.seed, seconds: SECONDS, device: device.as_ref() };
    let bar = Meter::new("{bar:30} {pos} of {len} runs, {eta} to go");
    let results = simulate(&cases, &options, &control, |done, of| bar.set(done, of))?;
    bar.clear();
    output::print(&if args.json {
        measured::json(&results)?
    } else if args.markdown {
        measured::markdown(&cases, &results, &options, &given.rerun().to_string())
    } else {
        measured::text(&cases, &results, Look::of_standard_output())
    })?;
    Ok(if control.is_stopping() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}
