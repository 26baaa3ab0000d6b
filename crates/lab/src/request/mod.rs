//! Requests for comparisons: names, texts and numbers from which an [`Experiment`] is built.
//!
//! The command and the Python package use the same names. The same request gives the same
//! experiment, with identical records. Nothing in this module prints.

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
use command_line::CommandLine;
pub use command_line::quoted;
pub use environment::ProcessEnvironment;
pub use sample::sample;
pub use scan::scanned;
pub use settings::{
    AttributeValue, NotAttributeValue, SettingTarget, is_scheduler_name, listed_settings, settings_meant,
};

/// Default number of runs of each setting.
pub const RUNS: u32 = 10;
/// Name of the profile of the default device.
pub const DEVICE: &str = "sata-7200";
/// Default machine of applications, if at least one of the schedulers belongs to the single-queue
/// layer.
pub const MACHINE: &str = "server-2010";
/// Default machine of fio jobs with buffered I/O, and of applications if all schedulers belong to
/// blk-mq.
pub const MACHINE_TODAY: &str = "linux-6.12";
/// Default schedulers: the schedulers of current kernels, and CFQ.
const SCHEDULERS: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];
/// Names of predefined sets of schedulers.
const SETS: [&str; 2] = ["all", "today"];
/// Baseline of a predefined set of schedulers, if the devices have different default schedulers in
/// Linux.
const BASELINE: &str = "mq-deadline";
/// Workload argument that means standard input.
const STANDARD_INPUT: &str = "-";

/// Error of a request that cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The value of an argument is not valid, alone or together with other arguments.
    #[error("{argument} {value}{}{problem}", if value.is_empty() { "" } else { ": " })]
    Argument {
        /// Name of the argument, without the dashes of the command's option.
        argument: &'static str,
        /// Value that the user gave. If it is empty, the problem directly follows the name.
        value: String,
        /// Problem with the value, and the valid values.
        problem: String,
    },
    /// The workload is not valid.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The device's profile is not valid.
    #[error("{0}{meant}", meant = profile_meant(.0))]
    Profile(#[from] ProfileError),
    /// The workload, devices and settings do not fit together.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// Returns a suggestion such as `; did you mean sata-7200?` to append to the error; empty if no
/// name is similar.
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
    /// Creates an error for an invalid value of an argument.
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

/// Use of a trace's times in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayMode {
    /// Closed loop: each process keeps its order and its think times.
    Closed,
    /// Open loop: I/Os arrive at their recorded times.
    Open,
}

/// Request to compare settings in the simulator. [`ComparisonRequest::default`] is the request of
/// the command without arguments.
#[derive(Clone, Debug)]
pub struct ComparisonRequest {
    /// Workload: a file, `-` for standard input, or an application's command line. If `None`, it is
    /// a recorded pgbench run.
    pub workload: Option<PathBuf>,
    /// Options for reading a trace.
    pub reading: ReadOptions,
    /// Devices: names of profiles, or files whose names contain a `/` or end in `.toml`.
    pub devices: Vec<String>,
    /// Machine that an application or buffered fio jobs run on.
    pub machine: Option<String>,
    /// Schedulers that settings can name.
    pub registry: Registry,
    /// Settings, scans of settings, `all` or `today`.
    pub schedulers: Vec<String>,
    /// Versions of Linux for the settings. With several versions, each setting is compared under
    /// each version.
    pub kernels: Vec<KernelVersion>,
    /// Baseline setting; the first setting if `None`.
    pub baseline: Option<String>,
    /// Number of runs of each setting on each device.
    pub runs: u32,
    /// Seed of the experiment. The seed of every run follows from it.
    pub seed: u64,
    /// Replay mode of a trace. If `None`, the default is an open loop if a speed is given or if the
    /// recording has no completion times. Otherwise the default is a closed loop.
    pub replay: Option<ReplayMode>,
    /// Speed of an open-loop replay, as a multiple of the recorded speed.
    pub speed: Option<f64>,
    /// Largest difference from the baseline that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Metrics that conclusions use. If empty, conclusions use the usual metrics.
    pub goals: Vec<Goal>,
    /// Warm-up, s: time from the start of each run that does not count.
    pub warm_up_s: f64,
    /// Length of each run after the warm-up, s.
    pub run_for_s: Option<f64>,
    /// Whether to skip the runs of tasks alone. The metric fairness is then absent.
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
    /// Opens the workload, or the sample if none is named.
    ///
    /// # Errors
    /// The workload is not valid, or options of traces are given with another kind of workload.
    pub fn open_workload(&self) -> Result<Workload, RequestError> {
        open_workload(self.workload.as_deref(), &self.reading)
    }

