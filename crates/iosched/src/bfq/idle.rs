//! Idling: the wait for the next request of the active queue.

use super::Bfq;
use super::data::queue::QueueId;
use crate::decision::{BfqReason, Decision};
use crate::env::Env;
use crate::time::MILLISECOND_NS;

/// Longest wait for a seeky queue when all shares are equal, ns.
const SEEKY_NS: u64 = 2 * MILLISECOND_NS;
/// Shortest wait for a raised queue, ns.
const RAISED_NS: u64 = 20 * MILLISECOND_NS;
/// Size below which a request does not end the wait immediately, in sectors.
const SMALL_SECTORS: u32 = 32;

impl Bfq {
    /// Begins to idle for the next request of the active queue.
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

    /// Stops idling for the active queue.
    pub(super) fn cancel_wait(&mut self, env: &mut Env, id: QueueId) {
        self.queues[id].waiting = false;
        if env.timer.take().is_some() {
            env.note(|| Decision::IdleCancel);
        }
    }

    /// Handles the end of the idle time.
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

    /// Handles the arrival of an awaited request. If the request is small and idling increases
    /// throughput, the wait continues, so that other bios can join the request before its dispatch.
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
