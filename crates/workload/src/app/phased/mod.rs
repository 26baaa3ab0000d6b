//! Programs that access files in phases: bonnie++ and sysbench.
//!
//! A [`Plan`] has the files and the phases. All tasks begin a phase together, after each task has
//! opened the files. The time of a phase does not include opening and closing.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use iosched_numbers::{Histogram, SplitMix64};

use crate::app::{AppOutcome, AppTask, Application, Call, Existing, Node, OpenFlags, Report, Source, Step};
use crate::outcome::Note;

/// Length of file names, for places where the exact length does not matter.
const NAME_BYTES: u8 = 12;
/// Number of blocks of one sequential step, if the latency of each call is not measured.
const RUN_BLOCKS: u64 = 64;

/// Access that a request makes to its block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Action {
    Read,
    Write,
    /// Reads the block and writes it again.
    Rewrite,
    /// Reads the block. If the number of the request is a multiple of `every`, also writes it
    /// again.
    ReadAndUpdate {
        every: u64,
    },
    /// Reads or writes, with this number of reads per write.
    Mixed {
        reads_per_write: f64,
    },
}

/// Order of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// From the first block of the first file to the last block of the last file. Then the phase
    /// ends.
    Once,
    /// The same order. After the last block, the phase continues with the first block.
    Around,
    /// Uniformly random blocks.
    Random,
}

/// System calls that sync, and the points at which a program makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Syncs {
    /// Whether to use `fdatasync` instead of `fsync`.
    pub(super) data_only: bool,
    /// Number of requests after which all files are synced, if any file was written; 0: never.
    pub(super) every_requests: u64,
    /// Whether the file is synced after each write.
    pub(super) each_write: bool,
    /// Whether all files are synced after the last request.
    pub(super) at_end: bool,
}

/// A phase of a program.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// Number of tasks that take part, counted from the first task.
    pub(super) tasks: usize,
    pub(super) action: Action,
    pub(super) order: Order,
    pub(super) block_bytes: u64,
    /// Largest part of each file that is used, bytes.
    pub(super) file_bytes_max: u64,
    pub(super) flags: OpenFlags,
    /// Total number of requests after which the phase ends. Calls that sync all files also count.
    pub(super) requests: Option<u64>,
    /// Time after which the phase ends, ns.
    pub(super) duration_ns: Option<u64>,
    /// CPU time of a task for each block, ns.
    pub(super) compute_ns: u64,
    pub(super) syncs: Syncs,
    /// Whether the latency of each request is measured. The task then makes requests one at a time.
    pub(super) has_latency: bool,
}

/// A program: its files, all of one size, and its phases.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Name of the tasks.
    pub(super) program: &'static str,
    /// Size of each file, bytes.
    pub(super) files: Vec<u64>,
    /// Whether the files exist at the start.
    pub(super) files_exist: bool,
    pub(super) tasks: usize,
    pub(super) phases: Vec<Phase>,
    /// Function that creates the report of the original program.
    pub(super) report: fn(&[PhaseResult]) -> Report,
    /// Notes for readers of the results.
    pub(super) notes: Vec<Note>,
}

/// Results of a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseResult {
    pub(super) name: &'static str,
    pub(super) requests: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) syncs: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    /// Latencies of reads, writes and syncs, if they are measured.
    pub(super) latency: Histogram,
    start_ns: u64,
    end_ns: u64,
}

impl PhaseResult {
    /// Returns the duration, s; more than 0.
    pub(super) fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns).max(1) as f64 / 1e9
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open(usize),
    /// Wait until the other tasks have opened their files.
    Begin,
    Work,
    /// Sync all files after the last request of all tasks.
    SyncAll(usize),
    Close(usize),
    /// Wait for the other tasks.
    Next,
    Ended,
}

/// Counter of a task that a step increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Nothing,
    Reads { blocks: u64 },
    Writes { blocks: u64 },
    Sync,
}

#[derive(Clone, Debug)]
struct Worker {
    stage: Stage,
    /// Remaining steps of the current request.
    steps: VecDeque<(Step, Counted)>,
    /// Category and start of the last step.
    last: (Counted, u64),
}

