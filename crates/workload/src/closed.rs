//! What waited for what in a recording: the closed loop behind open arrivals.
//!
//! A process that submits at some moment has just seen its latest completion and thought about it. So an I/O
//! depends on that one of its process whose recorded completion is the latest at or before its arrival; the
//! time between the two is its think time. Replayed on another device, it is submitted that think time after the
//! other's completion there, and never before the I/O that preceded it in its process. An I/O that arrived
//! before its process' first completion depends on nothing and comes at its recorded time.
//!
//! Recorded times and latencies are rounded. An I/O that seems to arrive before another one's completion, by less than
//! the resolution of the two, waited for it. It must still arrive after half of that one's latency: what was submitted
//! together did not wait. Coarse arrivals are drawn within their unit, as in open replay. In a trace without times each
//! I/O of a process waited for the one before, without think time: that is how fio replays a log without times.
//!
//! Where completions were not recorded, each is assumed at the process' median gap between arrivals after
//! the submission, but at most [`ASSUMED_NS`] after it and at most at the process' next later arrival. A process
//! that submits back to back then waits for each I/O and thinks for nothing; one that submits rarely keeps its pauses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};
use iosched_numbers::SplitMix64;
use iosched_system::Rows;
use iosched_system::rows::{Cursor, Filling};
use iosched_trace::COARSE_NS;

use crate::arrivals::Arrivals;
use crate::trace::{Entry, Process, Trace};

/// The times within coarse units are drawn from this: runs share one closed loop, whatever their seeds are.
const SEED: u64 = 0;

/// A latency that was not recorded is assumed to be at most this, ns: a disk's seek and rotation.
pub(crate) const ASSUMED_NS: u64 = 10_000_000;
/// Submissions that are brought into the order of processes at once.
const CHUNK: usize = 1 << 15;
/// Bytes in memory of all readers of one replay together, one for each process.
const WINDOWS_BYTES: usize = 16 << 20;
/// Bytes in memory that each of them has at least.
const WINDOW_BYTES_MIN: usize = 256;

/// The submissions of a trace by process.
#[derive(Debug)]
pub struct ByProcess {
    /// Process after process, in order of time within each.
    rows: Arc<Rows<Entry>>,
    /// Number of the first of these rows.
    base: usize,
    /// Where each process begins behind it; one more for the end.
    starts: Vec<u32>,
    /// Why the rows could not be put into this order: then there are none.
    failure: OnceLock<io::Error>,
}

impl ByProcess {
    pub(crate) fn of(trace: &Trace) -> Self {
        let starts = starts(trace.processes());
        let failure = OnceLock::new();
        if trace.processes().len() == 1 {
            let (rows, range) = trace.rows();
            return Self { rows: Arc::clone(rows), base: range.start, starts, failure };
        }
        let entries = trace.entries().map(|entry| (entry.process, entry));
        match sorted(entries, trace.len(), &starts) {
            Ok(rows) => Self { rows: rows.into(), base: 0, starts, failure },
            Err(error) => {
                let rows = Arc::new(Rows::default());
                Self { rows, base: 0, starts: vec![0; starts.len()], failure: error.into() }
            }
        }
    }

    /// A process' entries, in order of time.
    #[inline]
    #[must_use]
    pub fn entries(&self, process: usize) -> Cursor<'_, Entry> {
        self.reader(self.range(process))
    }

    /// The last `count` of a process' entries, or all if there are fewer.
    #[inline]
    #[must_use]
    pub fn last(&self, process: usize, count: usize) -> Cursor<'_, Entry> {
        let Range { start, end } = self.range(process);
        self.reader(end.saturating_sub(count).max(start)..end)
    }

    /// Other rows of the same submissions, which come in order of time, in this order.
    pub(crate) fn sorted<T: Pod>(&self, rows: impl Iterator<Item = (u32, T)>, count: usize) -> io::Result<Rows<T>> {
        sorted(rows, count, &self.starts)
    }

    /// The last `count` of a process' rows among such rows.
    pub(crate) fn last_of<'r, T: Pod>(&self, rows: &'r Rows<T>, process: usize, count: usize) -> Cursor<'r, T> {
        let (start, end) = (self.starts[process] as usize, self.starts[process + 1] as usize);
        rows.cursor(end.saturating_sub(count).max(start)..end).with_window(self.window_bytes())
    }

    fn reader(&self, range: Range<usize>) -> Cursor<'_, Entry> {
        self.rows.cursor(range).with_window(self.window_bytes())
    }

    /// What a reader of one process has in memory: there may be as many readers as processes.
    pub(crate) fn window_bytes(&self) -> usize {
        (WINDOWS_BYTES / self.starts.len()).max(WINDOW_BYTES_MIN)
    }

    pub(crate) fn rows(&self) -> &Arc<Rows<Entry>> {
        &self.rows
    }

    pub(crate) fn range(&self, process: usize) -> Range<usize> {
        self.base + self.starts[process] as usize..self.base + self.starts[process + 1] as usize
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get().or_else(|| self.rows.failure())
    }
}

