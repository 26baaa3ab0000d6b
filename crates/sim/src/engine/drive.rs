//! The event loop: one virtual clock, one or several request queues with devices, and a workload.
//!
//! At equal times, the order of events is:
//!
//! 1. completions, in the order in which the devices report them
//! 2. timers of schedulers
//! 3. events of the workload, in the order in which they were scheduled
//! 4. reruns of queues, which multi-queue schedulers request
//!
//! If several disks have events at one time, the first disk in the list comes first. Each event is
//! handled completely. Then the queues are run: a scheduler dispatches requests while its device
//! has room.

use std::sync::atomic::{AtomicBool, Ordering};

use iosched::controllers::NamedWrite;
use iosched::{Driver, Due, IoError, Time};
use iosched_disk::Device;

use super::core::{Core, ORIGIN};
use crate::observer::Observer;
use crate::plan::{Limit, SimError};
use iosched_workload::outcome::{JobResult, Note, RunResult};

/// Events between two checks of the interrupt flag.
const INTERRUPT_EVENTS: u64 = 1 << 16;

/// Disks with a common clock.
pub(super) trait Cores<D, O> {
    /// Returns all disks, at least one.
    fn all(&self) -> &[Core<D, O>];

    /// Returns all disks, mutable.
    fn all_mut(&mut self) -> &mut [Core<D, O>];
}

impl<D, O> Cores<D, O> for Core<D, O> {
    #[inline]
    fn all(&self) -> &[Self] {
        std::slice::from_ref(self)
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [Self] {
        std::slice::from_mut(self)
    }
}

impl<D, O> Cores<D, O> for Vec<Core<D, O>> {
    #[inline]
    fn all(&self) -> &[Core<D, O>] {
        self
    }

    #[inline]
    fn all_mut(&mut self) -> &mut [Core<D, O>] {
        self
    }
}

/// A workload for the event loop. Each call handles one event. After the call, the loop runs the
/// queues.
pub(super) trait Source<D: Device, O: Observer, C: Cores<D, O> = Core<D, O>> {
    /// Whether a run at its limit ends at once, with I/Os in flight. Otherwise the run waits for
    /// the I/Os that were submitted before the limit.
    const STOPS_AT_LIMIT: bool = false;

    /// Begins the run.
    fn begin(&mut self, cores: &mut C) {
        let _ = cores;
    }

    /// Returns the time of the next event, ns, or `u64::MAX` if none is scheduled.
    fn next_ns(&self) -> u64;

    /// Handles the next event of the workload.
    fn event(&mut self, cores: &mut C);

    /// Reports the completion of the I/O of `task` with this tag. During this call, the workload
    /// must not submit I/O, but it may schedule an event.
    fn completed(&mut self, cores: &mut C, task: u32, tag: u32);

    /// Reports that `task` may continue. The task had found the queue of this disk full.
    fn woken(&mut self, cores: &mut C, disk: usize, task: u32);

    /// Reports that the loop has reported all completions of a disk.
    #[inline]
    fn settled(&mut self, cores: &mut C) {
        let _ = cores;
    }

    /// Reports a change in this disk. The loop must then run the queue of this disk.
    #[inline]
    fn touched(&mut self, disk: usize) {
        let _ = disk;
    }

    /// Returns whether the queue of this disk must be run now.
    #[inline]
    fn runs_queue(&mut self, disk: usize) -> bool {
        let _ = disk;
        true
    }

    /// Reports that the run of this disk's queue is complete.
    #[inline]
    fn queue_ran(&mut self, cores: &mut C, disk: usize) {
        let _ = (cores, disk);
    }

    /// Continues tasks after all queues were run. Returns whether the queues
    /// must be examined again.
    #[inline]
    fn go_on(&mut self, cores: &mut C) -> bool {
        let _ = cores;
        false
    }

    /// Returns whether the run has ended. I/Os may be in flight.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }

    /// Returns whether the workload ended the run before its limit although it has more work.
    fn has_ended_early(&self) -> bool {
        false
    }

    /// Returns whether the workload has more work.
    fn has_more(&self) -> bool {
        self.next_ns() != u64::MAX
    }

    /// Schedules a rerun of the queue as an event of the workload.
    fn schedule_rerun(&mut self, at_ns: u64) {
        let _ = at_ns;
        unreachable!("only a workload of tasks has reruns");
    }

