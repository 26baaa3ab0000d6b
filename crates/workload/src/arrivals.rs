//! Times at which an open replay submits the I/Os of a trace.
//!
//! Recorded times have a resolution. The trace gives the order of the submissions within one unit
//! of time, but not their exact times. A replay draws independent uniform times within the unit and
//! sorts them, so the order of the trace remains. To count the submissions of a unit, the replay
//! reads ahead to the end of the unit. Memory does not grow with the number of submissions in a
//! unit.

use std::cell::OnceCell;
use std::io;

use iosched_numbers::SplitMix64;
use iosched_system::rows::{Cursor, Rows};

use crate::error::WorkloadError;
use crate::trace::{Entry, Trace};

/// The latest time in a slowed-down replay, ns.
const LAST_NS: u64 = 1 << 62;

/// Returns the time, ns, at which a replay at this speed submits an I/O recorded at `recorded_ns`.
#[inline]
#[must_use]
pub fn due_ns(recorded_ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { recorded_ns } else { ((recorded_ns as f64 / speed) as u64).min(LAST_NS) }
}

/// The submissions of a trace, each with its time since the start, ns.
pub struct Arrivals<'a> {
    alone: bool,
    resolution_ns: u64,
    speed: f64,
    rng: SplitMix64,
    entries: Cursor<'a, Entry>,
    /// A cursor that reads ahead to the end of each unit.
    ahead: Cursor<'a, Entry>,
    /// Number of submissions left in the current unit.
    left: u64,
    /// Position of the latest submission in its unit, from 0 to 1.
    place: f64,
}

impl<'a> Arrivals<'a> {
    pub(crate) fn new(
        (rows, range, alone): (&'a Rows<Entry>, std::ops::Range<usize>, bool),
        resolution_ns: u64,
        speed: f64,
        rng: SplitMix64,
    ) -> Self {
        let (entries, ahead) = (rows.cursor(range.clone()), rows.cursor(range));
        Self { alone, resolution_ns, speed, rng, entries, ahead, left: 0, place: 0.0 }
    }

    /// Limits the rows in memory to `bytes`.
    pub(crate) fn with_window(self, bytes: usize) -> Self {
        Self { entries: self.entries.with_window(bytes / 2), ahead: self.ahead.with_window(bytes / 2), ..self }
    }

    /// Switches to the recorded times, without random times.
    #[must_use]
    pub(crate) fn recorded(self) -> Self {
        Self { resolution_ns: 1, ..self }
    }

    /// Draws a time within the unit of `recorded_ns` that is not before the previous submission.
    /// This is a separate function, so that the compiler inlines [`next`](Iterator::next).
    #[inline(never)]
    fn spread(&mut self, recorded_ns: u64) -> u64 {
        let unit = recorded_ns / self.resolution_ns;
        if self.left == 0 {
            self.place = 0.0;
            while self.ahead.peek().is_some_and(|later| later.arrival_ns / self.resolution_ns == unit) {
                self.ahead.next();
                self.left += 1;
            }
        }
        // The next time is the smallest of n uniform numbers in the rest of the unit. Let s be the
        // share of this rest that follows the next time. s is distributed like U^(1/n), where U is
        // uniform.
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

    #[inline(always)]
    fn next(&mut self) -> Option<(Entry, u64)> {
        let entry = self.entries.next()?;
        let at_ns = if self.resolution_ns > 1 { self.spread(entry.arrival_ns) } else { entry.arrival_ns };
        let at_ns = due_ns(at_ns, self.speed);
        Some((if self.alone { entry.alone() } else { entry }, at_ns))
    }
}

/// Times of the submissions of an open replay, ordered by process. When the first time is needed,
/// all times are drawn in one pass. A process then finds its next time without reading the
/// submissions of other processes.
pub struct TimesByProcess<'a> {
    trace: &'a Trace,
    speed: f64,
    rng: SplitMix64,
    times: OnceCell<io::Result<Rows<u64>>>,
}

impl<'a> TimesByProcess<'a> {
    /// Creates the times that [`Trace::arrivals`] returns for the same speed and random numbers.
    #[must_use]
    pub const fn new(trace: &'a Trace, speed: f64, rng: SplitMix64) -> Self {
        Self { trace, speed, rng, times: OnceCell::new() }
    }

