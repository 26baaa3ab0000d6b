//! A running job, which chooses its next action after each completion. It knows the time, but
//! neither the queue nor the device.
//!
//! A job works like fio's own loop. It fills its depth and submits in batches. When the depth is
//! full, it handles completions in batches. Before the job sleeps or syncs, it waits until all I/Os
//! in flight complete.
//!
//! The caller [begins](Process::begin) the job. It calls [`Process::step`] and executes the
//! returned actions until the action is to wait or to sleep. It reports which I/Os were
//! [taken](Process::taken) and [done](Process::io_done). The interface is the same for a simulation
//! and a real device.

mod pace;
mod stats;
mod target;

use std::collections::VecDeque;

use self::pace::Pace;
use self::stats::Stats;
use self::target::{Search, Verdict};
use super::generator::{Generator, JobIo, Step};
use super::job::Job;
use super::layout::JobLayout;
use super::value::{Client, Direction, Mode};
use crate::outcome::{JobResult, SyncKind};
use iosched_numbers::SplitMix64;

/// Numbers of the random streams for the pace and for the start delay.
const PACE_STREAM: u64 = 101;
const DELAY_STREAM: u64 = 102;

/// An action that a job requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Submit the queued I/Os.
    Submit,
    /// Flush the device.
    Flush,
    /// Sleep until this time, ns.
    Sleep(u64),
    /// Wait for completions.
    Wait,
    /// The job has ended.
    End,
}

/// The event for which a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// None: the job runs.
    No,
    /// This number of completions.
    Completions(usize),
    /// A time.
    Asleep,
    /// Space in the queue.
    Allocation,
    /// The end of its flush.
    Flush,
}

/// Action after all I/Os in flight have completed.
#[derive(Clone, Copy, Debug)]
enum Then {
    Think(u64),
    SleepUntil(u64),
    Flush,
    GoOn,
}

/// An I/O of the job.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Direction, file, place and length.
    pub io: JobIo,
    /// Time at which the job generated the I/O, ns.
    pub asked_ns: u64,
    /// Time at which the queue had accepted the I/O, ns.
    pub issued_ns: u64,
}

/// State of a running job.
pub struct Process<'a> {
    /// Options of the job.
    pub job: &'a Job,
    generator: Generator<'a>,
    pace: Pace,
    seed: u64,
    search: Option<Search>,
    depth: u32,
    waits: Waits,
    stopping: bool,
    /// Whether the job handles completions before it issues more I/Os. This state begins when the
    /// depth is full, and ends when the depth has fallen enough.
    taking: bool,
    then: Option<Then>,
    /// Start, ns; `u64::MAX` if the job has not started.
    started_ns: u64,
    ends_ns: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// I/Os that were generated and are not submitted yet.
    queued: VecDeque<u32>,
    /// I/Os that completed and are not handled yet.
    completed: VecDeque<u32>,
    /// Slot and file of each I/O whose completion was handled, oldest first, until
    /// [`Process::next_handled`] returns them. `None`: handled I/Os are not listed.
    handled: Option<VecDeque<(u32, u32)>>,
    /// Number of I/Os that were generated and whose completion is not handled yet.
    current: u32,
    /// Whether the job wrote since its last sync.
    dirty: bool,
    /// System call of the current or next flush.
    sync_kind: SyncKind,
    flush_asked_ns: u64,
    /// Time of the last completion after the run stopped the job, ns.
    drained_ns: u64,
    stats: Stats,
}

impl<'a> Process<'a> {
    /// Creates a job that has not begun, with the places of `layout`.
    #[must_use]
    pub fn new(job: &'a Job, layout: &JobLayout, seed: u64) -> Self {
        Self {
            job,
            generator: Generator::new(job, layout, seed),
            pace: Pace::new(job, 0, SplitMix64::entity(seed, PACE_STREAM)),
            seed,
            search: None,
            depth: if job.client == Client::Async { job.io_depth.max(1) } else { 1 },
            waits: Waits::No,
            stopping: false,
            taking: false,
            then: None,
            started_ns: u64::MAX,
            ends_ns: u64::MAX,
            slots: Vec::new(),
            free: Vec::new(),
            queued: VecDeque::new(),
            completed: VecDeque::new(),
            handled: None,
            current: 0,
            dirty: false,
            sync_kind: SyncKind::Fsync,
            flush_asked_ns: 0,
            drained_ns: 0,
            stats: Stats::new(job),
        }
    }

