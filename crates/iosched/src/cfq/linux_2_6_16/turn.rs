//! Turns: the active queue, the length of its turn, and idling for its next request.

use super::Cfq2616;
use super::queue::QueueId;
use crate::context::CgroupId;
use crate::decision::{Cfq2616Event, Decision, Workload};
use crate::env::Env;
use crate::request::RequestId;
use crate::time::Time;

/// Time without a completion of another class before the idle
/// class is served, as a fraction of a second.
const GRACE_FRACTION: u64 = 10;

/// The two timers. The request queue's timer is set to the earlier timer.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// End of idling for the active queue's next request.
    idle: Option<Time>,
    /// Time when the idle class may be served.
    grace: Option<Time>,
}

impl Timers {
    /// Returns the earlier time.
    pub(super) fn next(&self) -> Option<Time> {
        self.idle.into_iter().chain(self.grace).min()
    }

    fn idle_until(&mut self, env: &mut Env, jiffy: u64) {
        env.idle_until(jiffy);
        self.idle = env.timer;
        env.timer = self.next();
    }

    pub(super) fn cancel_idle(&mut self, env: &mut Env) {
        if self.idle.take().is_some() {
            env.timer = self.next();
            env.note(|| Decision::IdleCancel);
        }
    }

    fn arm_grace(&mut self, env: &mut Env, jiffy: u64) {
        let at = env.tick(jiffy);
        self.grace = Some(at);
        env.timer = self.next();
        let wait_ns = at.since(env.now);
        env.note(|| Decision::Cfq2616(Cfq2616Event::GraceArm { wait_ns }));
    }

    fn cancel_grace(&mut self, env: &mut Env) {
        if self.grace.take().is_some() {
            env.timer = self.next();
            env.note(|| Decision::Cfq2616(Cfq2616Event::GraceCancel));
        }
    }

    /// Takes the time of a timer that is due. Returns whether it was due.
    fn is_due(deadline: &mut Option<Time>, now: Time) -> bool {
        deadline.take_if(|at| *at <= now).is_some()
    }
}

impl Cfq2616 {
    /// Tries to dispatch: releases the requests that the active queue may send together.
    pub(super) fn attempt(&mut self, env: &mut Env) {
        if self.rounds.is_empty() {
            return;
        }
        let Some(id) = self.select(env) else { return };
        let queue = &mut self.queues[id];
        if !queue.idle_window && self.in_driver >= self.tunables.max_depth {
            return;
        }
        queue.must_dispatch = false;
        queue.waiting = false;
        let quantum = if queue.is_idle_class() { 1 } else { self.tunables.quantum };
        self.timers.cancel_idle(env);
        for _ in 0..quantum {
            let Some(next) = self.overdue(env, id).or(self.queues[id].next) else { break };
            self.release(env, next);
            self.released += 1;
            let context = env.requests[next].context;
            self.active_process_exited.get_or_insert(env.contexts.get(context).exited);
        }
        let queue = &mut self.queues[id];
        if queue.slice_end == 0 {
            let slice = self.tunables.slice(queue.acts_sync(), queue.priority.level);
            queue.slice_end = env.jiffies() + slice;
            let (queue, slice_ns) = (queue.name(), slice * env.jiffy_ns);
            env.note(|| Decision::Slice { queue, slice_ns });
        }
        let queue = &self.queues[id];
        let used_up = self.released >= self.tunables.async_requests_max(queue.priority.level);
        if queue.is_idle_class() || (used_up && !queue.acts_sync()) {
            self.expire(env, id, false);
        }
    }

    /// Returns the oldest request of a queue, if it is overdue and no
    /// overdue request was found in this turn before.
    fn overdue(&mut self, env: &Env, id: QueueId) -> Option<RequestId> {
        let queue = &mut self.queues[id];
        if queue.found_overdue {
            return None;
        }
        let oldest = queue.fifo.first()?;
        let allocated = env.requests[oldest].allocated.as_ns() / env.jiffy_ns;
        queue.found_overdue = env.jiffies() > allocated + self.tunables.fifo_expire(queue.sync);
        queue.found_overdue.then_some(oldest)
    }

    /// Returns the queue to serve now; `None`: wait.
    fn select(&mut self, env: &mut Env) -> Option<QueueId> {
        if let Some(id) = self.active {
            let (jiffy, queue) = (env.jiffies(), &self.queues[id]);
            if queue.must_dispatch || jiffy <= queue.slice_end {
                if queue.has_requests() {
                    return Some(id);
                }
                if queue.sync && jiffy < queue.slice_end && self.wait(env, id) {
                    return None;
                }
            }
            self.expire(env, id, false);
        }
        let id = match self.rounds.current(&mut self.queues) {
            Some(id) => id,
            None => self.idle_class(env)?,
        };
        self.activate(env, id);
        Some(id)
    }

