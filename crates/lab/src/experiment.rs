//! Plan of an experiment: the workload, devices, settings and number of runs.

use iosched::{KernelVersion, QueueConfig, RequestQueue, Setting, SettingError, Time};
use iosched_disk::Profile;
use iosched_kernel::knobs::Demand;
use iosched_numbers::SplitMix64;
use iosched_sim::{BlockLayer, Limit, Plan, Replay, SimError, check};
use iosched_trace::Gap;
use iosched_workload::{TaskSet, Trace, Workload};
use twox_hash::XxHash3_64;

use crate::cgroup::unknown_cgroup;
use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::error::LabError;
use crate::fairness::{ALONE_IOS_MIN, ALONE_TASKS_MAX};
use crate::goal::Goal;
use crate::machine::MachineProfile;
use crate::record::{
    DeviceRecord, Header, MachineRecord, MissingRecord, RECORDS_FORMAT, SettingRecord, ValueRecord, WorkloadKind,
    WorkloadRecord,
};

/// A record stores at most this number of warnings about the file of a workload.
const WARNINGS_MAX: usize = 16;

/// Workload, devices, and the settings to compare on each device. [`Experiment::new`] and
/// [`Experiment::add_device`] check that every setting is possible.
#[derive(Clone, Debug)]
pub struct Experiment {
    workload: Workload,
    devices: Vec<Tried>,
    settings: Vec<SettingRecord>,
    baseline: usize,
    /// Number of runs of each setting on each device.
    pub runs: u32,
    /// Seed of the experiment. The seed of every run follows from it.
    pub seed: u64,
    /// Largest difference from the baseline that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Metrics that conclusions use. If empty, conclusions use the usual metrics.
    pub goals: Vec<Goal>,
    /// Replay mode of a trace.
    pub replay: Replay,
    /// Block layer of the simulated machine.
    pub block_layer: BlockLayer,
    machine: Option<MachineProfile>,
    /// Warm-up, ns: time from the start of each run that does not count.
    pub warm_up_ns: u64,
    /// Limits that end a run early.
    pub limit: Limit,
    /// Whether tasks also run alone, which the metric fairness needs.
    pub fairness: bool,
    /// Command line that produces the same records again. The records store it.
    pub command: String,
}

/// A device on which settings are compared.
#[derive(Clone, Debug)]
struct Tried {
    profile: Profile,
    /// The text of the profile, if it came from a file.
    text: Option<String>,
    /// Values in effect under each setting.
    values: Vec<Vec<ValueRecord>>,
    /// For workloads on several disks: the other disks under each setting. They have the profile
    /// and the setting of the first disk.
    more_disks: Vec<Vec<(Profile, Setting)>>,
}

/// A task of the workload that runs alone.
#[derive(Clone, Debug)]
pub struct Alone {
    /// Number of the task in the whole workload.
    pub task: usize,
    /// Workload that consists of this task only.
    pub workload: Workload,
}

impl Experiment {
    /// Creates an experiment of 10 runs with seed 1 and closed-loop replay. The first setting is
    /// the baseline.
    ///
    /// # Errors
    /// There is no setting, a setting is given twice, a setting is not possible on the device, or
    /// the workload does not fit the device.
    pub fn new(workload: Workload, profile: Profile, settings: Vec<Setting>) -> Result<Self, LabError> {
        if settings.is_empty() {
            return Err(LabError::NoSettings);
        }
        let mut records: Vec<SettingRecord> = Vec::new();
        for setting in settings {
            let label = setting.to_string();
            if records.iter().any(|known| known.label == label) {
                return Err(LabError::TwiceTheSame { label });
            }
            records.push(SettingRecord { label, setting });
        }
        let mut experiment = Self {
            workload,
            devices: Vec::new(),
            settings: records,
            baseline: 0,
            runs: 10,
            seed: 1,
            equal_within_percent: EQUAL_WITHIN_PERCENT,
            goals: Vec::new(),
            replay: Replay::Closed,
            block_layer: BlockLayer::default(),
            machine: None,
            warm_up_ns: 0,
            limit: Limit::default(),
            fairness: true,
            command: String::new(),
        };
        experiment.add_device(profile)?;
        Ok(experiment)
    }

