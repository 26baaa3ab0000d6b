//! Cooperators: processes that work on the same place of the disk share one queue.
//!
//! Queues of the same original level stand in a tree by position. A queue is re-sorted there only when an insert
//! changes its next request and when it is re-sorted for service.

use super::Cfq;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::context::ContextId;
use crate::decision::Decision;
use crate::env::Env;
use crate::request::Sector;

impl<G: Generation> Cfq<G> {
    /// Puts a queue where its next sector belongs. A second queue at the very same sector stays out.
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

    /// Whether a sector is as close to the head as what the active queue would send next.
    #[inline]
    pub(super) fn is_close(&self, sector: Sector) -> bool {
        sector.abs_diff(self.position) <= G::close_sectors(self)
    }

    /// The queue of that level whose next request is close to the head.
    pub(super) fn closest(&self, level: u8) -> Option<QueueId> {
        let tree = &self.cooperator_trees[usize::from(level)];
        tree.close(&self.queues.positions, self.position, G::close_sectors(self))
    }

    /// A queue that works where `id` does, and may be served in its stead.
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

    /// Plans that the processes of `current` and of `target` share a queue: that of the more.
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

    /// If no process uses a queue that is planned to join another, the other may die first.
    fn keep_plan_of_the_gone(&mut self, id: QueueId) {
        if G::PLANS_INCLUDE_THE_GONE && self.queues[id].merge_into.is_some() && !self.is_used(id) {
            self.plans_of_the_gone.push(id);
        }
    }

    /// A queue is about to die. Nobody plans to join it but queues that no process uses.
    pub(super) fn forget_queue_in_plans(&mut self, id: QueueId) {
        let queues = &mut self.queues;
        self.plans_of_the_gone.retain(|&gone| {
            if queues[gone].merge_into == Some(id) {
                queues[gone].merge_into = None;
            }
            gone != id && queues[gone].merge_into.is_some()
        });
    }

    /// The process moves from `from` to the queue it was planned to join.
    pub(super) fn merge_queues(&mut self, env: &mut Env, context: ContextId, from: QueueId, into: QueueId) {
        let (queue, into_pid) = (self.queues[from].name(), self.queues[into].pid);
        env.note(|| Decision::CooperatorMerge { queue, into_pid });
        self.process_mut(context).sync_queue = Some(into);
        self.queues[into].coop = true;
        self.put_process(env, from);
    }

    /// A member of a queue that is to be split sends a request: the last one keeps the queue, others leave it.
    /// Returns whether it keeps it.
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

    /// One process of `id` will not follow its merge plan: its place along the chain is given back.
    pub(super) fn undo_plan(&mut self, env: &mut Env, id: QueueId) {
        let mut at = self.queues[id].merge_into;
        while let Some(planned) = at {
            at = self.queues[planned].merge_into;
            self.put_process(env, planned);
        }
    }

    /// One process of `id` will not follow its merge plan, and stays counted along the chain.
    fn forget_plan(&mut self, env: &mut Env, id: QueueId) {
        let mut at = self.queues[id].merge_into;
        while let Some(planned) = at {
            at = self.queues[planned].merge_into;
            self.queues[planned].forgotten += 1;
            self.keep_plan_of_the_gone(planned);
            self.put_queue(env, planned);
        }
    }

    /// One process less uses the queue.
    pub(super) fn put_process(&mut self, env: &mut Env, id: QueueId) {
        self.queues[id].processes -= 1;
        self.keep_plan_of_the_gone(id);
        self.put_queue(env, id);
    }
}
