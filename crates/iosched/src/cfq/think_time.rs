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
    mean_ns: u64,
}

impl ThinkTime {
    /// A record whose clock starts at `now`.
    pub(super) fn new(now: Time) -> Self {
        Self { last_completion: now, samples: 0, total_ns: 0, mean_ns: 0 }
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
        self.mean_ns = (self.total_ns + SAMPLE / 2) / self.samples;
    }

    /// The mean in ns, once there are samples enough to trust it.
    #[inline]
    pub(super) fn mean_ns(&self) -> Option<u64> {
        (self.samples > SAMPLES_VALID).then_some(self.mean_ns)
    }

    /// Whether waiting `idle_ns` for the next request is known to be in vain.
    #[inline]
    pub(super) fn is_longer_than(&self, idle_ns: u64) -> bool {
        self.mean_ns().is_some_and(|mean_ns| mean_ns > idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_trusted_from_the_third_sample() {
        let mut think = ThinkTime::new(Time::ZERO);
        for n in 1..=3 {
            assert_eq!(think.mean_ns(), None, "before sample {n}");
            think.sample(Time::from_ns(5_000_000), 8_000_000);
        }
        assert!(think.mean_ns().is_some());
    }

    #[test]
    fn long_pauses_count_as_twice_the_idle_time() {
        let mut think = ThinkTime::new(Time::ZERO);
        for _ in 0..100 {
            think.sample(Time::from_ns(1_000_000_000), 8_000_000);
        }
        let mean_ns = think.mean_ns().unwrap();
        // Truncation makes the mean settle up to 3 % high.
        assert!((16_000_000..16_500_000).contains(&mean_ns), "{mean_ns}");
    }
}
