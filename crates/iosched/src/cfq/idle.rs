//! Idling: whether to wait for a queue's next request, for how long, and what ends the wait.

use super::Cfq;
use super::queue::{QueueId, will_not_follow_up};
use super::service_tree::Class;
use crate::context::ContextId;
use crate::decision::Decision;
use crate::elevator::Env;
use crate::parts::think_time::ThinkTime;

/// A queue with this many requests at once is deep: it keeps the device busy by itself.
const DEEP: u32 = 4;

impl Cfq {
    /// Whether it is worth waiting for the next request of a busy queue.
    #[inline]
    pub(super) fn should_idle(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if self.tunables.slice_idle_ns == 0 || queue.class == Class::Idle || self.is_yielding(env, id) {
            return false;
        }
        if queue.idle_window && (env.rotational || !self.queue_depth.queues_commands()) {
            return true;
        }
        // The last one of its tree stands for all of them.
        let Some(index) = queue.tree else { return false };
        let tree = &self.groups[queue.group].trees[index.index()];
        queue.sync && tree.count == 1 && !tree.think_time.is_longer_than(self.tunables.slice_idle_ns)
    }

    /// Judges anew, at an insert of `context`, whether a sync queue is worth idling for.
    #[inline]
    pub(super) fn update_idle_window(
        &mut self,
        env: &mut Env,
        id: QueueId,
        context: ContextId,
        think_time: &ThinkTime,
    ) {
        let slice_idle_ns = self.tunables.slice_idle_ns;
        let queue = &mut self.queues[id];
        queue.deep |= queue.queued >= DEEP;
        let worth = if queue.next.is_some_and(|next| will_not_follow_up(&env.requests[next]))
            || env.contexts.get(context).exited
            || slice_idle_ns == 0
            || (!queue.deep && queue.seek.is_seeky())
        {
            false
        } else if think_time.is_valid() {
            !think_time.is_longer_than(slice_idle_ns)
        } else {
            queue.idle_window
        };
        if worth != queue.idle_window {
            queue.idle_window = worth;
            let queue = queue.name();
            env.note(|| Decision::IdleWindow { queue, worth });
        }
    }

    /// The active queue ran empty at a completion: waits for its next request, if that is worth it.
    pub(super) fn arm_idle_timer(&mut self, env: &mut Env, id: QueueId) {
        let group_idle_ns = self.tunables.group_idle_ns;
        if !env.rotational && self.queue_depth.queues_commands() && group_idle_ns == 0 {
            return;
        }
        let for_queue = self.should_idle(env, id);
        if !for_queue && (group_idle_ns == 0 || self.is_yielding(env, id)) {
            return;
        }
        let queue = &self.queues[id];
        if queue.in_flight > 0 {
            return;
        }
        let Some((process, false)) = self.active_process else { return };
        if self.thinks_longer_than_slice(env, process) {
            return;
        }
        if !for_queue {
            let group = &self.groups[queue.group];
            let think_time = queue.tree.map(|index| &group.trees[index.index()].think_time);
            if group.busy_queues > 1 || think_time.is_some_and(|t| t.is_longer_than(group_idle_ns)) {
                return;
            }
        }
        self.turn.waiting = true;
        let wait_ns = if for_queue { self.tunables.slice_idle_ns } else { group_idle_ns };
        env.timer = Some(env.now + wait_ns);
        env.note(|| Decision::IdleArm { wait_ns });
    }

    /// Whether the next request of the process is expected only after the active slice has ended.
    fn thinks_longer_than_slice(&self, env: &Env, process: ContextId) -> bool {
        let left_ns = self.turn.slice_left_ns(env.now);
        self.process(process).is_some_and(|process| {
            let think_time = &process.think_time;
            think_time.is_valid() && (left_ns < 0 || think_time.is_longer_than(left_ns as u64))
        })
    }

    /// Whether the group's last queue, empty and at the end of its slice, is given a longer one, so that its group
    /// does not lose its share for want of a request.
    pub(super) fn should_wait_busy(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let group = &self.groups[queue.group];
        if !queue.is_empty() || group.busy_queues > 1 || group.think_time.is_longer_than(self.tunables.group_idle_ns) {
            return false;
        }
        self.turn.slice_used(env.now)
            || self.active_process.is_some_and(|(process, _)| self.thinks_longer_than_slice(env, process))
            || self.turn.slice_left_ns(env.now) <= env.jiffy_ns as i64
    }

    /// Stops waiting.
    #[inline]
    pub(super) fn cancel_idle(&mut self, env: &mut Env) {
        if env.timer.take().is_some() {
            env.note(|| Decision::IdleCancel);
        }
    }

    /// The wait is over.
    pub(super) fn idle_timer_fired(&mut self, env: &mut Env) {
        env.note(|| Decision::IdleFire);
        let Some(id) = self.active else { return };
        if self.turn.must_dispatch {
            return;
        }
        let queue = &mut self.queues[id];
        if !self.turn.slice_used(env.now) {
            if !queue.is_empty() {
                return;
            }
            queue.deep = false;
        }
        self.expire(env, id, false);
    }
}
