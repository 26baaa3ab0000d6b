//! How a trace's times are used when it is replayed, and the processes of a closed replay at work.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use iosched_system::rows::Cursor;

use crate::closed::Wait;
use crate::trace::{Entry, Trace};

/// How a trace's times are used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replay {
    /// I/Os arrive at their recorded times, however fast this device is.
    Open {
        /// Recorded time is divided by it: 2 is twice as fast. Above 0.
        speed: f64,
    },
    /// Each process keeps its order and its think times: an I/O is submitted its recorded think time after
    /// the completion of the one it waited for in the recording (see [`ClosedLoop`](crate::ClosedLoop)).
    Closed,
}

impl Default for Replay {
    fn default() -> Self {
        Self::Open { speed: 1.0 }
    }
}

/// Not completed yet.
const PENDING: u64 = u64::MAX;
/// Waits for no completion.
const NOTHING: u32 = u32::MAX;

struct Follower<'a> {
    /// Its submissions to come, and what each waits for.
    entries: Cursor<'a, Entry>,
    waits: Cursor<'a, Wait>,
    /// Number of its next submission.
    next: u32,
    /// The submission whose completion it waits for.
    waits_for: u32,
    /// Where its ring of completions begins, and how long it is.
    ring: usize,
    ring_length: u32,
}

/// Processes of a trace in closed replay: each keeps its order and its think times. Of a process' completions only
/// those are kept that an I/O may still look back to.
///
/// Whoever runs them [takes](Followers::take) a process' next submission when it is [due](Followers::due_ns), and tells
/// what is [done](Followers::completed).
pub struct Followers<'a> {
    first: usize,
    followers: Vec<Follower<'a>>,
    /// When the latest submissions of each process completed, ns; ring after ring.
    rings: Vec<u64>,
    /// Each I/O waits for the one before, so writes are sync.
    one_by_one: bool,
}

impl<'a> Followers<'a> {
    /// The processes of these numbers at their beginning.
    #[must_use]
    pub fn new(trace: &'a Trace, processes: Range<usize>) -> Self {
        let closed = trace.closed_loop();
        let first = processes.start;
        let mut followers = Vec::with_capacity(processes.len());
        let mut ring = 0;
        for process in processes {
            let ring_length = closed.reach(process) + 1;
            let (entries, waits) = (trace.by_process().entries(process), closed.waits(process));
            followers.push(Follower { entries, waits, next: 0, waits_for: NOTHING, ring, ring_length });
            ring += ring_length as usize;
        }
        Self { first, followers, rings: vec![PENDING; ring], one_by_one: trace.is_timeless() }
    }

    /// When the next submission of a process is due, ns, which may be past. `None`: it has none left, or waits for a
    /// completion, and may be asked again when [`completed`](Self::completed) says so.
    pub fn due_ns(&mut self, process: usize) -> Option<u64> {
        let state = &mut self.followers[process - self.first];
        let wait = state.waits.peek()?;
        if wait.lag == 0 {
            return Some(wait.think_ns());
        }
        let on = state.next - wait.lag;
        let done_ns = self.rings[state.ring + (on % state.ring_length) as usize];
        if done_ns == PENDING {
            state.waits_for = on;
            return None;
        }
        Some(done_ns.saturating_add(wait.think_ns()))
    }

    /// A process' next submission, with its number in the process: it is submitted now. `None`: it
    /// has none left.
    pub fn take(&mut self, process: usize) -> Option<(u32, Entry)> {
        let state = &mut self.followers[process - self.first];
        let entry = state.entries.next()?;
        state.waits.next();
        let tag = state.next;
        state.next += 1;
        self.rings[state.ring + (tag % state.ring_length) as usize] = PENDING;
        Some((tag, if self.one_by_one { entry.waited_for() } else { entry }))
    }

    /// A submission is done. Whether the process waited for it.
    #[inline]
    pub fn completed(&mut self, process: usize, tag: u32, now_ns: u64) -> bool {
        let state = &mut self.followers[process - self.first];
        if state.next - tag <= state.ring_length {
            self.rings[state.ring + (tag % state.ring_length) as usize] = now_ns;
        }
        let waited = state.waits_for == tag;
        if waited {
            state.waits_for = NOTHING;
        }
        waited
    }
}
