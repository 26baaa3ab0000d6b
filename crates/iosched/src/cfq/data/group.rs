//! Groups: the queues of one cgroup, with the share of the
//! disk that follows from the cgroup's weight.
//!
//! Groups take turns by virtual time: each turn is charged in inverse
//! proportion to the group's fraction of all weights.

use std::ops::{Index, IndexMut};

use super::queue::QueueId;
use super::service_tree::{Class, ServiceTree, TreeIndex, WORKLOADS};
use crate::collections::{Id, Kind, RbLinks, RbNode, RbTree};
use crate::context::{CgroupId, LEVEL_MAX};
use crate::decision::Workload;
use crate::env::Env;
use crate::parts::think_time::ThinkTime;

/// Fractional bits of fractions and charges.
pub(in crate::cfq) const FRACTION_BITS: u32 = 12;

/// Id of a group in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cfq) struct GroupId(u32);

impl GroupId {
    pub(in crate::cfq) const ROOT: Self = Self(0);
}

impl Id for GroupId {
    fn new(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

/// Group of one cgroup.
#[derive(Debug)]
pub(in crate::cfq) struct Group {
    pub(in crate::cfq) cgroup: CgroupId,
    parent: Option<GroupId>,
    pub(in crate::cfq) trees: [ServiceTree; TreeIndex::COUNT],
    pub(in crate::cfq) think_time: ThinkTime,
    /// Number of queues on its trees.
    pub(in crate::cfq) busy_queues: u32,
    /// Number of requests that are dispatched and not complete.
    pub(in crate::cfq) in_flight: u32,
    /// Decaying averages of the number of busy queues: best effort and real time.
    average_busy: [u32; 2],
    /// Rest of the workload's slice at the last expiry, in ticks. The next two fields are the class
    /// and the kind of that workload.
    pub(in crate::cfq) saved: u64,
    pub(in crate::cfq) saved_class: Class,
    pub(in crate::cfq) saved_workload: Workload,
    /// Async queues that its processes share: real time and best effort by level, and idle.
    async_queues: [[Option<QueueId>; LEVEL_MAX as usize + 1]; 3],

    // Weights.
    weight: u32,
    leaf_weight: u32,
    /// Number of active members. They are the group itself, if it is on the tree, and each child
    /// that is active or has an active descendant.
    active_children: u32,
    /// Sum of the weights of these members.
    children_weight: u32,
    pub(in crate::cfq) fraction: u32,
    pub(in crate::cfq) vtime: u64,
    pub(in crate::cfq) on_tree: bool,
    links: RbLinks,
}

impl Group {
    fn new(env: &Env, now: u64, cgroup: CgroupId, parent: Option<GroupId>) -> Self {
        Self {
            cgroup,
            parent,
            trees: std::array::from_fn(|_| ServiceTree::new(now)),
            think_time: ThinkTime::new(now),
            busy_queues: 0,
            in_flight: 0,
            average_busy: [0; 2],
            saved: 0,
            saved_class: Class::BestEffort,
            saved_workload: Workload::Async,
            async_queues: Default::default(),
            weight: env.cgroups.weight(cgroup),
            leaf_weight: env.cgroups.leaf_weight(cgroup),
            active_children: 0,
            children_weight: 0,
            fraction: 0,
            vtime: 0,
            on_tree: false,
            links: RbLinks::default(),
        }
    }

    /// Returns the number of busy queues of a class.
    #[inline]
    pub(in crate::cfq) fn busy_of(&self, class: Class) -> u32 {
        match class {
            Class::Idle => self.trees[TreeIndex::IDLE.index()].count,
            class => WORKLOADS.iter().map(|&w| self.trees[TreeIndex::of(class, w).index()].count).sum(),
        }
    }

    /// Returns the number of busy async queues of all classes except idle.
    pub(in crate::cfq) fn busy_async(&self) -> u32 {
        let count = |class| self.trees[TreeIndex::of(class, Workload::Async).index()].count;
        count(Class::RealTime) + count(Class::BestEffort)
    }

    /// Updates and returns the average number of busy queues of a class.
    pub(in crate::cfq) fn average_queues(&mut self, real_time: bool) -> u32 {
        let busy = self.busy_of(if real_time { Class::RealTime } else { Class::BestEffort });
        let average = &mut self.average_busy[usize::from(real_time)];
        *average = (3 * busy.max(*average) + busy.min(*average) + 2) / 4;
        *average
    }

    /// Returns the number of busy queues of a class, or their average if that is larger.
    pub(in crate::cfq) fn expected_queues(&self, class: Class) -> u32 {
        let average = match class {
            Class::BestEffort => self.average_busy[0],
            Class::RealTime => self.average_busy[1],
            Class::Idle => 0,
        };
        average.max(self.busy_of(class))
    }

    /// Returns the entry of the async queue of a class and level.
    pub(in crate::cfq) fn async_queue(&mut self, class: Class, level: u8) -> &mut Option<QueueId> {
        match class {
            Class::RealTime => &mut self.async_queues[0][usize::from(level)],
            Class::BestEffort => &mut self.async_queues[1][usize::from(level)],
            Class::Idle => &mut self.async_queues[2][0],
        }
    }
}

/// Marker for trees of groups by virtual time.
#[derive(Debug)]
pub(in crate::cfq) enum ByVtime {}

impl Kind for ByVtime {
    type Id = GroupId;
}

/// All groups; number 0 is the root group.
#[derive(Debug)]
pub(in crate::cfq) struct Groups {
    table: Vec<Group>,
    by_cgroup: Vec<Option<GroupId>>,
    tree: RbTree<ByVtime>,
    pub(in crate::cfq) min_vtime: u64,
}

impl Index<GroupId> for Groups {
    type Output = Group;

    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.table[id.0 as usize]
    }
}

impl IndexMut<GroupId> for Groups {
    #[inline]
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.table[id.0 as usize]
    }
}

