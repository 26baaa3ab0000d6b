//! Groups: the queues of one cgroup, with the share of the disk that follows from the cgroup's
//! weight.
//!
//! Groups take turns by virtual time: each turn is charged in inverse proportion to the group's
//! fraction of all weights.

use super::Cfq;
use super::clock::Clock as _;
use super::data::group::{FRACTION_BITS, GroupId};
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::decision::Decision;
use crate::env::Env;

/// Distance between the last group and a new group that joins, in raw units of virtual time.
const JOIN_DELAY: u64 = 200_000_000;

impl<G: Generation> Cfq<G> {
    /// Returns the part of the target latency for a group's fraction.
    pub(super) fn group_slice(&self, id: GroupId) -> u64 {
        let (target, fraction) = (self.tunables.target_latency, u64::from(self.groups[id].fraction));
        target.saturating_mul(fraction) >> FRACTION_BITS
    }

    /// Returns whether turns are counted in requests, not in time: without
    /// idling, on a device with command queueing.
    fn counts_requests(&self) -> bool {
        self.tunables.slice_idle == 0 && self.queue_depth.queues_commands()
    }

    /// Counts one more queue on the trees of a group. With its first queue, the group joins the
    /// tree of groups.
    pub(super) fn group_queue_added(&mut self, env: &Env, id: GroupId) {
        self.groups[id].busy_queues += 1;
        if self.groups[id].on_tree {
            return;
        }
        let delay = if self.counts_requests() { crate::time::SECOND_NS / env.jiffy_ns / 5 } else { JOIN_DELAY };
        let vtime = match self.groups.last_vtime() {
            Some(last) => last.wrapping_add(delay),
            None => self.groups.min_vtime,
        };
        self.groups[id].vtime = vtime;
        self.groups.add(env, id);
    }

    /// Removes one queue from the count. The group leaves with its last queue.
    pub(super) fn group_queue_removed(&mut self, id: GroupId) {
        self.groups[id].busy_queues -= 1;
        if self.groups[id].busy_queues == 0 {
            self.groups.remove(id);
            self.groups[id].saved = 0;
        }
    }

    /// Charges the turn of queue `id` to its group.
    fn charge_group(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        let group_id = queue.group;
        let group = &self.groups[group_id];
        debug_assert!(group.on_tree, "the active queue's group has a busy queue");
        let turn = &self.turn;
        let now = G::Clock::now(env);
        let used = if turn.slice_new || turn.slice_start == now {
            now.saturating_sub(turn.activated).max(G::Clock::jiffy(env))
        } else {
            now.saturating_sub(turn.slice_start).min(turn.allocated_slice)
        };
        let busy_idle = group.busy_of(Class::Idle);
        let no_sync = group.busy_queues == group.busy_async() + busy_idle;
        let charge = if self.counts_requests() {
            u64::from(turn.dispatched)
        } else if !queue.sync && no_sync {
            turn.allocated_slice
        } else {
            used
        };
        let scaled = (u128::from(charge) << (2 * FRACTION_BITS)) / u128::from(group.fraction);
        self.groups.remove(group_id);
        let group = &mut self.groups[group_id];
        group.vtime = group.vtime.wrapping_add(scaled as u64);
        let (cgroup, vtime) = (group.cgroup, group.vtime);
        self.groups.add(env, group_id);
        env.note(|| Decision::Served { cgroup, vtime });
    }

    /// Charges the group of queue `id` at the end of its turn,
    /// and saves the rest of the workload's slice.
    pub(super) fn settle_group(&mut self, env: &mut Env, id: QueueId) {
        if G::GROUPS {
            self.charge_group(env, id);
        }
        let now = G::Clock::now(env);
        let group = &mut self.groups[self.queues[id].group];
        group.saved = self.serving.expires.saturating_sub(now);
        group.saved_class = self.serving.class;
        group.saved_workload = self.serving.workload;
    }
}
