//! The engine: prepares a plan's disks and workload, and runs them in the event loop ([`drive`]).

mod closed;
mod core;
mod drive;
mod heap;
mod jobs;
mod open;
mod recorded;
mod several;
mod system;
mod tally;
mod tasks;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use iosched::{Cgroup, CgroupId, Driver, Rerun, SECOND_NS, SECTOR_BYTES};
use iosched_disk::Device;
use iosched_machine::description;
use iosched_machine::model::{DiskConfig, Model};
use iosched_workload::fio::{JobProgram, Jobs};
use iosched_workload::{Replay, TaskSet, TimesByProcess, Trace, Workload, app};

use self::core::Core;
pub(crate) use self::core::ORIGIN;
use self::drive::{check_cgroups, drive_one, drive_several};
pub use self::recorded::{RecordedError, Replayed, replay_recorded};
use self::several::Home;
pub(crate) use self::tasks::TunableWrite;
use crate::observer::Observer;
use crate::plan::{Limit, Plan, SimError};
use iosched_workload::outcome::{Note, RunResult};

/// A request queue with its device, and the options of the run for this queue.
pub(crate) struct Machine<'a, D> {
    pub(crate) driver: Driver,
    pub(crate) device: D,
    /// Smallest number of I/Os in a batch that a task collects on a plug.
    pub(crate) plug_from: u32,
    pub(crate) seed: u64,
    /// Time after the start in which results do not count, ns.
    pub(crate) warm_up_ns: u64,
    pub(crate) limit: Limit,
    /// Whether the workload schedules the rerun of the queue as one of its own events. If true,
    /// events at the same time come in the order of scheduling, as in some recordings. If false,
    /// the rerun comes after all other events at the same time.
    pub(crate) reruns_among_tasks: bool,
    /// Whether long I/Os are not split, as in some recordings.
    pub(crate) takes_whole: bool,
    pub(crate) interrupt: Option<&'a AtomicBool>,
}

/// Runs a plan. All errors in the plan are found before the run begins.
///
/// # Errors
/// If the scheduler setting or another value of the plan is not possible, or
/// the run was interrupted.
pub fn run(plan: &Plan<'_>, mut observer: impl Observer) -> Result<RunResult, SimError> {
    match observer.watching() {
        None => run_unwatched(plan),
        Some(observer) => run_watched(plan, observer),
    }
}

/// Runs a plan without an observer. This function is not generic, so that the engine is compiled in
/// this crate.
fn run_unwatched(plan: &Plan<'_>) -> Result<RunResult, SimError> {
    carry_out(plan, ())
}

/// Runs a plan with an observer. This function is also not generic, for the same reason.
fn run_watched(plan: &Plan<'_>, observer: &mut dyn Observer) -> Result<RunResult, SimError> {
    carry_out(plan, observer)
}

fn carry_out(plan: &Plan<'_>, observer: impl Observer) -> Result<RunResult, SimError> {
    let machine = prepare(plan)?;
    match plan.workload {
        Workload::Tasks(set) => run_tasks(machine, set, &[], observer),
        Workload::Trace(trace) => run_trace(machine, trace, plan.replay, observer),
        Workload::Jobs(jobs) => match plan.machine.filter(|_| jobs.are_buffered()) {
            Some(description) => run_buffered_jobs(machine, &under_kernel(plan, description), jobs, observer),
            None => run_jobs(plan, machine, jobs, observer),
        },
        Workload::Application(spec) => run_application(plan, machine, spec, observer),
        Workload::Several(several) => several::run(plan, machine, several, observer),
    }
}

