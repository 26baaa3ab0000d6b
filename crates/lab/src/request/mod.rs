//! Requests for comparisons: names, texts and numbers, from which an [`Experiment`] is built.
//!
//! The command and the Python package use the same words, and get the same experiment, to the byte of its records.
//! Nothing here prints.

mod command_line;
mod environment;
mod sample;
mod scan;
mod settings;

use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosched::{KernelVersion, Registry, Setting, UnknownElevator};
use iosched_disk::{Profile, ProfileError};
use iosched_sim::Replay;
use iosched_trace::{ReadOptions, TraceError};
use iosched_workload::{Workload, WorkloadError};

use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::figure::Figure;
use crate::goal::{Goal, Measure};
use crate::machine::MachineProfile;

pub use crate::nearest::{did_you_mean, listed, nearest};
pub use command_line::{CommandLine, quoted};
pub use environment::ProcessEnvironment;
pub use sample::{NAME as SAMPLE_NAME, sample};
pub use scan::scanned;
pub use settings::{
    AttributeValue, NotAttributeValue, SettingTarget, is_scheduler_name, listed_settings, settings_meant,
};

/// Runs of each setting if nothing is said.
pub const RUNS: u32 = 10;
/// The device if none is named.
pub const DEVICE: &str = "sata-7200";
/// The machine that applications run on if none is named, and an elevator of the single-queue layer is among those tried.
pub const MACHINE: &str = "server-2010";
/// The machine of today: that of fio jobs with buffered I/O, and of applications under elevators of today.
pub const MACHINE_TODAY: &str = "linux-6.12";
/// The schedulers if none is named: those that today's kernels have, and CFQ beside them; and their baseline.
const SCHEDULERS: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];
const BASELINE: &str = "mq-deadline";
/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What cannot be compared as asked.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// An argument has no such value, or none beside the others.
    #[error("{argument} {value}{}{problem}", if value.is_empty() { "" } else { ": " })]
    Argument {
        /// Its name, as the command has it without dashes.
        argument: &'static str,
        /// What was given; empty if that says nothing, and then the problem goes on from the name.
        value: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// The workload is none.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The device is none.
    #[error("{0}{meant}", meant = profile_meant(.0))]
    Profile(#[from] ProfileError),
    /// They do not go together.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// `; did you mean sata-7200?`, behind what is wrong with a profile's name; empty if nothing is near.
#[must_use]
pub fn profile_meant(error: &ProfileError) -> String {
    match error {
        ProfileError::Unknown { name, known } => did_you_mean(name, listed(known)),
        ProfileError::Variant { name, variant } => {
            let (given, value) =
                variant.split_once('=').map_or((variant.as_str(), ""), |(given, value)| (given, value));
            nearest(given, ["depth", "fresh", "steady"]).map_or_else(String::new, |near| {
                let value = if near == "depth" { format!("={value}") } else { String::new() };
                format!("; did you mean {name}:{near}{value}?")
            })
        }
        _ => String::new(),
    }
}

impl RequestError {
    /// Of an argument whose value is not one.
    #[must_use]
    pub fn argument(argument: &'static str, value: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Argument { argument, value: value.into(), problem: problem.into() }
    }
}

impl From<TraceError> for RequestError {
    fn from(error: TraceError) -> Self {
        Self::Workload(error.into())
    }
}

impl From<UnknownElevator> for RequestError {
    fn from(error: UnknownElevator) -> Self {
        let meant = did_you_mean(&error.name, error.known.iter().copied());
        Self::argument("scheduler", &error.name, format!("{error}{meant}"))
    }
}

/// How a trace's times are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// Each process keeps its order and its think times.
    Closed,
    /// I/Os arrive at their recorded times.
    Open,
}

/// A request to compare settings in the simulator. [`ComparisonRequest::default`] is the request of the command without
/// arguments.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// A file, `-` for standard input, or an application's command line; a recorded pgbench run if there is none.
    pub workload: Option<PathBuf>,
    /// How a trace is read.
    pub reading: ReadOptions,
    /// Profiles: names, or files with a `/` or `.toml`.
    pub devices: Vec<String>,
    /// The machine that an application runs on.
    pub machine: Option<String>,
    /// The elevators there are.
    pub registry: Registry,
    /// Settings, scans of them, `all` or `today`.
    pub schedulers: Vec<String>,
    /// Versions of Linux whose rules hold. With several, each setting is compared under each of them.
    pub kernels: Vec<KernelVersion>,
    /// The setting that the others are compared with; the first if there is none.
    pub baseline: Option<String>,
    /// Runs of each setting on each device.
    pub runs: u32,
    /// Every run's seed follows from it.
    pub seed: u64,
    /// How a trace's times are used: open where a speed is given, or the recording does not say when I/Os completed.
    pub replay: Option<ReplayMode>,
    /// How many times faster than recorded I/Os arrive.
    pub speed: Option<f64>,
    /// Differences within so many per cent of the baseline matter to nobody.
    pub equal_within_percent: f64,
    /// The figures that something is concluded from; none: the usual ones.
    pub goals: Vec<Goal>,
    /// The first seconds of each run do not count.
    pub warm_up_s: f64,
    /// Each run ends after so long, warm-up aside.
    pub run_for_s: Option<f64>,
    /// Tasks do not run alone; the metric fairness is absent.
    pub no_fairness: bool,
}

