//! What BFQ decides and no other elevator: queues by number, budgets in sectors, times in virtual time.

use crate::context::{CgroupId, IoClass};

/// Why a queue's turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BfqReason {
    /// It sent nothing while it was waited for.
    TooIdle,
    /// Its time was over.
    Timeout,
    /// What comes next is more than is left of its budget.
    Exhausted,
    /// It had nothing more and was not worth waiting for.
    NoMoreRequests,
    /// Another queue had to be served.
    Preempted,
}

/// What is known of a queue, as far as it decides how the queue is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BfqState {
    /// How many times its weight counts: 1, or more while it is raised.
    pub raise: u32,
    /// Its weight, raised or not.
    pub weight: u32,
    /// Requests of others that may be in the device while it is served.
    pub inject_limit: u32,
    /// Its largest budget, in sectors.
    pub max_budget: i64,
    /// Its process soon follows up.
    pub short_think_time: bool,
    /// It is kept from going on by its I/O most of the time.
    pub io_bound: bool,
    /// It came up with many others at once.
    pub in_large_burst: bool,
    /// Its requests are scattered.
    pub seeky: bool,
    /// How long it is raised, in jiffies.
    pub raise_jiffies: i64,
    /// Its class.
    pub class: IoClass,
}

/// One decision of BFQ. Queues are numbered from 1 in the order they came up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BfqEvent {
    /// A queue came up.
    Created {
        /// Its number.
        queue: u32,
        /// Its founder.
        pid: u32,
        /// Whether it is one process' for sync requests.
        sync: bool,
        /// Its cgroup.
        cgroup: CgroupId,
    },
    /// A queue is no more.
    Freed {
        /// Its number.
        queue: u32,
    },
    /// A queue is served from now on.
    Active {
        /// Its number.
        queue: u32,
        /// Sectors it may have.
        budget: i64,
        /// From when on it was eligible.
        start: u64,
        /// When its budget will be served.
        finish: u64,
        /// Virtual time of its class.
        vtime: u64,
    },
    /// Its turn ended.
    Expire {
        /// Its number.
        queue: u32,
        /// Why.
        reason: BfqReason,
        /// Whether it was slow.
        slow: bool,
    },
    /// The request given out next is of this queue; if another is active, it is injected.
    Give {
        /// Its number.
        queue: u32,
    },
    /// A process goes from one queue to another.
    Merge {
        /// The queue it leaves.
        queue: u32,
        /// The one it joins.
        into: u32,
    },
    /// A process no longer shares a queue.
    Split {
        /// The shared queue.
        queue: u32,
    },
    /// A queue may be woken by another.
    WakerTried {
        /// The one woken.
        queue: u32,
        /// The other.
        waker: u32,
    },
    /// A queue is woken by another.
    Waker {
        /// The one woken.
        queue: u32,
        /// The other.
        waker: u32,
    },
    /// What is known of a queue changed, or it is told for the first time.
    State {
        /// Its number.
        queue: u32,
        /// What was told last.
        before: Option<BfqState>,
        /// What is known.
        state: BfqState,
    },
    /// The largest budget follows the device's peak rate, which was worked out again.
    MaxBudget {
        /// In sectors.
        max_budget: i64,
        /// Sectors in a us, times 65,536.
        peak_rate: u64,
    },
    /// The estimate of the device's peak rate changed.
    PeakRate {
        /// Sectors in a us, times 65,536.
        peak_rate: u64,
    },
}
