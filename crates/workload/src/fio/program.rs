//! fio jobs as programs that make system calls, on a machine with a page cache.
//!
//! A job is a task that opens its files, with or without the page cache, and reads, writes and
//! syncs them. [`Process`] decides the next I/O and its time, as in all other runs. A direct I/O of
//! an asynchronous engine has a submission and a completion. A buffered I/O is complete when its
//! call returns. Therefore a job has only one buffered I/O at a time, even with an asynchronous
//! engine. libaio behaves in the same way.
//!
//! Files are laid out just before the jobs start. Files that a job reads, and files of jobs with
//! `overwrite`, contain data. Other files are as fio leaves them: with unwritten blocks, or without
//! blocks (`fallocate=none`).

use std::collections::VecDeque;

use super::crew::{Crew, Order};
use super::generator::JobIo;
use super::job::Job;
use super::jobs::Jobs;
use super::layout::{Layout, Region};
use super::process::{Action, Process};
use super::value::{Client, Direction, Mode, OpenSync, Placement};
use crate::app::{
    Advice, AppOutcome, AppTask, Application, Call, Contents, Existing, LaidOut, Node, OpenFlags, Report, Source, Step,
};
use crate::outcome::{Note, SyncKind};

/// Node of the device. The nodes of files follow.
const DEVICE: Node = Node::new(0);
/// Length of fio's file names, such as `job.0.0`.
const NAME_BYTES: u8 = 12;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// The job has no order to start yet.
    Waiting,
    /// The job starts at this time, ns.
    Called(u64),
    /// The job opens its files.
    Opening,
    Running,
    Ended,
}

/// System call that a job is executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// A call that moves data, and its start, ns.
    Io {
        number: u32,
        since_ns: u64,
    },
    /// A call that submits an I/O, and its start, ns.
    Begins {
        number: u32,
        since_ns: u64,
    },
    /// A call that syncs.
    Sync,
}

/// A running job.
struct Worker<'a> {
    process: Process<'a>,
    regions: &'a [Region],
    life: Life,
    doing: Doing,
    /// Whether the job is submitting queued I/Os.
    submits: bool,
    /// Whether the job is syncing the rest of `files`.
    syncs: bool,
    /// Whether the job waits or sleeps.
    idle: bool,
    /// Files that remain to be opened or synced.
    files: VecDeque<Node>,
    /// File of the last write.
    wrote: Option<Node>,
}

/// Jobs on a machine with a page cache.
pub struct JobProgram<'a> {
    tasks: Vec<AppTask>,
    laid_out: Vec<LaidOut>,
    workers: Vec<Worker<'a>>,
    crew: Crew<'a>,
    woken: VecDeque<usize>,
    counted_from_ns: u64,
    prioritised: u64,
    barriers: u64,
}

/// Returns the value of an option of a job, if given.
fn option<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    let given = job.options.iter().rev().chain(job.global_options.iter().rev());
    given.filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).next()
}

/// Returns the contents of a file that a job lays out.
fn contents(job: &Job) -> Contents {
    let overwrites = option(job, "overwrite").is_some_and(|value| value != "0");
    match option(job, "fallocate") {
        _ if job.mode != Mode::Write || overwrites => Contents::Written,
        Some("none" | "0" | "truncate") => Contents::Hole,
        _ => Contents::Preallocated,
    }
}

/// Returns the advice that a job gives for its files.
fn advice(job: &Job) -> Advice {
    match (option(job, "fadvise_hint").unwrap_or("1"), job.placement) {
        ("sequential", _) | ("1", Placement::Sequential { .. }) => Advice::Sequential,
        ("random", _) | ("1", Placement::Random { .. }) => Advice::Random,
        _ => Advice::Normal,
    }
}

/// Returns whether a job bypasses the page cache. Replayed logs bypass it because they were
/// recorded below the page cache.
const fn is_direct(job: &Job) -> bool {
    job.direct || job.replay.is_some()
}