impl Default for ComparisonRequest {
    fn default() -> Self {
        Self {
            workload: None,
            reading: ReadOptions::default(),
            devices: vec![DEVICE.to_owned()],
            machine: None,
            registry: Registry::linux(),
            schedulers: Vec::new(),
            kernels: Vec::new(),
            baseline: None,
            runs: RUNS,
            seed: 1,
            replay: None,
            speed: None,
            equal_within_percent: EQUAL_WITHIN_PERCENT,
            goals: Vec::new(),
            warm_up_s: 0.0,
            run_for_s: None,
            no_fairness: false,
        }
    }
}

impl ComparisonRequest {
    /// The workload; the sample if none is named.
    ///
    /// # Errors
    /// It is none, or options of traces are given to something else.
    pub fn open_workload(&self) -> Result<Workload, RequestError> {
        open_workload(self.workload.as_deref(), &self.reading)
    }

    /// The experiment that is asked for; everything is checked.
    ///
    /// # Errors
    /// What cannot be so, and what would be right.
    pub fn experiment(&self) -> Result<Experiment, RequestError> {
        self.experiment_on(self.open_workload()?)
    }

    /// The same with a workload that is open.
    ///
    /// # Errors
    /// As [`Self::experiment`].
    pub fn experiment_on(&self, workload: Workload) -> Result<Experiment, RequestError> {
        let profiles = self.devices.iter().map(|device| Profile::load(device)).collect::<Result<_, _>>()?;
        self.experiment_of(workload, profiles)
    }

    /// The same with devices, too: [`Self::devices`] says only where they came from.
    ///
    /// # Errors
    /// As [`Self::experiment`].
    pub fn experiment_of(&self, workload: Workload, profiles: Vec<Profile>) -> Result<Experiment, RequestError> {
        let wrong = |argument, text: &str| {
            let text = text.to_owned();
            move |problem: String| RequestError::argument(argument, text, problem)
        };
        let target = SettingTarget::Model(&self.registry);
        let mut named = Vec::new();
        for text in &self.schedulers {
            named.extend(target.parse_all(text).map_err(wrong("scheduler", text))?);
        }
        let baseline = self.baseline.as_ref().map(|text| target.parse(text).map_err(wrong("baseline", text)));
        let mut baseline = baseline.transpose()?.map(|baseline| baseline.to_string());
        if named.is_empty() {
            named = SCHEDULERS.into_iter().map(Setting::defaults).collect();
            baseline.get_or_insert_with(|| BASELINE.to_owned());
        }
        if self.kernels.len() > 1 {
            named = under_each(&self.kernels, named);
            let written = baseline.take().map(|text| target.parse(&text).map_err(wrong("baseline", &text)));
            baseline = written.transpose()?.map(|one| under_each(&self.kernels[..1], vec![one])[0].to_string());
        }
        if self.no_fairness && self.goals.iter().any(|goal| goal.measure == Measure::Figure(Figure::Fairness)) {
            let problem = "needs runs of each process alone, which no-fairness skips; give only one of the two";
            return Err(RequestError::argument("goal", "fairness", problem));
        }
        let replay = replay(self.replay, self.speed, &workload)?;
        let machine = machine(self.machine.as_deref(), &workload, &named)?;
        let mut profiles = profiles.into_iter();
        let nothing = || RequestError::argument("device", "", "at least one device is needed");
        let mut experiment = Experiment::new(workload, profiles.next().ok_or_else(nothing)?, named)?;
        profiles.try_for_each(|profile| experiment.add_device(profile))?;
        machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
        for (number, device) in self.devices.iter().enumerate().filter(|(_, device)| iosched_disk::is_path(device)) {
            if let Ok(text) = std::fs::read_to_string(device) {
                experiment.keep_profile_text(number, text);
            }
        }
        if let Some(baseline) = baseline {
            experiment.set_baseline(&baseline)?;
        }
        if let [kernel] = self.kernels.as_slice() {
            experiment.set_kernel(*kernel)?;
        }
        experiment.runs = self.runs;
        experiment.seed = self.seed;
        experiment.equal_within_percent = self.equal_within_percent;
        experiment.goals.clone_from(&self.goals);
        experiment.replay = replay;
        experiment.fairness = !self.no_fairness;
        let limits = crate::verify::Limits { warm_up_ns: ns(self.warm_up_s), run_for_ns: self.run_for_s.map(ns) };
        (experiment.warm_up_ns, experiment.limit) = (limits.warm_up_ns, limits.of_runs());
        experiment.command = self.command(&experiment);
        Ok(experiment)
    }

