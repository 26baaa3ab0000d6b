//! Records: what was run and what it gave, raw. Results are computed from these and from nothing else.
//!
//! A file of records is JSON lines: the [`Header`] first, then one line per run as it finished, one per run of a
//! process alone, one timeline per setting, of every device. The lines come in the order of the plan, so the same plan
//! gives the same bytes; a file whose writing was cut short is a valid prefix.
//!
//! Format 2 holds any number of devices. Files of format 1, which held one, are read as well.

use iosched::Setting;
use iosched_disk::Fit;
use iosched_kernel::checks::Finding;
use iosched_kernel::facts::Facts;
use iosched_kernel::knobs::Inert;
use iosched_sim::{BlockLayer, Limit, Replay, RunResult, TaskResult, Timeline};
use serde::{Deserialize, Serialize};

use crate::compare::EQUAL_WITHIN_PERCENT;

/// Version of the format of records; raised when old readers would misunderstand new files.
pub const RECORDS_FORMAT: u32 = 2;

/// One line of a file of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The plan. Always the first line.
    Header(Box<Header>),
    /// One run of one setting on one device.
    Run(Box<RunRecord>),
    /// One task of the workload alone on a device.
    Alone(Box<AloneRecord>),
    /// When things happened in run 0 of one setting on one device.
    Timeline(Box<TimelineRecord>),
}

/// The plan: what the records are of, and all that is needed to make them again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`RECORDS_FORMAT`] of the writer, also where that was an earlier one.
    pub format: u32,
    /// Version of iosched that ran it.
    pub version: String,
    /// The command line that makes these records again.
    pub command: String,
    /// What was done.
    pub workload: WorkloadRecord,
    /// To what devices, in the order they were given; at least one.
    pub devices: Vec<DeviceRecord>,
    /// Under which settings, in the order they were given.
    pub settings: Vec<SettingRecord>,
    /// Number in `settings` of the one that others are compared with.
    pub baseline: usize,
    /// The experiment's seed; the runs' seeds follow from it.
    pub seed: u64,
    /// Runs planned of each setting on each device.
    pub runs: u32,
    /// How a trace is replayed.
    pub replay: Replay,
    /// The machine that was modelled.
    #[serde(rename = "host")]
    pub block_layer: BlockLayer,
    /// The machine that an application ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// What was done in this time from the start of each run does not count, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warm_up_ns: u64,
    /// When runs stop early.
    pub limit: Limit,
    /// On a real device: runs were to end once every difference was clear, or known to within so many per cent of the
    /// baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_sure_percent: Option<f64>,
    /// Differences within so many per cent of the baseline matter to nobody.
    #[serde(default = "equal_within_default", skip_serializing_if = "is_equal_within_default")]
    pub equal_within_percent: f64,
    /// The figures that something is concluded from, as goals are written; none: the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<String>,
    /// Tasks that were planned to run alone, numbers in [`RunResult::tasks`]; rising.
    pub alone: Vec<usize>,
    /// Tasks do not run alone on request, so the metric fairness is absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_fairness: bool,
}

/// What kind of workload it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadKind {
    /// A recording that was replayed.
    Trace,
    /// Synthetic tasks.
    Tasks,
    /// fio jobs.
    Jobs,
    /// A command of others.
    Command,
    /// A program that makes system calls.
    Application,
}

impl WorkloadKind {
    /// The word for so many of those that do I/O in such a workload.
    #[must_use]
    pub const fn task_word(self, count: u64) -> &'static str {
        let (one, several) = match self {
            Self::Trace => ("process", "processes"),
            Self::Tasks | Self::Application => ("task", "tasks"),
            Self::Command => ("command", "commands"),
            Self::Jobs => ("job", "jobs"),
        };
        if count == 1 { one } else { several }
    }
}

/// What is to be known of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Its name, for people.
    pub name: String,
    /// What it is.
    pub kind: WorkloadKind,
    /// FNV-1a over its content, 16 hexadecimal digits: equal for the same workload, whatever its name.
    pub fingerprint: String,
    /// Tasks or processes.
    pub tasks: u64,
    /// Requests of a trace; of tasks where all have an end.
    pub requests: Option<u64>,
    /// Reads of a trace.
    pub reads: Option<u64>,
    /// From the first to the last recorded submission, ns.
    pub span_ns: Option<u64>,
    /// Whether it runs for a given time, whatever it gets done: then how long it took says nothing, and throughput
    /// does.
    #[serde(default, skip_serializing_if = "is_not")]
    pub timed: bool,
    /// What was wrong with its file, in sentences; the first of them.
    pub warnings: Vec<String>,
    /// How many such warnings there were altogether.
    pub warnings_total: u64,
    /// What of a recording is missing, as far as that can change what is concluded; what is certain first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingRecord>,
    /// What is odd about a trace, so that the answer may be wrong, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
    /// What was assumed about a trace, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Devices that a trace was recorded on, where they are more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_devices: Option<u64>,
    /// Requests of a trace of several processes whose priority (ionice) it does not tell, where they are more than a few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_priorities: Option<u64>,
    /// Of fio jobs, what fio's JSON tells of each beside its results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobRecord>,
}

