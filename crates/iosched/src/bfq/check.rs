//! Invariants between BFQ's counters and its contents.

use super::Bfq;
use super::data::entity::EntityTree;
use super::data::queue::QueueId;
use crate::collections::Id;
use crate::env::Env;

impl Bfq {
    /// Checks counters, trees and references.
    ///
    /// # Panics
    /// If a check fails.
    pub(super) fn check_all(&self, env: &Env) {
        let ids: Vec<QueueId> = self.queues.ids().collect();
        let mut queued = 0;
        let mut in_flight = 0;
        for &id in &ids {
            let queue = &self.queues[id];
            let entity = &self.entities[id.entity()];
            assert_eq!(queue.sorted.check(&env.requests), queue.queued as usize);
            assert_eq!(queue.next.is_some(), queue.queued > 0, "a queue with requests knows its next request");
            assert!(queue.requests >= queue.queued + queue.in_flight);
            assert!(queue.busy || queue.is_empty(), "a queue with requests is busy");
            assert_eq!(queue.busy, entity.place == EntityTree::Active || self.active == Some(id));
            assert!(!queue.positioned || !queue.is_empty(), "only a queue with requests has a position");
            assert_eq!(queue.pending, queue.busy || queue.in_flight > 0, "its group counts each queue with requests");
            assert!(!queue.counted || queue.pending);
            assert_eq!(entity.raise > 1, entity.original_weight * entity.raise > entity.original_weight);
            assert!(
                queue.processes > 0
                    || queue.requests > 0
                    || queue.candidates > 0
                    || queue.counted
                    || self.is_on_tree_or_in_service(id.entity()),
                "no unused object remains"
            );
            self.count_woken(id);
            queued += queue.queued;
            in_flight += queue.in_flight;
        }
        assert_eq!(queued, self.queued);
        assert_eq!(in_flight, self.in_driver);
        let count = |test: &dyn Fn(QueueId) -> bool| ids.iter().filter(|&&id| test(id)).count();
        assert_eq!(count(&|id| self.queues[id].busy), self.busy as usize);
        assert_eq!(count(&|id| self.queues[id].counted), self.weights.total() as usize);
        self.check_uses(&ids);
        self.check_groups(&ids);
    }

    /// Checks that every use of a queue by a process is counted.
    fn check_uses(&self, ids: &[QueueId]) {
        let mut uses = vec![0; self.entities.len()];
        let mut candidates = vec![0; self.entities.len()];
        for process in self.processes.iter().flatten() {
            for queue in process.queues.into_iter().flatten() {
                uses[queue.number() as usize] += 1;
                let mut at = self.queues[queue].planned;
                while let Some(planned) = at {
                    uses[planned.number() as usize] += 1;
                    at = self.queues[planned].planned;
                }
            }
            if let Some(candidate) = process.candidate {
                candidates[candidate.number() as usize] += 1;
            }
        }
        for group in self.groups.ids() {
            for queue in self.groups[group].async_queues.iter().flatten().flatten() {
                uses[queue.number() as usize] += 1;
            }
        }
        for &id in ids {
            let queue = &self.queues[id];
            assert_eq!(queue.processes, uses[id.number() as usize], "the number of processes of a queue is correct");
            assert_eq!(queue.candidates, candidates[id.number() as usize]);
        }
    }

    fn check_groups(&self, ids: &[QueueId]) {
        let mut waiting = 0;
        let mut pending_groups = 0;
        for group in self.groups.ids() {
            let slot = &self.groups[group];
            let active: usize = slot.trees.iter().map(|tree| tree.check(&self.entities)).sum();
            assert_eq!(active, slot.active_children as usize);
            let members = || ids.iter().filter(|id| self.entities[id.entity()].group == group);
            assert_eq!(members().filter(|&&id| self.queues[id].pending).count(), slot.pending_queues as usize);
            let positioned = slot.positions.check(&self.queues.positions);
            assert_eq!(members().filter(|&&id| self.queues[id].positioned).count(), positioned);
            waiting += members().filter(|id| self.entities[id.entity()].place == EntityTree::Active).count();
            pending_groups += u32::from(slot.pending_queues > 0 && self.rules.counts(group));
            assert!(slot.next.is_none_or(|next| self.entities[next].group == group));
            assert!(slot.in_service.is_none() || self.active.is_some());
        }
        assert_eq!(pending_groups, self.pending_groups);
        let mut listed = 0;
        let mut at = self.waiting.first();
        while let Some(id) = at {
            listed += 1;
            at = self.queues.waiting[id.number() as usize].next();
        }
        assert_eq!(listed, waiting);
    }
}