    /// The command line that makes the same records, every choice spelled out.
    fn command(&self, experiment: &Experiment) -> String {
        let header = experiment.header();
        let mut line = CommandLine::of("compare");
        line.options("--workload", self.workload.iter().map(|path| path.display()));
        line.reading(&self.reading);
        line.options("--machine", header.machine.map(|machine| machine.name));
        line.options("--device", &self.devices);
        line.options("--scheduler", experiment.settings().iter().map(|setting| &setting.label));
        if let [kernel] = self.kernels.as_slice() {
            line.option("--kernel", kernel);
        }
        line.option("--baseline", &header.settings[header.baseline].label);
        line.options("--goal", &self.goals);
        line.option("--runs", self.runs);
        line.option("--seed", self.seed);
        if self.no_fairness {
            line.word("--no-fairness");
        }
        line.equal_within(self.equal_within_percent);
        line.length(self.run_for_s, self.warm_up_s);
        line.replay(experiment);
        line.to_string()
    }
}

/// Each setting under each version of Linux. A setting that names its version, and a scheduler that today's request
/// queue does not have, stay as they are.
fn under_each(kernels: &[KernelVersion], settings: Vec<Setting>) -> Vec<Setting> {
    let mut all = Vec::new();
    for setting in settings {
        let is_of_today = setting.registered().is_ok_and(|own| own.layer.is_multi_queue());
        if setting.kernel().is_some() || !is_of_today {
            all.push(setting);
        } else {
            all.extend(kernels.iter().map(|&kernel| setting.clone().at(kernel)));
        }
    }
    all
}

/// Lengths of time that a run can have, s: at least 1 ns, because a shorter one is none in whole ns.
pub const RUN_SECONDS: RangeInclusive<f64> = 1e-9..=1e6;

/// Whether a length of time can be left out of a run, s: none, or one of [`RUN_SECONDS`].
#[must_use]
pub fn is_warm_up(seconds: f64) -> bool {
    seconds == 0.0 || RUN_SECONDS.contains(&seconds)
}

/// Factors by which a replay can be faster than its recording.
pub const SPEEDS: RangeInclusive<f64> = 1e-6..=1e6;

/// Seconds in whole ns.
#[must_use]
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// A file, `-` for standard input, or an application's command line; the sample if there is none.
///
/// # Errors
/// It is none, or `reading` has options of traces and it is something else.
pub fn open_workload(path: Option<&Path>, reading: &ReadOptions) -> Result<Workload, RequestError> {
    let workload = match path {
        Some(path) if path == Path::new(STANDARD_INPUT) => read_workload("standard input", std::io::stdin(), reading)?,
        Some(path) => Workload::open_as(path, &ProcessEnvironment, reading)?,
        None => sample()?,
    };
    of_its_kind(workload, reading)
}

