//! Insertion of a request: the updated statistics of its process, and whether its queue must be
//! served immediately.

use super::Bfq;
use super::data::queue::QueueId;
use crate::decision::BfqReason;
use crate::env::Env;
use crate::request::RequestId;

/// Pause after which a queue looks new to an interactive user, ms.
const LONG_PAUSE_MS: u64 = 2000;
/// Pause after which a queue does not belong to a burst any more, ms.
const BURST_OVER_MS: u64 = 10_000;
/// Time after a split during which the queue is not judged, ms.
const RESTORED_MS: u64 = 2000;
/// Minimum time between two raises of a busy async queue, ms.
const ASYNC_RAISE_MS: u64 = 500;
/// Multiple of slice_idle within which a queue must come back after its last
/// completion to use the rest of its budget.
const IN_TIME: u64 = 3;

impl Bfq {
    /// Inserts a request into its queue, or into the queue that its process shares from now on.
    pub(super) fn insert_request(&mut self, env: &mut Env, request: RequestId) {
        let rq = &env.requests[request];
        let (context, sector, nr_sectors, end) = (rq.context, rq.sector, rq.nr_sectors, rq.end());
        let mut id = Self::queue_of_request(env, request);
        if let Some(into) = self.cooperator(env, id, sector, context) {
            id = self.move_request(env, request, id, into);
        }
        self.observe_think_time(env, id);
        self.observe_seek(env, id, sector, nr_sectors);
        self.add_request(env, id, request);
        self.queues[id].seek.inserted(end);
        if self.active == Some(id) && self.queues[id].waiting {
            self.end_wait(env, id, nr_sectors);
        }
        self.note_state(env, id);
    }

    /// Moves a request that is not queued yet, and its process, to another queue.
    fn move_request(&mut self, env: &mut Env, request: RequestId, id: QueueId, into: QueueId) -> QueueId {
        use crate::collections::Id as _;
        let context = env.requests[request].context;
        self.queues[into].requests += 1;
        self.count_request(into, 1);
        env.requests[request].elevator = into.number();
        if self.queue_of(context, true) == Some(id) {
            self.follow_plan(env, context, id, into);
        }
        self.queues[id].just_created = false;
        self.count_request(id, -1);
        self.put_request(env, id);
        into
    }

    fn observe_seek(&mut self, env: &Env, id: QueueId, sector: u64, nr_sectors: u32) {
        let queue = &mut self.queues[id];
        queue.seek.record(sector, nr_sectors, env.rotational);
        if queue.seek.is_totally_seeky() && self.entities[id.entity()].raise > 1 && self.is_soft_length(id) {
            let now = self.jiffies(env);
            self.leave_soft(now, id);
        }
    }

    fn add_request(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        let now = self.jiffies(env);
        let raise_before = self.entities[id.entity()].raise;
        let rq = &env.requests[request];
        let (context, sync) = (rq.context, rq.is_sync());
        if self.queues[id].sync {
            if self.process_mut(context).requests <= 1 {
                self.look_for_waker(env, id);
                self.observe_lone_request(env, id);
            }
            self.observe_io_bound(env, id);
        }
        let next_changed = self.add_sorted(env, id, request);
        self.queues[id].queued += 1;
        self.queued += 1;
        if next_changed {
            self.refresh_position(env, id);
        }
        let mut interactive = false;
        if !self.queues[id].busy {
            interactive = self.become_busy(env, id, request);
        } else {
            let stamp = self.queues[id].raising.stamp;
            if self.tunables.low_latency
                && raise_before == 1
                && !sync
                && now > stamp + self.milliseconds(ASYNC_RAISE_MS)
            {
                self.raise_async(id);
            }
            if next_changed {
                self.next_changed(env, id);
            }
        }
        if self.tunables.low_latency && (raise_before == 1 || self.entities[id.entity()].raise == 1 || interactive) {
            self.queues[id].raising.stamp = now;
        }
        env.requests[request].deadline = env.now + self.tunables.fifo_expire_ns(sync);
        self.queues[id].fifo.push_back(env.requests.list_nodes(), request);
    }

