//! Applications on a machine: system calls through a modelled kernel to one or several disks.
//!
//! Everything that runs is a task of the [`Model`]: the kernel's threads first, then the tasks of
//! the applications. Each task has a context in the request queue of every disk. The run ends when
//! the first application ends. Other applications run at the same time as the first. A daemon that
//! writes a log runs from the start. The applications start once the machine has settled.
//!
//! If at least one fio job is buffered, all fio jobs form an application. They run alone on a
//! machine that has just started. Each job has its priority and its cgroup. Writes of the writeback
//! thread and the journal belong to the root cgroup, as with cgroup v1. If a task itself writes
//! pages back (fsync), these writes belong to the task.

use std::sync::atomic::AtomicBool;

use iosched::{CgroupId, IoPriority, Part};
use iosched_disk::Device;
use iosched_machine::model::{Model, Outcome};
use iosched_workload::app::{Application, Step};

use super::core::{Core, NewIo, Treatment};
use super::drive::{Driven, Source, add_up, attend, drive, now_ns};
use super::heap::Heap;
use crate::observer::Observer;
use crate::plan::{Limit, SimError};
use iosched_workload::outcome::{Note, RunResult, SyncCalls, SyncKind};

/// A task's CPU time has passed, or its sleep is over.
const RUN: u32 = 0;
/// The time limit of a task's wait is reached.
const TIME_UP: u32 = 1;
/// The sleep of a task of an application is over, unless the task was woken earlier.
const SLEPT: u32 = 2;
/// End of the sleep of a task that does not sleep.
const AWAKE: u64 = u64::MAX;

/// The programs on a machine.
pub(super) struct Programs<'a> {
    /// Applications. The run ends when the first application ends.
    pub(super) applications: Vec<Box<dyn Application + 'a>>,
    /// Priority and cgroup of each task of the first application. Empty if all tasks have the
    /// defaults.
    pub(super) credentials: Vec<(IoPriority, CgroupId)>,
    /// The program that runs from the start.
    pub(super) daemon: Option<Box<dyn Application + 'a>>,
    /// Time at which the applications start, ns.
    pub(super) settled_ns: u64,
}

/// A running application.
struct Running<'a> {
    application: Box<dyn Application + 'a>,
    /// First task of the application, in the kernel's numbering.
    first: u32,
    /// Number of tasks that have not exited.
    left: usize,
}

/// The disks of a machine. The first one has the observer.
type Disks<D, O> = Vec<Core<D, Option<O>>>;

/// A modelled kernel and its applications.
struct System<'a> {
    kernel: Model,
    applications: Vec<Running<'a>>,
    /// Index of the application that runs from the start.
    daemon: usize,
    /// Application of each task, or `None` for the kernel's threads.
    application_of: Vec<Option<usize>>,
    /// End of each task's sleep, ns.
    asleep: Vec<u64>,
    /// For each task: the call that syncs a file now, and its start, ns.
    syncing: Vec<Option<(SyncKind, u64)>>,
    /// Latencies of the sync calls of the first application's tasks.
    sync_calls: SyncCalls,
    heap: Heap,
    /// Time at which the applications start, ns.
    settled_ns: u64,
    /// Last known congestion of each disk.
    congested: Vec<bool>,
    /// Disks whose queue must be run, because of a submission, a completion, or a request of the
    /// scheduler.
    to_run: Vec<bool>,
    /// Whether a task was woken since the queues were first run after the present event.
    has_woken: bool,
    failure: Option<SimError>,
}

/// Runs applications until the first one ends.
///
/// # Errors
/// The errors of [`drive`], and an error if the applications do not fit on the machine, if a task
/// fails, or no event follows.
pub(super) fn run<D: Device, O: Observer>(
    kernel: Model,
    mut disks: Disks<D, O>,
    programs: Programs<'_>,
    limit: Limit,
    interrupt: Option<&AtomicBool>,
) -> Result<RunResult, SimError> {
    let settled_ns = programs.settled_ns;
    let mut system = System::new(kernel, &mut disks, programs)?;
    let limit = Limit { time_ns: limit.time_ns.map(|ns| ns.saturating_add(settled_ns)), ..limit };
    let driven = drive(&mut disks, &mut system, false, limit, interrupt)?;
    if let Some(failure) = system.failure {
        return Err(failure);
    }
    if driven.limited_ns.is_none() && system.applications[0].left > 0 {
        let queue = disks[0].driver.queue();
        let at_ns = now_ns(&disks);
        return Err(SimError::Stuck { scheduler: queue.scheduler(), waiting: queue.waiting(), at_ns });
    }
    Ok(system.into_result(disks, driven))
}

