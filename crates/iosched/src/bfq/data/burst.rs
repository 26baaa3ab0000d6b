//! A burst of queues that come up at once.

use super::group::GroupId;
use super::queue::{NEVER, QueueId};

/// The present burst.
#[derive(Debug)]
pub(in crate::bfq) struct Burst {
    /// Its queues, while it is not large.
    pub(in crate::bfq) queues: Vec<QueueId>,
    /// How many there were.
    pub(in crate::bfq) size: u32,
    pub(in crate::bfq) large: bool,
    /// When the last one came up, in jiffies.
    pub(in crate::bfq) last_at: i64,
    pub(in crate::bfq) group: GroupId,
}

impl Default for Burst {
    fn default() -> Self {
        Self { queues: Vec::new(), size: 0, large: false, last_at: NEVER, group: GroupId::ROOT }
    }
}
