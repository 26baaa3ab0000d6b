//! `iosched advise`: recommends a setting for a device and a workload, with the evidence.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::{KernelVersion, Setting};
use iosched_advise::calibrate::{self, FILE_SIZE_MIB, FILE_SIZE_MIB_DEFAULT, Pace};
use iosched_advise::tune::{self, Constraint, Controller, Goal, GoalOrConstraint};
use iosched_advise::{AdviceObserver, AdvicePlan, AdviceRequest, AdviceStep};
use iosched_disk::Profile;
use iosched_kernel::settings::Lasting;
use iosched_lab::request;
use iosched_lab::{Control, Progress};

use crate::calibrate::{MEASURING, observe};
use crate::invocation::Invocation;
use crate::options::{self, ReplayMode, VerdictArgs, speed};
use iosched_terminal::advice_directory::AdviceDirectory;
use iosched_terminal::fail::{INTERRUPTED, all_of, of_advice, of_comparison, usage};
use iosched_terminal::output::{self, Kind, Outputs, WriteArgs};
use iosched_terminal::progress::{Meter, RUNS, on_interrupt};
use iosched_terminal::show::{Look, advice};

/// Recommend settings for a device and a workload, and show the evidence
///
/// First, iosched measures the device and makes a model of the device. If you give --profile,
/// iosched uses the model in this profile instead. iosched simulates settings on the model, and
/// searches for the settings that are best for --goal. Then iosched runs the best few settings and
/// the present setting on the device itself, and compares the results. These runs use the kernel's
/// schedulers, in random order. iosched recommends a new setting only if the new setting is clearly
/// better on the device. Otherwise iosched recommends the present setting.
///
/// At the end and after Ctrl-C, iosched restores the old settings of the device. With --apply,
/// iosched then sets the recommended setting. After a crash, run `iosched restore` to restore the
/// old settings. iosched writes to a device only if you name the device again with --destroy-data.
/// In a directory, iosched writes only to files that it creates. The command needs root, because it
/// changes schedulers.
///
/// After Ctrl-C, iosched finishes the current run and ends. The directory of --output then contains
/// the results of the finished runs. To skip the measurement next time, use --profile with the
/// profile in this directory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// A block device, such as /dev/sdb, or a directory in a file system on it
    #[arg(value_name = "DEVICE|DIR", value_hint = ValueHint::AnyPath)]
    on: PathBuf,

    /// Workload to serve: a fio job file, a task file, a trace or a command line, as for `iosched compare`
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    workload: PathBuf,

    #[command(flatten)]
    reading: crate::options::Reading,

    /// Metric to optimise, such as "p99(sync)" or "throughput"; repeat the option for more [default: p99(sync)]
    ///
    /// A goal with a limit, such as "p99(db) <= 5 ms", is a constraint, as with --subject-to.
    #[arg(short, long = "goal", value_name = "GOAL")]
    goals: Vec<GoalOrConstraint>,

    /// Limit that must hold: relative to the present setting, such as "throughput >= 95%", or absolute, such as
    /// "p99(sync) <= 20 ms"
    #[arg(long = "subject-to", value_name = "CONSTRAINT")]
    constraints: Vec<Constraint>,

    /// Profile of the device from `iosched calibrate`; with a profile, iosched does not measure the
    /// device
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    profile: Option<PathBuf>,

    /// Measure the device in three rounds (some minutes) instead of one round (half a minute)
    #[arg(long, conflicts_with = "profile")]
    thorough: bool,

    /// Schedulers to choose from; separate them with commas or repeat the option [default: all that the device offers
    /// now]
    #[arg(short, long = "scheduler", alias = "schedulers", value_name = "NAME,…", value_delimiter = ',')]
    schedulers: Vec<String>,

    /// Version of Linux to simulate, such as 6.1 or debian-12 [default: the running kernel]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,

    /// Also search for settings of these controllers, in simulation only: wbt, io.max, io.latency,
    /// io.cost
    ///
    /// iosched does not try settings of cgroups on the device. The advice says how you can set them
    /// yourself.
    #[arg(long = "controller", value_name = "NAME,…", value_delimiter = ',')]
    controllers: Vec<Controller>,

    /// Number of simulated runs for the search
    #[arg(long, value_name = "RUNS", default_value_t = 200)]
    budget: u32,

    /// Number of settings to try on the device, in addition to the present setting
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=20))]
    confirm: u8,

    /// Runs of each setting on the device
    #[arg(short = 'n', short_alias = 'r', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,

    /// Add runs on the device until each verdict is clear, or until the error of each difference is
    /// at most PERCENT
    ///
    /// PERCENT is relative to the value under the present setting. --runs is then the maximum
    /// number of runs.
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = options::UNTIL_SURE_PERCENT, value_parser = options::percent)]
    until_sure: Option<f64>,

    #[command(flatten)]
    length: options::RunLength,

    /// Allow the workload and the measurement to destroy the data on this device; give the name of
    /// the device again
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,

    /// Size of the file that iosched measures if you give a directory, in MiB
    #[arg(long, value_name = "MIB", default_value_t = FILE_SIZE_MIB_DEFAULT, value_parser = crate::options::whole(FILE_SIZE_MIB))]
    file_size: u64,

    /// Machine model for applications and for fio jobs with buffered I/O [default: linux-6.12]
    #[arg(short, long, value_name = "MACHINE|FILE")]
    machine: Option<String>,

    /// How to use the times in a trace [default: as for `iosched compare`]
    #[arg(long, value_enum, value_name = "MODE")]
    replay: Option<ReplayMode>,

    /// Factor for the rate of arrivals in open replay; with 2, I/Os arrive twice as fast as recorded
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,

    /// Seed of the random numbers and of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Apply the recommended setting at the end; the setting lasts until the next boot or until you
    /// undo it
    #[arg(long)]
    apply: bool,

    /// Write everything to this directory: measurements, profile, search, runs, report, udev rule and tuned profile
    ///
    /// The subdirectory untried/ holds files, including systemd drop-ins, for settings that iosched
    /// did not try on the device.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) verdicts: VerdictArgs,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "Examples:
  iosched advise /dev/sdb --workload lookups.fio --run-for 60 \\
      --goal \"p99(reads)\"
  iosched advise /srv/data --workload mixed.fio --run-for 60 \\
      --goal \"p99(reads)\" --subject-to \"throughput >= 95%\" --output advice
  iosched advise /dev/sdb --workload lookups.fio --run-for 60 \\
      --profile advice/profile.toml --apply";

