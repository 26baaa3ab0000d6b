//! Decaying mean: each new sample has a weight of one eighth.

/// Weight of one sample in fixed point. After the first sample, [`DecayingMean::samples`] is an
/// eighth of this weight.
pub(crate) const SAMPLE: u64 = 256;
/// A mean is valid if [`DecayingMean::samples`] is above this value, in fixed point. It is valid
/// from the third sample on.
const SAMPLES_VALID: u64 = 80;

/// Number and sum of samples. Both decay by an eighth at each new sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DecayingMean {
    /// Number of samples, in fixed point: approaches [`SAMPLE`].
    pub(crate) samples: u64,
    /// Sum of samples, in the unit of the samples times [`SAMPLE`].
    pub(crate) total: u64,
}

impl DecayingMean {
    /// Adds a sample.
    #[inline]
    pub(crate) fn record(&mut self, sample: u64) {
        self.samples = (7 * self.samples + SAMPLE) / 8;
        self.total = (7 * self.total + SAMPLE * sample) / 8;
    }

    /// Returns whether the rounded mean is valid and more than `other`.
    #[inline]
    pub(crate) fn is_more_than(&self, other: u64) -> bool {
        // The mean is (total + half a sample) / samples, rounded
        // down. The comparison avoids the division.
        self.is_valid() && self.total + SAMPLE / 2 >= other.saturating_add(1).saturating_mul(self.samples)
    }

    /// Returns whether there are enough samples for a valid mean.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.samples > SAMPLES_VALID
    }
}
