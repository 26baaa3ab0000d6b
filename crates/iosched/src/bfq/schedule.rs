//! Hierarchy: the choice of the next queue, where every group distributes
//! its service among its queues and groups.
//!
//! Each group stores its next entity. BFQ searches the next entity again only when an entity comes,
//! goes, or is taken into service. If this changes the group's own position, the group above is
//! updated, and so on.

use super::Bfq;
use super::data::entity::{Class, EntityId, EntityTree};
use super::data::group::GroupId;
use super::data::queue::QueueId;
use crate::env::Env;

/// Longest time without service for the idle class, as a fraction of a second.
const IDLE_CLASS_FRACTION: u64 = 5;

impl Bfq {
    /// Returns whether an entity is in the active or the idle tree, or in service.
    #[inline]
    pub(super) fn is_on_tree_or_in_service(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        entity.place != EntityTree::Nowhere || self.groups[entity.group].in_service == Some(id)
    }

    /// Returns the entity of the group that contains `id`; `None` for the root group.
    #[inline]
    pub(super) fn parent_of(&self, id: EntityId) -> Option<EntityId> {
        self.groups[self.entities[id].group].entity
    }

    fn waits_or_is_served(&self, id: EntityId) -> bool {
        let entity = &self.entities[id];
        entity.place == EntityTree::Active || self.groups[entity.group].in_service == Some(id)
    }

    // ---- service

    /// Counts a service of `sectors` for a queue and all groups above it.
    pub(super) fn serve(&mut self, env: &mut Env, id: QueueId, sectors: i64) {
        let raised = self.entities[id.entity()].raise > 1;
        let now = self.jiffies(env);
        let queue = &mut self.queues[id];
        if queue.served_since_backlogged == 0 {
            queue.first_io = now;
        }
        if raised {
            queue.raising.served += sectors;
        }
        queue.served_since_backlogged += sectors;
        let mut at = Some(id.entity());
        while let Some(entity) = at {
            let Self { entities, groups, .. } = self;
            let slot = &mut entities[entity];
            slot.service += sectors;
            let (group, class) = (slot.group, slot.class);
            groups[group].trees[class.index()].served(sectors);
            self.forget_idle(env, group, class);
            at = self.groups[group].entity;
        }
    }

    /// Forgets the first entity of an idle tree, if virtual time has reached its finish time.
    #[inline]
    fn forget_idle(&mut self, env: &mut Env, group: GroupId, class: Class) {
        if let Some(id) = self.groups[group].trees[class.index()].forgettable(&self.entities) {
            self.forget(env, id);
        }
    }

    /// Forgets an entity of an idle tree.
    pub(super) fn forget(&mut self, env: &mut Env, id: EntityId) {
        let Self { entities, groups, .. } = self;
        let (group, class) = (entities[id].group, entities[id].class);
        let tree = &mut groups[group].trees[class.index()];
        tree.remove_idle(entities, id);
        tree.weights -= u64::from(entities[id].weight);
        if entities[id].own_group.is_none() {
            self.reap(env, QueueId::of(id));
        }
    }

    // ---- trees

    fn insert_active(&mut self, id: EntityId) {
        let Self { entities, groups, queues, .. } = self;
        let slot = &entities[id];
        let (group, class, is_queue) = (slot.group, slot.class, slot.own_group.is_none());
        groups[group].active_children += 1;
        groups[group].trees[class.index()].insert_active(entities, id);
        if is_queue {
            self.waiting.push_front(&mut queues.waiting, QueueId::of(id));
        }
    }

    fn remove_active(&mut self, id: EntityId) {
        let Self { entities, groups, queues, .. } = self;
        let slot = &entities[id];
        let (group, class, is_queue) = (slot.group, slot.class, slot.own_group.is_none());
        groups[group].active_children -= 1;
        groups[group].trees[class.index()].remove_active(entities, id);
        if is_queue {
            self.waiting.remove(&mut queues.waiting, QueueId::of(id));
        }
    }

    /// Applies a changed weight, and with `class_too` a changed class.
    pub(super) fn take_over_priority(&mut self, id: EntityId, class_too: bool) {
        let entity = &mut self.entities[id];
        if !entity.changed {
            return;
        }
        let (group, old_class, old_weight) = (entity.group, entity.class, entity.weight);
        let is_queue = entity.own_group.is_none();
        if entity.new_weight != entity.original_weight {
            entity.original_weight = entity.new_weight;
            if is_queue {
                self.queues[QueueId::of(id)].level = level_of(entity.new_weight);
            }
        }
        if class_too {
            entity.class = entity.new_class;
        }
        entity.changed = entity.class != entity.new_class;
        let (class, weight) = (entity.class, entity.original_weight * entity.raise);
        let joins = entity.raise == 1;
        if is_queue && weight != old_weight {
            self.uncount_weight(QueueId::of(id));
            self.entities[id].weight = weight;
            if joins {
                self.count_weight(QueueId::of(id));
            }
        } else {
            self.entities[id].weight = weight;
        }
        let trees = &mut self.groups[group].trees;
        trees[old_class.index()].weights -= u64::from(old_weight);
        trees[class.index()].weights += u64::from(weight);
        if class != old_class {
            self.entities.node_mut(id).start = trees[class.index()].vtime;
        }
    }

