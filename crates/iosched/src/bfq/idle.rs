//! Idling: the wait for the next request of the queue in service.

use super::Bfq;
use super::data::queue::QueueId;
use crate::decision::{BfqReason, Decision};
use crate::env::Env;
use crate::time::MILLISECOND_NS;

/// The longest wait for a seeky queue when all have equal shares, ns.
const SEEKY_NS: u64 = 2 * MILLISECOND_NS;
/// The shortest wait for a raised queue, ns.
const RAISED_NS: u64 = 20 * MILLISECOND_NS;
/// A request as small as this does not end the wait at once, in sectors.
const SMALL_SECTORS: u32 = 32;

impl Bfq {
    /// Begins to wait for the next request of the queue in service.
    pub(super) fn begin_wait(&mut self, env: &mut Env, id: QueueId) {
        self.queues[id].waiting = true;
        let raised = self.entities[id.entity()].raise > 1;
        let idle_ns = self.tunables.slice_idle_ns;
        let wait_ns = if raised {
            idle_ns.max(RAISED_NS)
        } else if self.queues[id].is_seeky() && !self.is_asymmetric(Some(id)) {
            idle_ns.min(SEEKY_NS)
        } else {
            idle_ns
        };
        self.turn.wait_started_ns = env.now.as_ns();
        self.turn.wait_started = self.jiffies(env);
        env.timer = Some(env.now + wait_ns);
        env.note(|| Decision::IdleArm { wait_ns });
    }

    /// Stops waiting for the queue in service.
    pub(super) fn cancel_wait(&mut self, env: &mut Env, id: QueueId) {
        self.queues[id].waiting = false;
        if env.timer.take().is_some() {
            env.note(|| Decision::IdleCancel);
        }
    }

    /// The queue in service was waited for long enough.
    pub(super) fn wait_over(&mut self, env: &mut Env) {
        env.note(|| Decision::IdleFire);
        let Some(id) = self.active else { return };
        self.queues[id].waiting = false;
        if self.jiffies(env) >= self.queues[id].budget_timeout {
            self.expire(env, id, true, BfqReason::Timeout);
        } else if self.queues[id].is_empty() {
            self.expire(env, id, true, BfqReason::TooIdle);
        }
    }

    /// The request that was waited for has come: a small one, of a queue that makes the device fast, may be joined by
    /// others before it is given out.
    pub(super) fn end_wait(&mut self, env: &mut Env, id: QueueId, nr_sectors: u32) {
        let timed_out = self.jiffies(env) >= self.queues[id].budget_timeout;
        let alone = self.queues[id].queued == 1 && nr_sectors < SMALL_SECTORS;
        if alone && !timed_out && self.idling_boosts(env, id) {
            return;
        }
        self.cancel_wait(env, id);
        if timed_out {
            self.expire(env, id, false, BfqReason::Timeout);
        }
    }
}