impl RbNode<ByVtime> for Group {
    fn links(&self) -> &RbLinks {
        &self.links
    }

    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }
}

impl Groups {
    /// Creates the table with the root group, at the time `now` on the elevator's clock.
    pub(in crate::cfq) fn new(env: &Env, now: u64) -> Self {
        let root = Group::new(env, now, CgroupId::ROOT, None);
        Self { table: vec![root], by_cgroup: vec![Some(GroupId::ROOT)], tree: RbTree::default(), min_vtime: 0 }
    }

    /// Returns the group of a cgroup. Creates it at the time
    /// `now` if this is the cgroup's first process.
    pub(in crate::cfq) fn of(&mut self, env: &Env, now: u64, cgroup: CgroupId) -> GroupId {
        if let Some(&Some(found)) = self.by_cgroup.get(cgroup.index()) {
            return found;
        }
        let parent = env.cgroups.get(cgroup).parent.map(|parent| self.of(env, now, parent));
        let id = GroupId(self.table.len() as u32);
        self.table.push(Group::new(env, now, cgroup, parent));
        if self.by_cgroup.len() <= cgroup.index() {
            self.by_cgroup.resize(cgroup.index() + 1, None);
        }
        self.by_cgroup[cgroup.index()] = Some(id);
        id
    }

    pub(in crate::cfq) fn ids(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.table.len() as u32).map(GroupId)
    }

    /// Returns whether `id` is `ancestor` or below it.
    pub(in crate::cfq) fn is_inside(&self, mut id: GroupId, ancestor: GroupId) -> bool {
        loop {
            if id == ancestor {
                return true;
            }
            match self[id].parent {
                Some(parent) => id = parent,
                None => return false,
            }
        }
    }

    /// Returns the group to serve next.
    pub(in crate::cfq) fn first(&mut self) -> Option<GroupId> {
        let first = self.tree.first()?;
        self.min_vtime = self.min_vtime.max(self[first].vtime);
        Some(first)
    }

    pub(in crate::cfq) fn last_vtime(&self) -> Option<u64> {
        self.tree.last().map(|id| self[id].vtime)
    }

    /// Adds a group to the tree and computes its fraction of all weights.
    pub(in crate::cfq) fn add(&mut self, env: &Env, id: GroupId) {
        let vtime = self[id].vtime;
        self.tree.insert(&mut self.table, id, |at| vtime < at.vtime);
        let group = &mut self[id];
        debug_assert!(!group.on_tree);
        group.on_tree = true;
        group.leaf_weight = env.cgroups.leaf_weight(group.cgroup);
        let mut joins = group.active_children == 0;
        group.active_children += 1;
        group.children_weight += group.leaf_weight;
        let mut fraction = (1 << FRACTION_BITS) * group.leaf_weight / group.children_weight;
        let mut at = id;
        while let Some(parent) = self[at].parent {
            if joins {
                let weight = env.cgroups.weight(self[at].cgroup);
                self[at].weight = weight;
                let parent = &mut self[parent];
                joins = parent.active_children == 0;
                parent.active_children += 1;
                parent.children_weight += weight;
            }
            fraction = fraction * self[at].weight / self[parent].children_weight;
            at = parent;
        }
        self[id].fraction = fraction.max(1);
    }

    /// Removes a group from the tree. The weight of the group no longer counts, nor do the weights
    /// of its ancestors without other active members.
    pub(in crate::cfq) fn remove(&mut self, id: GroupId) {
        self.tree.remove(&mut self.table, id);
        let group = &mut self[id];
        group.on_tree = false;
        group.active_children -= 1;
        group.children_weight -= group.leaf_weight;
        let mut at = id;
        while self[at].active_children == 0 {
            self[at].fraction = 0;
            let weight = self[at].weight;
            let Some(parent) = self[at].parent else { break };
            let group = &mut self[parent];
            group.active_children -= 1;
            group.children_weight -= weight;
            at = parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Cgroup, WeightRange};
    use crate::time::Time;

    #[test]
    fn fractions_follow_weights_down_the_hierarchy() {
        let mut env = Env::new(Time::ZERO, 1000, true, true);
        let mut create = |name: &str, parent, weight, leaf_weight| {
            let [weight, leaf_weight] = [Some(weight), Some(leaf_weight)];
            let cgroup = Cgroup { name: name.to_owned(), parent: Some(parent), weight, leaf_weight };
            env.cgroups.create(WeightRange::CFQ, cgroup).unwrap()
        };
        let a = create("a", CgroupId::ROOT, 500, 500);
        let b = create("b", a, 250, 500);
        let mut groups = Groups::new(&env, 0);
        let [a, b] = [a, b].map(|cgroup| groups.of(&env, 0, cgroup));
        groups.add(&env, GroupId::ROOT);
        assert_eq!(groups[GroupId::ROOT].fraction, 4096);
        groups.add(&env, b);
        // `b` is the only active part of `a`, so it has the whole share of `a`. This share is 500
        // of 1500, because the root's own queues have 1000.
        assert_eq!(groups[b].fraction, 4096 * 500 / 1500);
        groups.add(&env, a);
        assert_eq!(groups[a].fraction, 4096 * 500 / 750 * 500 / 1500);
        groups.remove(b);
        groups.remove(a);
        groups.remove(GroupId::ROOT);
        assert!(groups.ids().all(|id| groups[id].children_weight == 0 && groups[id].active_children == 0));
    }
}
