//! Open replay: recorded I/Os at their recorded times, however fast the device is.
//!
//! The arrivals are a sorted stream: no heap. A process that finds the queue full waits with the I/O it has at hand;
//! those it would have submitted meanwhile are in the trace anyway, so only its place in the trace is kept.

use iosched::Part;
use iosched_disk::Device;
use iosched_numbers::SplitMix64;
use iosched_workload::{Entry, Trace};

use super::Source;
use super::core::{Core, NewIo};
use crate::observer::Observer;

/// The process does not wait.
const NOT_WAITING: u32 = u32::MAX;

/// The latest moment of a slowed-down replay, ns.
const LAST_NS: u64 = 1 << 62;

/// A trace in open replay.
pub(super) struct Open<'a> {
    trace: &'a Trace,
    entries: &'a [Entry],
    /// Number of the next entry, and when it is due.
    next: usize,
    next_ns: u64,
    speed: f64,
    jitter: Option<SplitMix64>,
    /// Of each process that waits: the next of its own submissions.
    waiting: Vec<u32>,
}

impl<'a> Open<'a> {
    pub(super) fn new(trace: &'a Trace, speed: f64, seed: u64) -> Self {
        let jitter = (trace.resolution_ns() > 1).then(|| SplitMix64::entity(seed, 1));
        let waiting = vec![NOT_WAITING; trace.processes().len()];
        let mut open = Self { trace, entries: trace.entries(), next: 0, next_ns: 0, speed, jitter, waiting };
        open.schedule();
        open
    }

    /// When an entry is due, ns; within the recording's resolution.
    #[inline]
    fn due_ns(&self, entry: &Entry) -> u64 {
        if self.speed == 1.0 { entry.arrival_ns } else { ((entry.arrival_ns as f64 / self.speed) as u64).min(LAST_NS) }
    }

    #[inline]
    fn schedule(&mut self) {
        let Some(entry) = self.entries.get(self.next) else {
            self.next_ns = u64::MAX;
            return;
        };
        let mut due_ns = self.due_ns(entry);
        if let Some(jitter) = &mut self.jitter {
            due_ns = due_ns.saturating_add(jitter.next_u64() % self.trace.resolution_ns());
        }
        // Moving within the resolution does not change the order.
        self.next_ns = due_ns.max(self.next_ns);
    }

    /// The process submits what it could not while it waited.
    fn catch_up<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        let by_process = self.trace.by_process();
        let (own, numbers) = (by_process.entries(task as usize), by_process.numbers(task as usize));
        let mut at = self.waiting[task as usize] as usize;
        while let Some(entry) = own.get(at)
            && (numbers[at] as usize) < self.next
            && !core.is_exhausted()
        {
            at += 1;
            core.count_late(1);
            if !core.submit(task, &io(entry, self.due_ns(entry))) {
                self.waiting[task as usize] = at as u32;
                return;
            }
        }
        self.waiting[task as usize] = NOT_WAITING;
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
        let Some(entry) = self.entries.get(self.next) else {
            return;
        };
        let task = entry.process;
        let asked_ns = self.next_ns;
        self.next += 1;
        if self.waiting[task as usize] == NOT_WAITING && !core.submit(task, &io(entry, asked_ns)) {
            let numbers = self.trace.by_process().numbers(task as usize);
            self.waiting[task as usize] = numbers.partition_point(|&number| (number as usize) < self.next) as u32;
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