fn node(region: &Region) -> Node {
    region.file.map_or(DEVICE, |file| Node::new(file + 1))
}

impl<'a> JobProgram<'a> {
    /// Creates the program of the jobs with the places of `layout`. I/Os before `counted_from_ns`
    /// do not count.
    #[must_use]
    pub fn new(jobs: &'a Jobs, layout: &'a Layout, seed: u64, counted_from_ns: u64) -> Self {
        let names = jobs.names();
        let worker = |(number, job): (usize, &'a Job)| Worker {
            process: Process::new(job, &layout.jobs[number], jobs.seed(number, seed)),
            regions: &layout.jobs[number].regions,
            life: Life::Waiting,
            doing: Doing::Nothing,
            submits: false,
            syncs: false,
            idle: false,
            files: VecDeque::new(),
            wrote: None,
        };
        let mut program = Self {
            tasks: jobs.iter().map(|(number, _)| AppTask { name: names[number].clone() }).collect(),
            laid_out: lay_out(jobs, layout),
            workers: jobs.iter().map(worker).collect(),
            crew: Crew::new(jobs, seed),
            woken: VecDeque::new(),
            counted_from_ns,
            prioritised: 0,
            barriers: 0,
        };
        program.obey(0);
        program
    }

    /// Executes the orders that the crew gives to jobs.
    fn obey(&mut self, now_ns: u64) {
        while let Some((number, order)) = self.crew.take_order() {
            let worker = &mut self.workers[number];
            match order {
                Order::Start { at_ns } => worker.life = Life::Called(at_ns),
                Order::Stop => worker.process.stop(),
                Order::Skip => {
                    worker.life = Life::Ended;
                    worker.process.end(now_ns);
                }
            }
            self.wake(number);
        }
    }

    /// Wakes a job that waits or sleeps.
    fn wake(&mut self, number: usize) {
        if std::mem::take(&mut self.workers[number].idle) {
            self.woken.push_back(number);
        }
    }

    fn rest(&mut self, task: usize, step: Step) -> Step {
        self.workers[task].idle = true;
        step
    }

    /// Collects the files of a job. Each file appears once.
    fn begin_to_open(&mut self, task: usize) {
        let worker = &mut self.workers[task];
        let mut files: Vec<Node> = worker.regions.iter().map(node).collect();
        files.sort_unstable();
        files.dedup();
        worker.files = files.into();
        worker.life = Life::Opening;
    }

    /// Returns the call that opens the next file. When all files are open, begins the job and
    /// returns `None`.
    fn open_next(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let worker = &mut self.workers[task];
        if let Some(node) = worker.files.pop_front() {
            let job = worker.process.job;
            let flags = OpenFlags {
                direct: is_direct(job),
                sync: job.open_sync != OpenSync::None,
                data_only: job.open_sync == OpenSync::Dsync,
                advice: advice(job),
                ..OpenFlags::default()
            };
            return Some(Step::Call(Call::Open { parent: Node::root(0), node, name_bytes: NAME_BYTES, flags }));
        }
        worker.life = Life::Running;
        worker.process.begin(now_ns);
        worker.process.count_from(self.counted_from_ns);
        None
    }

    /// Runs a job until it makes a call or waits.
    fn run(&mut self, task: usize, now_ns: u64) -> Step {
        loop {
            if let Some(step) = self.submit_next(task, now_ns) {
                return step;
            }
            match self.workers[task].process.step(now_ns) {
                Action::Submit => {
                    let worker = &mut self.workers[task];
                    worker.process.submitting(now_ns);
                    worker.submits = true;
                }
                Action::Flush => {
                    if let Some(step) = self.begin_to_sync(task, now_ns) {
                        return step;
                    }
                }
                Action::Sleep(until_ns) => return self.rest(task, Step::Sleep { until_ns }),
                Action::Wait => return self.rest(task, Step::Wait),
                Action::End => {
                    let worker = &mut self.workers[task];
                    worker.life = Life::Ended;
                    worker.process.end(now_ns);
                    self.crew.ended(task, now_ns);
                    self.obey(now_ns);
                    return Step::Exit;
                }
            }
        }
    }

