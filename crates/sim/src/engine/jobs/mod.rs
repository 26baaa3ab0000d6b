//! fio jobs at work: who starts when, what each submits, and what that was like.
//!
//! Jobs are processes that run their own loops ([`process`]); here is what lies between them and the queue, and
//! among them: `stonewall`, `wait_for`, `startdelay`, `exitall`. There is no page cache: buffered I/Os go to the
//! device as direct ones do, but nobody waits for the writes as far as the elevator knows.

mod pace;
mod process;
mod stats;
mod target;

use std::collections::BTreeMap;

use iosched::{CgroupId, Flags, Op, RequestQueue, SECTOR_BYTES};
use iosched_disk::Device;
use iosched_workload::fio::{Direction, ExitWhat, Job, JobIo, Jobs as JobSet, Layout, OpenSync};

use self::process::{Action, Life, Process};
use super::Source;
use super::core::{Core, NewIo};
use super::heap::Heap;
use crate::job_result::JobResult;
use crate::observer::Observer;
use crate::plan::SimError;
use crate::result::Note;

/// Tag of a flush; data has the number of its slot.
const FLUSH: u32 = u32::MAX;

/// A job may start.
const START: u32 = 0;
/// A job may go on.
const RUN: u32 = 1;
/// A job's figures begin to count.
const COUNT: u32 = 2;

/// Makes the cgroups of jobs; returns that of each job of the file.
pub(super) fn create_cgroups(queue: &mut RequestQueue, jobs: &JobSet) -> Result<Vec<CgroupId>, SimError> {
    let mut weights: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    for member in jobs.file().jobs.iter().filter_map(|job| job.cgroup.as_ref()) {
        // The last job that sets a weight has it, as with a write to the file.
        let weight = weights.entry(member.name.trim_matches('/')).or_default();
        *weight = member.weight.or(*weight);
    }
    let mut made: BTreeMap<String, CgroupId> = BTreeMap::new();
    let mut ids = Vec::with_capacity(jobs.file().jobs.len());
    for job in &jobs.file().jobs {
        let mut id = CgroupId::ROOT;
        let mut path = String::new();
        let parts = job.cgroup.iter().flat_map(|member| member.name.split('/')).filter(|part| !part.is_empty());
        for part in parts {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(part);
            id = match made.get(&path) {
                Some(&known) => known,
                None => {
                    let weight = weights.get(path.as_str()).copied().flatten();
                    let name = path.clone();
                    let group = iosched::Cgroup { name, parent: Some(id), weight, leaf_weight: weight };
                    let new = queue.create_cgroup(group)?;
                    made.insert(path.clone(), new);
                    new
                }
            };
        }
        ids.push(id);
    }
    Ok(ids)
}

/// Names for people: copies of a job are told apart.
pub(super) fn names(jobs: &JobSet) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    jobs.file().jobs.iter().for_each(|job| *counts.entry(&job.name).or_default() += 1);
    let name = |job: &Job| match counts.get(job.name.as_str()) {
        Some(2..) => format!("{}.{}", job.name, job.copy),
        _ => job.name.clone(),
    };
    jobs.file().jobs.iter().map(name).collect()
}

/// Jobs at work.
pub(super) struct Jobs<'a> {
    processes: Vec<Process<'a>>,
    /// They do not wait for one another.
    alone: bool,
    plug: bool,
    heap: Heap,
    /// Of each task: the I/O that the queue had no room for.
    blocked: Vec<Option<u32>>,
    buffered: u64,
    prioritised: u64,
    unaligned: u64,
}

impl<'a> Jobs<'a> {
    pub(super) fn new(jobs: &'a JobSet, layout: &Layout, seed: u64, plug: bool) -> Self {
        let processes: Vec<Process<'a>> =
            jobs.iter().map(|(number, job)| Process::new(job, &layout.jobs[number], jobs.seed(number, seed))).collect();
        let buffered = processes.iter().filter(|process| !process.job.direct).count() as u64;
        let blocked = vec![None; processes.len()];
        let alone = jobs.is_alone();
        let mut jobs =
            Self { processes, alone, plug, heap: Heap::default(), blocked, buffered, prioritised: 0, unaligned: 0 };
        jobs.start_ready(0);
        jobs
    }