/// Where each process begins if its submissions follow those of the process before it; one more for
/// the end.
fn starts(processes: &[Process]) -> Vec<u32> {
    let mut end = 0;
    let ends = processes.iter().map(|process| {
        end += process.requests as u32;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Rows that come in order of time, each with its process, in the order of processes.
fn sorted<T: Pod>(mut rows: impl Iterator<Item = (u32, T)>, count: usize, starts: &[u32]) -> io::Result<Rows<T>> {
    let mut all = Rows::zeroed(count)?;
    let mut next = starts.to_vec();
    let (mut chunk, mut same) = (Vec::new(), Vec::new());
    loop {
        chunk.clear();
        chunk.extend(rows.by_ref().take(CHUNK));
        if chunk.is_empty() {
            return Ok(all);
        }
        chunk.sort_by_key(|(process, _)| *process);
        for rows in chunk.chunk_by(|(a, _), (b, _)| a == b) {
            same.clear();
            same.extend(rows.iter().map(|(_, row)| *row));
            let next = &mut next[rows[0].0 as usize];
            all.write_at(*next as usize, &same)?;
            *next += same.len() as u32;
        }
    }
}

/// What a submission waited for.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Wait {
    /// How many submissions of the process back that one is; 0 for none.
    pub(crate) lag: u32,
    think_ns: [u32; 2],
}

impl Wait {
    const fn new(lag: u32, think_ns: u64) -> Self {
        Self { lag, think_ns: [think_ns as u32, (think_ns >> 32) as u32] }
    }

    /// Think time after its completion, ns; without one, arrival in ns since the start.
    pub(crate) const fn think_ns(self) -> u64 {
        self.think_ns[0] as u64 | (self.think_ns[1] as u64) << 32
    }
}

/// For every submission of a trace, the one it waited for. See the module page.
#[derive(Debug, Default)]
pub struct ClosedLoop {
    /// In the order of [`ByProcess`].
    waits: Rows<Wait>,
    starts: Vec<u32>,
    /// Largest lag of each process.
    reach: Vec<u32>,
    unknown: u64,
    window_bytes: usize,
    /// Why there are no rows.
    failure: OnceLock<io::Error>,
}

impl ClosedLoop {
    pub(crate) fn of(trace: &Trace) -> Self {
        let by_process = trace.by_process();
        let (starts, window_bytes) = (by_process.starts.clone(), by_process.window_bytes());
        let processes = starts.len() - 1;
        let mut closed = Self { starts, window_bytes, ..Self::default() };
        let mut waits = Filling::default();
        let filled = (0..processes).try_for_each(|process| closed.add_process(trace, process, &mut waits));
        match filled.and_then(|()| waits.finish()) {
            Ok(waits) => Self { waits, ..closed },
            Err(error) => {
                let (starts, reach) = (vec![0; processes + 1], vec![0; processes]);
                Self { starts, reach, failure: error.into(), ..closed }
            }
        }
    }

    fn add_process(&mut self, trace: &Trace, process: usize, waits: &mut Filling<Wait>) -> io::Result<()> {
        if trace.is_timeless() {
            return self.add_sequence(trace, process, waits);
        }
        let own = || own_arrivals(trace, process);
        let slack_ns = trace.rounding_ns();
        let assumed_ns = if own().any(|(entry, _)| entry.latency_ns().is_none()) { typical_gap_ns(&own) } else { 0 };
        // By the earliest time at which each may have completed; then when it did, as recorded.
        let mut under_way: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
        let mut latest: Option<(u64, usize)> = None;
        let mut reach = 0;
        let mut later = own().peekable();
        for (i, (entry, arrival_ns)) in own().enumerate() {
            while let Some(&Reverse((early_ns, done_ns, on))) = under_way.peek()
                && early_ns <= arrival_ns
            {
                latest = latest.max(Some((done_ns, on)));
                under_way.pop();
            }
            let (lag, think_ns) = match latest {
                Some((done_ns, on)) => ((i - on) as u32, arrival_ns.saturating_sub(done_ns)),
                None => (0, arrival_ns),
            };
            waits.push(Wait::new(lag, think_ns))?;
            reach = reach.max(lag);
            let recorded_ns = entry.latency_ns();
            let latency_ns = recorded_ns.unwrap_or_else(|| {
                self.unknown += 1;
                while later.peek().is_some_and(|&(_, later_ns)| later_ns <= arrival_ns) {
                    later.next();
                }
                let gap_ns = later.peek().map_or(u64::MAX, |&(_, later_ns)| later_ns - arrival_ns);
                assumed_ns.min(gap_ns)
            });
            let done_ns = arrival_ns.saturating_add(latency_ns);
            let early_ns = if recorded_ns.is_some() { slack_ns.min(latency_ns / 2) } else { 0 };
            under_way.push(Reverse((done_ns - early_ns, done_ns, i)));
        }
        self.reach.push(reach);
        Ok(())
    }

    /// Each submission of the process waited for the one before.
    fn add_sequence(&mut self, trace: &Trace, process: usize, waits: &mut Filling<Wait>) -> io::Result<()> {
        let entries = trace.by_process().entries(process);
        let count = entries.len();
        self.unknown += entries.filter(|entry| entry.latency_ns().is_none()).count() as u64;
        self.reach.push(u32::from(count > 1));
        (0..count).try_for_each(|i| waits.push(Wait::new(u32::from(i > 0), 0)))
    }

    /// What each of the process' submissions waited for.
    pub(crate) fn waits(&self, process: usize) -> Cursor<'_, Wait> {
        let range = self.starts[process] as usize..self.starts[process + 1] as usize;
        self.waits.cursor(range).with_window(self.window_bytes)
    }

    /// The most that any of the process' submissions looks back.
    #[must_use]
    pub fn reach(&self, process: usize) -> u32 {
        self.reach[process]
    }

    /// Submissions whose completion was not recorded and had to be assumed.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get().or_else(|| self.waits.failure())
    }
}

