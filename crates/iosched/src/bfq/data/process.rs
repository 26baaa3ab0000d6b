//! Data of a process: its queues, and its last known priority and cgroup.

use super::queue::QueueId;
use super::saved::Saved;
use crate::context::{CgroupId, IoPriority};

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
    /// Queue that it may be merged with later because both were created together.
    pub(in crate::bfq) candidate: Option<QueueId>,
    /// Whether it was merged, for good, because its queue and another were created together.
    pub(in crate::bfq) stably_merged: bool,
    /// State of its own queue before the merge.
    pub(in crate::bfq) saved: Saved,
    /// Whether the process has exited. Its context may then be given to another process.
    pub(in crate::bfq) exited: bool,
}
