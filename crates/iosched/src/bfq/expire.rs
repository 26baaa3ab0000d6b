//! End of a turn: the charge for the queue, the updated estimates, and the next position of the
//! queue.

use super::Bfq;
use super::data::entity::EntityTree;
use super::data::queue::QueueId;
use crate::decision::{BfqEvent, BfqReason};
use crate::env::Env;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS};

/// Length of a turn, µs, below which the turn does not show the speed of the queue.
const SHORT_US: u64 = 1000;
/// Time that counts for a short turn, ms: on rotational devices, and on other devices.
const SHORT_COUNTS_MS: [u64; 2] = [8, 2];
/// Length of a turn, µs, above which the amount of service decides whether the queue was slow.
const LONG_US: u64 = 20_000;
/// Longest charged time, as a fraction of a second.
const CHARGED_FRACTION: u64 = 8;

impl Bfq {
    /// Returns whether the active queue was slow, and the duration of its turn that counts, ms.
    /// `waited`: the turn ended with an idle wait, which does not count.
    fn is_slow(&self, env: &Env, id: QueueId, waited: bool) -> (bool, u64) {
        let queue = &self.queues[id];
        if !queue.sync {
            return (false, 0);
        }
        let end_ns = if waited { self.turn.wait_started_ns } else { env.now.as_ns() };
        let length_us = end_ns.saturating_sub(self.turn.started_ns) / MICROSECOND_NS;
        if length_us < SHORT_US {
            return (queue.is_seeky(), SHORT_COUNTS_MS[usize::from(!env.rotational)]);
        }
        let slow = if length_us > LONG_US {
            self.entities[id.entity()].service < self.budgets.max / 2
        } else {
            queue.is_seeky()
        };
        (slow, length_us * MICROSECOND_NS / MILLISECOND_NS)
    }

    /// Charges the queue for the time of its turn, at the rate of the fastest queues.
    fn charge_time(&mut self, env: &mut Env, id: QueueId, time_ms: u64) {
        let longest_ms = (self.second_fraction(CHARGED_FRACTION) as u64 * env.jiffy_ns / MILLISECOND_NS).max(1);
        let time_ms = time_ms.min(longest_ms);
        let entity = &mut self.entities[id.entity()];
        let service = (self.budgets.max * time_ms as i64 / longest_ms as i64).max(entity.service);
        entity.budget = entity.budget.max(service);
        let more = service - entity.service;
        self.serve(env, id, more);
    }

    /// Ends the turn of the active queue. `waited`: the idle time ended without a request.
    pub(super) fn expire(&mut self, env: &mut Env, id: QueueId, waited: bool, reason: BfqReason) {
        let (slow, time_ms) = self.is_slow(env, id, waited);
        let entity = &self.entities[id.entity()];
        let mostly_left = || entity.left() >= entity.budget / 3;
        let raised = entity.raise > 1;
        if !raised && (slow || (reason == BfqReason::Timeout && mostly_left())) {
            self.charge_time(env, id, time_ms);
        }
        let now = self.jiffies(env);
        if self.tunables.low_latency {
            let next_start = || self.soft_next_start(env, id);
            let queue = &self.queues[id];
            let next_start = (queue.is_idle()).then(next_start);
            let queue = &mut self.queues[id];
            if !raised {
                queue.raising.stamp = now;
            }
            if let Some(next_start) = next_start {
                queue.raising.soft_next_start = next_start;
            } else if queue.is_empty() {
                queue.raising.soft_update = true;
            }
        }
        let serial = self.queues[id].serial;
        env.note(|| BfqEvent::Expire { queue: serial, reason, slow }.into());
        self.sample.forget();
        self.adapt_budget(env, id, reason);
        self.end_turn(env, id, reason);
        let queue = &mut self.queues[id];
        if !queue.is_alive() {
            return;
        }
        if !queue.busy && !matches!(reason, BfqReason::Timeout | BfqReason::Exhausted) {
            queue.non_blocking = true;
        } else {
            self.entities[id.entity()].service = 0;
        }
        let mut at = self.parent_of(id.entity());
        while let Some(entity) = at {
            self.entities[entity].service = 0;
            at = self.parent_of(entity);
        }
    }

    /// Moves the active queue to its next position, or removes it.
    pub(super) fn end_turn(&mut self, env: &mut Env, id: QueueId, reason: BfqReason) {
        let now = self.jiffies(env);
        let seeky = self.queues[id].is_seeky();
        let queue = &mut self.queues[id];
        queue.split |= queue.coop && seeky;
        if queue.is_empty() && !(reason == BfqReason::Preempted && self.idling_needed(id)) {
            let queue = &mut self.queues[id];
            if queue.in_flight == 0 {
                queue.budget_timeout = now;
            }
            self.leave_busy(env, id, true);
        } else {
            self.requeue(env, id, true);
            if !self.queues[id].is_empty() {
                self.refresh_position(env, id);
            }
        }
        self.cancel_wait(env, id);
        self.clear_in_service(id);
        self.active = None;
        self.reap(env, id);
    }

    /// Marks a queue without queued requests as no longer busy.
    pub(super) fn leave_busy(&mut self, env: &mut Env, id: QueueId, expiring: bool) {
        debug_assert!(self.queues[id].busy);
        self.queues[id].busy = false;
        let entity = &self.entities[id.entity()];
        let counter = &mut self.busy_of_class[entity.class.index()];
        *counter = counter.wrapping_sub(1);
        self.busy -= 1;
        self.raised_busy -= i32::from(entity.raise > 1);
        self.deactivate(env, id, true, expiring);
        if self.queues[id].in_flight == 0 {
            self.end_pending(id);
        }
        debug_assert!(self.entities[id.entity()].place != EntityTree::Active);
    }
}
