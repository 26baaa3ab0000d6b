//! Several workloads in one run. Each event belongs to one part of the run. A part counts its tasks
//! from 0.

use std::collections::BTreeMap;

use iosched::{Cgroup, CgroupId, Driver, IoClass, IoPriority, SECTOR_BYTES};
use iosched_disk::{AnyDevice, Device};
use iosched_numbers::SplitMix64;
use iosched_workload::outcome::{Note, RunResult};
use iosched_workload::{PART_SEPARATOR, Replay, Several, TaskSet, TimesByProcess, Trace, Workload, fio};

use super::closed::Closed;
use super::core::Core;
use super::drive::{Source, drive_one};
use super::jobs::{HostState, Jobs};
use super::open::{self, Open};
use super::tasks::Tasks;
use super::{Machine, create_cgroups, jobs, tasks};
use crate::observer::Observer;
use crate::plan::{Plan, SimError};

/// The cgroup that contains the tasks and cgroups of one workload.
pub(super) struct Home {
    /// The cgroup.
    pub(super) id: CgroupId,
    /// Name of the part, empty without parts.
    part: String,
}

impl Home {
    /// The root, for a workload without parts.
    pub(super) const ROOT: Self = Self { id: CgroupId::ROOT, part: String::new() };

    /// Returns the name of a cgroup of the workload.
    pub(super) fn name(&self, name: &str) -> String {
        if self.part.is_empty() { name.to_owned() } else { format!("{}{PART_SEPARATOR}{name}", self.part) }
    }
}

/// Creates the cgroups of all parts, and their parents.
fn homes(driver: &mut Driver, several: &Several) -> Result<Vec<Home>, SimError> {
    let mut ids: BTreeMap<String, CgroupId> = BTreeMap::new();
    let mut homes = Vec::with_capacity(several.parts.len());
    for part in &several.parts {
        let mut id = CgroupId::ROOT;
        let mut path = String::new();
        for step in part.cgroup.split('/').filter(|step| !step.is_empty()) {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(step);
            id = match ids.get(&path) {
                Some(&known) => known,
                None => {
                    let owner = several.parts.iter().find(|part| part.cgroup.trim_matches('/') == path);
                    let name = owner.map_or(&path, |owner| &owner.name).clone();
                    let weight = owner.and_then(|owner| owner.weight);
                    let new = driver.create_cgroup(Cgroup { name, parent: Some(id), weight, leaf_weight: None })?;
                    ids.insert(path.clone(), new);
                    new
                }
            };
        }
        homes.push(Home { id, part: part.name.clone() });
    }
    Ok(homes)
}

/// Checks a workload of several units without running it.
pub(super) fn check(plan: &Plan<'_>, driver: &mut Driver, several: &Several) -> Result<(), SimError> {
    let disk_bytes = plan.profile.card().capacity_sectors * SECTOR_BYTES;
    let homes = homes(driver, several)?;
    for (part, home) in several.parts.iter().zip(&homes) {
        match &part.workload {
            Workload::Tasks(set) => drop(tasks::create_cgroups(driver, set, home)?),
            Workload::Trace(trace) => drop(create_cgroups(driver, trace, home)?),
            Workload::Jobs(set) => {
                set.layout(disk_bytes)?;
                jobs::create_cgroups(driver, set, home)?;
            }
            Workload::Application(_) | Workload::Several(_) => return Err(refused(&part.name, &part.workload)),
        }
    }
    Ok(())
}

/// Returns the error of a workload that cannot be a part.
fn refused(part: &str, workload: &Workload) -> SimError {
    let problem = if matches!(workload, Workload::Application(_)) {
        "in simulation, a program cannot run together with other workloads; record a trace of the program, or \
         describe its I/O as a fio job"
    } else {
        "this workload consists of several workloads; name each of these workloads separately"
    };
    SimError::Part { part: part.to_owned(), problem }
}

/// Data of a part that must live as long as the run.
enum Ground<'a> {
    Tasks(TaskSet),
    Trace { trace: &'a Trace, seed: u64, replay: Replay, times: Option<TimesByProcess<'a>> },
    Jobs { set: &'a fio::Jobs, layout: fio::Layout, seed: u64 },
}

/// Returns the seed of a part.
fn part_seed(plan: &Plan<'_>, part: usize) -> u64 {
    SplitMix64::entity(plan.seed, 0x5EED_0000 + part as u64).next_u64()
}

/// Returns a task set with random positions that depend on the seed of the run.
fn seeded(set: &TaskSet, seed: u64) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        let stream = task.seed.unwrap_or_else(|| task.pid.into());
        task.seed = Some(SplitMix64::entity(seed, stream).next_u64());
    }
    set
}

