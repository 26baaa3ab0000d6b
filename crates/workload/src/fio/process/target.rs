//! `latency_target`: the search for the largest depth that meets the target.
//!
//! The search begins at depth 1. As long as no depth has failed, each success doubles the depth.
//! After that, the search bisects between the largest depth that met the target and the smallest
//! depth that failed. The test of each depth takes one `latency_window`. If every I/O must meet the
//! target, the depth fails at the first slow I/O. When the depth is final, the job runs for one
//! more window, and only the metrics of this window count. Then the job ends, unless `latency_run`
//! is set.

use crate::fio::value::LatencyTarget;

/// Result of a completion or of the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Continue.
    Same,
    /// The search lowered the depth. All I/Os in flight must complete first.
    Lower,
    /// The depth is final. Its metrics count from now on.
    Found,
    /// The metrics of the final depth are complete.
    Done,
    /// Even one I/O at a time does not meet the target.
    Unreachable,
}

/// State of the search.
#[derive(Clone, Debug)]
pub(super) struct Search {
    target: LatencyTarget,
    depth_max: u32,
    depth: u32,
    /// Largest depth that met the target, and smallest depth that missed it.
    low: u32,
    high: u32,
    since_ns: u64,
    ios: u64,
    late: u64,
    found: bool,
}

impl Search {
    pub(super) fn new(target: LatencyTarget, depth_max: u32, now_ns: u64) -> Self {
        let depth_max = depth_max.max(1);
        Self {
            target,
            depth_max,
            depth: 1,
            low: 0,
            high: depth_max + 1,
            since_ns: now_ns,
            ios: 0,
            late: 0,
            found: false,
        }
    }

    /// Returns the current depth.
    pub(super) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Counts a completed I/O, unless the I/O began at another depth.
    pub(super) fn completed(&mut self, asked_ns: u64, now_ns: u64) -> Verdict {
        if asked_ns < self.since_ns {
            return Verdict::Same;
        }
        let latency_ns = now_ns - asked_ns;
        self.ios += 1;
        if latency_ns > self.target.target_ns {
            self.late += 1;
            if self.target.percentile >= 100.0 {
                return self.missed(now_ns);
            }
        }
        if now_ns.saturating_sub(self.since_ns) < self.target.window_ns {
            return Verdict::Same;
        }
        let kept_percent = (self.ios - self.late) as f64 * 100.0 / self.ios as f64;
        if kept_percent >= self.target.percentile { self.kept(now_ns) } else { self.missed(now_ns) }
    }

    /// Begins a window.
    pub(super) fn restart(&mut self, now_ns: u64) {
        (self.since_ns, self.ios, self.late) = (now_ns, 0, 0);
    }

    fn missed(&mut self, now_ns: u64) -> Verdict {
        self.restart(now_ns);
        self.found = false;
        if self.depth == 1 {
            return Verdict::Unreachable;
        }
        self.high = self.depth;
        if self.low >= self.depth {
            // A depth that met the target earlier misses it now.
            self.low = self.depth - 1;
        }
        self.depth = ((self.depth + self.low) / 2).max(1);
        Verdict::Lower
    }

    fn kept(&mut self, now_ns: u64) -> Verdict {
        self.restart(now_ns);
        self.low = self.depth;
        let next = if self.high > self.depth_max { self.depth.saturating_mul(2) } else { (self.depth + self.high) / 2 };
        let next = next.min(self.depth_max);
        if next != self.depth {
            self.depth = next;
            return Verdict::Same;
        }
        if self.target.run {
            return Verdict::Same;
        }
        if self.found { Verdict::Done } else { self.begin_last() }
    }

    fn begin_last(&mut self) -> Verdict {
        self.found = true;
        Verdict::Found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search on a device where an I/O takes 10 ns for each I/O in flight.
    fn search(target_ns: u64, depth_max: u32) -> (u32, Verdict) {
        let target = LatencyTarget { target_ns, window_ns: 1000, percentile: 100.0, run: false };
        let mut search = Search::new(target, depth_max, 0);
        let mut now_ns = 1_000_000;
        for _ in 0..100_000 {
            now_ns += 10;
            let verdict = search.completed(now_ns - u64::from(search.depth()) * 10, now_ns);
            if matches!(verdict, Verdict::Done | Verdict::Unreachable) {
                return (search.depth(), verdict);
            }
        }
        (search.depth(), Verdict::Same)
    }

    #[test]
    fn search_finds_the_largest_depth_within_the_target() {
        for depth in [1, 2, 3, 7, 17, 63, 64] {
            assert_eq!(search(u64::from(depth) * 10 + 5, 64), (depth, Verdict::Done));
        }
        assert_eq!(search(100_000, 64), (64, Verdict::Done));
        assert_eq!(search(5, 64), (1, Verdict::Unreachable));
    }

    #[test]
    fn percentile_allows_some_late_ios() {
        let target = LatencyTarget { target_ns: 100, window_ns: 50_000, percentile: 90.0, run: true };
        let mut search = Search::new(target, 2, 0);
        for i in 1..=200u64 {
            let latency_ns = if i % 20 == 0 { 500 } else { 50 };
            let now_ns = i * 1000;
            let verdict = search.completed(now_ns - latency_ns, now_ns);
            assert_eq!(verdict, Verdict::Same);
        }
        assert_eq!(search.depth(), 2);
    }
}