    /// Returns the start delay that a job with this seed draws from `startdelay`, ns.
    pub(super) fn delay_ns(job: &Job, seed: u64) -> u64 {
        let delay = job.start_delay;
        let span = delay.max_ns.saturating_sub(delay.min_ns).saturating_add(1);
        delay.min_ns + SplitMix64::entity(seed, DELAY_STREAM).below(span)
    }

    /// Begins the job. Returns the time from which its metrics count, ns.
    pub fn begin(&mut self, now_ns: u64) -> u64 {
        self.started_ns = now_ns;
        self.pace = Pace::new(self.job, now_ns, SplitMix64::entity(self.seed, PACE_STREAM));
        self.search = self.job.latency_target.map(|target| Search::new(target, self.depth, now_ns));
        let counted_ns = now_ns.saturating_add(self.job.ramp_time_ns);
        self.ends_ns = self.job.runtime_ns.map_or(u64::MAX, |runtime_ns| counted_ns.saturating_add(runtime_ns));
        self.stats.begin(now_ns, counted_ns);
        counted_ns
    }

    /// Counts the job's metrics from this time on, ns. If the metrics already begin later, this has
    /// no effect. The job must have begun.
    pub fn count_from(&mut self, counted_ns: u64) {
        self.stats.count_from(counted_ns);
    }

    /// Returns the time from which the I/Os count in the metrics of the run, ns: the end of
    /// `ramp_time`, or 0 without `ramp_time`.
    #[must_use]
    pub fn counted_ns(&self) -> u64 {
        let ramps = self.job.ramp_time_ns > 0 && self.started_ns != u64::MAX;
        if ramps { self.started_ns.saturating_add(self.job.ramp_time_ns) } else { 0 }
    }

    /// Stops the job: it issues no more I/Os.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Handles an event after which the job may continue. Returns `false` if the job waits for
    /// another event.
    pub fn wake(&mut self, now_ns: u64) -> bool {
        if self.waits == Waits::Asleep {
            self.pace.thought(now_ns);
        }
        let runs = !matches!(self.waits, Waits::Allocation | Waits::Flush);
        if runs {
            self.waits = Waits::No;
        }
        runs
    }

    /// Lists all I/Os whose completion the job handles, for [`Process::next_handled`].
    pub fn list_handled(&mut self) {
        self.handled = Some(VecDeque::new());
    }

    /// Removes the first I/O from the list of handled I/Os. Returns the number of its slot, and the
    /// index of its file.
    pub fn next_handled(&mut self) -> Option<(u32, u32)> {
        self.handled.as_mut()?.pop_front()
    }

    /// Returns the current depth.
    fn depth(&self) -> u32 {
        self.search.as_ref().map_or(self.depth, Search::depth)
    }

    /// Returns the next action of the job.
    pub fn step(&mut self, now_ns: u64) -> Action {
        loop {
            if self.stopping || self.then.is_some() {
                match self.settle(now_ns) {
                    Some(action) => return action,
                    None => continue,
                }
            }
            if self.taking {
                match self.take(now_ns) {
                    Some(action) => return action,
                    None => continue,
                }
            }
            if self.job.batch_complete_min == 0 && self.job.client == Client::Async {
                self.reap(now_ns, self.job.batch_complete_max.max(1));
            }
            if now_ns >= self.ends_ns {
                self.stopping = true;
            } else if let Some(pause_ns) = self.pace.think_ns(now_ns) {
                self.then = Some(Then::Think(pause_ns));
            } else if self.current >= self.depth() {
                self.taking = true;
            } else if let Some(action) = self.issue(now_ns) {
                return action;
            }
        }
    }