/// Runs an application.
fn run_application<O: Observer>(
    plan: &Plan<'_>,
    first: Machine<'_, iosched_disk::AnyDevice>,
    spec: &app::Spec,
    observer: O,
) -> Result<RunResult, SimError> {
    let (seed, limit, interrupt) = (first.seed, first.limit, first.interrupt);
    let machine = plan.machine.ok_or_else(|| SimError::NoMachine { application: spec.name().to_owned() })?;
    let settled_ns = machine.settle_s.saturating_mul(SECOND_NS);
    let counted_from_ns = settled_ns.saturating_add(first.warm_up_ns);
    let machines = with_more_disks(plan, first)?;
    if (spec.disks() as usize) > machines.len() {
        let (needed, given) = (spec.disks() as usize, machines.len());
        return Err(SimError::TooFewDisks { application: spec.name().to_owned(), needed, given });
    }
    let disks: Vec<DiskConfig> = machines.iter().map(disk).collect();
    let described = under_kernel(plan, machine);
    let kernel = Model::new(&described, &disks, seed)?;
    let mut observer = Some(observer);
    let core = |machine: Machine<'_, _>| {
        let mut core = Core::new(machine.driver, machine.device, observer.take());
        core.tally.warm_up_ns = counted_from_ns;
        core
    };
    let cores = machines.into_iter().map(core).collect();
    let disk_bytes = disks[0].capacity_sectors * SECTOR_BYTES;
    let specs = || std::iter::once(spec).chain(plan.company);
    let applications = specs().map(|spec| spec.start(seed, disk_bytes)).collect();
    let credential = |spec: &app::Spec| std::iter::repeat_n((spec.priority(), CgroupId::ROOT), spec.task_count());
    let credentials = specs().flat_map(credential).collect();
    let daemon: Option<Box<dyn app::Application>> = Some(Box::new(app::Daemon::new(seed)));
    let programs = system::Programs { applications, credentials, daemon, settled_ns };
    system::run(kernel, cores, programs, limit, interrupt)
}

/// Returns the machine with the version of Linux that the plan names, if it names one. A machine
/// keeps its own version if this version is older than all known versions.
fn under_kernel<'a>(plan: &Plan<'a>, machine: &'a description::Machine) -> Cow<'a, description::Machine> {
    let Some(kernel) = plan.scheduler.kernel().or(plan.block_layer.kernel) else { return Cow::Borrowed(machine) };
    if machine.kernel.known().is_none() {
        return Cow::Borrowed(machine);
    }
    let mut machine = machine.clone();
    machine.kernel = description::Version::of(kernel);
    Cow::Owned(machine)
}

/// Returns the first disk and the further disks of a plan.
fn with_more_disks<'a>(
    plan: &Plan<'a>,
    first: Machine<'a, iosched_disk::AnyDevice>,
) -> Result<Vec<Machine<'a, iosched_disk::AnyDevice>>, SimError> {
    let mut machines = vec![first];
    for (number, (profile, scheduler)) in (1..).zip(plan.more_disks) {
        let (scheduler, seed) = (scheduler.clone(), plan.seed.wrapping_add(number));
        machines.push(prepare(&Plan { profile, scheduler, seed, ..plan.clone() })?);
    }
    Ok(machines)
}

/// Returns the size of the smallest disk of a plan, bytes.
fn least_bytes(plan: &Plan<'_>) -> u64 {
    let profiles = std::iter::once(plan.profile).chain(plan.more_disks.iter().map(|(profile, _)| profile));
    profiles.map(|profile| profile.card().capacity_sectors * SECTOR_BYTES).min().unwrap_or(0)
}

/// Returns the configuration of a disk for the modelled kernel.
fn disk(machine: &Machine<'_, iosched_disk::AnyDevice>) -> DiskConfig {
    DiskConfig {
        capacity_sectors: machine.device.card().capacity_sectors,
        max_sectors: machine.driver.queue().max_sectors(),
        read_ahead_kb: machine.driver.queue().read_ahead_kb(),
    }
}

/// Runs fio jobs on a machine with a page cache.
fn run_buffered_jobs<O: Observer>(
    machine: Machine<'_, iosched_disk::AnyDevice>,
    description: &iosched_machine::description::Machine,
    set: &Jobs,
    observer: O,
) -> Result<RunResult, SimError> {
    let config = disk(&machine);
    let Machine { mut driver, device, seed, warm_up_ns, limit, interrupt, .. } = machine;
    let layout = set.layout(config.capacity_sectors * SECTOR_BYTES)?;
    let cgroups = jobs::create_cgroups(&mut driver, set, &Home::ROOT)?;
    let kernel = Model::new(description, &[config], seed)?;
    let mut core = Core::new(driver, device, Some(observer));
    // If every job has a ramp, results count from the end of the shortest ramp.
    let ramps = set.iter().map(|(_, job)| job.ramp_time_ns).min().unwrap_or(0);
    core.tally.warm_up_ns = warm_up_ns.max(ramps);
    let program = JobProgram::new(set, &layout, seed, warm_up_ns);
    let credentials = set.iter().map(|(number, job)| (job.ioprio, cgroups[number])).collect();
    let applications: Vec<Box<dyn app::Application + '_>> = vec![Box::new(program)];
    let programs = system::Programs { applications, credentials, daemon: None, settled_ns: 0 };
    system::run(kernel, vec![core], programs, limit, interrupt)
}

