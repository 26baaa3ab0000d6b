//! Merging of queues. Processes that access the same area of the disk share one queue. Processes
//! whose queues were created together also share one queue. On fast devices with command queueing,
//! BFQ merges only queues that were created together.
//!
//! A merge is planned first. The process moves with its next request or bio.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::QueueId;
use super::rules::Together;
use crate::context::ContextId;
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::request::Sector;

/// Largest distance of close requests, in sectors.
pub(super) const CLOSE_SECTORS: u64 = 8192;
/// Time after a queue's first service in which the queue may be merged, as a fraction of a second.
const LATE_FRACTION: u64 = 10;
/// Queues that are created within this time of each other belong together, ms.
const AT_ONCE_MS: u64 = 180;

impl Bfq {
    /// Returns whether the device has no seeks and may queue commands.
    /// Merging by proximity then has no advantage.
    #[inline]
    pub(super) fn is_fast(&self, env: &Env) -> bool {
        !env.rotational && self.depth.verdict() != 0
    }

    /// Returns whether a queue has been served too long for a merge by proximity.
    pub(super) fn is_late(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        queue.served_since_backlogged > 0 && self.jiffies(env) > queue.first_io + self.second_fraction(LATE_FRACTION)
    }

    /// Returns the other queue that the process of `id` must share from now on, if any. The process
    /// accesses `sector`.
    pub(super) fn cooperator(
        &mut self,
        env: &mut Env,
        id: QueueId,
        sector: Sector,
        context: ContextId,
    ) -> Option<QueueId> {
        if self.queues[id].planned.is_some() {
            return Some(self.end_of_plan(id));
        }
        let fast = self.is_fast(env);
        let now = self.jiffies(env);
        let queue = &self.queues[id];
        if !fast
            && queue.sync
            && !queue.just_created
            && let Some(Together { age_ms, .. }) = self.rules.together
            && now > queue.split_at + self.milliseconds(age_ms)
            && now > queue.created_at + self.milliseconds(age_ms)
            && let Some(candidate) = self.process(context).and_then(|process| process.candidate)
        {
            return self.merge_stably(env, id, candidate, context);
        }
        if fast || self.is_late(env, id) || self.busy == 1 {
            return None;
        }
        if let Some(active) = self.active.filter(|&active| active != id)
            && sector.abs_diff(self.turn.position) <= CLOSE_SECTORS
            && self.entities[active.entity()].group == self.entities[id.entity()].group
            && self.may_cooperate(env, id, active)
            && let Some(into) = self.plan(id, active)
        {
            return Some(into);
        }
        let close = self.close_queue(id, sector).filter(|&close| close != id)?;
        if self.may_cooperate(env, id, close) { self.plan(id, close) } else { None }
    }

    /// Merges a queue with its candidate when both are old enough, unless idling for the queue
    /// alone is worthwhile.
    fn merge_stably(&mut self, env: &mut Env, id: QueueId, candidate: QueueId, context: ContextId) -> Option<QueueId> {
        let used = self.queues[id].processes > 0 && self.queues[candidate].processes > 0;
        self.drop_candidate(env, context);
        if !used || self.idling_boosts(env, id) {
            return None;
        }
        let into = self.plan(id, candidate)?;
        self.mark_stable(context, into);
        Some(into)
    }

    fn mark_stable(&mut self, context: ContextId, into: QueueId) {
        self.process_mut(context).stably_merged = true;
        if let Some(owner) = self.queues[into].owner {
            self.process_mut(owner).stably_merged = true;
        }
    }

    /// Returns whether the kinds of two queues allow that their processes share a queue.
    fn may_cooperate(&self, env: &Env, id: QueueId, other: QueueId) -> bool {
        let (queue, candidate) = (&self.queues[id], &self.queues[other]);
        let [class, other_class] = [id, other].map(|id| self.entities[id.entity()].class);
        !self.is_late(env, other)
            && class != Class::Idle
            && class == other_class
            && !queue.is_seeky()
            && !candidate.is_seeky()
            && queue.sync
            && candidate.sync
    }

    fn end_of_plan(&self, mut id: QueueId) -> QueueId {
        while let Some(next) = self.queues[id].planned {
            id = next;
        }
        id
    }

    /// Plans that the processes of `id` share `into`. If `into` is planned to join another queue,
    /// the processes share the last queue of this chain of plans.
    fn plan(&mut self, id: QueueId, into: QueueId) -> Option<QueueId> {
        if self.queues[into].processes == 0 {
            return None;
        }
        let mut end = into;
        loop {
            if end == id {
                return None;
            }
            match self.queues[end].planned {
                Some(next) => end = next,
                None => break,
            }
        }
        let processes = self.queues[id].processes;
        let [group, end_group] = [id, end].map(|id| self.entities[id.entity()].group);
        if processes == 0 || self.queues[end].processes == 0 || group != end_group {
            return None;
        }
        self.queues[id].planned = Some(end);
        self.queues[end].processes += processes;
        Some(end)
    }