/// A running program.
#[derive(Debug)]
pub(super) struct Phased {
    plan: Plan,
    tasks: Vec<AppTask>,
    existing: Vec<Existing>,
    workers: Vec<Worker>,
    /// Number of the current phase.
    phase: usize,
    results: Vec<PhaseResult>,
    rng: SplitMix64,
    /// Next block of a sequential phase, counted from the start of the first file.
    next_block: u64,
    /// Requests in this phase.
    requests: u64,
    /// Calls in this phase that sync all files.
    syncs: u64,
    /// Next file of a sync of all files.
    sync_next: Option<usize>,
    /// Whether any file was written since the last sync of all files.
    dirty: bool,
    /// Tasks that have not made their last request of the phase.
    working: usize,
    waiting: usize,
    woken: std::ops::Range<usize>,
    /// The last task to arrive. This task does not wait, so nothing wakes it.
    awake: usize,
}

const fn node(file: usize) -> Node {
    Node::new(file as u32)
}

impl Phased {
    pub(super) fn new(plan: Plan, seed: u64) -> Self {
        let name = |task: usize| match plan.tasks {
            1 => plan.program.to_owned(),
            _ => format!("{} {task}", plan.program),
        };
        let tasks = (0..plan.tasks).map(|task| AppTask { name: name(task) }).collect();
        let file = |(number, &bytes): (usize, &u64)| Existing {
            node: node(number),
            parent: Node::root(0),
            name_bytes: NAME_BYTES,
            bytes: Some(bytes),
        };
        let existing = plan.files.iter().enumerate().filter(|_| plan.files_exist).map(file).collect();
        let worker = Worker { stage: Stage::Open(0), steps: VecDeque::new(), last: (Counted::Nothing, 0) };
        let mut phased = Self {
            tasks,
            existing,
            workers: vec![worker; plan.tasks],
            phase: 0,
            results: Vec::new(),
            rng: SplitMix64::new(seed),
            next_block: 0,
            requests: 0,
            syncs: 0,
            sync_next: None,
            dirty: false,
            working: 0,
            waiting: 0,
            woken: 0..0,
            awake: usize::MAX,
            plan,
        };
        phased.begin_phase();
        phased
    }

    /// Prepares the next phase, or ends the program.
    fn begin_phase(&mut self) {
        (self.next_block, self.requests, self.syncs, self.sync_next, self.dirty) = (0, 0, 0, None, false);
        let Some(phase) = self.plan.phases.get(self.phase) else {
            self.workers.iter_mut().for_each(|worker| worker.stage = Stage::Ended);
            return;
        };
        self.working = phase.tasks;
        self.results.push(PhaseResult { name: phase.name, ..PhaseResult::default() });
        for (number, worker) in self.workers.iter_mut().enumerate() {
            worker.stage = if number < phase.tasks { Stage::Open(0) } else { Stage::Begin };
        }
    }

    /// Records that `task` has reached this point. Returns whether all tasks have reached it. The
    /// last task does not wait, and wakes the other tasks.
    fn meet(&mut self, task: usize) -> bool {
        self.waiting += 1;
        if self.waiting < self.workers.len() {
            return false;
        }
        self.waiting = 0;
        self.woken = 0..self.workers.len();
        self.awake = task;
        true
    }

    /// Counts the last step of a task.
    fn count(&mut self, task: usize, now_ns: u64) {
        let (counted, from_ns) = std::mem::replace(&mut self.workers[task].last, (Counted::Nothing, now_ns));
        let (Some(phase), Some(result)) = (self.plan.phases.get(self.phase), self.results.last_mut()) else { return };
        match counted {
            Counted::Nothing => return,
            Counted::Reads { blocks } => {
                result.reads += blocks;
                result.bytes_read += blocks * phase.block_bytes;
            }
            Counted::Writes { blocks } => {
                result.writes += blocks;
                result.bytes_written += blocks * phase.block_bytes;
            }
            Counted::Sync => result.syncs += 1,
        }
        result.end_ns = result.end_ns.max(now_ns);
        if phase.has_latency {
            result.latency.record(now_ns - from_ns);
        }
    }

