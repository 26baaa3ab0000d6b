//! Latency histograms. They are log-linear and small, and can be merged.

use serde::{Deserialize, Serialize};

/// Binary logarithm of the number of buckets for each power of two. The precision is 1/64 of a
/// value.
const SUB_BITS: u32 = 6;
const SUBS: usize = 1 << SUB_BITS;

/// A histogram of times in ns.
///
/// The width of a bucket is at most 1/64 (1.6 %) of its values. Below 64 ns, buckets are exact.
/// Memory contains only the range of buckets in use. Only buckets that are not empty are
/// serialised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Sparse", into = "Sparse")]
pub struct Histogram {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// The first bucket in `counts`, a multiple of [`SUBS`].
    base: usize,
    counts: Vec<u64>,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
struct Sparse {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// For every bucket that is not empty: the distance from the previous bucket that is not empty
    /// (at first, from bucket 0), then the count.
    buckets: Vec<u64>,
}

#[inline]
fn bucket(ns: u64) -> usize {
    let exponent = (ns | 1).ilog2();
    if exponent < SUB_BITS {
        return ns as usize;
    }
    let shift = exponent - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((ns >> shift) as usize & (SUBS - 1))
}

/// Returns the first value of a bucket, and the number of different values in it.
fn bounds(bucket: usize) -> (u64, u64) {
    match bucket >> SUB_BITS {
        0 => (bucket as u64, 1),
        octave => (((SUBS + (bucket & (SUBS - 1))) as u64) << (octave - 1), 1 << (octave - 1)),
    }
}

/// Number of buckets.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

impl Histogram {
    /// Counts one duration, ns.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let index = bucket(ns);
        match self.counts.get_mut(index.wrapping_sub(self.base)) {
            Some(count) => *count += 1,
            None => self.extend(index, 1),
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.min_ns = if self.count == 1 { ns } else { self.min_ns.min(ns) };
    }

    /// Adds a count to a bucket outside of the present range.
    #[cold]
    fn extend(&mut self, index: usize, count: u64) {
        let octave = index & !(SUBS - 1);
        if self.counts.is_empty() {
            self.base = octave;
        } else if octave < self.base {
            let before = self.base - octave;
            self.counts.splice(0..0, std::iter::repeat_n(0, before));
            self.base = octave;
        }
        let end = octave + SUBS - self.base;
        if self.counts.len() < end {
            self.counts.resize(end, 0);
        }
        self.counts[index - self.base] += count;
    }

    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (i, &count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let index = other.base + i;
            match self.counts.get_mut(index.wrapping_sub(self.base)) {
                Some(mine) => *mine += count,
                None => self.extend(index, count),
            }
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Returns the number of recorded times.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether the histogram is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the sum of the times, ns. It is exact up to 2^64 - 1.
    #[must_use]
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the exact mean, ns. Returns 0 if the histogram is empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Returns the exact smallest time, ns. Returns 0 if the histogram is empty.
    #[must_use]
    pub const fn min_ns(&self) -> u64 {
        self.min_ns
    }

    /// Returns the exact largest time, ns. Returns 0 if the histogram is empty.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the `q` quantile, ns, with `q` from 0 to 1. This is the `ceil(q * n)`-th smallest of
    /// n times, with an error of at most 0.8 %. Returns 0 if the histogram is empty.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (i, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                let (first, width) = bounds(self.base + i);
                return (first + (width - 1) / 2).clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns every bucket that is not empty, in ascending order: its first value in ns, its width
    /// in ns, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(i, &count)| {
            let (first, width) = bounds(self.base + i);
            (first, width, count)
        })
    }
}

impl From<Histogram> for Sparse {
    fn from(histogram: Histogram) -> Self {
        let Histogram { count, sum_ns, min_ns, max_ns, base, ref counts } = histogram;
        let mut buckets = Vec::new();
        let mut last = 0;
        for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let index = (base + i) as u64;
            buckets.extend([index - last, count]);
            last = index;
        }
        Self { count, sum_ns, min_ns, max_ns, buckets }
    }
}

impl From<Sparse> for Histogram {
    fn from(sparse: Sparse) -> Self {
        let Sparse { count, sum_ns, min_ns, max_ns, buckets } = sparse;
        let mut histogram = Self { count, sum_ns, min_ns, max_ns, ..Self::default() };
        let mut index = 0usize;
        for pair in buckets.chunks_exact(2) {
            index = index.saturating_add(usize::try_from(pair[0]).unwrap_or(usize::MAX));
            if index >= BUCKETS {
                break;
            }
            match histogram.counts.get_mut(index.wrapping_sub(histogram.base)) {
                Some(count) => *count += pair[1],
                None => histogram.extend(index, pair[1]),
            }
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous() {
        for index in 1..BUCKETS {
            let (before, width) = bounds(index - 1);
            assert_eq!(before + width, bounds(index).0);
            assert_eq!(bucket(bounds(index).0), index);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_1_percent(mut values in proptest::collection::vec(0u64..10_000_000_000, 1..400), q in 0.0..1.0f64) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&v| histogram.record(v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let (exact, found) = (values[rank - 1], histogram.quantile_ns(q));
            prop_assert!(exact.abs_diff(found) <= exact / 100 + 1, "{exact} {found}");
            prop_assert_eq!(histogram.max_ns(), values[values.len() - 1]);
            prop_assert_eq!(histogram.min_ns(), values[0]);
            prop_assert_eq!(histogram.sum_ns(), values.iter().sum::<u64>());
        }

        #[test]
        fn merging_histograms_equals_recording_all_values(a in proptest::collection::vec(any::<u32>(), 0..50), b in proptest::collection::vec(any::<u64>(), 0..50)) {
            let of = |values: &mut dyn Iterator<Item = u64>| {
                let mut histogram = Histogram::default();
                values.for_each(|v| histogram.record(v));
                histogram
            };
            let mut merged = of(&mut a.iter().map(|&v| v.into()));
            merged.merge(&of(&mut b.iter().copied()));
            let both = of(&mut a.iter().map(|&v| v.into()).chain(b.iter().copied()));
            prop_assert_eq!(merged.buckets().collect::<Vec<_>>(), both.buckets().collect::<Vec<_>>());
            prop_assert_eq!(merged.count(), both.count());
            let text = serde_json::to_string(&both).unwrap();
            let back: Histogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
            prop_assert_eq!(back.quantile_ns(0.9), both.quantile_ns(0.9));
        }
    }
}
