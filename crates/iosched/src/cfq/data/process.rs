//! What is kept of a process: its queues, and what it was last seen with.

use super::queue::QueueId;
use crate::context::IoPriority;
use crate::parts::think_time::ThinkTime;

/// What CFQ knows of one process.
#[derive(Debug)]
pub(in crate::cfq) struct Process {
    /// The priority it had when last looked at.
    pub(in crate::cfq) ioprio: IoPriority,
    pub(in crate::cfq) sync_queue: Option<QueueId>,
    pub(in crate::cfq) async_queue: Option<QueueId>,
    pub(in crate::cfq) think_time: ThinkTime,
    /// It is gone, and its context may be another process' when it is next seen.
    pub(in crate::cfq) exited: bool,
}
