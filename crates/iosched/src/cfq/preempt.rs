//! Preemption: whether a new request's queue takes the active one's turn.

use super::Cfq;
use super::cooperator::CLOSE_SECTORS;
use super::queue::QueueId;
use super::service_tree::Class;
use crate::decision::{Decision, Workload};
use crate::elevator::Env;
use crate::request::{Flags, RequestId};

impl Cfq {
    /// Whether `id`, just inserted into the queue `new`, which is not active, ends the active one's turn.
    #[inline]
    pub(super) fn should_preempt(&self, env: &Env, new: QueueId, id: RequestId) -> bool {
        let Some(active_id) = self.active else { return false };
        let request = &env.requests[id];
        let (active, new) = (&self.queues[active_id], &self.queues[new]);
        if new.class == Class::Idle {
            return false;
        }
        if active.class == Class::Idle {
            return true;
        }
        if active.class == Class::RealTime && new.class != Class::RealTime {
            return false;
        }
        if request.is_sync() && !active.sync && !self.turn.must_dispatch {
            return true;
        }
        if !self.groups.is_inside(active.group, new.group) {
            return false;
        }
        if self.turn.slice_used(env.now) {
            return true;
        }
        if new.class == Class::RealTime && active.class != Class::RealTime {
            return true;
        }
        let serves_no_idle = self.serving.workload == Workload::SyncNoIdle;
        if serves_no_idle && new.workload() == Workload::SyncNoIdle && active.is_empty() {
            return true;
        }
        if request.flags.contains(Flags::PRIO) && active.hinted == 0 {
            return true;
        }
        if active.is_empty() && !self.should_idle(env, active_id) {
            return true;
        }
        if self.active_process.is_none() || !self.turn.waiting {
            return false;
        }
        // As good as what is being waited for.
        request.sector.abs_diff(self.position) <= CLOSE_SECTORS
    }

    /// `new` takes the active queue's turn.
    pub(super) fn preempt(&mut self, env: &mut Env, new: QueueId) {
        let queue = self.queues[new].name();
        env.note(|| Decision::Preempt { queue });
        let before = self.active.map(|active| self.queues[active].workload());
        self.expire_active(env, true);
        let queue = &self.queues[new];
        if before != Some(queue.workload()) {
            let group = queue.group;
            self.groups[group].saved_ns = 0;
        }
        self.service_tree_add(env, new, true);
    }
}
