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

use iosched_system::Rows;

use crate::trace::Entry;

/// A latency that was not recorded is assumed to be at most this, ns: a disk's seek and rotation.
pub(crate) const ASSUMED_NS: u64 = 10_000_000;

/// The submissions of a trace by process.
#[derive(Clone, Debug, Default)]
pub struct ByProcess {
    /// Numbers of entries, process after process, in order of time within each.
    order: Rows<u32>,
    /// The entries themselves in that order: whoever follows processes reads memory in order, too.
    entries: Rows<Entry>,
    /// Where each process begins in `order`; one more for the end.
    starts: Vec<u32>,
}

impl ByProcess {
    pub(crate) fn of(entries: &[Entry], processes: usize) -> Self {
        let mut starts = vec![0u32; processes + 1];
        for entry in entries {
            starts[entry.process as usize + 1] += 1;
        }
        for i in 0..processes {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut order = Rows::zeroed(entries.len());
        let mut own = Rows::zeroed(entries.len());
        for (i, entry) in entries.iter().enumerate() {
            let place = &mut next[entry.process as usize];
            order[*place as usize] = i as u32;
            own[*place as usize] = *entry;
            *place += 1;
        }
        Self { order, entries: own, starts }
    }

    /// A process' entries, in order of time.
    #[inline]
    #[must_use]
    pub fn entries(&self, process: usize) -> &[Entry] {
        &self.entries[self.range(process)]
    }

    /// Their numbers in [`Trace::entries`](crate::Trace::entries).
    #[inline]
    #[must_use]
    pub fn numbers(&self, process: usize) -> &[u32] {
        &self.order[self.range(process)]
    }

    fn range(&self, process: usize) -> std::ops::Range<usize> {
        self.starts[process] as usize..self.starts[process + 1] as usize
    }
}

/// For every submission of a trace, the one it waited for. See the module page.
#[derive(Clone, Debug, Default)]
pub struct ClosedLoop {
    /// In the order of [`ByProcess`]: how many submissions of the process back the one it waited for is; 0 for none.
    lags: Rows<u32>,
    /// Likewise: think time after it, ns; without one, arrival in ns since the start.
    think_ns: Rows<u64>,
    starts: Vec<u32>,
    /// Largest lag of each process.
    reach: Vec<u32>,
    unknown: u64,
}

impl ClosedLoop {
    pub(crate) fn of(by_process: &ByProcess) -> Self {
        let count = by_process.entries.len();
        let (lags, think_ns) = (Rows::zeroed(count), Rows::zeroed(count));
        let mut closed = Self { lags, think_ns, starts: by_process.starts.clone(), ..Self::default() };
        for process in 0..by_process.starts.len() - 1 {
            closed.add_process(by_process.starts[process] as usize, by_process.entries(process));
        }
        closed
    }

    /// Its submissions stand from `first` on.
    fn add_process(&mut self, first: usize, own: &[Entry]) {
        let assumed_ns =
            if own.iter().any(|entry| entry.latency_ns().is_none()) { median_gap_ns(own).min(ASSUMED_NS) } else { 0 };
        let mut under_way: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut latest: Option<(u64, usize)> = None;
        let mut reach = 0;
        let mut later = 0;
        for i in 0..own.len() {
            let arrival_ns = own[i].arrival_ns;
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
            (self.lags[first + i], self.think_ns[first + i]) = (lag, think_ns);
            reach = reach.max(lag);
            let latency_ns = own[i].latency_ns().unwrap_or_else(|| {
                self.unknown += 1;
                later = later.max(i + 1);
                while later < own.len() && own[later].arrival_ns == arrival_ns {
                    later += 1;
                }
                let gap_ns = if later < own.len() { own[later].arrival_ns - arrival_ns } else { u64::MAX };
                assumed_ns.min(gap_ns)
            });
            under_way.push(Reverse((arrival_ns.saturating_add(latency_ns), i)));
        }
        self.reach.push(reach);
    }

    /// Of the process' submission number `i`: how many back the one it waited for is, and the think time after that
    /// one's completion in ns; or 0 and its arrival in ns since the start.
    #[inline]
    #[must_use]
    pub fn wait(&self, process: usize, i: usize) -> (u32, u64) {
        let at = self.starts[process] as usize + i;
        (self.lags[at], self.think_ns[at])
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
}

/// The median time between submissions of a process, simultaneous ones aside, ns.
fn median_gap_ns(own: &[Entry]) -> u64 {
    let times = own.iter().map(|entry| entry.arrival_ns);
    let mut gaps: Vec<u64> = times.clone().zip(times.skip(1)).map(|(a, b)| b - a).filter(|&gap| gap > 0).collect();
    if gaps.is_empty() {
        return ASSUMED_NS;
    }
    let middle = gaps.len() / 2;
    *gaps.select_nth_unstable(middle).1
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
            })
        });
        let trace = Trace::collect("t", 1, requests).unwrap();
        (0..submissions.len()).map(|i| trace.closed_loop().wait(0, i)).collect()
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
