//! Simulation of fio jobs: their submissions and their results.
//!
//! Jobs are processes with their own loops ([`Process`]). A [`Crew`] starts and ends them. In this
//! module, jobs submit directly to the queue. Jobs with buffered I/O usually run on a machine
//! (`system`). Without a machine, buffered I/Os go to the device like direct I/Os, but the
//! scheduler treats buffered writes as async.

mod host;

use std::collections::BTreeMap;

use iosched::{CgroupId, Driver, Flags, Op, Part, SECTOR_BYTES};
use iosched_disk::Device;
use iosched_workload::fio::{
    Action, Client, Crew, Direction, Job, JobIo, Jobs as JobSet, Layout, OpenSync, Order, Process,
};
use iosched_workload::outcome::{JobResult, Note};

use self::host::Freed;
pub(super) use self::host::HostState;
use super::core::{Core, NewIo};
use super::drive::{Cores, Source, now_ns};
use super::heap::Heap;
use super::several::Home;
use crate::observer::Observer;
use crate::plan::SimError;

/// Tag of a flush. The tag of data is the index of its slot.
const FLUSH: u32 = u32::MAX;

/// A job may start.
const START: u32 = 0;
/// A job may continue.
const RUN: u32 = 1;
/// A job's results begin to count.
const COUNT: u32 = 2;
/// A processor is free. The task number of the event is the index of the processor.
const FREE: u32 = 3;

/// Limit for the time in which a processor works, per cent of the run. Above this limit, the host
/// limits the rate.
const BUSY_PERCENT: u32 = 95;

/// Makes the cgroups of jobs. Returns the cgroup of each job of the file.
pub(super) fn create_cgroups(driver: &mut Driver, jobs: &JobSet, home: &Home) -> Result<Vec<CgroupId>, SimError> {
    let mut weights: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    for member in jobs.file().jobs.iter().filter_map(|job| job.cgroup.as_ref()) {
        // The last job that sets a weight decides, as if each job wrote the cgroup's file.
        let weight = weights.entry(member.name.trim_matches('/')).or_default();
        *weight = member.weight.or(*weight);
    }
    let mut cgroups: BTreeMap<String, CgroupId> = BTreeMap::new();
    let mut ids = Vec::with_capacity(jobs.file().jobs.len());
    for job in &jobs.file().jobs {
        let mut id = home.id;
        let mut path = String::new();
        let parts = job.cgroup.iter().flat_map(|member| member.name.split('/')).filter(|part| !part.is_empty());
        for part in parts {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(part);
            id = match cgroups.get(&path) {
                Some(&known) => known,
                None => {
                    let weight = weights.get(path.as_str()).copied().flatten();
                    let name = home.name(&path);
                    let group = iosched::Cgroup { name, parent: Some(id), weight, leaf_weight: weight };
                    let new = driver.create_cgroup(group)?;
                    cgroups.insert(path.clone(), new);
                    new
                }
            };
        }
        ids.push(id);
    }
    Ok(ids)
}

/// A job in the simulation.
struct Worker<'a> {
    process: Process<'a>,
    life: Life,
    /// Time of the latest event that makes the job run. All other such events are obsolete.
    wake_ns: Option<u64>,
    /// The I/O that waits, because the queue had no room.
    blocked: Option<Blocked>,
    /// Time since when the queue has no room for all I/Os of the job, ns. `None` if it has room.
    refused_ns: Option<u64>,
    /// The disk of each of the job's files; empty if all files are on the first disk.
    disk_of_file: Vec<u32>,
}

/// An I/O that waits for room in the queue.
#[derive(Clone, Copy)]
struct Blocked {
    number: u32,
    disk: usize,
    /// Time at which fio counts this I/O as submitted, ns, if another thread submits it for the
    /// job.
    issued_ns: u64,
}

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Waiting,
    Running,
    Ended,
}

/// The jobs of a run.
pub(super) struct Jobs<'a> {
    workers: Vec<Worker<'a>>,
    crew: Crew<'a>,
    plug_from: u32,
    heap: Heap,
    host: Option<HostState>,
    buffered: u64,
    prioritised: u64,
    unaligned: u64,
}

