//! Slices: how long a queue's turn lasts, and what becomes of it when it ends.

use super::Cfq;
use super::queue::QueueId;
use super::service_tree::Class;
use crate::decision::Decision;
use crate::elevator::Env;
use crate::time::Time;

/// `a * b / c`, rounded down, without overflow on the way.
#[inline]
pub(super) fn scale(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(c)).unwrap_or(u64::MAX),
    }
}

/// The state of the active queue's turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// When the queue became active.
    pub(super) activated: Time,
    /// The slice's clock has not started: it does at the first completion.
    pub(super) slice_new: bool,
    pub(super) slice_start: Time,
    pub(super) slice_end: Time,
    pub(super) allocated_slice_ns: u64,
    /// Requests given out.
    pub(super) dispatched: u32,
    /// A request must be given out, whatever the limits.
    pub(super) must_dispatch: bool,
    /// The FIFO was looked at.
    pub(super) fifo_checked: bool,
    /// The queue's next request is being waited for.
    pub(super) waiting: bool,
    /// The slice was stretched to let the group stay busy.
    pub(super) wait_busy: bool,
}

impl Turn {
    /// Whether the slice is over. Before its clock has started it never is.
    #[inline]
    pub(super) fn slice_used(&self, now: Time) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// What is left of the slice, in ns; negative once it is over.
    pub(super) fn slice_left_ns(&self, now: Time) -> i64 {
        self.slice_end.signed_since(now)
    }
}

impl Cfq {
    /// The slice that a level is worth: `base` at level 4, a fifth more or less for each level.
    #[inline]
    pub(super) fn prio_slice_ns(&self, sync: bool, level: u8) -> u64 {
        let base_ns = self.tunables.slice_ns(sync);
        let step_ns = base_ns / 5;
        base_ns + 4 * step_ns - u64::from(level) * step_ns
    }

    /// The same, scaled down under low_latency when the queues of the class would not fit into the target latency.
    fn scaled_slice_ns(&mut self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let slice_ns = self.prio_slice_ns(queue.sync, queue.level);
        if !self.tunables.low_latency {
            return slice_ns;
        }
        let (group, real_time) = (queue.group, queue.class == Class::RealTime);
        let queues = self.groups[group].average_queues(real_time);
        let sync_slice_ns = self.tunables.slice_sync_ns;
        let expected_ns = sync_slice_ns.saturating_mul(u64::from(queues));
        let group_slice_ns = self.group_slice_ns(group);
        if expected_ns <= group_slice_ns {
            return slice_ns;
        }
        let low_ns = slice_ns.min(scale(2 * self.tunables.slice_idle_ns, slice_ns, sync_slice_ns));
        scale(slice_ns, group_slice_ns, expected_ns).max(low_ns)
    }

    /// The clock of the active queue's slice starts.
    pub(super) fn start_slice(&mut self, env: &mut Env, id: QueueId) {
        let slice_ns = self.scaled_slice_ns(id);
        self.turn.slice_new = false;
        self.turn.slice_start = env.now;
        self.turn.slice_end = env.now + slice_ns;
        self.turn.allocated_slice_ns = slice_ns;
        let queue = self.queues[id].name();
        env.note(|| Decision::Slice { queue, slice_ns });
    }

    /// Whether little enough is left of the slice for what is in flight to use it up.
    pub(super) fn slice_used_soon(&self, env: &Env, id: QueueId) -> bool {
        let in_flight = u64::from(self.queues[id].in_flight);
        self.turn.slice_new || env.now + self.tunables.slice_idle_ns.saturating_mul(in_flight) > self.turn.slice_end
    }

    /// A queue becomes active.
    pub(super) fn activate(&mut self, env: &mut Env, id: QueueId) {
        self.turn = Turn { activated: env.now, slice_new: true, ..Turn::default() };
        self.active = Some(id);
        let queue = &self.queues[id];
        let (queue, group) = (queue.name(), queue.group);
        let (class, workload) = (self.serving.class.io_class(), self.serving.workload);
        let cgroup = self.groups[group].cgroup;
        env.note(|| Decision::Active { queue, class, workload, cgroup });
        self.cancel_idle(env);
    }

    /// The turn of the active queue, if there is one, ends.
    pub(super) fn expire_active(&mut self, env: &mut Env, timed_out: bool) {
        if let Some(id) = self.active {
            self.expire(env, id, timed_out);
        }
    }

    /// The turn of the active queue `id` ends. `timed_out`: what is left of its slice counts for its next turn.
    pub(super) fn expire(&mut self, env: &mut Env, id: QueueId, timed_out: bool) {
        debug_assert_eq!(self.active, Some(id));
        let name = self.queues[id].name();
        env.note(|| Decision::Expire { queue: name, timed_out });
        if self.turn.waiting {
            self.cancel_idle(env);
        }
        let queue = &mut self.queues[id];
        queue.split |= queue.coop && queue.seek.is_seeky();
        if timed_out {
            self.queues[id].residual_ns =
                if self.turn.slice_new { self.scaled_slice_ns(id) as i64 } else { self.turn.slice_left_ns(env.now) };
        }
        self.charge_group(env, id);
        let queue = &self.queues[id];
        if queue.busy && queue.is_empty() {
            self.leave_service(id);
        }
        self.resort(env, id);
        self.active = None;
        self.active_process = None;
    }
}