impl WorkloadRecord {
    /// Whether it is for certain not the whole recording.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.missing.iter().any(|missing| missing.certain)
    }
}

/// Something of a recording that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingRecord {
    /// A name for machines: of a gap of `iosched_trace`.
    pub kind: String,
    /// Whether it is certain; else it may be.
    pub certain: bool,
    /// What, in a sentence.
    pub problem: String,
    /// What can be done about it.
    pub remedy: String,
}

/// What is to be known of a fio job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its name.
    pub name: String,
    /// Number of its group.
    pub group: u32,
    /// Whether its group is told as one.
    pub group_reporting: bool,
    /// What it is about.
    pub description: String,
    /// Its own options as they were given.
    pub options: Vec<(String, String)>,
    /// Those it has from `[global]`.
    pub global_options: Vec<(String, String)>,
    /// I/Os it keeps under way.
    pub io_depth: u32,
    /// Percentiles that are told, per cent.
    pub percentiles: Vec<f64>,
    /// Whether of submission, completion and total latency.
    pub slat_percentiles: bool,
    /// See `slat_percentiles`.
    pub clat_percentiles: bool,
    /// See `slat_percentiles`.
    pub lat_percentiles: bool,
    /// `latency_target`, ns; 0: none.
    pub latency_target_ns: u64,
    /// `latency_window`, ns; 0: none.
    pub latency_window_ns: u64,
    /// `latency_percentile`, per cent.
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

/// What is to be known of a machine that an application ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Name or file of its profile.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// The text of the profile, if it came from a file; else `name` and [`Header::version`] tell it.
    pub profile: Option<String>,
}

/// What is to be known of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name or file of its profile.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// FNV-1a over the model and its parameters, 16 hexadecimal digits.
    pub fingerprint: String,
    /// The text of the profile, if it came from a file; else `name` and [`Header::version`] tell it.
    pub profile: Option<String>,
    /// Size, sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Commands it takes at once.
    pub depth: u32,
    /// Whether seeking costs.
    pub rotational: bool,
    /// Whether it acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// How near the model comes to the device that it was fitted to; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
    /// Of a real device, what was found there; `None` of a modelled one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRecord>,
    /// For each of [`Header::settings`], every tunable of the elevator and every attribute of the queue with the value
    /// in effect on this device.
    pub values: Vec<Vec<ValueRecord>>,
}

/// What is to be known of a real device, and of the machine it was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRecord {
    /// What was read and written: a device or a directory.
    pub target: String,
    /// The machine and its devices before the first run.
    pub facts: Facts,
    /// What was found there that figures may depend on.
    pub findings: Vec<Finding>,
    /// For each of [`Header::settings`], the knobs that do nothing.
    pub inert: Vec<Vec<Inert>>,
}

/// One setting under comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingRecord {
    /// How it is called in tables: as the user wrote it.
    pub label: String,
    /// Elevator and what was set of it.
    pub setting: Setting,
}

/// One tunable or attribute with its value in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRecord {
    /// Its name.
    pub name: String,
    /// The value in effect, in the declared unit.
    pub value: String,
    /// The declared unit, as printed; empty for a plain number.
    pub unit: String,
    /// Whether it is an attribute of the queue; else a tunable of the elevator.
    pub attribute: bool,
    /// Whether the setting names it.
    pub set: bool,
}

/// What counts as equal where a header does not say so, per cent.
#[must_use]
pub const fn equal_within_default() -> f64 {
    EQUAL_WITHIN_PERCENT
}

/// Whether a header need not say what counts as equal.
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

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Number of the device in [`Header::devices`]; not written for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Number of the setting in [`Header::settings`].
    pub setting: usize,
    /// Number of the run, from 0. Runs of one number share a seed: they are compared with each other.
    pub run: u32,
    /// The run's seed.
    pub seed: u64,
    /// On a real device: its place in the order in which runs were made, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Raw figures.
    pub result: RunResult,
}

/// One task's run without the others, with the seed of run 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AloneRecord {
    /// Number of the device in [`Header::devices`]; not written for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Number of the setting in [`Header::settings`].
    pub setting: usize,
    /// Number of the task in [`RunResult::tasks`] of the runs in company.
    pub task: usize,
    /// The run's seed.
    pub seed: u64,
    /// What the task got.
    pub result: TaskResult,
}

/// The timeline of run 0 of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// Number of the device in [`Header::devices`]; not written for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub device: usize,
    /// Number of the setting in [`Header::settings`].
    pub setting: usize,
    /// What happened when.
    pub timeline: Timeline,
}

