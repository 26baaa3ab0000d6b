//! Records: the plan of an experiment and the raw metrics of its runs. All results are computed
//! from records alone.
//!
//! A file of records is JSON lines. The [`Header`] comes first. After the header, there is one line
//! per run, one line per run of a task alone, and one timeline per setting, for every device. The
//! lines are in the order of the plan, so the same plan gives the same bytes. If writing is
//! interrupted, the file is a valid prefix.
//!
//! Format 2 holds any number of devices. Files of format 1, which held one device, are also read.

use iosched::Setting;
use iosched_disk::Fit;
use iosched_kernel::checks::Finding;
use iosched_kernel::facts::Facts;
use iosched_kernel::knobs::Inert;
use iosched_sim::{BlockLayer, Limit, Replay, RunResult, TaskResult, Timeline};
use serde::{Deserialize, Serialize};

/// Default bound of equality, per cent of the baseline: smaller differences count as equal.
pub const EQUAL_WITHIN_PERCENT: f64 = 5.0;

/// Version of the format of records. It increases if old readers would misunderstand new files.
pub const RECORDS_FORMAT: u32 = 2;

/// One line of a file of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The plan. It is always the first line.
    Header(Box<Header>),
    /// One run of one setting on one device.
    Run(Box<RunRecord>),
    /// A run of one task of the workload alone on a device.
    Alone(Box<AloneRecord>),
    /// Timeline of run 0 of one setting on one device.
    Timeline(Box<TimelineRecord>),
}

/// Plan of the experiment, with everything that is needed to produce the same records again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Value of [`RECORDS_FORMAT`] in the version that wrote the file. It may be older than the
    /// format of the reader.
    pub format: u32,
    /// Version of iosched that made the runs.
    pub version: String,
    /// Command line that produces the same records again.
    pub command: String,
    /// Workload of the runs.
    pub workload: WorkloadRecord,
    /// Devices, in the order they were given; at least one.
    pub devices: Vec<DeviceRecord>,
    /// Settings, in the order they were given.
    pub settings: Vec<SettingRecord>,
    /// Index of the baseline in `settings`.
    pub baseline: usize,
    /// Seed of the experiment. The seeds of the runs follow from it.
    pub seed: u64,
    /// Number of planned runs of each setting on each device.
    pub runs: u32,
    /// Replay mode of a trace.
    pub replay: Replay,
    /// Block layer of the simulated machine.
    #[serde(rename = "host")]
    pub block_layer: BlockLayer,
    /// Machine profile that an application ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// Warm-up, ns: time from the start of each run that does not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_ns: u64,
    /// Limits that end a run early.
    pub limit: Limit,
    /// On a real device: precision that ends the experiment, per cent of the baseline. It ends when
    /// every difference is clear or is known with this precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_sure_percent: Option<f64>,
    /// Largest difference from the baseline that counts as equal, per cent.
    #[serde(default = "equal_within_default", skip_serializing_if = "is_equal_within_default")]
    pub equal_within_percent: f64,
    /// Metrics that conclusions use, in the notation of goals. If empty, conclusions use the usual
    /// metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// Tasks that were planned to run alone, as indices in [`RunResult::tasks`], in ascending
    /// order.
    pub alone: Vec<usize>,
    /// Whether the user disabled runs of tasks alone. The metric fairness is then absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_fairness: bool,
}

/// Kind of a workload, as a record names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadKind {
    /// A trace that was replayed.
    Trace,
    /// Synthetic tasks.
    Tasks,
    /// fio jobs.
    Jobs,
    /// An external command.
    Command,
    /// A program that makes system calls.
    Application,
    /// Workloads of several units at the same time.
    Several,
}

impl WorkloadKind {
    /// Returns the word for `count` tasks of this kind of workload, such as "process" or "jobs".
    #[must_use]
    pub const fn task_word(self, count: u64) -> &'static str {
        let (one, several) = match self {
            Self::Trace => ("process", "processes"),
            Self::Tasks | Self::Application | Self::Several => ("task", "tasks"),
            Self::Command => ("command", "commands"),
            Self::Jobs => ("job", "jobs"),
        };
        if count == 1 { one } else { several }
    }
}