    /// Cancels the plan of a process that leaves `id` before the merge.
    pub(super) fn undo_plan(&mut self, env: &mut Env, id: QueueId) {
        let mut at = self.queues[id].planned;
        while let Some(queue) = at {
            at = self.queues[queue].planned;
            self.queues[queue].processes -= 1;
            self.reap(env, queue);
        }
        if self.queues[id].processes <= 1 {
            self.queues[id].planned = None;
        }
    }

    /// Moves the process from `id` along all plans to `end`.
    pub(super) fn follow_plan(&mut self, env: &mut Env, context: ContextId, mut id: QueueId, end: QueueId) {
        while id != end
            && let Some(into) = self.queues[id].planned
        {
            self.merge_queues(env, context, id, into);
            id = into;
        }
    }

    /// Moves the process from queue `id` to `into`.
    fn merge_queues(&mut self, env: &mut Env, context: ContextId, id: QueueId, into: QueueId) {
        self.note_merge(env, id, into);
        self.save(env, id);
        self.save(env, into);
        let io_bound = std::mem::take(&mut self.queues[id].io_bound);
        self.queues[into].io_bound |= io_bound;
        if self.rules.serves_woken
            && let Some(waker) = self.queues[id].waker
            && self.queues[into].waker.is_none()
            && waker != into
        {
            self.queues[into].tentative_waker = 0;
            self.set_waker(into, waker);
        }
        self.hand_over_raising(id, into);
        self.attach(env, context, true, Some(into));
        self.queues[into].coop = true;
        self.queues[into].owner = None;
        self.queues[id].owner = None;
        let group = self.entities[id.entity()].group;
        if self.groups[group].last_created == Some(id) {
            self.groups[group].last_created = Some(into);
        }
        self.release_process(env, id);
    }

    /// Raises a shared queue if the queue that joins it was raised.
    fn hand_over_raising(&mut self, id: QueueId, into: QueueId) {
        let raise = self.entities[id.entity()].raise;
        if raise == 1 {
            return;
        }
        if self.entities[into.entity()].raise == 1 {
            let from = &self.queues[id].raising;
            let (length, stamp, switched_at) = (from.length, from.stamp, from.switched_at);
            let to = &mut self.queues[into];
            (to.raising.length, to.raising.stamp, to.raising.switched_at) = (length, stamp, switched_at);
            self.raised_busy += i32::from(to.busy);
            let entity = &mut self.entities[into.entity()];
            entity.raise = raise;
            entity.changed = true;
        }
        self.raised_busy -= i32::from(self.queues[id].busy);
        let entity = &mut self.entities[id.entity()];
        entity.raise = 1;
        entity.changed = true;
    }

    /// Compares a new queue with the queue that was created before it. If both were created
    /// together, a fast device merges them immediately; other devices may merge them later.
    pub(super) fn meet_last_created(&mut self, env: &mut Env, context: ContextId, id: QueueId) -> QueueId {
        let Some(Together { window_ms, .. }) = self.rules.together else { return id };
        let now = self.jiffies(env);
        let group = self.entities[id.entity()].group;
        let last = self.groups[group].last_created;
        let alike = last.filter(|&last| {
            let [class, last_class] = [id, last].map(|id| self.entities[id.entity()].class);
            let last = &self.queues[last];
            last.created_at + self.milliseconds(window_ms) >= now
                && last.level == self.queues[id].level
                && last_class == class
        });
        let Some(last) = alike else {
            self.groups[group].last_created = Some(id);
            return id;
        };
        if self.queues[last].created_at + self.milliseconds(AT_ONCE_MS) < now {
            return id;
        }
        if self.is_fast(env) {
            let Some(into) = self.plan(id, last) else { return id };
            self.mark_stable(context, into);
            self.follow_plan(env, context, id, into);
            return into;
        }
        self.drop_candidate(env, context);
        self.process_mut(context).candidate = Some(last);
        self.queues[last].candidates += 1;
        id
    }

    /// Merges the queue of the process if its request or bio at `sector` requires that. Returns the
    /// queue of the process afterwards.
    pub(super) fn merge_if_close(&mut self, env: &mut Env, context: ContextId, id: QueueId, sector: Sector) -> QueueId {
        match self.cooperator(env, id, sector, context) {
            Some(into) => {
                self.follow_plan(env, context, id, into);
                into
            }
            None => id,
        }
    }

    /// Records that a process leaves a shared queue.
    pub(super) fn note_split(&self, env: &mut Env, id: QueueId) {
        let queue = self.queues[id].serial;
        env.note(|| BfqEvent::Split { queue }.into());
    }
}
