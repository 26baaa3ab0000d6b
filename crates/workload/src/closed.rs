//! What waited for what in a recording: the closed loop behind open arrivals.
//!
//! A process that submits at some moment has just seen its latest completion and thought about it. So an I/O
//! depends on that one of its process whose recorded completion is the latest at or before its arrival; the
//! time between the two is its think time. Replayed on another device, it is submitted that think time after the
//! other's completion there, and never before the I/O that preceded it in its process. An I/O that arrived
//! before its process' first completion depends on nothing and comes at its recorded time.
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
use iosched_system::Rows;
use iosched_system::rows::{Cursor, Filling};

use crate::trace::{Entry, Process, Trace};

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
        match sorted(trace, &starts) {
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

    fn reader(&self, range: Range<usize>) -> Cursor<'_, Entry> {
        self.rows.cursor(range).with_window(self.window_bytes())
    }

    /// What a reader of one process has in memory: there may be as many readers as processes.
    fn window_bytes(&self) -> usize {
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

fn sorted(trace: &Trace, starts: &[u32]) -> io::Result<Rows<Entry>> {
    let mut entries = trace.entries();
    let mut rows = Rows::zeroed(entries.len())?;
    let mut next = starts.to_vec();
    let mut chunk: Vec<Entry> = Vec::new();
    loop {
        chunk.clear();
        chunk.extend(entries.by_ref().take(CHUNK));
        if chunk.is_empty() {
            return Ok(rows);
        }
        chunk.sort_by_key(|entry| entry.process);
        for own in chunk.chunk_by(|a, b| a.process == b.process) {
            let next = &mut next[own[0].process as usize];
            rows.write_at(*next as usize, own)?;
            *next += own.len() as u32;
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
    pub(crate) fn of(by_process: &ByProcess) -> Self {
        let (starts, window_bytes) = (by_process.starts.clone(), by_process.window_bytes());
        let processes = starts.len() - 1;
        let mut closed = Self { starts, window_bytes, ..Self::default() };
        let mut waits = Filling::default();
        let filled = (0..processes).try_for_each(|process| closed.add_process(by_process, process, &mut waits));
        match filled.and_then(|()| waits.finish()) {
            Ok(waits) => Self { waits, ..closed },
            Err(error) => {
                let (starts, reach) = (vec![0; processes + 1], vec![0; processes]);
                Self { starts, reach, failure: error.into(), ..closed }
            }
        }
    }

    fn add_process(&mut self, by_process: &ByProcess, process: usize, waits: &mut Filling<Wait>) -> io::Result<()> {
        let own = || by_process.entries(process);
        let assumed_ns = if own().any(|entry| entry.latency_ns().is_none()) { typical_gap_ns(&own) } else { 0 };
        let mut under_way: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut latest: Option<(u64, usize)> = None;
        let mut reach = 0;
        let mut later = own();
        for (i, entry) in own().enumerate() {
            let arrival_ns = entry.arrival_ns;
            while let Some(&Reverse(done)) = under_way.peek()
                && done.0 <= arrival_ns
            {
                latest = latest.max(Some(done));
                under_way.pop();
            }
            let (lag, think_ns) = match latest {
                Some((done_ns, on)) => ((i - on) as u32, arrival_ns - done_ns),
                None => (0, arrival_ns),
            };
            waits.push(Wait::new(lag, think_ns))?;
            reach = reach.max(lag);
            let latency_ns = entry.latency_ns().unwrap_or_else(|| {
                self.unknown += 1;
                while later.peek().is_some_and(|later| later.arrival_ns <= arrival_ns) {
                    later.next();
                }
                let gap_ns = later.peek().map_or(u64::MAX, |later| later.arrival_ns - arrival_ns);
                assumed_ns.min(gap_ns)
            });
            under_way.push(Reverse((arrival_ns.saturating_add(latency_ns), i)));
        }
        self.reach.push(reach);
        Ok(())
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

/// The median time between submissions of a process, simultaneous ones aside, but at most
/// [`ASSUMED_NS`]. Found in two passes: which part of the range it is in, and where there.
fn typical_gap_ns<'a>(own: &impl Fn() -> Cursor<'a, Entry>) -> u64 {
    const PARTS: u64 = 4096;
    const _: () = assert!(ASSUMED_NS < PARTS * PARTS, "two passes find a gap");
    let gaps = || {
        let times = || own().map(|entry| entry.arrival_ns);
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
    fn what_came_before_any_completion_comes_at_its_time() {
        assert_eq!(waits(&[(0, Some(100)), (20, Some(100)), (100, Some(1))]), [(0, 0), (0, 20), (2, 0)]);
    }

    #[test]
    fn without_completions_back_to_back_is_waiting_and_a_pause_is_thinking() {
        let unknown: Vec<_> = [0, 100, 200, 300, 5_300, 5_400].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&unknown), [(0, 0), (1, 0), (1, 0), (1, 0), (1, 4_900), (1, 0)]);
        // Rare submissions keep their pauses but for what a disk may take.
        let rare: Vec<_> = (0..3).map(|i| (i * 1_000_000_000, None)).collect();
        assert_eq!(waits(&rare), [(0, 0), (1, 990_000_000), (1, 990_000_000)]);
    }

    #[test]
    fn without_completions_what_came_together_does_not_wait_for_each_other() {
        let together: Vec<_> = [0, 0, 0, 700, 700].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&together), [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0)]);
    }
}
