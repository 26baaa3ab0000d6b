//! Data of a process: its queues, its last known priority and cgroup, and the state of its queue
//! that is saved when the process joins another queue. The state is restored after the split.

use super::queue::{NEVER, QueueId};
use crate::context::{CgroupId, IoPriority};
use crate::parts::mean::DecayingMean;

/// Data of one process.
#[derive(Debug)]
pub(in crate::bfq) struct Process {
    /// Priority at the last check.
    pub(in crate::bfq) ioprio: IoPriority,
    /// Cgroup at the last check.
    pub(in crate::bfq) cgroup: CgroupId,
    /// Queues for async and for sync requests.
    pub(in crate::bfq) queues: [Option<QueueId>; 2],
    /// Number of requests, queued or in flight.
    pub(in crate::bfq) requests: u32,
    /// Queue with which the process' queue may be merged later, because both were created together.
    pub(in crate::bfq) candidate: Option<QueueId>,
    /// Whether the process was merged permanently, because its queue and another queue were created
    /// together.
    pub(in crate::bfq) stably_merged: bool,
    /// State of its own queue before the merge.
    pub(in crate::bfq) saved: Saved,
    /// Whether the process has exited. Its context may then be given to another process.
    pub(in crate::bfq) exited: bool,
}

/// State of a process' queue at the time of the merge.
#[derive(Clone, Debug)]
pub(in crate::bfq) struct Saved {
    pub(in crate::bfq) short_think: bool,
    pub(in crate::bfq) io_bound: bool,
    pub(in crate::bfq) io_start_ns: u64,
    pub(in crate::bfq) idle_ns: u64,
    pub(in crate::bfq) think: DecayingMean,
    pub(in crate::bfq) last_completion_ns: u64,
    pub(in crate::bfq) in_large_burst: bool,
    pub(in crate::bfq) in_burst_list: bool,
    pub(in crate::bfq) weight: u32,
    pub(in crate::bfq) baseline_ns: u64,
    pub(in crate::bfq) inject_limit: u32,
    pub(in crate::bfq) inject_decreased_at: i64,
    pub(in crate::bfq) raise: u32,
    pub(in crate::bfq) raise_length: i64,
    pub(in crate::bfq) raise_stamp: i64,
    pub(in crate::bfq) raise_switched_at: i64,
    pub(in crate::bfq) raise_served: i64,
}

impl Default for Saved {
    fn default() -> Self {
        Self {
            short_think: false,
            io_bound: false,
            io_start_ns: 0,
            idle_ns: 0,
            think: DecayingMean::default(),
            last_completion_ns: 0,
            in_large_burst: false,
            in_burst_list: false,
            weight: 0,
            baseline_ns: 0,
            inject_limit: 0,
            inject_decreased_at: 0,
            raise: 1,
            raise_length: 0,
            raise_stamp: 0,
            raise_switched_at: NEVER,
            raise_served: 0,
        }
    }
}
