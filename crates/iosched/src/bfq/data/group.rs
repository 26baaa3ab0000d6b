//! Groups: the queues and groups of one cgroup, which share by weight what the cgroup gets.

use std::ops::{Index, IndexMut};

use super::entity::EntityId;
use super::queue::QueueId;
use super::service_tree::ServiceTree;
use crate::context::{CgroupId, LEVEL_MAX};
use crate::parts::position_tree::PositionTree;

/// A group in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bfq) struct GroupId(pub(in crate::bfq) u32);

impl GroupId {
    pub(in crate::bfq) const ROOT: Self = Self(0);
}

/// One group.
#[derive(Debug)]
pub(in crate::bfq) struct Group {
    pub(in crate::bfq) cgroup: CgroupId,
    /// What stands for it in its parent; the root has none.
    pub(in crate::bfq) entity: Option<EntityId>,
    /// By [`Class::index`].
    pub(in crate::bfq) trees: [ServiceTree; 3],
    pub(in crate::bfq) in_service: Option<EntityId>,
    /// To be served next, as found when it was last looked for.
    pub(in crate::bfq) next: Option<EntityId>,
    /// When the idle class was last looked at, in jiffies.
    pub(in crate::bfq) idle_class_at: i64,
    /// Entities in the active trees.
    pub(in crate::bfq) active_children: u32,
    /// Queues because of which it counts as a group with requests.
    pub(in crate::bfq) pending_queues: u32,
    /// Requests that belong to queues of it or below.
    pub(in crate::bfq) requests: i64,
    /// Queues by their next sectors.
    pub(in crate::bfq) positions: PositionTree<QueueId>,
    /// The queue that came up last.
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

/// All groups; the root is always there, the others since their first request.
#[derive(Debug)]
pub(in crate::bfq) struct Groups {
    pub(in crate::bfq) slots: Vec<Group>,
    /// By [`CgroupId::index`].
    pub(in crate::bfq) of_cgroup: Vec<Option<GroupId>>,
}

impl Groups {
    /// With the root alone, at jiffy `now`.
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