    fn sync(&self, phase: &Phase, file: usize) -> (Step, Counted) {
        let node = node(file);
        let call = if phase.syncs.data_only { Call::Fdatasync { node } } else { Call::Fsync { node } };
        (Step::Call(call), Counted::Sync)
    }

    /// Returns the number of blocks of a file that the phase uses.
    fn file_blocks(&self, phase: &Phase, file: usize) -> u64 {
        self.plan.files[file].min(phase.file_bytes_max) / phase.block_bytes
    }

    /// Returns the file of a block, and the block's offset in this file. Blocks are numbered from
    /// the start of the first file.
    fn place(&self, phase: &Phase, mut block: u64) -> Option<(usize, u64)> {
        for file in 0..self.plan.files.len() {
            let blocks = self.file_blocks(phase, file);
            if block < blocks {
                return Some((file, block * phase.block_bytes));
            }
            block -= blocks;
        }
        None
    }

    /// Adds the steps of the next request to a task's list. Returns `false` if there is no next
    /// request.
    fn next_request(&mut self, task: usize, now_ns: u64) -> bool {
        let phase = self.plan.phases[self.phase].clone();
        let start_ns = self.results.last().map_or(0, |result| result.start_ns);
        if phase.duration_ns.is_some_and(|duration_ns| now_ns >= start_ns.saturating_add(duration_ns)) {
            return false;
        }
        if phase.requests.is_some_and(|most| self.requests + self.syncs >= most) {
            return false;
        }
        if let Some(file) = self.sync_next {
            self.sync_next = Some(file + 1).filter(|&next| next < self.plan.files.len());
            self.syncs += 1;
            let step = self.sync(&phase, file);
            self.workers[task].steps.push_back(step);
            return true;
        }
        let all_blocks: u64 = (0..self.plan.files.len()).map(|file| self.file_blocks(&phase, file)).sum();
        let block = match phase.order {
            Order::Random => self.rng.below(all_blocks),
            Order::Around if self.next_block >= all_blocks => 0,
            Order::Once | Order::Around => self.next_block,
        };
        let Some((file, offset)) = self.place(&phase, block) else { return false };
        let mut blocks = 1;
        let plain = matches!(phase.action, Action::Read | Action::Write);
        if plain && !phase.has_latency && phase.order == Order::Once && !phase.syncs.each_write {
            blocks = RUN_BLOCKS.min(self.file_blocks(&phase, file) - offset / phase.block_bytes);
        }
        self.next_block = block + blocks;
        self.requests += blocks;
        self.queue(task, &phase, file, (offset, blocks));
        let Syncs { every_requests, .. } = phase.syncs;
        if every_requests > 0 && self.dirty && self.requests.is_multiple_of(every_requests) {
            self.dirty = false;
            self.sync_next = Some(0);
        }
        true
    }

    /// Adds the steps of one request, or of several equal requests, to a task's list.
    fn queue(&mut self, task: usize, phase: &Phase, file: usize, (offset, calls): (u64, u64)) {
        let (node, bytes) = (node(file), phase.block_bytes);
        let read = (Step::Call(Call::Read { node, offset, bytes, calls }), Counted::Reads { blocks: calls });
        let write = Call::Write { node, offset, bytes, calls, source: Source::Buffer };
        let write = (Step::Call(write), Counted::Writes { blocks: calls });
        let Some(result) = self.results.last_mut() else { return };
        result.requests += calls;
        let (reads, writes) = match phase.action {
            Action::Read => (true, false),
            Action::Write => (false, true),
            Action::Rewrite => (true, true),
            Action::ReadAndUpdate { every } => (true, result.requests.is_multiple_of(every)),
            Action::Mixed { reads_per_write } => {
                // The ratio of reads and writes is correct at any time, even if requests are in
                // flight.
                let written = (result.requests as f64 / (1.0 + reads_per_write)).floor();
                let written_before = ((result.requests - 1) as f64 / (1.0 + reads_per_write)).floor();
                (written == written_before, written > written_before)
            }
        };
        let sync = self.sync(phase, file);
        let steps = &mut self.workers[task].steps;
        if phase.compute_ns > 0 {
            steps.push_back((Step::Compute { ns: phase.compute_ns * calls }, Counted::Nothing));
        }
        steps.extend(reads.then_some(read));
        steps.extend(writes.then_some(write));
        steps.extend((writes && phase.syncs.each_write).then_some(sync));
        self.dirty |= writes;
    }

