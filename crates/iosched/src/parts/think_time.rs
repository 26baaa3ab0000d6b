//! Think time: the time from a completion to the next request, as a decaying mean.

use super::mean::DecayingMean;

/// Think time of one process, service tree or group, in ticks of the elevator's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkTime {
    /// Time of the last completion.
    pub(crate) last_completion: u64,
    mean: DecayingMean,
}

impl ThinkTime {
    /// Creates a record that starts at `now`.
    pub(crate) fn new(now: u64) -> Self {
        Self { last_completion: now, mean: DecayingMean::default() }
    }

    pub(crate) fn completed(&mut self, now: u64) {
        self.last_completion = now;
    }

    /// Adds the think time before a new request. It counts as at most twice `idle`.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64, idle: u64) {
        self.mean.record(now.saturating_sub(self.last_completion).min(2 * idle));
    }

    /// Returns whether there are enough samples for a valid mean.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.mean.is_valid()
    }

    /// Returns whether the mean is valid and longer than `other`.
    #[inline]
    pub(crate) fn is_longer_than(&self, other: u64) -> bool {
        self.mean.is_more_than(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_time_is_valid_from_the_third_sample() {
        let mut think = ThinkTime::new(0);
        for n in 1..=3 {
            assert!(!think.is_valid(), "before sample {n}");
            think.sample(5_000_000, 8_000_000);
        }
        assert!(think.is_valid());
    }

    #[test]
    fn long_pauses_count_as_twice_the_idle_time() {
        let mut think = ThinkTime::new(0);
        for _ in 0..100 {
            think.sample(1_000_000_000, 8_000_000);
        }
        // Truncation makes the mean settle up to 3 % too high.
        assert!(think.is_longer_than(16_000_000));
        assert!(!think.is_longer_than(16_500_000));
    }
}
