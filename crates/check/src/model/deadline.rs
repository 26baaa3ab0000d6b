//! The guarantee of the scheduler deadline: an upper limit for the number of other requests that it
//! dispatches before an expired request.
//!
//! Consider a request that has expired, and all earlier requests of its direction (read or write)
//! have also expired. From then on, every batch of that direction begins with the oldest request.
//! If k requests are older, at most k + 1 such batches begin until the request is served. A batch
//! has at most B = max(`fifo_batch`, 1) requests. Between two batches of writes there are at most
//! `writes_starved` batches of reads. Between two batches of reads there is at most one batch of
//! writes if `writes_starved` is not 0, otherwise any number. The current batch may have B - 1
//! requests left. Let n be the number of batches of the other direction between two batches. Then
//! at most (B - 1) + (k + 1) n B + k B requests are dispatched before the request.

use std::collections::VecDeque;

use iosched::{MILLISECOND_NS, RequestQueue, SECOND_NS, Time};

use crate::violation::{Checked, ensure};

/// A waiting request.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    cookie: u64,
    deadline: Time,
    /// Time at which this request and all requests before it have expired.
    due: Time,
    /// Largest total number of dispatches at which the request may still wait. It is set when this
    /// request and all requests before it have expired.
    limit: Option<u64>,
}

/// The requests that deadline holds.
#[derive(Debug)]
pub(super) struct DeadlineAudit {
    jiffy_ns: u64,
    expire_ms: [u64; 2],
    writes_starved: u64,
    batch: u64,
    /// Waiting reads and waiting writes, oldest first.
    waiting: [VecDeque<Waiting>; 2],
    dispatched: u64,
    suspended: bool,
    /// Requests that a barrier drained. They are dispatched in another order.
    drained: Vec<u64>,
    /// Number of requests that were past their deadline when they were dispatched.
    pub(super) expired: u64,
}

impl DeadlineAudit {
    pub(super) fn new(queue: &RequestQueue, hz: u32) -> Self {
        let mut audit = Self {
            jiffy_ns: SECOND_NS / u64::from(hz),
            expire_ms: [0; 2],
            writes_starved: 0,
            batch: 1,
            waiting: Default::default(),
            dispatched: 0,
            suspended: false,
            drained: Vec::new(),
            expired: 0,
        };
        audit.tunables_changed(queue);
        audit
    }

    /// Restarts the guarantee with the present tunables.
    pub(super) fn tunables_changed(&mut self, queue: &RequestQueue) {
        if queue.scheduler() != "deadline" {
            return;
        }
        let read = |name| queue.tunable(name).unwrap_or(0);
        self.expire_ms = [read("read_expire"), read("write_expire")];
        self.writes_starved = read("writes_starved");
        self.batch = read("fifo_batch").max(1);
        for waiting in self.waiting.iter_mut().flatten() {
            waiting.limit = None;
        }
    }

    pub(super) fn suspend(&mut self) {
        self.suspended = true;
    }

    pub(super) fn resume(&mut self) {
        self.suspended = false;
        self.waiting = Default::default();
    }

    pub(super) fn insert(&mut self, now: Time, cookie: u64, write: bool) {
        let direction = usize::from(write);
        let expire_jiffies = (self.expire_ms[direction] * MILLISECOND_NS).div_ceil(self.jiffy_ns);
        let deadline = Time::from_ns((now.as_ns() / self.jiffy_ns + expire_jiffies) * self.jiffy_ns);
        let waiting = &mut self.waiting[direction];
        let due = waiting.back().map_or(deadline, |before| before.due.max(deadline));
        waiting.push_back(Waiting { cookie, deadline, due, limit: None });
    }

    /// Records that the requests founded before `barrier` were drained.
    pub(super) fn drain_before(&mut self, barrier: u64) {
        for waiting in &mut self.waiting {
            self.drained.extend(waiting.iter().map(|waiting| waiting.cookie).filter(|&cookie| cookie < barrier));
            waiting.retain(|waiting| waiting.cookie > barrier);
        }
    }

    fn take(&mut self, cookie: u64, direction: usize) -> Option<(usize, Waiting)> {
        let waiting = &mut self.waiting[direction];
        let place = waiting.iter().position(|waiting| waiting.cookie == cookie)?;
        waiting.remove(place).map(|taken| (place, taken))
    }

    /// Gives the surviving request the position and the deadline of the absorbed request, if the
    /// absorbed request has an earlier deadline.
    pub(super) fn absorb(&mut self, absorbed: u64, survivor: u64, write: bool) {
        let direction = usize::from(write);
        let deadline_of = |waiting: &VecDeque<Waiting>, cookie| {
            waiting.iter().find(|waiting| waiting.cookie == cookie).map(|waiting| waiting.deadline)
        };
        let waiting = &self.waiting[direction];
        let earlier = deadline_of(waiting, absorbed) < deadline_of(waiting, survivor);
        if earlier {
            self.take(survivor, direction);
            if let Some(entry) = self.waiting[direction].iter_mut().find(|waiting| waiting.cookie == absorbed) {
                entry.cookie = survivor;
            }
        } else {
            self.take(absorbed, direction);
        }
    }

    /// Checks a request that is given to the device.
    pub(super) fn dispatch(&mut self, now: Time, cookie: u64, write: bool) -> Checked {
        if let Some(place) = self.drained.iter().position(|&drained| drained == cookie) {
            self.drained.swap_remove(place);
            return Ok(());
        }
        self.notice(now);
        let taken = self.take(cookie, usize::from(write));
        ensure!(taken.is_some(), DispatchedOnce, "{cookie:x} was dispatched, but does not wait in deadline");
        if !self.suspended {
            if let Some((_, waiting)) = taken
                && let Some(limit) = waiting.limit
            {
                self.expired += 1;
                ensure!(
                    self.dispatched <= limit,
                    BoundedWait,
                    "{waiting:?} was served {} dispatches too late",
                    self.dispatched - limit
                );
            }
            self.dispatched += 1;
            // Also check waiting requests. The oldest request has the lowest limit.
            for waiting in self.waiting.iter().filter_map(|waiting| waiting.front()) {
                ensure!(
                    waiting.limit.is_none_or(|limit| self.dispatched <= limit),
                    BoundedWait,
                    "{waiting:?} is passed over once too often, by {cookie:x}"
                );
            }
        }
        Ok(())
    }

    /// Sets the limits of the requests that are due by `now`.
    fn notice(&mut self, now: Time) {
        let (dispatched, batch) = (self.dispatched, self.batch);
        for direction in 0..2 {
            let others = match (direction, self.writes_starved) {
                (0, 0) => continue,
                (0, _) => 1,
                (_, batches) => batches,
            };
            for (before, waiting) in self.waiting[direction].iter_mut().enumerate() {
                if waiting.due > now {
                    break;
                }
                let before = before as u64;
                let limit = || {
                    let rounds = (before + 1).saturating_mul(others).saturating_mul(batch);
                    rounds.saturating_add(before.saturating_mul(batch)).saturating_add(batch - 1)
                };
                waiting.limit.get_or_insert_with(|| dispatched.saturating_add(limit()));
            }
        }
    }
}