    /// Inserts an entity at the position that follows from its budget.
    fn enqueue(&mut self, id: EntityId, back_shifted: bool) {
        self.take_over_priority(id, true);
        let entity = &self.entities[id];
        let vtime = self.groups[entity.group].trees[entity.class.index()].vtime;
        let (budget, weight, raise) = (entity.budget, u64::from(entity.weight), u64::from(entity.raise));
        let node = self.entities.node_mut(id);
        node.finish = node.start.after(budget, weight);
        if back_shifted && vtime.is_after(node.finish) {
            let delta = vtime.since(node.finish) / raise;
            node.start = node.start.plus(delta);
            node.finish = node.finish.plus(delta);
        }
        self.insert_active(id);
    }

    /// Makes an entity wait for service.
    fn activate(&mut self, id: EntityId, non_blocking: bool) {
        let Self { entities, groups, .. } = self;
        let entity = &entities[id];
        let (place, weight) = (entity.place, entity.weight);
        let tree = &mut groups[entity.group].trees[entity.class.index()];
        let finish = entities.node(id).finish;
        let back_shifted = non_blocking && tree.vtime.is_after(finish);
        let base = if back_shifted { finish } else { tree.vtime };
        let start = if place == EntityTree::Idle {
            tree.remove_idle(entities, id);
            base.max(finish)
        } else {
            tree.weights += u64::from(weight);
            base
        };
        entities.node_mut(id).start = start;
        self.enqueue(id, back_shifted);
    }

    /// Gives a new position to an entity that waits or is in service, according to its service.
    fn reinsert(&mut self, id: EntityId) {
        if self.groups[self.entities[id].group].in_service == Some(id) {
            let (service, weight) = (self.entities[id].service, u64::from(self.entities[id].weight));
            let node = self.entities.node_mut(id);
            node.finish = node.start.after(service, weight);
            node.start = node.finish;
        }
        if self.entities[id].place == EntityTree::Active {
            self.remove_active(id);
        }
        self.enqueue(id, false);
    }

    /// Removes an entity that has no more requests. Returns whether it was in a tree or in service.
    fn leave_trees(&mut self, env: &mut Env, id: EntityId, remember: bool) -> bool {
        if !self.is_on_tree_or_in_service(id) {
            return false;
        }
        let entity = &self.entities[id];
        let (group, class, place) = (entity.group, entity.class, entity.place);
        let (service, weight) = (entity.service, u64::from(entity.weight));
        let node = self.entities.node_mut(id);
        node.finish = node.start.after(service, weight);
        let finish = node.finish;
        let served = self.groups[group].in_service == Some(id);
        if served {
            self.groups[group].in_service = None;
        } else {
            self.entities[id].service = 0;
        }
        match place {
            EntityTree::Active => self.remove_active(id),
            EntityTree::Idle if !served => {
                let Self { entities, groups, .. } = self;
                groups[group].trees[class.index()].remove_idle(entities, id);
            }
            _ => {}
        }
        let Self { entities, groups, .. } = self;
        let tree = &mut groups[group].trees[class.index()];
        if remember && finish.is_after(tree.vtime) {
            tree.insert_idle(entities, id);
        } else {
            tree.weights -= weight;
            if !served && entities[id].own_group.is_none() {
                self.reap(env, QueueId::of(id));
            }
        }
        true
    }

    // ---- the next entity

    /// Searches the next entity of `group`.
    fn look_up(&mut self, env: &mut Env, group: GroupId, expiring: bool) -> Option<EntityId> {
        let now = self.jiffies(env);
        let idle_delay = self.second_fraction(IDLE_CLASS_FRACTION);
        let sd = &mut self.groups[group];
        let mut first = Class::RealTime.index();
        if now > sd.idle_class_at + idle_delay {
            sd.idle_class_at = now;
            if !sd.trees[Class::Idle.index()].active.is_empty() {
                first = Class::Idle.index();
            }
        }
        let class = Class::ALL[first..].iter().copied().find(|class| !sd.trees[class.index()].active.is_empty())?;
        let tree = &mut sd.trees[class.index()];
        let vtime = tree.eligible_vtime(&self.entities)?;
        let is_served = sd.in_service.is_some() && !expiring;
        if !is_served && vtime.is_after(tree.vtime) {
            tree.vtime = vtime;
            self.forget_idle(env, group, class);
        }
        self.groups[group].trees[class.index()].pick(&self.entities, vtime)
    }

