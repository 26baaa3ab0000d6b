//! The properties of a file's times.

/// The properties of a file's times that its reader needs first.
pub(crate) struct Times {
    pub(crate) as_written: bool,
    pub(crate) resolution_ns: u64,
    /// Whether arrivals are computed from completions, and increased by [`BEFORE_FIRST_NS`](super::row::BEFORE_FIRST_NS).
    pub(crate) of_completions: bool,
}
