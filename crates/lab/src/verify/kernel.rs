//! Bench on a real device, under the schedulers of the kernel.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iosched::Setting;
use iosched::controllers::{self, NamedWrite};
use iosched_kernel::cgroup::{CGROUP, OwnCgroup, Tree};
use iosched_kernel::checks::{self, Finding, Severity, Wanted};
use iosched_kernel::execute::{self, CgroupsOfRun, ExecuteError, ExecuteOptions, Prepared};
use iosched_kernel::facts::Facts;
use iosched_kernel::knobs::{Demand, Supply, inert};
use iosched_kernel::settings::{Change, Recorded};
use iosched_kernel::target::Target;
use iosched_kernel::{BlockDevice, Session, StateDirectory, command, quiet};
use iosched_sim::{Limit, Replay, RunResult};
use iosched_workload::Workload;

use super::{Bench, VerifyError};
use crate::cgroup::unknown_cgroup;
use crate::foreign::Benchmark;
use crate::record::{DeviceRecord, MeasuredRecord, SettingRecord, ValueRecord};
use crate::request::settings_meant;

/// Time for which iosched observes the load of other programs before the first run.
const WATCH: Duration = Duration::from_millis(1000);
/// Longest wait before a run for I/O that is in flight.
const QUIET_MAX: Duration = Duration::from_secs(10);
/// Number of lines from a failed command's standard error that the message shows.
const ERROR_LINES: usize = 5;

/// Work that a run does on a real device.
#[derive(Clone, Debug)]
pub enum Work {
    /// A workload that iosched runs.
    Workload(Workload),
    /// An external command.
    Command(ForeignCommand),
}

/// An external command. It is timed and, if it is a known benchmark, its output is parsed.
#[derive(Clone, Debug)]
pub struct ForeignCommand {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Shell command to run before each run, not timed.
    pub prepare: Option<String>,
}

/// Length of a run and of its warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Warm-up, ns: time from the start that does not count.
    pub warm_up_ns: u64,
    /// Time after the warm-up in which a run submits I/O, ns. If `None`, the workload decides.
    pub run_for_ns: Option<u64>,
}

impl Limits {
    /// Returns the limit of a run from its start, as records contain it.
    #[must_use]
    pub fn of_runs(&self) -> Limit {
        Limit { time_ns: self.run_for_ns.map(|ns| ns.saturating_add(self.warm_up_ns)), ..Limit::default() }
    }
}

/// A bench on a real device. See the module page.
#[derive(Debug)]
pub struct KernelBench<'t> {
    target: &'t Target,
    /// Session that sets the scheduler of the disk; `None` if the settings change nothing on the
    /// disk.
    session: Option<Session>,
    /// Present settings of the disk, if there is no session; `None` if they cannot be read.
    watched: Option<Recorded>,
    /// Cgroup that contains the workload's cgroups; `None` if the workload has no cgroups, or if
    /// the machine has no cgroup v2.
    cgroup: Option<OwnCgroup>,
    /// Values for these cgroups under the present setting.
    writes: Vec<NamedWrite>,
    disk: BlockDevice,
    work: &'t Work,
    /// Workload on the target; `None` before the first run.
    prepared: Option<Prepared<'t>>,
    replay: Replay,
    limits: Limits,
    facts: Facts,
    findings: Vec<Finding>,
    demand: Demand,
    settings: Vec<SettingRecord>,
}

