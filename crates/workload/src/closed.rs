//! Dependencies between the I/Os of a recording: the closed loop behind its arrivals.
//!
//! A process submits an I/O after its latest completion and a think time. In the recording, each
//! I/O therefore waited for all completions of its process up to its arrival. The think time is the
//! time from the last of these completions to the arrival. A replay counts the completions of the
//! process. When their *number* is the same as in the recording, the replay submits the I/O after
//! this think time. Thus the process keeps its depth, even if another scheduler completes the I/Os
//! in another order. A replay never submits an I/O before the preceding I/O of the process. If an
//! I/O arrived before the first completion of its process, the replay submits it at its recorded
//! time.
//!
//! On a fast device, several I/Os complete before a process runs again. A process that keeps a
//! constant depth then submits several I/Os at once, although a single I/O does not need all of
//! these completions. [`Depth`] finds such processes. Each of their I/Os waits only for the
//! completion that makes room for this I/O.
//!
//! Recorded times and latencies are rounded. An I/O can therefore seem to arrive before a
//! completion that it waited for. The replay assumes that the I/O waited if two conditions hold.
//! First, the I/O seems to arrive less than the resolution of the two times before the completion.
//! Second, at least half of the other I/O's latency has passed at the arrival. The second
//! condition excludes I/Os that were submitted together. If arrivals are coarse, the replay draws
//! exact times within their unit, as an open replay does. In a trace without times, each I/O of a
//! process waited for the previous I/O, without think time. fio replays such a log in the same way.
//!
//! If a completion was not recorded, the replay assumes a latency: the median gap between arrivals
//! of the process, at most [`ASSUMED_NS`](crate::depth::ASSUMED_NS). The assumed completion is
//! never after the next later arrival of the process. Thus a process that submits without pauses
//! waits for each I/O without think time. A process that submits rarely keeps its pauses.

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};
use iosched_system::Rows;
use iosched_system::rows::{Cursor, Filling};

use crate::depth::{Depth, Steps};
use crate::trace::{Entry, Process, Trace};

/// Number of submissions that are sorted by process at once.
const CHUNK: usize = 1 << 15;
/// Memory of all readers of one replay together, bytes. Each process has a reader.
const WINDOWS_BYTES: usize = 16 << 20;
/// Smallest memory of one reader, bytes.
const WINDOW_BYTES_MIN: usize = 256;

/// The submissions of a trace, ordered by process.
#[derive(Debug)]
pub struct ByProcess {
    /// Entries, sorted by process, and by time within each process.
    rows: Arc<Rows<Entry>>,
    /// Number of the first entry in `rows` that belongs to this trace.
    base: usize,
    /// Start of each process after `base`, and the end of the last process.
    starts: Vec<u32>,
    /// The reason why the rows could not be sorted. In this case there are no rows.
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

    /// Returns the entries of a process in order of time.
    #[inline]
    #[must_use]
    pub fn entries(&self, process: usize) -> Cursor<'_, Entry> {
        self.reader(self.range(process))
    }

    /// Returns the last `count` entries of a process, or all entries if there are fewer.
    #[inline]
    #[must_use]
    pub fn last(&self, process: usize, count: usize) -> Cursor<'_, Entry> {
        let Range { start, end } = self.range(process);
        self.reader(end.saturating_sub(count).max(start)..end)
    }

    /// Sorts other data of the same submissions by process. `rows` must be in order of time.
    pub(crate) fn sorted<T: Pod>(&self, rows: impl Iterator<Item = (u32, T)>, count: usize) -> io::Result<Rows<T>> {
        sorted(rows, count, &self.starts)
    }

    /// Returns the last `count` rows of a process. [`sorted`](Self::sorted) must have returned
    /// `rows`.
    pub(crate) fn last_of<'r, T: Pod>(&self, rows: &'r Rows<T>, process: usize, count: usize) -> Cursor<'r, T> {
        let (start, end) = (self.starts[process] as usize, self.starts[process + 1] as usize);
        rows.cursor(end.saturating_sub(count).max(start)..end).with_window(self.window_bytes())
    }

    fn reader(&self, range: Range<usize>) -> Cursor<'_, Entry> {
        self.rows.cursor(range).with_window(self.window_bytes())
    }

    /// Returns the memory of one reader, bytes. Each process can have a reader.
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