    // ---- who starts and ends when

    /// Schedules the start of jobs that wait for nobody any more.
    fn start_ready(&mut self, now_ns: u64) {
        for i in 0..self.processes.len() {
            let job = self.processes[i].job;
            let before = &self.processes[..i];
            if !self.alone && job.stonewall && before.iter().any(|earlier| earlier.life != Life::Ended) {
                return;
            }
            let awaited = job.wait_for.as_ref().filter(|_| !self.alone);
            let waits = awaited.is_some_and(|name| {
                before.iter().any(|earlier| earlier.job.name == *name && earlier.life != Life::Ended)
            });
            let process = &mut self.processes[i];
            if process.life == Life::Waiting && !waits && process.wake_ns.is_none() {
                let at_ns = process.delay_ns().max(now_ns);
                process.wake_ns = Some(at_ns);
                self.heap.push(at_ns, i as u32, START);
            }
        }
    }

    fn start<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        let process = &mut self.processes[task as usize];
        process.wake_ns = None;
        if process.life != Life::Waiting {
            return;
        }
        let counted_ns = process.begin(core.now_ns);
        if counted_ns > core.now_ns {
            core.count(task, false);
            self.heap.push(counted_ns, task, COUNT);
        }
        self.run(core, task);
    }

    fn end<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        let process = &mut self.processes[task as usize];
        process.life = Life::Ended;
        process.end(core.now_ns);
        let (group, exit_all) = (process.job.group, process.job.exit_all);
        core.exit(task);
        if let Some(what) = exit_all {
            for other in 0..self.processes.len() {
                let Process { job, life, .. } = self.processes[other];
                let meant = match what {
                    ExitWhat::Group => job.group == group,
                    ExitWhat::Stonewall => life == Life::Running,
                    ExitWhat::All => true,
                };
                if meant {
                    self.stop(other as u32, core.now_ns);
                }
            }
        }
        self.start_ready(core.now_ns);
    }

    /// A job is to end.
    fn stop(&mut self, task: u32, now_ns: u64) {
        let process = &mut self.processes[task as usize];
        match process.life {
            Life::Waiting => {
                process.life = Life::Ended;
                process.end(now_ns);
            }
            Life::Running => {
                process.stop();
                self.wake_at(task, now_ns);
            }
            Life::Ended => {}
        }
    }

    /// Lets a job run at a moment, if it does not before.
    fn wake_at(&mut self, task: u32, at_ns: u64) {
        let wake_ns = &mut self.processes[task as usize].wake_ns;
        if wake_ns.is_none_or(|earlier| earlier > at_ns) {
            *wake_ns = Some(at_ns);
            self.heap.push(at_ns, task, RUN);
        }
    }

    // ---- what they submit

    /// A job goes on until it waits.
    fn run<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        loop {
            match self.processes[task as usize].step(core.now_ns) {
                Action::Submit => {
                    if !self.submit(core, task) {
                        return;
                    }
                }
                Action::Flush => {
                    if !core.is_exhausted() {
                        let asked_ns = core.now_ns;
                        let flush = NewIo {
                            op: Op::Flush,
                            flags: Flags::SYNC,
                            sector: 0,
                            nr_sectors: 0,
                            tag: FLUSH,
                            asked_ns,
                            issued: None,
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
                    self.end(core, task);
                    return;
                }
            }
        }
    }

    /// Submits what a job has queued. `false`: the job cannot go on now.
    fn submit<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) -> bool {
        let queued = self.processes[task as usize].queued();
        let plugged = self.plug && queued > 1;
        self.processes[task as usize].submitting(core.now_ns);
        let mut all = true;
        while all && !core.is_exhausted() {
            let process = &mut self.processes[task as usize];
            let job = process.job;
            let Some((number, slot)) = process.next_queued() else { break };
            let io = self.new_io(job, &slot.io, number, slot.asked_ns);
            if plugged {
                core.plug(task);
            }
            all = core.submit(task, &io);
            let process = &mut self.processes[task as usize];
            if all {
                process.taken(number, core.now_ns);
            } else {
                self.blocked[task as usize] = Some(number);
                process.blocked();
                core.count_late(process.queued() as u64);
            }
        }
        if plugged {
            core.unplug(task);
        }
        all && !core.is_exhausted()
    }

    /// A job's I/O as the queue is asked for it. A sector that it touches is moved whole.
    fn new_io(&mut self, job: &Job, io: &JobIo, tag: u32, asked_ns: u64) -> NewIo {
        let sector = io.start / SECTOR_BYTES;
        let end = (io.start + io.bytes).div_ceil(SECTOR_BYTES);
        let exact = io.start.is_multiple_of(SECTOR_BYTES) && io.bytes.is_multiple_of(SECTOR_BYTES);
        self.unaligned += u64::from(!exact);
        self.prioritised += u64::from(io.priority.is_some());
        let flags = flags(job, io);
        NewIo {
            op: pace::op(io.direction),
            flags,
            sector,
            nr_sectors: (end - sector) as u32,
            tag,
            asked_ns,
            issued: None,
        }
    }
}