    /// Adds a device on which the settings are also compared.
    ///
    /// # Errors
    /// A device of that name exists, a setting is not possible on the device, or the workload does
    /// not fit the device.
    pub fn add_device(&mut self, profile: Profile) -> Result<(), LabError> {
        let name = profile.name();
        if self.devices.iter().any(|known| known.profile.name() == name) {
            return Err(LabError::TwiceTheSameDevice { name: name.to_owned() });
        }
        let values = self.effective(&profile)?;
        if let Workload::Jobs(jobs) = &self.workload {
            jobs.layout_on(jobs.disks(), profile.card().capacity_sectors * iosched::SECTOR_BYTES)
                .map_err(|source| LabError::Workload { device: name.to_owned(), source: Box::new(source) })?;
        }
        let more = match &self.workload {
            Workload::Application(spec) => spec.disks().saturating_sub(1) as usize,
            Workload::Jobs(jobs) => jobs.disks() - 1,
            _ => 0,
        };
        let disks: Vec<Profile> = (1..=more as u32).map(|number| profile.specimen(number)).collect();
        let others = |record: &SettingRecord| disks.iter().map(|disk| (disk.clone(), record.setting.clone())).collect();
        let more_disks = self.settings.iter().map(others).collect();
        self.devices.push(Tried { profile, text: None, values, more_disks });
        Ok(())
    }

    /// Stores the text of a device's profile in the records, for a profile that came from a file.
    ///
    /// # Panics
    /// There is no device with that index.
    pub fn keep_profile_text(&mut self, device: usize, text: String) {
        self.devices[device].text = Some(text);
    }

    /// Returns the configuration of the request queue of a device for runs under `setting`.
    #[must_use]
    pub fn queue_config(&self, profile: &Profile, setting: &Setting) -> QueueConfig {
        let block_layer = self.block_layer.under(setting);
        block_layer.queue_config(profile, self.machine.as_ref().map(|machine| &machine.machine))
    }

    /// Returns the values in effect on a device under every setting.
    fn effective(&self, profile: &Profile) -> Result<Vec<Vec<ValueRecord>>, LabError> {
        let of_setting = |record: &SettingRecord| {
            values(&record.setting, &self.queue_config(profile, &record.setting))
                .map_err(|source| LabError::Setting { device: profile.name().to_owned(), source: Box::new(source) })
        };
        self.settings.iter().map(of_setting).collect()
    }

    /// Sets the machine that an application or buffered fio jobs run on. Other workloads need none.
    ///
    /// # Errors
    /// A setting is not possible with the machine's jiffies.
    pub fn set_machine(&mut self, machine: MachineProfile) -> Result<(), LabError> {
        self.block_layer.hz = machine.machine.hz;
        let kernel = machine.machine.kernel.known().filter(|kernel| *kernel != KernelVersion::default());
        self.block_layer.kernel = self.block_layer.kernel.or(kernel);
        self.machine = Some(machine);
        self.look_again()
    }

    /// Computes the values in effect under each setting again, after a change of the block layer.
    fn look_again(&mut self) -> Result<(), LabError> {
        let values =
            self.devices.iter().map(|device| self.effective(&device.profile)).collect::<Result<Vec<_>, _>>()?;
        self.devices.iter_mut().zip(values).for_each(|(device, values)| device.values = values);
        Ok(())
    }

    /// Sets the version of Linux for settings that name no version.
    ///
    /// # Errors
    /// A setting is not possible with this version.
    pub fn set_kernel(&mut self, kernel: KernelVersion) -> Result<(), LabError> {
        self.check_kernel(kernel)?;
        self.block_layer.kernel = Some(kernel);
        self.look_again()
    }