/// Returns the start of each process in rows ordered by process, and the end of the last process.
fn starts(processes: &[Process]) -> Vec<u32> {
    let mut end = 0;
    let ends = processes.iter().map(|process| {
        end += process.requests as u32;
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// Sorts rows by process. `rows` must be in order of time, each with the number of its process.
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

/// The completion that a submission waited for.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Wait {
    /// Number of I/Os in flight at this submission, including this I/O. If the submission did not
    /// wait for a completion, that I/O counts as in flight. 0: the submission waited for no
    /// completion.
    pub(crate) lag: u32,
    think_ns: [u32; 2],
}

impl Wait {
    const fn new(lag: u32, think_ns: u64) -> Self {
        Self { lag, think_ns: [think_ns as u32, (think_ns >> 32) as u32] }
    }

    /// Returns the think time after the completion, ns. If the submission waited for no completion,
    /// returns its arrival, ns since the start.
    pub(crate) const fn think_ns(self) -> u64 {
        self.think_ns[0] as u64 | (self.think_ns[1] as u64) << 32
    }
}

/// The completions that each submission of a trace waited for. See the module page.
#[derive(Debug, Default)]
pub struct ClosedLoop {
    /// Waits in the order of [`ByProcess`].
    waits: Rows<Wait>,
    starts: Vec<u32>,
    /// Largest lag of each process.
    reach: Vec<u32>,
    unknown: u64,
    window_bytes: usize,
    /// The reason why there are no rows.
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
        let mut bursts = Bursts { depth: Depth::of(Steps::new(trace, process)), ..Bursts::default() };
        let mut steps = Steps::new(trace, process);
        let mut done = Vec::new();
        while let Some(arrival_ns) = steps.next(&mut done) {
            if !done.is_empty() {
                bursts.end(waits)?;
                bursts.complete(&mut done);
            }
            bursts.submit(arrival_ns, waits)?;
        }
        bursts.end(waits)?;
        self.unknown += steps.unknown();
        self.reach.push(bursts.reach);
        Ok(())
    }

    /// Adds the waits of a process whose submissions each waited for the previous one.
    fn add_sequence(&mut self, trace: &Trace, process: usize, waits: &mut Filling<Wait>) -> io::Result<()> {
        let entries = trace.by_process().entries(process);
        let count = entries.len();
        self.unknown += entries.filter(|entry| entry.latency_ns().is_none()).count() as u64;
        self.reach.push(u32::from(count > 1));
        (0..count).try_for_each(|i| waits.push(Wait::new(u32::from(i > 0), 0)))
    }

    /// Returns the waits of the submissions of a process.
    pub(crate) fn waits(&self, process: usize) -> Cursor<'_, Wait> {
        let range = self.starts[process] as usize..self.starts[process + 1] as usize;
        self.waits.cursor(range).with_window(self.window_bytes)
    }

    /// Returns the largest number of I/Os that the process has in flight at a submission. If the
    /// submission did not wait for a completion, that I/O counts as in flight.
    #[must_use]
    pub fn reach(&self, process: usize) -> u32 {
        self.reach[process]
    }

    /// Returns the number of submissions whose completion was not recorded and is assumed.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure.get().or_else(|| self.waits.failure())
    }
}

/// The submissions of a process, burst by burst. A burst is a series of submissions without a
/// completion between them.
#[derive(Default)]
struct Bursts {
    depth: Option<Depth>,
    /// Arrivals of the current burst that have no [`Wait`] yet, ns.
    arrivals: Vec<u64>,
    /// Number of submissions before these arrivals.
    submitted: usize,
    /// Number of completions before the current burst.
    completed: usize,
    /// Times of the completions between the previous burst and this one, ns.
    done: Vec<u64>,
    /// Largest lag.
    reach: u32,
}

impl Bursts {
    /// Begins a burst after these completions.
    fn complete(&mut self, done: &mut Vec<u64>) {
        self.completed += done.len();
        std::mem::swap(&mut self.done, done);
        done.clear();
    }

    /// Adds a submission to the burst.
    fn submit(&mut self, arrival_ns: u64, waits: &mut Filling<Wait>) -> io::Result<()> {
        // If the process has no depth, or the burst exceeds the depth, the waits do not depend on
        // the rest of the burst.
        if self.arrivals.len() >= self.depth.map_or(0, |depth| depth.ios as usize) {
            self.arrivals.push(arrival_ns);
            return self.end(waits);
        }
        self.arrivals.push(arrival_ns);
        Ok(())
    }

