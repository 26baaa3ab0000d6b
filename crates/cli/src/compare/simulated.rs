//! `iosched compare` in simulation.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use iosched_lab::request::ComparisonRequest;
use iosched_lab::{Control, Experiment, execute};
use iosched_workload::Workload;

use super::{CompareArgs, Comparing, OutputFormat, Written, outputs};
use crate::blktrace;
use crate::invocation::Invocation;
use crate::options::{self, open_workload, or_cpus};
use iosched_terminal::fail::{of_comparison, usage};
use iosched_terminal::progress::on_interrupt;

pub(super) fn compare(args: &CompareArgs, given: &Invocation) -> Result<ExitCode> {
    let experiment = experiment(args, given)?;
    let mut outputs = outputs(args);
    let traces = match &args.blktrace {
        Some(directory) => blktrace::prepare(&experiment, directory, &mut outputs)?,
        None => Vec::new(),
    };
    let Written { records, report, decisions } = Written::of(args, &mut outputs)?;
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let mut comparing = Comparing::begin(args, records, report);
    let finished = execute(&experiment, &control, |progress| comparing.observe(progress));
    comparing.watched.clear();
    let finished = finished?;
    let mut written = Vec::new();
    if !finished.interrupted {
        written.extend(traces.iter().map(|trace| trace.write(&experiment)));
        written.extend(
            decisions.map(|out| out.write(|out| Ok(iosched_lab::write_decisions(&experiment, &mut &mut *out)?))),
        );
    }
    comparing.show(&finished, written)
}

/// Returns the experiment. All arguments are checked before the first run.
fn experiment(args: &CompareArgs, given: &Invocation) -> Result<Experiment> {
    let (warm_up_s, run_for_s) = args.real.length.seconds();
    let request = ComparisonRequest {
        registry: iosched::Registry::linux(),
        workload: args.workload.clone(),
        reading: args.reading.options(),
        devices: args.devices(),
        machine: args.machine.clone(),
        schedulers: args.schedulers.clone(),
        kernels: args.kernels.clone(),
        baseline: args.baseline.clone(),
        runs: args.runs(),
        seed: args.seed,
        replay: args.replay.map(Into::into),
        speed: args.speed,
        equal_within_percent: args.verdicts.equal_within,
        goals: args.goals.clone(),
        warm_up_s,
        run_for_s,
        no_fairness: args.no_fairness,
    };
    let workload = open_workload(args.workload.as_deref(), &args.reading)?;
    if args.output_format() == OutputFormat::FioJson && !matches!(workload, Workload::Jobs(_)) {
        return Err(usage("--output-format fio-json is only for fio jobs: give a job file (*.fio) with --workload"));
    }
    let mut experiment = request.experiment_on(workload).map_err(of_comparison)?;
    experiment.command = command(args, given, &experiment);
    Ok(experiment)
}

/// Returns the command line that makes the same records. The line states the choices of this
/// command.
fn command(args: &CompareArgs, given: &Invocation, experiment: &Experiment) -> String {
    let header = experiment.header();
    let mut line = given.rerun().chosen("given_devices", args.devices());
    line = line.chosen("machine", header.machine.map(|machine| machine.name));
    line = line.set("schedulers", experiment.settings().iter().map(|setting| &setting.label));
    line = line.set("baseline", [&header.settings[header.baseline].label]);
    if args.kernels.len() > 1 {
        // The label of each setting already contains the version.
        line = line.set("kernels", None::<String>);
    }
    line = line.chosen("runs", [args.runs()]).chosen("seed", [args.seed]);
    options::replayed(line, experiment).to_string()
}