pub(crate) fn run(args: &AdviseArgs, given: &Invocation) -> Result<ExitCode> {
    // While a long trace is read, signals are not handled yet, so a signal ends the command at
    // once.
    let request = args.request()?;
    // From here on, the command handles signals, because it creates files and changes settings that
    // must be removed or restored.
    let control = Arc::new(Control::new(options::or_cpus(None)));
    on_interrupt(&control)?;
    let mut outputs = Outputs::new(args.write).prints("the advice").reads_all(&args.profile).reads_all(&args.machine);
    outputs = outputs.reads_all(options::files(&args.workload));
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let mut plan = AdvicePlan::of(request).map_err(of_advice)?;
    plan.command = args.command(given, plan.schedulers());
    let is_measured = args.profile.is_none();
    let mut directory = AdviceDirectory::open(args.output.as_deref(), plan.disk().name(), is_measured, &mut outputs)?;
    let mut watching = Watching { kernel: plan.kernel(), kept: &mut directory, meter: None, profile: Ok(()) };
    let found = plan.carry_out(&control, &mut watching);
    let Watching { meter, profile: model, .. } = watching;
    drop(meter);
    let Some(found) = found.map_err(of_advice)? else {
        let stored = directory
            .directory()
            .map_or_else(String::new, |directory| format!("; the measurements are in {}", directory.display()));
        eprintln!("interrupted before iosched confirmed any setting on the device, so there is no advice{stored}");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let advice = found.advice();
    let lasting = advice.recommended().map(|best| Lasting::of(plan.disk(), best, &found.present));
    let untried = advice.untried().map(|setting| Lasting::of(plan.disk(), &setting.setting, &found.present));
    let applied = match advice.recommended() {
        Some(best) if args.apply && !found.interrupted => {
            plan.apply(best).map_err(of_advice)?;
            true
        }
        _ => false,
    };
    let (set, kept_in) = ((args.apply, applied), args.output.as_deref());
    let (lasting, untried) = (lasting.as_ref(), untried.as_ref());
    let view = advice::AdviceView { advice: &advice, found: &found, lasting, untried, set, kept_in };
    let calibration = found.calibration.as_ref().map(|(measurements, calibration)| (measurements, calibration));
    let page = iosched_report::advice_html(&advice, &found.records, calibration, lasting, untried);
    let reported = report.map(|out| out.text(&page));
    let written = directory.finish(&page, lasting, untried, &mut outputs);
    let printed = if args.json {
        output::json(&advice::json(&view))
    } else {
        output::print(&advice::text(&view, Look::of_standard_output().with_details(args.verdicts.details)))
    };
    all_of(reported.into_iter().chain([model, written, printed]))?;
    Ok(if found.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Stores the records of each step, and shows the progress.
struct Watching<'k> {
    /// Version of Linux whose rules the search follows.
    kernel: Option<KernelVersion>,
    kept: &'k mut AdviceDirectory,
    meter: Option<Meter>,
    /// Result of writing the profile to its file.
    profile: Result<()>,
}

impl Watching<'_> {
    fn done(&self, done: usize, total: usize) {
        self.meter.iter().for_each(|meter| meter.set(done, total));
    }
}

impl AdviceObserver for Watching<'_> {
    fn begins(&mut self, step: AdviceStep) {
        // Removes the bar of the previous step before the next one appears.
        self.meter = None;
        self.meter = Some(Meter::new(&match step {
            AdviceStep::Measure => MEASURING.to_owned(),
            AdviceStep::Search => {
                let of_kernel = self.kernel.map_or_else(String::new, |kernel| format!(" of Linux {kernel}"));
                format!("searching in simulation{of_kernel} {RUNS}")
            }
            AdviceStep::Run => format!("running on the device {RUNS}"),
        }));
    }

    fn measuring(&mut self, progress: calibrate::Progress<'_>) {
        if let Some(meter) = &self.meter {
            observe(progress, &mut self.kept.calibration, meter);
        }
    }

    fn model(&mut self, profile: &str) {
        self.profile = self.kept.profile(profile);
    }

    fn searching(&mut self, progress: tune::Progress<'_>) {
        match progress {
            tune::Progress::Record(record) => self.kept.search.record(record),
            tune::Progress::Done { done, total } => self.done(done, total),
        }
    }

    fn running(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Record(record) => self.kept.device.record(record),
            Progress::Done { done, total } => self.done(done, total),
            Progress::Discarded { .. } | Progress::Left { .. } => {
                self.meter.iter().for_each(|meter| meter.warn(progress.warning()));
            }
        }
    }
}

