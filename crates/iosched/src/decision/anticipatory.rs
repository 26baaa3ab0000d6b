//! Events of the anticipatory elevator. Each event reports one part of its state.

/// State of the wait for a process' next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Anticipation {
    /// The elevator does not wait.
    #[default]
    Off,
    /// The elevator will wait when the process' request in flight completes.
    WaitRequest,
    /// The elevator waits until the timer fires.
    WaitNext,
    /// The wait has ended, and another process is served.
    Finished,
}

/// Part of the elevator's state, after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnticipatoryEvent {
    /// State of the wait.
    Anticipation(Anticipation),
    /// Present batch.
    Batch {
        /// Whether the batch has sync requests.
        sync: bool,
        /// Whether the batch waits for requests of the previous batch in the device.
        changing: bool,
        /// Whether none of its requests has completed yet (sync batches only).
        new: bool,
    },
    /// New limit on async requests per batch.
    WriteQuota {
        /// Number of requests.
        requests: u64,
    },
    /// Statistics of exits of anticipated processes.
    ExitStatistics {
        /// Probability that a process exits after its first request, out of 256.
        probability: u64,
        /// Probability that no other process continues in the same area after an exit, out of 256.
        no_cooperator: u64,
    },
    /// Think time of new processes before their second request.
    NewThinkTime {
        /// Mean in jiffies.
        jiffies: u64,
    },
}