impl<'a> Jobs<'a> {
    pub(super) fn new(jobs: &'a JobSet, layout: &Layout, seed: u64, plug_from: u32, host: Option<HostState>) -> Self {
        let worker = |(number, job): (usize, &'a Job)| Worker {
            process: Process::new(job, &layout.jobs[number], jobs.seed(number, seed)),
            life: Life::Waiting,
            wake_ns: None,
            blocked: None,
            refused_ns: None,
            disk_of_file: {
                let regions = &layout.jobs[number].regions;
                let is_on_one = regions.iter().all(|region| region.disk == 0);
                if is_on_one { Vec::new() } else { regions.iter().map(|region| region.disk).collect() }
            },
        };
        let mut workers: Vec<Worker<'a>> = jobs.iter().map(worker).collect();
        if host.is_some() {
            workers.iter_mut().for_each(|worker| worker.process.list_handled());
        }
        let buffered = workers.iter().filter(|worker| !worker.process.job.direct).count() as u64;
        let crew = Crew::new(jobs, seed);
        let heap = Heap::default();
        let mut jobs = Self { workers, crew, plug_from, heap, host, buffered, prioritised: 0, unaligned: 0 };
        jobs.obey(0);
        jobs
    }

    fn process(&mut self, task: u32) -> &mut Process<'a> {
        &mut self.workers[task as usize].process
    }

    // ---- starting and ending jobs

    /// Executes the crew's orders.
    fn obey(&mut self, now_ns: u64) {
        while let Some((number, order)) = self.crew.take_order() {
            let task = number as u32;
            match order {
                Order::Start { at_ns } => self.heap.push(at_ns, task, START),
                Order::Stop => {
                    self.process(task).stop();
                    self.wake_at(task, now_ns);
                }
                Order::Skip => {
                    self.workers[number].life = Life::Ended;
                    self.process(task).end(now_ns);
                }
            }
        }
    }

    fn start<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) {
        if !self.crew.starts(task as usize) {
            return;
        }
        self.workers[task as usize].life = Life::Running;
        let now_ns = now_ns(cores);
        let counted_ns = self.process(task).begin(now_ns);
        self.process(task).count_from(cores.all()[0].tally.warm_up_ns);
        if counted_ns > now_ns {
            cores.all_mut().iter_mut().for_each(|core| core.count(task, false));
            self.heap.push(counted_ns, task, COUNT);
        }
        self.go(cores, task);
    }

    fn end<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) {
        let now_ns = now_ns(cores);
        self.workers[task as usize].life = Life::Ended;
        self.process(task).end(now_ns);
        cores.all_mut().iter_mut().for_each(|core| core.exit(task));
        self.crew.ended(task as usize, now_ns);
        self.obey(now_ns);
    }

    /// Schedules a job to run at `at_ns`, unless it runs earlier.
    fn wake_at(&mut self, task: u32, at_ns: u64) {
        let wake_ns = &mut self.workers[task as usize].wake_ns;
        if wake_ns.is_none_or(|earlier| earlier > at_ns) {
            *wake_ns = Some(at_ns);
            self.heap.push(at_ns, task, RUN);
        }
    }

    // ---- submissions

    /// Runs a job now, or later when its processor is free.
    #[inline]
    fn go<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) {
        if let Some(host) = &mut self.host
            && !host.takes(task)
        {
            return;
        }
        self.run(cores, task);
        if let Some(host) = &mut self.host
            && let Some((processor, free_ns)) = host.ran(task, now_ns(cores))
        {
            self.heap.push(free_ns, processor, FREE);
        }
    }

    /// Continues a job until it waits.
    fn run<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) {
        let now_ns = now_ns(cores);
        loop {
            if !self.process(task).is_in_call() {
                let rest_ns = cores.all_mut().iter_mut().map(|core| core.rest_ns(task)).max().unwrap_or(0);
                if rest_ns > 0 {
                    self.wake_at(task, now_ns + rest_ns);
                    return;
                }
            }
            let action = self.process(task).step(now_ns);
            self.report_handled(cores, task);
            match action {
                Action::Submit => {
                    if !self.submit(cores, task) {
                        return;
                    }
                }
                Action::Flush => {
                    // The sync at the end of a job goes to the job's first disk.
                    let disk = self.disk_of(task, 0);
                    let core = &mut cores.all_mut()[disk];
                    if !core.is_exhausted() {
                        let asked_ns = now_ns;
                        let flush = NewIo {
                            op: Op::Flush,
                            flags: Flags::SYNC,
                            sector: 0,
                            nr_sectors: 0,
                            tag: FLUSH,
                            asked_ns,
                            issued: None,
                            part: Part::Whole,
                        };
                        core.submit(task, &flush);
                    }
                    return;
                }
                Action::Sleep(at_ns) => {
                    self.wake_at(task, at_ns);
                    return;
                }
                Action::Wait => return,
                Action::End => {
                    self.end(cores, task);
                    return;
                }
            }
        }
    }

    /// Reports the I/Os whose completion a job has handled so far.
    #[inline]
    fn report_handled<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) {
        while let Some((number, file)) = self.process(task).next_handled() {
            let disk = self.disk_of(task, file);
            cores.all_mut()[disk].handled(task, number);
        }
    }

    /// Returns the disk of a job's file.
    #[inline]
    fn disk_of(&self, task: u32, file: u32) -> usize {
        self.workers[task as usize].disk_of_file.get(file as usize).map_or(0, |&disk| disk as usize)
    }

    /// Submits the queued I/Os of a job. Returns false if the job cannot continue now.
    fn submit<D: Device, O: Observer, C: Cores<D, O>>(&mut self, cores: &mut C, task: u32) -> bool {
        let now_ns = now_ns(cores);
        let queued = self.process(task).queued();
        let plugged = queued as u32 >= self.plug_from;
        self.process(task).submitting(now_ns);
        let mut all = true;
        let is_exhausted = |cores: &C| cores.all().iter().any(Core::is_exhausted);
        while all && !is_exhausted(cores) {
            let process = self.process(task);
            let job = process.job;
            let Some((number, slot)) = process.next_queued() else { break };
            let io = self.new_io(job, &slot.io, number, slot.asked_ns);
            let disk = self.disk_of(task, slot.io.file);
            let core = &mut cores.all_mut()[disk];
            if plugged {
                core.plug(task);
            }
            all = core.submit(task, &io);
            if let Some(host) = &mut self.host {
                host.submitted(disk, now_ns);
            }
            let worker = &mut self.workers[task as usize];
            let refused_ns = worker.refused_ns.filter(|_| !job.waits_to_submit());
            let issued_ns = refused_ns.map_or(now_ns, |ns| ns.max(slot.asked_ns));
            if all {
                worker.process.taken(number, issued_ns);
            } else {
                worker.blocked = Some(Blocked { number, disk, issued_ns });
                worker.refused_ns.get_or_insert(now_ns);
                worker.process.blocked();
                core.count_late(worker.process.queued() as u64);
            }
        }
        if all {
            self.workers[task as usize].refused_ns = None;
        }
        if plugged {
            cores.all_mut().iter_mut().for_each(|core| core.unplug(task));
        }
        all && !is_exhausted(cores)
    }

    /// Converts a job's I/O into an I/O of the queue. If the I/O touches only a part of a sector,
    /// the whole sector is transferred.
    fn new_io(&mut self, job: &Job, io: &JobIo, tag: u32, asked_ns: u64) -> NewIo {
        let sector = io.start / SECTOR_BYTES;
        let end = (io.start + io.bytes).div_ceil(SECTOR_BYTES);
        let exact = io.start.is_multiple_of(SECTOR_BYTES) && io.bytes.is_multiple_of(SECTOR_BYTES);
        self.unaligned += u64::from(!exact);
        self.prioritised += u64::from(io.priority.is_some());
        let flags = flags(job, io);
        NewIo {
            op: op(io.direction),
            flags,
            sector,
            nr_sectors: (end - sector) as u32,
            tag,
            asked_ns,
            issued: None,
            part: Part::Whole,
        }
    }
}