    /// Returns the call for the next queued I/O of a job. `None` if nothing is queued.
    fn submit_next(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let worker = &mut self.workers[task];
        if !worker.submits {
            return None;
        }
        let Some((number, slot)) = worker.process.next_queued() else {
            worker.submits = false;
            return None;
        };
        let job = worker.process.job;
        let io = slot.io;
        let region = worker.regions[io.file as usize];
        let node = node(&region);
        self.prioritised += u64::from(io.priority.is_some());
        self.barriers += u64::from(io.barrier);
        if io.direction != Direction::Read {
            worker.wrote = Some(node);
        }
        let begins = is_direct(job) && job.client == Client::Async && io.direction != Direction::Trim;
        worker.doing = match begins {
            true => Doing::Begins { number, since_ns: now_ns },
            false => Doing::Io { number, since_ns: now_ns },
        };
        Some(Step::Call(call(&io, node, region.file_start, begins.then_some(number))))
    }

    /// Records the effect of a call that has returned.
    fn returned(&mut self, task: usize, now_ns: u64) {
        let worker = &mut self.workers[task];
        match std::mem::replace(&mut worker.doing, Doing::Nothing) {
            Doing::Nothing => {}
            Doing::Io { number, since_ns } => {
                // For a synchronous engine, the completion latency begins at the start of the call.
                // For other engines, the call is the submission.
                let job = worker.process.job;
                let submits = job.client == Client::Async && job.waits_to_submit();
                worker.process.taken(number, if submits { now_ns } else { since_ns });
                worker.process.io_done(number);
            }
            Doing::Begins { number, since_ns } => {
                let waits = worker.process.job.waits_to_submit();
                worker.process.taken(number, if waits { now_ns } else { since_ns });
            }
            Doing::Sync => {}
        }
    }

    /// Begins to sync the file of the last write or, at the end of the job, all files.
    fn begin_to_sync(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let worker = &mut self.workers[task];
        worker.files = match worker.process.is_ending() {
            true => worker.regions.iter().map(node).collect(),
            false => worker.wrote.into_iter().collect(),
        };
        worker.files.make_contiguous().sort_unstable();
        worker.syncs = true;
        self.sync_next(task, now_ns)
    }

    /// Returns the call that syncs the next file. Returns `None` if all files are synced.
    fn sync_next(&mut self, task: usize, now_ns: u64) -> Option<Step> {
        let worker = &mut self.workers[task];
        let Some(node) = worker.files.pop_front() else {
            worker.syncs = false;
            worker.process.flush_done(now_ns);
            return None;
        };
        worker.doing = Doing::Sync;
        let data_only = worker.process.sync_kind() == SyncKind::Fdatasync;
        Some(Step::Call(if data_only { Call::Fdatasync { node } } else { Call::Fsync { node } }))
    }
}

/// Returns the system call of an I/O. If `begins` has a tag, the call only submits the I/O.
fn call(io: &JobIo, node: Node, file_start: u64, begins: Option<u32>) -> Call {
    let (offset, bytes) = (io.start - file_start, io.bytes);
    let is_write = io.direction == Direction::Write;
    match (io.direction, begins) {
        (_, Some(tag)) => Call::Submit { node, is_write, offset, bytes, tag },
        (Direction::Read, None) => Call::Read { node, offset, bytes, calls: 1 },
        (Direction::Write, None) => Call::Write { node, offset, bytes, calls: 1, source: Source::Buffer },
        (Direction::Trim, None) => Call::Discard { node, offset, bytes },
    }
}

