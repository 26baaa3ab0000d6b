//! Burst of queues that are created at the same time.

use super::group::GroupId;
use super::queue::{NEVER, QueueId};

/// Present burst.
#[derive(Debug)]
pub(in crate::bfq) struct Burst {
    /// Queues of the burst, while it is not large.
    pub(in crate::bfq) queues: Vec<QueueId>,
    /// Number of queues so far.
    pub(in crate::bfq) size: u32,
    pub(in crate::bfq) large: bool,
    /// Creation of the last queue, in jiffies.
    pub(in crate::bfq) last_at: i64,
    pub(in crate::bfq) group: GroupId,
}

impl Default for Burst {
    fn default() -> Self {
        Self { queues: Vec::new(), size: 0, large: false, last_at: NEVER, group: GroupId::ROOT }
    }
}