    /// Returns the time at which a timer or a rerun takes effect, ns. `due_ns` is the time at which
    /// it is due. In a replay of a recording, this is the recorded time.
    #[inline]
    fn heard_ns(&self, due: Due, due_ns: u64) -> u64 {
        let _ = due;
        due_ns
    }

    /// Returns the time of the next interrupt of the processor's clock, ns. The loop calls this
    /// method while timers are set. Returns `u64::MAX` if clock interrupts do not matter.
    #[inline]
    fn clock_interrupt_ns(&self, now_ns: u64) -> u64 {
        let _ = now_ns;
        u64::MAX
    }

    /// Returns whether the run continues and timers take effect even if no other event follows.
    #[inline]
    fn hears_on(&self) -> bool {
        false
    }

    /// Reports that a timer or a rerun takes effect.
    #[inline]
    fn heard(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns the result of the next request that the device completes.
    #[inline]
    fn result(&self) -> Result<(), IoError> {
        Ok(())
    }

    /// Adds the workload's notes about the run, which ended at `now_ns`.
    fn notes(&self, now_ns: u64, notes: &mut Vec<Note>) {
        let _ = (now_ns, notes);
    }

    /// Ends the jobs at `now_ns`, and returns their results. Jobs that still run count as stopped
    /// at `limit_ns`. A workload without jobs returns no results.
    fn jobs(self, limit_ns: u64, now_ns: u64) -> Vec<JobResult>
    where
        Self: Sized,
    {
        let _ = (limit_ns, now_ns);
        Vec::new()
    }
}

/// Result of the event loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driven {
    /// Number of handled events.
    pub(super) events: u64,
    /// Time of the last event before the limit, ns, if the run reached its limit.
    pub(super) limited_ns: Option<u64>,
}

/// Handles events until there are no more events, the run is over, or it reaches its limit.
///
/// # Errors
/// If a controller is set for a missing cgroup, or the run was interrupted.
#[inline]
pub(super) fn drive<D: Device, O: Observer, C: Cores<D, O>, S: Source<D, O, C>>(
    cores: &mut C,
    source: &mut S,
    reruns_among_tasks: bool,
    limit: Limit,
    interrupt: Option<&AtomicBool>,
) -> Result<Driven, SimError> {
    cores.all().iter().try_for_each(|core| check_cgroups(&core.driver))?;
    let end_ns = limit.time_ns.unwrap_or(u64::MAX);
    for core in cores.all_mut() {
        core.ios_max = limit.ios.unwrap_or(u64::MAX);
        core.begin();
    }
    source.begin(cores);
    let mut driven = Driven { events: 0, limited_ns: None };
    // Time of the rerun that is scheduled as an event of the workload.
    let mut rerun_scheduled = None;
    while !source.is_over() {
        let (device_ns, device) = earliest(cores.all(), |core| core.device.next_event().map_or(u64::MAX, Time::as_ns));
        let (due_ns, timer) = earliest(cores.all(), |core| since_origin(core.driver.next_timer()));
        let due_ns = source.heard_ns(Due::Timer, due_ns);
        let timer_ns = if due_ns == u64::MAX { due_ns } else { due_ns.min(source.clock_interrupt_ns(now_ns(cores))) };
        let (rerun_ns, rerun) =
            earliest(cores.all(), |core| since_origin(core.driver.next_rerun().filter(|_| !reruns_among_tasks)));
        let rerun_ns = source.heard_ns(Due::Rerun, rerun_ns);
        let mut source_ns = source.next_ns();
        let is_exhausted = |cores: &C| cores.all().iter().any(Core::is_exhausted);
        let next_ns = device_ns.min(timer_ns).min(rerun_ns).min(source_ns);
        if S::STOPS_AT_LIMIT {
            let ends = next_ns >= end_ns && next_ns < u64::MAX;
            if ends || is_exhausted(cores) {
                driven.limited_ns = Some(now_ns(cores));
                // All compared settings get the same duration. It does not depend on their last
                // event.
                if ends {
                    pass_until(cores, end_ns);
                }
                break;
            }
        } else {
            // At the time limit, no task submits any more. This includes a task that waits for a
            // tag and has no scheduled event. I/Os that were submitted before the limit still
            // complete.
            if next_ns >= end_ns {
                for core in cores.all_mut() {
                    core.ios_max = core.ios_max.min(core.submitted);
                }
            }
            if is_exhausted(cores) {
                driven.limited_ns = driven.limited_ns.or(Some(now_ns(cores)));
                source_ns = u64::MAX;
            } else if source_ns >= end_ns {
                source_ns = u64::MAX;
            }
        }
        let nothing_comes = device_ns == u64::MAX && source_ns == u64::MAX && !source.hears_on();
        if nothing_comes && cores.all().iter().all(|core| core.driver.queue().only_controllers_go_on()) {
            break;
        }
        let at_ns = device_ns.min(timer_ns).min(source_ns).min(rerun_ns);
        if at_ns == u64::MAX {
            break;
        }
        pass_until(cores, at_ns);
        if device_ns == at_ns {
            if !cores.all_mut()[device].complete(source.result()) {
                continue;
            }
            source.touched(device);
        } else if timer_ns == at_ns {
            let core = &mut cores.all_mut()[timer];
            source.heard(core.now());
            if if due_ns == at_ns { core.timer() } else { core.clock_interrupt() } {
                source.touched(timer);
            }
        } else if source_ns == at_ns {
            source.event(cores);
        } else {
            let core = &mut cores.all_mut()[rerun];
            source.heard(core.now());
            core.rerun();
            source.touched(rerun);
        }
        attend(cores, source);
        if reruns_among_tasks {
            let rerun = cores.all()[0].driver.next_rerun();
            if let Some(at) = rerun.filter(|_| rerun != rerun_scheduled) {
                source.schedule_rerun(at.since(ORIGIN));
            }
            rerun_scheduled = rerun;
        }
        driven.events += 1;
        if driven.events.is_multiple_of(INTERRUPT_EVENTS) && interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            return Err(SimError::Interrupted { events: driven.events, at_ns: now_ns(cores) });
        }
    }
    Ok(driven)
}

