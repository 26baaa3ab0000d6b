//! Donation: the weights of donors are reduced, so that their
//! unused shares go to all others by weight.
//!
//! The computation goes down the tree. For each subtree, it computes the donated share and the kept
//! share, and from these the weights below.

use super::clock::{Moment, scale_up};
use super::share::WHOLE;
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::decision::{IoCostEvent, WeightReason};

const ALL: u64 = WHOLE as u64;

/// Group that donates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Donor {
    pub(super) group: CgroupId,
    /// Full share, which the group gives away.
    pub(super) given: u64,
    /// Share that the group keeps.
    pub(super) after: u64,
}

/// Group with donors below it.
#[derive(Clone, Copy, Debug, Default)]
struct Inner {
    /// Share that donors below the group give away. `after` is the share that they keep.
    given: u64,
    after: u64,
    /// Shares of the group: the full one, and the current one after donation.
    full: u64,
    current: u64,
    /// Sum of current weights in the group, with the intended ratio of donors to others.
    sum: u64,
}

/// Limits the sum of the shares that donors keep to less than the whole device. Donors that would
/// keep more than their full share get less.
fn limit(donors: &mut [Donor]) {
    let sum: u64 = donors.iter().map(|donor| donor.after).sum();
    let over: u64 = donors.iter().filter(|donor| donor.after > donor.given).map(|donor| donor.after).sum();
    if sum < ALL {
        return;
    }
    let target = over.saturating_sub(sum - (ALL - 1));
    for donor in donors.iter_mut().filter(|donor| donor.after > donor.given) {
        donor.after = donor.after * target / over;
    }
}

impl IoCost {
    /// Sets the weights of donors.
    pub(super) fn donate(&mut self, site: &mut Site, mut donors: Vec<Donor>, at: &Moment) {
        limit(&mut donors);
        let inner = self.tree.inner(donors.iter().map(|donor| donor.group));
        let mut nodes = vec![Inner::default(); self.tree.len()];
        self.add_up(&donors, &inner, &mut nodes);
        if !self.bound(&inner, &mut nodes) {
            return;
        }
        self.adjust_sums(&inner, &mut nodes);
        for Donor { group, after, .. } in donors {
            let state = &self.tree[group];
            if state.debt > 0 {
                continue;
            }
            let parent = &nodes[state.parent.map_or(0, CgroupId::index)];
            let (from, to) = (state.current_weight, scale_up(parent.sum, after, parent.current) as u32);
            let why = WeightReason::Transfer { after: after as u32 };
            note(site, IoCostEvent::Weight { group, why, from, to });
            let full = state.full_weight;
            self.tree.set(group, full, to, Some(at.now));
        }
    }

    /// Adds up the shares that are given away and kept below each inner group.
    fn add_up(&self, donors: &[Donor], inner: &[CgroupId], nodes: &mut [Inner]) {
        let add = |group: CgroupId, given: u64, after: u64, nodes: &mut [Inner]| {
            if let Some(parent) = self.tree[group].parent {
                nodes[parent.index()].given += given;
                nodes[parent.index()].after += after;
            }
        };
        for donor in donors {
            add(donor.group, donor.given, donor.after, nodes);
        }
        for &group in inner.iter().rev() {
            let Inner { given, after, .. } = nodes[group.index()];
            add(group, given, after, nodes);
        }
    }

    /// Limits values that rounding may have made too large.
    /// Returns `false` if no donation is possible.
    fn bound(&self, inner: &[CgroupId], nodes: &mut [Inner]) -> bool {
        inner.iter().all(|&group| {
            let state = &self.tree[group];
            let full = state.parent.map_or(ALL, |parent| {
                let above = nodes[parent.index()].full;
                scale_up(above, state.full_weight.into(), self.tree[parent].children_full)
            });
            let node = &mut nodes[group.index()];
            node.full = full;
            node.given = node.given.min(full);
            node.after = node.after.min(node.given.saturating_sub(1));
            node.full > 1 && node.given > 1 && node.after > 0
        })
    }

    /// Computes the intended sums of weights in each inner group.
    fn adjust_sums(&self, inner: &[CgroupId], nodes: &mut [Inner]) {
        let root = nodes[CgroupId::ROOT.index()];
        let stretch = scale_up(ALL - root.after, ALL, ALL - root.given.min(ALL - 1));
        for &group in inner {
            let state = &self.tree[group];
            let node = nodes[group.index()];
            let sum = state.children_full;
            let adjusted = match state.parent.map(|parent| nodes[parent.index()]) {
                None => Inner { current: ALL, sum: scale_up(sum, ALL - node.given, ALL - node.after), ..node },
                Some(above) => {
                    let current = scale_up(stretch, node.full - node.given, ALL).wrapping_add(node.after);
                    let weight = scale_up(above.sum, current, above.current);
                    let given_sum = scale_up(sum, node.given, node.full);
                    let given_weight = scale_up(state.full_weight.into(), node.given, node.full);
                    let kept_weight = scale_up(weight, node.after, current);
                    let kept_sum = scale_up(given_sum, kept_weight, given_weight);
                    Inner { current, sum: sum.saturating_sub(given_sum).wrapping_add(kept_sum), ..node }
                }
            };
            nodes[group.index()] = adjusted;
        }
    }
}