    /// Builds the requested experiment. Checks the whole request.
    ///
    /// # Errors
    /// Part of the request is not possible. The message says what is possible.
    pub fn experiment(&self) -> Result<Experiment, RequestError> {
        self.experiment_on(self.open_workload()?)
    }

    /// Builds the requested experiment from an open workload.
    ///
    /// # Errors
    /// The errors of [`Self::experiment`].
    pub fn experiment_on(&self, workload: Workload) -> Result<Experiment, RequestError> {
        let profiles = self.devices.iter().map(|device| Profile::load(device)).collect::<Result<_, _>>()?;
        self.experiment_of(workload, profiles)
    }

    /// Builds the requested experiment from an open workload and loaded profiles. [`Self::devices`]
    /// must have the names of these profiles.
    ///
    /// # Errors
    /// The errors of [`Self::experiment`].
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
        }
        // The order of a predefined set does not show which setting the user has at present.
        let is_set = self.schedulers.first().is_none_or(|first| SETS.contains(&first.as_str()));
        let mut defaults: Vec<&str> = profiles.iter().map(|profile| profile.card().default_scheduler()).collect();
        defaults.dedup();
        let default = if let [one] = defaults[..] { one } else { BASELINE };
        if is_set && named.iter().any(|setting| setting.to_string() == default) {
            baseline.get_or_insert_with(|| default.to_owned());
        }
        if self.kernels.len() > 1 {
            named = under_each(&self.kernels, named);
            let written = baseline.take().map(|text| target.parse(&text).map_err(wrong("baseline", &text)));
            baseline = written.transpose()?.map(|one| under_each(&self.kernels[..1], vec![one])[0].to_string());
        }
        if self.no_fairness && self.goals.iter().any(|goal| goal.measure == Measure::Figure(Figure::Fairness)) {
            let problem = "needs runs of each process alone, but --no-fairness skips these runs; leave out one of the \
                           two options";
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
        match self.kernels.as_slice() {
            [kernel] => experiment.set_kernel(*kernel)?,
            kernels => kernels.iter().try_for_each(|&kernel| experiment.check_kernel(kernel))?,
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

    /// Returns the command line that produces the same records, with every choice written out.
    fn command(&self, experiment: &Experiment) -> String {
        let header = experiment.header();
        let mut line = CommandLine::of("compare");
        line.options("--workload", self.workload.iter().map(|path| path.display()));
        line.reading(&self.reading);
        line.options("--device", &self.devices);
        line.options("--machine", header.machine.map(|machine| machine.name));
        line.options("--scheduler", experiment.settings().iter().map(|setting| &setting.label));
        if let [kernel] = self.kernels.as_slice() {
            line.option("--kernel", kernel);
        }
        line.option("--baseline", &header.settings[header.baseline].label);
        line.options("--goal", &self.goals);
        line.option("--runs", self.runs);
        line.option("--seed", self.seed);
        line.replay(experiment);
        if self.no_fairness {
            line.word("--no-fairness");
        }
        line.equal_within(self.equal_within_percent);
        line.length(self.run_for_s, self.warm_up_s);
        line.to_string()
    }
}

/// Returns each setting under each version of Linux. Leaves a setting unchanged if it names a
/// version, or if its scheduler does not belong to blk-mq. If `kernels` is empty, returns the
/// settings unchanged.
#[must_use]
pub fn under_each(kernels: &[KernelVersion], settings: Vec<Setting>) -> Vec<Setting> {
    if kernels.is_empty() {
        return settings;
    }
    let mut all = Vec::new();
    for setting in settings {
        let is_of_today = setting.registered().is_ok_and(|elevator| elevator.layer.is_multi_queue());
        if setting.kernel().is_some() || !is_of_today {
            all.push(setting);
        } else {
            all.extend(kernels.iter().map(|&kernel| setting.clone().at(kernel)));
        }
    }
    all
}

/// Valid lengths of a run, s. The minimum is 1 ns, because a shorter time rounds to 0 ns.
pub const RUN_SECONDS: RangeInclusive<f64> = 1e-9..=1e6;

/// Returns whether a warm-up has a valid length, s: 0 or a value in [`RUN_SECONDS`].
#[must_use]
pub fn is_warm_up(seconds: f64) -> bool {
    seconds == 0.0 || RUN_SECONDS.contains(&seconds)
}

/// Valid speeds of a replay, as multiples of the recorded speed.
pub const SPEEDS: RangeInclusive<f64> = 1e-6..=1e6;

/// Converts seconds to whole ns.
#[must_use]
pub fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Opens a file, standard input for `-`, or an application's command line. Without a path, opens
/// the sample.
///
/// # Errors
/// The workload is not valid, or `reading` has options of traces and the workload is not a trace.
pub fn open_workload(path: Option<&Path>, reading: &ReadOptions) -> Result<Workload, RequestError> {
    let workload = match path {
        Some(path) if path == Path::new(STANDARD_INPUT) => read_workload("standard input", std::io::stdin(), reading)?,
        Some(path) => Workload::open_as(path, &ProcessEnvironment, reading)?,
        None => sample()?,
    };
    of_its_kind(workload, reading)
}

/// Reads a trace, a job file or a task file from `source`. `name` is the name of the workload.
///
/// # Errors
/// The errors of [`open_workload`].
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
        let trace = Arc::get_mut(trace).unwrap_or_else(|| unreachable!("no other code has the trace yet"));
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

/// Returns the replay mode: `mode` if it is given. Otherwise, returns an open loop if a speed is
/// given or if the recording has no completion times, and else a closed loop. A trace without any
/// times is always replayed in a closed loop.
///
/// # Errors
/// The workload is not a trace, a speed is given with a closed loop, or an open loop or speed is
/// requested for a trace without times.
pub fn replay(mode: Option<ReplayMode>, speed: Option<f64>, workload: &Workload) -> Result<Replay, RequestError> {
    let wrong = |argument, problem: &str| Err(RequestError::argument(argument, "", problem));
    if !matches!(workload, Workload::Trace(_)) && (mode.is_some() || speed.is_some()) {
        let argument = if mode.is_some() { "replay" } else { "speed" };
        return wrong(argument, "is only for traces; other workloads define when their tasks submit I/O");
    }
    if mode == Some(ReplayMode::Closed) && speed.is_some() {
        return wrong(
            "speed",
            "needs open replay (--replay open), because in closed replay the device decides the speed",
        );
    }
    if matches!(workload, Workload::Trace(trace) if trace.is_timeless()) {
        let needs_times = "needs recorded times, but all times of this trace are equal; leave the \
                           option out, and each process then submits its I/Os one after another";
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

/// Returns the machine that an application, or fio jobs with buffered I/O, run on under these
/// settings. Returns `None` for other workloads.
///
/// # Errors
/// There is no machine with that name, or the workload does not use a machine.
pub fn machine(
    name: Option<&str>,
    workload: &Workload,
    settings: &[Setting],
) -> Result<Option<MachineProfile>, RequestError> {
    let of_today =
        || settings.iter().all(|setting| setting.registered().is_ok_and(|scheduler| scheduler.layer.is_multi_queue()));
    match (workload, name) {
        (Workload::Application(_), name) => {
            let name = name.unwrap_or_else(|| if of_today() { MACHINE_TODAY } else { MACHINE });
            Ok(Some(MachineProfile::load(name)?))
        }
        (Workload::Jobs(jobs), name) if jobs.are_buffered() => {
            Ok(Some(MachineProfile::load(name.unwrap_or(MACHINE_TODAY))?))
        }
        (_, Some(_)) => {
            let problem = "is only for applications and for fio jobs with buffered I/O; other workloads \
                           use the device directly";
            Err(RequestError::argument("machine", "", problem))
        }
        (_, None) => Ok(None),
    }
}
