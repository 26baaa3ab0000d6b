//! The state of the anticipatory elevator, part by part.

/// Whether it waits for a process' next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Anticipation {
    /// It does not.
    #[default]
    Off,
    /// It will, once the request of that process which is under way completes.
    WaitRequest,
    /// It does, until the timer fires.
    WaitNext,
    /// It has waited, and serves somebody else now.
    Finished,
}

/// One part of its state, as a step left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnticipatoryEvent {
    /// Whether it waits.
    Anticipation(Anticipation),
    /// The batch that is served.
    Batch {
        /// Whether it is one of sync requests.
        sync: bool,
        /// Whether it waits for what is left of the batch before in the device.
        changing: bool,
        /// Whether none of its requests has completed yet (sync batches only).
        new: bool,
    },
    /// Async requests a batch may have from now on.
    WriteQuota {
        /// How many.
        requests: u64,
    },
    /// How processes that were waited for have ended.
    ExitStatistics {
        /// How likely a process exits after its first request, of 256.
        probability: u64,
        /// How likely one that exits has no other take over where it was, of 256.
        no_cooperator: u64,
    },
    /// How long a new process thinks before its second request.
    NewThinkTime {
        /// The mean in jiffies.
        jiffies: u64,
    },
}
