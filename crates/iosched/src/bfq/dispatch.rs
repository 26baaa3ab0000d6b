//! Dispatch: the choice of the queue to serve, and the length of its turn.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::QueueId;
use super::data::turn::Turn;
use crate::decision::{BfqEvent, BfqReason};
use crate::env::Env;
use crate::request::RequestId;

impl Bfq {
    /// Returns the request to dispatch next, or `None` to wait for a better one.
    pub(super) fn try_dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.queued == 0 || self.busy == 0 || (self.tunables.strict_guarantees && self.in_driver > 0) {
            return None;
        }
        let queue = self.select(env)?;
        let request = self.queues[queue].next?;
        self.give_out(env, queue, request);
        Some(request)
    }

    /// Returns whether the turn of a queue has taken too long (counted in jiffies). While BFQ idles
    /// for the queue, the turn continues if less than a third of the budget is left.
    pub(super) fn is_timed_out(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let entity = &self.entities[id.entity()];
        self.jiffies(env) >= queue.budget_timeout && (!queue.waiting || entity.left() >= entity.budget / 3)
    }

    /// Returns the queue to dispatch from: the active queue, another queue for injection, or the
    /// next queue.
    fn select(&mut self, env: &mut Env) -> Option<QueueId> {
        if let Some(id) = self.active
            && self.is_timed_out(env, id)
            && !(self.queues[id].is_empty() && self.better_to_idle(env, id))
        {
            self.expire(env, id, false, BfqReason::Timeout);
        }
        loop {
            let id = match self.active {
                Some(id) => id,
                None => self.begin_turn(env)?,
            };
            let reason = if let Some(charge) = self.next_charge(env, id) {
                if charge <= self.entities[id.entity()].left() {
                    if self.queues[id].waiting {
                        self.cancel_wait(env, id);
                    }
                    return Some(id);
                }
                BfqReason::Exhausted
            } else {
                let queue = &self.queues[id];
                if queue.waiting || (queue.in_flight > 0 && self.better_to_idle(env, id)) {
                    return self.injected(env, id);
                }
                BfqReason::NoMoreRequests
            };
            self.expire(env, id, false, reason);
        }
    }

    /// Starts the turn of the next queue.
    fn begin_turn(&mut self, env: &mut Env) -> Option<QueueId> {
        let id = self.take_next(env)?;
        let now = self.jiffies(env);
        let soft_length = self.is_soft_length(id);
        self.budgets.count_turn();
        let entity = &self.entities[id.entity()];
        let queue = &mut self.queues[id];
        queue.fifo_looked = false;
        if entity.raise > 1 && soft_length && now > queue.raising.stamp && now > queue.budget_timeout {
            // The time of raising does not run while the queue has no requests.
            let stamp = &mut queue.raising.stamp;
            *stamp = if queue.budget_timeout > *stamp { *stamp + now - queue.budget_timeout } else { now };
        }
        let times = if soft_length { 1 } else { i64::from(entity.weight / entity.original_weight) };
        queue.budget_timeout = now + self.tunables.timeout_jiffies as i64 * times;
        self.turn = Turn { started_ns: env.now.as_ns(), position: 0, ..self.turn };
        self.active = Some(id);
        if env.log.is_on() {
            let node = self.entities.node(id.entity());
            let vtime = self.groups[entity.group].trees[entity.class.index()].vtime;
            let event = BfqEvent::Active {
                queue: queue.serial,
                budget: entity.budget,
                start: node.start.0,
                finish: node.finish.0,
                vtime: vtime.0,
            };
            env.note(|| event.into());
        }
        Some(id)
    }

    /// Dispatches `request`, which is the next request of queue `id`.
    fn give_out(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        let charge = self.charge(env, id, request);
        self.serve(env, id, charge);
        let is_active = self.active == Some(id);
        if is_active {
            self.sample.dispatched(request);
        }
        self.start(env, id, request);
        self.remove_request(env, id, request);
        let serial = self.queues[id].serial;
        env.note(|| BfqEvent::Give { queue: serial }.into());
        if is_active {
            let now = self.jiffies(env);
            self.check_raising(now, id);
            if self.entities[id.entity()].class == Class::Idle && self.busy > 1 {
                self.expire(env, id, false, BfqReason::Exhausted);
            }
        }
        self.in_driver += 1;
        self.note_state(env, id);
    }

    /// Counts `request` as in the device.
    fn start(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        self.queues[id].in_flight += 1;
        let rq = &env.requests[request];
        let (sector, nr_sectors, end) = (rq.sector, rq.nr_sectors, rq.end());
        self.observe_dispatch(env, sector, nr_sectors);
        self.position = end;
        if self.active == Some(id) {
            self.turn.position = end;
        }
    }

    /// Dispatches a request as long as any is queued.
    pub(super) fn force_dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        loop {
            let id = match self.active {
                Some(id) => id,
                None => self.begin_turn(env)?,
            };
            if let Some(request) = self.queues[id].next {
                self.cancel_wait(env, id);
                self.give_out(env, id, request);
                // The device takes the request later.
                self.leave_device(env, id);
                return Some(request);
            }
            self.expire(env, id, false, BfqReason::NoMoreRequests);
        }
    }
}