    /// Returns the times of the last `count` submissions of a process. Returns `None` if the times
    /// cannot be stored: see [`check`](Self::check).
    #[must_use]
    pub fn last(&self, process: usize, count: usize) -> Option<Cursor<'_, u64>> {
        let arrivals = || self.trace.arrivals(self.speed, self.rng);
        let drawn = || arrivals().map(|(entry, at_ns)| (entry.process, at_ns));
        let by_process = self.trace.by_process();
        let times = self.times.get_or_init(|| by_process.sorted(drawn(), self.trace.len()));
        times.as_ref().ok().map(|times| by_process.last_of(times, process, count))
    }

    /// Checks that all times so far could be stored and read.
    ///
    /// # Errors
    /// The temporary file for the times of a long trace failed or was full.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let failure = match self.times.get() {
            Some(Ok(times)) => times.failure(),
            Some(Err(error)) => Some(error),
            None => None,
        };
        failure.map_or(Ok(()), |error| {
            let source = io::Error::new(error.kind(), error.to_string());
            Err(WorkloadError::Io { file: self.trace.name().to_owned(), source })
        })
    }
}

#[cfg(test)]
mod tests {
    use iosched::{Flags, Op, Time};
    use iosched_numbers::SplitMix64;
    use iosched_trace::TraceRequest;

    use super::TimesByProcess;
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
    fn arrivals_in_a_second_are_uniform_and_keep_the_order() {
        let trace = seconds((0..200_000).map(|i| i / 1_000));
        let mut last_ns = 0;
        let mut tenths = [0u32; 10];
        for ((entry, at_ns), expected) in trace.arrivals(1.0, SplitMix64::new(1)).zip(trace.entries()) {
            assert_eq!(entry, expected);
            assert!(at_ns >= last_ns, "arrivals keep the order of the trace");
            assert_eq!(at_ns / SECOND_NS * SECOND_NS, entry.arrival_ns, "a time stays within its second");
            tenths[(at_ns % SECOND_NS / 100_000_000) as usize] += 1;
            last_ns = at_ns;
        }
        // Binomial with n = 200,000 and p = 0.1: six standard deviations are 805.
        assert!(tenths.iter().all(|count| count.abs_diff(20_000) < 805), "{tenths:?}");
    }

    #[test]
    fn deviation_of_arrival_gaps_equals_their_mean() {
        let trace = seconds((0..100_000).map(|i| i / 1_000));
        let times: Vec<u64> = trace.arrivals(1.0, SplitMix64::new(2)).map(|(_, at_ns)| at_ns).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The standard deviation of exponential gaps is equal to their mean. The standard deviation
        // of equal gaps is 0.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{} of {mean}", variance.sqrt());
    }

    #[test]
    fn times_by_process_match_the_arrivals() {
        let trace = seconds((0..500).map(|i| i / 37));
        let (speed, rng) = (2.0, SplitMix64::new(3));
        let by_process = TimesByProcess::new(&trace, speed, rng);
        for process in 0..3 {
            let all = trace.arrivals(speed, rng);
            let expected: Vec<u64> =
                all.filter(|(entry, _)| entry.process == process).map(|(_, at_ns)| at_ns).collect();
            for count in [0, 1, 37, expected.len()] {
                let times: Vec<u64> = by_process.last(process as usize, count).unwrap().collect();
                assert_eq!(times, expected[expected.len() - count..], "the last {count} of process {process}");
            }
        }
        by_process.check().unwrap();
    }

    #[test]
    fn speed_shortens_times_within_the_same_second() {
        let trace = seconds((0..100).map(|_| 0));
        let last = |speed| trace.arrivals(speed, SplitMix64::new(4)).last().unwrap().1;
        assert_eq!(last(4.0), last(1.0) / 4);
    }
}
