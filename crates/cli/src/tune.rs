//! `iosched tune`: searches for the best settings for a workload.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::{KernelVersion, Registry, Setting};
use iosched_advise::tune::{
    Constraint, Controller, Goal, GoalOrConstraint, Progress, Selection, TuneError, TuneResults, Tuned, Tuning, read,
    tune,
};
use iosched_disk::Profile;
use iosched_lab::request::{self, AttributeValue, SettingTarget};
use iosched_lab::{Control, Experiment, LabError};

use crate::invocation::{Invocation, Rerun};
use crate::options::{self, ReplayMode, VerdictArgs, or_cpus, speed};
use iosched_terminal::fail::{INTERRUPTED, all_of, of_comparison, usage};
use iosched_terminal::output::{self, Kind, Outputs, Records, WriteArgs};
use iosched_terminal::progress::{RUNS, Watched, on_interrupt};
use iosched_terminal::show::{Look, tuning};

/// Search for the settings that serve a workload best on a modelled device
///
/// iosched simulates settings of the given schedulers, and searches for the settings that give the
/// best result for --goal. It tries the values that `iosched scheduler show NAME` lists as worth
/// trying. Each setting first runs once. Then the best third of the settings runs again. Then the
/// best third of these settings runs again, and so on. iosched compares each run with a run of the
/// defaults that has the same seed. At the end, the best few settings and the defaults run again,
/// with new seeds. iosched recommends a setting only if it is clearly better in these last runs, by
/// more than --equal-within. Otherwise it recommends the defaults. Tunables that make no difference
/// keep their defaults.
///
/// A goal is a statistic of a class of I/O, such as p99(sync) or mean(reader). The statistics are
/// percentiles (such as p50 and p99.9), mean and worst. The classes are sync, async, reads, writes,
/// all, and the name of a task or cgroup. The goals throughput and iops are for the whole run, or
/// for one task or cgroup, as in throughput(backup). Other goals are finish, fairness, and metrics
/// that the application reports, such as tps. With several goals, often no setting is best for all.
/// In this case, the result lists the settings to choose from.
///
/// After Ctrl-C, iosched finishes the current runs, starts no others, and keeps the results. A
/// second Ctrl-C or SIGTERM stops the current runs too.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    /// Workload to run, as for `iosched compare` [default: a recorded pgbench run that comes with iosched]
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    workload: Option<PathBuf>,

    #[command(flatten)]
    reading: crate::options::Reading,

    /// Device to simulate: a profile from `iosched device list`, or a file whose name contains a /
    /// or ends in .toml
    #[arg(short, long, value_name = "PROFILE|FILE", default_value = request::DEVICE)]
    device: String,

    /// Machine model for applications and for fio jobs with buffered I/O [default: linux-6.12, or server-2010 for an
    /// application with a scheduler that Linux no longer has]
    ///
    /// The default is linux-6.12. For an application under a scheduler that Linux no longer has, the default is
    /// server-2010.
    #[arg(short, long, value_name = "MACHINE|FILE")]
    machine: Option<String>,

    /// Schedulers to choose from; separate them with commas or repeat the option
    ///
    /// If you give a value with a scheduler, as in cfq:low_latency=0, this value is fixed. iosched
    /// always tries the defaults of each scheduler.
    #[arg(short, long = "scheduler", value_name = "NAME[:SET],…", required_unless_present = "space")]
    schedulers: Vec<String>,

    /// Also search settings of these controllers: wbt, io.max, io.latency, io.cost; controllers work only with blk-mq
    /// schedulers
    ///
    /// The values to try depend on the I/O of each cgroup.
    #[arg(long = "controller", value_name = "NAME,…", value_delimiter = ',', value_parser = controller)]
    controllers: Vec<Controller>,

    /// Search a predefined set of schedulers and controllers: "today" or "desktop"
    ///
    /// "today" has the schedulers of today's Linux with their defaults, and all controllers. "desktop" also has adios,
    /// a scheduler that only some desktop kernels have.
    ///
    /// --scheduler and --controller replace the schedulers and controllers of the set. --vary adds tunables.
    #[arg(long, value_name = "NAME", value_parser = ["today", DESKTOP])]
    space: Option<String>,

    /// Metric to optimise, such as "p99(sync)"; repeat the option for more
    ///
    /// A goal with a limit, such as "p99(db) <= 5 ms", is a constraint, as with --subject-to.
    #[arg(short, long = "goal", value_name = "GOAL", required = true)]
    goals: Vec<GoalOrConstraint>,

    /// Limit that must hold: relative to the baseline, such as "throughput >= 95%", or absolute, such as "throughput >=
    /// 80 MB/s" or "p99(sync) <= 20 ms"
    #[arg(long = "subject-to", value_name = "CONSTRAINT")]
    constraints: Vec<Constraint>,

    /// Version of Linux to simulate, such as 6.1, 6.1.21, debian-12 or rhel9 [default: 6.12]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,

    /// Setting to compare the others with [default: the first scheduler with its defaults]
    #[arg(short, long, value_name = "SETTING", value_parser = baseline)]
    baseline: Option<Setting>,

    /// Maximum number of runs of the workload
    #[arg(long, value_name = "RUNS", default_value_t = 200)]
    budget: u32,

    /// Search only these tunables
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    vary: Vec<String>,

    /// Search these queue attributes too, such as nr_requests
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    also: Vec<String>,

    /// Fix a tunable at this value, for every scheduler that has it
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',')]
    fix: Vec<AttributeValue>,

    /// Seed of the random numbers; the same seed gives the same records
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Number of runs at the same time; affects only how long the search takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// How to use the times in a trace [default: as for `iosched compare`]
    #[arg(long, value_enum, value_name = "MODE")]
    replay: Option<ReplayMode>,

    /// Factor for the rate of arrivals in open replay; with 2, I/Os arrive twice as fast as recorded
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,

    #[command(flatten)]
    verdicts: VerdictArgs,

    #[command(flatten)]
    length: options::RunLength,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Write the records to this file; iosched adds a line after each run
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    records: Option<PathBuf>,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "In packages, docs/examples is /usr/share/doc/iosched/examples.

