//! Names of queues and kinds of work in CFQ's decisions, and the
//! decisions that only CFQ of Linux 2.6.16 takes.

/// Name of a queue: a process, and the kind of its requests (sync or async). A shared queue has the
/// name of the process that created it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueName {
    /// Id of the process that created the queue.
    pub pid: u32,
    /// Whether the queue holds sync requests.
    pub sync: bool,
}

/// Kind of work in a service tree of CFQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Workload {
    /// Async queues.
    Async,
    /// Sync queues for which idling is not worthwhile. CFQ serves them as one queue.
    SyncNoIdle,
    /// Sync queues for which idling is worthwhile.
    Sync,
}

/// Decision of CFQ of Linux 2.6.16 on the active queue, or on the wait of the idle class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cfq2616Event {
    /// The active queue is not the same as at the end of the last step.
    Active {
        /// The new active queue; `None`: no queue is active.
        queue: Option<ActiveQueue>,
    },
    /// Only queues of the idle class have requests. They wait until no
    /// other queue has had requests for some time.
    GraceArm {
        /// Longest wait, ns.
        wait_ns: u64,
    },
    /// The wait ended because another queue got requests.
    GraceCancel,
    /// The wait ended without requests of other queues.
    GraceFire,
}

/// Queue of CFQ that a decision names, by its number and process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveQueue {
    /// Number of the queue, from 0 in the order of the first report.
    pub number: u32,
    /// Process of the queue. `None` if the queue is async.
    pub pid: Option<u32>,
}