    /// Returns the next step of a task, if its stage has one, and the task's next stage.
    fn advance(&mut self, task: usize, now_ns: u64) -> (Option<Step>, Stage) {
        let files = self.plan.files.len();
        match self.workers[task].stage {
            Stage::Open(file) if file == files => (None, Stage::Begin),
            Stage::Open(file) => {
                let (parent, flags) = (Node::root(0), self.plan.phases[self.phase].flags);
                // The first task creates the files.
                let truncate = flags.truncate && task == 0;
                let flags = OpenFlags { truncate, ..flags };
                let open = Call::Open { parent, node: node(file), name_bytes: NAME_BYTES, flags };
                (Some(Step::Call(open)), Stage::Open(file + 1))
            }
            Stage::Begin => (if self.meet(task) { None } else { Some(Step::Wait) }, Stage::Work),
            Stage::Work if task >= self.plan.phases[self.phase].tasks => (None, Stage::Next),
            Stage::Work => {
                if self.requests == 0
                    && let Some(result) = self.results.last_mut()
                {
                    (result.start_ns, result.end_ns) = (now_ns, now_ns);
                }
                if self.workers[task].steps.is_empty() && !self.next_request(task, now_ns) {
                    self.working -= 1;
                    let ends = self.working == 0 && self.plan.phases[self.phase].syncs.at_end;
                    return (None, if ends { Stage::SyncAll(0) } else { Stage::Close(0) });
                }
                let Some((step, counted)) = self.workers[task].steps.pop_front() else { return (None, Stage::Work) };
                self.workers[task].last = (counted, now_ns);
                (Some(step), Stage::Work)
            }
            Stage::SyncAll(file) if file == files => (None, Stage::Close(0)),
            Stage::SyncAll(file) => {
                let (step, counted) = self.sync(&self.plan.phases[self.phase], file);
                self.workers[task].last = (counted, now_ns);
                (Some(step), Stage::SyncAll(file + 1))
            }
            Stage::Close(file) if file == files => (None, Stage::Next),
            Stage::Close(file) => (Some(Step::Call(Call::Close { node: node(file) })), Stage::Close(file + 1)),
            Stage::Next => {
                if !self.meet(task) {
                    return (Some(Step::Wait), Stage::Next);
                }
                self.phase += 1;
                self.begin_phase();
                (None, self.workers[task].stage)
            }
            Stage::Ended => (Some(Step::Exit), Stage::Ended),
        }
    }
}

impl Application for Phased {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &self.existing
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        self.count(task, now_ns);
        loop {
            let (step, stage) = self.advance(task, now_ns);
            self.workers[task].stage = stage;
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        let awake = self.awake;
        self.woken.find(|&task| task != awake)
    }

    fn progress(&self) -> f64 {
        let Some(phase) = self.plan.phases.get(self.phase) else { return 1.0 };
        let all_blocks: u64 = (0..self.plan.files.len()).map(|file| self.file_blocks(phase, file)).sum();
        let once = (phase.order == Order::Once).then_some(all_blocks);
        let of_requests = phase.requests.or(once).map(|all| self.requests as f64 / all.max(1) as f64);
        let of_time = phase
            .duration_ns
            .zip(self.results.last())
            .map(|(all_ns, result)| result.end_ns.saturating_sub(result.start_ns) as f64 / all_ns.max(1) as f64);
        let of_phase = of_requests.unwrap_or(0.0).max(of_time.unwrap_or(0.0)).min(1.0);
        (self.phase as f64 + of_phase) / self.plan.phases.len() as f64
    }

    fn report(&self) -> Report {
        (self.plan.report)(&self.results)
    }

    fn outcome(&mut self, now_ns: u64) -> AppOutcome {
        let _ = now_ns;
        AppOutcome { report: Some(self.report()), jobs: Vec::new(), notes: self.plan.notes.clone() }
    }
}