impl<'t> KernelBench<'t> {
    /// Returns the findings about the device and the machine before the first run, among them the
    /// load of other programs.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Creates a bench for `settings` on `target`. It records the present settings in `state`. It
    /// changes no setting yet.
    ///
    /// # Errors
    /// The target is not on a block device of this machine, a scheduler is missing, or settings
    /// cannot be changed.
    pub fn new(
        target: &'t Target,
        state: &StateDirectory,
        work: &'t Work,
        settings: &[SettingRecord],
        replay: Replay,
        limits: Limits,
    ) -> Result<Self, VerifyError> {
        let below = target.block_device().cloned();
        let Some(device) = below else {
            let problem = format!(
                "{target}: this path is not on a block device of this machine, so there is no scheduler to set"
            );
            return Err(VerifyError::Run { problem });
        };
        let demand = match work {
            Work::Workload(workload) => Demand::of(workload),
            Work::Command(_) => Demand::UNKNOWN,
        };
        let wanted = Wanted {
            schedulers: settings
                .iter()
                .filter(|record| !record.setting.is_present())
                .map(|record| record.setting.name().to_owned())
                .collect(),
            buffered: demand.buffered_reads,
            io_uring: matches!(work, Work::Workload(_)) && demand.outstanding_max.is_none_or(|most| most > 1),
            weights: demand.weights,
            classes: demand.classes,
            outstanding_max: demand.outstanding_max,
        };
        let wanted_cgroups = wanted_cgroups(work, settings)?;
        let changes = settings.iter().any(|record| record.setting != Setting::present());
        let failed = |error: iosched_kernel::SettingsError| VerifyError::Run { problem: error.to_string() };
        let session = changes.then(|| Session::begin(&device, state)).transpose().map_err(failed)?;
        let disk = session.as_ref().map_or_else(|| device.disk(), |session| session.device().clone());
        let watched = if session.is_none() { Recorded::of(&disk).ok() } else { None };
        let mut findings = checks::check(&disk, &wanted);
        let obstacle = findings.iter().find(|finding| {
            finding.severity() == Severity::Obstacle && !matches!(finding, Finding::MissingScheduler { .. })
        });
        if let Some(obstacle) = obstacle {
            return Err(VerifyError::Run { problem: with_remedy(obstacle) });
        }
        // If a scheduler is missing, the kernel may load its module when iosched sets the
        // scheduler. If this fails, setting the scheduler returns an error.
        findings.retain(|finding| finding.severity() != Severity::Obstacle);
        let cgroup = wanted_cgroups.map(|wanted| wanted.make(&disk, state)).transpose()?.flatten();
        findings.extend(checks::other_load(&disk, WATCH));
        let facts = Facts::of(&device);
        let (prepared, settings) = (None, settings.to_vec());
        let writes = Vec::new();
        Ok(Self {
            target,
            session,
            watched,
            cgroup,
            writes,
            disk,
            work,
            prepared,
            replay,
            limits,
            facts,
            findings,
            demand,
            settings,
        })
    }

    /// Returns the writable attributes with their present values.
    fn values(&self, setting: &Setting) -> Vec<ValueRecord> {
        let attributes = self.disk.attributes().unwrap_or_default().into_iter();
        let value = |attribute: iosched_kernel::attribute::Attribute| {
            let name = attribute.name.strip_prefix("iosched/").unwrap_or(&attribute.name).to_owned();
            let set = setting
                .assignments()
                .any(|assignment| assignment.name() == name || assignment.name() == attribute.name);
            let unit = attribute.unit().unwrap_or_default();
            let is_attribute = !attribute.is_tunable();
            ValueRecord { name, value: attribute.value, unit, attribute: is_attribute, set }
        };
        let of_cgroups =
            setting.assignments().filter(|assignment| controllers::is_file(assignment.name())).map(|assignment| {
                ValueRecord {
                    name: assignment.name().to_owned(),
                    value: assignment.text(),
                    unit: String::new(),
                    attribute: true,
                    set: true,
                }
            });
        attributes.filter(|attribute| attribute.is_writable).map(value).chain(of_cgroups).collect()
    }

    fn run_workload(
        &mut self,
        workload: &'t Workload,
        seed: u64,
        interrupt: &AtomicBool,
    ) -> Result<Option<RunResult>, VerifyError> {
        let of_run = |beside| CgroupsOfRun { beside, device: &self.disk, writes: &self.writes };
        let options = ExecuteOptions {
            cgroups: self.cgroup.as_ref().map(of_run),
            seed,
            replay: self.replay,
            warm_up_ns: self.limits.warm_up_ns,
            run_for_ns: self.limits.run_for_ns,
            drop_caches: quiet::may_drop_caches(),
            interrupt: Some(interrupt),
        };
        let mut run = || {
            if self.prepared.is_none() {
                self.prepared = Some(execute::prepare(workload, self.target, Some(interrupt))?);
            }
            self.prepared.as_ref().map(|prepared| prepared.run(&options)).transpose()
        };
        match run() {
            Err(ExecuteError::Interrupted { .. }) => Ok(None),
            finished => finished.map_err(|error| VerifyError::Execute(Box::new(error))),
        }
    }

