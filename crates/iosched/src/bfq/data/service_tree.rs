//! Service tree: the entities of one group and class, in B-WF2Q+ order.
//!
//! Waiting entities are in the active tree by finish time; an entity is eligible from its start
//! time. Entities without requests that got more than their share so far are in the idle tree.
//! Virtual time increases with the service, divided by the sum of the weights of all entities in
//! the trees or in service.

use super::entity::{ByFinish, Entities, EntityId, EntityTree, Virtual};
use crate::collections::{Id as _, RbTree};

/// Trees of one class, and its virtual time.
#[derive(Debug, Default)]
pub(in crate::bfq) struct ServiceTree {
    pub(in crate::bfq) active: RbTree<ByFinish>,
    pub(in crate::bfq) idle: RbTree<ByFinish>,
    /// Entity that counts as the last of the idle tree. With
    /// equal finish times, it may not be the last.
    last_idle: Option<EntityId>,
    pub(in crate::bfq) vtime: Virtual,
    /// Sum of the weights of entities that wait, are in service, or are in the idle tree.
    pub(in crate::bfq) weights: u64,
}

impl ServiceTree {
    /// Advances virtual time by a service of `sectors`.
    #[inline]
    pub(in crate::bfq) fn served(&mut self, sectors: i64) {
        self.vtime = self.vtime.after(sectors, self.weights);
    }

    #[inline]
    pub(in crate::bfq) fn insert_active(&mut self, entities: &mut Entities, id: EntityId) {
        let finish = entities.node(id).finish;
        self.active.insert(&mut entities.nodes, id, |at| at.finish.is_after(finish));
        entities[id].place = EntityTree::Active;
    }

    #[inline]
    pub(in crate::bfq) fn remove_active(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, EntityTree::Active);
        self.active.remove(&mut entities.nodes, id);
        entities[id].place = EntityTree::Nowhere;
    }

    pub(in crate::bfq) fn insert_idle(&mut self, entities: &mut Entities, id: EntityId) {
        let finish = entities.node(id).finish;
        if self.last_idle.is_none_or(|last| finish.is_after(entities.node(last).finish)) {
            self.last_idle = Some(id);
        }
        self.idle.insert(&mut entities.nodes, id, |at| at.finish.is_after(finish));
        entities[id].place = EntityTree::Idle;
    }

    pub(in crate::bfq) fn remove_idle(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, EntityTree::Idle);
        if self.last_idle == Some(id) {
            self.last_idle = self.idle.prev(&entities.nodes, id);
        }
        self.idle.remove(&mut entities.nodes, id);
        entities[id].place = EntityTree::Nowhere;
    }

    /// Returns an entity of the idle tree whose surplus has been compensated, so that it can be
    /// forgotten. If no entity waits, virtual time first falls back to the last finish time of the
    /// idle tree.
    #[inline]
    pub(in crate::bfq) fn forgettable(&mut self, entities: &Entities) -> Option<EntityId> {
        let first = self.idle.first()?;
        if self.active.is_empty()
            && let Some(last) = self.last_idle
        {
            let finish = entities.node(last).finish;
            if !finish.is_after(self.vtime) {
                self.vtime = finish;
            }
        }
        (!entities.node(first).finish.is_after(self.vtime)).then_some(first)
    }

    /// Returns the virtual time, advanced until at least one entity is eligible.
    #[inline]
    pub(in crate::bfq) fn eligible_vtime(&self, entities: &Entities) -> Option<Virtual> {
        let root = self.active.root()?;
        Some(self.vtime.max(entities.node(root).subtree_start))
    }

    /// Returns the entity to serve at `vtime`. The search goes left while an entity there is
    /// eligible, and returns the last eligible entity that it met. That entity need not have the
    /// earliest finish time of all.
    #[inline]
    pub(in crate::bfq) fn pick(&self, entities: &Entities, vtime: Virtual) -> Option<EntityId> {
        let nodes = entities.nodes.as_slice();
        let mut best = None;
        let mut at = self.active.root();
        while let Some(id) = at {
            if !nodes[id.number() as usize].start.is_after(vtime) {
                best = Some(id);
            }
            let left = self.active.left(nodes, id);
            if left.is_some_and(|left| !nodes[left.number() as usize].subtree_start.is_after(vtime)) {
                at = left;
            } else if best.is_some() {
                break;
            } else {
                at = self.active.right(nodes, id);
            }
        }
        best
    }

    /// Checks both trees. Returns the number of entities.
    ///
    /// # Panics
    /// If a check fails.
    pub(in crate::bfq) fn check(&self, entities: &Entities) -> usize {
        let in_order = |a: &super::entity::Node, b: &super::entity::Node| !a.finish.is_after(b.finish);
        let active = self.active.check(&entities.nodes, in_order);
        let mut at = self.active.first();
        while let Some(id) = at {
            let children = [self.active.left(&entities.nodes, id), self.active.right(&entities.nodes, id)];
            let mut earliest = entities.node(id).start;
            for child in children.into_iter().flatten() {
                let start = entities.node(child).subtree_start;
                earliest = if earliest.is_after(start) { start } else { earliest };
            }
            assert_eq!(entities.node(id).subtree_start, earliest, "the earliest start of a subtree is known");
            assert_eq!(entities[id].place, EntityTree::Active);
            at = self.active.next(&entities.nodes, id);
        }
        self.idle.check(&entities.nodes, in_order);
        let mut weights = 0;
        let mut at = self.idle.first();
        while let Some(id) = at {
            assert_eq!(entities[id].place, EntityTree::Idle);
            weights += u64::from(entities[id].weight);
            at = self.idle.next(&entities.nodes, id);
        }
        assert!(weights <= self.weights, "remembered weights count");
        active
    }
}
