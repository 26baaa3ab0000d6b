//! `iosched compare` in simulation.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use iosched::Setting;
use iosched_lab::{Control, Experiment, execute};
use iosched_workload::Workload;

use super::{CompareArgs, Comparing, OutputFormat, Written, outputs};
use crate::blktrace;
use crate::device::load;
use crate::fail::usage;
use crate::options::{machine, open_workload, or_cpus, quoted, replay, replay_options, setting, settings};
use crate::watched::on_interrupt;

/// The schedulers if none is named: those that today's kernels have, and CFQ beside them; and their baseline.
const SCHEDULERS_DEFAULT: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];
const BASELINE_DEFAULT: &str = "mq-deadline";

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let experiment = experiment(args)?;
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

/// Everything is checked before anything runs.
fn experiment(args: &CompareArgs) -> Result<Experiment> {
    let profiles = args.devices().iter().map(|device| load(device)).collect::<Result<Vec<_>>>()?;
    let wrong = |option: &str, text: &str, problem: String| usage(format!("{option} {text}: {problem}"));
    let mut named = Vec::new();
    for text in &args.schedulers {
        named.extend(settings(text).map_err(|problem| wrong("--scheduler", text, problem))?);
    }
    let mut settings = named;
    let baseline =
        args.baseline.as_ref().map(|text| setting(text).map_err(|problem| wrong("--baseline", text, problem)));
    let mut baseline = baseline.transpose()?.map(|baseline| baseline.to_string());
    if settings.is_empty() {
        settings = SCHEDULERS_DEFAULT.into_iter().map(Setting::defaults).collect();
        baseline.get_or_insert_with(|| BASELINE_DEFAULT.to_owned());
    }
    let workload = open_workload(args.workload.as_deref(), &args.reading)?;
    let replay = replay(args.replay, args.speed, &workload)?;
    let machine = machine(args.machine.as_deref(), &workload)?;
    let mut profiles = profiles.into_iter();
    let first = profiles.next().ok_or_else(|| usage("there is nothing to run on: name at least one device"))?;
    if args.output_format() == OutputFormat::FioJson && !matches!(workload, Workload::Jobs(_)) {
        return Err(usage("--output-format fio-json tells of fio jobs: give a job file (*.fio) with --workload"));
    }
    let mut experiment = Experiment::new(workload, first, settings)?;
    profiles.try_for_each(|profile| experiment.add_device(profile))?;
    machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
    for (number, device) in args.devices().iter().enumerate().filter(|(_, device)| iosched_disk::is_path(device)) {
        if let Ok(text) = std::fs::read_to_string(device) {
            experiment.keep_profile_text(number, text);
        }
    }
    if let Some(baseline) = baseline {
        experiment.set_baseline(&baseline)?;
    }
    experiment.runs = args.runs();
    experiment.seed = args.seed;
    experiment.equal_within_percent = args.verdicts.equal_within;
    experiment.replay = replay;
    let limits = args.real.length.limits();
    (experiment.warm_up_ns, experiment.limit) = (limits.warm_up_ns, limits.of_runs());
    experiment.command = command(args, &experiment);
    Ok(experiment)
}

/// The command line that makes the same records, every choice spelled out.
fn command(args: &CompareArgs, experiment: &Experiment) -> String {
    let mut words = vec!["iosched".to_owned(), "compare".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), quoted(&value)]);
    if let Some(path) = &args.workload {
        option("--workload", path.display().to_string());
    }
    words.extend(args.reading.words());
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), quoted(&value)]);
    if let Some(machine) = experiment.header().machine {
        option("--machine", machine.name);
    }
    for device in args.devices() {
        option("--device", device);
    }
    for setting in experiment.settings() {
        option("--scheduler", setting.label.clone());
    }
    option("--baseline", experiment.header().settings[experiment.header().baseline].label.clone());
    option("--runs", args.runs().to_string());
    option("--seed", args.seed.to_string());
    args.verdicts.options(&mut option);
    args.real.length.options(&mut option);
    replay_options(experiment, &mut option);
    words.join(" ")
}
