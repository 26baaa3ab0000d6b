//! Think time: how long after a completion the next request comes, as a decaying mean.

use crate::time::Time;

/// Weight of one sample; a mean is trusted from the third on.
const SAMPLE: u64 = 256;
const SAMPLES_VALID: u64 = 80;

/// The record of one process, service tree or group.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThinkTime {
    last_completion: Time,
    samples: u64,
    total_ns: u64,
}

impl ThinkTime {
    /// A record whose clock starts at `now`.
    pub(super) fn new(now: Time) -> Self {
        Self { last_completion: now, samples: 0, total_ns: 0 }
    }

    pub(super) fn completed(&mut self, now: Time) {
        self.last_completion = now;
    }

    /// A request came; thinking longer than twice `idle_ns` counts as that.
    #[inline]
    pub(super) fn sample(&mut self, now: Time, idle_ns: u64) {
        let elapsed_ns = now.since(self.last_completion).min(2 * idle_ns);
        self.samples = (7 * self.samples + SAMPLE) / 8;
        self.total_ns = (7 * self.total_ns + SAMPLE * elapsed_ns) / 8;
    }

    /// Whether there are samples enough to trust the mean.
    #[inline]
    pub(super) fn is_valid(&self) -> bool {
        self.samples > SAMPLES_VALID
    }

    /// Whether the mean can be trusted and is longer than `other_ns`.
    #[inline]
    pub(super) fn is_longer_than(&self, other_ns: u64) -> bool {
        // The mean is (total + half a sample) / samples, rounded down: compared without the division.
        self.is_valid() && self.total_ns + SAMPLE / 2 >= other_ns.saturating_add(1).saturating_mul(self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_trusted_from_the_third_sample() {
        let mut think = ThinkTime::new(Time::ZERO);
        for n in 1..=3 {
            assert!(!think.is_valid(), "before sample {n}");
            think.sample(Time::from_ns(5_000_000), 8_000_000);
        }
        assert!(think.is_valid());
    }

    #[test]
    fn long_pauses_count_as_twice_the_idle_time() {
        let mut think = ThinkTime::new(Time::ZERO);
        for _ in 0..100 {
            think.sample(Time::from_ns(1_000_000_000), 8_000_000);
        }
        // Truncation makes the mean settle up to 3 % high.
        assert!(think.is_longer_than(16_000_000));
        assert!(!think.is_longer_than(16_500_000));
    }
}
