//! What is kept of a process: its queues, and what it was last seen with.

use super::queue::QueueId;
use super::saved::Saved;
use crate::context::{CgroupId, IoPriority};

/// What BFQ knows of one process.
#[derive(Debug)]
pub(in crate::bfq) struct Process {
    /// The priority it had when last looked at.
    pub(in crate::bfq) ioprio: IoPriority,
    /// The cgroup it had then.
    pub(in crate::bfq) cgroup: CgroupId,
    /// Its queues for async and for sync requests.
    pub(in crate::bfq) queues: [Option<QueueId>; 2],
    /// Its requests, queued or in flight.
    pub(in crate::bfq) requests: u32,
    /// The queue it may be merged with later because they came up together.
    pub(in crate::bfq) candidate: Option<QueueId>,
    /// It was merged because its queue and another came up together, and stays so.
    pub(in crate::bfq) stably_merged: bool,
    /// What its own queue was like before it was merged.
    pub(in crate::bfq) saved: Saved,
    /// It is gone, and its context may be another process' when it is next seen.
    pub(in crate::bfq) exited: bool,
}
