//! Open replay: recorded I/Os at their recorded times, however fast the device is.
//!
//! The arrivals are a sorted stream: no heap. A process that finds the queue full waits with the
//! I/O it has at hand. The trace has those that it would have submitted meanwhile: only a place in
//! the trace is kept for each process. Times that were drawn within a coarse unit are drawn again from there.

use iosched::Part;
use iosched_disk::Device;
use iosched_numbers::SplitMix64;
use iosched_workload::{Arrivals, Cursor, Entry, Trace, due_ns};

use super::Source;
use super::core::{Core, NewIo};
use crate::observer::Observer;

/// Up to this resolution of times, ns, latency may count from the beginning of the unit.
const FINE_NS: u64 = 1_000;

/// A trace in open replay.
pub(super) struct Open<'a> {
    trace: &'a Trace,
    arrivals: Arrivals<'a>,
    /// The next entry, and when it is due.
    next: Option<Entry>,
    next_ns: u64,
    speed: f64,
    /// Of each process: how many of its entries are not due yet.
    left: Vec<u32>,
    /// Of each process that waits: its entries from the next on.
    waiting: Vec<Option<Behind<'a>>>,
}

/// What a process that waits has still to submit.
enum Behind<'a> {
    /// Its entries, due at their recorded times.
    Recorded(Cursor<'a, Entry>),
    /// The entries of all processes, due at the times that were drawn. Boxed: few processes wait.
    Drawn(Box<Arrivals<'a>>),
}

impl<'a> Open<'a> {
    pub(super) fn new(trace: &'a Trace, speed: f64, seed: u64) -> Self {
        let arrivals = trace.arrivals(speed, SplitMix64::entity(seed, 1));
        let left: Vec<u32> = trace.processes().iter().map(|process| process.requests as u32).collect();
        let waiting = left.iter().map(|_| None).collect();
        let mut open = Self { trace, arrivals, next: None, next_ns: 0, speed, left, waiting };
        open.schedule();
        open
    }

    #[inline]
    fn schedule(&mut self) {
        let next = self.arrivals.next();
        (self.next, self.next_ns) = next.map_or((None, u64::MAX), |(entry, at_ns)| (Some(entry), at_ns));
    }

    /// The entries of `task` behind the one that is due now.
    fn behind(&self, task: u32) -> Behind<'a> {
        if self.trace.resolution_ns() > FINE_NS {
            return Behind::Drawn(Box::new(self.arrivals.fork()));
        }
        Behind::Recorded(self.trace.by_process().last(task as usize, self.left[task as usize] as usize))
    }

    /// The next entry of `task` that is due by now, and when it was due.
    fn next_late(&mut self, task: u32) -> Option<(Entry, u64)> {
        match self.waiting[task as usize].as_mut()? {
            Behind::Recorded(entries) => {
                let entry = (entries.len() > self.left[task as usize] as usize).then(|| entries.next())??;
                Some((entry, due_ns(entry.arrival_ns, self.speed)))
            }
            Behind::Drawn(arrivals) => {
                let first_not_due = self.arrivals.number() - usize::from(self.next.is_some());
                loop {
                    let late = (arrivals.number() < first_not_due).then(|| arrivals.next())??;
                    if late.0.process == task {
                        return Some(late);
                    }
                }
            }
        }
    }

    /// The process submits what it could not while it waited.
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

    fn woken(&mut self, core: &mut Core<D, O>, task: u32) {
        if core.resume(task) {
            self.catch_up(core, task);
        }
    }
}