/// Runs several workloads on one disk.
pub(super) fn run<O: Observer>(
    plan: &Plan<'_>,
    machine: Machine<'_, AnyDevice>,
    several: &Several,
    observer: O,
) -> Result<RunResult, SimError> {
    let Machine { mut driver, device, plug_from, warm_up_ns, limit, interrupt, .. } = machine;
    let capacity_sectors = device.card().capacity_sectors;
    let homes = homes(&mut driver, several)?;
    let mut fitted = Vec::with_capacity(several.parts.len());
    let mut notes = Vec::new();
    for part in &several.parts {
        let Workload::Trace(trace) = &part.workload else {
            fitted.push(None);
            continue;
        };
        let (smaller, fit) = trace.fitted(capacity_sectors);
        trace.check()?;
        notes.extend(Note::of_fit(fit, trace.end_sector(), capacity_sectors));
        fitted.push(smaller);
    }
    let mut grounds = Vec::with_capacity(several.parts.len());
    for (number, (part, fitted)) in several.parts.iter().zip(&fitted).enumerate() {
        let seed = part_seed(plan, number);
        grounds.push(match &part.workload {
            Workload::Tasks(set) => Ground::Tasks(seeded(set, seed)),
            Workload::Trace(trace) => {
                let trace: &Trace = fitted.as_deref().unwrap_or(trace);
                let replay = part.replay.unwrap_or(plan.replay);
                let times = match replay {
                    Replay::Open { speed } => Some(TimesByProcess::new(trace, speed, open::draws(seed))),
                    Replay::Closed => None,
                };
                Ground::Trace { trace, seed, replay, times }
            }
            Workload::Jobs(set) => {
                let layout = set.layout(capacity_sectors * SECTOR_BYTES)?;
                Ground::Jobs { set, layout, seed }
            }
            Workload::Application(_) | Workload::Several(_) => return Err(refused(&part.name, &part.workload)),
        });
    }
    let scheduler = driver.queue().scheduler();
    let host = plan.host.or_else(|| plan.profile.host());
    let mut core = Core::new(driver, device, observer);
    core.tally.warm_up_ns = warm_up_ns;
    core.notes.extend(notes);
    let mut parts = Vec::with_capacity(grounds.len());
    for ((part, home), ground) in several.parts.iter().zip(&homes).zip(&grounds) {
        let first_task = parts.iter().map(|part: &Member<'_>| part.tasks).sum();
        let mut added = 0;
        let mut add = |core: &mut Core<AnyDevice, O>, name: &str, ioprio: IoPriority, cgroup| {
            let name = format!("{}{PART_SEPARATOR}{name}", part.name);
            let given = part.priority.filter(|_| ioprio.class() == IoClass::None);
            core.add_task(first_task + added + 1, &name, given.unwrap_or(ioprio), cgroup);
            if given.is_some() {
                core.keep_ioprio();
            }
            added += 1;
        };
        let acts = match ground {
            Ground::Tasks(set) => {
                let cgroups = tasks::create_cgroups(&mut core.driver, set, home)?;
                for task in &set.tasks {
                    let number = task.cgroup.as_ref().and_then(|name| set.cgroups.iter().position(|c| c.name == *name));
                    add(&mut core, &task.name, task.ioprio(), number.map_or(home.id, |index| cgroups[index].id));
                }
                Acts::Tasks(Tasks::new(set, &[], cgroups, home.id, plug_from))
            }
            Ground::Trace { trace, seed, replay, times } => {
                let cgroups = create_cgroups(&mut core.driver, trace, home)?;
                for (process, name) in trace.processes().iter().zip(trace.names_in_results()) {
                    let cgroup = process.cgroup.as_deref().map_or(home.id, |name| cgroups[name]);
                    add(&mut core, &name, process.ioprio.unwrap_or_default(), cgroup);
                }
                match (replay, times) {
                    (Replay::Open { speed }, Some(times)) => Acts::Open(Open::new(trace, *speed, *seed, times)),
                    _ => Acts::Closed(Closed::new(trace)),
                }
            }
            Ground::Jobs { set, layout, seed } => {
                let cgroups = jobs::create_cgroups(&mut core.driver, set, home)?;
                let names = set.names();
                for (number, job) in set.iter() {
                    add(&mut core, &names[number], job.ioprio, cgroups[number]);
                    if host.is_some() {
                        core.handles_later();
                    }
                }
                let host = host.map(|host| HostState::new(host, &[scheduler]));
                Acts::Jobs(Jobs::new(set, layout, *seed, plug_from, host))
            }
        };
        let first_sector = part.first_sector % capacity_sectors.max(1);
        parts.push(Member { acts, tasks: added, first_task, first_sector, in_flight: 0 });
    }
    let part_of_task =
        parts.iter().zip(0..).flat_map(|(part, number)| std::iter::repeat_n(number, part.tasks as usize));
    let source = Parts { part_of_task: part_of_task.collect(), parts, has_ended: false };
    let result = drive_one(core, source, false, limit, interrupt)?;
    for ground in &grounds {
        if let Ground::Trace { trace, times, .. } = ground {
            times.as_ref().map_or(Ok(()), TimesByProcess::check)?;
            trace.check()?;
        }
    }
    Ok(result)
}

/// Source of the events of a part.
enum Acts<'a> {
    Tasks(Tasks<'a>),
    Open(Open<'a>),
    Closed(Closed<'a>),
    Jobs(Jobs<'a>),
}

/// Calls a method of the source of a part.
macro_rules! of_source {
    ($acts:expr, $source:ident => $call:expr) => {
        match $acts {
            Acts::Tasks($source) => $call,
            Acts::Open($source) => $call,
            Acts::Closed($source) => $call,
            Acts::Jobs($source) => $call,
        }
    };
}

/// A part of the running workload.
struct Member<'a> {
    acts: Acts<'a>,
    /// Number of tasks of the part.
    tasks: u32,
    first_task: u32,
    first_sector: u64,
    /// Number of I/Os that are submitted and not complete.
    in_flight: u64,
}

/// The parts of a run.
struct Parts<'a> {
    parts: Vec<Member<'a>>,
    part_of_task: Vec<u32>,
    /// Whether the first part has ended. Then no part submits I/O any more.
    has_ended: bool,
}

impl<'a> Parts<'a> {
    /// Calls `acts` with the event source of a part, and counts the I/Os that this part submits.
    fn act<D: Device, O: Observer>(
        &mut self,
        core: &mut Core<D, O>,
        part: usize,
        acts: impl FnOnce(&mut Acts<'a>, &mut Core<D, O>, u32),
    ) {
        let member = &mut self.parts[part];
        (core.first_task, core.first_sector) = (member.first_task, member.first_sector);
        let before = core.submitted;
        acts(&mut member.acts, core, member.first_task);
        member.in_flight += core.submitted - before;
        (core.first_task, core.first_sector) = (0, 0);
        if member.in_flight == 0 && !self.has_ended && !member.has_more::<D, O>() {
            // The run ends here, because otherwise the remaining parts would share the device among
            // fewer parts.
            self.has_ended = true;
            core.ios_max = core.ios_max.min(core.submitted);
        }
    }

    fn part_of(&self, task: u32) -> usize {
        self.part_of_task[task as usize] as usize
    }
}

impl Member<'_> {
    fn next_ns<D: Device, O: Observer>(&self) -> u64 {
        of_source!(&self.acts, source => Source::<D, O>::next_ns(source))
    }

    fn has_more<D: Device, O: Observer>(&self) -> bool {
        of_source!(&self.acts, source => Source::<D, O>::has_more(source))
    }
}

impl<D: Device, O: Observer> Source<D, O> for Parts<'_> {
    fn next_ns(&self) -> u64 {
        self.parts.iter().map(Member::next_ns::<D, O>).min().unwrap_or(u64::MAX)
    }

    fn event(&mut self, core: &mut Core<D, O>) {
        let part = (0..self.parts.len()).min_by_key(|&part| self.parts[part].next_ns::<D, O>());
        let Some(part) = part else { return };
        self.act(core, part, |acts, core, _| of_source!(acts, source => source.event(core)));
    }

    fn completed(&mut self, core: &mut Core<D, O>, task: u32, tag: u32) {
        let part = self.part_of(task);
        self.parts[part].in_flight -= 1;
        self.act(core, part, |acts, core, first| of_source!(acts, source => source.completed(core, task - first, tag)));
    }

    fn woken(&mut self, core: &mut Core<D, O>, disk: usize, task: u32) {
        let part = self.part_of(task);
        self.act(core, part, |acts, core, first| of_source!(acts, source => source.woken(core, disk, task - first)));
    }

    fn has_ended_early(&self) -> bool {
        self.has_ended
    }

    fn has_more(&self) -> bool {
        self.has_ended || self.parts.iter().any(Member::has_more::<D, O>)
    }

    fn notes(&self, now_ns: u64, notes: &mut Vec<Note>) {
        for part in &self.parts {
            of_source!(&part.acts, source => Source::<D, O>::notes(source, now_ns, notes));
        }
    }
}