    /// Handles a queue that gets requests again. Returns whether the queue looks interactive.
    fn become_busy(&mut self, env: &mut Env, id: QueueId, request: RequestId) -> bool {
        let now = self.jiffies(env);
        let [long_pause, burst_over, restored] =
            [LONG_PAUSE_MS, BURST_OVER_MS, RESTORED_MS].map(|ms| self.milliseconds(ms));
        let queue = &self.queues[id];
        let paused = |length: i64| queue.in_flight == 0 && now > queue.budget_timeout + length;
        let long = paused(long_pause);
        let out_of_burst = paused(burst_over) && !queue.just_created;
        let in_time = env.now.as_ns() <= queue.last_completion_ns.saturating_add(IN_TIME * self.tunables.slice_idle_ns);
        let judged = now > queue.split_at + restored;
        let stable = self.process(env.requests[request].context).is_some_and(|process| process.stably_merged);
        let owned = queue.owner.is_some() || stable;
        let arrival = self.judge_arrival(now, id, long, owned);

        let wants = self.budget_for_arrival(env, id, in_time);
        if out_of_burst {
            self.leave_burst_list(id);
            self.queues[id].in_large_burst = false;
        }
        self.queues[id].just_created = false;
        if self.tunables.low_latency && judged {
            self.update_raising(now, id, &arrival);
        }
        let queue = &mut self.queues[id];
        queue.backlogged_at = now;
        queue.served_since_backlogged = 0;
        queue.raising.soft_update = false;
        self.enter_busy(env, id);
        if let Some(active) = self.active
            && self.next_may_preempt()
            && ((wants && self.entities[id.entity()].raise >= self.entities[active.entity()].raise)
                || self.is_higher(id, active)
                || !self.better_to_idle(env, active))
        {
            self.expire(env, active, false, BfqReason::Preempted);
        }
        arrival.interactive
    }

    /// Sets the budget of a queue that becomes busy. The budget is the rest of the old budget, if
    /// the last turn ended because the queue had no more requests, and if the queue came back in
    /// time. Returns whether the queue uses this rest.
    fn budget_for_arrival(&mut self, env: &Env, id: QueueId, in_time: bool) -> bool {
        let charge = self.next_charge(env, id).unwrap_or(0);
        let queue = &mut self.queues[id];
        let entity = &mut self.entities[id.entity()];
        let left = entity.left();
        entity.service = 0;
        if queue.non_blocking && in_time && left > 0 {
            entity.budget = left.min(queue.max_budget);
            return true;
        }
        queue.non_blocking = false;
        entity.budget = queue.max_budget.max(charge);
        false
    }

    /// Marks a queue as busy and inserts it into the order of service.
    fn enter_busy(&mut self, env: &mut Env, id: QueueId) {
        self.activate_queue(env, id);
        self.queues[id].busy = true;
        let entity = &self.entities[id.entity()];
        let raised = entity.raise > 1;
        let counter = &mut self.busy_of_class[entity.class.index()];
        *counter = counter.wrapping_add(1);
        self.busy += 1;
        if self.queues[id].in_flight == 0 {
            self.begin_pending(id);
        }
        self.raised_busy += i32::from(raised);
        self.come_first_of_woken(id);
    }

    fn next_may_preempt(&self) -> bool {
        let root = &self.groups[super::data::group::GroupId::ROOT];
        root.next != root.in_service
    }

    /// Returns whether a queue, or its group, has a higher class or weight than the active queue.
    fn is_higher(&self, id: QueueId, active: QueueId) -> bool {
        let [new, old] = [id, active].map(|id| &self.entities[id.entity()]);
        if new.class < old.class {
            return true;
        }
        if new.group == old.group {
            return new.weight > old.weight;
        }
        let [new, old] = [id, active].map(|id| {
            let entity = self.parent_of(id.entity()).unwrap_or(id.entity());
            self.entities[entity].weight
        });
        new > old
    }
}
