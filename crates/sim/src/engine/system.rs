//! Applications on a machine: system calls through a modelled kernel to one or several disks.
//!
//! Everything that runs is a task of the [`Model`]: its own threads first, then those of the applications. A task is a
//! context in the request queue of every disk. The run ends with the first application; others are company. A daemon
//! that writes its log runs from the start, the others once the machine has settled.
//!
//! Jobs of fio of which any is buffered are an application, too: by themselves on a machine that has just started, each
//! with its priority and in its cgroup. What the writeback thread and the journal write is the root cgroup's, as with
//! cgroup v1; what a task writes back itself (fsync) is its own.

use iosched::{CgroupId, IoPriority, Part};
use iosched_disk::Device;
use iosched_machine::model::{Model, Outcome};
use iosched_workload::app::{Application, Step};

use super::core::{Core, NewIo};
use super::heap::Heap;
use super::{INTERRUPT_EVENTS, ORIGIN};
use crate::observer::Observer;
use crate::plan::{Limit, SimError};
use iosched_workload::outcome::{Note, RunResult, SyncCalls, SyncKind};

/// A task's CPU time has passed, or its sleep is over.
const RUN: u32 = 0;
/// What a task waits for at most until then.
const TIME_UP: u32 = 1;
/// A task of an application has slept, unless it was woken before.
const SLEPT: u32 = 2;
/// A task that does not sleep.
const AWAKE: u64 = u64::MAX;

/// What runs on a machine.
pub(super) struct Programs<'a> {
    /// The run ends with the first of them.
    pub(super) applications: Vec<Box<dyn Application + 'a>>,
    /// Of the first one's tasks, if they are told apart: priority and cgroup.
    pub(super) credentials: Vec<(IoPriority, CgroupId)>,
    /// What runs from the start.
    pub(super) daemon: Option<Box<dyn Application + 'a>>,
    /// When the applications start, ns.
    pub(super) settled_ns: u64,
}

/// An application at work.
struct Running<'a> {
    application: Box<dyn Application + 'a>,
    /// Its first task, by the kernel's count.
    first: u32,
    /// Tasks that have not exited.
    left: usize,
}

/// A machine and what runs on it.
pub(super) struct System<'a, D, O> {
    kernel: Model,
    cores: Vec<Core<D, Option<O>>>,
    applications: Vec<Running<'a>>,
    /// Number of the application that runs from the start.
    daemon: usize,
    /// Which application each task belongs to; `None`: the kernel.
    application_of: Vec<Option<usize>>,
    /// Until when each task sleeps, ns.
    asleep: Vec<u64>,
    /// Of each task: which call it syncs a file with now, and since when, ns.
    syncing: Vec<Option<(SyncKind, u64)>>,
    /// Latencies of such calls of the first application's tasks.
    sync_calls: SyncCalls,
    heap: Heap,
    now_ns: u64,
    /// When the applications start, ns.
    settled_ns: u64,
    /// What was known last of each disk's congestion.
    congested: Vec<bool>,
    /// Whose queue is to be run: something was submitted to it or completed, or its elevator wants it.
    to_run: Vec<bool>,
    failure: Option<SimError>,
}

impl<'a, D: Device, O: Observer> System<'a, D, O> {
    pub(super) fn new(
        mut kernel: Model,
        mut cores: Vec<Core<D, Option<O>>>,
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
        for core in &mut cores {
            for (task, name) in names.iter().enumerate() {
                let own = task.checked_sub(threads).and_then(|task| credentials.get(task)).copied();
                let (ioprio, cgroup) = own.unwrap_or((IoPriority::default(), CgroupId::ROOT));
                core.add_task(task as u32 + 1, name, ioprio, cgroup);
            }
        }
        let disks = cores.len();
        Ok(Self {
            kernel,
            cores,
            applications: running,
            daemon: daemon_number,
            asleep: vec![AWAKE; names.len()],
            syncing: vec![None; names.len()],
            sync_calls: SyncCalls::default(),
            application_of,
            heap: Heap::default(),
            now_ns: 0,
            settled_ns,
            congested: vec![false; disks],
            to_run: vec![false; disks],
            failure: None,
        })
    }

