//! The properties of a file's times.

/// The properties of a file's times that a reader needs before the first record.
pub(crate) struct Times {
    pub(crate) as_written: bool,
    pub(crate) resolution_ns: u64,
    /// Whether arrivals are computed from completions, and increased by
    /// [`BEFORE_FIRST_NS`](super::row::BEFORE_FIRST_NS).
    pub(crate) of_completions: bool,
    /// Whether starts or lengths count sectors. Such numbers may be bytes by mistake.
    pub(crate) in_sectors: bool,
}