/// Returns the operation of an I/O of a direction.
const fn op(direction: Direction) -> Op {
    match direction {
        Direction::Read => Op::Read,
        Direction::Write => Op::Write,
        Direction::Trim => Op::Discard,
    }
}

/// Largest direct I/O that Linux submits as one bio and waits for, bytes: 256 pages.
const WAITED_FOR_BYTES: u64 = 256 * 4096;

/// Returns the flags of a job's I/O. They are the flags that Linux sets for direct I/O on a block
/// device, and in writeback for buffered writes. A read has the sync flag only if the system call
/// itself waits for the read. With `O_SYNC` or `O_DSYNC`, a write is on the medium when it
/// completes.
fn flags(job: &Job, io: &JobIo) -> Flags {
    let mut flags = match io.direction {
        Direction::Read if job.direct && job.client == Client::Sync && io.bytes <= WAITED_FOR_BYTES => Flags::SYNC,
        Direction::Read => Flags::empty(),
        Direction::Write if job.direct => Flags::SYNC | Flags::IDLE,
        Direction::Write | Direction::Trim => Flags::empty(),
    };
    if io.direction == Direction::Write && job.open_sync != OpenSync::None {
        flags |= Flags::SYNC | Flags::FUA;
    }
    if io.barrier {
        flags |= Flags::PREFLUSH | Flags::FUA;
    }
    flags
}

