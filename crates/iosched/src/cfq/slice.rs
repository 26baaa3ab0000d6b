//! Slices: the length of a queue's turn, and the end of a turn.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::data::turn::{Turn, scale};
use super::generation::Generation;
use crate::decision::Decision;
use crate::env::Env;

impl<G: Generation> Cfq<G> {
    /// Returns the slice for a level: `base` at level 4, and a fifth of `base` more or less for
    /// each level of distance.
    #[inline]
    pub(super) fn prio_slice(&self, sync: bool, level: u8) -> u64 {
        let base = self.tunables.slice(sync);
        let step = base / 5;
        base + 4 * step - u64::from(level) * step
    }

    /// Returns the slice of a queue. With low_latency, the slice is scaled down if the queues of
    /// the class would exceed the target latency.
    pub(super) fn scaled_slice(&mut self, id: QueueId) -> u64 {
        let queue = &self.queues[id];
        let slice = self.prio_slice(queue.sync, queue.level);
        if !self.tunables.low_latency {
            return slice;
        }
        let (group, real_time) = (queue.group, queue.class == Class::RealTime);
        let queues = self.groups[group].average_queues(real_time);
        let sync_slice = self.tunables.slice_sync;
        let expected = sync_slice.saturating_mul(u64::from(queues));
        let group_slice = self.group_slice(group);
        if expected <= group_slice {
            return slice;
        }
        let low = slice.min(scale(2 * self.tunables.slice_idle, slice, sync_slice));
        scale(slice, group_slice, expected).max(low)
    }

    /// Starts the slice of the active queue.
    pub(super) fn start_slice(&mut self, env: &mut Env, id: QueueId) {
        let (now, slice) = (G::Clock::now(env), self.scaled_slice(id));
        self.turn.slice_new = false;
        self.turn.slice_start = now;
        self.turn.slice_end = now.saturating_add(slice);
        self.turn.allocated_slice = slice;
        let (queue, slice_ns) = (self.queues[id].name(), G::Clock::ns(env, slice));
        env.note(|| Decision::Slice { queue, slice_ns });
    }

    /// Returns whether the requests in flight will use up the rest of the slice.
    #[inline]
    pub(super) fn slice_used_soon(&self, env: &Env, id: QueueId) -> bool {
        let in_flight = u64::from(self.queues[id].in_flight);
        let needed = self.tunables.slice_idle.saturating_mul(in_flight);
        self.turn.slice_new || G::Clock::now(env).saturating_add(needed) > self.turn.slice_end
    }

    /// Makes a queue the active queue.
    pub(super) fn activate(&mut self, env: &mut Env, id: QueueId) {
        self.turn = Turn { activated: G::Clock::now(env), slice_new: true, ..Turn::default() };
        self.active = Some(id);
        let queue = &self.queues[id];
        let (queue, group) = (queue.name(), queue.group);
        let (class, workload) = G::served_with(self, id);
        let class = class.io_class();
        let cgroup = self.groups[group].cgroup;
        env.note(|| Decision::Active { queue, class, workload, cgroup });
        env.cancel_idle();
    }

    /// Ends the turn of the active queue, if there is one.
    pub(super) fn expire_active(&mut self, env: &mut Env, timed_out: bool) {
        if let Some(id) = self.active {
            self.expire(env, id, timed_out);
        }
    }

    /// Ends the turn of the active queue `id`. `timed_out`: the
    /// rest of its slice counts for its next turn.
    pub(super) fn expire(&mut self, env: &mut Env, id: QueueId, timed_out: bool) {
        debug_assert_eq!(self.active, Some(id));
        let name = self.queues[id].name();
        env.note(|| Decision::Expire { queue: name, timed_out });
        if self.turn.waiting {
            env.cancel_idle();
        }
        let queue = &mut self.queues[id];
        queue.split |= queue.coop && queue.seek.is_seeky();
        if timed_out {
            if !self.turn.slice_new {
                self.queues[id].residual = self.turn.slice_left(G::Clock::now(env));
            } else if let Some(slice) = G::residual_of_unstarted(self, id) {
                self.queues[id].residual = slice;
            }
        }
        self.settle_group(env, id);
        let queue = &self.queues[id];
        if queue.busy && queue.is_empty() {
            self.leave_service(id);
        }
        self.resort(env, id);
        self.active = None;
        self.active_process = None;
    }
}