impl<'a> System<'a> {
    fn new<D: Device, O: Observer>(
        mut kernel: Model,
        disks: &mut Disks<D, O>,
        programs: Programs<'a>,
    ) -> Result<Self, SimError> {
        let Programs { applications, credentials, daemon, settled_ns } = programs;
        let mut names = kernel.threads();
        let threads = names.len();
        let mut application_of = vec![None; threads];
        let mut running = Vec::with_capacity(applications.len());
        let daemon_number = applications.len();
        for (number, application) in applications.into_iter().chain(daemon).enumerate() {
            let namespace = kernel.add_application(application.existing())?;
            kernel.lay_out(namespace, application.laid_out())?;
            let first = names.len() as u32;
            for task in application.tasks() {
                kernel.add_task(namespace);
                names.push(task.name.clone());
                application_of.push(Some(number));
            }
            running.push(Running { left: application.tasks().len(), application, first });
        }
        for core in disks.iter_mut() {
            for (task, name) in names.iter().enumerate() {
                let credential = task.checked_sub(threads).and_then(|task| credentials.get(task)).copied();
                let (ioprio, cgroup) = credential.unwrap_or((IoPriority::default(), CgroupId::ROOT));
                core.add_task(task as u32 + 1, name, ioprio, cgroup);
            }
        }
        let disks = disks.len();
        Ok(Self {
            kernel,
            applications: running,
            daemon: daemon_number,
            asleep: vec![AWAKE; names.len()],
            syncing: vec![None; names.len()],
            sync_calls: SyncCalls::default(),
            application_of,
            heap: Heap::default(),
            settled_ns,
            congested: vec![false; disks],
            to_run: vec![false; disks],
            has_woken: false,
            failure: None,
        })
    }

    /// Continues the tasks of an application that waited or slept and are now woken.
    fn wake_tasks(&mut self, number: usize, now_ns: u64) {
        let Running { application, first, .. } = &mut self.applications[number];
        while let Some(woken) = application.take_woken() {
            let task = *first + woken as u32;
            self.asleep[task as usize] = AWAKE;
            self.heap.push(now_ns, task, RUN);
        }
    }

    /// Continues a task until it waits.
    fn go<D: Device, O: Observer>(&mut self, disks: &mut Disks<D, O>, task: u32) {
        let now_ns = now_ns(disks);
        loop {
            let outcome = self.kernel.run(task, now_ns);
            while let Some((from, disk, to)) = self.kernel.take_yield() {
                disks[disk].yield_to(from, to);
                self.to_run[disk] = true;
            }
            while let Some((throttled, disk)) = self.kernel.take_throttled() {
                disks[disk].dirtier_sleeps(throttled);
            }
            match outcome {
                Outcome::Cpu(ns) => {
                    self.heap.push(now_ns + ns, task, RUN);
                    return;
                }
                Outcome::Submit => {
                    if !self.submit(disks, task) {
                        return;
                    }
                }
                Outcome::Blocked { until_ns } => {
                    if let Some(until_ns) = until_ns {
                        self.heap.push(until_ns, task, TIME_UP);
                    }
                    return;
                }
                Outcome::Returned => {
                    if self.rests(disks, task) || !self.step(disks, task) {
                        return;
                    }
                }
                Outcome::Failed => {
                    self.failure = self.kernel.error().cloned().map(SimError::from);
                    return;
                }
            }
        }
    }

    /// Ends a task's system call. Returns whether the task rests before it continues.
    fn rests<D: Device, O: Observer>(&mut self, disks: &mut Disks<D, O>, task: u32) -> bool {
        let rest_ns = disks.iter_mut().map(|core| core.rest_ns(task)).max().unwrap_or(0);
        if rest_ns > 0 {
            self.heap.push(now_ns(disks) + rest_ns, task, RUN);
        }
        rest_ns > 0
    }

    /// Makes the next step of a task of an application. Returns false if the
    /// task cannot continue now.
    fn step<D: Device, O: Observer>(&mut self, disks: &mut Disks<D, O>, task: u32) -> bool {
        let now_ns = now_ns(disks);
        let Some(number) = self.application_of[task as usize] else {
            unreachable!("threads of the kernel never end");
        };
        if let Some((call, from_ns)) = self.syncing[task as usize].take()
            && number == 0
            && now_ns >= disks[0].tally.warm_up_ns
        {
            self.sync_calls.record(call, now_ns - from_ns);
        }
        let running = &mut self.applications[number];
        let step = running.application.step((task - running.first) as usize, now_ns);
        let goes_on = match step {
            Step::Call(call) => {
                self.syncing[task as usize] = call.sync_kind().map(|kind| (kind, now_ns));
                let batch = running.application.batch((task - running.first) as usize);
                self.kernel.begin(task, &call, batch);
                true
            }
            Step::Compute { ns } => {
                self.heap.push(now_ns + ns, task, RUN);
                false
            }
            Step::Sleep { until_ns } => {
                let until_ns = until_ns.max(now_ns);
                self.asleep[task as usize] = until_ns;
                self.heap.push(until_ns, task, SLEPT);
                false
            }
            Step::Wait => false,
            Step::Exit => {
                running.left -= 1;
                self.kernel.exit(task);
                for (core, to_run) in disks.iter_mut().zip(&mut self.to_run) {
                    core.exit(task);
                    *to_run = true;
                }
                false
            }
        };
        self.wake_tasks(number, now_ns);
        goes_on
    }

