//! Counts over time, in a bounded number of bins. When the time passes the end of the last bin,
//! each pair of neighbouring bins is joined, so that bins become twice as wide.

use serde::{Deserialize, Serialize};

/// Maximum number of bins. The narrowest bins have a width of 1 µs. A trace that is longer than 64
/// µs fills at least half of the bins.
pub const BINS_MAX: usize = 64;
const BIN_MIN_NS: u64 = 1_000;

/// Counts of the requests in one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Requests submitted.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Mean number of requests in flight, weighted by time; `None` if no completion is known.
    pub depth_mean: Option<f64>,
    /// Maximum number of requests in flight; `None` if no completion is known.
    pub depth_max: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    requests: u64,
    bytes: u64,
    depth_ns: u128,
    depth_max: u64,
}

#[derive(Debug)]
pub(super) struct Timeline {
    bins: Vec<Bin>,
    bin_ns: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { bins: vec![Bin::default(); BINS_MAX], bin_ns: BIN_MIN_NS }
    }
}

impl Timeline {
    pub(super) fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    #[inline]
    fn bin(&mut self, at_ns: u64) -> usize {
        while at_ns / self.bin_ns >= BINS_MAX as u64 {
            self.widen();
        }
        (at_ns / self.bin_ns) as usize
    }

    fn widen(&mut self) {
        for at in 0..BINS_MAX {
            let pair = self.bins.get(2 * at..2 * at + 2).unwrap_or_default();
            self.bins[at] = pair.iter().fold(Bin::default(), |sum, bin| Bin {
                requests: sum.requests + bin.requests,
                bytes: sum.bytes.saturating_add(bin.bytes),
                depth_ns: sum.depth_ns + bin.depth_ns,
                depth_max: sum.depth_max.max(bin.depth_max),
            });
        }
        self.bin_ns *= 2;
    }

    pub(super) fn arrive(&mut self, at_ns: u64, bytes: u64) {
        let bin = self.bin(at_ns);
        self.bins[bin].requests += 1;
        self.bins[bin].bytes = self.bins[bin].bytes.saturating_add(bytes);
    }

    pub(super) fn depth_reached(&mut self, at_ns: u64, depth: u64) {
        let bin = self.bin(at_ns);
        self.bins[bin].depth_max = self.bins[bin].depth_max.max(depth);
    }

    /// Records that `depth` requests were in flight from `from_ns` to `to_ns`.
    #[inline]
    pub(super) fn depth_held(&mut self, from_ns: u64, to_ns: u64, depth: u64) {
        if depth == 0 || from_ns >= to_ns {
            return;
        }
        let last = self.bin(to_ns);
        let first = self.bin(from_ns);
        for at in first..=last {
            let start = at as u64 * self.bin_ns;
            let end = start.saturating_add(self.bin_ns);
            let held_ns = to_ns.min(end).saturating_sub(from_ns.max(start));
            let bin = &mut self.bins[at];
            bin.depth_ns += u128::from(held_ns) * u128::from(depth);
            if held_ns > 0 {
                bin.depth_max = bin.depth_max.max(depth);
            }
        }
    }

    /// Returns the bins up to `span_ns`.
    pub(super) fn bins(&self, span_ns: u64, depth_known: bool) -> Vec<TimeBin> {
        let count = (span_ns / self.bin_ns + 1).min(BINS_MAX as u64) as usize;
        let bins = self.bins[..count].iter().enumerate().map(|(at, bin)| {
            // The last bin is shorter, because it ends with the trace.
            let width_ns = self.bin_ns.min(span_ns.saturating_sub(at as u64 * self.bin_ns)).max(1);
            TimeBin {
                requests: bin.requests,
                bytes: bin.bytes,
                depth_mean: depth_known.then(|| bin.depth_ns as f64 / width_ns as f64),
                depth_max: depth_known.then_some(bin.depth_max),
            }
        });
        bins.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_bins_keep_request_counts_and_depths() {
        let mut timeline = Timeline::default();
        for at in 0..1_000u64 {
            timeline.arrive(at * 777, 512);
            timeline.depth_held(at * 777, (at + 1) * 777, 3);
        }
        let bins = timeline.bins(777_000, true);
        assert!((BINS_MAX / 2..=BINS_MAX).contains(&bins.len()), "{}", bins.len());
        assert_eq!(bins.iter().map(|bin| bin.requests).sum::<u64>(), 1_000);
        for bin in &bins {
            assert!((bin.depth_mean.unwrap() - 3.0).abs() < 1e-9, "{bin:?}");
            assert_eq!(bin.depth_max, Some(3));
        }
    }

    #[test]
    fn largest_times_do_not_exceed_the_bin_limit() {
        let mut timeline = Timeline::default();
        timeline.arrive(u64::MAX, 1);
        timeline.depth_held(0, u64::MAX, u64::MAX);
        assert!(timeline.bins(u64::MAX, true).len() <= BINS_MAX);
    }
}
