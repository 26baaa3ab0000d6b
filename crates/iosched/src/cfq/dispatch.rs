//! Dispatch: the number of requests that a queue may have in the
//! device, and the choice of the next request.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::QueueId;
use super::data::service_tree::{Class, TreeIndex};
use super::generation::Generation;
use crate::env::Env;
use crate::request::RequestId;

impl<G: Generation> Cfq<G> {
    /// Tries once to dispatch a request.
    #[inline]
    pub(super) fn try_dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.busy_queues == 0 {
            return None;
        }
        let id = self.select_queue(env)?;
        let mut overdue = None;
        if G::OVERDUE_PASSES_LIMITS {
            overdue = self.check_fifo(env, id);
            self.turn.must_dispatch |= overdue.is_some();
        }
        if !G::may_dispatch(self, env, id) {
            return None;
        }
        if !G::OVERDUE_PASSES_LIMITS {
            overdue = self.check_fifo(env, id);
        }
        let request = overdue.or(self.queues[id].next)?;
        self.give_out(env, id, request);
        if self.active_process.is_none() {
            let context = env.requests[request].context;
            self.active_process = Some((context, env.contexts.get(context).exited));
        }
        self.turn.dispatched += 1;
        self.turn.must_dispatch = false;
        if self.busy_queues > 1 {
            let queue = &self.queues[id];
            let async_over = !queue.sync && self.turn.dispatched >= self.async_slice_requests(queue.level);
            if async_over || queue.class == Class::Idle {
                self.expire_active(env, false);
            } else if self.stays_full(env, id) {
                self.full_at = Some(env.now);
            }
        }
        Some(request)
    }

    /// Returns whether the active queue has reached its limit, but stays active although other
    /// queues are busy. It then gets no request before time passes or the state changes.
    #[inline]
    fn stays_full(&self, env: &Env, id: QueueId) -> bool {
        let (queue, quantum) = (&self.queues[id], self.tunables.quantum);
        if G::ONE_TREE || queue.in_flight < (quantum / 2).max(1) {
            return false;
        }
        let only_sync = G::ONLY_SYNC_QUEUE_IS_FREE && queue.sync && self.busy_sync_queues == 1;
        let is_full = !only_sync && (queue.in_flight >= quantum || self.slice_used_soon(env, id));
        is_full && !queue.is_empty() && !self.turn.wait_busy && !self.turn.slice_used(G::Clock::now(env))
    }

    /// Returns how many requests an async slice may dispatch.
    fn async_slice_requests(&self, level: u8) -> u32 {
        self.tunables.slice_async_rq.saturating_mul(2 * (8 - u32::from(level)))
    }

    /// Returns the oldest request of a queue, if its deadline has passed. Checked once per turn.
    #[inline]
    fn check_fifo(&mut self, env: &Env, id: QueueId) -> Option<RequestId> {
        if self.turn.fifo_checked {
            return None;
        }
        self.turn.fifo_checked = true;
        self.queues[id].fifo.first().filter(|&oldest| G::is_overdue(self, env, oldest))
    }

    /// Returns whether the active queue may have one more request in the device. The limit is lower
    /// late in its slice, and for async requests after a sync request was late.
    #[inline]
    pub(super) fn may_dispatch(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if G::OVERDUE_PASSES_LIMITS && self.turn.must_dispatch {
            return true;
        }
        let [async_in_flight, sync_in_flight] = self.in_flight;
        if async_in_flight > 0 && G::should_idle(self, env, id) {
            return false;
        }
        if sync_in_flight > 0 && !queue.sync {
            return false;
        }
        let idle_class = queue.class == Class::Idle;
        let mut max = if idle_class { 1 } else { (self.tunables.quantum / 2).max(1) };
        if queue.in_flight >= max {
            if idle_class {
                return false;
            }
            let only_sync = G::ONLY_SYNC_QUEUE_IS_FREE && queue.sync && self.busy_sync_queues == 1;
            let others = self.busy_queues > 1;
            if others && !only_sync && self.slice_used_soon(env, id) {
                return false;
            }
            max = if others && !only_sync { self.tunables.quantum } else { u32::MAX };
        }
        if !queue.sync && self.tunables.low_latency {
            // The async depth increases slowly after a sync request was late.
            let since = G::Clock::now(env).saturating_sub(self.last_delayed_sync);
            let depth = u32::try_from(since / self.tunables.slice_sync).unwrap_or(u32::MAX);
            let depth = if depth == 0 && queue.in_flight == 0 { 1 } else { depth };
            max = max.min(depth);
        }
        queue.in_flight < max
    }

    /// Removes a request from its queue and counts it as in flight.
    #[inline(always)]
    pub(super) fn give_out(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        self.take_out(env, id, request);
        let queue = &mut self.queues[id];
        queue.in_flight += 1;
        self.groups[queue.group].in_flight += 1;
        self.in_flight[usize::from(queue.sync)] += 1;
    }

    /// Drains: dispatches a request as long as there are requests, queue by queue.
    pub(super) fn force_dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if let Some(active) = self.active
            && (!self.draining || self.queues[active].is_empty())
        {
            self.expire(env, active, false);
        }
        self.draining = self.queued > 0;
        if !self.draining {
            return None;
        }
        let id = match self.active {
            Some(active) => active,
            None => {
                let id = self.any_busy_queue()?;
                self.activate(env, id);
                id
            }
        };
        let request = self.queues[id].next?;
        self.give_out(env, id, request);
        if self.queues[id].is_empty() {
            self.expire(env, id, false);
            self.draining = self.queued > 0;
        }
        Some(request)
    }

    /// Returns the first queue of the first tree with queues.
    fn any_busy_queue(&self) -> Option<QueueId> {
        self.groups.ids().find_map(|group| {
            let trees = &self.groups[group].trees;
            (0..TreeIndex::COUNT).find_map(|index| trees[index].queues.first())
        })
    }
}