    /// Updates the next entity of `group`: to `new` if `new` comes first, otherwise by a search.
    /// Returns whether the group's own position is affected.
    fn update_next(&mut self, env: &mut Env, group: GroupId, new: Option<EntityId>, expiring: bool) -> bool {
        let cached = self.groups[group].next;
        let at_once = match (new, cached) {
            (Some(new), None) => Some(new),
            (Some(new), Some(cached)) if new != cached => {
                let class = self.entities[new].class;
                let vtime = self.groups[group].trees[class.index()].vtime;
                let [new_node, cached_node] = [new, cached].map(|id| self.entities.node(id));
                let better = class == self.entities[cached].class
                    && !new_node.start.is_after(vtime)
                    && cached_node.finish.is_after(new_node.finish);
                better.then_some(new)
            }
            _ => None,
        };
        let next = at_once.or_else(|| self.look_up(env, group, expiring));
        self.groups[group].next = next;
        let Some(next) = next else { return false };
        let Some(parent_entity) = self.groups[group].entity else { return cached.is_none() };
        let budget = self.entities[next].budget;
        let before = std::mem::replace(&mut self.entities[parent_entity].budget, budget);
        cached.is_none() || before > budget
    }

    /// Inserts or moves a queue and the groups above it. `expiring` tells whether its turn has
    /// ended.
    fn schedule(&mut self, env: &mut Env, id: QueueId, non_blocking: bool, was_served: bool, expiring: bool) {
        let mut at = Some(id.entity());
        while let Some(entity) = at {
            if self.waits_or_is_served(entity) {
                self.reinsert(entity);
            } else {
                self.activate(entity, non_blocking);
            }
            let group = self.entities[entity].group;
            if !self.update_next(env, group, Some(entity), expiring) && !was_served {
                break;
            }
            at = self.groups[group].entity;
        }
    }

    /// Makes a queue wait for service.
    pub(super) fn activate_queue(&mut self, env: &mut Env, id: QueueId) {
        let non_blocking = std::mem::take(&mut self.queues[id].non_blocking);
        self.schedule(env, id, non_blocking, false, false);
    }

    /// Moves a queue whose budget changed, or whose turn is over.
    pub(super) fn requeue(&mut self, env: &mut Env, id: QueueId, expiring: bool) {
        let was_served = self.active == Some(id);
        self.schedule(env, id, false, was_served, expiring);
    }

    /// Removes a queue that no longer waits. `remember`:
    /// its position is kept until its finish time.
    pub(super) fn deactivate(&mut self, env: &mut Env, id: QueueId, mut remember: bool, expiring: bool) {
        let mut at = Some(id.entity());
        let mut rest = None;
        while let Some(entity) = at {
            let group = self.entities[entity].group;
            let parent = self.groups[group].entity;
            if !self.leave_trees(env, entity, remember) {
                return;
            }
            if self.groups[group].next == Some(entity) {
                self.update_next(env, group, None, expiring);
            }
            if self.groups[group].next.is_some() || self.groups[group].in_service.is_some() {
                rest = parent;
                break;
            }
            remember = true;
            at = parent;
        }
        while let Some(entity) = rest {
            self.reinsert(entity);
            let group = self.entities[entity].group;
            if !self.update_next(env, group, Some(entity), expiring) && !expiring {
                break;
            }
            rest = self.groups[group].entity;
        }
    }

    /// Takes the next queue into service.
    pub(super) fn take_next(&mut self, env: &mut Env) -> Option<QueueId> {
        if self.busy == 0 {
            return None;
        }
        let mut group = GroupId::ROOT;
        let queue = loop {
            let entity = self.groups[group].next?;
            self.groups[group].in_service = Some(entity);
            let child = self.entities[entity].own_group;
            let leaves = child.is_none_or(|child| self.groups[child].active_children == 1);
            if leaves && self.entities[entity].place == EntityTree::Active {
                self.remove_active(entity);
            }
            match child {
                Some(child) => group = child,
                None => break entity,
            }
        };
        let mut at = Some(queue);
        while let Some(entity) = at {
            let group = self.entities[entity].group;
            if !self.update_next(env, group, None, false) {
                break;
            }
            at = self.groups[group].entity;
        }
        Some(QueueId::of(queue))
    }

    /// Clears the entities in service, from the queue up to the root.
    pub(super) fn clear_in_service(&mut self, id: QueueId) {
        let mut at = Some(id.entity());
        while let Some(entity) = at {
            let group = self.entities[entity].group;
            self.groups[group].in_service = None;
            at = self.groups[group].entity;
        }
    }

    /// Removes an empty group's entity from its trees.
    pub(super) fn leave_group(&mut self, env: &mut Env, id: EntityId) {
        let group = self.entities[id].group;
        if self.leave_trees(env, id, false) && self.groups[group].next == Some(id) {
            self.update_next(env, group, None, false);
        }
    }
}

/// Returns the level for a weight.
fn level_of(weight: u32) -> u8 {
    8u32.saturating_sub(weight / 10) as u8
}