    fn run_command(&self, command: &ForeignCommand, interrupt: &AtomicBool) -> Result<Option<RunResult>, VerifyError> {
        if let Some(script) = &command.prepare {
            let words = ["sh".to_owned(), "-c".to_owned(), script.clone()];
            if self.finished(&words, interrupt)?.is_none() {
                return Ok(None);
            }
            quiet::settle(&self.disk, QUIET_MAX, interrupt);
            if interrupt.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        // Only root can drop caches. If this process is not root, the command runs with the present
        // caches.
        let _ = quiet::drop_caches();
        let benchmark = Benchmark::of(&command.words);
        let mut words = command.words.clone();
        words.extend(benchmark.and_then(|benchmark| benchmark.asks_for(&command.words)).map(str::to_owned));
        let before = self.disk.stat();
        let Some(finished) = self.finished(&words, interrupt)? else { return Ok(None) };
        let mut result = RunResult { finished_ns: finished.wall_ns, ..RunResult::default() };
        match (before, self.disk.stat()) {
            (Some(before), Some(after)) => execute::add_stat(&mut result, &after.since(&before)),
            _ => result.device_unwatched = true,
        }
        let report = benchmark.map(|benchmark| benchmark.figures(&finished.output, &finished.errors));
        result.app = report.filter(|report| !report.figures.is_empty());
        Ok(Some(result))
    }

    /// Runs a command to its end. A command that fails is an error.
    fn finished(&self, words: &[String], interrupt: &AtomicBool) -> Result<Option<command::Finished>, VerifyError> {
        let line = words.join(" ");
        let Some((program, arguments)) = words.split_first() else { return Ok(None) };
        let mut process = Command::new(program);
        process.args(arguments).env("IOSCHED_TARGET", self.target.to_string());
        let failed = |problem: String| VerifyError::Run { problem: format!("{line}: {problem}") };
        let finished = command::run(process, interrupt).map_err(|error| failed(error.to_string()))?;
        match finished {
            Some(finished) if !finished.status.success() => {
                let last_lines: Vec<&str> = finished.errors.lines().rev().take(ERROR_LINES).collect();
                let last_lines: Vec<&str> = last_lines.into_iter().rev().collect();
                Err(failed(format!("{}\n{}", finished.status, last_lines.join("\n"))))
            }
            finished => Ok(finished),
        }
    }
}

/// Returns the values of a setting for the workload's cgroups.
fn writes_of(setting: &Setting) -> Result<Vec<NamedWrite>, VerifyError> {
    let mut writes = Vec::new();
    for assignment in setting.assignments().filter(|assignment| controllers::is_file(assignment.name())) {
        let wrong = |problem: String| VerifyError::Setting { setting: setting.to_string(), problem };
        writes.extend(
            NamedWrite::parse(assignment.name(), &assignment.text()).map_err(|error| wrong(error.to_string()))?,
        );
    }
    // Values of the device are set with the scheduler.
    writes.retain(|write| !write.is_of_device());
    Ok(writes)
}

/// Cgroups of a workload, and the files that settings need in them.
struct WantedCgroups {
    /// Label of the first setting that names files of controllers.
    label: Option<String>,
    files: BTreeSet<String>,
    /// Files that belong to the device.
    of_device: BTreeSet<String>,
    of_workload: bool,
}

/// Returns the cgroups that the comparison needs. Returns an error for an impossible setting,
/// before any setting is changed.
fn wanted_cgroups(work: &Work, settings: &[SettingRecord]) -> Result<Option<WantedCgroups>, VerifyError> {
    let names = match work {
        Work::Workload(workload) => execute::cgroups(workload),
        Work::Command(_) => Vec::new(),
    };
    let mut wanted = WantedCgroups {
        label: None,
        files: BTreeSet::new(),
        of_device: BTreeSet::new(),
        of_workload: !names.is_empty(),
    };
    for SettingRecord { setting, label } in settings {
        for assignment in setting.assignments().filter(|assignment| controllers::is_file(assignment.name())) {
            wanted.label.get_or_insert_with(|| label.clone());
            if NamedWrite::parse(assignment.name(), &assignment.text())
                .is_ok_and(|all| all.iter().all(NamedWrite::is_of_device))
            {
                wanted.of_device.insert(format!("{CGROUP}{}", assignment.name()));
            }
        }
        for NamedWrite { cgroup, file, .. } in writes_of(setting)? {
            let problem = match work {
                Work::Command(_) => {
                    format!(
                        "{file} needs cgroups, and iosched makes cgroups only for a workload, not for \
                         a command of yours"
                    )
                }
                Work::Workload(workload) if !names.contains(&cgroup) => {
                    unknown_cgroup(&file, &cgroup, &names, workload)
                }
                Work::Workload(_) => {
                    wanted.files.insert(file);
                    continue;
                }
            };
            return Err(VerifyError::Setting { setting: label.clone(), problem });
        }
    }
    Ok((wanted.of_workload || wanted.label.is_some()).then_some(wanted))
}

impl WantedCgroups {
    /// Creates the cgroup that will contain the workload's cgroups. If this is not possible,
    /// returns `None`, unless a setting needs the cgroup.
    fn make(self, disk: &BlockDevice, state: &StateDirectory) -> Result<Option<OwnCgroup>, VerifyError> {
        let tree = Tree::of(disk.roots()).map_err(|error| error.to_string());
        let created = tree.and_then(|tree| {
            for name in &self.of_device {
                disk.attribute(name).map_err(|error| error.to_string())?;
            }
            let cgroup = self.of_workload.then(|| OwnCgroup::create(&tree, state).map_err(|error| error.to_string()));
            let cgroup = cgroup.transpose()?;
            cgroup.iter().try_for_each(|cgroup| cgroup.has(self.files.iter().map(String::as_str)))?;
            Ok(cgroup)
        });
        match (created, self.label) {
            (Ok(created), _) => Ok(created),
            (Err(problem), Some(setting)) => Err(VerifyError::Setting { setting, problem }),
            (Err(_), None) => Ok(None),
        }
    }
}

/// Returns a finding with its remedy.
fn with_remedy(finding: &Finding) -> String {
    finding.remedy().map_or_else(|| finding.to_string(), |remedy| format!("{finding}; {remedy}"))
}

/// Returns a setting of the kernel with its label.
#[must_use]
pub fn for_records(setting: Setting) -> SettingRecord {
    SettingRecord { label: setting.to_string(), setting }
}

impl Bench for KernelBench<'_> {
    fn device(&self) -> DeviceRecord {
        let card = &self.facts.devices[0];
        let depth = card.driver_depth.unwrap_or(0);
        let machine = &self.facts.machine;
        let present = match &self.session {
            Some(session) => session.recorded().scheduler.clone(),
            None => self.disk.scheduler().unwrap_or_default(),
        };
        let inert_of = |record: &SettingRecord| {
            let scheduler = if record.setting.is_present() { &present } else { record.setting.name() };
            let supply = Supply { scheduler: scheduler.to_owned(), driver_depth: self.disk.driver_takes() };
            inert(&record.setting, &supply, &self.demand)
        };
        let target = self.target.to_string();
        DeviceRecord {
            name: target.clone(),
            about: format!("{}: {}; Linux {}, {} CPUs", self.disk.name(), card.made_of, machine.kernel, machine.cpus),
            fingerprint: String::new(),
            profile: None,
            capacity_sectors: card.size_bytes / iosched::SECTOR_BYTES,
            depth,
            rotational: card.is_rotational,
            write_cache: card.has_write_cache.unwrap_or(false),
            fit: None,
            measured: Some(MeasuredRecord {
                target,
                facts: self.facts.clone(),
                findings: self.findings.clone(),
                inert: self.settings.iter().map(inert_of).collect(),
            }),
            values: Vec::new(),
        }
    }

