//! Processes: what their past says about when and where their next request comes.

use crate::context::ContextId;
use crate::env::Env;
use crate::parts::mean::{DecayingMean, SAMPLE};
use crate::parts::seek::SeekMean;
use crate::request::{RequestId, Sector};

/// What is known of one process. Times are in jiffies.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) exited: bool,
    /// It has sent a sync request.
    has_issued: bool,
    /// One of its sync requests has completed.
    has_completed: bool,
    last_completion: u64,
    /// End of its last sync request.
    last_end: Sector,
    /// Its requests, sync and async, that are queued.
    pub(super) queued: u32,
    /// Those that are released and not yet taken by the device.
    pub(super) released: u32,
    think: DecayingMean,
    seek: SeekMean,
}

impl Process {
    /// Whether it was seen to think.
    pub(super) fn has_thought(&self) -> bool {
        self.think.samples > 0
    }

    /// Its mean think time; it has thought.
    pub(super) fn think_mean(&self) -> u64 {
        (self.think.total + SAMPLE / 2) / self.think.samples
    }

    /// A sync request of it has completed.
    pub(super) fn completed(&mut self, jiffy: u64) {
        self.has_completed = true;
        self.last_completion = jiffy;
    }
}

/// The name of a process: its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessId(usize);

/// A process that is gone, was being waited for, and whose context has gone to another.
const DEPARTED: ProcessId = ProcessId(0);

/// All processes by their contexts.
#[derive(Debug)]
pub(super) struct Processes {
    table: Vec<Process>,
}

impl Default for Processes {
    fn default() -> Self {
        Self { table: vec![Process::default()] }
    }
}

impl std::ops::Index<ProcessId> for Processes {
    type Output = Process;

    fn index(&self, id: ProcessId) -> &Process {
        &self.table[id.0]
    }
}

impl std::ops::IndexMut<ProcessId> for Processes {
    fn index_mut(&mut self, id: ProcessId) -> &mut Process {
        &mut self.table[id.0]
    }
}

impl Processes {
    /// The process of a request that is not complete.
    pub(super) fn of(&self, env: &Env, id: RequestId) -> ProcessId {
        ProcessId(env.requests[id].context.index() + 1)
    }

    /// The process behind a context that sends a request: a new one if its last one has exited. `awaited` goes on
    /// meaning the same process.
    pub(super) fn enter(&mut self, context: ContextId, awaited: &mut Option<ProcessId>) -> ProcessId {
        let id = ProcessId(context.index() + 1);
        if self.table.len() <= id.0 {
            self.table.resize_with(id.0 + 1, Process::default);
        }
        if self[id].exited {
            let departed = std::mem::take(&mut self[id]);
            if *awaited == Some(id) {
                self[DEPARTED] = departed;
                *awaited = Some(DEPARTED);
            }
        }
        id
    }

    /// The process behind a context has exited.
    pub(super) fn exit(&mut self, context: ContextId) {
        if let Some(process) = self.table.get_mut(context.index() + 1) {
            process.exited = true;
        }
    }

    /// Sums over all processes of requests queued, and of those released and not taken.
    pub(super) fn sums(&self) -> (usize, usize) {
        let sum = |count: fn(&Process) -> u32| self.table.iter().map(|process| count(process) as usize).sum();
        (sum(|process| process.queued), sum(|process| process.released))
    }
}

/// What processes do after their first request, as a whole: all there is to go by for one that is new.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// How likely one exits then, of 256.
    pub(super) exit_probability: u64,
    /// How likely one that exits has no other take over where it was, of 256.
    pub(super) exit_without_cooperator: u64,
    think_total: u64,
    seek_total: u64,
}

fn towards(estimate: u64, value: u64) -> u64 {
    (7 * estimate + value) / 8
}

impl Newcomers {
    /// The wait for one was in vain.
    pub(super) fn lost(&mut self) {
        self.exit_probability = towards(self.exit_probability, SAMPLE);
    }

    /// One that exited had nobody take over.
    pub(super) fn lost_without_cooperator(&mut self) {
        self.exit_without_cooperator = towards(self.exit_without_cooperator, SAMPLE);
    }

    /// One that exited had another take over.
    pub(super) fn found_cooperator(&mut self) {
        self.exit_without_cooperator = towards(self.exit_without_cooperator, 0);
    }

    /// One came back after this think time, in jiffies.
    fn returned(&mut self, think: u64) {
        self.exit_probability = towards(self.exit_probability, 0);
        self.think_total = towards(self.think_total, SAMPLE * think);
    }

    fn sought(&mut self, distance_sectors: u64) {
        self.seek_total = towards(self.seek_total, SAMPLE * distance_sectors);
    }

    /// Mean think time, in jiffies.
    pub(super) fn think_mean(&self) -> u64 {
        self.think_total / SAMPLE
    }

    /// Mean distance from a process' first request to its second, in sectors.
    fn seek_mean(&self) -> u64 {
        self.seek_total / SAMPLE
    }
}

impl Newcomers {
    /// Mean distance between requests of `process`, in sectors; of one that has not sought, what is usual.
    pub(super) fn seek_mean_of(&self, process: &Process) -> u64 {
        if process.seek.is_empty() { self.seek_mean() } else { process.seek.mean() }
    }

    /// A sync request at `sector` to `end` came, of `process` or, if that is gone, of one that has taken over from it.
    pub(super) fn account(&mut self, process: &mut Process, jiffy: u64, hz: u32, sector: Sector, end: Sector) {
        if process.has_issued || process.has_completed {
            let idle = process.has_completed && process.queued == 0 && process.released == 0;
            let longest = (u64::from(hz) / 50).saturating_sub(1);
            let think = if idle { (jiffy - process.last_completion).min(longest) } else { 0 };
            if !process.has_thought() {
                self.returned(think);
            }
            process.think.record(think);
            let distance_sectors = SeekMean::distance(sector, process.last_end);
            if process.seek.is_empty() {
                self.sought(distance_sectors);
            }
            process.seek.record(distance_sectors);
        }
        process.last_end = end;
        process.has_issued = true;
    }
}
