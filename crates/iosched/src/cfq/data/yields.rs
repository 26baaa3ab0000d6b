//! Queues that have given up their turns to others.

use super::queue::QueueId;
use crate::context::ContextId;

/// Yield: the process of a queue waits for I/O of another process. The yield ends when that I/O has
/// been served, or when the waiting process sends a request again. At the latest, it ends after the
/// time for which CFQ would have idled.
#[derive(Clone, Copy, Debug)]
pub(in crate::cfq) struct Yield {
    pub(in crate::cfq) queue: QueueId,
    pub(in crate::cfq) target: ContextId,
    pub(in crate::cfq) until: u64,
}