/// The submissions of a process with their times. Coarse ones are drawn; the others are as recorded.
fn own_arrivals(trace: &Trace, process: usize) -> Arrivals<'_> {
    let arrivals = trace.arrivals_of(process, 1.0, SplitMix64::entity(SEED, process as u64));
    if trace.resolution_ns() < COARSE_NS { arrivals.recorded() } else { arrivals }
}

/// The median time between submissions of a process, simultaneous ones aside, but at most
/// [`ASSUMED_NS`]. Found in two passes: which part of the range it is in, and where there.
fn typical_gap_ns<I: Iterator<Item = (Entry, u64)>>(own: &impl Fn() -> I) -> u64 {
    const PARTS: u64 = 4096;
    const _: () = assert!(ASSUMED_NS < PARTS * PARTS, "two passes find a gap");
    let gaps = || {
        let times = || own().map(|(_, arrival_ns)| arrival_ns);
        times().zip(times().skip(1)).map(|(a, b)| (b - a).min(ASSUMED_NS)).filter(|&gap| gap > 0)
    };
    // The number of the part that holds the gap of this rank, and the gap's rank there.
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

#[cfg(test)]
mod tests {
    use crate::Trace;
    use iosched::{Flags, Op, Time};
    use iosched_trace::TraceRequest;

    /// For submissions of one process, (arrival, latency) each: (lag, think time) each.
    fn waits(submissions: &[(u64, Option<u64>)]) -> Vec<(u32, u64)> {
        let requests = submissions.iter().map(|&(arrival_ns, latency_ns)| {
            Ok(TraceRequest {
                arrival: Time::from_ns(arrival_ns),
                pid: 1,
                device: None,
                op: Op::Read,
                flags: Flags::SYNC,
                sector: 0,
                nr_sectors: 8,
                latency_ns,
                ioprio: None,
            })
        });
        let trace = Trace::collect("t", 1, requests).unwrap();
        trace.closed_loop().waits(0).map(|wait| (wait.lag, wait.think_ns())).collect()
    }

    #[test]
    fn an_io_waited_for_the_latest_completion_before_it() {
        // The second is done after the third: the fifth waited for the second.
        let known = waits(&[(0, Some(10)), (15, Some(100)), (16, Some(4)), (30, Some(500)), (115, Some(1))]);
        assert_eq!(known, [(0, 0), (1, 5), (2, 6), (1, 10), (3, 0)]);
    }

    #[test]
    fn requests_before_the_first_completion_keep_their_time() {
        assert_eq!(waits(&[(0, Some(100)), (20, Some(100)), (100, Some(1))]), [(0, 0), (0, 20), (2, 0)]);
    }

    /// The share of I/Os that waited for the one before, per cent, of a process with one I/O in flight. Its latencies
    /// are recorded to `grain_ns`, and so is the arrival if it is `derived` from a completion.
    fn serial_percent(grain_ns: u64, derived: bool) -> usize {
        let mut rng = iosched_numbers::SplitMix64::new(7);
        let mut now_ns = 0;
        let recorded: Vec<_> = (0..1_000)
            .map(|_| {
                let latency_ns = 3_000_000 + rng.below(14_000_000);
                let rounded_ns = (latency_ns + grain_ns / 2) / grain_ns * grain_ns;
                let done_ns = (now_ns + latency_ns) / 1_000 * 1_000;
                let arrival_ns = if derived { done_ns.saturating_sub(rounded_ns) } else { now_ns / 1_000 * 1_000 };
                now_ns += latency_ns;
                (arrival_ns, Some(rounded_ns))
            })
            .collect();
        let waits = waits(&recorded);
        let serial = |&&(lag, think_ns): &&(u32, u64)| lag == 1 && think_ns <= grain_ns + 1_000;
        waits.iter().filter(serial).count() / 10
    }

    #[test]
    fn rounded_latencies_leave_one_io_in_flight() {
        for grain_ns in [1_000, 10_000, 100_000, 1_000_000] {
            for derived in [false, true] {
                assert!(serial_percent(grain_ns, derived) >= 99, "{grain_ns} ns, derived: {derived}");
            }
        }
    }

    #[test]
    fn rounded_latencies_leave_what_came_together_together() {
        // Four at once, every 20 ms, with latencies in units of 1 ms.
        let bursts: Vec<_> = (0..400).map(|i| (i / 4 * 20_000_000 + i % 4, Some((2 + i % 9) * 1_000_000))).collect();
        let waits = waits(&bursts);
        assert!(waits.iter().enumerate().all(|(i, &(lag, _))| lag as usize > i % 4 || i < 4), "{waits:?}");
    }

    #[test]
    fn without_times_each_waits_for_the_one_before() {
        let timeless = waits(&[(0, None); 20]);
        assert_eq!(timeless[0], (0, 0));
        assert!(timeless[1..].iter().all(|&wait| wait == (1, 0)));
    }

    #[test]
    fn trace_without_completions_splits_waiting_and_thinking() {
        let unknown: Vec<_> = [0, 100, 200, 300, 5_300, 5_400].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&unknown), [(0, 0), (1, 0), (1, 0), (1, 0), (1, 4_900), (1, 0)]);
        // Rare submissions keep their pauses but for what a disk may take.
        let rare: Vec<_> = (0..3).map(|i| (i * 1_000_000_000, None)).collect();
        assert_eq!(waits(&rare), [(0, 0), (1, 990_000_000), (1, 990_000_000)]);
    }

    #[test]
    fn trace_without_completions_keeps_bursts_together() {
        let together: Vec<_> = [0, 0, 0, 700, 700].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&together), [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0)]);
    }
}