impl<D: Device, O: Observer, C: Cores<D, O>> Source<D, O, C> for Jobs<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.heap.next_ns()
    }

    #[inline]
    fn clock_interrupt_ns(&self, now_ns: u64) -> u64 {
        self.host.as_ref().map_or(u64::MAX, |host| host.clock_interrupt_ns(now_ns))
    }

    fn has_more(&self) -> bool {
        self.workers.iter().any(|worker| worker.life != Life::Ended)
    }

    fn event(&mut self, cores: &mut C) {
        let Some(event) = self.heap.pop() else {
            return;
        };
        match event.what {
            START => self.start(cores, event.task),
            COUNT => {
                for core in cores.all_mut() {
                    core.job_counts();
                    core.count(event.task, true);
                }
            }
            FREE => match self.host.as_mut().map(|host| host.free(event.task, event.at_ns)) {
                Some(Freed::Later(free_ns)) => self.heap.push(free_ns, event.task, FREE),
                Some(Freed::For(Some(next))) => self.go(cores, next),
                Some(Freed::For(None)) | None => {}
            },
            _ => {
                let worker = &mut self.workers[event.task as usize];
                if worker.wake_ns == Some(event.at_ns) {
                    worker.wake_ns = None;
                    if worker.life == Life::Running && worker.process.wake(now_ns(cores)) {
                        self.go(cores, event.task);
                    }
                }
            }
        }
    }

    fn completed(&mut self, cores: &mut C, task: u32, tag: u32) {
        let now_ns = now_ns(cores);
        let process = self.process(task);
        let goes_on = if tag == FLUSH {
            process.flush_done(now_ns);
            true
        } else {
            process.io_done(tag)
        };
        if goes_on {
            self.wake_at(task, now_ns);
        }
        // After the limit of the run, a job gets no more events, so it drains now.
        if cores.all().iter().any(Core::is_exhausted) {
            self.process(task).drain(now_ns);
            self.report_handled(cores, task);
        }
    }

    fn woken(&mut self, cores: &mut C, disk: usize, task: u32) {
        let now_ns = now_ns(cores);
        if !cores.all_mut()[disk].resume(task) {
            return;
        }
        let worker = &mut self.workers[task as usize];
        if let Some(blocked) = worker.blocked.take_if(|blocked| blocked.disk == disk) {
            let waits = worker.process.job.waits_to_submit();
            worker.process.taken(blocked.number, if waits { now_ns } else { blocked.issued_ns });
        }
        if worker.process.unblocked() {
            self.go(cores, task);
        }
    }

    fn notes(&self, now_ns: u64, notes: &mut Vec<Note>) {
        if let Some(host) = &self.host {
            let percent = host.busy_percent(now_ns);
            if percent >= BUSY_PERCENT {
                notes.push(Note::ProcessorBusy { percent, cores: host.cores() });
            }
        }
        if self.buffered > 0 {
            notes.push(Note::NoPageCache { jobs: self.buffered });
        }
        if self.prioritised > 0 {
            notes.push(Note::PriorityPerIo { ios: self.prioritised });
        }
        if self.unaligned > 0 {
            notes.push(Note::PartSectors { ios: self.unaligned });
        }
        for Worker { process, .. } in self.workers.iter().filter(|worker| worker.process.has_failed()) {
            notes.push(Note::JobFailed { job: process.job.name.clone() });
        }
    }

    fn jobs(self, limit_ns: u64, now_ns: u64) -> Vec<JobResult> {
        let ended = |Worker { mut process, life, .. }: Worker<'_>| {
            match life {
                Life::Waiting => process.end(now_ns),
                Life::Running => process.end_at_limit(limit_ns, now_ns),
                Life::Ended => {}
            }
            process.into_result()
        };
        self.workers.into_iter().map(ended).collect()
    }
}