    /// Returns the next queue of the idle class, once no
    /// other queue has had a request for some time.
    fn idle_class(&mut self, env: &mut Env) -> Option<QueueId> {
        let id = self.rounds.idle()?;
        let grace_end = self.grace_end(env);
        if env.jiffies() >= grace_end {
            return Some(id);
        }
        self.timers.arm_grace(env, grace_end);
        None
    }

    fn grace_end(&self, env: &Env) -> u64 {
        self.last_completion + u64::from(env.hz) / GRACE_FRACTION
    }

    fn activate(&mut self, env: &mut Env, id: QueueId) {
        self.timers.cancel_grace(env);
        self.active = Some(id);
        let queue = &mut self.queues[id];
        queue.slice_end = 0;
        queue.found_overdue = false;
        let (queue, class) = (queue.name(), queue.priority.class);
        let workload = if queue.sync { Workload::Sync } else { Workload::Async };
        env.note(|| Decision::Active { queue, class, workload, cgroup: CgroupId::ROOT });
    }

    /// Idles for the next request of the active queue, which became empty, if idling is worthwhile.
    /// Returns whether the elevator idles.
    fn wait(&mut self, env: &mut Env, id: QueueId) -> bool {
        let queue = &mut self.queues[id];
        if self.tunables.slice_idle == 0 || !queue.idle_window || self.active_process_exited == Some(true) {
            return false;
        }
        queue.must_dispatch = true;
        queue.waiting = true;
        self.timers.idle_until(env, env.jiffies() + self.tunables.slice_idle);
        true
    }

    /// Ends the turn of a queue. For a queue that is not active, prepares its turn.
    pub(super) fn expire(&mut self, env: &mut Env, id: QueueId, preempted: bool) {
        let queue = &mut self.queues[id];
        if !preempted && queue.in_flight() == 0 {
            queue.last_service = env.jiffies();
        }
        queue.must_dispatch = false;
        if std::mem::take(&mut queue.waiting) {
            self.timers.cancel_idle(env);
        }
        self.rounds.file(&mut self.queues, id, preempted);
        if self.active == Some(id) {
            self.active = None;
            let queue = self.queues[id].name();
            env.note(|| Decision::Expire { queue, timed_out: false });
        }
        self.active_process_exited = None;
        self.released = 0;
    }

    /// Handles a sync request for `id`: it may end the wait, or preempt the active queue.
    pub(super) fn meet(&mut self, env: &mut Env, id: QueueId) {
        if self.active == Some(id) {
            if self.queues[id].waiting {
                self.queues[id].must_dispatch = true;
                self.timers.cancel_idle(env);
                env.kick();
            }
        } else if !self.queues[id].is_idle_class()
            && self.active.is_none_or(|active| self.queues[active].is_idle_class())
        {
            if self.active.is_some() {
                let queue = self.queues[id].name();
                env.note(|| Decision::Preempt { queue });
            }
            self.rounds.preempt(&mut self.queues);
            self.expire(env, id, true);
            self.activate(env, id);
            self.queues[id].must_dispatch = true;
            env.kick();
        }
    }

    /// Handles due timers.
    pub(super) fn fire(&mut self, env: &mut Env) {
        if Timers::is_due(&mut self.timers.idle, env.now) {
            env.note(|| Decision::IdleFire);
            self.waited(env);
        }
        if Timers::is_due(&mut self.timers.grace, env.now) {
            env.note(|| Decision::Cfq2616(Cfq2616Event::GraceFire));
            let grace_end = self.grace_end(env);
            if env.jiffies() < grace_end {
                self.timers.arm_grace(env, grace_end);
            }
        }
        env.timer = self.timers.next();
    }

    /// Handles the end of idling for the active queue's next request.
    fn waited(&mut self, env: &mut Env) {
        let Some(id) = self.active else { return };
        let (jiffy, queue) = (env.jiffies(), &mut self.queues[id]);
        if jiffy <= queue.slice_end {
            if self.rounds.is_empty() {
                let until = queue.slice_end.min(jiffy + self.tunables.slice_idle);
                self.timers.idle_until(env, until);
                return;
            }
            if queue.has_requests() {
                queue.must_dispatch = true;
                return;
            }
        }
        self.expire(env, id, false);
    }
}
