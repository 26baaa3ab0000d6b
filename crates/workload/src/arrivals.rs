//! The times at which an open replay submits what a trace recorded.
//!
//! Recorded times have a resolution. Of the submissions that share a unit of time only the order is known, and that
//! they fall somewhere into the unit. A replay draws independent uniform times for them and sorts them, so the order
//! of the trace stays. A unit is read ahead to count its submissions; memory does not grow with its length.

use iosched_numbers::SplitMix64;
use iosched_system::rows::{Cursor, Rows};

use crate::trace::Entry;

/// The latest moment of a slowed-down replay, ns.
const LAST_NS: u64 = 1 << 62;
/// Bytes in memory of a reader that follows another one.
const FORK_BYTES: usize = 4 << 10;

/// When a replay at this speed submits what is recorded at `recorded_ns`, ns.
#[inline]
#[must_use]
pub fn due_ns(recorded_ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { recorded_ns } else { ((recorded_ns as f64 / speed) as u64).min(LAST_NS) }
}

/// The submissions of a trace, each with its time in ns since the start.
pub struct Arrivals<'a> {
    rows: &'a Rows<Entry>,
    alone: bool,
    resolution_ns: u64,
    speed: f64,
    rng: SplitMix64,
    entries: Cursor<'a, Entry>,
    /// Reads ahead to the end of each unit.
    ahead: Cursor<'a, Entry>,
    /// Submissions of the present unit that are still to come.
    left: u64,
    /// Where in its unit the latest submission is, from 0 to 1.
    place: f64,
    /// Number of the next row, and of the row behind the last.
    next: usize,
    end: usize,
}

impl<'a> Arrivals<'a> {
    pub(crate) fn new(
        (rows, range, alone): (&'a Rows<Entry>, std::ops::Range<usize>, bool),
        resolution_ns: u64,
        speed: f64,
        rng: SplitMix64,
    ) -> Self {
        let (entries, ahead) = (rows.cursor(range.clone()), rows.cursor(range.clone()));
        let (next, end) = (range.start, range.end);
        Self { rows, alone, resolution_ns, speed, rng, entries, ahead, left: 0, place: 0.0, next, end }
    }

    /// Likewise with at most so many bytes of rows in memory.
    pub(crate) fn with_window(self, bytes: usize) -> Self {
        Self { entries: self.entries.with_window(bytes / 2), ahead: self.ahead.with_window(bytes / 2), ..self }
    }

    /// The same submissions at the times that were recorded.
    #[must_use]
    pub(crate) fn recorded(self) -> Self {
        Self { resolution_ns: 1, ..self }
    }

    /// A second reader of the same arrivals that begins where this one is.
    #[must_use]
    pub fn fork(&self) -> Self {
        let ahead = if self.resolution_ns > 1 { self.next + self.left as usize } else { self.next };
        Self {
            entries: self.rows.cursor(self.next..self.end).with_window(FORK_BYTES),
            ahead: self.rows.cursor(ahead..self.end).with_window(FORK_BYTES),
            ..*self
        }
    }

    /// The number of the next submission; at the end the number behind the last.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> usize {
        self.next
    }

    /// A time within the unit of `entry`, not before the one before it.
    #[inline]
    fn spread(&mut self, entry: &Entry) -> u64 {
        let unit = entry.arrival_ns / self.resolution_ns;
        if self.left == 0 {
            self.place = 0.0;
            while self.ahead.peek().is_some_and(|later| later.arrival_ns / self.resolution_ns == unit) {
                self.ahead.next();
                self.left += 1;
            }
        }
        // The least of n uniform numbers leaves a share of the rest that is distributed as U^(1/n).
        let uniform = 1.0 - self.rng.unit();
        let share = if self.left > 1 { uniform.powf(1.0 / self.left as f64) } else { uniform };
        self.left = self.left.saturating_sub(1);
        self.place = 1.0 - (1.0 - self.place) * share;
        let within_ns = ((self.place * self.resolution_ns as f64) as u64).min(self.resolution_ns - 1);
        unit * self.resolution_ns + within_ns
    }
}

impl Iterator for Arrivals<'_> {
    type Item = (Entry, u64);

    #[inline]
    fn next(&mut self) -> Option<(Entry, u64)> {
        let entry = self.entries.next()?;
        self.next += 1;
        let at_ns = if self.resolution_ns > 1 { self.spread(&entry) } else { entry.arrival_ns };
        let at_ns = due_ns(at_ns, self.speed);
        Some((if self.alone { entry.alone() } else { entry }, at_ns))
    }
}

#[cfg(test)]
mod tests {
    use iosched::{Flags, Op, Time};
    use iosched_numbers::SplitMix64;
    use iosched_trace::TraceRequest;

    use crate::Trace;

    const SECOND_NS: u64 = 1_000_000_000;

    fn seconds(times: impl Iterator<Item = u64>) -> Trace {
        let requests = times.enumerate().map(|(i, second)| {
            Ok(TraceRequest {
                arrival: Time::from_ns(second * SECOND_NS),
                pid: i as u32 % 3,
                device: None,
                op: Op::Read,
                flags: Flags::SYNC,
                sector: i as u64,
                nr_sectors: 1,
                latency_ns: None,
                ioprio: None,
            })
        });
        Trace::collect("t", SECOND_NS, requests).unwrap()
    }

    #[test]
    fn times_in_a_unit_are_uniform_and_keep_the_order() {
        let trace = seconds((0..200_000).map(|i| i / 1_000));
        let mut last_ns = 0;
        let mut tenths = [0u32; 10];
        for ((entry, at_ns), expected) in trace.arrivals(1.0, SplitMix64::new(1)).zip(trace.entries()) {
            assert_eq!(entry, expected);
            assert!(at_ns >= last_ns, "the order of the trace stays");
            assert_eq!(at_ns / SECOND_NS * SECOND_NS, entry.arrival_ns, "a time stays within its second");
            tenths[(at_ns % SECOND_NS / 100_000_000) as usize] += 1;
            last_ns = at_ns;
        }
        // Binomial with n = 200,000 and p = 0.1: six standard deviations are 805.
        assert!(tenths.iter().all(|count| count.abs_diff(20_000) < 805), "{tenths:?}");
    }

    #[test]
    fn gaps_are_those_of_independent_arrivals() {
        let trace = seconds((0..100_000).map(|i| i / 1_000));
        let times: Vec<u64> = trace.arrivals(1.0, SplitMix64::new(2)).map(|(_, at_ns)| at_ns).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Exponential gaps deviate by their mean; evenly spaced ones by nothing.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{} of {mean}", variance.sqrt());
    }

    #[test]
    fn a_fork_gives_the_same_times_again() {
        let trace = seconds((0..500).map(|i| i / 37));
        for skipped in [0, 1, 36, 37, 38, 300, 500] {
            let mut arrivals = trace.arrivals(2.0, SplitMix64::new(3));
            assert_eq!(arrivals.by_ref().take(skipped).count(), skipped);
            let forked: Vec<_> = arrivals.fork().collect();
            assert_eq!(forked, arrivals.collect::<Vec<_>>(), "after {skipped}");
        }
    }

    #[test]
    fn speed_also_shortens_the_unit() {
        let trace = seconds((0..100).map(|_| 0));
        let last = |speed| trace.arrivals(speed, SplitMix64::new(4)).last().unwrap().1;
        assert_eq!(last(4.0), last(1.0) / 4);
    }
}