/// All records of an experiment, as far as it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// The plan.
    pub header: Header,
    /// Runs, by run, device and setting.
    pub runs: Vec<RunRecord>,
    /// Runs of tasks alone, by device, setting and task.
    pub alone: Vec<AloneRecord>,
    /// Timelines, by device and setting.
    pub timelines: Vec<TimelineRecord>,
    /// What was wrong with the file they were read from, in sentences.
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

    /// When the task's last I/O was done, ns.
    pub(crate) fn end_ns(&self) -> u64 {
        self.result.last_completion_ns.unwrap_or(0)
    }
}

impl TimelineRecord {
    const fn key(&self) -> (usize, usize) {
        (self.device, self.setting)
    }
}

/// Puts `new` where its key belongs; `false` if there is one of that key.
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
    /// Records of a plan of which nothing was run yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, runs: Vec::new(), alone: Vec::new(), timelines: Vec::new(), warnings: Vec::new() }
    }

    /// Takes a record in. A header is not taken, nor one of a device or setting that the plan does not have, nor one
    /// that is there already; then `false`.
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

    /// Rounds that are complete: numbers of runs that every setting has on every device. Only these are compared, and
    /// only these make means, so that every figure is of the same seeds.
    #[must_use]
    pub fn rounds(&self) -> Vec<u32> {
        let cells = self.header.devices.len() * self.header.settings.len();
        let rounds = self.runs.chunk_by(|a, b| a.run == b.run);
        rounds.filter(|round| round.len() == cells).map(|round| round[0].run).collect()
    }

    /// What they say of device number `device`; `None` if there is none.
    #[must_use]
    pub fn on(&self, device: usize) -> Option<OnDevice<'_>> {
        (device < self.header.devices.len()).then_some(OnDevice { records: self, device })
    }

    /// What they say of each device, in the order of [`Header::devices`].
    pub fn devices(&self) -> impl ExactSizeIterator<Item = OnDevice<'_>> {
        (0..self.header.devices.len()).map(|device| OnDevice { records: self, device })
    }
}

/// What records say of one device.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice<'a> {
    records: &'a Records,
    device: usize,
}

impl<'a> OnDevice<'a> {
    /// The records of all devices.
    #[must_use]
    pub const fn all(self) -> &'a Records {
        self.records
    }

    /// The plan.
    #[must_use]
    pub const fn header(self) -> &'a Header {
        &self.records.header
    }

    /// Its number in [`Header::devices`].
    #[must_use]
    pub const fn number(self) -> usize {
        self.device
    }

    /// The device.
    #[must_use]
    pub fn device(self) -> &'a DeviceRecord {
        &self.records.header.devices[self.device]
    }

    /// Whether it is a real device.
    #[must_use]
    pub fn is_measured(self) -> bool {
        self.device().measured.is_some()
    }

    /// Whether a user can set a setting: any that a real device took, else those of the elevators that Linux has.
    #[must_use]
    pub fn can_be_set(self, setting: usize) -> bool {
        self.is_measured() || self.header().settings[setting].setting.is_in_linux()
    }

    /// Its runs, by run and setting.
    pub fn runs(self) -> impl Iterator<Item = &'a RunRecord> {
        self.records.runs.iter().filter(move |run| run.device == self.device)
    }

    /// Its runs of tasks alone, by setting and task.
    #[must_use]
    pub fn alone_runs(self) -> &'a [AloneRecord] {
        let all = &self.records.alone;
        let [from, to] = [self.device, self.device + 1].map(|device| all.partition_point(|a| a.device < device));
        &all[from..to]
    }

    /// Device time of its runs of tasks alone, ns.
    #[must_use]
    pub fn alone_ns(self) -> u64 {
        self.alone_runs().iter().map(AloneRecord::end_ns).fold(0, u64::saturating_add)
    }

    /// Its timelines, by setting.
    pub fn timelines(self) -> impl Iterator<Item = &'a TimelineRecord> {
        self.records.timelines.iter().filter(move |timeline| timeline.device == self.device)
    }

    /// The run `run` of setting number `setting`, if it was run.
    #[must_use]
    pub fn run(self, run: u32, setting: usize) -> Option<&'a RunRecord> {
        let key = (run, self.device, setting);
        let at = self.records.runs.binary_search_by_key(&key, RunRecord::key).ok()?;
        Some(&self.records.runs[at])
    }

    /// What task number `task` got alone under setting number `setting`, if that was run.
    #[must_use]
    pub fn alone(self, setting: usize, task: usize) -> Option<&'a AloneRecord> {
        let key = (self.device, setting, task);
        let at = self.records.alone.binary_search_by_key(&key, AloneRecord::key).ok()?;
        Some(&self.records.alone[at])
    }

    /// How many of the planned runs of tasks alone are missing.
    #[must_use]
    pub fn alone_missing(self) -> usize {
        let planned = self.header().alone.len() * self.header().settings.len();
        planned.saturating_sub(self.alone_runs().len())
    }

    /// The runs of setting number `setting` in complete rounds, in their order.
    #[must_use]
    pub fn complete_runs(self, setting: usize) -> Vec<&'a RunRecord> {
        self.records.rounds().into_iter().filter_map(|run| self.run(run, setting)).collect()
    }
}
