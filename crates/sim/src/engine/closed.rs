//! Closed replay: each process keeps its order, its depth and its think times.

use iosched::Part;
use iosched_disk::Device;
use iosched_workload::outcome::Note;
use iosched_workload::{Followers, Trace};

use super::core::{Core, NewIo};
use super::drive::Source;
use super::heap::Heap;
use crate::observer::Observer;

/// A trace in closed replay.
pub(super) struct Closed<'a> {
    /// Number of submissions whose completion was not recorded.
    unknown: u64,
    followers: Followers<'a>,
    /// End of each process's rest, ns.
    rests_until_ns: Vec<u64>,
    heap: Heap,
}

impl<'a> Closed<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let processes = 0..trace.processes().len();
        let followers = Followers::new(trace, processes.clone());
        let mut source = Self {
            unknown: trace.closed_loop().unknown(),
            followers,
            rests_until_ns: vec![0; processes.len()],
            heap: Heap::default(),
        };
        for process in processes {
            source.schedule(process as u32, 0);
        }
        source
    }

    /// Continues a process that has submitted an I/O. If a controller requires a rest, the process
    /// rests first. Otherwise, like a thread on a CPU, it submits all its I/Os that are due before
    /// another process runs.
    fn go_on<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, process: u32) {
        let rest_ns = core.rest_ns(process);
        if rest_ns > 0 {
            self.rests_until_ns[process as usize] = core.now_ns + rest_ns;
        }
        if let Some(at_ns) = self.due_ns(process, core.now_ns) {
            self.heap.push_first(at_ns, process, 0);
        }
    }

    /// Schedules the next submission of a process, or lets it wait for a completion.
    fn schedule(&mut self, process: u32, now_ns: u64) {
        if let Some(at_ns) = self.due_ns(process, now_ns) {
            self.heap.push(at_ns, process, 0);
        }
    }

    fn due_ns(&mut self, process: u32, now_ns: u64) -> Option<u64> {
        let at_ns = self.followers.due_ns(process as usize)?;
        Some(at_ns.max(now_ns).max(self.rests_until_ns[process as usize]))
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
        let Some(entry) = self.followers.take(process as usize) else {
            return;
        };
        core.take_ioprio(process, entry.ioprio());
        let (op, flags, sector, nr_sectors) = (entry.op(), entry.flags(), entry.sector(), entry.nr_sectors);
        if core.submit(
            process,
            &NewIo { op, flags, sector, nr_sectors, tag: 0, asked_ns: event.at_ns, issued: None, part: Part::Whole },
        ) {
            self.go_on(core, process);
        }
    }

    #[inline]
    fn completed(&mut self, core: &mut Core<D, O>, task: u32, _tag: u32) {
        if self.followers.completed(task as usize, core.now_ns) {
            self.schedule(task, core.now_ns);
        }
    }

    fn woken(&mut self, core: &mut Core<D, O>, _disk: usize, task: u32) {
        if core.resume(task) {
            self.go_on(core, task);
        }
    }

    fn notes(&self, _now_ns: u64, notes: &mut Vec<Note>) {
        if self.unknown > 0 {
            notes.push(Note::CompletionsUnknown { ios: self.unknown });
        }
    }
}
