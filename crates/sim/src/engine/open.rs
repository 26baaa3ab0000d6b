//! Open replay: each recorded I/O arrives at its recorded time, however fast the device is.
//!
//! The arrivals are a sorted stream, so no heap is needed. A process that finds the queue full
//! waits with its present I/O. Its later I/Os are in the trace, so the replay stores only the
//! position of each process in the trace. If recorded times have a coarse unit, the replay chooses
//! a random time within the unit for each I/O. It does this once for all processes.

use iosched::Part;
use iosched_disk::Device;
use iosched_numbers::SplitMix64;
use iosched_workload::{Arrivals, Cursor, Entry, TimesByProcess, Trace, due_ns};

use super::core::{Core, NewIo};
use super::drive::Source;
use crate::observer::Observer;

/// Largest unit of recorded times, ns, at which a late I/O keeps its recorded time. With a coarser
/// unit, it has a random time within the unit.
const FINE_NS: u64 = 1_000;

/// A trace in open replay.
pub(super) struct Open<'a> {
    trace: &'a Trace,
    times: &'a TimesByProcess<'a>,
    arrivals: Arrivals<'a>,
    /// The next entry. `next_ns` is its time.
    next: Option<Entry>,
    next_ns: u64,
    speed: f64,
    /// For each process: number of its entries that are not yet due.
    left: Vec<u32>,
    /// For each process that waits: the I/Os that it must still submit.
    waiting: Vec<Option<Behind<'a>>>,
}

/// I/Os that a waiting process must still submit.
struct Behind<'a> {
    entries: Cursor<'a, Entry>,
    /// The random times of the entries, or `None` if the recorded times are fine enough.
    times: Option<Cursor<'a, u64>>,
}

/// Returns the random numbers for the arrival times of a replay.
pub(super) fn draws(seed: u64) -> SplitMix64 {
    SplitMix64::entity(seed, 1)
}

impl<'a> Open<'a> {
    /// Creates the replay. `times` must belong to the same trace, speed and
    /// [random numbers](draws).
    pub(super) fn new(trace: &'a Trace, speed: f64, seed: u64, times: &'a TimesByProcess<'a>) -> Self {
        let arrivals = trace.arrivals(speed, draws(seed));
        let left: Vec<u32> = trace.processes().iter().map(|process| process.requests as u32).collect();
        let waiting = left.iter().map(|_| None).collect();
        let mut open = Self { trace, times, arrivals, next: None, next_ns: 0, speed, left, waiting };
        open.schedule();
        open
    }

    #[inline]
    fn schedule(&mut self) {
        let next = self.arrivals.next();
        (self.next, self.next_ns) = next.map_or((None, u64::MAX), |(entry, at_ns)| (Some(entry), at_ns));
    }

    /// Returns the entries of `task` after the entry that is now due.
    fn behind(&self, task: u32) -> Behind<'a> {
        let (process, count) = (task as usize, self.left[task as usize] as usize);
        let entries = self.trace.by_process().last(process, count);
        let is_coarse = self.trace.resolution_ns() > FINE_NS;
        Behind { entries, times: is_coarse.then(|| self.times.last(process, count)).flatten() }
    }

    /// Returns the next entry of `task` that is already due, and the time at which it was due.
    fn next_late(&mut self, task: u32) -> Option<(Entry, u64)> {
        let behind = self.waiting[task as usize].as_mut()?;
        let is_due = behind.entries.len() > self.left[task as usize] as usize;
        let entry = is_due.then(|| behind.entries.next())??;
        let drawn_ns = behind.times.as_mut().and_then(Iterator::next);
        Some((entry, drawn_ns.unwrap_or_else(|| due_ns(entry.arrival_ns, self.speed))))
    }

    /// Submits the I/Os that became due while the process waited.
    fn catch_up<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        while !core.is_exhausted()
            && let Some((entry, asked_ns)) = self.next_late(task)
        {
            core.count_late(1);
            core.take_ioprio(task, entry.ioprio());
            if !core.submit(task, &io(&entry, asked_ns)) {
                return;
            }
        }
        self.waiting[task as usize] = None;
    }
}

#[inline]
fn io(entry: &Entry, asked_ns: u64) -> NewIo {
    let nr_sectors = entry.nr_sectors;
    NewIo {
        op: entry.op(),
        flags: entry.flags(),
        sector: entry.sector(),
        nr_sectors,
        tag: 0,
        asked_ns,
        issued: None,
        part: Part::Whole,
    }
}

impl<D: Device, O: Observer> Source<D, O> for Open<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.next_ns
    }

    #[inline]
    fn event(&mut self, core: &mut Core<D, O>) {
        let Some(entry) = self.next else {
            return;
        };
        let (task, asked_ns) = (entry.process, self.next_ns);
        self.left[task as usize] -= 1;
        if self.waiting[task as usize].is_none() {
            core.take_ioprio(task, entry.ioprio());
            if !core.submit(task, &io(&entry, asked_ns)) {
                self.waiting[task as usize] = Some(self.behind(task));
            }
        }
        self.schedule();
    }

    #[inline]
    fn completed(&mut self, _core: &mut Core<D, O>, _task: u32, _tag: u32) {}

    fn woken(&mut self, core: &mut Core<D, O>, _disk: usize, task: u32) {
        if core.resume(task) {
            self.catch_up(core, task);
        }
    }
}