    /// Runs until the first application is done.
    pub(super) fn run(
        mut self,
        limit: Limit,
        interrupt: Option<&std::sync::atomic::AtomicBool>,
    ) -> Result<RunResult, SimError> {
        let end_ns = limit.time_ns.map_or(u64::MAX, |ns| ns.saturating_add(self.settled_ns));
        for core in &mut self.cores {
            core.ios_max = limit.ios.unwrap_or(u64::MAX);
            core.begin();
        }
        for (task, application) in self.application_of.iter().enumerate() {
            if let Some(number) = *application {
                let start_ns = if number == self.daemon { 0 } else { self.settled_ns };
                self.heap.push(start_ns, task as u32, RUN);
            }
        }
        self.attend();
        let mut events = 0;
        let mut limited = None;
        while self.failure.is_none() && self.applications[0].left > 0 {
            let Some((at_ns, source)) = self.next() else {
                return Err(self.stuck());
            };
            if at_ns >= end_ns || self.cores.iter().any(Core::is_exhausted) {
                let ios = self.cores.iter().map(|core| core.submitted).sum();
                limited = Some(Note::Limited { ios, at_ns: self.now_ns });
                // Settings that are compared have the same time, whenever their last event was.
                if at_ns >= end_ns {
                    self.now_ns = self.now_ns.max(end_ns);
                    for core in &mut self.cores {
                        core.pass_until(self.now_ns);
                    }
                }
                break;
            }
            self.now_ns = self.now_ns.max(at_ns);
            for core in &mut self.cores {
                core.pass_until(self.now_ns);
            }
            self.event(source);
            self.attend();
            events += 1;
            if u64::is_multiple_of(events, INTERRUPT_EVENTS)
                && interrupt.is_some_and(|flag| flag.load(std::sync::atomic::Ordering::Relaxed))
            {
                return Err(SimError::Interrupted { events, at_ns: self.now_ns });
            }
        }
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self.into_result(events, limited)),
        }
    }

    /// The next event: of equal times completions first, then elevators' timers, then tasks, then queues that are run
    /// again.
    fn next(&self) -> Option<(u64, Source)> {
        let mut next = (u64::MAX, Source::Tasks);
        let mut consider = |at_ns: u64, source| {
            if at_ns < next.0 {
                next = (at_ns, source);
            }
        };
        for (disk, core) in self.cores.iter().enumerate() {
            consider(core.device.next_event().map_or(u64::MAX, iosched::Time::as_ns), Source::Device(disk));
        }
        for (disk, core) in self.cores.iter().enumerate() {
            consider(core.driver.next_timer().map_or(u64::MAX, |at| at.since(ORIGIN)), Source::Timer(disk));
        }
        consider(self.heap.next_ns(), Source::Tasks);
        for (disk, core) in self.cores.iter().enumerate() {
            consider(core.driver.next_rerun().map_or(u64::MAX, |at| at.since(ORIGIN)), Source::Rerun(disk));
        }
        (next.0 < u64::MAX).then_some(next)
    }

    fn event(&mut self, source: Source) {
        match source {
            Source::Device(disk) => {
                self.to_run[disk] |= self.cores[disk].complete(Ok(()));
            }
            Source::Timer(disk) => self.to_run[disk] |= self.cores[disk].timer(),
            Source::Rerun(disk) => {
                self.to_run[disk] = true;
                self.cores[disk].rerun();
            }
            Source::Tasks => {
                let Some(event) = self.heap.pop() else { return };
                match event.what {
                    TIME_UP => self.kernel.time_is_up(event.task, self.now_ns),
                    SLEPT if self.asleep[event.task as usize] != event.at_ns => {}
                    _ => {
                        self.asleep[event.task as usize] = AWAKE;
                        self.go(event.task);
                    }
                }
            }
        }
    }

    /// After an event: whoever may go on does, and the queues are run.
    fn attend(&mut self) {
        loop {
            let mut quiet = true;
            for disk in 0..self.cores.len() {
                self.settle(disk);
                if std::mem::take(&mut self.to_run[disk]) {
                    while let Some(task) = self.cores[disk].turn() {
                        quiet = false;
                        if self.cores[disk].resume(task) {
                            self.go(task);
                        }
                        self.settle(disk);
                    }
                }
                let congested = self.cores[disk].driver.queue().congested(false);
                if congested != self.congested[disk] {
                    self.congested[disk] = congested;
                    self.kernel.set_congested(disk, congested);
                }
            }
            while let Some(task) = self.kernel.take_ready() {
                quiet = false;
                self.go(task);
            }
            if quiet {
                break;
            }
        }
    }

    /// Tells the kernel of the I/Os that are done.
    fn settle(&mut self, disk: usize) {
        let core = &mut self.cores[disk];
        let mut next = 0;
        while let Some(&cookie) = core.done.get(next) {
            next += 1;
            if let Some((_, tag)) = core.bio_done(cookie) {
                self.kernel.completed(tag);
            }
        }
        core.done.clear();
        while let Some((task, tag)) = self.kernel.take_finished() {
            let Some(number) = self.application_of[task as usize] else {
                unreachable!("the kernel's threads wait for what they begin");
            };
            let running = &mut self.applications[number];
            running.application.done((task - running.first) as usize, tag, self.now_ns);
            self.wake_tasks(number);
        }
    }

    /// Tasks of an application that waited or slept go on now.
    fn wake_tasks(&mut self, number: usize) {
        let Running { application, first, .. } = &mut self.applications[number];
        while let Some(woken) = application.take_woken() {
            let task = *first + woken as u32;
            self.asleep[task as usize] = AWAKE;
            self.heap.push(self.now_ns, task, RUN);
        }
    }

    /// A task goes on until it waits.
    fn go(&mut self, task: u32) {
        loop {
            let outcome = self.kernel.run(task, self.now_ns);
            while let Some((from, disk, to)) = self.kernel.take_yield() {
                self.cores[disk].yield_to(from, to);
                self.to_run[disk] = true;
            }
            match outcome {
                Outcome::Cpu(ns) => {
                    self.heap.push(self.now_ns + ns, task, RUN);
                    return;
                }
                Outcome::Submit => {
                    if !self.submit(task) {
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
                    if self.rests(task) || !self.step(task) {
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

    /// A task's system call has ended. Whether it rests before it goes on.
    fn rests(&mut self, task: u32) -> bool {
        let rest_ns = self.cores.iter_mut().map(|core| core.rest_ns(task)).max().unwrap_or(0);
        if rest_ns > 0 {
            self.heap.push(self.now_ns + rest_ns, task, RUN);
        }
        rest_ns > 0
    }

    /// A task of an application does what comes next. `false`: not now.
    fn step(&mut self, task: u32) -> bool {
        let Some(number) = self.application_of[task as usize] else {
            unreachable!("the kernel's threads have no end");
        };
        if let Some((call, from_ns)) = self.syncing[task as usize].take()
            && number == 0
            && self.now_ns >= self.cores[0].tally.warm_up_ns
        {
            self.sync_calls.record(call, self.now_ns - from_ns);
        }
        let running = &mut self.applications[number];
        let step = running.application.step((task - running.first) as usize, self.now_ns);
        let goes_on = match step {
            Step::Call(call) => {
                self.syncing[task as usize] = call.sync_kind().map(|kind| (kind, self.now_ns));
                let batch = running.application.batch((task - running.first) as usize);
                self.kernel.begin(task, &call, batch);
                true
            }
            Step::Compute { ns } => {
                self.heap.push(self.now_ns + ns, task, RUN);
                false
            }
            Step::Sleep { until_ns } => {
                let until_ns = until_ns.max(self.now_ns);
                self.asleep[task as usize] = until_ns;
                self.heap.push(until_ns, task, SLEPT);
                false
            }
            Step::Wait => false,
            Step::Exit => {
                running.left -= 1;
                self.kernel.exit(task);
                for (core, to_run) in self.cores.iter_mut().zip(&mut self.to_run) {
                    core.exit(task);
                    *to_run = true;
                }
                false
            }
        };
        self.wake_tasks(number);
        goes_on
    }

    /// Hands over the bios of a task. `false`: a queue is full, and the task waits.
    fn submit(&mut self, task: u32) -> bool {
        let mut plugged = None;
        let mut all = true;
        while let Some(io) = self.kernel.take_io(task) {
            if plugged != Some(io.disk) {
                if let Some(disk) = plugged {
                    self.cores[disk].unplug(task);
                }
                self.to_run[io.disk] = true;
                self.cores[io.disk].plug(task);
                plugged = Some(io.disk);
            }
            let iosched_machine::model::Io { op, flags, sector, nr_sectors, tag, .. } = io;
            let new =
                NewIo { op, flags, sector, nr_sectors, tag, asked_ns: self.now_ns, issued: None, part: Part::Whole };
            if !self.cores[io.disk].submit(task, &new) {
                all = false;
                break;
            }
        }
        if let Some(disk) = plugged {
            self.cores[disk].unplug(task);
        }
        all
    }

    fn stuck(&self) -> SimError {
        let queue = self.cores[0].driver.queue();
        SimError::Stuck { scheduler: queue.scheduler(), waiting: queue.waiting(), at_ns: self.now_ns }
    }

    fn into_result(mut self, events: u64, limited: Option<Note>) -> RunResult {
        let told = self.applications[0].application.told(self.now_ns);
        let mut cores = self.cores.into_iter();
        let Some(mut first) = cores.next() else {
            unreachable!("a machine has a disk");
        };
        first.notes.extend(limited);
        first.notes.extend(told.notes);
        let mut result = first.into_result(events);
        for core in cores {
            let other = core.into_result(0);
            result.ios += other.ios;
            result.requests_dispatched += other.requests_dispatched;
            result.bytes_read += other.bytes_read;
            result.bytes_written += other.bytes_written;
            result.latency.merge(&other.latency);
        }
        result.finished_ns = self.now_ns;
        result.app = told.report;
        // fio's jobs have measured their own.
        if told.jobs.is_empty() {
            result.sync_calls = self.sync_calls;
        }
        // Of a job, what it sees: what is written back of its pages is a thread's.
        let threads = result.tasks.len().saturating_sub(told.jobs.len());
        for (task, job) in result.tasks[threads..].iter_mut().zip(&told.jobs) {
            task.count_as(job);
        }
        result.jobs = told.jobs;
        result
    }
}

/// Where an event comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Device(usize),
    Timer(usize),
    Tasks,
    Rerun(usize),
}
