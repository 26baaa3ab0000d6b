//! The depth that a process keeps in a recording, and the order of its submissions and completions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::iter::Peekable;
use std::ops::Range;

use iosched_numbers::SplitMix64;
use iosched_trace::COARSE_NS;

use crate::arrivals::Arrivals;
use crate::trace::{Entry, Trace};

/// Seed of the times that are drawn within coarse units. The seed is fixed, because runs with
/// different seeds use the same closed loop.
const SEED: u64 = 0;
/// Largest latency that is assumed for an unrecorded completion, ns: about a seek and a rotation of
/// a disk.
pub(crate) const ASSUMED_NS: u64 = 10_000_000;
/// Largest depth of a process that the search can find. This limit also limits memory.
const DEPTH_MAX: usize = 4096;
/// Inverse of a share: at least 1/64 of the bursts must show a behaviour before it counts as the
/// behaviour of the process. Rounded times can exchange a submission and a completion, so a single
/// burst proves nothing.
const RARE: u64 = 64;

/// The submissions of a process in order of time, and the completions before each submission.
pub(crate) struct Steps<'a> {
    arrivals: Arrivals<'a>,
    /// The same submissions again. This reader is ahead of `arrivals`.
    later: Peekable<Arrivals<'a>>,
    slack_ns: u64,
    assumed_ns: u64,
    /// For each I/O in flight: earliest possible completion and recorded completion, ns.
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    latest_ns: u64,
    unknown: u64,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(trace: &'a Trace, process: usize) -> Self {
        let arrivals = || arrivals_of(trace, process);
        let incomplete = arrivals().any(|(entry, _)| entry.latency_ns().is_none());
        Self {
            arrivals: arrivals(),
            later: arrivals().peekable(),
            slack_ns: trace.rounding_ns(),
            assumed_ns: if incomplete { typical_gap_ns(&arrivals) } else { 0 },
            in_flight: BinaryHeap::new(),
            latest_ns: 0,
            unknown: 0,
        }
    }

    /// Returns the arrival of the next submission, ns. Adds the times of the completions since the
    /// previous submission to `done`, in order of time.
    #[inline]
    pub(crate) fn next(&mut self, done: &mut Vec<u64>) -> Option<u64> {
        let (entry, arrival_ns) = self.arrivals.next()?;
        while let Some(&Reverse((early_ns, done_ns))) = self.in_flight.peek()
            && early_ns <= arrival_ns
        {
            self.latest_ns = self.latest_ns.max(done_ns);
            done.push(self.latest_ns);
            self.in_flight.pop();
        }
        let recorded_ns = entry.latency_ns();
        let latency_ns = recorded_ns.unwrap_or_else(|| {
            self.unknown += 1;
            while self.later.peek().is_some_and(|&(_, later_ns)| later_ns <= arrival_ns) {
                self.later.next();
            }
            let gap_ns = self.later.peek().map_or(u64::MAX, |&(_, later_ns)| later_ns - arrival_ns);
            self.assumed_ns.min(gap_ns)
        });
        let done_ns = arrival_ns.saturating_add(latency_ns);
        let early_ns = if recorded_ns.is_some() { self.slack_ns.min(latency_ns / 2) } else { 0 };
        self.in_flight.push(Reverse((done_ns - early_ns, done_ns)));
        Some(arrival_ns)
    }

    /// Returns the number of submissions so far whose completion was not recorded.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown
    }
}

/// The constant depth of a process, such as fio's `iodepth`.
///
/// A process keeps a depth if most of its bursts end when this number of I/Os is in flight. Such a
/// process sleeps until it has room for at least [`step`](Self::step) I/Os. Then it submits I/Os
/// until the depth is reached. If a process waits for all its I/Os, its step is equal to its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Number of I/Os in flight at the end of a burst.
    pub(crate) ios: u32,
    step: u32,
}

