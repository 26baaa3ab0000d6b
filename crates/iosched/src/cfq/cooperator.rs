//! Cooperators: processes that access the same area of the disk share one queue.
//!
//! Queues of the same original level are in a tree by position. The position of a queue in this
//! tree changes in two cases only: when an insertion changes its next request, and when the queue
//! is sorted again for service.

use super::Cfq;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::context::ContextId;
use crate::decision::Decision;
use crate::env::Env;
use crate::request::Sector;

impl<G: Generation> Cfq<G> {
    /// Inserts a queue by its next sector. A second queue at the same sector is not inserted.
    pub(super) fn cooperator_tree_add(&mut self, id: QueueId) {
        self.cooperator_tree_remove(id);
        let queue = &self.queues[id];
        if queue.class == Class::Idle || queue.next.is_none() {
            return;
        }
        let level = queue.original_level;
        if self.cooperator_trees[usize::from(level)].insert(&mut self.queues.positions, id) {
            self.queues[id].cooperator_level = Some(level);
        }
    }

    pub(super) fn cooperator_tree_remove(&mut self, id: QueueId) {
        if let Some(level) = self.queues[id].cooperator_level.take() {
            self.cooperator_trees[usize::from(level)].remove(&mut self.queues.positions, id);
        }
    }

    /// Returns whether a sector is close to the head: within [`Generation::close_sectors`].
    #[inline]
    pub(super) fn is_close(&self, sector: Sector) -> bool {
        sector.abs_diff(self.position) <= G::close_sectors(self)
    }

    /// Returns the queue of `level` whose next request is close to the head.
    pub(super) fn closest(&self, level: u8) -> Option<QueueId> {
        let tree = &self.cooperator_trees[usize::from(level)];
        tree.close(&self.queues.positions, self.position, G::close_sectors(self))
    }

    /// Returns a queue that accesses the same area as `id` and may be served instead.
    pub(super) fn close_cooperator(&self, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        if queue.class == Class::Idle
            || !queue.sync
            || queue.seek.is_seeky()
            || self.groups[queue.group].busy_queues == 1
        {
            return None;
        }
        self.closest(queue.original_level).filter(|&other| {
            let other = &self.queues[other];
            other.group == queue.group
                && other.sync
                && !other.seek.is_seeky()
                && (other.class == Class::RealTime) == (queue.class == Class::RealTime)
        })
    }

    /// Plans that the processes of `current` and of `target` share
    /// one queue: the queue with more processes.
    pub(super) fn plan_merge(&mut self, current: QueueId, mut target: QueueId) {
        let refuses_the_gone = !G::PLANS_INCLUDE_THE_GONE;
        if self.queues[current].merge_into.is_some() || (refuses_the_gone && self.queues[target].processes == 0) {
            return;
        }
        while let Some(next) = self.queues[target].merge_into {
            if next == current {
                return;
            }
            target = next;
        }
        let (ours, theirs) = (self.queues[current].processes, self.queues[target].processes);
        if ours == 0 || (refuses_the_gone && theirs == 0) {
            return;
        }
        let (joining, joined, processes) =
            if theirs >= ours { (current, target, ours) } else { (target, current, theirs) };
        self.queues[joining].merge_into = Some(joined);
        self.queues[joined].processes += processes;
        if G::SPLIT_FORGETS_PLAN {
            self.queues[joined].forgotten += self.queues[joining].forgotten;
        }
        self.keep_plan_of_the_gone(joining);
    }

    /// Stores the merge plan of a queue without processes, because the queue that it is to join may
    /// be freed first.
    fn keep_plan_of_the_gone(&mut self, id: QueueId) {
        if G::PLANS_INCLUDE_THE_GONE && self.queues[id].merge_into.is_some() && !self.is_used(id) {
            self.plans_of_the_gone.push(id);
        }
    }

    /// Removes plans to join a queue that is about to be freed. Only queues without processes have
    /// such plans.
    pub(super) fn forget_queue_in_plans(&mut self, id: QueueId) {
        let queues = &mut self.queues;
        self.plans_of_the_gone.retain(|&gone| {
            if queues[gone].merge_into == Some(id) {
                queues[gone].merge_into = None;
            }
            gone != id && queues[gone].merge_into.is_some()
        });
    }

    /// Moves the process from `from` to the queue that it was planned to join.
    pub(super) fn merge_queues(&mut self, env: &mut Env, context: ContextId, from: QueueId, into: QueueId) {
        let (queue, into_pid) = (self.queues[from].name(), self.queues[into].pid);
        env.note(|| Decision::CooperatorMerge { queue, into_pid });
        self.process_mut(context).sync_queue = Some(into);
        self.queues[into].coop = true;
        self.put_process(env, from);
    }

    /// Splits a queue when one of its processes sends a request. The process leaves the queue,
    /// unless it is the last one. Returns whether the process keeps the queue.
    pub(super) fn split_queue(&mut self, env: &mut Env, context: ContextId, id: QueueId) -> bool {
        let queue = self.queues[id].name();
        env.note(|| Decision::CooperatorSplit { queue });
        if self.queues[id].processes == 1 {
            let pid = env.pid(context);
            let queue = &mut self.queues[id];
            queue.pid = pid;
            queue.coop = false;
            queue.split = false;
            return true;
        }
        self.process_mut(context).sync_queue = None;
        if G::SPLIT_FORGETS_PLAN {
            self.forget_plan(env, id);
        } else {
            self.undo_plan(env, id);
        }
        self.put_process(env, id);
        false
    }

    /// Removes one process of `id` from the queues along its merge plan.
    pub(super) fn undo_plan(&mut self, env: &mut Env, id: QueueId) {
        let mut at = self.queues[id].merge_into;
        while let Some(planned) = at {
            at = self.queues[planned].merge_into;
            self.put_process(env, planned);
        }
    }

    /// Drops the merge plan of one process of `id`. The process stays counted in the queues along
    /// the plan.
    fn forget_plan(&mut self, env: &mut Env, id: QueueId) {
        let mut at = self.queues[id].merge_into;
        while let Some(planned) = at {
            at = self.queues[planned].merge_into;
            self.queues[planned].forgotten += 1;
            self.keep_plan_of_the_gone(planned);
            self.put_queue(env, planned);
        }
    }

    /// Reduces the number of processes of the queue by one.
    pub(super) fn put_process(&mut self, env: &mut Env, id: QueueId) {
        self.queues[id].processes -= 1;
        self.keep_plan_of_the_gone(id);
        self.put_queue(env, id);
    }
}
