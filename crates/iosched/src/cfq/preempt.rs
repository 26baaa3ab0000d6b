//! Preemption: whether the queue of a new request takes the turn of the active queue.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::decision::{Decision, Workload};
use crate::env::Env;
use crate::request::{Flags, RequestId};

impl<G: Generation> Cfq<G> {
    /// Returns whether the request `id`, just inserted into the inactive queue `new_id`, ends the
    /// turn of the active queue.
    #[inline]
    pub(super) fn should_preempt(&self, env: &Env, new_id: QueueId, id: RequestId) -> bool {
        let Some(active_id) = self.active else { return false };
        let request = &env.requests[id];
        let (active, new) = (&self.queues[active_id], &self.queues[new_id]);
        let slice_used = self.turn.slice_used(G::Clock::now(env));
        if G::USED_SLICE_FALLS_TO_ANY && slice_used {
            return true;
        }
        if new.class == Class::Idle {
            return false;
        }
        if active.class == Class::Idle {
            return true;
        }
        if !G::USED_SLICE_FALLS_TO_ANY && active.class == Class::RealTime && new.class != Class::RealTime {
            return false;
        }
        if request.is_sync() && !active.sync && !(G::OVERDUE_PASSES_LIMITS && self.turn.must_dispatch) {
            return true;
        }
        if !self.groups.is_inside(active.group, new.group) {
            return false;
        }
        if slice_used {
            return true;
        }
        if new.class == Class::RealTime && active.class != Class::RealTime {
            return true;
        }
        if active.is_empty() && G::empty_gives_way(self, env, active_id, new_id) {
            return true;
        }
        if request.flags.contains(Flags::PRIO) && active.hinted == 0 {
            return true;
        }
        if self.active_process.is_none() || !self.turn.waiting {
            return false;
        }
        // The request is as good as the awaited request.
        self.is_close(request.sector)
    }

    /// Returns whether the present kind of work and `new` are both sync without idling.
    #[inline]
    pub(super) fn joins_no_idle(&self, new: QueueId) -> bool {
        self.serving.workload == Workload::SyncNoIdle && self.queues[new].workload() == Workload::SyncNoIdle
    }

    /// Gives the turn of the active queue to `new`.
    pub(super) fn preempt(&mut self, env: &mut Env, new: QueueId) {
        let queue = self.queues[new].name();
        env.note(|| Decision::Preempt { queue });
        let before = self.active.map(|active| self.queues[active].workload());
        self.expire_active(env, true);
        let queue = &self.queues[new];
        if G::PREEMPTION_ENDS_WORKLOAD && before != Some(queue.workload()) {
            let group = queue.group;
            self.groups[group].saved = 0;
        }
        self.service_tree_add(env, new, true);
    }
}
