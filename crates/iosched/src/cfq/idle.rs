//! Idling: whether and how long to wait for a queue's next request, and what ends the wait.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::{QueueId, will_not_follow_up};
use super::data::service_tree::Class;
use super::generation::Generation;
use crate::context::ContextId;
use crate::decision::Decision;
use crate::env::Env;

/// Smallest number of queued requests of a deep queue, which keeps the device busy by itself.
const DEEP: u32 = 4;

impl<G: Generation> Cfq<G> {
    /// Returns whether idling for the next request of a busy queue is worthwhile.
    #[inline]
    pub(super) fn should_idle(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if queue.class == Class::Idle || self.is_yielding(env, id) {
            return false;
        }
        if queue.idle_window && (env.rotational || !self.queue_depth.queues_commands()) {
            return true;
        }
        // The last queue of a tree represents the whole tree.
        let Some(index) = queue.tree else { return false };
        let tree = &self.groups[queue.group].trees[index.index()];
        queue.sync && tree.count == 1 && !tree.think_time.is_longer_than(self.tunables.slice_idle)
    }

    /// Checks at an insertion of `context` whether idling for a sync queue is worthwhile.
    #[inline]
    pub(super) fn update_idle_window(&mut self, env: &mut Env, id: QueueId, context: ContextId) {
        let Some(process) = self.process(context) else { return };
        let think_time = process.think_time;
        let slice_idle = self.tunables.slice_idle;
        let queue = &mut self.queues[id];
        queue.deep |= queue.queued >= DEEP;
        let scattered = G::is_scattered(self, id, context);
        let queue = &mut self.queues[id];
        let worth = if queue.next.is_some_and(|next| G::HINT_JUDGES_QUEUE && will_not_follow_up(&env.requests[next]))
            || env.contexts.get(context).exited
            || slice_idle == 0
            || scattered
        {
            false
        } else if think_time.is_valid() {
            !think_time.is_longer_than(slice_idle)
        } else {
            queue.idle_window
        };
        if worth != queue.idle_window {
            queue.idle_window = worth;
            let queue = queue.name();
            env.note(|| Decision::IdleWindow { queue, worth });
        }
    }

    /// Idles for the next request of the active queue, which became empty at a completion, if
    /// idling is worthwhile.
    pub(super) fn arm_idle_timer(&mut self, env: &mut Env, id: QueueId) {
        let group_idle = self.tunables.group_idle;
        if !env.rotational && self.queue_depth.queues_commands() && group_idle == 0 {
            return;
        }
        let for_queue = self.tunables.slice_idle > 0 && G::should_idle(self, env, id);
        if !for_queue && (group_idle == 0 || self.is_yielding(env, id)) {
            return;
        }
        if G::has_answer_to_come(self, id) {
            return;
        }
        let queue = &self.queues[id];
        let Some((process, false)) = self.active_process else { return };
        if G::LONG_THINKER_IS_NOT_AWAITED && self.thinks_longer_than_slice(env, process) {
            return;
        }
        if !for_queue {
            let group = &self.groups[queue.group];
            let think_time = queue.tree.map(|index| &group.trees[index.index()].think_time);
            if group.busy_queues > 1 || think_time.is_some_and(|t| t.is_longer_than(group_idle)) {
                return;
            }
        }
        self.turn.waiting = true;
        let wait = if for_queue { G::wait_for(self, env, process) } else { group_idle };
        G::Clock::idle_for(env, wait);
    }

    /// Returns whether the next request of the process is
    /// expected only after the end of the active slice.
    pub(super) fn thinks_longer_than_slice(&self, env: &Env, process: ContextId) -> bool {
        let left = self.turn.slice_left(G::Clock::now(env));
        self.process(process).is_some_and(|process| {
            let think_time = &process.think_time;
            think_time.is_valid() && (left < 0 || think_time.is_longer_than(left as u64))
        })
    }

    /// Returns whether the slice of the group's last queue ends before its process' next request.
    #[inline]
    pub(super) fn is_last_at_its_end(&self, env: &Env, id: QueueId) -> bool {
        let now = G::Clock::now(env);
        self.groups[self.queues[id].group].busy_queues == 1
            && (self.turn.slice_used(now)
                || self.active_process.is_some_and(|(process, _)| self.thinks_longer_than_slice(env, process))
                || self.turn.slice_left(now) <= G::Clock::jiffy(env) as i64)
    }

    /// Handles the end of the idle time.
    pub(super) fn idle_timer_fired(&mut self, env: &mut Env) {
        env.note(|| Decision::IdleFire);
        let Some(id) = self.active else { return };
        if self.turn.must_dispatch {
            return;
        }
        let queue = &mut self.queues[id];
        if !self.turn.slice_used(G::Clock::now(env)) {
            // If no queue has requests, the queue can stay active.
            if self.busy_queues == 0 || !queue.is_empty() {
                return;
            }
            queue.deep = false;
        }
        self.expire(env, id, false);
    }
}