    /// Adds the waits of the burst's submissions.
    fn end(&mut self, waits: &mut Filling<Wait>) -> io::Result<()> {
        let in_flight = self.submitted + self.arrivals.len() - self.completed;
        let depth = self.depth.filter(|depth| in_flight == depth.ios as usize);
        let before = self.completed - self.done.len();
        for (number, &arrival_ns) in (self.submitted..).zip(&self.arrivals) {
            let wait = if self.completed == 0 {
                Wait::new(0, arrival_ns)
            } else {
                let needed = depth.map_or(self.completed, |depth| depth.needed(number, before..self.completed));
                let done_ns = self.done[needed - before - 1];
                Wait::new((number + 1 - needed) as u32, arrival_ns.saturating_sub(done_ns))
            };
            self.reach = self.reach.max(wait.lag);
            waits.push(wait)?;
        }
        self.submitted += self.arrivals.len();
        self.arrivals.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Trace;
    use iosched::{Flags, Op, Time};
    use iosched_trace::TraceRequest;

    /// Returns (lag, think time) of each submission of one process. `submissions` are pairs of
    /// (arrival, latency).
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
    fn io_waits_for_the_completions_before_its_arrival() {
        // The second I/O completes after the third. The fourth waited for two completions.
        let known = waits(&[(0, Some(10)), (15, Some(100)), (16, Some(4)), (30, Some(500)), (115, Some(1))]);
        assert_eq!(known, [(0, 0), (1, 5), (2, 6), (2, 10), (2, 0)]);
    }

    #[test]
    fn requests_before_the_first_completion_keep_their_time() {
        assert_eq!(waits(&[(0, Some(100)), (20, Some(100)), (100, Some(1))]), [(0, 0), (0, 20), (2, 0)]);
    }

    /// Returns the percentage of I/Os that waited for the previous I/O, for a process with one I/O
    /// in flight. Latencies are rounded to `grain_ns`. If arrivals are `derived` from completions,
    /// they are also rounded.
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
    fn one_io_in_flight_is_detected_with_rounded_latencies() {
        for grain_ns in [1_000, 10_000, 100_000, 1_000_000] {
            for derived in [false, true] {
                assert!(serial_percent(grain_ns, derived) >= 99, "{grain_ns} ns, derived: {derived}");
            }
        }
    }

    #[test]
    fn bursts_stay_together_with_rounded_latencies() {
        // Four I/Os at once, every 20 ms, with latencies in units of 1 ms.
        let bursts: Vec<_> = (0..400).map(|i| (i / 4 * 20_000_000 + i % 4, Some((2 + i % 9) * 1_000_000))).collect();
        let waits = waits(&bursts);
        assert!(waits.iter().enumerate().all(|(i, &(lag, _))| lag as usize > i % 4 || i < 4), "{waits:?}");
    }

    /// Returns the I/Os of a process with `depth` I/Os in flight. The process can run when at most
    /// `awake` I/Os are in flight. It then runs after some further completions; `rng` draws their
    /// number. The device completes one I/O per 100 ns.
    fn batches(depth: usize, awake: usize) -> Vec<(u64, Option<u64>)> {
        let mut rng = iosched_numbers::SplitMix64::new(3);
        let (mut now_ns, mut free_ns) = (0u64, 0u64);
        let (mut recorded, mut done) = (Vec::new(), Vec::new());
        let mut in_flight = 0;
        while recorded.len() < 4_000 {
            for _ in in_flight..depth {
                free_ns = free_ns.max(now_ns) + 100;
                recorded.push((now_ns, Some(free_ns - now_ns)));
                done.push(free_ns);
            }
            in_flight = awake - rng.below(awake as u64 + 1) as usize;
            now_ns = done[recorded.len() - in_flight - 1] + 1;
        }
        recorded
    }

    #[test]
    fn constant_depth_is_found_when_several_ios_complete_at_once() {
        let waits = waits(&batches(16, 15));
        let kept = waits.iter().skip(16).filter(|&&(lag, _)| lag == 16).count();
        assert!(kept >= waits.len() - 48, "{kept} of {}", waits.len());
    }

    #[test]
    fn closed_loop_keeps_waits_for_all_ios() {
        let waits = waits(&batches(16, 0));
        let all = waits.iter().enumerate().skip(16);
        assert!(all.clone().all(|(i, &(lag, _))| lag as usize == i % 16 + 1), "{waits:?}");
    }

    #[test]
    fn closed_loop_keeps_waits_for_four_ios() {
        let waits = waits(&batches(16, 12));
        // The process submits up to four I/Os at once. With the new I/O, 13 to 16 I/Os are in
        // flight.
        let steps = waits.iter().skip(64).filter(|&&(lag, _)| (13..=16).contains(&lag)).count();
        assert!(steps >= waits.len() - 128, "{steps} of {}", waits.len());
        assert!(waits.iter().skip(64).filter(|&&(lag, _)| lag == 13).count() >= waits.len() / 5, "{waits:?}");
    }

    #[test]
    fn without_times_each_io_waits_for_the_previous_one() {
        let timeless = waits(&[(0, None); 20]);
        assert_eq!(timeless[0], (0, 0));
        assert!(timeless[1..].iter().all(|&wait| wait == (1, 0)));
    }

    #[test]
    fn trace_without_completions_splits_waiting_and_thinking() {
        let unknown: Vec<_> = [0, 100, 200, 300, 5_300, 5_400].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&unknown), [(0, 0), (1, 0), (1, 0), (1, 0), (1, 4_900), (1, 0)]);
        // Rare submissions keep their pauses, minus the assumed latency of 10 ms.
        let rare: Vec<_> = (0..3).map(|i| (i * 1_000_000_000, None)).collect();
        assert_eq!(waits(&rare), [(0, 0), (1, 990_000_000), (1, 990_000_000)]);
    }

    #[test]
    fn trace_without_completions_keeps_bursts_together() {
        let together: Vec<_> = [0, 0, 0, 700, 700].map(|at| (at, None)).to_vec();
        assert_eq!(waits(&together), [(0, 0), (0, 0), (0, 0), (1, 0), (2, 0)]);
    }
}
