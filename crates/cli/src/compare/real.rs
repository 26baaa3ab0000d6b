//! `iosched compare --on`: comparison on a real device with the kernel's schedulers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::Setting;
use iosched_kernel::{Roots, StateDirectory};
use iosched_lab::goal::Measure;
use iosched_lab::request::replay;
use iosched_lab::verify::{
    ForeignCommand, RealComparison, Work, named_baseline, named_settings, open_target, scheduled_disk,
};
use iosched_lab::{Control, Figure};

use super::{CompareArgs, Comparing, Written, outputs};
use crate::invocation::Invocation;
use crate::options::{RunLength, UNTIL_SURE_PERCENT, open_workload, percent};
use iosched_terminal::fail::{of_comparison, of_device_request, usage};
use iosched_terminal::progress::on_interrupt_saying;

/// Options of runs on a real device.
#[derive(Args, Debug)]
#[command(next_help_heading = "On a real device")]
pub(crate) struct RealArgs {
    /// Run on a real device under the kernel's schedulers: give a directory on the device, or the device itself, such
    /// as /dev/sdb
    ///
    /// In a directory, iosched reads and writes only files that it creates. iosched writes to a device only if you name
    /// the device again with --destroy-data.
    ///
    /// iosched changes schedulers and tunables, so it needs root. At the end, iosched restores the
    /// old values. After a crash, run `iosched restore` to restore the old values. A setting such
    /// as bfq:low_latency=0,nr_requests=64 uses the kernel's defaults for all other tunables. The
    /// setting "present" stands for the scheduler and the tunables that the device has now. A
    /// setting can contain a cgroup file, such as none:io.max=backup:wbps=50000000, for a cgroup of
    /// the workload. iosched creates these cgroups for the runs and removes them afterwards.
    #[arg(long, value_name = "DIR|DEVICE", value_hint = ValueHint::AnyPath, conflicts_with_all = ["machine", "decisions", "blktrace", "jobs", "no_fairness"])]
    pub(crate) on: Option<PathBuf>,

    /// Allow the workload to destroy the data on the device of --on; give the name of the device
    /// again
    ///
    /// If another program or a file system uses the device, iosched prints an error and changes
    /// nothing.
    #[arg(long, value_name = "DEVICE", requires = "on")]
    destroy_data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) length: RunLength,

    /// Add runs until each verdict is clear, or until the error of each difference is at most
    /// PERCENT of the value of the baseline
    #[arg(long, value_name = "PERCENT", requires = "on", num_args = 0..=1, default_missing_value = UNTIL_SURE_PERCENT, value_parser = percent)]
    pub(crate) until_sure: Option<f64>,

    /// Shell command to run before each run of COMMAND; iosched does not measure the time of this
    /// shell command
    #[arg(long, value_name = "COMMAND", requires = "command")]
    prepare: Option<String>,

    /// Command whose duration iosched measures, instead of a workload; $IOSCHED_TARGET holds the path of the target
    #[arg(last = true, value_name = "COMMAND", requires = "on", conflicts_with = "workload")]
    pub(super) command: Vec<String>,
}

pub(super) fn compare(args: &CompareArgs, given: &Invocation, on: &Path) -> Result<ExitCode> {
    let real = &args.real;
    let roots = Roots::default();
    let state = StateDirectory::usual()?;
    let work = work(args)?;
    if args.goals.iter().any(|goal| goal.measure == Measure::Figure(Figure::Fairness)) {
        return Err(usage(
            "--goal fairness: iosched measures fairness only in simulation; use a metric of a job, as in \
             \"p99(reader)\"",
        ));
    }
    // From here on, the command handles signals, because it creates files and changes settings that
    // must be removed or restored.
    let control = Arc::new(Control::new(1));
    on_interrupt_saying(
        &control,
        match &work {
            Work::Command(_) => {
                "; iosched sends SIGTERM to the command, and SIGKILL if the command still runs after 5 s"
            }
            Work::Workload(_) => "",
        },
    )?;
    let target = open_target(&roots, &state, on, real.destroy_data.as_deref(), &work).map_err(of_device_request)?;
    let device = scheduled_disk(&target, &on.display().to_string(), Some(&work)).map_err(of_device_request)?;
    let settings = named_settings(&args.schedulers, &device).map_err(of_device_request)?;
    let baseline = named_baseline(args.baseline.as_deref(), &settings, &device).map_err(of_device_request)?;
    let replay = match &work {
        Work::Workload(workload) => replay(args.replay.map(Into::into), args.speed, workload).map_err(of_comparison)?,
        Work::Command(_) => iosched_sim::Replay::Closed,
    };
    let command = command(args, given, &settings, baseline);
    let comparison = RealComparison {
        baseline,
        runs: args.runs(),
        seed: args.seed,
        replay,
        limits: real.length.limits(),
        until_sure_percent: real.until_sure,
        equal_within_percent: args.verdicts.equal_within,
        goals: args.goals.clone(),
        ..RealComparison::of(work, settings, command)
    };
    let Written { records, report, .. } = Written::of(args, &mut outputs(args))?;
    let mut bench = comparison.bench(&target, &state)?;
    let mut comparing = Comparing::begin(args, records, report);
    let finished = comparison.run(&mut bench, &control, |progress| comparing.observe(progress));
    comparing.watched.clear();
    drop(bench);
    let shown = comparing.show(&finished?, Vec::new())?;
    target.remove()?;
    Ok(shown)
}

/// Returns the workload or command to run.
fn work(args: &CompareArgs) -> Result<Work> {
    if !args.real.command.is_empty() {
        if !args.real.length.is_default() {
            return Err(usage(
                "--run-for and --warm-up are only for workloads; iosched measures a command from its start to its \
                 end",
            ));
        }
        let (words, prepare) = (args.real.command.clone(), args.real.prepare.clone());
        let command = ForeignCommand { words, prepare };
        command.check().map_err(of_device_request)?;
        return Ok(Work::Command(command));
    }
    Ok(Work::Workload(open_workload(args.workload.as_deref(), &args.reading)?))
}

/// Returns the command line that makes the same records. The line states the choices of this
/// command.
fn command(args: &CompareArgs, given: &Invocation, settings: &[Setting], baseline: usize) -> String {
    let line = given.rerun().set("schedulers", settings).set("baseline", [&settings[baseline]]);
    line.chosen("runs", [args.runs()]).chosen("seed", [args.seed]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, parse};

    #[test]
    fn command_in_records_has_the_options_that_affect_results() {
        let words =
            "iosched compare --on /srv/test -s none,bfq -n 4 --prepare sync --report r.html -- dd if=/dev/zero of=x";
        let (cli, given) = parse(words.split(' ')).unwrap();
        let Some(Command::Compare(args)) = cli.command else { panic!("{words}") };
        let settings = [Setting::defaults("none"), Setting::defaults("bfq")];
        assert_eq!(
            command(&args, &given, &settings, 1),
            "iosched compare --scheduler none --scheduler bfq --baseline bfq --runs 4 --seed 1 --on /srv/test \
             --prepare sync -- dd if=/dev/zero of=x"
        );
    }
}
