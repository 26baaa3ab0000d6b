//! Entities: the objects that share the disk by weight. Each
//! queue and each group of queues is an entity.
//!
//! An entity has a budget and a position in virtual time. The budget is the number of sectors that
//! may be served before another entity is next.

use std::ops::{Index, IndexMut};

use super::group::GroupId;
use crate::collections::{Id, Kind, NIL, RbLinks, RbNode};

/// Fractional bits of virtual time. A unit of virtual time is one served sector at weight 1.
const SERVICE_SHIFT: u32 = 22;

/// Id of an entity. A queue and its entity have the same index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bfq) struct EntityId(u32);

impl Id for EntityId {
    #[inline]
    fn new(number: u32) -> Self {
        Self(number)
    }

    #[inline]
    fn number(self) -> u32 {
        self.0
    }
}

/// Point in virtual time. The value wraps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::bfq) struct Virtual(pub(in crate::bfq) u64);

impl Virtual {
    /// Returns whether this time is later than `other`.
    #[inline]
    pub(in crate::bfq) fn is_after(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i64) > 0
    }

    /// Returns the later of two times.
    #[inline]
    pub(in crate::bfq) fn max(self, other: Self) -> Self {
        if other.is_after(self) { other } else { self }
    }

    /// Returns the difference to `earlier`.
    #[inline]
    pub(in crate::bfq) fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the time after a service of `sectors` sectors at `weight`.
    #[inline]
    pub(in crate::bfq) fn after(self, sectors: i64, weight: u64) -> Self {
        Self(self.0.wrapping_add(((sectors as u64) << SERVICE_SHIFT) / weight))
    }

    /// Returns the time `difference` later.
    #[inline]
    pub(in crate::bfq) fn plus(self, difference: u64) -> Self {
        Self(self.0.wrapping_add(difference))
    }
}

/// Tree that contains an entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bfq) enum EntityTree {
    /// No tree: the entity is in service, or its position is forgotten.
    Nowhere,
    /// Active tree: the entity waits for service.
    Active,
    /// Idle tree: the entity has no requests, but its finish time is in the future.
    Idle,
}

/// Class of an entity: an index into the trees of its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::bfq) enum Class {
    RealTime,
    BestEffort,
    Idle,
}

impl Class {
    pub(in crate::bfq) const ALL: [Self; 3] = [Self::RealTime, Self::BestEffort, Self::Idle];

    #[inline]
    pub(in crate::bfq) fn index(self) -> usize {
        self as usize
    }
}

/// Entity that shares the disk by weight.
#[derive(Debug)]
pub(in crate::bfq) struct Entity {
    /// Served sectors of the budget.
    pub(in crate::bfq) service: i64,
    /// Budget, in sectors.
    pub(in crate::bfq) budget: i64,
    /// Present weight: the original weight, multiplied by `raise`.
    pub(in crate::bfq) weight: u32,
    pub(in crate::bfq) original_weight: u32,
    /// Weight that applies from the next enqueueing, if `changed`.
    pub(in crate::bfq) new_weight: u32,
    /// Factor of the original weight; 1 if it is not raised.
    pub(in crate::bfq) raise: u32,
    /// Group that contains the entity.
    pub(in crate::bfq) group: GroupId,
    /// Group that the entity represents; `None`: the entity is a queue.
    pub(in crate::bfq) own_group: Option<GroupId>,
    pub(in crate::bfq) class: Class,
    /// Class that applies from the next enqueueing, if `changed`.
    pub(in crate::bfq) new_class: Class,
    pub(in crate::bfq) changed: bool,
    pub(in crate::bfq) place: EntityTree,
}

impl Entity {
    pub(in crate::bfq) fn new(group: GroupId, own_group: Option<GroupId>, class: Class, weight: u32) -> Self {
        Self {
            service: 0,
            budget: 0,
            weight,
            original_weight: weight,
            new_weight: weight,
            raise: 1,
            group,
            own_group,
            class,
            new_class: class,
            changed: true,
            place: EntityTree::Nowhere,
        }
    }

    /// Returns the rest of the budget.
    #[inline]
    pub(in crate::bfq) fn left(&self) -> i64 {
        self.budget - self.service
    }
}

/// Position of an entity in virtual time and in a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bfq) struct Node {
    /// Virtual finish time of its budget.
    pub(in crate::bfq) finish: Virtual,
    /// Virtual start time.
    pub(in crate::bfq) start: Virtual,
    /// Earliest start time in its subtree.
    pub(in crate::bfq) subtree_start: Virtual,
    links: RbLinks,
}

/// Marker for trees of entities by finish time.
#[derive(Debug)]
pub(in crate::bfq) enum ByFinish {}

impl Kind for ByFinish {
    type Id = EntityId;
}

impl RbNode<ByFinish> for Node {
    #[inline]
    fn links(&self) -> &RbLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }

    const AUGMENTED: bool = true;

    #[inline]
    fn augment(&mut self, left: Option<u64>, right: Option<u64>) {
        let mut earliest = self.start;
        for child in [left, right].into_iter().flatten().map(Virtual) {
            if earliest.is_after(child) {
                earliest = child;
            }
        }
        self.subtree_start = earliest;
    }

    #[inline]
    fn augmented(&self) -> u64 {
        self.subtree_start.0
    }
}

/// All entities. Their positions are stored apart, so that a search reads little memory.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Entities {
    slots: Vec<Entity>,
    pub(in crate::bfq) nodes: Vec<Node>,
    free: Vec<EntityId>,
}

impl Entities {
    /// Creates an id for `entity`: a free id, or the next id.
    pub(in crate::bfq) fn create(&mut self, entity: Entity) -> EntityId {
        if let Some(id) = self.free.pop() {
            self.nodes[id.0 as usize] = Node::default();
            self[id] = entity;
            return id;
        }
        let number = u32::try_from(self.slots.len()).ok().filter(|&n| n != NIL).expect("fewer than 2^32 entities");
        self.slots.push(entity);
        self.nodes.push(Node::default());
        EntityId(number)
    }

    pub(in crate::bfq) fn free(&mut self, id: EntityId) {
        debug_assert!(self[id].place == EntityTree::Nowhere);
        self.free.push(id);
    }

    pub(in crate::bfq) fn len(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    pub(in crate::bfq) fn node(&self, id: EntityId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    #[inline]
    pub(in crate::bfq) fn node_mut(&mut self, id: EntityId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }
}

impl Index<EntityId> for Entities {
    type Output = Entity;

    #[inline]
    fn index(&self, id: EntityId) -> &Entity {
        &self.slots[id.0 as usize]
    }
}

impl IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.slots[id.0 as usize]
    }
}