/// Description of the workload of an experiment, in its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Name of the workload for display.
    pub name: String,
    /// Kind of the workload.
    pub kind: WorkloadKind,
    /// XXH3 hash of the content, 16 hexadecimal digits. The hash does not depend on the name of
    /// the workload.
    pub fingerprint: String,
    /// Number of tasks or processes.
    pub tasks: u64,
    /// Number of requests of a trace, or number of I/Os of tasks if every task has an end.
    pub requests: Option<u64>,
    /// Number of reads of a trace.
    pub reads: Option<u64>,
    /// Time from the first to the last recorded submission, ns.
    pub span_ns: Option<u64>,
    /// Whether the workload runs for a given time, instead of until a given amount of I/O is
    /// complete. Only the throughput of such a workload has a meaning, not its duration.
    #[serde(default, skip_serializing_if = "is_not")]
    pub timed: bool,
    /// Warnings about the workload's file, in sentences. Only the first warnings are stored.
    pub warnings: Vec<String>,
    /// Total number of warnings, including those that are not stored.
    pub warnings_total: u64,
    /// Missing parts of a trace that can change conclusions, certain ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRecord>,
    /// Properties of a trace that may make the answer wrong, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
    /// Assumptions about a trace, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Number of devices that a trace was recorded on, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_devices: Option<u64>,
    /// Number of disks that fio jobs or an application use, if more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub several_disks: Option<u64>,
    /// Number of requests whose priority (ionice) the trace does not record. `None` if there are
    /// only a few, or if they come from a single process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_priorities: Option<u64>,
    /// Whether tasks or processes have different ioprio classes.
    #[serde(default, skip_serializing_if = "is_not")]
    pub different_classes: bool,
    /// Whether tasks or processes have different ioprio levels.
    #[serde(default, skip_serializing_if = "is_not")]
    pub different_levels: bool,
    /// For fio jobs: the properties of each job that fio's JSON prints together with the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobRecord>,
}

impl WorkloadRecord {
    /// Creates a record with these properties. All other properties are empty.
    #[must_use]
    pub const fn new(name: String, kind: WorkloadKind, fingerprint: String, tasks: u64) -> Self {
        Self {
            name,
            kind,
            fingerprint,
            tasks,
            requests: None,
            reads: None,
            span_ns: None,
            timed: false,
            warnings: Vec::new(),
            warnings_total: 0,
            missing: Vec::new(),
            oddities: Vec::new(),
            assumed: Vec::new(),
            recorded_devices: None,
            several_disks: None,
            unknown_priorities: None,
            different_classes: false,
            different_levels: false,
            jobs: Vec::new(),
        }
    }

    /// Returns whether the trace certainly lacks a part of the recording.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.missing.iter().any(|missing| missing.certain)
    }
}

/// A missing part of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRecord {
    /// Machine-readable name of the gap, from `iosched_trace`.
    pub kind: String,
    /// Whether the part is certainly missing. If false, it may be missing.
    pub certain: bool,
    /// Description of the gap, in a sentence.
    pub problem: String,
    /// Remedy, in a sentence.
    pub remedy: String,
}

/// Description of a fio job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Name of the job.
    pub name: String,
    /// Number of the job's group.
    pub group: u32,
    /// Whether fio reports all jobs of the group together (`group_reporting`).
    pub group_reporting: bool,
    /// Description from the job file.
    pub description: String,
    /// Options from the job's section, as they were given.
    pub options: Vec<(String, String)>,
    /// Options from the `[global]` section.
    pub global_options: Vec<(String, String)>,
    /// Number of I/Os that the job keeps in flight.
    pub io_depth: u32,
    /// Percentiles to report, per cent.
    pub percentiles: Vec<f64>,
    /// Whether to report percentiles of the submission latency.
    pub slat_percentiles: bool,
    /// Whether to report percentiles of the completion latency.
    pub clat_percentiles: bool,
    /// Whether to report percentiles of the total latency.
    pub lat_percentiles: bool,
    /// fio's `latency_target`, ns; 0 if absent.
    pub latency_target_ns: u64,
    /// fio's `latency_window`, ns; 0 if absent.
    pub latency_window_ns: u64,
    /// fio's `latency_percentile`, per cent.
    pub latency_percentile: f64,
}

