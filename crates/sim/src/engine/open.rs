//! Open replay: recorded I/Os at their recorded times, however fast the device is.
//!
//! The arrivals are a sorted stream: no heap. A process that finds the queue full waits with the
//! I/O it has at hand. The trace has those that it would have submitted meanwhile: only a place in
//! the trace is kept for each process.

use iosched::Part;
use iosched_disk::Device;
use iosched_numbers::SplitMix64;
use iosched_workload::{Cursor, Entries, Entry, Trace};

use super::Source;
use super::core::{Core, NewIo};
use crate::observer::Observer;

/// The latest moment of a slowed-down replay, ns.
const LAST_NS: u64 = 1 << 62;

/// A trace in open replay.
pub(super) struct Open<'a> {
    trace: &'a Trace,
    entries: Entries<'a>,
    /// The next entry, and when it is due.
    next: Option<Entry>,
    next_ns: u64,
    speed: f64,
    jitter: Option<SplitMix64>,
    /// Of each process: how many of its entries are not due yet.
    left: Vec<u32>,
    /// Of each process that waits: its entries from the next on.
    waiting: Vec<Option<Cursor<'a, Entry>>>,
}

impl<'a> Open<'a> {
    pub(super) fn new(trace: &'a Trace, speed: f64, seed: u64) -> Self {
        let jitter = (trace.resolution_ns() > 1).then(|| SplitMix64::entity(seed, 1));
        let left: Vec<u32> = trace.processes().iter().map(|process| process.requests as u32).collect();
        let waiting = left.iter().map(|_| None).collect();
        let mut open = Self { trace, entries: trace.entries(), next: None, next_ns: 0, speed, jitter, left, waiting };
        open.schedule();
        open
    }

    #[inline]
    fn schedule(&mut self) {
        self.next = self.entries.next();
        let Some(entry) = &self.next else {
            self.next_ns = u64::MAX;
            return;
        };
        let mut due_ns = due_ns(entry, self.speed);
        if let Some(jitter) = &mut self.jitter {
            due_ns = due_ns.saturating_add(jitter.next_u64() % self.trace.resolution_ns());
        }
        // Moving within the resolution does not change the order.
        self.next_ns = due_ns.max(self.next_ns);
    }

    /// The process submits what it could not while it waited.
    fn catch_up<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        let waiting = &mut self.waiting[task as usize];
        let left = self.left[task as usize] as usize;
        if let Some(entries) = waiting {
            while entries.len() > left
                && !core.is_exhausted()
                && let Some(entry) = entries.next()
            {
                core.count_late(1);
                core.take_ioprio(task, entry.ioprio());
                if !core.submit(task, &io(&entry, due_ns(&entry, self.speed))) {
                    return;
                }
            }
        }
        *waiting = None;
    }
}

/// When an entry is due, ns; within the recording's resolution.
#[inline]
fn due_ns(entry: &Entry, speed: f64) -> u64 {
    if speed == 1.0 { entry.arrival_ns } else { ((entry.arrival_ns as f64 / speed) as u64).min(LAST_NS) }
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
        let left = &mut self.left[task as usize];
        *left -= 1;
        let waiting = &mut self.waiting[task as usize];
        if waiting.is_none() {
            core.take_ioprio(task, entry.ioprio());
            if !core.submit(task, &io(&entry, asked_ns)) {
                *waiting = Some(self.trace.by_process().last(task as usize, *left as usize));
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
