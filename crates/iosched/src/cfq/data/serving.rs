//! What is served: group, class and kind of work; and the verdict on the active queue.

use super::group::GroupId;
use super::queue::QueueId;
use super::service_tree::Class;
use crate::decision::Workload;

/// What is being served.
#[derive(Debug)]
pub(in crate::cfq) struct Serving {
    pub(in crate::cfq) group: Option<GroupId>,
    pub(in crate::cfq) class: Class,
    pub(in crate::cfq) workload: Workload,
    /// When another kind of work gets its turn.
    pub(in crate::cfq) expires: u64,
    /// A queue of this turn of the kind ended on a request that more will follow.
    pub(in crate::cfq) requires_idle: bool,
}

impl Default for Serving {
    fn default() -> Self {
        Self { group: None, class: Class::BestEffort, workload: Workload::Async, expires: 0, requires_idle: false }
    }
}

/// What to do about the active queue.
pub(in crate::cfq) enum Verdict {
    /// Serve it.
    Stay,
    /// Give out nothing for now.
    Wait,
    /// Its turn is over; this one is next if named, else whoever is due.
    Expire(Option<QueueId>),
    /// Its turn is over, and it is owed the rest of its slice.
    TimeOut,
}
