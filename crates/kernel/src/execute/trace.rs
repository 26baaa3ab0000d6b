//! Replays traces with one thread per recorded process, or with one thread for several processes. A
//! thread submits I/Os at recorded times or after recorded think times.
//!
//! All I/O is direct, because a trace is recorded below the page cache. The lateness of each
//! submission is measured.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

use iosched::{Flags, IoPriority, Op, SECTOR_BYTES};
use iosched_numbers::SplitMix64;
use iosched_workload::outcome::{Note, TaskResult};
use iosched_workload::{Arrivals, Entry, Fit, Followers, Replay, Trace};

use super::ground::{Access, Ground, Need};
use super::message::Message;
use super::port::{Io, IoOp, Port};
use super::recorder::Recorder;
use super::worker::{self, Next, Part, Played, Shared};
use super::{ExecuteError, ExecuteOptions, Gathered, Run};
use crate::target::Target;

/// Largest number of threads. If there are more processes, several processes share a thread.
const THREADS_MAX: usize = 64;
/// Largest number of I/Os in flight per thread. At this limit, the thread waits, and its next I/Os
/// are late.
const UNDER_WAY_MAX: usize = 4096;

/// A trace and the target of its I/Os.
#[derive(Debug)]
pub(super) struct PreparedTrace<'t> {
    recorded: &'t Trace,
    /// The trace, fitted to this target if the target is smaller than the recorded device.
    fitted: Option<Arc<Trace>>,
    fit: Fit,
    pub(super) ground: Ground<'t>,
}

impl<'t> PreparedTrace<'t> {
    pub(super) fn new(trace: &'t Trace, target: &'t Target) -> Result<Self, ExecuteError> {
        let reach_bytes = trace.end_sector().saturating_mul(SECTOR_BYTES);
        let ground = Ground::new(target, Need::Disk { reach_bytes })?;
        let (fitted, fit) = trace.fitted((ground.pieces[0].bytes / SECTOR_BYTES).max(1));
        trace.check()?;
        Ok(Self { recorded: trace, fitted, fit, ground })
    }

    fn trace(&self) -> &Trace {
        self.fitted.as_deref().unwrap_or(self.recorded)
    }

    pub(super) fn run(&self, run: &Run<'_>, options: &ExecuteOptions<'_>) -> Result<Gathered, ExecuteError> {
        let processes = self.trace().processes().len();
        let threads = processes.clamp(1, THREADS_MAX);
        let shared = run.shared(threads)?;
        // This computation takes time, so it is done before the run begins.
        let _ = self.trace().by_process();
        let _ = (options.replay == Replay::Closed).then(|| self.trace().closed_loop());
        let mut makers = Vec::with_capacity(threads);
        for thread in 0..threads {
            let range = thread * processes / threads..(thread + 1) * processes / threads;
            let shared = &shared;
            makers.push(move || self.part(run, shared, options, (thread, range)));
        }
        let played = worker::play(&shared, false, makers, || run.begin(false))?;
        let mut gathered = Gathered::default();
        for Played { recorder, counts, .. } in played {
            gathered.add(recorder, &counts);
        }
        self.add_notes(options.replay, &mut gathered.result.notes);
        self.trace().check()?;
        Ok(run.ended(gathered, &shared))
    }

    /// Creates the part of one thread. This function runs on that thread.
    fn part<'a>(
        &'a self,
        run: &Run<'_>,
        shared: &'a Shared<'a>,
        options: &ExecuteOptions<'_>,
        (thread, range): (usize, Range<usize>),
    ) -> Result<(TracePart<'a>, Port<'a>), ExecuteError> {
        let trace = self.trace();
        let ioprio = trace.processes()[range.clone()].first().and_then(|process| process.ioprio).unwrap_or_default();
        worker::take_ioprio(ioprio)?;
        let access = Access { write: writes(trace), direct: true, ..Access::default() };
        let files = vec![self.ground.open(0, access)?];
        let bell = shared.inboxes[thread].bell();
        let engine = run.engine(true, UNDER_WAY_MAX, longest_io(trace), bell)?;
        let task = |(process, name): (&iosched_workload::Process, String)| TaskResult {
            pid: process.pid,
            name,
            ioprio: process.ioprio.unwrap_or_default().to_string(),
            ..TaskResult::default()
        };
        let names = trace.names_in_results().into_iter();
        let tasks = trace.processes().iter().zip(names).skip(range.start).take(range.len()).map(task).collect();
        let recorder = Recorder::new(tasks, shared.counted_from_ns, &shared.watch);
        let mode = match options.replay {
            Replay::Closed => Mode::Closed(Followers::new(trace, range.clone())),
            Replay::Open { speed } => {
                let arrivals = range.clone().map(|process| {
                    let rng = SplitMix64::entity(options.seed, process as u64 + 1);
                    trace.arrivals_of(process, speed, rng).peekable()
                });
                Mode::Open(arrivals.collect())
            }
        };
        let mut part = TracePart { shared, first: range.start, mode, due: BinaryHeap::new(), ioprio, stopped: false };
        range.for_each(|process| part.schedule(process, 0));
        Ok((part, Port::new(files, engine, bell, recorder, run.first_write(thread))))
    }

    fn add_notes(&self, replay: Replay, notes: &mut Vec<Note>) {
        let trace = self.trace();
        let capacity_sectors = self.ground.pieces[0].bytes / SECTOR_BYTES;
        notes.extend(Note::of_fit(self.fit, self.recorded.end_sector(), capacity_sectors));
        if trace.left_out() > 0 {
            notes.push(Note::LeftOut { requests: trace.left_out() });
        }
        let unknown = if replay == Replay::Closed { trace.closed_loop().unknown() } else { 0 };
        if unknown > 0 {
            notes.push(Note::CompletionsUnknown { ios: unknown });
        }
        let is_async = |entry: &Entry| entry.op() == Op::Write && !entry.flags().contains(Flags::SYNC);
        let ios = trace.entries().filter(is_async).count() as u64;
        if ios > 0 {
            notes.push(Note::AsyncAsDirect { ios });
        }
    }
}

