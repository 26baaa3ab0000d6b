//! Injection: while BFQ idles for the active queue, it dispatches requests of other queues. Their
//! number is limited, so that they do not delay the active queue.
//!
//! The number is learned: BFQ measures the service time of a request that comes to an empty queue,
//! with and without injection.

use super::Bfq;
use super::data::injection::Injection;
use super::data::queue::QueueId;
use super::data::seek::LARGE_SECTORS;
use crate::env::Env;
use crate::request::RequestId;

/// Time without change after which the limit is learned again, ms.
const LEARN_ANEW_MS: u64 = 1000;

/// Minimum time between a change of the limit and the next measurement, ms.
const MEASURE_AGAIN_MS: u64 = 10;

impl Bfq {
    /// Returns the queue to dispatch from while BFQ idles for the active queue `id`.
    pub(super) fn injected(&mut self, env: &Env, id: QueueId) -> Option<QueueId> {
        let own_async = self.own_async_queue(env, id);
        let queue = &self.queues[id];
        let (waker, woken) = (queue.waker, queue.woken.first().filter(|_| self.rules.serves_woken));
        if let Some(chosen) = [own_async, waker, woken].into_iter().flatten().find(|&other| self.has_budget(env, other))
        {
            return Some(chosen);
        }
        let raised = self.entities[id.entity()].raise > 1;
        if self.idling_boosts(env, id) || (raised && self.raised_busy <= 1 && self.queues[id].short_think) {
            return None;
        }
        self.any_injected(env, id)
    }

    /// Returns the async queue of the process that owns `id`, if the next request of the async
    /// queue is from that process.
    fn own_async_queue(&self, env: &Env, id: QueueId) -> Option<QueueId> {
        let owner = self.queues[id].owner?;
        let queue = self.queue_of(owner, false)?;
        let next = self.queues[queue].next?;
        (env.requests[next].context == owner).then_some(queue)
    }

    /// Returns whether a queue is busy and its budget allows its next request.
    fn has_budget(&self, env: &Env, id: QueueId) -> bool {
        self.queues[id].busy
            && self.next_charge(env, id).is_some_and(|charge| charge <= self.entities[id.entity()].left())
    }

    fn any_injected(&mut self, env: &Env, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let mut limit = queue.injection.limit;
        // Linux adds ns to jiffies here. The condition holds
        // only if slice_idle became 0 during the wait.
        let waited = self.jiffies(env) >= self.turn.wait_started.saturating_add(self.tunables.slice_idle_ns as i64);
        if limit == 0 && queue.injection.baseline_ns == 0 && queue.waiting && waited {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let any = self.entities[id.entity()].raise == 1 || !queue.short_think;
        let mut at = self.waiting.first();
        while let Some(other) = at {
            let eligible = (any || self.entities[other.entity()].raise > 1) && self.has_budget(env, other);
            // A device with internal parallelism needs only one large request at a time.
            let large = |next: RequestId| {
                !env.rotational && env.requests[next].nr_sectors >= LARGE_SECTORS && self.in_driver >= 1
            };
            if eligible && !self.queues[other].next.is_some_and(large) {
                self.sample.injected = true;
                return Some(other);
            }
            at = self.queues.waiting[crate::collections::Id::number(other) as usize].next();
        }
        None
    }

    /// Handles a request that comes to a sync queue without other requests, and decides whether to
    /// measure its service time.
    pub(super) fn observe_lone_request(&mut self, env: &Env, id: QueueId) {
        let now = self.jiffies(env);
        if now >= self.queues[id].injection.decreased_at + self.milliseconds(LEARN_ANEW_MS) {
            self.reset_injection(now, id);
        }
        let injection = &self.queues[id].injection;
        let comparable = self.in_driver == 0 || (injection.baseline_ns > 0 && self.sample.injected);
        if self.active == Some(id) && comparable && now >= injection.decreased_at + self.milliseconds(MEASURE_AGAIN_MS)
        {
            self.sample.started_ns = env.now.as_ns();
            self.sample.armed = true;
            if self.in_driver == 0 {
                self.sample.injected = false;
            }
        }
    }

    /// Handles the completion of the measured request of queue `id`.
    pub(super) fn measured(&mut self, env: &Env, id: QueueId) {
        let now = self.jiffies(env);
        let time_ns = env.now.as_ns() - self.sample.started_ns;
        let injected = self.sample.injected;
        let alone = self.in_driver == 1;
        let most = self.depth.most_in_driver();
        let injection = &mut self.queues[id].injection;
        let (before, baseline_ns) = (injection.limit, injection.baseline_ns);
        if baseline_ns > 0 && injected {
            if time_ns >= baseline_ns + baseline_ns / 2 {
                if before > 0 {
                    injection.limit -= 1;
                    injection.decreased_at = now;
                }
            } else if before <= most {
                injection.limit += 1;
            }
        }
        if (baseline_ns == 0 && alone) || time_ns < baseline_ns {
            if baseline_ns == 0 {
                injection.limit = before.max(1);
            }
            injection.baseline_ns = time_ns;
        } else if !injected && alone {
            injection.baseline_ns = time_ns;
        }
        self.sample.watched = None;
        self.sample.injected = false;
    }

    /// Resets the learned injection limit.
    pub(super) fn reset_injection(&mut self, now: i64, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.injection = Injection { limit: u32::from(!queue.short_think), baseline_ns: 0, decreased_at: now };
        self.sample.watched = None;
    }
}
