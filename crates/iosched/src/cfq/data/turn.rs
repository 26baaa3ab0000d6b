//! The turn of the active queue.

/// `a * b / c`, rounded down, without overflow on the way.
#[inline]
pub(in crate::cfq) fn scale(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// The state of the active queue's turn; times are in ticks.
#[derive(Debug, Default)]
pub(in crate::cfq) struct Turn {
    /// When the queue became active.
    pub(in crate::cfq) activated: u64,
    /// The slice's clock has not started: it does at the first completion.
    pub(in crate::cfq) slice_new: bool,
    pub(in crate::cfq) slice_start: u64,
    pub(in crate::cfq) slice_end: u64,
    pub(in crate::cfq) allocated_slice: u64,
    /// Requests given out.
    pub(in crate::cfq) dispatched: u32,
    /// A request must be given out, whatever the limits.
    pub(in crate::cfq) must_dispatch: bool,
    /// The FIFO was looked at.
    pub(in crate::cfq) fifo_checked: bool,
    /// The queue's next request is being waited for.
    pub(in crate::cfq) waiting: bool,
    /// The slice was stretched to let the group stay busy.
    pub(in crate::cfq) wait_busy: bool,
}

impl Turn {
    /// Whether the slice is over. Before its clock has started it never is.
    #[inline]
    pub(in crate::cfq) fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// What is left of the slice; negative once it is over.
    pub(in crate::cfq) fn slice_left(&self, now: u64) -> i64 {
        self.slice_end.wrapping_sub(now) as i64
    }
}
