//! Decisions that only BFQ takes. They name queues by serial number. Budgets are in sectors, and
//! times are virtual times.

use crate::context::{CgroupId, IoClass};

/// Reason for the end of a queue's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BfqReason {
    /// The queue sent no request while BFQ idled for it.
    TooIdle,
    /// The time of the turn was over.
    Timeout,
    /// The next request is larger than the rest of the budget.
    Exhausted,
    /// The queue had no more requests, and idling for the queue was not worthwhile.
    NoMoreRequests,
    /// Another queue had to be served.
    Preempted,
}

/// State of a queue that affects its treatment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BfqState {
    /// Factor of the weight: 1, or more while the weight is raised.
    pub raise: u32,
    /// Weight of the queue, raised or not.
    pub weight: u32,
    /// Number of requests of other queues that may be in the device while this queue is served.
    pub inject_limit: u32,
    /// Largest budget, in sectors.
    pub max_budget: i64,
    /// Whether the process usually submits its next request soon.
    pub short_think_time: bool,
    /// Whether the process spends most of its time waiting for I/O.
    pub io_bound: bool,
    /// Whether the queue was created in a large burst with many others.
    pub in_large_burst: bool,
    /// Whether the requests are scattered.
    pub seeky: bool,
    /// Duration of weight raising, in jiffies.
    pub raise_jiffies: i64,
    /// Class of the queue.
    pub class: IoClass,
}

/// Decision of BFQ. Queues are numbered from 1 in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BfqEvent {
    /// A queue was created.
    Created {
        /// Number of the queue.
        queue: u32,
        /// Id of the process that created the queue.
        pid: u32,
        /// Whether the queue is for sync requests of one process.
        sync: bool,
        /// Cgroup of the queue.
        cgroup: CgroupId,
    },
    /// A queue was freed.
    Freed {
        /// Number of the queue.
        queue: u32,
    },
    /// A queue becomes active.
    Active {
        /// Number of the queue.
        queue: u32,
        /// Budget, in sectors.
        budget: i64,
        /// Virtual start time.
        start: u64,
        /// Virtual finish time of the budget.
        finish: u64,
        /// Virtual time of the class.
        vtime: u64,
    },
    /// The turn of a queue ended.
    Expire {
        /// Number of the queue.
        queue: u32,
        /// Reason for the end.
        reason: BfqReason,
        /// Whether the queue was slow.
        slow: bool,
    },
    /// The next dispatched request is from this queue. If another
    /// queue is active, the request is injected.
    Give {
        /// Number of the queue.
        queue: u32,
    },
    /// A process moves from one queue to another.
    Merge {
        /// Queue that the process leaves.
        queue: u32,
        /// Queue that the process joins.
        into: u32,
    },
    /// A process leaves a shared queue.
    Split {
        /// Number of the shared queue.
        queue: u32,
    },
    /// A queue may have a waker.
    WakerTried {
        /// Number of the woken queue.
        queue: u32,
        /// Number of the waker.
        waker: u32,
    },
    /// A queue has a waker.
    Waker {
        /// Number of the woken queue.
        queue: u32,
        /// Number of the waker.
        waker: u32,
    },
    /// The state of a queue changed, or is reported for the first time.
    State {
        /// Number of the queue.
        queue: u32,
        /// State of the last report.
        before: Option<BfqState>,
        /// Present state.
        state: BfqState,
    },
    /// The largest budget was computed again from the device's peak rate.
    MaxBudget {
        /// Largest budget, in sectors.
        max_budget: i64,
        /// Sectors per µs, times 65,536.
        peak_rate: u64,
    },
    /// The estimate of the device's peak rate changed.
    PeakRate {
        /// Sectors per µs, times 65,536.
        peak_rate: u64,
    },
}
