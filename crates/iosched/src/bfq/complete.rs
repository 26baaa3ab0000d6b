//! Completion of a request: what BFQ learns from it, and whether the turn of its queue continues.

use super::Bfq;
use super::data::queue::QueueId;
use super::raising::INTERACTIVE;
use crate::decision::{BfqReason, Decision};
use crate::env::Env;
use crate::request::RequestId;

/// Number of requests of a queue, waiting and in the device, below which the queue does not load
/// the device.
const LONE: u32 = 3;

impl Bfq {
    pub(super) fn complete_request(&mut self, env: &mut Env, request: RequestId) {
        let id = Self::queue_of_request(env, request);
        if self.sample.is_watched(request) {
            self.measured(env, id);
        }
        self.completed(env, id);
        self.forget_request(env, id, request);
        if self.queues[id].is_alive() {
            self.note_state(env, id);
        }
    }

    fn completed(&mut self, env: &mut Env, id: QueueId) {
        self.observe_queue_depth(env);
        self.leave_device(env, id);
        self.queues[id].last_completion_ns = env.now.as_ns();
        self.observe_completion(env);
        let queue = &self.queues[id];
        self.last_completed = (!queue.coop).then_some(id);
        if queue.raising.soft_update && queue.is_idle() && self.entities[id.entity()].raise != INTERACTIVE {
            self.queues[id].raising.soft_next_start = self.soft_next_start(env, id);
        }
        if self.active == Some(id) {
            self.completed_active(env, id);
        }
    }

    /// Counts a request of the queue as no longer in the device.
    pub(super) fn leave_device(&mut self, env: &Env, id: QueueId) {
        let now = self.jiffies(env);
        self.in_driver -= 1;
        let queue = &mut self.queues[id];
        queue.in_flight -= 1;
        if queue.in_flight == 0 && !queue.busy {
            queue.budget_timeout = now;
            self.end_pending(id);
        }
    }

    /// Counts a request of the queue as in the device. BFQ did not dispatch the request: it was
    /// drained, or the device had returned it before.
    pub(super) fn enter_device(&mut self, id: QueueId) {
        self.in_driver += 1;
        self.queues[id].in_flight += 1;
        self.add_pending(id);
    }

    /// Handles a completion of the active queue.
    fn completed_active(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        let (empty, in_flight) = (queue.is_empty(), queue.in_flight);
        let better_to_idle = empty && self.better_to_idle(env, id);
        if better_to_idle {
            if in_flight == 0 {
                self.begin_wait(env, id);
            }
        } else if self.is_timed_out(env, id) {
            self.expire(env, id, false, BfqReason::Timeout);
        } else if empty {
            self.expire(env, id, false, BfqReason::NoMoreRequests);
        }
    }

    fn observe_queue_depth(&mut self, env: &mut Env) {
        let lone = self.active.is_some_and(|active| {
            let queue = &self.queues[active];
            queue.short_think && queue.in_flight + queue.queued < LONE
        });
        if let Some(value) = self.depth.observe(self.in_driver, self.queued, lone) {
            env.note(|| Decision::HwTag { value });
        }
    }
}