/// Returns the name of a file as a path. A name without a slash would mean a profile that is part
/// of iosched.
fn of_file(path: &Path) -> String {
    let name = path.display().to_string();
    if iosched_disk::is_path(&name) { name } else { format!("./{name}") }
}

impl AdviseArgs {
    /// Returns the goals and the constraints from `--goal` and `--subject-to`.
    fn wanted(&self) -> Result<(Vec<Goal>, Vec<Constraint>)> {
        let (mut goals, mut constraints) = GoalOrConstraint::apart(&self.goals);
        constraints.extend(self.constraints.iter().cloned());
        if goals.is_empty() {
            goals.push("p99(sync)".parse::<Goal>().map_err(usage)?);
        }
        Ok((goals, constraints))
    }

    fn request(&self) -> Result<AdviceRequest> {
        let workload = options::open_workload(Some(&self.workload), &self.reading)?;
        let replay = request::replay(self.replay.map(Into::into), self.speed, &workload).map_err(of_comparison)?;
        let (goals, constraints) = self.wanted()?;
        let profile = self.profile.as_ref().map(|path| Profile::load(&of_file(path))).transpose()?;
        Ok(AdviceRequest {
            destroy_data: self.destroy_data.clone(),
            limits: self.length.limits(),
            constraints,
            profile,
            pace: if self.thorough { Pace::FULL } else { Pace::QUICK },
            file_size_mib: self.file_size,
            schedulers: self.schedulers.clone(),
            controllers: self.controllers.clone(),
            budget: self.budget,
            confirm: self.confirm.into(),
            runs: self.runs,
            until_sure_percent: self.until_sure,
            equal_within_percent: self.verdicts.equal_within,
            machine: self.machine.clone(),
            kernel: self.kernel,
            seed: self.seed,
            ..AdviceRequest::new(&self.on, workload, replay, goals)
        })
    }

    /// Returns the command line that repeats the advice. The line states the choices of this
    /// command.
    fn command(&self, given: &Invocation, schedulers: &[Setting]) -> String {
        let line = given.rerun().set("schedulers", schedulers.iter().map(Setting::name));
        let line = line.chosen("budget", [self.budget]).chosen("confirm", [self.confirm]);
        line.chosen("runs", [self.runs]).chosen("seed", [self.seed]).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, parse};

    #[test]
    fn command_of_advice_has_the_options_that_affect_results() {
        let words = "iosched advise /srv/data -w mixed.fio --thorough --file-size 64 --machine linux-6.12 \
                     --replay open --speed 2 --equal-within 3 --apply --output advice";
        let (cli, given) = parse(words.split_whitespace()).unwrap();
        let Some(Command::Advise(args)) = cli.command else { panic!("{words}") };
        let schedulers = ["none", "bfq"].map(Setting::defaults);
        assert_eq!(
            args.command(&given, &schedulers),
            "iosched advise /srv/data --workload mixed.fio --thorough --scheduler none,bfq --budget 200 --confirm 4 \
             --runs 10 --file-size 64 --machine linux-6.12 --replay open --speed 2 --seed 1 --equal-within 3"
        );
    }
}
