//! Turn of the active queue.

/// Returns `a * b / c`, rounded down, without overflow of the product.
#[inline]
pub(in crate::cfq) fn scale(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// State of the active queue's turn; times are in ticks.
#[derive(Debug, Default)]
pub(in crate::cfq) struct Turn {
    /// Start of the turn.
    pub(in crate::cfq) activated: u64,
    /// Whether the slice has not started yet: it starts at the first completion.
    pub(in crate::cfq) slice_new: bool,
    pub(in crate::cfq) slice_start: u64,
    pub(in crate::cfq) slice_end: u64,
    pub(in crate::cfq) allocated_slice: u64,
    /// Number of dispatched requests.
    pub(in crate::cfq) dispatched: u32,
    /// Whether a request must be dispatched, even beyond the limits.
    pub(in crate::cfq) must_dispatch: bool,
    /// Whether the FIFO was checked.
    pub(in crate::cfq) fifo_checked: bool,
    /// Whether CFQ idles for the queue's next request.
    pub(in crate::cfq) waiting: bool,
    /// Whether the slice was extended so that the group stays busy.
    pub(in crate::cfq) wait_busy: bool,
}

impl Turn {
    /// Returns whether the slice is over. A slice that has not started is never over.
    #[inline]
    pub(in crate::cfq) fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// Returns the rest of the slice, in ticks; negative after its end.
    pub(in crate::cfq) fn slice_left(&self, now: u64) -> i64 {
        self.slice_end.wrapping_sub(now) as i64
    }
}
