//! Think time: how long after a completion the next request comes, as a decaying mean.

use super::mean::DecayingMean;

/// The record of one process, service tree or group. Times are in ticks of its elevator's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkTime {
    /// When its last request completed.
    pub(crate) last_completion: u64,
    mean: DecayingMean,
}

impl ThinkTime {
    /// A record whose clock starts at `now`.
    pub(crate) fn new(now: u64) -> Self {
        Self { last_completion: now, mean: DecayingMean::default() }
    }

    pub(crate) fn completed(&mut self, now: u64) {
        self.last_completion = now;
    }

    /// A request came; thinking longer than twice `idle` counts as that.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64, idle: u64) {
        self.mean.record(now.saturating_sub(self.last_completion).min(2 * idle));
    }

    /// Whether there are samples enough to trust the mean.
    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.mean.is_valid()
    }

    /// Whether the mean can be trusted and is longer than `other`.
    #[inline]
    pub(crate) fn is_longer_than(&self, other: u64) -> bool {
        self.mean.is_more_than(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_trusted_from_the_third_sample() {
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
        // Truncation makes the mean settle up to 3 % high.
        assert!(think.is_longer_than(16_000_000));
        assert!(!think.is_longer_than(16_500_000));
    }
}