/// Checks a plan without running it.
///
/// # Errors
/// The errors of [`run`].
pub fn check(plan: &Plan<'_>) -> Result<(), SimError> {
    let Machine { mut driver, .. } = prepare(plan)?;
    match plan.workload {
        Workload::Tasks(set) => drop(tasks::create_cgroups(&mut driver, set, &Home::ROOT)?),
        Workload::Trace(trace) => drop(create_cgroups(&mut driver, trace, &Home::ROOT)?),
        Workload::Jobs(jobs) => {
            jobs.layout_on(1 + plan.more_disks.len(), least_bytes(plan))?;
            jobs::create_cgroups(&mut driver, jobs, &Home::ROOT)?;
        }
        Workload::Application(_) => {}
        Workload::Several(several) => several::check(plan, &mut driver, several)?,
    }
    check_cgroups(&driver)
}

/// Makes the cgroups of a trace's processes.
fn create_cgroups<'a>(
    driver: &mut Driver,
    trace: &'a Trace,
    home: &Home,
) -> Result<BTreeMap<&'a str, CgroupId>, SimError> {
    let create = |name: &'a String| {
        let cgroup = Cgroup { name: home.name(name), parent: Some(home.id), weight: None, leaf_weight: None };
        Ok((name.as_str(), driver.create_cgroup(cgroup)?))
    };
    trace.cgroups().iter().map(create).collect()
}

fn prepare<'a>(plan: &Plan<'a>) -> Result<Machine<'a, iosched_disk::AnyDevice>, SimError> {
    let out_of_range = |field, value: String, allowed| SimError::OutOfRange { field, value, allowed };
    if !(1..=1_000_000).contains(&plan.block_layer.hz) {
        return Err(out_of_range("hz", plan.block_layer.hz.to_string(), "from 1 to 1,000,000"));
    }
    if let Replay::Open { speed } = plan.replay
        && !(speed.is_finite() && (1e-6..=1e6).contains(&speed))
    {
        return Err(out_of_range("speed", speed.to_string(), "from 0.000001 to 1,000,000"));
    }
    let config = plan.block_layer.under(&plan.scheduler).queue_config(plan.profile, plan.machine);
    let queue = plan.scheduler.build(ORIGIN, &config)?;
    let plug_from = plan.block_layer.plug_from(queue.is_multi_queue());
    Ok(Machine {
        driver: Driver::new(queue, Rerun::LINUX),
        device: plan.profile.device(plan.seed),
        plug_from,
        seed: plan.seed,
        warm_up_ns: plan.warm_up_ns,
        limit: Limit {
            time_ns: [plan.limit.time_ns, plan.workload.limit_ns()].into_iter().flatten().min(),
            ..plan.limit
        },
        reruns_among_tasks: false,
        takes_whole: false,
        interrupt: plan.interrupt,
    })
}

/// Runs tasks. `tunables` are written during the run.
pub(crate) fn run_tasks<D: Device>(
    machine: Machine<'_, D>,
    set: &TaskSet,
    tunables: &[TunableWrite],
    observer: impl Observer,
) -> Result<RunResult, SimError> {
    let Machine {
        mut driver, device, plug_from, warm_up_ns, limit, reruns_among_tasks, takes_whole, interrupt, ..
    } = machine;
    let cgroups = tasks::create_cgroups(&mut driver, set, &Home::ROOT)?;
    let mut core = Core::new(driver, device, observer);
    if takes_whole {
        core.take_whole();
    }
    core.tally.warm_up_ns = warm_up_ns;
    for task in &set.tasks {
        let cgroup = task.cgroup.as_ref().and_then(|name| set.cgroups.iter().position(|c| c.name == *name));
        let cgroup = cgroup.map_or(CgroupId::ROOT, |index| cgroups[index].id);
        core.add_task(task.pid, &task.name, task.ioprio(), cgroup);
    }
    let tasks = tasks::Tasks::new(set, tunables, cgroups, CgroupId::ROOT, plug_from);
    drive_one(core, tasks, reruns_among_tasks, limit, interrupt)
}