    /// Checks that the choice of a version of Linux has an effect on at least one setting. It has
    /// no effect on schedulers that Linux has removed, because their rules come from one version.
    pub(crate) fn check_kernel(&self, kernel: KernelVersion) -> Result<(), LabError> {
        let elevators = self.settings.iter().map(|setting| setting.setting.registered().ok());
        let past: Option<Vec<_>> = elevators.map(|elevator| elevator.filter(|one| one.until.is_some())).collect();
        match past.as_deref() {
            Some([first, ..]) => Err(LabError::NoVersions {
                kernel,
                elevator: first.name.to_owned(),
                rules: first.kernels().trim_start_matches("as of ").to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Makes the setting with that label the baseline.
    ///
    /// # Errors
    /// No setting has that label.
    pub fn set_baseline(&mut self, label: &str) -> Result<(), LabError> {
        let found = self.settings.iter().position(|setting| setting.label == label);
        self.baseline = found.ok_or_else(|| LabError::UnknownBaseline {
            baseline: label.to_owned(),
            labels: self.settings.iter().map(|setting| setting.label.clone()).collect(),
        })?;
        Ok(())
    }

    /// Returns the workload.
    #[must_use]
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Returns the devices, in the order they were given.
    pub fn profiles(&self) -> impl ExactSizeIterator<Item = &Profile> {
        self.devices.iter().map(|device| &device.profile)
    }

    /// Returns the settings, in the order they were given.
    #[must_use]
    pub fn settings(&self) -> &[SettingRecord] {
        &self.settings
    }

    /// Returns the name of a setting on a device for messages: its label, with the device's name if
    /// there are several.
    ///
    /// # Panics
    /// There is no device or setting with that index.
    #[must_use]
    pub fn name(&self, device: usize, setting: usize) -> String {
        let label = &self.settings[setting].label;
        if self.devices.len() == 1 {
            label.clone()
        } else {
            format!("{label} on {}", self.devices[device].profile.name())
        }
    }

    /// Returns the seed of run `run`. It is the same for every setting and device. The seed is
    /// below 2^53, so every reader of JSON reads it exactly.
    #[must_use]
    pub fn run_seed(&self, run: u32) -> u64 {
        run_seed(self.seed, run)
    }

    /// Returns the plan of one run.
    ///
    /// # Panics
    /// There is no device or setting with that index.
    #[must_use]
    pub fn plan(&self, device: usize, setting: usize, run: u32) -> Plan<'_> {
        Plan {
            workload: &self.workload,
            profile: &self.devices[device].profile,
            scheduler: self.settings[setting].setting.clone(),
            seed: self.run_seed(run),
            replay: self.replay,
            block_layer: self.block_layer,
            warm_up_ns: self.warm_up_ns,
            limit: self.limit,
            interrupt: None,
            host: None,
            machine: self.machine.as_ref().map(|profile| &profile.machine),
            more_disks: &self.devices[device].more_disks[setting],
            company: None,
        }
    }

    /// Checks whether the workload can run under `setting` on the first device. Nothing is run.
    ///
    /// # Errors
    /// The workload cannot run under this setting.
    pub fn check(&self, setting: &Setting) -> Result<(), LabError> {
        let more_disks = self.more_disks(setting);
        let plan = Plan { scheduler: setting.clone(), more_disks: &more_disks, ..self.plan(0, 0, 0) };
        check_plan(&plan, || setting.to_string())
    }

    /// Returns the other disks of the workload on the first device, all under `setting`.
    #[must_use]
    pub fn more_disks(&self, setting: &Setting) -> Vec<(Profile, Setting)> {
        self.devices[0].more_disks[0].iter().map(|(profile, _)| (profile.clone(), setting.clone())).collect()
    }

    /// Returns the kind of the workload.
    #[must_use]
    pub fn workload_kind(&self) -> WorkloadKind {
        match &self.workload {
            Workload::Tasks(_) => WorkloadKind::Tasks,
            Workload::Trace(_) => WorkloadKind::Trace,
            Workload::Jobs(_) => WorkloadKind::Jobs,
            Workload::Application(_) => WorkloadKind::Application,
            Workload::Several(_) => WorkloadKind::Several,
        }
    }

    /// Returns the indices of the tasks that also run alone, in ascending order. These are the
    /// busiest tasks with at least [`ALONE_IOS_MIN`] I/Os, [`ALONE_TASKS_MAX`] at most. The list is
    /// empty if it would have fewer than two tasks, or if [`Self::fairness`] is false.
    #[must_use]
    pub fn alone_tasks(&self) -> Vec<usize> {
        if !self.fairness {
            return Vec::new();
        }
        let ios: Vec<u64> = match &self.workload {
            Workload::Trace(trace) => trace.processes().iter().map(|process| process.requests).collect(),
            Workload::Tasks(set) => task_ios(set),
            // The kernel writes back the buffered writes of all jobs together, so the writes of a
            // single job are not known.
            Workload::Jobs(jobs) if self.machine.is_some() && jobs.are_buffered() => Vec::new(),
            // The device may determine how many I/Os a job makes.
            Workload::Jobs(jobs) => vec![u64::MAX; jobs.count()],
            // Tasks of an application depend on each other, so none can run alone.
            Workload::Application(_) => Vec::new(),
            // The units are known, so a separate plan can run each unit alone.
            Workload::Several(_) => Vec::new(),
        };
        let mut tasks: Vec<usize> = (0..ios.len()).filter(|&task| ios[task] >= ALONE_IOS_MIN).collect();
        tasks.sort_by_key(|&task| (std::cmp::Reverse(ios[task]), task));
        tasks.truncate(ALONE_TASKS_MAX);
        tasks.sort_unstable();
        if tasks.len() < 2 { Vec::new() } else { tasks }
    }

    /// Returns task number `task` as a separate workload; `None` if there is no such task.
    #[must_use]
    pub fn alone(&self, task: usize) -> Option<Alone> {
        let workload = self.workload.only(task)?;
        Some(Alone { task, workload })
    }

    /// Returns the first record: the plan.
    #[must_use]
    pub fn header(&self) -> Header {
        let mut workload = workload_record(&self.workload);
        workload.timed |= self.limit.time_ns.is_some() || self.workload.limit_ns().is_some();
        Header {
            format: RECORDS_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.clone(),
            workload,
            devices: self.devices.iter().map(device_record).collect(),
            settings: self.settings.clone(),
            baseline: self.baseline,
            seed: self.seed,
            runs: self.runs,
            replay: self.replay,
            block_layer: self.block_layer,
            machine: self.machine.as_ref().map(machine_record),
            warm_up_ns: self.warm_up_ns,
            limit: self.limit,
            until_sure_percent: None,
            equal_within_percent: self.equal_within_percent,
            goals: self.goals.iter().map(ToString::to_string).collect(),
            alone: self.alone_tasks(),
            no_fairness: !self.fairness,
        }
    }
}

/// Returns the seed of run number `run` under the seed `seed`. The result is below 2^53.
pub(crate) fn run_seed(seed: u64, run: u32) -> u64 {
    SplitMix64::entity(seed, run.into()).next_u64() >> 11
}

fn machine_record(profile: &MachineProfile) -> MachineRecord {
    MachineRecord { name: profile.name.clone(), about: profile.machine.about.clone(), profile: profile.text.clone() }
}

fn device_record(device: &Tried) -> DeviceRecord {
    let profile = &device.profile;
    let card = profile.card();
    DeviceRecord {
        name: profile.name().to_owned(),
        about: profile.about().to_owned(),
        fingerprint: fingerprint(&format!("{:?}", profile.model())),
        profile: device.text.clone(),
        capacity_sectors: card.capacity_sectors,
        depth: card.depth,
        rotational: card.rotational,
        write_cache: card.write_cache,
        fit: profile.fit(),
        measured: None,
        values: device.values.clone(),
    }
}

/// Returns the number of I/Os of each task, as far as it is known before the run. A task without an
/// end gets `u64::MAX`.
fn task_ios(set: &TaskSet) -> Vec<u64> {
    let ios = |task: &iosched_workload::Task| {
        let ios_of_program = if task.has_program() { task.total().unwrap_or(u64::MAX) } else { 0 };
        ios_of_program.saturating_add(set.arrivals.iter().filter(|arrival| arrival.1 == task.pid).count() as u64)
    };
    set.tasks.iter().map(ios).collect()
}

/// Returns all tunables and attributes with their values in effect.
fn values(setting: &Setting, config: &QueueConfig) -> Result<Vec<ValueRecord>, SettingError> {
    let queue = setting.build(Time::ZERO, config)?;
    let registered = setting.registered()?;
    let is_set = |name: &str| setting.assignments().any(|assignment| assignment.name() == name);
    let record = |spec: &iosched::Spec, value: String, attribute| ValueRecord {
        name: spec.name.to_owned(),
        value,
        unit: spec.unit.to_string(),
        attribute,
        set: is_set(spec.name),
    };
    let mut values = Vec::new();
    for spec in (registered.tunables)() {
        if let Ok(value) = queue.tunable(spec.name) {
            values.push(record(spec, spec.number(value).to_string(), false));
        }
    }
    for spec in RequestQueue::attribute_specs() {
        if let Ok(value) = queue.attribute(spec.name) {
            values.push(record(spec, value, true));
        }
    }
    Ok(values)
}

/// Returns the record of a workload.
#[must_use]
pub fn workload_record(workload: &Workload) -> WorkloadRecord {
    let demand = Demand::of(workload);
    let record = match workload {
        Workload::Trace(trace) => trace_record(trace),
        Workload::Jobs(jobs) => {
            let fingerprint = fingerprint(&format!("{:?}", jobs.file().jobs));
            let name = jobs.file().name.clone();
            WorkloadRecord {
                timed: jobs.iter().all(|(_, job)| job.time_based),
                several_disks: Some(jobs.disks() as u64).filter(|&disks| disks > 1),
                jobs: jobs.iter().map(|(_, job)| job.into()).collect(),
                ..WorkloadRecord::new(name, WorkloadKind::Jobs, fingerprint, jobs.count() as u64)
            }
        }
        Workload::Application(spec) => {
            let (name, tasks) = (spec.name().to_owned(), spec.task_count() as u64);
            WorkloadRecord {
                timed: spec.is_timed(),
                several_disks: Some(u64::from(spec.disks())).filter(|&disks| disks > 1),
                ..WorkloadRecord::new(name, WorkloadKind::Application, fingerprint(spec.line()), tasks)
            }
        }
        Workload::Several(several) => {
            let parts = several.parts.iter();
            let prints = parts.map(|part| format!("{}={}", part.name, workload_record(&part.workload).fingerprint));
            let fingerprint = fingerprint(&prints.collect::<Vec<_>>().join(" "));
            let tasks = several.task_count() as u64;
            WorkloadRecord::new(several.name.clone(), WorkloadKind::Several, fingerprint, tasks)
        }
        Workload::Tasks(set) => {
            let ios = task_ios(set).into_iter().try_fold(0u64, |sum, ios| (ios < u64::MAX).then(|| sum + ios));
            let (fingerprint, tasks) = (fingerprint(&format!("{set:?}")), set.tasks.len() as u64);
            WorkloadRecord {
                requests: ios.filter(|_| set.end_ns.is_none()),
                timed: set.end_ns.is_some() && ios.is_none(),
                ..WorkloadRecord::new(set.name.clone(), WorkloadKind::Tasks, fingerprint, tasks)
            }
        }
    };
    WorkloadRecord { different_classes: demand.classes, different_levels: demand.levels, ..record }
}

/// Returns the record of an external command.
#[must_use]
pub fn command_record(words: &[String]) -> WorkloadRecord {
    let name = words.join(" ");
    let fingerprint = fingerprint(&name);
    WorkloadRecord::new(name, WorkloadKind::Command, fingerprint, 1)
}

/// Returns the fingerprint of a text.
fn fingerprint(text: &str) -> String {
    in_hex(XxHash3_64::oneshot(text.as_bytes()))
}

fn in_hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn missing_record(gap: &Gap) -> MissingRecord {
    MissingRecord {
        kind: gap.kind().to_owned(),
        certain: gap.is_certain(),
        problem: gap.to_string(),
        remedy: gap.remedy().to_owned(),
    }
}

fn trace_record(trace: &Trace) -> WorkloadRecord {
    let contents = trace.contents();
    let warnings = trace.warnings();
    let oddities = |assumed| {
        let oddities = trace.oddities().iter().filter(|oddity| oddity.is_assumption() == assumed);
        oddities.map(ToString::to_string).collect()
    };
    let tasks = trace.processes().len() as u64;
    WorkloadRecord {
        requests: Some(trace.len() as u64),
        reads: Some(contents.reads),
        span_ns: Some(trace.span_ns()),
        warnings: warnings.kept().iter().take(WARNINGS_MAX).map(ToString::to_string).collect(),
        warnings_total: warnings.total(),
        missing: trace.completeness().gaps().iter().filter(|gap| gap.matters()).map(missing_record).collect(),
        unknown_priorities: unknown_priorities(trace),
        oddities: oddities(false),
        assumed: oddities(true),
        recorded_devices: Some(trace.devices() as u64).filter(|&devices| devices > 1),
        ..WorkloadRecord::new(trace.name().to_owned(), WorkloadKind::Trace, in_hex(contents.hash), tasks)
    }
}

/// Share of a trace's requests up to which unknown priorities do not matter.
const PRIORITIES_SHARE: f64 = 0.01;

/// Returns the number of requests without a recorded priority, if this number may matter.
/// Priorities have no effect if there is only one process.
fn unknown_priorities(trace: &Trace) -> Option<u64> {
    let (unknown, all) = (trace.unknown_ioprios(), trace.len());
    (trace.processes().len() > 1 && unknown as f64 > PRIORITIES_SHARE * all as f64).then_some(unknown)
}

/// Checks whether a plan can run. `name` is the name of its setting.
pub(crate) fn check_plan(plan: &Plan<'_>, name: impl FnOnce() -> String) -> Result<(), LabError> {
    check(plan).map_err(|error| match error {
        SimError::NoCgroup { file, cgroup, known } => {
            LabError::NoCgroup { setting: name(), problem: unknown_cgroup(&file, &cgroup, &known, plan.workload) }
        }
        source => LabError::Run { name: name(), run: 0, seed: plan.seed, source: Box::new(source) },
    })
}
