//! Who has given up its turn to whom.

use super::queue::QueueId;
use crate::context::ContextId;

/// The process of a queue waits for I/O of another. It ends when that has been served, when the process sends a request
/// again, or after the time CFQ would have waited for it.
#[derive(Clone, Copy, Debug)]
pub(in crate::cfq) struct Yield {
    pub(in crate::cfq) queue: QueueId,
    pub(in crate::cfq) target: ContextId,
    pub(in crate::cfq) until: u64,
}