impl From<&iosched_workload::fio::Job> for JobRecord {
    fn from(job: &iosched_workload::fio::Job) -> Self {
        let target = job.latency_target;
        Self {
            name: job.name.clone(),
            group: job.group,
            group_reporting: job.group_reporting,
            description: job.description.clone(),
            options: job.options.clone(),
            global_options: job.global_options.clone(),
            io_depth: job.io_depth,
            percentiles: job.percentiles.list.clone(),
            slat_percentiles: job.percentiles.slat,
            clat_percentiles: job.percentiles.clat,
            lat_percentiles: job.percentiles.lat,
            latency_target_ns: target.map_or(0, |target| target.target_ns),
            latency_window_ns: target.map_or(0, |target| target.window_ns),
            latency_percentile: target.map_or(100.0, |target| target.percentile),
        }
    }
}

/// Description of the machine that an application ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Name or file of the machine's profile.
    pub name: String,
    /// Description of the machine, in one line.
    pub about: String,
    /// Text of the profile, if it came from a file. Otherwise `name` and [`Header::version`]
    /// identify the profile.
    pub profile: Option<String>,
}

/// Description of a device of an experiment, in its records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name or file of the device's profile.
    pub name: String,
    /// Description of the device, in one line.
    pub about: String,
    /// XXH3 hash of the model and its parameters, 16 hexadecimal digits.
    pub fingerprint: String,
    /// Text of the profile, if it came from a file. Otherwise `name` and [`Header::version`]
    /// identify the profile.
    pub profile: Option<String>,
    /// Size of the device, sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Queue depth of the device: requests that it takes at once.
    pub depth: u32,
    /// Whether the device is rotational: seeks take time.
    pub rotational: bool,
    /// Whether the device acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// Accuracy of the model against the device it was fitted to; `None` if it was not fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// For a real device: the target and the facts found there; `None` for a modelled device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRecord>,
    /// For each of [`Header::settings`]: every tunable of the scheduler and every attribute of the
    /// queue, with its value in effect on this device.
    pub values: Vec<Vec<ValueRecord>>,
}

/// Description of a real device and of the machine it was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRecord {
    /// Device or directory that was read and written.
    pub target: String,
    /// Facts about the machine and its devices before the first run.
    pub facts: Facts,
    /// Findings about the machine that metrics may depend on.
    pub findings: Vec<Finding>,
    /// For each of [`Header::settings`]: the tunables and attributes without effect.
    pub inert: Vec<Vec<Inert>>,
}

/// Setting that an experiment compares, in its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// Label of the setting in tables, as the user wrote it.
    pub label: String,
    /// Scheduler and the values set for it.
    pub setting: Setting,
}

/// One tunable or attribute with its value in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRecord {
    /// Name of the tunable or attribute.
    pub name: String,
    /// Value in effect, in the declared unit.
    pub value: String,
    /// Declared unit, as printed; empty for a plain number.
    pub unit: String,
    /// Whether this is an attribute of the queue. If false, it is a tunable of the scheduler.
    pub attribute: bool,
    /// Whether the setting names this tunable or attribute.
    pub set: bool,
}

/// Returns the bound of equality for headers that do not contain one, per cent.
#[must_use]
pub const fn equal_within_default() -> f64 {
    EQUAL_WITHIN_PERCENT
}

