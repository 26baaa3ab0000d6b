//! Present group, class and kind of work, and the verdict on the active queue.

use super::group::GroupId;
use super::queue::QueueId;
use super::service_tree::Class;
use crate::decision::Workload;

/// Present group, class and kind of work.
#[derive(Debug)]
pub(in crate::cfq) struct Serving {
    pub(in crate::cfq) group: Option<GroupId>,
    pub(in crate::cfq) class: Class,
    pub(in crate::cfq) workload: Workload,
    /// Time when another kind of work is next, in ticks.
    pub(in crate::cfq) expires: u64,
    /// Whether a queue became empty with a request after which more requests follow, in the present
    /// turn of this kind of work.
    pub(in crate::cfq) requires_idle: bool,
}

impl Default for Serving {
    fn default() -> Self {
        Self { group: None, class: Class::BestEffort, workload: Workload::Async, expires: 0, requires_idle: false }
    }
}

/// Verdict on the active queue.
pub(in crate::cfq) enum Verdict {
    /// Serve the queue.
    Stay,
    /// Dispatch nothing for now.
    Wait,
    /// End the turn. The given queue is next. `None`: the first queue is next.
    Expire(Option<QueueId>),
    /// End the turn. The queue gets the rest of its slice later.
    TimeOut,
}
