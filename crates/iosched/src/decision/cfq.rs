//! What CFQ's decisions name: queues and kinds of work; and what only CFQ of Linux 2.6.16 decides.

/// Which queue of an elevator an event is about: that of the process `pid` (of several processes that share
/// one, the first), for its sync or its async requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueName {
    /// The process that founded the queue.
    pub pid: u32,
    /// Whether the queue holds sync requests.
    pub sync: bool,
}

/// The kind of work a CFQ service tree holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Workload {
    /// Async queues.
    Async,
    /// Sync queues not worth idling for, served as one.
    SyncNoIdle,
    /// Sync queues worth idling for.
    Sync,
}

/// Which queue is active, and the wait of the idle class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cfq2616Event {
    /// Another queue is active than at the end of the last step.
    Active {
        /// Which; `None`: none.
        queue: Option<ActiveQueue>,
    },
    /// Only queues of the idle class have requests, and wait until no other has had one for a while.
    GraceArm {
        /// For how long at most, in ns.
        wait_ns: u64,
    },
    /// Another has.
    GraceCancel,
    /// None has.
    GraceFire,
}

/// The name of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveQueue {
    /// Queues are numbered from 0 in the order in which they were first told of.
    pub number: u32,
    /// The process it belongs to; `None`: it is an async queue.
    pub pid: Option<u32>,
}
