//! Decisions that only mq-deadline takes.

/// Result of one call that asks mq-deadline for the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MqDeadlineChoice {
    /// Whether a request was dispatched.
    pub given: bool,
    /// Number of requests in the present batch.
    pub batch: u32,
    /// Number of read batches that were chosen while writes waited.
    pub starved: u32,
    /// Whether the present batch has writes.
    pub writes: bool,
    /// Number of requests of each class, real time first, that are queued or in the device.
    pub under_way: [u32; 3],
}