/// Runs a workload on one disk.
///
/// # Errors
/// The errors of [`drive`], and an error if requests wait that the scheduler never dispatches.
pub(super) fn drive_one<D: Device, O: Observer, S: Source<D, O>>(
    mut core: Core<D, O>,
    mut source: S,
    reruns_among_tasks: bool,
    limit: Limit,
    interrupt: Option<&AtomicBool>,
) -> Result<RunResult, SimError> {
    let Driven { events, limited_ns } = drive(&mut core, &mut source, reruns_among_tasks, limit, interrupt)?;
    let queue = core.driver.queue();
    let waiting = queue.waiting();
    if waiting > 0 {
        return Err(SimError::Stuck { scheduler: queue.scheduler(), waiting, at_ns: core.now_ns });
    }
    let mut limit_ns = limited_ns.unwrap_or(core.now_ns);
    if source.has_more() {
        core.notes.push(Note::Limited { ios: core.submitted, at_ns: limit_ns });
        let ended_by_time = core.submitted < limit.ios.unwrap_or(u64::MAX) && !source.has_ended_early();
        let time_ns = limit.time_ns.filter(|_| ended_by_time);
        core.last_until(time_ns.unwrap_or(0));
        limit_ns = time_ns.unwrap_or(limit_ns);
    }
    source.notes(core.now_ns, &mut core.notes);
    let jobs = source.jobs(limit_ns, core.now_ns);
    let mut result = RunResult { jobs, ..core.into_result(events) };
    result.leave_syncs_out();
    Ok(result)
}

/// Runs jobs on several disks, and joins the results ([`add_up`]). Only the first disk has an
/// observer.
///
/// # Errors
/// The errors of [`drive_one`].
pub(super) fn drive_several<D: Device, O: Observer, S: Source<D, O, Vec<Core<D, O>>>>(
    mut cores: Vec<Core<D, O>>,
    mut source: S,
    limit: Limit,
    interrupt: Option<&AtomicBool>,
) -> Result<RunResult, SimError> {
    let Driven { events, limited_ns } = drive(&mut cores, &mut source, false, limit, interrupt)?;
    for core in &cores {
        let queue = core.driver.queue();
        let waiting = queue.waiting();
        if waiting > 0 {
            return Err(SimError::Stuck { scheduler: queue.scheduler(), waiting, at_ns: core.now_ns });
        }
    }
    let mut limit_ns = limited_ns.unwrap_or_else(|| now_ns(&cores));
    if source.has_more() {
        let ios = cores.iter().map(|core| core.submitted).sum();
        cores[0].notes.push(Note::Limited { ios, at_ns: limit_ns });
        let time_ns = limit.time_ns.filter(|_| ios < limit.ios.unwrap_or(u64::MAX));
        cores.iter_mut().for_each(|core| core.last_until(time_ns.unwrap_or(0)));
        limit_ns = time_ns.unwrap_or(limit_ns);
    }
    source.notes(now_ns(&cores), &mut cores[0].notes);
    let jobs = source.jobs(limit_ns, now_ns(&cores));
    let mut result = add_up(cores, events);
    for (task, job) in result.tasks.iter_mut().zip(&jobs) {
        task.count_as(job);
    }
    result.jobs = jobs;
    result.leave_syncs_out();
    Ok(result)
}