/// How a job's I/O is flagged: as Linux does for direct I/O on a block device, and for buffered writes as its writeback.
/// With `O_SYNC` or `O_DSYNC` a write is on the medium when it is done.
fn flags(job: &Job, io: &JobIo) -> Flags {
    let mut flags = match io.direction {
        Direction::Read => Flags::SYNC,
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

impl<D: Device, O: Observer> Source<D, O> for Jobs<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.heap.next_ns()
    }

    fn event(&mut self, core: &mut Core<D, O>) {
        let Some(event) = self.heap.pop() else {
            return;
        };
        match event.what {
            START => self.start(core, event.task),
            COUNT => core.count(event.task, true),
            _ => {
                let process = &mut self.processes[event.task as usize];
                if process.wake_ns == Some(event.at_ns) {
                    process.wake_ns = None;
                    if process.life == Life::Running && process.wake(core.now_ns) {
                        self.run(core, event.task);
                    }
                }
            }
        }
    }

    fn completed(&mut self, core: &mut Core<D, O>, task: u32, tag: u32) {
        let process = &mut self.processes[task as usize];
        let goes_on = if tag == FLUSH {
            process.flush_done(core.now_ns);
            true
        } else {
            process.io_done(tag)
        };
        if goes_on {
            self.wake_at(task, core.now_ns);
        }
    }

    fn woken(&mut self, core: &mut Core<D, O>, task: u32) {
        if !core.resume(task) {
            return;
        }
        if let Some(number) = self.blocked[task as usize].take() {
            self.processes[task as usize].taken(number, core.now_ns);
        }
        if self.processes[task as usize].unblocked() {
            self.run(core, task);
        }
    }

    fn notes(&self, notes: &mut Vec<Note>) {
        if self.buffered > 0 {
            notes.push(Note::NoPageCache { jobs: self.buffered });
        }
        if self.prioritised > 0 {
            notes.push(Note::PriorityPerIo { ios: self.prioritised });
        }
        if self.unaligned > 0 {
            notes.push(Note::PartSectors { ios: self.unaligned });
        }
        for process in self.processes.iter().filter(|process| process.has_failed()) {
            notes.push(Note::JobFailed { job: process.job.name.clone() });
        }
    }

    fn jobs(self, now_ns: u64) -> (Vec<JobResult>, u64) {
        let counted_ns = self.processes.iter().map(Process::counted_ns).min().unwrap_or(0);
        let ended = |mut process: Process<'_>| {
            if process.life != Life::Ended {
                process.end(now_ns);
            }
            process.into_result()
        };
        (self.processes.into_iter().map(ended).collect(), counted_ns)
    }
}
