//! Groups: the queues and groups of one cgroup, which share the service of the cgroup by weight.
//! This file also moves queues between groups, and removes groups.

use super::Bfq;
use super::data::entity::{Class, Entity, EntityId, EntityTree};
use super::data::group::{Group, GroupId};
use super::data::queue::{NEVER, QueueId};
use crate::context::{CgroupId, ContextId, LEVEL_MAX};
use crate::decision::BfqReason;
use crate::env::Env;

impl Bfq {
    /// Returns the group for I/O of `cgroup`. Creates it if needed.
    pub(super) fn group_of(&mut self, env: &Env, cgroup: CgroupId) -> GroupId {
        if !env.groups {
            return GroupId::ROOT;
        }
        let cgroup = env.cgroups.living(cgroup);
        match self.groups.get(cgroup) {
            Some(known) => known,
            None => self.create_group(env, cgroup),
        }
    }

    fn create_group(&mut self, env: &Env, cgroup: CgroupId) -> GroupId {
        let parent = env.cgroups.get(cgroup).parent.map_or(GroupId::ROOT, |parent| self.group_of(env, parent));
        let id = GroupId(self.groups.slots.len() as u32);
        let weight = env.cgroups.weight(cgroup);
        let entity = self.entities.create(Entity::new(parent, Some(id), Class::BestEffort, weight));
        self.queues.grow(self.entities.len());
        self.groups.slots.push(Group::new(cgroup, Some(entity), NEVER));
        if self.groups.of_cgroup.len() <= cgroup.index() {
            self.groups.of_cgroup.resize(cgroup.index() + 1, None);
        }
        self.groups.of_cgroup[cgroup.index()] = Some(id);
        id
    }

    /// Handles a new weight of a cgroup: its group uses the weight when it is next enqueued.
    pub(super) fn note_weight(&mut self, env: &Env, cgroup: CgroupId) {
        let Some(entity) = self.groups.get(cgroup).and_then(|group| self.groups[group].entity) else { return };
        let entity = &mut self.entities[entity];
        let weight = env.cgroups.weight(cgroup);
        if weight != entity.new_weight {
            entity.new_weight = weight;
            entity.changed = true;
        }
    }

    /// Adds `more` to the number of requests of a queue's groups. If a queue moves while its
    /// request is in flight, the request stays counted in the old groups. Its completion is
    /// subtracted from the new groups, as in Linux.
    #[inline]
    pub(super) fn count_request(&mut self, id: QueueId, more: i64) {
        let mut group = self.entities[id.entity()].group;
        while let Some(entity) = self.groups[group].entity {
            self.groups[group].requests += more;
            group = self.entities[entity].group;
        }
    }

    // ---- moves

    /// Moves the queues of a process to `group`, because its I/O now belongs to this group.
    pub(super) fn change_group(&mut self, env: &mut Env, context: ContextId, group: GroupId) {
        let [async_queue, sync_queue] = self.process(context).map_or([None; 2], |process| process.queues);
        if let Some(queue) = async_queue
            && self.entities[queue.entity()].group != group
        {
            self.attach(env, context, false, None);
            self.release_process(env, queue);
        }
        let Some(queue) = sync_queue else { return };
        let slot = &self.queues[queue];
        if slot.planned.is_none() && !slot.coop {
            if self.entities[queue.entity()].group != group {
                self.move_queue(env, queue, group);
            }
            return;
        }
        let mut at = Some(queue);
        while let Some(id) = at {
            if self.entities[id.entity()].group != group {
                self.undo_plan(env, queue);
                self.attach(env, context, true, None);
                self.release_process(env, queue);
                return;
            }
            at = self.queues[id].planned;
        }
    }

    /// Moves a queue to another group, with its requests.
    pub(super) fn move_queue(&mut self, env: &mut Env, id: QueueId, group: GroupId) {
        // Keeps the queue alive during the move.
        self.queues[id].processes += 1;
        if self.active == Some(id) {
            self.expire(env, id, false, BfqReason::Preempted);
        }
        if self.queues[id].busy {
            self.deactivate(env, id, false, false);
        } else if self.entities[id.entity()].place == EntityTree::Idle {
            self.forget(env, id.entity());
        }
        let pending = self.remove_pending(id);
        let old = self.entities[id.entity()].group;
        if self.groups[old].last_created == Some(id) {
            self.groups[old].last_created = None;
        }
        self.leave_position(id);
        self.entities[id.entity()].group = group;
        if pending {
            self.add_pending(id);
        }
        if self.queues[id].busy {
            self.refresh_position(env, id);
            self.activate_queue(env, id);
        }
        self.queues[id].processes -= 1;
        self.reap(env, id);
    }

    /// Handles the removal of a cgroup: the contents of its group move to the root.
    pub(super) fn remove_group(&mut self, env: &mut Env, cgroup: CgroupId) {
        let Some(group) = self.groups.get(cgroup).filter(|&group| group != GroupId::ROOT) else { return };
        for class in Class::ALL {
            while let Some(queue) = self.first_below(self.groups[group].trees[class.index()].active.first(), class) {
                self.move_queue(env, queue, GroupId::ROOT);
            }
            if let Some(queue) = self.first_below(self.groups[group].in_service, class) {
                self.move_queue(env, queue, GroupId::ROOT);
            }
            while let Some(entity) = self.groups[group].trees[class.index()].idle.first() {
                self.forget(env, entity);
            }
        }
        if let Some(entity) = self.groups[group].entity {
            self.leave_group(env, entity);
        }
        for class in Class::ALL {
            for level in 0..=usize::from(LEVEL_MAX) {
                if let Some(queue) = self.groups[group].async_queues[class.index()][level].take() {
                    self.move_queue(env, queue, GroupId::ROOT);
                    self.queues[queue].processes -= 1;
                    self.reap(env, queue);
                }
            }
        }
        self.groups[group].last_created = None;
        self.groups.of_cgroup[cgroup.index()] = None;
    }

    /// Returns the first queue at or below an entity, preferably a queue of `class`.
    fn first_below(&self, entity: Option<EntityId>, class: Class) -> Option<QueueId> {
        let mut entity = entity?;
        while let Some(child) = self.entities[entity].own_group {
            let group = &self.groups[child];
            let waiting = |class: Class| group.trees[class.index()].active.first();
            let below = waiting(class).or(group.in_service).or_else(|| Class::ALL.into_iter().find_map(waiting));
            debug_assert!(below.is_some(), "a waiting or served group contains a queue or a group");
            entity = below?;
        }
        Some(QueueId::of(entity))
    }
}
