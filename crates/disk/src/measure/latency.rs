//! Distributions of latencies.

/// Latencies of the commands of a measurement, ns.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Latencies in the order of completion, or sorted if `sorted` is set.
    ns: Vec<u64>,
    sorted: bool,
}

impl Latencies {
    pub(super) fn record(&mut self, ns: u64) {
        self.ns.push(ns);
        self.sorted = false;
    }

    pub(super) fn sort(&mut self) {
        self.ns.sort_unstable();
        self.sorted = true;
    }

    /// Returns the number of latencies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Returns whether there are no latencies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// Returns the mean, ns; 0 without latencies.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        let sum: u128 = self.ns.iter().map(|&ns| u128::from(ns)).sum();
        sum as f64 / self.ns.len().max(1) as f64
    }

    /// Returns the quantile at `share`, ns: a `share` of the commands, 0 to 1, has at most this
    /// latency. Returns 0 without latencies.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        debug_assert!(self.sorted || self.ns.is_empty(), "sorted before it is shown");
        let rank = (share * self.ns.len() as f64).ceil() as usize;
        self.ns.get(rank.clamp(1, self.ns.len().max(1)) - 1).copied().unwrap_or(0)
    }

    /// Returns the largest latency, ns; 0 without latencies.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.ns.iter().copied().max().unwrap_or(0)
    }

    /// Returns the counts in `bins` bins of equal width on a logarithmic scale from `from_ns` to
    /// `to_ns`. Values outside this range count in the first or the last bin.
    #[must_use]
    pub fn histogram(&self, from_ns: f64, to_ns: f64, bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins.max(1)];
        let last = counts.len() - 1;
        let width = ((to_ns / from_ns).ln() / counts.len() as f64).max(f64::MIN_POSITIVE);
        for &ns in &self.ns {
            let bin = ((ns.max(1) as f64 / from_ns).ln() / width).clamp(0.0, last as f64);
            counts[bin as usize] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_the_smallest_latency_that_covers_the_share() {
        let mut latencies = Latencies::default();
        for ns in (1..=1000).rev() {
            latencies.record(ns);
        }
        latencies.sort();
        assert_eq!([0.0, 0.5, 0.999, 1.0].map(|share| latencies.quantile_ns(share)), [1, 500, 999, 1000]);
        assert!((latencies.mean_ns() - 500.5).abs() < 1e-9);
        assert_eq!(Latencies::default().quantile_ns(0.5), 0);
    }

    #[test]
    fn histogram_bins_are_logarithmic_and_keep_outliers() {
        let mut latencies = Latencies::default();
        for ns in [1, 15, 150, 1500, 99_000] {
            latencies.record(ns);
        }
        assert_eq!(latencies.histogram(10.0, 10_000.0, 3), [2, 1, 2]);
    }
}