/// What `source` holds: a trace, a job file or a task file; `name` is what it is called.
///
/// # Errors
/// As [`open_workload`].
pub fn read_workload(
    name: &str,
    source: impl Read + Send + 'static,
    reading: &ReadOptions,
) -> Result<Workload, RequestError> {
    of_its_kind(Workload::read(name, source, &ProcessEnvironment, reading)?, reading)
}

fn of_its_kind(mut workload: Workload, reading: &ReadOptions) -> Result<Workload, RequestError> {
    let changes = !(reading.cgroups.is_empty() && reading.priorities.is_empty());
    if let (Workload::Trace(trace), true) = (&mut workload, changes) {
        let trace = Arc::get_mut(trace).unwrap_or_else(|| unreachable!("nobody else has it yet"));
        trace.put(&reading.cgroups)?;
        trace.prioritise(&reading.priorities)?;
    }
    let given = match reading {
        ReadOptions { format: Some(_), .. } => "input-format",
        ReadOptions { columns: Some(_), .. } => "columns",
        ReadOptions { time_unit: Some(_), .. } => "time-unit",
        ReadOptions { partial: true, .. } => "partial",
        ReadOptions { cgroups, .. } if !cgroups.is_empty() => "cgroup",
        ReadOptions { priorities, .. } if !priorities.is_empty() => "ionice",
        _ => return Ok(workload),
    };
    match workload {
        Workload::Trace(_) => Ok(workload),
        _ => Err(RequestError::argument(given, "", "is only for traces, and the workload is not a trace")),
    }
}

/// How a trace's times are used: as was asked for; else open with a speed, or where the recording does not tell which
/// I/O waited for which.
///
/// # Errors
/// It is no trace, or a speed is given to closed replay.
pub fn replay(mode: Option<ReplayMode>, speed: Option<f64>, workload: &Workload) -> Result<Replay, RequestError> {
    let wrong = |argument, problem: &str| Err(RequestError::argument(argument, "", problem));
    if !matches!(workload, Workload::Trace(_)) && (mode.is_some() || speed.is_some()) {
        let argument = if mode.is_some() { "replay" } else { "speed" };
        return wrong(argument, "is only for traces; other workloads define themselves when tasks submit");
    }
    if mode == Some(ReplayMode::Closed) && speed.is_some() {
        return wrong("speed", "needs open replay: in closed replay, the device decides the speed");
    }
    if matches!(workload, Workload::Trace(trace) if trace.is_timeless()) {
        let needs_times = "needs recorded times, but all times of this trace are equal; without it, each process \
         submits its I/Os one after another";
        return match (mode, speed) {
            (Some(ReplayMode::Open), _) => wrong("replay", needs_times),
            (_, Some(_)) => wrong("speed", needs_times),
            _ => Ok(Replay::Closed),
        };
    }
    let blind = matches!(workload, Workload::Trace(trace) if !trace.knows_completions());
    let open = mode.map_or(speed.is_some() || blind, |mode| mode == ReplayMode::Open);
    Ok(if open { Replay::Open { speed: speed.unwrap_or(1.0) } } else { Replay::Closed })
}

/// The machine that an application, or fio jobs with buffered I/O, run on under these settings; `None` of other
/// workloads.
///
/// # Errors
/// There is none of that name, or the workload needs none.
pub fn machine(
    name: Option<&str>,
    workload: &Workload,
    settings: &[Setting],
) -> Result<Option<MachineProfile>, RequestError> {
    let of_today = || settings.iter().all(|setting| setting.registered().is_ok_and(|own| own.layer.is_multi_queue()));
    match (workload, name) {
        (Workload::Application(_), name) => {
            let name = name.unwrap_or_else(|| if of_today() { MACHINE_TODAY } else { MACHINE });
            Ok(Some(MachineProfile::load(name)?))
        }
        (Workload::Jobs(jobs), name) if jobs.are_buffered() => {
            Ok(Some(MachineProfile::load(name.unwrap_or(MACHINE_TODAY))?))
        }
        (_, Some(_)) => {
            let problem =
                "is only for applications and for fio jobs with buffered I/O; other workloads use the device directly";
            Err(RequestError::argument("machine", "", problem))
        }
        (_, None) => Ok(None),
    }
}