/// Replays a trace.
pub(crate) fn run_trace<D: Device>(
    machine: Machine<'_, D>,
    trace: &Trace,
    replay: Replay,
    observer: impl Observer,
) -> Result<RunResult, SimError> {
    let Machine { mut driver, device, seed, warm_up_ns, limit, interrupt, .. } = machine;
    let capacity_sectors = device.card().capacity_sectors;
    let (fitted, fit) = trace.fitted(capacity_sectors);
    trace.check()?;
    let note = Note::of_fit(fit, trace.end_sector(), capacity_sectors);
    let trace = fitted.as_deref().unwrap_or(trace);
    let cgroups = create_cgroups(&mut driver, trace, &Home::ROOT)?;
    let mut core = Core::new(driver, device, observer);
    core.tally.warm_up_ns = warm_up_ns;
    core.notes.extend(note);
    if trace.left_out() > 0 {
        core.notes.push(Note::LeftOut { requests: trace.left_out() });
    }
    for (process, name) in trace.processes().iter().zip(trace.names_in_results()) {
        let cgroup = process.cgroup.as_deref().map_or(CgroupId::ROOT, |name| cgroups[name]);
        core.add_task(process.pid, &name, process.ioprio.unwrap_or_default(), cgroup);
    }
    let result = match replay {
        Replay::Open { speed } => {
            let times = TimesByProcess::new(trace, speed, open::draws(seed));
            let result = drive_one(core, open::Open::new(trace, speed, seed, &times), false, limit, interrupt);
            times.check()?;
            result
        }
        Replay::Closed => drive_one(core, closed::Closed::new(trace), false, limit, interrupt),
    }?;
    trace.check()?;
    Ok(result)
}

/// Runs fio jobs on the disks that they name.
fn run_jobs<O: Observer>(
    plan: &Plan<'_>,
    first: Machine<'_, iosched_disk::AnyDevice>,
    set: &Jobs,
    observer: O,
) -> Result<RunResult, SimError> {
    let (plug_from, seed, warm_up_ns) = (first.plug_from, first.seed, first.warm_up_ns);
    let (limit, interrupt) = (first.limit, first.interrupt);
    let disks = set.disks().min(1 + plan.more_disks.len());
    let layout = set.layout_on(disks, least_bytes(plan))?;
    let host = plan.host.or_else(|| plan.profile.host());
    let mut machines = if disks > 1 { with_more_disks(plan, first)? } else { vec![first] };
    machines.truncate(disks);
    let schedulers: Vec<&str> = machines.iter().map(|machine| machine.driver.queue().scheduler()).collect();
    let host = host.map(|host| jobs::HostState::new(host, &schedulers));
    let has_host = host.is_some();
    let jobs = jobs::Jobs::new(set, &layout, seed, plug_from, host);
    if disks == 1 {
        let Some(Machine { driver, device, .. }) = machines.pop() else { unreachable!("a run has a disk") };
        return drive_one(
            jobs_core(driver, device, observer, set, has_host, warm_up_ns)?,
            jobs,
            false,
            limit,
            interrupt,
        );
    }
    let mut observer = Some(observer);
    let cores: Result<Vec<_>, SimError> = machines
        .into_iter()
        .map(|Machine { driver, device, .. }| jobs_core(driver, device, observer.take(), set, has_host, warm_up_ns))
        .collect();
    drive_several(cores?, jobs, limit, interrupt)
}

/// Creates the core of a disk of fio jobs, with a task for each job.
fn jobs_core<D: Device, O: Observer>(
    mut driver: Driver,
    device: D,
    observer: O,
    set: &Jobs,
    has_host: bool,
    warm_up_ns: u64,
) -> Result<Core<D, O>, SimError> {
    let cgroups = jobs::create_cgroups(&mut driver, set, &Home::ROOT)?;
    let names = set.names();
    let mut core = Core::new(driver, device, observer);
    core.tally.warm_up_ns = warm_up_ns;
    // If every job has a ramp, results count after the first job has ended its ramp.
    core.tally.waits = set.iter().all(|(_, job)| job.ramp_time_ns > 0);
    for (number, job) in set.iter() {
        core.add_task(number as u32 + 1, &names[number], job.ioprio, cgroups[number]);
        if has_host {
            core.handles_later();
        }
    }
    Ok(core)
}