/// Returns the device and the files of all jobs, with their contents when the jobs start.
fn lay_out(jobs: &Jobs, layout: &Layout) -> Vec<LaidOut> {
    let mut files = vec![LaidOut { node: DEVICE, bytes: 0, contents: Contents::Device }];
    let file = |(number, &bytes): (u32, &u64)| LaidOut { node: Node::new(number), bytes, contents: Contents::Hole };
    files.extend((1..).zip(&layout.files).map(file));
    // This includes files of jobs that do not run, so that a run of a single job has the same
    // places.
    for (job, laid_out) in jobs.file().jobs.iter().zip(&layout.jobs) {
        for number in laid_out.regions.iter().filter_map(|region| region.file) {
            let known = &mut files[number as usize + 1].contents;
            *known = match (*known, contents(job)) {
                (Contents::Written, _) | (_, Contents::Written) => Contents::Written,
                (Contents::Preallocated, _) | (_, Contents::Preallocated) => Contents::Preallocated,
                _ => Contents::Hole,
            };
        }
    }
    files
}

impl Application for JobProgram<'_> {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &[]
    }

    fn laid_out(&self) -> &[LaidOut] {
        &self.laid_out
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        self.returned(task, now_ns);
        if std::mem::take(&mut self.workers[task].idle) && self.workers[task].life == Life::Running {
            self.workers[task].process.wake(now_ns);
        }
        loop {
            match self.workers[task].life {
                Life::Waiting => return self.rest(task, Step::Wait),
                Life::Called(at_ns) if at_ns > now_ns => return self.rest(task, Step::Sleep { until_ns: at_ns }),
                Life::Called(_) => {
                    self.crew.starts(task);
                    self.begin_to_open(task);
                }
                Life::Opening => {
                    if let Some(step) = self.open_next(task, now_ns) {
                        return step;
                    }
                }
                Life::Running if self.workers[task].syncs => {
                    if let Some(step) = self.sync_next(task, now_ns) {
                        return step;
                    }
                }
                Life::Running => return self.run(task, now_ns),
                Life::Ended => return Step::Exit,
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        self.woken.pop_front()
    }

    fn done(&mut self, task: usize, tag: u32, _now_ns: u64) {
        if self.workers[task].process.io_done(tag) {
            self.wake(task);
        }
    }

    fn progress(&self) -> f64 {
        let ended = self.workers.iter().filter(|worker| worker.life == Life::Ended).count();
        ended as f64 / self.workers.len().max(1) as f64
    }

    fn report(&self) -> Report {
        Report::default()
    }

    fn outcome(&mut self, now_ns: u64) -> AppOutcome {
        let mut outcome = AppOutcome::default();
        let one_by_one = |worker: &&Worker<'_>| {
            let job = worker.process.job;
            !is_direct(job) && job.client == Client::Async && job.io_depth > 1
        };
        let jobs = self.workers.iter().filter(one_by_one).count() as u64;
        if jobs > 0 {
            outcome.notes.push(Note::BufferedOneByOne { jobs });
        }
        let unfinished = |job: &Job| !is_direct(job) && job.sync_file_range_ios > 0;
        let jobs = self.workers.iter().filter(|worker| unfinished(worker.process.job)).count() as u64;
        if jobs > 0 {
            outcome.notes.push(Note::NoRangeSync { jobs });
        }
        if self.prioritised > 0 {
            outcome.notes.push(Note::PriorityPerIo { ios: self.prioritised });
        }
        if self.barriers > 0 {
            outcome.notes.push(Note::NoBarriers { ios: self.barriers });
        }
        for worker in std::mem::take(&mut self.workers) {
            let Worker { mut process, life, .. } = worker;
            if life != Life::Ended {
                process.end(now_ns);
            }
            if process.has_failed() {
                outcome.notes.push(Note::JobFailed { job: process.job.name.clone() });
            }
            outcome.jobs.push(process.into_result());
        }
        outcome
    }
}
