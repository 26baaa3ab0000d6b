//! Weight raising of a queue, and the data for that decision.

use super::queue::NEVER;

/// Weight raising of a queue. The factor of the weight is stored with its entity.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Raising {
    /// Duration, in jiffies; 0: not raised.
    pub(in crate::bfq) length: i64,
    /// Start of raising, or the last check of a queue that is not raised; in jiffies.
    pub(in crate::bfq) stamp: i64,
    /// Time when the queue changed from interactive to soft real-time, in jiffies.
    pub(in crate::bfq) switched_at: i64,
    /// Sectors served since raising began.
    pub(in crate::bfq) served: i64,
    /// Earliest arrival with which the queue is soft real-time, in jiffies.
    pub(in crate::bfq) soft_next_start: i64,
    /// Whether `soft_next_start` must be computed as soon as no request is in flight.
    pub(in crate::bfq) soft_update: bool,
}

impl Raising {
    pub(in crate::bfq) fn new(now: i64) -> Self {
        Self { length: 0, stamp: now, switched_at: NEVER, served: 0, soft_next_start: now, soft_update: false }
    }
}

/// Classification of a queue that becomes busy.
#[derive(Clone, Copy)]
pub(in crate::bfq) struct Arrival {
    pub(in crate::bfq) in_large_burst: bool,
    pub(in crate::bfq) interactive: bool,
    pub(in crate::bfq) soft: bool,
    /// Whether the queue must be raised, or stays raised.
    pub(in crate::bfq) deserves: bool,
}