/// Returns whether a bound of equality is the default, so the header omits it.
#[must_use]
pub fn is_equal_within_default(percent: &f64) -> bool {
    *percent == EQUAL_WITHIN_PERCENT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_first(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_not(flag: &bool) -> bool {
    !*flag
}

/// A run of one setting on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Index of the device in [`Header::devices`]; omitted in the file for 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Index of the setting in [`Header::settings`].
    pub setting: usize,
    /// Number of the run, from 0. All runs with the same number share a seed and are compared with
    /// each other.
    pub run: u32,
    /// Seed of the run.
    pub seed: u64,
    /// On a real device: position of the run in the order of execution, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Raw metrics of the run.
    pub result: RunResult,
}

/// A run of one task without the other tasks, with the seed of run 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AloneRecord {
    /// Index of the device in [`Header::devices`]; omitted in the file for 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Index of the setting in [`Header::settings`].
    pub setting: usize,
    /// Index of the task in [`RunResult::tasks`] of the runs of the whole workload.
    pub task: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Raw metrics of the task.
    pub result: TaskResult,
}

/// Timeline of run 0 of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// Index of the device in [`Header::devices`]; omitted in the file for 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Index of the setting in [`Header::settings`].
    pub setting: usize,
    /// The timeline.
    pub timeline: Timeline,
}

/// All records of an experiment, complete or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// The plan.
    pub header: Header,
    /// Runs, sorted by run, device and setting.
    pub runs: Vec<RunRecord>,
    /// Runs of tasks alone, sorted by device, setting and task.
    pub alone: Vec<AloneRecord>,
    /// Timelines, sorted by device and setting.
    pub timelines: Vec<TimelineRecord>,
    /// Warnings about the file that the records were read from, in sentences.
    pub warnings: Vec<String>,
}

impl RunRecord {
    const fn key(&self) -> (u32, usize, usize) {
        (self.run, self.device, self.setting)
    }
}

impl AloneRecord {
    const fn key(&self) -> (usize, usize, usize) {
        (self.device, self.setting, self.task)
    }

    /// Returns the time of the task's last completion, ns; 0 if it had none.
    pub(crate) fn end_ns(&self) -> u64 {
        self.result.last_completion_ns.unwrap_or(0)
    }
}

impl TimelineRecord {
    const fn key(&self) -> (usize, usize) {
        (self.device, self.setting)
    }
}

/// Inserts `new` in the order of the keys. Returns `false` if the key exists already.
fn insert<T, K: Ord>(sorted: &mut Vec<T>, new: T, key: impl Fn(&T) -> K) -> bool {
    match sorted.binary_search_by_key(&key(&new), key) {
        Ok(_) => false,
        Err(at) => {
            sorted.insert(at, new);
            true
        }
    }
}

impl Records {
    /// Creates the records of a plan without any runs.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, runs: Vec::new(), alone: Vec::new(), timelines: Vec::new(), warnings: Vec::new() }
    }

    /// Adds a record. Drops the record and returns `false` in three cases: the record is a header,
    /// its device or setting is not in the plan, or the same record exists already.
    pub fn add(&mut self, record: Record) -> bool {
        let planned = |device, setting| device < self.header.devices.len() && setting < self.header.settings.len();
        match record {
            Record::Run(run) if planned(run.device, run.setting) => insert(&mut self.runs, *run, RunRecord::key),
            Record::Alone(alone) if planned(alone.device, alone.setting) => {
                insert(&mut self.alone, *alone, AloneRecord::key)
            }
            Record::Timeline(timeline) if planned(timeline.device, timeline.setting) => {
                insert(&mut self.timelines, *timeline, TimelineRecord::key)
            }
            _ => false,
        }
    }

    /// Returns the numbers of the complete rounds. In a complete round, every setting has a run on
    /// every device. Only complete rounds are compared and averaged, so all settings have the same
    /// seeds.
    #[must_use]
    pub fn rounds(&self) -> Vec<u32> {
        let cells = self.header.devices.len() * self.header.settings.len();
        let rounds = self.runs.chunk_by(|a, b| a.run == b.run);
        rounds.filter(|round| round.len() == cells).map(|round| round[0].run).collect()
    }

    /// Returns the records of device number `device`; `None` if there is no such device.
    #[must_use]
    pub fn on(&self, device: usize) -> Option<OnDevice<'_>> {
        (device < self.header.devices.len()).then_some(OnDevice { records: self, device })
    }

    /// Returns the records of each device, in the order of [`Header::devices`].
    pub fn devices(&self) -> impl ExactSizeIterator<Item = OnDevice<'_>> {
        (0..self.header.devices.len()).map(|device| OnDevice { records: self, device })
    }
}

