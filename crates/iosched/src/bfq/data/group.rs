//! Groups: the queues and groups of one cgroup, which share the service of the cgroup by weight.

use std::ops::{Index, IndexMut};

use super::entity::EntityId;
use super::queue::QueueId;
use super::service_tree::ServiceTree;
use crate::context::{CgroupId, LEVEL_MAX};
use crate::parts::position_tree::PositionTree;

/// Id of a group in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bfq) struct GroupId(pub(in crate::bfq) u32);

impl GroupId {
    pub(in crate::bfq) const ROOT: Self = Self(0);
}

/// Group of one cgroup.
#[derive(Debug)]
pub(in crate::bfq) struct Group {
    pub(in crate::bfq) cgroup: CgroupId,
    /// Entity of the group in its parent; the root has none.
    pub(in crate::bfq) entity: Option<EntityId>,
    /// Service trees by [`Class::index`].
    pub(in crate::bfq) trees: [ServiceTree; 3],
    pub(in crate::bfq) in_service: Option<EntityId>,
    /// Next entity to serve, from the last search.
    pub(in crate::bfq) next: Option<EntityId>,
    /// Time of the last check of the idle class, in jiffies.
    pub(in crate::bfq) idle_class_at: i64,
    /// Number of entities in the active trees.
    pub(in crate::bfq) active_children: u32,
    /// Number of queues with pending requests. They make the group count as a group with requests.
    pub(in crate::bfq) pending_queues: u32,
    /// Number of requests of queues in the group or below it.
    pub(in crate::bfq) requests: i64,
    /// Queues by their next sectors.
    pub(in crate::bfq) positions: PositionTree<QueueId>,
    /// Most recently created queue.
    pub(in crate::bfq) last_created: Option<QueueId>,
    /// Async queues by class and level.
    pub(in crate::bfq) async_queues: [[Option<QueueId>; LEVEL_MAX as usize + 1]; 3],
}

impl Group {
    pub(in crate::bfq) fn new(cgroup: CgroupId, entity: Option<EntityId>, idle_class_at: i64) -> Self {
        Self {
            cgroup,
            entity,
            trees: Default::default(),
            in_service: None,
            next: None,
            idle_class_at,
            active_children: 0,
            pending_queues: 0,
            requests: 0,
            positions: PositionTree::default(),
            last_created: None,
            async_queues: Default::default(),
        }
    }
}

/// All groups. The root always exists; other groups exist since their first request.
#[derive(Debug)]
pub(in crate::bfq) struct Groups {
    pub(in crate::bfq) slots: Vec<Group>,
    /// Groups by [`CgroupId::index`].
    pub(in crate::bfq) of_cgroup: Vec<Option<GroupId>>,
}

impl Groups {
    /// Creates the table with the root only, at jiffy `now`.
    pub(in crate::bfq) fn new(now: i64) -> Self {
        Self { slots: vec![Group::new(CgroupId::ROOT, None, now)], of_cgroup: vec![Some(GroupId::ROOT)] }
    }

    pub(in crate::bfq) fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.slots.len() as u32).map(GroupId)
    }

    pub(in crate::bfq) fn get(&self, cgroup: CgroupId) -> Option<GroupId> {
        self.of_cgroup.get(cgroup.index()).copied().flatten()
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;

    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.slots[id.0 as usize]
    }
}

impl IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.slots[id.0 as usize]
    }
}
