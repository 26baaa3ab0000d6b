//! Turn of the active queue.

use crate::request::Sector;

/// Turn of the active queue.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Turn {
    /// Start of the turn, ns.
    pub(in crate::bfq) started_ns: u64,
    /// End of the last request dispatched in the turn; 0 before the first.
    pub(in crate::bfq) position: Sector,
    /// Start of the present wait for the queue's next request, ns and jiffies.
    pub(in crate::bfq) wait_started_ns: u64,
    pub(in crate::bfq) wait_started: i64,
}