Examples:
  iosched tune --workload server.blktrace --scheduler cfq,deadline \\
      --goal \"p99(sync)\" --subject-to \"throughput >= 95%\"
  iosched tune --workload job.fio --device sata-ssd \\
      --scheduler mq-deadline,bfq,kyber,none --goal \"p99(reads)\" \\
      --goal throughput
  iosched tune --workload jobs.toml --scheduler cfq --vary slice_idle,quantum \\
      --also nr_requests --goal \"mean(reader)\" --report tuned.html
  iosched tune --workload docs/examples/db-beside-backup.fio \\
      --device sata-ssd --space today --goal \"throughput(backup)\" \\
      --goal \"p99(db) <= 1 ms\"";

/// Schedulers of the predefined space "today". The first is the baseline.
const TODAY: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// Name of the predefined space that adds the scheduler of desktop kernels.
const DESKTOP: &str = "desktop";

/// Schedulers that are combined with controllers. bfq is left out because it already divides the
/// disk, and kyber because it already throttles requests.
const TODAY_BESIDE: [&str; 2] = ["none", "mq-deadline"];

fn controller(text: &str) -> Result<Controller, String> {
    text.trim().parse()
}

fn baseline(text: &str) -> Result<Setting, String> {
    SettingTarget::Model(&Registry::linux()).parse(text)
}

/// Parses the schedulers of one --scheduler option. Commas separate schedulers. Commas also
/// separate the tunables of a scheduler.
fn schedulers(text: &str) -> Result<Vec<Setting>> {
    let registry = Registry::linux();
    let target = SettingTarget::Model(&registry);
    let parsed = request::listed_settings(text).into_iter().map(|text| target.parse(&text));
    parsed.collect::<Result<_, _>>().map_err(|problem| usage(format!("--scheduler {text}: {problem}")))
}