/// Returns whether a trace changes data.
pub(super) fn writes(trace: &Trace) -> bool {
    trace.entries().any(|entry| !matches!(entry.op(), Op::Read | Op::Flush))
}

/// Returns the longest I/O of a trace that moves data, bytes.
pub(super) fn longest_io(trace: &Trace) -> u64 {
    let moving = trace.entries().filter(|entry| matches!(entry.op(), Op::Read | Op::Write));
    moving.map(|entry| u64::from(entry.nr_sectors) * SECTOR_BYTES).max().unwrap_or(0)
}

enum Mode<'a> {
    /// The remaining submissions of each process.
    Open(Vec<Peekable<Arrivals<'a>>>),
    Closed(Followers<'a>),
}

/// Part of one thread: some processes of a trace.
struct TracePart<'a> {
    shared: &'a Shared<'a>,
    /// Index of the first process.
    first: usize,
    mode: Mode<'a>,
    /// Times of the processes' next submissions in ns, each with the index of its process.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// Present ioprio of the thread.
    ioprio: IoPriority,
    stopped: bool,
}

impl TracePart<'_> {
    /// Schedules the next submission of a process. Does nothing if the process waits for a
    /// completion or has no more submissions.
    fn schedule(&mut self, process: usize, not_before_ns: u64) {
        let due_ns = match &mut self.mode {
            Mode::Closed(followers) => followers.due_ns(process),
            Mode::Open(arrivals) => arrivals[process - self.first].peek().map(|&(_, at_ns)| at_ns),
        };
        if let Some(due_ns) = due_ns
            && !self.stopped
        {
            self.due.push(Reverse((due_ns.max(not_before_ns), process)));
        }
    }

    /// Sets the ioprio of this thread to the recorded ioprio of the next submission. A ring reads
    /// the ioprio when the kernel takes a submission. This function therefore first passes the
    /// earlier submissions to the kernel.
    fn take_ioprio(&mut self, port: &mut Port<'_>, recorded: Option<IoPriority>) {
        let ioprio = recorded.unwrap_or_default();
        if self.ioprio == ioprio {
            return;
        }
        port.hand_over();
        match worker::take_ioprio(ioprio) {
            Ok(()) => self.ioprio = ioprio,
            Err(error) => self.shared.fail(error),
        }
    }

    /// Returns the next submission of a process, or `None` if there is none left.
    fn take(&mut self, process: usize) -> Option<Entry> {
        match &mut self.mode {
            Mode::Closed(followers) => followers.take(process),
            Mode::Open(arrivals) => Some(arrivals[process - self.first].next()?.0),
        }
    }
}

impl Part for TracePart<'_> {
    fn receive(&mut self, _message: Message, _now_ns: u64) {}

    fn go(&mut self, port: &mut Port<'_>, now_ns: u64) -> Next {
        while let Some(&Reverse((due_ns, process))) = self.due.peek()
            && due_ns <= now_ns
            && port.under_way() < UNDER_WAY_MAX
        {
            self.due.pop();
            let Some(entry) = self.take(process) else { continue };
            self.take_ioprio(port, entry.ioprio());
            let bytes = u64::from(entry.nr_sectors) * SECTOR_BYTES;
            let stable = entry.flags().intersects(Flags::FUA);
            let op = match entry.op() {
                Op::Read => IoOp::Read,
                Op::Write => IoOp::Write { stable },
                Op::Discard => IoOp::Discard,
                Op::WriteZeroes => IoOp::Zero,
                Op::Flush => IoOp::Sync { data_only: true },
            };
            let (offset, task, tag) = (entry.sector() * SECTOR_BYTES, process - self.first, process as u64);
            port.recorder.was_due(due_ns, now_ns);
            port.submit(&Io { op, file: 0, offset, bytes, buffered: false, ioprio: 0, task, tag }, now_ns);
            self.schedule(process, due_ns);
        }
        match self.due.peek() {
            None if port.under_way() == 0 => Next::Done,
            Some(&Reverse((due_ns, _))) if port.under_way() < UNDER_WAY_MAX => Next::Wait { until_ns: due_ns },
            _ => Next::Wait { until_ns: u64::MAX },
        }
    }

    fn completed(&mut self, tag: u64, now_ns: u64) {
        if let Mode::Closed(followers) = &mut self.mode {
            let process = tag as usize;
            if followers.completed(process, now_ns) {
                self.schedule(process, now_ns);
            }
        }
    }

    fn stop(&mut self, _now_ns: u64) -> bool {
        self.stopped = true;
        let had_more = !self.due.is_empty();
        self.due.clear();
        had_more
    }
}
