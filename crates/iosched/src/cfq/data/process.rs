//! Data of a process: its queues, and its last known priority.

use super::queue::QueueId;
use crate::context::IoPriority;
use crate::parts::think_time::ThinkTime;

/// Data of one process.
#[derive(Debug)]
pub(in crate::cfq) struct Process {
    /// Priority at the last check.
    pub(in crate::cfq) ioprio: IoPriority,
    pub(in crate::cfq) sync_queue: Option<QueueId>,
    pub(in crate::cfq) async_queue: Option<QueueId>,
    pub(in crate::cfq) think_time: ThinkTime,
    /// Whether the process has exited. Its context may then be given to another process.
    pub(in crate::cfq) exited: bool,
}
