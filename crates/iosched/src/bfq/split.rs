//! Splitting: a process that accesses another area than the other users of its shared queue gets
//! its own queue again. This queue has the saved state of the process' earlier queue.

use super::Bfq;
use super::data::process::Saved;
use super::data::queue::{NEVER, Queue, QueueId};
use super::raising::INTERACTIVE;
use crate::context::{CgroupId, ContextId};
use crate::env::Env;

impl Bfq {
    /// Saves the state of the queue of one process. A queue that is merged directly after its
    /// creation is saved as raised.
    pub(super) fn save(&mut self, env: &Env, id: QueueId) {
        let Some(owner) = self.queues[id].owner else { return };
        let duration = self.interactive_duration();
        let now = self.jiffies(env);
        let (weight, raise) = (self.entities[id.entity()].original_weight, self.entities[id.entity()].raise);
        let low_latency = self.tunables.low_latency;
        let Self { queues, processes, .. } = self;
        let queue = &queues[id];
        let Some(process) = &mut processes[owner.index()] else { return };
        let saved = &mut process.saved;
        let raised_early = queue.just_created && !queue.in_large_burst && low_latency;
        let Queue { raising, injection, .. } = queue;
        *saved = Saved {
            short_think: queue.short_think,
            io_bound: queue.io_bound,
            io_start_ns: queue.io_start_ns,
            idle_ns: queue.idle_ns,
            think: queue.think,
            last_completion_ns: queue.last_completion_ns,
            in_large_burst: queue.in_large_burst,
            in_burst_list: queue.in_burst_list,
            weight,
            baseline_ns: injection.baseline_ns,
            inject_limit: injection.limit,
            inject_decreased_at: injection.decreased_at,
            raise: if raised_early { INTERACTIVE } else { raise },
            raise_length: if raised_early { duration } else { raising.length },
            raise_stamp: if raised_early { now } else { raising.stamp },
            raise_switched_at: if raised_early { NEVER } else { raising.switched_at },
            raise_served: if raised_early { saved.raise_served } else { raising.served },
        };
    }

    /// Makes the process stop sharing the queue `id`. Returns the process' queue afterwards, and
    /// whether it is still `id`.
    pub(super) fn split_queue(
        &mut self,
        env: &mut Env,
        context: ContextId,
        id: QueueId,
        cgroup: CgroupId,
    ) -> (QueueId, bool) {
        self.note_split(env, id);
        if self.queues[id].in_large_burst {
            self.process_mut(context).saved.in_large_burst = true;
        }
        let waker = self.living_waker(id);
        let pid = env.pid(context);
        let queue = &mut self.queues[id];
        if queue.processes == 1 && queue.planned.is_none() {
            queue.pid = pid;
            (queue.coop, queue.split) = (false, false);
            return (id, true);
        }
        self.attach(env, context, true, None);
        self.undo_plan(env, id);
        // The rest of the queue may be the last user of its waker.
        self.release_process(env, id);
        let split_off = self.create_queue(env, context, true, cgroup, true);
        let Saved { in_large_burst, in_burst_list, .. } = self.process_mut(context).saved;
        self.queues[split_off].in_large_burst = in_large_burst || (in_burst_list && self.burst.large);
        if !self.queues[split_off].in_large_burst && in_burst_list {
            self.join_burst_list(split_off);
        }
        self.queues[split_off].split_at = self.jiffies(env);
        if let Some(waker) = waker {
            self.set_waker(split_off, waker);
        }
        (split_off, false)
    }

    /// Returns the waker of a queue, unless the waker is about to be freed.
    fn living_waker(&self, id: QueueId) -> Option<QueueId> {
        let waker = self.queues[id].waker?;
        let mut at = self.queues[id].planned;
        while let Some(planned) = at {
            if planned == waker {
                return (self.queues[waker].processes > 1).then_some(waker);
            }
            at = self.queues[planned].planned;
        }
        (self.queues[waker].processes > 0).then_some(waker)
    }

    /// Restores the saved state in the process' own queue, which is a new queue unless
    /// `is_retained` is set.
    pub(super) fn restore(&mut self, env: &Env, context: ContextId, id: QueueId, is_retained: bool) {
        let saved = self.process_mut(context).saved.clone();
        let now = self.jiffies(env);
        let busy = is_retained && self.queues[id].busy;
        let queue = &mut self.queues[id];
        queue.short_think = saved.short_think;
        queue.io_bound = saved.io_bound;
        queue.io_start_ns = saved.io_start_ns;
        queue.idle_ns = saved.idle_ns;
        queue.think = saved.think;
        queue.last_completion_ns = saved.last_completion_ns;
        queue.injection.baseline_ns = saved.baseline_ns;
        queue.injection.limit = saved.inject_limit;
        queue.injection.decreased_at = saved.inject_decreased_at;
        queue.raising.length = saved.raise_length;
        queue.raising.stamp = saved.raise_stamp;
        queue.raising.switched_at = saved.raise_switched_at;
        queue.raising.served = saved.raise_served;
        let in_large_burst = queue.in_large_burst;
        let over = now > queue.raising.stamp + queue.raising.length;
        let switched_at = queue.raising.switched_at;
        let entity = &mut self.entities[id.entity()];
        let before = entity.raise;
        entity.new_weight = saved.weight;
        if self.tunables.low_latency {
            entity.raise = saved.raise;
        }
        entity.changed = true;
        if entity.raise > 1 && (in_large_burst || over) {
            let still_interactive = now <= switched_at + self.interactive_duration();
            if self.is_soft_length(id) && !in_large_burst && still_interactive {
                self.back_to_interactive(id);
            } else {
                self.entities[id.entity()].raise = 1;
            }
        }
        if busy {
            let after = self.entities[id.entity()].raise;
            self.raised_busy += i32::from(after > 1) - i32::from(before > 1);
        }
    }
}