    /// Submits the bios of a task. Returns false if a queue is full and the task waits.
    fn submit<D: Device, O: Observer>(&mut self, disks: &mut Disks<D, O>, task: u32) -> bool {
        let mut plugged = None;
        let mut all = true;
        while let Some(io) = self.kernel.take_io(task) {
            if plugged != Some(io.disk) {
                if let Some(disk) = plugged {
                    disks[disk].unplug(task);
                }
                self.to_run[io.disk] = true;
                disks[io.disk].plug(task);
                plugged = Some(io.disk);
            }
            let iosched_machine::model::Io { op, flags, sector, nr_sectors, tag, .. } = io;
            let new =
                NewIo { op, flags, sector, nr_sectors, tag, asked_ns: now_ns(disks), issued: None, part: Part::Whole };
            // Up to Linux 5.19, the page cache submits bios without ioprio.
            let without_ioprio = io.buffered && !disks[io.disk].kernel().is_since(6, 0);
            if !disks[io.disk].submit_with(task, &new, Treatment { without_ioprio, ..Treatment::default() }) {
                all = false;
                break;
            }
        }
        if let Some(disk) = plugged {
            disks[disk].unplug(task);
        }
        all
    }

    fn into_result<D: Device, O: Observer>(mut self, mut disks: Disks<D, O>, driven: Driven) -> RunResult {
        let now_ns = now_ns(&disks);
        let outcome = self.applications[0].application.outcome(now_ns);
        let ios = disks.iter().map(|core| core.submitted).sum();
        let limited = driven.limited_ns.map(|at_ns| Note::Limited { ios, at_ns });
        disks[0].notes.extend(limited);
        disks[0].notes.extend(outcome.notes);
        let mut result = add_up(disks, driven.events);
        result.finished_ns = now_ns;
        result.app = outcome.report;
        // fio jobs measure their sync calls themselves.
        if outcome.jobs.is_empty() {
            result.sync_calls = self.sync_calls;
        }
        // The result of a job must contain the I/Os that the job made, even if a kernel thread
        // writes its pages back.
        let threads = result.tasks.len().saturating_sub(outcome.jobs.len());
        for (task, job) in result.tasks[threads..].iter_mut().zip(&outcome.jobs) {
            task.count_as(job);
        }
        result.jobs = outcome.jobs;
        result
    }
}

impl<D: Device, O: Observer> Source<D, Option<O>, Disks<D, O>> for System<'_> {
    const STOPS_AT_LIMIT: bool = true;

    fn begin(&mut self, disks: &mut Disks<D, O>) {
        for (task, application) in self.application_of.iter().enumerate() {
            if let Some(number) = *application {
                let start_ns = if number == self.daemon { 0 } else { self.settled_ns };
                self.heap.push(start_ns, task as u32, RUN);
            }
        }
        attend(disks, self);
    }

    fn next_ns(&self) -> u64 {
        self.heap.next_ns()
    }

    fn event(&mut self, disks: &mut Disks<D, O>) {
        let Some(event) = self.heap.pop() else { return };
        match event.what {
            TIME_UP => self.kernel.time_is_up(event.task, now_ns(disks)),
            SLEPT if self.asleep[event.task as usize] != event.at_ns => {}
            _ => {
                self.asleep[event.task as usize] = AWAKE;
                self.go(disks, event.task);
            }
        }
    }

    fn completed(&mut self, _disks: &mut Disks<D, O>, _task: u32, tag: u32) {
        self.kernel.completed(tag);
    }

    fn woken(&mut self, disks: &mut Disks<D, O>, disk: usize, task: u32) {
        self.has_woken = true;
        if disks[disk].resume(task) {
            self.go(disks, task);
        }
    }

    fn settled(&mut self, disks: &mut Disks<D, O>) {
        while let Some((task, tag)) = self.kernel.take_finished() {
            let Some(number) = self.application_of[task as usize] else {
                unreachable!("threads of the kernel wait for their own I/O");
            };
            let running = &mut self.applications[number];
            running.application.done((task - running.first) as usize, tag, now_ns(disks));
            self.wake_tasks(number, now_ns(disks));
        }
    }

    fn touched(&mut self, disk: usize) {
        self.to_run[disk] = true;
    }

    fn runs_queue(&mut self, disk: usize) -> bool {
        std::mem::take(&mut self.to_run[disk])
    }

    fn queue_ran(&mut self, disks: &mut Disks<D, O>, disk: usize) {
        let congested = disks[disk].driver.queue().congested(false);
        if congested != self.congested[disk] {
            self.congested[disk] = congested;
            self.kernel.set_congested(disk, congested);
        }
    }

    fn go_on(&mut self, disks: &mut Disks<D, O>) -> bool {
        let mut goes_on = std::mem::take(&mut self.has_woken);
        while let Some(task) = self.kernel.take_ready() {
            goes_on = true;
            self.go(disks, task);
        }
        goes_on
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.applications[0].left == 0
    }
}
