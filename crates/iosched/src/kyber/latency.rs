//! Latency statistics of a domain, and the number of requests that they allow.
//!
//! Latencies are counted in eight buckets, each a quarter of the target wide. At most ten times per
//! second, kyber checks each kind of latency. It computes the percentile if there are enough
//! samples, or if a second has passed. Both kinds share this second: when the percentile of one
//! kind is computed, the second also begins again for the other kind.

use crate::decision::LatencyKind;
use crate::time::SECOND_NS;

/// Number of buckets: four up to the target, four above.
pub(super) const BUCKETS: usize = 8;
/// Number of buckets up to the target.
pub(super) const GOOD_BUCKETS: u32 = 4;
/// Number of samples that is enough for a percentile.
const SAMPLES: u32 = 500;
/// Target of discards, ns.
pub(super) const DISCARD_TARGET_NS: u64 = 5 * SECOND_NS;

/// Latencies of one kind.
#[derive(Clone, Debug, Default)]
struct Histogram {
    /// Samples that do not count before the timer next fires.
    fresh: [u32; BUCKETS],
    counted: [u32; BUCKETS],
}

impl Histogram {
    /// Returns the bucket that `percent` of the samples do not exceed, and removes the samples.
    fn take_percentile(&mut self, samples: u32, percent: u32) -> u32 {
        let mut need = (u64::from(samples) * u64::from(percent)).div_ceil(100);
        let mut found = BUCKETS as u32 - 1;
        for (bucket, &count) in (0..).zip(&self.counted[..BUCKETS - 1]) {
            if u64::from(count) >= need {
                found = bucket;
                break;
            }
            need -= u64::from(count);
        }
        self.counted = [0; BUCKETS];
        found
    }
}

/// Latencies of one domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    device: Histogram,
    total: Histogram,
    /// Time in jiffies after which a few samples are enough.
    deadline: Option<u64>,
    /// Last total percentile, if it was not used yet.
    pub(super) remembered: Option<u32>,
}

/// Returns the bucket of a latency.
fn bucket(latency_ns: u64, target_ns: u64) -> usize {
    let width_ns = (target_ns / u64::from(GOOD_BUCKETS)).max(1);
    latency_ns.checked_sub(1).map_or(0, |ns| (ns / width_ns).min(BUCKETS as u64 - 1) as usize)
}

impl Latencies {
    /// Adds the latency of a request.
    #[inline]
    pub(super) fn record(&mut self, kind: LatencyKind, latency_ns: u64, target_ns: u64) {
        self.histogram(kind).fresh[bucket(latency_ns, target_ns)] += 1;
    }

    fn histogram(&mut self, kind: LatencyKind) -> &mut Histogram {
        match kind {
            LatencyKind::Device => &mut self.device,
            LatencyKind::Total => &mut self.total,
        }
    }

    /// Makes fresh samples count.
    pub(super) fn age(&mut self) {
        for Histogram { fresh, counted } in [&mut self.device, &mut self.total] {
            for (counted, fresh) in counted.iter_mut().zip(fresh) {
                *counted += std::mem::take(fresh);
            }
        }
    }

    /// Returns the bucket that `percent` of the latencies do not exceed, and the number of samples.
    /// Needs enough samples, or a second since the last result; otherwise returns `None`.
    pub(super) fn percentile(&mut self, kind: LatencyKind, percent: u32, jiffy: u64, hz: u32) -> Option<(u32, u32)> {
        let samples = self.histogram(kind).counted.iter().sum();
        if samples == 0 {
            return None;
        }
        let deadline = *self.deadline.get_or_insert(jiffy + u64::from(hz));
        if samples < SAMPLES && deadline > jiffy {
            return None;
        }
        self.deadline = None;
        Some((self.histogram(kind).take_percentile(samples, percent), samples))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_target_quarters_and_the_last_is_unbounded() {
        let of = |ns| bucket(ns, 1000);
        assert_eq!([0, 1, 250, 251, 1000, 1001, 1750, 1751, u64::MAX].map(of), [0, 0, 0, 1, 3, 4, 6, 7, 7]);
        assert_eq!([0, 1, 2, 100].map(|ns| bucket(ns, 0)), [0, 0, 1, 7]);
    }

    #[test]
    fn few_samples_give_no_percentile_before_one_second() {
        let mut latencies = Latencies::default();
        let ask = |latencies: &mut Latencies, jiffy| latencies.percentile(LatencyKind::Device, 90, jiffy, 1000);
        assert_eq!(ask(&mut latencies, 0), None, "the second does not start without samples");
        latencies.record(LatencyKind::Device, 3000, 1000);
        assert_eq!(ask(&mut latencies, 5), None, "samples do not count before `age`");
        latencies.age();
        assert_eq!(ask(&mut latencies, 10), None);
        assert_eq!(ask(&mut latencies, 1009), None);
        assert_eq!(ask(&mut latencies, 1010), Some((7, 1)));
        assert_eq!(ask(&mut latencies, 1010), None, "samples are used once");
    }

    #[test]
    fn enough_samples_give_a_percentile_immediately() {
        let mut latencies = Latencies::default();
        for sample in 0..500 {
            latencies.record(LatencyKind::Total, if sample < 450 { 1 } else { 1001 }, 1000);
        }
        latencies.age();
        assert_eq!(latencies.clone().percentile(LatencyKind::Total, 90, 0, 1000), Some((0, 500)));
        assert_eq!(latencies.percentile(LatencyKind::Total, 91, 0, 1000), Some((4, 500)));
    }

    #[test]
    fn a_percentile_of_device_latency_delays_that_of_total_latency() {
        let mut latencies = Latencies::default();
        latencies.record(LatencyKind::Device, 1, 1000);
        latencies.record(LatencyKind::Total, 1, 1000);
        latencies.age();
        assert_eq!(latencies.percentile(LatencyKind::Total, 99, 0, 1000), None);
        assert_eq!(latencies.percentile(LatencyKind::Device, 90, 1000, 1000), Some((0, 1)));
        assert_eq!(latencies.percentile(LatencyKind::Total, 99, 1000, 1000), None);
        assert_eq!(latencies.percentile(LatencyKind::Total, 99, 2000, 1000), Some((0, 1)));
    }
}