/// View of the records of one device.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice<'a> {
    records: &'a Records,
    device: usize,
}

impl<'a> OnDevice<'a> {
    /// Returns the records of all devices.
    #[must_use]
    pub const fn all(self) -> &'a Records {
        self.records
    }

    /// Returns the plan of the experiment: its first record.
    #[must_use]
    pub const fn header(self) -> &'a Header {
        &self.records.header
    }

    /// Returns the index of the device in [`Header::devices`].
    #[must_use]
    pub const fn number(self) -> usize {
        self.device
    }

    /// Returns the description of the device.
    #[must_use]
    pub fn device(self) -> &'a DeviceRecord {
        &self.records.header.devices[self.device]
    }

    /// Returns whether the device is real instead of modelled.
    #[must_use]
    pub fn is_measured(self) -> bool {
        self.device().measured.is_some()
    }

    /// Returns whether a user can choose a setting on this device. On a real device, this is true
    /// for every compared setting. On a model, it is true only for settings with schedulers of
    /// Linux.
    #[must_use]
    pub fn can_be_set(self, setting: usize) -> bool {
        self.is_measured() || self.header().settings[setting].setting.is_in_linux()
    }

    /// Returns the device's runs, sorted by run and setting.
    pub fn runs(self) -> impl Iterator<Item = &'a RunRecord> {
        self.records.runs.iter().filter(move |run| run.device == self.device)
    }

    /// Returns the device's runs of tasks alone, sorted by setting and task.
    #[must_use]
    pub fn alone_runs(self) -> &'a [AloneRecord] {
        let all = &self.records.alone;
        let [from, to] = [self.device, self.device + 1].map(|device| all.partition_point(|a| a.device < device));
        &all[from..to]
    }

    /// Returns the simulated time of the device's runs of tasks alone, ns in total.
    #[must_use]
    pub fn alone_ns(self) -> u64 {
        self.alone_runs().iter().map(AloneRecord::end_ns).fold(0, u64::saturating_add)
    }

    /// Returns the device's timelines, sorted by setting.
    pub fn timelines(self) -> impl Iterator<Item = &'a TimelineRecord> {
        self.records.timelines.iter().filter(move |timeline| timeline.device == self.device)
    }

    /// Returns run `run` of setting number `setting`, if it was made.
    #[must_use]
    pub fn run(self, run: u32, setting: usize) -> Option<&'a RunRecord> {
        let key = (run, self.device, setting);
        let at = self.records.runs.binary_search_by_key(&key, RunRecord::key).ok()?;
        Some(&self.records.runs[at])
    }

    /// Returns the run of task number `task` alone under setting number `setting`, if it was made.
    #[must_use]
    pub fn alone(self, setting: usize, task: usize) -> Option<&'a AloneRecord> {
        let key = (self.device, setting, task);
        let at = self.records.alone.binary_search_by_key(&key, AloneRecord::key).ok()?;
        Some(&self.records.alone[at])
    }

    /// Returns the number of planned runs of tasks alone that are missing.
    #[must_use]
    pub fn alone_missing(self) -> usize {
        let planned = self.header().alone.len() * self.header().settings.len();
        planned.saturating_sub(self.alone_runs().len())
    }

    /// Returns the runs of setting number `setting` in complete rounds, in order.
    #[must_use]
    pub fn complete_runs(self, setting: usize) -> Vec<&'a RunRecord> {
        self.records.rounds().into_iter().filter_map(|run| self.run(run, setting)).collect()
    }
}
