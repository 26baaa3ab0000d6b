//! A mean that forgets: each new sample weighs an eighth.

/// Weight of one sample in fixed point; after the first, [`DecayingMean::samples`] is an eighth of it.
pub(crate) const SAMPLE: u64 = 256;
/// With more than this a mean is trusted: from the third sample on.
const SAMPLES_VALID: u64 = 80;

/// Samples, and their sum, both decaying by an eighth at each new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecayingMean {
    /// How many samples, in fixed point: approaches [`SAMPLE`].
    pub(crate) samples: u64,
    /// Their sum, in the unit of the samples times [`SAMPLE`].
    pub(crate) total: u64,
}

impl DecayingMean {
    /// One more sample.
    #[inline]
    pub(crate) fn record(&mut self, sample: u64) {
        self.samples = (7 * self.samples + SAMPLE) / 8;
        self.total = (7 * self.total + SAMPLE * sample) / 8;
    }

    /// Whether the mean, rounded, can be trusted and is more than `other`.
    #[inline]
    pub(crate) fn is_more_than(&self, other: u64) -> bool {
        // The mean is (total + half a sample) / samples, rounded down: compared without the division.
        self.is_valid() && self.total + SAMPLE / 2 >= other.saturating_add(1).saturating_mul(self.samples)
    }

    /// Whether there are samples enough to trust the mean.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.samples > SAMPLES_VALID
    }
}
