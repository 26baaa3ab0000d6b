//! Weights in use: whether all queues with requests have equal shares. BFQ then need not enforce
//! the shares.

use super::Bfq;
use super::data::queue::QueueId;
use crate::env::Env;

/// Distinct weights, smallest first, with the number of queues of each.
#[derive(Debug, Default)]
pub(super) struct Weights {
    counts: Vec<(u32, u32)>,
}

impl Weights {
    pub(super) fn add(&mut self, weight: u32) {
        match self.counts.binary_search_by_key(&weight, |&(weight, _)| weight) {
            Ok(at) => self.counts[at].1 += 1,
            Err(at) => self.counts.insert(at, (weight, 1)),
        }
    }

    pub(super) fn remove(&mut self, weight: u32) {
        let place = self.counts.binary_search_by_key(&weight, |&(weight, _)| weight);
        debug_assert!(place.is_ok(), "a removed weight was counted before");
        let Ok(at) = place else { return };
        self.counts[at].1 -= 1;
        if self.counts[at].1 == 0 {
            self.counts.remove(at);
        }
    }

    /// Returns the smallest weight, if there are different weights.
    #[inline]
    pub(super) fn smallest_of_several(&self) -> Option<u32> {
        (self.counts.len() > 1).then(|| self.counts[0].0)
    }

    pub(super) fn total(&self) -> u32 {
        self.counts.iter().map(|&(_, count)| count).sum()
    }
}

impl Bfq {
    /// Counts the weight of a queue, if it is not counted yet.
    #[inline]
    pub(super) fn count_weight(&mut self, id: QueueId) {
        if !std::mem::replace(&mut self.queues[id].counted, true) {
            self.weights.add(self.entities[id.entity()].weight);
        }
    }

    /// Stops counting the weight of a queue. Called before the weight changes.
    #[inline]
    pub(super) fn uncount_weight(&mut self, id: QueueId) {
        if std::mem::take(&mut self.queues[id].counted) {
            self.weights.remove(self.entities[id.entity()].weight);
        }
    }

    /// Handles a queue without requests in flight that becomes busy.
    pub(super) fn begin_pending(&mut self, id: QueueId) {
        self.add_pending(id);
        if self.entities[id.entity()].raise == 1 {
            self.count_weight(id);
        }
    }

    /// Handles a queue that has no queued request and none in flight any more.
    pub(super) fn end_pending(&mut self, id: QueueId) {
        self.remove_pending(id);
        self.uncount_weight(id);
    }

    /// Counts the queue among the queues that give its group pending requests.
    pub(super) fn add_pending(&mut self, id: QueueId) {
        if !std::mem::replace(&mut self.queues[id].pending, true) {
            let at = self.entities[id.entity()].group;
            let group = &mut self.groups[at];
            group.pending_queues += 1;
            self.pending_groups += u32::from(group.pending_queues == 1 && self.rules.counts(at));
        }
    }

    pub(super) fn remove_pending(&mut self, id: QueueId) -> bool {
        let was = std::mem::take(&mut self.queues[id].pending);
        if was {
            let at = self.entities[id.entity()].group;
            let group = &mut self.groups[at];
            group.pending_queues -= 1;
            self.pending_groups -= u32::from(group.pending_queues == 0 && self.rules.counts(at));
        }
        was
    }

    /// Returns whether shares differ. BFQ must then limit the queue, if given, to its share.
    pub(super) fn is_asymmetric(&self, id: Option<QueueId>) -> bool {
        let smallest = |id: QueueId, weight| self.queues[id].counted && self.entities[id.entity()].weight == weight;
        let weights = self.weights.smallest_of_several();
        weights.is_some_and(|weight| !id.is_some_and(|id| smallest(id, weight)))
            || self.busy_of_class.iter().filter(|&&busy| busy != 0).count() > 1
            || self.pending_groups > self.rules.equal_groups
    }

    /// Returns whether idling for the queue increases the throughput of the device.
    pub(super) fn idling_boosts(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if queue.processes == 0 || self.raised_busy != 0 {
            return false;
        }
        let tag = self.depth.verdict();
        if env.rotational && tag == 0 {
            return true;
        }
        (env.rotational || tag == 0) && !queue.is_seeky() && queue.io_bound && queue.short_think
    }

    /// Returns whether idling for the queue is needed to give the queue its share.
    pub(super) fn idling_needed(&self, id: QueueId) -> bool {
        /// Smallest number of other queues' requests in the device that may delay a raised queue.
        const OTHERS: u32 = 4;
        let queue = &self.queues[id];
        let raised = self.entities[id.entity()].raise > 1;
        queue.processes > 0
            && ((raised && (self.raised_busy < self.busy as i32 || self.in_driver >= queue.in_flight + OTHERS))
                || self.is_asymmetric(Some(id))
                || (self.busy == 1 && self.rules.waits_for_lone))
    }

    /// Returns whether to idle for the queue instead of serving another queue.
    pub(super) fn better_to_idle(&self, env: &Env, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if queue.processes == 0 {
            return false;
        }
        if self.tunables.strict_guarantees {
            return true;
        }
        let class = self.entities[id.entity()].class;
        if self.tunables.slice_idle_ns == 0 || !queue.sync || class == super::data::entity::Class::Idle {
            return false;
        }
        self.idling_boosts(env, id) || self.idling_needed(id)
    }
}