    fn set(&mut self, setting: &Setting) -> Result<Vec<ValueRecord>, VerifyError> {
        self.writes = writes_of(setting)?;
        if let Some(session) = &mut self.session {
            session.apply(setting).map_err(|error| VerifyError::Setting {
                setting: setting.to_string(),
                problem: format!("{error}{}", settings_meant(&error)),
            })?;
        }
        Ok(self.values(setting))
    }

    fn run(&mut self, seed: u64, interrupt: &AtomicBool) -> Result<Option<RunResult>, VerifyError> {
        quiet::settle(&self.disk, QUIET_MAX, interrupt);
        if interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.work {
            Work::Workload(workload) => self.run_workload(workload, seed, interrupt),
            Work::Command(command) => self.run_command(command, interrupt),
        }
    }

    fn foreign(&self) -> Vec<Change> {
        match (&self.session, &self.watched) {
            (Some(session), _) => session.foreign(),
            (None, Some(watched)) => watched.changes(&self.disk),
            (None, None) => Vec::new(),
        }
    }

    fn finish(&mut self) -> Result<Vec<Change>, VerifyError> {
        let mut records = Vec::new();
        let removed = self.cgroup.take().map_or(Ok(()), OwnCgroup::remove);
        if let Some(session) = self.session.take() {
            let left = |error: iosched_kernel::SettingsError| VerifyError::Left { problem: error.to_string() };
            records = session.end().map_err(left)?.left;
        }
        let left =
            |error| format!("{error}; the cgroup is in use; when no process uses the cgroup, run iosched restore");
        removed.map_err(|error| VerifyError::Left { problem: left(error) })?;
        // This step comes after the settings are restored, because it can fail.
        let finished = self.prepared.take().map_or(Ok(()), Prepared::finish);
        finished.map_err(|error| VerifyError::Execute(Box::new(error)))?;
        Ok(records)
    }
}
