//! Choosing the queue to serve: group, class, kind of work, queue; or staying with the active one; or waiting.

use super::Cfq;
use super::group::GroupId;
use super::queue::QueueId;
use super::service_tree::{Class, TreeIndex, WORKLOADS};
use super::slice::scale;
use crate::decision::{Decision, Workload};
use crate::elevator::Env;
use crate::time::Time;

/// A workload's slice lasts at least this many jiffies.
const WORKLOAD_SLICE_MIN_JIFFIES: u64 = 2;

/// What is being served.
#[derive(Debug)]
pub(super) struct Serving {
    pub(super) group: Option<GroupId>,
    pub(super) class: Class,
    pub(super) workload: Workload,
    /// When another kind of work gets its turn.
    pub(super) expires: Time,
}

impl Default for Serving {
    fn default() -> Self {
        Self { group: None, class: Class::BestEffort, workload: Workload::Async, expires: Time::ZERO }
    }
}

/// What to do about the active queue.
enum Verdict {
    /// Serve it.
    Stay,
    /// Give out nothing for now.
    Wait,
    /// Its turn is over; this one is next if named, else whoever is due.
    Expire(Option<QueueId>),
}

impl Cfq {
    /// The queue to give out a request of, now the active one; `None`: wait.
    #[inline]
    pub(super) fn select_queue(&mut self, env: &mut Env) -> Option<QueueId> {
        let mut successor = None;
        if let Some(active) = self.active {
            if self.queued == 0 {
                return None;
            }
            match self.judge_active(env, active) {
                Verdict::Stay => return Some(active),
                Verdict::Wait => return None,
                Verdict::Expire(next) => {
                    successor = next;
                    self.expire(env, active, false);
                }
            }
        }
        let chosen = match successor {
            Some(successor) => successor,
            None => {
                self.choose_workload(env);
                self.first_queue()?
            }
        };
        self.activate(env, chosen);
        Some(chosen)
    }

    #[inline]
    fn judge_active(&mut self, env: &mut Env, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if self.turn.wait_busy && !queue.is_empty() {
            return Verdict::Expire(None);
        }
        let alone = self.groups[queue.group].busy_queues == 1;
        if self.turn.slice_used(env.now) && !self.turn.must_dispatch {
            // Had its slice ended at a completion, its group would have been waited for.
            if alone && queue.is_empty() && queue.in_flight > 0 && self.should_idle(env, active) {
                return Verdict::Wait;
            }
            return self.judge_group(env, active);
        }
        if !queue.is_empty() {
            return Verdict::Stay;
        }
        if let Some(target) = self.yield_target(env, active) {
            return Verdict::Expire(Some(target));
        }
        if let Some(cooperator) = self.close_cooperator(active) {
            self.plan_merge(active, cooperator);
            return Verdict::Expire(Some(cooperator));
        }
        if env.timer.is_some() {
            return Verdict::Wait;
        }
        let left_ns = self.turn.slice_left_ns(env.now);
        let elapsed_ns = env.now.signed_since(self.turn.slice_start);
        let much_left = self.turn.slice_new || left_ns > elapsed_ns;
        let queue = &mut self.queues[active];
        if queue.seek.is_seeky() && queue.idle_window && much_left {
            // Deep once, but the device is faster than it can send.
            queue.deep = false;
            queue.idle_window = false;
        }
        if self.queues[active].in_flight > 0 && self.should_idle(env, active) {
            return Verdict::Wait;
        }
        self.judge_group(env, active)
    }

    /// Whether to wait for requests in flight so that the active queue's group stays busy.
    fn judge_group(&self, _env: &Env, active: QueueId) -> Verdict {
        let group = &self.groups[self.queues[active].group];
        let group_idle_ns = self.tunables.group_idle_ns;
        let wait = group_idle_ns > 0
            && group.busy_queues == 1
            && group.in_flight > 0
            && !group.think_time.is_longer_than(group_idle_ns);
        if wait { Verdict::Wait } else { Verdict::Expire(None) }
    }

    /// The queue whose turn it is in the tree being served.
    fn first_queue(&self) -> Option<QueueId> {
        if self.queued == 0 {
            return None;
        }
        let group = &self.groups[self.serving.group?];
        group.trees[TreeIndex::of(self.serving.class, self.serving.workload).index()].queues.first()
    }

    /// Chooses group, class and kind of work.
    fn choose_workload(&mut self, env: &mut Env) {
        self.serving.group = self.groups.first();
        let Some(group_id) = self.serving.group else { return };
        let group = &self.groups[group_id];
        if group.saved_ns > 0 {
            self.serving.expires = env.now + group.saved_ns;
            self.serving.class = group.saved_class;
            self.serving.workload = group.saved_workload;
        } else {
            self.serving.expires = env.now - 1;
        }
        let class_before = self.serving.class;
        self.serving.class = [Class::RealTime, Class::BestEffort]
            .into_iter()
            .find(|&class| group.busy_of(class) > 0)
            .unwrap_or(Class::Idle);
        let class = self.serving.class;
        if class == Class::Idle {
            self.serving.expires = env.now + env.jiffy_ns;
            return;
        }
        let count = |workload| group.trees[TreeIndex::of(class, workload).index()].count;
        if class == class_before && count(self.serving.workload) > 0 && env.now <= self.serving.expires {
            return;
        }
        let workload = self.earliest_workload(group_id, class);
        let slice_ns = self.workload_slice_ns(env, group_id, class, workload);
        self.serving.workload = workload;
        self.serving.expires = env.now + slice_ns;
        env.note(|| Decision::WorkloadSlice { slice_ns });
    }

    /// The kind of work whose first queue has the smallest key.
    fn earliest_workload(&self, group: GroupId, class: Class) -> Workload {
        let mut best: Option<(i64, Workload)> = None;
        for workload in WORKLOADS {
            let tree = &self.groups[group].trees[TreeIndex::of(class, workload).index()];
            if let Some(key) = tree.first_key(&self.queues)
                && best.is_none_or(|(lowest, _)| key < lowest)
            {
                best = Some((key, workload));
            }
        }
        best.map_or(Workload::SyncNoIdle, |(_, workload)| workload)
    }

    /// How long a kind of work is served: its part, by queues, of the group's slice.
    fn workload_slice_ns(&self, env: &Env, group_id: GroupId, class: Class, workload: Workload) -> u64 {
        let group = &self.groups[group_id];
        let count = u64::from(group.trees[TreeIndex::of(class, workload).index()].count);
        let queues = u64::from(group.expected_queues(class).max(1));
        let share_ns = scale(self.group_slice_ns(group_id), count, queues);
        let slice_ns = if workload == Workload::Async {
            // Async queues are shared by all groups' processes: no more than their part of all queues.
            let busy_async = u64::from(group.busy_async());
            let all_ns = scale(self.tunables.target_latency_ns, busy_async, u64::from(self.busy_queues));
            scale(share_ns.min(all_ns), self.tunables.slice_async_ns, self.tunables.slice_sync_ns)
        } else {
            share_ns.max(2 * self.tunables.slice_idle_ns)
        };
        slice_ns.max(WORKLOAD_SLICE_MIN_JIFFIES * env.jiffy_ns)
    }
}
