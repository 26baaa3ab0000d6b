//! Processes: statistics that predict the time and the position of their next requests.

use crate::context::ContextId;
use crate::env::Env;
use crate::parts::mean::{DecayingMean, SAMPLE};
use crate::parts::seek::SeekMean;
use crate::request::{RequestId, Sector};

/// Statistics of one process. Times are in jiffies.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) exited: bool,
    /// Whether the process has sent a sync request.
    has_issued: bool,
    /// Whether a sync request of the process has completed.
    has_completed: bool,
    last_completion: u64,
    /// End of the last sync request.
    last_end: Sector,
    /// Number of queued requests, sync and async.
    pub(super) queued: u32,
    /// Number of requests that are released and not yet in the device.
    pub(super) released: u32,
    think: DecayingMean,
    seek: SeekMean,
}

impl Process {
    /// Returns whether there is a think time sample.
    pub(super) fn has_thought(&self) -> bool {
        self.think.samples > 0
    }

    /// Returns the mean think time. There must be a sample.
    pub(super) fn think_mean(&self) -> u64 {
        (self.think.total + SAMPLE / 2) / self.think.samples
    }

    /// Handles the completion of a sync request.
    pub(super) fn completed(&mut self, jiffy: u64) {
        self.has_completed = true;
        self.last_completion = jiffy;
    }
}

/// Id of a process: its index in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessId(usize);

/// Entry for an exited process that is still awaited, after
/// its context was given to another process.
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
    /// Returns the process of a request that is not complete.
    pub(super) fn of(&self, env: &Env, id: RequestId) -> ProcessId {
        ProcessId(env.requests[id].context.index() + 1)
    }

    /// Returns the process of a context that sends a request. If the context's last process has
    /// exited, this is a new process. `awaited` is updated if the exited process is awaited.
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

    /// Marks the process of a context as exited.
    pub(super) fn exit(&mut self, context: ContextId) {
        if let Some(process) = self.table.get_mut(context.index() + 1) {
            process.exited = true;
        }
    }

    /// Returns the sums over all processes: queued requests, and
    /// released requests that the device has not taken.
    pub(super) fn sums(&self) -> (usize, usize) {
        let sum = |count: fn(&Process) -> u32| self.table.iter().map(|process| count(process) as usize).sum();
        (sum(|process| process.queued), sum(|process| process.released))
    }
}

/// Statistics of all processes after their first request, used for new processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// Probability, out of 256, that a process exits after its first request.
    pub(super) exit_probability: u64,
    /// Probability, out of 256, that no other process continues at the position of an exited
    /// process.
    pub(super) exit_without_cooperator: u64,
    think_total: u64,
    seek_total: u64,
}

fn towards(estimate: u64, value: u64) -> u64 {
    (7 * estimate + value) / 8
}

impl Newcomers {
    /// Counts a wait for a new process that ended without a request.
    pub(super) fn lost(&mut self) {
        self.exit_probability = towards(self.exit_probability, SAMPLE);
    }

    /// Counts an exited process without a successor at its position.
    pub(super) fn lost_without_cooperator(&mut self) {
        self.exit_without_cooperator = towards(self.exit_without_cooperator, SAMPLE);
    }

    /// Counts an exited process with a successor at its position.
    pub(super) fn found_cooperator(&mut self) {
        self.exit_without_cooperator = towards(self.exit_without_cooperator, 0);
    }

    /// Counts a new process that sent its second request after this think time, in jiffies.
    fn returned(&mut self, think: u64) {
        self.exit_probability = towards(self.exit_probability, 0);
        self.think_total = towards(self.think_total, SAMPLE * think);
    }

    fn sought(&mut self, distance_sectors: u64) {
        self.seek_total = towards(self.seek_total, SAMPLE * distance_sectors);
    }

    /// Returns the mean think time, in jiffies.
    pub(super) fn think_mean(&self) -> u64 {
        self.think_total / SAMPLE
    }

    /// Returns the mean distance from a process' first request to its second, in sectors.
    fn seek_mean(&self) -> u64 {
        self.seek_total / SAMPLE
    }
}

impl Newcomers {
    /// Returns the mean distance between requests of `process`, in sectors. For a process without
    /// samples, this is the mean over new processes.
    pub(super) fn seek_mean_of(&self, process: &Process) -> u64 {
        if process.seek.is_empty() { self.seek_mean() } else { process.seek.mean() }
    }

    /// Counts a sync request from `sector` to `end` for `process`. The request may be from another
    /// process whose close request ended the wait for `process`.
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
