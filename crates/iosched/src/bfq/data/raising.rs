//! Whether and for how long a queue is raised, and what is known of its requests about that.

use super::queue::NEVER;

/// How a queue is raised. How many times its weight counts is with its entity.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Raising {
    /// For how long, in jiffies; 0: not at all.
    pub(in crate::bfq) length: i64,
    /// When it began or, of a queue that is not raised, was last considered; in jiffies.
    pub(in crate::bfq) stamp: i64,
    /// When it changed from interactive to soft real-time, in jiffies.
    pub(in crate::bfq) switched_at: i64,
    /// Sectors served since it began.
    pub(in crate::bfq) served: i64,
    /// A queue that comes back before is not soft real-time; in jiffies.
    pub(in crate::bfq) soft_next_start: i64,
    /// That is to be worked out when nothing is in flight.
    pub(in crate::bfq) soft_update: bool,
}

impl Raising {
    pub(in crate::bfq) fn new(now: i64) -> Self {
        Self { length: 0, stamp: now, switched_at: NEVER, served: 0, soft_next_start: now, soft_update: false }
    }
}

/// What a queue looks like that becomes busy.
#[derive(Clone, Copy)]
pub(in crate::bfq) struct Arrival {
    pub(in crate::bfq) in_large_burst: bool,
    pub(in crate::bfq) interactive: bool,
    pub(in crate::bfq) soft: bool,
    /// It is to be raised, or stays so.
    pub(in crate::bfq) deserves: bool,
}
