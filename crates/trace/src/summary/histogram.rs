//! Latencies counted in buckets of equal ratio.

use super::LatencySummary;

/// Buckets per power of two: half a bucket is 1.6 %.
const STEPS_BITS: u32 = 5;
const STEPS: usize = 1 << STEPS_BITS;
const BUCKETS: usize = (64 - STEPS_BITS as usize + 1) * STEPS;

/// Counts of values; values below 32 are exact.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        self.buckets[bucket_of(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// The value below which `percent` of all are: the middle of its bucket.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return middle_of(bucket).min(self.max);
            }
        }
        self.max
    }

    pub(super) fn summary(&self) -> Option<LatencySummary> {
        (self.count > 0).then(|| LatencySummary {
            requests: self.count,
            mean_ns: self.sum as f64 / self.count as f64,
            p50_ns: self.percentile(50),
            p95_ns: self.percentile(95),
            p99_ns: self.percentile(99),
            max_ns: self.max,
        })
    }
}

fn bucket_of(value: u64) -> usize {
    if value < STEPS as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - STEPS_BITS;
    (shift as usize + 1) * STEPS + ((value >> shift) as usize & (STEPS - 1))
}

fn middle_of(bucket: usize) -> u64 {
    if bucket < STEPS {
        return bucket as u64;
    }
    let shift = bucket / STEPS - 1;
    let low = ((bucket % STEPS + STEPS) as u64) << shift;
    low + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_values_near_its_middle() {
        for value in [0, 1, 31, 32, 33, 63, 64, 1_000, 123_456_789, u64::MAX / 3, u64::MAX] {
            let middle = middle_of(bucket_of(value));
            assert!(middle.abs_diff(value) as f64 <= value as f64 * 0.016, "{value} {middle}");
        }
    }

    #[test]
    fn percentiles_are_by_rank() {
        let mut histogram = Histogram::default();
        (1..=20).for_each(|value| histogram.add(value));
        let summary = histogram.summary().unwrap();
        assert_eq!((summary.p50_ns, summary.p95_ns, summary.p99_ns, summary.max_ns), (10, 19, 20, 20));
    }
}
