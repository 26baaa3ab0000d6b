//! Choice of the queue to serve: group, class, kind of work, queue. CFQ may
//! also stay with the active queue, or wait.

use super::Cfq;
use super::clock::Clock as _;
use super::data::group::GroupId;
use super::data::queue::QueueId;
use super::data::service_tree::{Class, TreeIndex, WORKLOADS};
use super::data::serving::Verdict;
use super::data::turn::scale;
use super::generation::Generation;
use crate::decision::{Decision, Workload};
use crate::env::Env;

/// Minimum slice of a workload, in jiffies.
const WORKLOAD_SLICE_MIN_JIFFIES: u64 = 2;

impl<G: Generation> Cfq<G> {
    /// Chooses the queue to dispatch from, makes it active, and returns it. `None`: CFQ waits.
    #[inline]
    pub(super) fn select_queue(&mut self, env: &mut Env) -> Option<QueueId> {
        let mut successor = None;
        if let Some(active) = self.active {
            if self.queued == 0 {
                return None;
            }
            match G::judge_active(self, env, active) {
                Verdict::Stay => return Some(active),
                Verdict::Wait => return None,
                Verdict::Expire(next) => {
                    successor = next;
                    self.expire(env, active, false);
                }
                Verdict::TimeOut => self.expire(env, active, true),
            }
        }
        let chosen = match successor {
            Some(successor) => successor,
            None => G::choose(self, env)?,
        };
        self.activate(env, chosen);
        Some(chosen)
    }

    /// Decides about the active queue. CFQ idles for the queue while idling is worthwhile.
    #[inline]
    pub(super) fn judge_active(&mut self, env: &mut Env, active: QueueId) -> Verdict {
        let now = G::Clock::now(env);
        let queue = &self.queues[active];
        if self.turn.wait_busy && !queue.is_empty() {
            return Verdict::Expire(None);
        }
        if self.turn.slice_used(now) && !self.turn.must_dispatch {
            let alone = self.groups[queue.group].busy_queues == 1;
            // If the slice had ended at a completion, CFQ would have waited for the group.
            if alone && queue.is_empty() && queue.in_flight > 0 && G::should_idle(self, env, active) {
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
        if let Some(cooperator) = G::close_cooperator(self, active) {
            G::cooperate(self, active, cooperator);
            return Verdict::Expire(Some(cooperator));
        }
        if env.timer.is_some() {
            return Verdict::Wait;
        }
        if G::SEEKY_LOSES_DEPTH_EARLY {
            let elapsed = now.wrapping_sub(self.turn.slice_start) as i64;
            let much_left = self.turn.slice_new || self.turn.slice_left(now) > elapsed;
            let queue = &mut self.queues[active];
            if queue.seek.is_seeky() && queue.idle_window && much_left {
                // The queue was deep once, but the device is faster than the queue's process.
                queue.deep = false;
                queue.idle_window = false;
            }
        }
        if self.queues[active].in_flight > 0 && G::should_idle(self, env, active) {
            return Verdict::Wait;
        }
        self.judge_group(env, active)
    }

    /// Returns whether to wait for requests in flight, so that the active queue's group stays busy.
    fn judge_group(&self, _env: &Env, active: QueueId) -> Verdict {
        let group = &self.groups[self.queues[active].group];
        let group_idle = self.tunables.group_idle;
        let wait = group_idle > 0
            && group.busy_queues == 1
            && group.in_flight > 0
            && !group.think_time.is_longer_than(group_idle);
        if wait { Verdict::Wait } else { Verdict::Expire(None) }
    }

    /// Chooses the kind of work to serve, and the first queue of that kind.
    #[inline]
    pub(super) fn choose_by_workload(&mut self, env: &mut Env) -> Option<QueueId> {
        self.choose_workload(env);
        self.first_queue()
    }

    /// Returns the first queue of the tree that is served.
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
        let now = G::Clock::now(env);
        let group = &self.groups[group_id];
        if group.saved > 0 {
            self.serving.expires = now.saturating_add(group.saved);
            self.serving.class = group.saved_class;
            self.serving.workload = group.saved_workload;
        } else {
            self.serving.expires = now.saturating_sub(1);
        }
        let class_before = self.serving.class;
        self.serving.class = [Class::RealTime, Class::BestEffort]
            .into_iter()
            .find(|&class| group.busy_of(class) > 0)
            .unwrap_or(Class::Idle);
        let class = self.serving.class;
        if class == Class::Idle {
            self.serving.expires = now.saturating_add(G::Clock::jiffy(env));
            return;
        }
        let count = |workload| group.trees[TreeIndex::of(class, workload).index()].count;
        let goes_on = class == class_before || !G::CLASS_CHANGE_ENDS_WORKLOAD;
        if goes_on && count(self.serving.workload) > 0 && now <= self.serving.expires {
            return;
        }
        let workload = self.earliest_workload(group_id, class);
        let slice = self.workload_slice(env, group_id, class, workload);
        self.serving.workload = workload;
        self.serving.expires = now.saturating_add(slice);
        self.serving.requires_idle = false;
        let slice_ns = G::Clock::ns(env, slice);
        env.note(|| Decision::WorkloadSlice { slice_ns });
    }

    /// Returns the kind of work whose first queue has the smallest key.
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

    /// Returns the slice of a kind of work: a part of the group's slice, by the number of queues.
    fn workload_slice(&self, env: &Env, group_id: GroupId, class: Class, workload: Workload) -> u64 {
        let group = &self.groups[group_id];
        let count = u64::from(group.trees[TreeIndex::of(class, workload).index()].count);
        let queues = u64::from(group.expected_queues(class).max(1));
        let share = scale(self.group_slice(group_id), count, queues);
        let slice = if workload == Workload::Async {
            // Processes of all groups share async queues. The slice is therefore limited to a part
            // of the target latency: the number of busy async queues divided by the number of all
            // busy queues.
            let busy_async = u64::from(group.busy_async());
            let all = scale(self.tunables.target_latency, busy_async, u64::from(self.busy_queues));
            scale(share.min(all), self.tunables.slice_async, self.tunables.slice_sync)
        } else {
            share.max(2 * self.tunables.slice_idle)
        };
        slice.max(WORKLOAD_SLICE_MIN_JIFFIES * G::Clock::jiffy(env))
    }
}