    /// Waits until all I/Os in flight complete, then executes the pending action.
    fn settle(&mut self, now_ns: u64) -> Option<Action> {
        if !self.queued.is_empty() {
            return Some(Action::Submit);
        }
        self.reap(now_ns, u32::MAX);
        if self.current > 0 {
            return Some(self.wait_for(1));
        }
        if let Some(then) = self.then.take()
            && !self.stopping
        {
            return match then {
                Then::Think(pause_ns) => Some(self.sleep(now_ns.saturating_add(pause_ns))),
                Then::SleepUntil(at_ns) => Some(self.sleep(at_ns)),
                Then::Flush => Some(self.flush(now_ns)),
                Then::GoOn => None,
            };
        }
        if !self.stopping {
            return None;
        }
        if self.dirty && (self.job.end_fsync || self.job.fsync_on_close) {
            self.sync_kind = SyncKind::Fsync;
            return Some(self.flush(now_ns));
        }
        Some(Action::End)
    }

    /// Handles completions in batches until the depth has fallen enough.
    fn take(&mut self, now_ns: u64) -> Option<Action> {
        if !self.queued.is_empty() {
            return Some(Action::Submit);
        }
        let least = if self.job.client == Client::Async { self.job.batch_complete_min } else { 1 };
        let least = least.clamp(1, self.current.max(1));
        if self.current > 0 && self.completed.len() < least as usize {
            return Some(self.wait_for(least));
        }
        self.reap(now_ns, self.job.batch_complete_max.max(least));
        let low = if self.job.client == Client::Async { self.job.io_depth_low } else { 1 };
        // The target must be below the full depth, or this state would never end.
        self.taking = self.current > low.min(self.depth() - 1);
        if self.job.io_depth_low >= self.depth() {
            self.taking = false;
        }
        None
    }

    /// Generates the next I/O or sync, unless it is not due yet. Returns the next action, if any.
    fn issue(&mut self, now_ns: u64) -> Option<Action> {
        if self.generator.sync_due().is_none() {
            let at_ns = self.due_ns(now_ns);
            if at_ns > now_ns {
                self.then = Some(Then::SleepUntil(at_ns));
                return None;
            }
        }
        match self.generator.next() {
            None => {
                self.stopping = true;
                None
            }
            Some(Step::Sync(SyncKind::Range)) => {
                self.then = Some(Then::GoOn);
                None
            }
            Some(Step::Sync(kind)) => {
                self.sync_kind = kind;
                // Direct I/Os are already submitted, so the sync need not wait for them.
                if self.job.direct && self.queued.is_empty() {
                    return Some(self.flush(now_ns));
                }
                self.then = Some(Then::Flush);
                None
            }
            Some(Step::Io(io)) => {
                self.enqueue(io, now_ns);
                let batch = if self.job.client == Client::Async { self.job.batch_submit.max(1) } else { 1 };
                (self.queued.len() >= batch as usize).then_some(Action::Submit)
            }
        }
    }

    /// Returns the earliest time of the next I/O. If reads and writes have rates, the direction
    /// that is due earlier is next.
    fn due_ns(&mut self, now_ns: u64) -> u64 {
        let direction = self.generator.direction();
        let logged_ns = self.started_ns.saturating_add(self.generator.due_ns());
        let at_ns = self.pace.next_ns(direction).max(logged_ns);
        if at_ns <= now_ns || self.job.mode != Mode::ReadWrite {
            return at_ns;
        }
        let other = if direction == Direction::Read { Direction::Write } else { Direction::Read };
        let other_ns = self.pace.next_ns(other);
        if !self.pace.is_limited(other) || other_ns >= at_ns {
            return at_ns;
        }
        self.generator.redirect(other);
        other_ns
    }

    fn enqueue(&mut self, io: JobIo, now_ns: u64) {
        self.pace.issued(&io);
        self.dirty |= io.direction != Direction::Read;
        self.current += 1;
        self.stats.issued(now_ns, self.current);
        let slot = Slot { io, asked_ns: now_ns, issued_ns: now_ns };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.queued.push_back(number);
    }

    /// Handles at most `most` completions.
    fn reap(&mut self, now_ns: u64, most: u32) {
        let ios = self.completed.len().min(most as usize);
        if ios == 0 {
            return;
        }
        self.stats.batch_completed(now_ns, ios as u32);
        self.pace.completed(ios as u64);
        for _ in 0..ios {
            let Some(number) = self.completed.pop_front() else { break };
            self.free.push(number);
            self.current -= 1;
            let slot = self.slots[number as usize];
            if let Some(handled) = &mut self.handled {
                handled.push_back((number, slot.io.file));
            }
            if self.stats.completed(now_ns, &slot) {
                self.stopping = true;
            }
            if let Some(search) = &mut self.search {
                match search.completed(slot.asked_ns, now_ns) {
                    Verdict::Same => {}
                    Verdict::Lower => self.then = self.then.or(Some(Then::GoOn)),
                    Verdict::Found => self.stats.restart(now_ns),
                    Verdict::Done => self.stopping = true,
                    Verdict::Unreachable => {
                        self.stats.fail();
                        self.stopping = true;
                    }
                }
            }
        }
    }