impl Depth {
    /// Finds the depth of a process. Returns `None` if the process keeps no constant depth.
    pub(crate) fn of(mut steps: Steps<'_>) -> Option<Self> {
        // Number of bursts for each pair of the depth at the burst's end and the depth at its
        // start.
        let mut bursts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let (mut all, mut start, mut in_flight, mut is_first) = (0, 0, 0, true);
        let mut done = Vec::new();
        while steps.next(&mut done).is_some() {
            if !done.is_empty() {
                // The process starts with its first burst, so the first burst does not follow a
                // sleep.
                if !is_first {
                    all += 1;
                    if in_flight <= DEPTH_MAX {
                        *bursts.entry((in_flight, start)).or_default() += 1;
                    }
                }
                is_first = false;
                in_flight -= done.len();
                start = in_flight;
                done.clear();
            }
            in_flight += 1;
        }
        let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
        for (&(end, _), count) in &bursts {
            *ends.entry(end).or_default() += count;
        }
        let (&ios, &count) = ends.iter().max_by_key(|&(_, count)| count)?;
        if 2 * count <= all {
            return None;
        }
        let mut seen = 0;
        let (&(_, start), _) = bursts.range((ios, 0)..=(ios, ios)).rev().find(|&(_, bursts)| {
            seen += bursts;
            seen * RARE >= count
        })?;
        Some(Self { ios: ios as u32, step: (ios - start) as u32 })
    }

    /// Returns the number of completions that submission number `number` of the process waited for.
    /// `completed` starts at the number of completions before the previous burst. It ends at the
    /// number of completions before this burst.
    pub(crate) fn needed(self, number: usize, completed: Range<usize>) -> usize {
        let room = (number + 1).saturating_sub(self.ios as usize).max(completed.start + 1);
        let steps = (room - completed.start).div_ceil(self.step as usize);
        (completed.start + steps * self.step as usize).min(completed.end)
    }
}

/// Returns the submissions of a process with their times. If recorded times are coarse, draws exact
/// times.
fn arrivals_of(trace: &Trace, process: usize) -> Arrivals<'_> {
    let arrivals = trace.arrivals_of(process, 1.0, SplitMix64::entity(SEED, process as u64));
    if trace.resolution_ns() < COARSE_NS { arrivals.recorded() } else { arrivals }
}

/// Returns the median time between submissions of a process, ns, at most [`ASSUMED_NS`].
/// Simultaneous submissions do not count. The function makes two passes. The first pass finds the
/// part of the range that contains the median. The second pass finds the median in this part.
fn typical_gap_ns<I: Iterator<Item = (Entry, u64)>>(arrivals: &impl Fn() -> I) -> u64 {
    const PARTS: u64 = 4096;
    const _: () = assert!(ASSUMED_NS < PARTS * PARTS, "two passes find a gap");
    let gaps = || {
        let times = || arrivals().map(|(_, arrival_ns)| arrival_ns);
        times().zip(times().skip(1)).map(|(a, b)| (b - a).min(ASSUMED_NS)).filter(|&gap| gap > 0)
    };
    // Returns the part that contains the gap with this rank, and the rank of the gap within the
    // part.
    let find = |counts: &[usize], rank: usize| {
        let mut before = 0;
        let part = counts.iter().position(|&count| {
            before += count;
            before > rank
        })?;
        Some((part as u64, rank + counts[part] - before))
    };
    let mut high = vec![0usize; PARTS as usize];
    gaps().for_each(|gap| high[(gap / PARTS) as usize] += 1);
    let middle = high.iter().sum::<usize>() / 2;
    let Some((part, rank)) = find(&high, middle) else { return ASSUMED_NS };
    let mut low = vec![0usize; PARTS as usize];
    gaps().filter(|gap| gap / PARTS == part).for_each(|gap| low[(gap % PARTS) as usize] += 1);
    find(&low, rank).map_or(ASSUMED_NS, |(place, _)| part * PARTS + place)
}
