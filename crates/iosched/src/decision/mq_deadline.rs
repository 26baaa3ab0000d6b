//! What mq-deadline decides and no other elevator.

/// What it says when asked for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MqDeadlineChoice {
    /// It gave one.
    pub given: bool,
    /// Requests in the present batch.
    pub batch: u32,
    /// Batches of reads that passed over waiting writes.
    pub starved: u32,
    /// Whether the present batch is one of writes.
    pub writes: bool,
    /// Requests of each class, real time first, that are queued or in the device.
    pub under_way: [u32; 3],
}
