//! Shares of the device: weights in the tree of groups.
//!
//! The *full weight* of a group is its weight while it is active. The group donates the part that
//! it does not use. The rest is its *current weight*. A share is the product, over all levels from
//! the root down, of the weight divided by the sum of the siblings' weights.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use super::clock::{Moment, Virtual, scale_up};
use super::group::Group;
use super::share::{Shares, WHOLE};
use crate::context::CgroupId;
use crate::controllers::site::Groups;

/// All groups of a device.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    groups: Vec<Group>,
    /// Active groups, the newest first.
    pub(super) active: VecDeque<CgroupId>,
    /// Generation of weights. Shares are computed again for a new generation.
    generation: u64,
    /// Whether weights were changed and are not effective yet.
    changed: bool,
}

impl Tree {
    /// Creates the tree with the root only.
    pub(super) fn new() -> Self {
        Self { groups: vec![Group::new(None, Vec::new())], active: VecDeque::new(), generation: 0, changed: false }
    }

    /// Adds the groups that are new.
    #[inline]
    pub(super) fn know(&mut self, groups: &Groups) {
        if self.groups.len() < groups.count() {
            self.take_up(groups);
        }
    }

    #[cold]
    fn take_up(&mut self, groups: &Groups) {
        for group in groups.all().skip(self.groups.len()) {
            let parent = groups.parent(group);
            let mut path = parent.map_or(Vec::new(), |parent| self[parent].path.clone());
            path.push(group);
            self.groups.push(Group::new(parent, path));
            if let Some(parent) = parent {
                self[parent].children += 1;
            }
        }
    }

    /// Returns the number of groups.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns a group, if it was added.
    pub(super) fn get(&self, group: CgroupId) -> Option<&Group> {
        self.groups.get(group.index())
    }

    /// Returns the groups above `group`, from the root's child down.
    pub(super) fn above(&self, group: CgroupId) -> &[CgroupId] {
        self[group].path.split_last().map_or(&[], |(_, above)| above)
    }

    /// Returns whether the group has active groups below it.
    pub(super) fn is_inner(&self, group: CgroupId) -> bool {
        self[group].children_full > 0
    }

    /// Returns the group's shares. They are computed at the first call after a commit.
    pub(super) fn shares(&mut self, group: CgroupId) -> Shares {
        if group != CgroupId::ROOT && self[group].shares_of != Some(self.generation) {
            self[group].shares = self.shares_afresh(group);
            self[group].shares_of = Some(self.generation);
        }
        self[group].shares
    }

    /// Computes the group's shares from the present weights, effective or not.
    pub(super) fn shares_afresh(&self, group: CgroupId) -> Shares {
        let (mut full, mut current) = (u64::from(WHOLE), u64::from(WHOLE));
        let mut parent = CgroupId::ROOT;
        for &child in &self[group].path {
            let (above, below) = (&self[parent], &self[child]);
            parent = child;
            if above.children_full == 0 || above.children_current == 0 {
                continue;
            }
            let (own_full, own_current) = (u64::from(below.full_weight), u64::from(below.current_weight));
            full = full * own_full / above.children_full.max(own_full);
            current = current * own_current / above.children_current.max(own_current);
        }
        Shares { full: full.max(1) as u32, current: current.max(1) as u32 }
    }

    /// Returns the share that the group would have without donation.
    pub(super) fn highest_share(&self, group: CgroupId) -> u32 {
        let mut share = u64::from(WHOLE);
        let mut weight = u64::from(self[group].full_weight);
        let mut child = group;
        while let Some(parent) = self[child].parent {
            let above = &self[parent];
            let sum = above.children_current + weight - u64::from(self[child].current_weight);
            share = share.wrapping_mul(weight).checked_div(sum).unwrap_or(0);
            weight = scale_up(above.full_weight.into(), sum, above.children_full);
            child = parent;
        }
        share.max(1) as u32
    }