pub(crate) fn run(args: &TuneArgs, given: &Invocation) -> Result<ExitCode> {
    let tuning = plan(args, given)?;
    let mut outputs = Outputs::new(args.write).prints("the result").reads(&args.device).reads_all(&args.machine);
    outputs = outputs.reads_all(args.workload.iter().flat_map(|workload| options::files(workload)));
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let records = match &args.records {
        Some(path) => outputs.records(path, Kind::Search)?,
        None => Records::none(),
    };
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let started = Instant::now();
    let mut watched = Watched::new(RUNS, records);
    let tuned = search(&tuning, &mut watched, &control)?;
    let recorded = watched.records.finish();
    let Some(Tuned { header, runs, interrupted }) = tuned else {
        eprintln!("interrupted before a run finished: there is no result");
        recorded?;
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let elapsed_s = started.elapsed().as_secs_f64();
    let results = TuneResults::of(&header, &runs);
    watched.warn(results.left_out());
    let reported = report.map(|out| out.text(&iosched_report::tuning_html(&results)));
    let printed = output::print(&if args.json {
        serde_json::to_string_pretty(&results)? + "\n"
    } else {
        let look = Look::of_standard_output().with_details(args.verdicts.details);
        let input = options::sample(args.workload.is_none(), args.device == request::DEVICE, "--device PROFILE");
        tuning::text(&results, elapsed_s, next(args, given, &tuning, &results).as_deref(), input.as_deref(), look)
    });
    all_of([recorded].into_iter().chain(reported).chain([printed]))?;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Returns the report page of a file of records, if the file contains a search.
pub(crate) fn page_of(records: &Path) -> Result<Option<String>> {
    let Some((reader, name)) = Kind::Search.records(records)? else { return Ok(None) };
    let (header, runs) = read(reader, &name)?;
    Ok(Some(iosched_report::tuning_html(&TuneResults::of(&header, &runs))))
}

impl TuneArgs {
    /// Returns the goals and the constraints from `--goal` and `--subject-to`.
    fn wanted(&self) -> (Vec<Goal>, Vec<Constraint>) {
        let (goals, mut constraints) = GoalOrConstraint::apart(&self.goals);
        constraints.extend(self.constraints.iter().cloned());
        (goals, constraints)
    }
}

/// Returns the search. Checks everything before the first run, except problems that only a run
/// shows.
fn plan(args: &TuneArgs, given: &Invocation) -> Result<Tuning> {
    let workload = options::open_workload(args.workload.as_deref(), &args.reading)?;
    let replay = request::replay(args.replay.map(Into::into), args.speed, &workload).map_err(of_comparison)?;
    let named: Vec<_> = args.schedulers.iter().map(|text| schedulers(text)).collect::<Result<_>>()?;
    let mut settings: Vec<Setting> = named.concat();
    if settings.is_empty() {
        settings.extend(TODAY.map(Setting::defaults));
        if args.space.as_deref() == Some(DESKTOP) {
            settings.push(Setting::defaults("adios"));
        }
    }
    let machine = request::machine(args.machine.as_deref(), &workload, &settings).map_err(of_comparison)?;
    let mut experiment = Experiment::new(workload, Profile::load(&args.device)?, settings)?;
    machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
    args.kernel.map_or(Ok(()), |kernel| experiment.set_kernel(kernel))?;
    if iosched_disk::is_path(&args.device)
        && let Ok(text) = std::fs::read_to_string(&args.device)
    {
        experiment.keep_profile_text(0, text);
    }
    experiment.seed = args.seed;
    experiment.equal_within_percent = args.verdicts.equal_within;
    experiment.replay = replay;
    let limits = args.length.limits();
    (experiment.warm_up_ns, experiment.limit) = (limits.warm_up_ns, limits.of_runs());
    experiment.command = command(args, given, &experiment);
    let is_today = args.space.is_some();
    let controllers =
        if args.controllers.is_empty() && is_today { Controller::ALL.to_vec() } else { args.controllers.clone() };
    let (vary, also) = (args.vary.clone(), args.also.clone());
    let fix = args.fix.iter().map(|fixed| (fixed.name.clone(), fixed.value.clone())).collect();
    let of_today = args.controllers.is_empty() && is_today && args.schedulers.is_empty();
    let beside_elevators = if of_today { TODAY_BESIDE.map(str::to_owned).to_vec() } else { Vec::new() };
    let beside_if_possible = args.controllers.is_empty();
    let selection = Selection {
        vary,
        also,
        fix,
        defaults_only: is_today,
        beside: controllers,
        beside_elevators,
        beside_if_possible,
    };
    let (goals, constraints) = args.wanted();
    let mut tuning = Tuning::new(experiment, &selection, goals)?;
    tuning.constraints = constraints;
    tuning.budget = args.budget;
    if let Some(baseline) = &args.baseline {
        tuning.baseline = baseline.clone();
    }
    if tuning.space.size() <= 1 && args.schedulers.len() == 1 && !args.vary.is_empty() {
        return Err(usage(
            "--vary names only tunables with fixed values, so there is nothing to search; name another tunable",
        ));
    }
    Ok(tuning)
}

/// Runs the search. Returns `None` if no run was completed.
fn search(tuning: &Tuning, watched: &mut Watched, control: &Control) -> Result<Option<Tuned>> {
    let tuned = tune(tuning, control, |progress| {
        match progress {
            Progress::Record(record) => watched.record(record),
            Progress::Done { done, total } => watched.done(done, total),
        }
        Ok(())
    });
    watched.clear();
    match tuned {
        Err(TuneError::Lab(LabError::NothingRun)) if control.is_stopping() => Ok(None),
        tuned => Ok(Some(tuned?)),
    }
}

/// Returns the command line that makes the same records. The line states the choices of this
/// command.
fn command(args: &TuneArgs, given: &Invocation, experiment: &Experiment) -> String {
    let line = given.rerun().set("schedulers", experiment.settings().iter().map(|setting| &setting.label));
    subject(line, experiment)
        .chosen("device", [&args.device])
        .chosen("budget", [args.budget])
        .chosen("seed", [args.seed])
        .to_string()
}

/// Adds to a command line how the workload runs.
fn subject(line: Rerun, experiment: &Experiment) -> Rerun {
    options::replayed(line.chosen("machine", experiment.header().machine.map(|machine| machine.name)), experiment)
}

/// Returns the next command: a full comparison of the recommended setting, with a new seed.
fn next(args: &TuneArgs, given: &Invocation, tuning: &Tuning, results: &TuneResults<'_>) -> Option<String> {
    let best = results.recommended().filter(|_| results.recommends())?;
    let line = subject(given.rerun_as("compare"), &tuning.experiment).chosen("given_devices", [&args.device]);
    let line =
        line.set("schedulers", [tuning.baseline.to_string(), best.label.clone()]).set("baseline", None::<String>);
    Some(line.set("goals", None::<String>).set("seed", [args.seed.wrapping_add(1)]).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> (TuneArgs, Invocation) {
        let (cli, given) = crate::command::parse(["iosched", "tune"].iter().chain(words)).unwrap();
        match cli.command {
            Some(crate::command::Command::Tune(args)) => (*args, given),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scheduler_list_is_split_at_schedulers_not_at_tunables() {
        let read = |text: &str| schedulers(text).map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(read("cfq,deadline").unwrap(), ["cfq", "deadline"]);
        let found = read("cfq:slice_idle=0,quantum=4,deadline:fifo_batch=1,none").unwrap();
        assert_eq!(found, ["cfq:slice_idle=0,quantum=4", "deadline:fifo_batch=1", "none"]);
        assert!(read("cqf").unwrap_err().to_string().contains("did you mean cfq?"));
    }

    #[test]
    fn command_in_records_has_the_options_that_affect_results() {
        let (args, given) = args(&[
            "-s",
            "cfq,deadline",
            "-g",
            "P99(sync)",
            "--subject-to",
            "throughput>=95%",
            "--also",
            "nr_requests",
            "--fix",
            "quantum=4",
            "--json",
        ]);
        let command = plan(&args, &given).unwrap().experiment.command;
        assert_eq!(
            command,
            "iosched tune --device sata-7200 --scheduler cfq --scheduler deadline --goal 'P99(sync)' --subject-to \
             'throughput>=95%' --budget 200 --also nr_requests --fix quantum=4 --seed 1 --replay closed"
        );
    }
}
