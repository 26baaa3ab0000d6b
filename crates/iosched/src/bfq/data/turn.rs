//! The turn of the queue in service.

use crate::request::Sector;

/// The turn of the queue in service.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Turn {
    /// When it began, ns.
    pub(in crate::bfq) started_ns: u64,
    /// End of the last request given out in it; 0 before the first.
    pub(in crate::bfq) position: Sector,
    /// When the present wait for the queue's next request began, ns and jiffies.
    pub(in crate::bfq) wait_started_ns: u64,
    pub(in crate::bfq) wait_started: i64,
}