    fn wait_for(&mut self, completions: u32) -> Action {
        self.waits = Waits::Completions(completions as usize);
        Action::Wait
    }

    fn sleep(&mut self, at_ns: u64) -> Action {
        self.waits = Waits::Asleep;
        Action::Sleep(at_ns.min(self.ends_ns))
    }

    fn flush(&mut self, now_ns: u64) -> Action {
        self.dirty = false;
        self.flush_asked_ns = now_ns;
        self.waits = Waits::Flush;
        Action::Flush
    }

    // ---- reports of the caller

    /// Returns the number of I/Os that are queued for submission.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Returns whether the job issues no more I/Os. Its next flush is then the last one, and covers
    /// all its files.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.stopping
    }

    /// Returns the system call of the requested flush.
    #[must_use]
    pub fn sync_kind(&self) -> SyncKind {
        self.sync_kind
    }

    /// Reports that the queued I/Os are being submitted together.
    pub fn submitting(&mut self, now_ns: u64) {
        self.stats.batch_submitted(now_ns, self.queued.len() as u32);
    }

    /// Removes and returns the next I/O to submit.
    pub fn next_queued(&mut self) -> Option<(u32, Slot)> {
        let number = self.queued.pop_front()?;
        Some((number, self.slots[number as usize]))
    }

    /// Reports that the queue has accepted an I/O.
    pub fn taken(&mut self, number: u32, now_ns: u64) {
        self.slots[number as usize].issued_ns = now_ns;
    }

    /// Reports that the queue is full.
    pub fn blocked(&mut self) {
        self.waits = Waits::Allocation;
    }

    /// Reports that the queue has space again. Returns `false` if the job was not waiting for this.
    pub fn unblocked(&mut self) -> bool {
        let waited = self.waits == Waits::Allocation;
        if waited {
            self.waits = Waits::No;
        }
        waited
    }

    /// Returns whether the job is inside a synchronous system call whose I/O is not complete.
    #[must_use]
    pub fn is_in_call(&self) -> bool {
        self.job.client == Client::Sync && self.current as usize > self.completed.len()
    }

    /// Reports the completion of an I/O. Returns whether the job can continue.
    pub fn io_done(&mut self, number: u32) -> bool {
        self.completed.push_back(number);
        matches!(self.waits, Waits::Completions(least) if self.completed.len() >= least)
    }

    /// Reports the completion of the flush.
    pub fn flush_done(&mut self, now_ns: u64) {
        self.waits = Waits::No;
        self.stats.synced(now_ns, self.sync_kind, now_ns - self.flush_asked_ns);
    }

    /// Handles completions after the run has stopped the job. As in fio, I/Os in flight at the end
    /// count. The time until they complete also counts.
    pub fn drain(&mut self, now_ns: u64) {
        self.reap(now_ns, u32::MAX);
        self.drained_ns = now_ns;
    }

    /// Reports that the run stopped the job at `limit_ns` and has ended at `now_ns`.
    pub fn end_at_limit(&mut self, limit_ns: u64, now_ns: u64) {
        self.reap(now_ns, u32::MAX);
        let is_drained = self.current as usize == self.queued.len();
        self.end(if is_drained { limit_ns.max(self.drained_ns).min(now_ns) } else { now_ns });
    }

    /// Reports the end of the job or of the run.
    pub fn end(&mut self, now_ns: u64) {
        self.stats.end(now_ns);
    }

    /// Returns whether a limit ended the job.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.stats.has_failed()
    }

    /// Returns the results of the job.
    #[must_use]
    pub fn into_result(self) -> JobResult {
        let depth = self.search.as_ref().map(Search::depth);
        JobResult { target_depth: depth, ..self.stats.into_result() }
    }
}