/// Joins the results of several disks. Adds up I/Os, requests, bytes and latencies, and takes the
/// latest end. All other results come from the first disk.
pub(super) fn add_up<D: Device, O: Observer>(cores: Vec<Core<D, O>>, events: u64) -> RunResult {
    let mut cores = cores.into_iter();
    let Some(first) = cores.next() else { unreachable!("a run has a disk") };
    let mut result = first.into_result(events);
    for core in cores {
        let other = core.into_result(0);
        result.ios += other.ios;
        result.requests_dispatched += other.requests_dispatched;
        result.bytes_read += other.bytes_read;
        result.bytes_written += other.bytes_written;
        result.latency.merge(&other.latency);
        result.finished_ns = result.finished_ns.max(other.finished_ns);
    }
    result
}

/// Finishes an event: reports completions, runs the queues, and continues tasks.
#[inline]
pub(super) fn attend<D: Device, O: Observer, C: Cores<D, O>, S: Source<D, O, C>>(cores: &mut C, source: &mut S) {
    loop {
        for disk in 0..cores.all().len() {
            settle(cores, source, disk);
            if source.runs_queue(disk) {
                while let Some(task) = cores.all_mut()[disk].turn() {
                    source.woken(cores, disk, task);
                    settle(cores, source, disk);
                }
            }
            source.queue_ran(cores, disk);
        }
        if !source.go_on(cores) {
            return;
        }
    }
}

/// Reports the completed I/Os of a disk.
#[inline]
fn settle<D: Device, O: Observer, C: Cores<D, O>, S: Source<D, O, C>>(cores: &mut C, source: &mut S, disk: usize) {
    let mut next = 0;
    while let Some(&cookie) = cores.all()[disk].done.get(next) {
        next += 1;
        if let Some((task, tag)) = cores.all_mut()[disk].bio_done(cookie) {
            source.completed(cores, task, tag);
        }
    }
    cores.all_mut()[disk].done.clear();
    source.settled(cores);
}

/// Returns the earliest due time, ns, and the first disk that has this due time.
#[inline]
fn earliest<D, O>(cores: &[Core<D, O>], due_ns: impl Fn(&Core<D, O>) -> u64) -> (u64, usize) {
    let mut earliest = (u64::MAX, 0);
    for (disk, core) in cores.iter().enumerate() {
        let at_ns = due_ns(core);
        if at_ns < earliest.0 {
            earliest = (at_ns, disk);
        }
    }
    earliest
}

#[inline]
fn since_origin(at: Option<Time>) -> u64 {
    at.map_or(u64::MAX, |at| at.since(ORIGIN))
}

/// Returns the present time, ns.
#[inline]
pub(super) fn now_ns<D, O, C: Cores<D, O>>(cores: &C) -> u64 {
    cores.all()[0].now_ns
}

/// Advances the present time of all disks.
#[inline]
fn pass_until<D: Device, O: Observer, C: Cores<D, O>>(cores: &mut C, at_ns: u64) {
    for core in cores.all_mut() {
        core.pass_until(core.now_ns.max(at_ns));
    }
}

/// Checks that every attribute of a cgroup is set for a cgroup that exists.
///
/// # Errors
/// If a cgroup does not exist. The error lists the existing cgroups.
pub(super) fn check_cgroups(driver: &Driver) -> Result<(), SimError> {
    match driver.queue().set_of_no_cgroup().first() {
        Some(NamedWrite { cgroup, file, .. }) => {
            let known = driver.queue().env().cgroups.names().skip(1).map(str::to_owned).collect();
            Err(SimError::NoCgroup { file: file.clone(), cgroup: cgroup.clone(), known })
        }
        None => Ok(()),
    }
}
