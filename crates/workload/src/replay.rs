//! Replay modes of a trace, and the state of the processes of a closed replay.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use iosched_system::rows::Cursor;

use crate::closed::Wait;
use crate::trace::{Entry, Trace};

/// Use of a trace's times in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// I/Os arrive at their recorded times, however fast the device is.
    Open {
        /// Divisor of the recorded times: 2 is twice as fast. Above 0.
        speed: f64,
    },
    /// Each process keeps its order and its think times. An I/O first waits for the same number of
    /// completions of its process as in the recording (see [`ClosedLoop`](crate::ClosedLoop)). Then
    /// it waits for its recorded think time.
    Closed,
}

impl Default for Replay {
    fn default() -> Self {
        Self::Open { speed: 1.0 }
    }
}

/// Value of `waits_for` if the process waits for no completion.
const NOTHING: u32 = u32::MAX;

struct Follower<'a> {
    /// Remaining submissions of the process, and the completion that each submission waits for.
    entries: Cursor<'a, Entry>,
    waits: Cursor<'a, Wait>,
    /// Number of the next submission.
    next: u32,
    /// Number of completions.
    completed: u32,
    /// Number of completions that must happen before the next submission.
    waits_for: u32,
    /// Start and length of the process' ring in `Followers::rings`.
    ring: usize,
    ring_length: u32,
}

/// Processes of a trace in closed replay. Each process keeps its order, its depth and its think
/// times. Completion times are stored only as long as a later I/O can need them.
///
/// The caller [takes](Followers::take) a process' next submission when it is
/// [due](Followers::due_ns), and reports when it is [done](Followers::completed).
pub struct Followers<'a> {
    first: usize,
    followers: Vec<Follower<'a>>,
    /// Times of the latest completions of each process, ns. The rings of the processes follow one
    /// another.
    rings: Vec<u64>,
    /// Whether each I/O waits for the previous one. Writes are then sync.
    one_by_one: bool,
}

impl<'a> Followers<'a> {
    /// Creates the state of the processes with these numbers, before their first submissions.
    #[must_use]
    pub fn new(trace: &'a Trace, processes: Range<usize>) -> Self {
        let closed = trace.closed_loop();
        let first = processes.start;
        let mut followers = Vec::with_capacity(processes.len());
        let mut ring = 0;
        for process in processes {
            let ring_length = closed.reach(process).max(1);
            let (entries, waits) = (trace.by_process().entries(process), closed.waits(process));
            followers.push(Follower { entries, waits, next: 0, completed: 0, waits_for: NOTHING, ring, ring_length });
            ring += ring_length as usize;
        }
        Self { first, followers, rings: vec![0; ring], one_by_one: trace.is_timeless() }
    }

    /// Returns the time at which the next submission of a process is due, ns. The time can be in
    /// the past. Returns `None` if the process has no submissions left or waits for a completion.
    /// Call this again when [`completed`](Self::completed) returns `true`.
    #[inline]
    pub fn due_ns(&mut self, process: usize) -> Option<u64> {
        let state = &mut self.followers[process - self.first];
        let wait = state.waits.peek()?;
        if wait.lag == 0 {
            return Some(wait.think_ns());
        }
        let needed = state.next + 1 - wait.lag;
        if state.completed < needed {
            state.waits_for = needed;
            return None;
        }
        let done_ns = self.rings[state.ring + (needed % state.ring_length) as usize];
        Some(done_ns.saturating_add(wait.think_ns()))
    }

    /// Returns the next submission of a process, which the caller submits now. Returns `None` if
    /// the process has no submissions left.
    #[inline]
    pub fn take(&mut self, process: usize) -> Option<Entry> {
        let state = &mut self.followers[process - self.first];
        let entry = state.entries.next()?;
        state.waits.next();
        state.next += 1;
        Some(if self.one_by_one { entry.waited_for() } else { entry })
    }

    /// Records the completion of a submission. Returns whether the process waited for it.
    #[inline]
    pub fn completed(&mut self, process: usize, now_ns: u64) -> bool {
        let state = &mut self.followers[process - self.first];
        state.completed += 1;
        self.rings[state.ring + (state.completed % state.ring_length) as usize] = now_ns;
        let waited = state.waits_for == state.completed;
        if waited {
            state.waits_for = NOTHING;
        }
        waited
    }
}