    /// Sets a group's weights and updates the weights above it. They are effective after a
    /// [commit](Self::commit). With `save_at`, the budget at that time is saved.
    pub(super) fn set(&mut self, group: CgroupId, full: u32, current: u32, save_at: Option<Virtual>) {
        let state = &mut self[group];
        let current = if !state.active && state.children_full > 0 {
            scale_up(full.into(), state.children_current, state.children_full) as u32
        } else {
            current.min(full).max(1)
        };
        state.last_current_weight = state.current_weight;
        if let Some(now) = save_at {
            state.saved_budget = state.budget(now);
        }
        if (state.full_weight, state.current_weight) == (full, current) {
            return;
        }
        let (mut child, mut weights) = (group, (full, current));
        while let Some(parent) = self[child].parent {
            let below = &mut self[child];
            let (old_full, old_current) = (below.full_weight, below.current_weight);
            (below.full_weight, below.current_weight) = weights;
            let above = &mut self[parent];
            above.children_full = above.children_full + u64::from(weights.0) - u64::from(old_full);
            above.children_current = above.children_current + u64::from(weights.1) - u64::from(old_current);
            weights = if above.children_full == 0 {
                (0, 0)
            } else {
                let current = scale_up(above.weight.into(), above.children_current, above.children_full);
                (above.weight, current as u32)
            };
            if weights == (above.full_weight, above.current_weight) {
                break;
            }
            child = parent;
        }
        self.changed = true;
    }

    /// Makes the set weights effective.
    pub(super) fn commit(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.generation += 1;
        }
    }

    /// Activates a group, with half a period's budget.
    pub(super) fn activate(&mut self, group: CgroupId, at: &Moment, budget: i64) {
        let state = &mut self[group];
        let too_much = state.budget(at.now).wrapping_sub(budget);
        state.shift(too_much);
        state.shares_of = None;
        state.active = true;
        state.active_since_us = at.us;
        let (weight, last) = (state.weight, state.last_current_weight);
        self.active.push_front(group);
        self.set(group, weight, if last > 0 { last } else { weight }, Some(at.now));
        self.commit();
    }

    /// Deactivates a group, without a commit.
    pub(super) fn deactivate(&mut self, group: CgroupId) {
        self.set(group, 0, 0, None);
        self[group].active = false;
        self.active.retain(|&other| other != group);
    }

    /// Returns the groups above `groups`, each once, the root first and parents before children.
    pub(super) fn inner(&self, groups: impl Iterator<Item = CgroupId>) -> Vec<CgroupId> {
        let mut listed = vec![false; self.groups.len()];
        let mut inner = Vec::new();
        for group in groups {
            for &above in std::iter::once(&CgroupId::ROOT).chain(self.above(group)) {
                if !std::mem::replace(&mut listed[above.index()], true) {
                    inner.push(above);
                }
            }
        }
        inner
    }

    /// Asserts that the sums are correct, and that no group donates more than it has.
    pub(super) fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let mut sums = vec![(0, 0); self.groups.len()];
        for group in &self.groups[1..] {
            assert!(!group.active || group.current_weight <= group.full_weight, "a group lends only its own share");
            let sum = &mut sums[group.parent.map_or(0, CgroupId::index)];
            sum.0 += u64::from(group.full_weight);
            sum.1 += u64::from(group.current_weight);
        }
        for (group, sum) in self.groups.iter().zip(sums) {
            assert_eq!((group.children_full, group.children_current), sum, "sums are kept");
        }
        assert!(self.active.iter().all(|&group| self[group].active));
        assert_eq!(self.active.len(), self.groups.iter().filter(|group| group.active).count());
    }
}

impl Index<CgroupId> for Tree {
    type Output = Group;

    fn index(&self, group: CgroupId) -> &Group {
        &self.groups[group.index()]
    }
}

impl IndexMut<CgroupId> for Tree {
    fn index_mut(&mut self, group: CgroupId) -> &mut Group {
        &mut self.groups[group.index()]
    }
}
