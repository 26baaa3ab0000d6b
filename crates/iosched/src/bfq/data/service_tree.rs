//! A service tree: the entities of one group and class, in B-WF2Q+ order.
//!
//! Those that wait are in the active tree by finish; an entity is eligible when its start has come. Those that want
//! nothing but have had more than their share so far are remembered in the idle tree. Virtual time runs with the
//! service given, divided by the sum of all weights that count.

use super::entity::{ByFinish, Entities, EntityId, EntityTree, Virtual};
use crate::collections::{Id as _, RbTree};

/// The trees of one class, and its virtual time.
#[derive(Debug, Default)]
pub(in crate::bfq) struct ServiceTree {
    pub(in crate::bfq) active: RbTree<ByFinish>,
    pub(in crate::bfq) idle: RbTree<ByFinish>,
    /// What is taken for the last of the idle tree. Of equal finishes it may not be the last.
    last_idle: Option<EntityId>,
    pub(in crate::bfq) vtime: Virtual,
    /// Weights of the entities that wait, are in service, or are remembered.
    pub(in crate::bfq) weights: u64,
}

impl ServiceTree {
    /// Virtual time goes on by a service of `sectors`.
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

    /// The remembered entity that is to be forgotten, because what it had too much is made up for. With nobody
    /// waiting, virtual time falls to the last remembered finish first.
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

    /// Virtual time if it went on to where somebody is eligible.
    #[inline]
    pub(in crate::bfq) fn eligible_vtime(&self, entities: &Entities) -> Option<Virtual> {
        let root = self.active.root()?;
        Some(self.vtime.max(entities.node(root).subtree_start))
    }

    /// The entity to serve at `vtime`. The search goes left while somebody there is eligible and settles for the last
    /// eligible entity met, which need not have the earliest finish of all.
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

    /// Checks both trees.
    ///
    /// # Panics
    /// If something does not hold.
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
