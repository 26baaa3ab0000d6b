//! Closed replay: each process keeps its order and its think times.
//!
//! Of a process' completions only those are kept that an I/O may still look back to.

use iosched_disk::Device;
use iosched_workload::{ClosedLoop, Trace};

use super::Source;
use super::core::{Core, NewIo};
use super::heap::Heap;
use crate::observer::Observer;
use crate::result::Note;

/// Not completed yet.
const PENDING: u64 = u64::MAX;
/// Waits for no completion.
const NOTHING: u32 = u32::MAX;

struct State {
    /// Number of its next submission.
    next: u32,
    /// The submission whose completion it waits for.
    waits_for: u32,
    /// Where its ring of completions begins, and how long it is.
    ring: usize,
    ring_length: u32,
}

/// A trace in closed replay.
pub(super) struct Closed<'a> {
    trace: &'a Trace,
    closed: &'a ClosedLoop,
    states: Vec<State>,
    /// When the latest submissions of each process completed, ns; ring after ring.
    rings: Vec<u64>,
    heap: Heap,
}

impl<'a> Closed<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let closed = trace.closed_loop();
        let mut states = Vec::with_capacity(trace.processes().len());
        let mut ring = 0;
        for process in 0..trace.processes().len() {
            let ring_length = closed.reach(process) + 1;
            states.push(State { next: 0, waits_for: NOTHING, ring, ring_length });
            ring += ring_length as usize;
        }
        let mut source = Self { trace, closed, states, rings: vec![PENDING; ring], heap: Heap::default() };
        for process in 0..source.states.len() as u32 {
            source.schedule(process, 0);
        }
        source
    }

    /// Schedules the next submission of a process, or lets it wait for a completion.
    fn schedule(&mut self, process: u32, now_ns: u64) {
        let state = &mut self.states[process as usize];
        let own = self.trace.by_process().entries(process as usize);
        if state.next as usize >= own.len() {
            return;
        }
        let (lag, think_ns) = self.closed.wait(process as usize, state.next as usize);
        let mut at_ns = think_ns;
        if lag > 0 {
            let on = state.next - lag;
            let done_ns = self.rings[state.ring + (on % state.ring_length) as usize];
            if done_ns == PENDING {
                state.waits_for = on;
                return;
            }
            at_ns = done_ns.saturating_add(think_ns);
        }
        self.heap.push(at_ns.max(now_ns), process, 0);
    }
}

impl<D: Device, O: Observer> Source<D, O> for Closed<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        self.heap.next_ns()
    }

    fn event(&mut self, core: &mut Core<D, O>) {
        let Some(event) = self.heap.pop() else {
            return;
        };
        let process = event.task;
        let state = &mut self.states[process as usize];
        let tag = state.next;
        state.next += 1;
        self.rings[state.ring + (tag % state.ring_length) as usize] = PENDING;
        let entry = &self.trace.by_process().entries(process as usize)[tag as usize];
        let (op, flags, sector, nr_sectors) = (entry.op(), entry.flags(), entry.sector(), entry.nr_sectors);
        if core.submit(process, &NewIo { op, flags, sector, nr_sectors, tag, asked_ns: event.at_ns, issued: None }) {
            self.schedule(process, core.now_ns);
        }
    }

    #[inline]
    fn completed(&mut self, core: &mut Core<D, O>, task: u32, tag: u32) {
        let state = &mut self.states[task as usize];
        if state.next - tag <= state.ring_length {
            self.rings[state.ring + (tag % state.ring_length) as usize] = core.now_ns;
        }
        if state.waits_for == tag {
            state.waits_for = NOTHING;
            self.schedule(task, core.now_ns);
        }
    }

    fn woken(&mut self, core: &mut Core<D, O>, task: u32) {
        if core.resume(task) {
            self.schedule(task, core.now_ns);
        }
    }

    fn notes(&self, notes: &mut Vec<Note>) {
        if self.closed.unknown() > 0 {
            notes.push(Note::CompletionsUnknown { ios: self.closed.unknown() });
        }
    }
}
