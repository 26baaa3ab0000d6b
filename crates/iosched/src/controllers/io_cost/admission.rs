//! Admission: whether a bio passes, waits or becomes a debt, and when a group becomes active.

use super::clock::{Moment, NANOSECOND};
use super::group::{WEIGHT_UNIT, Waiting};
use super::model::Direction;
use super::share::in_share;
use super::stat::Lasting;
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::bio_state::{BioId, BioState, Passage};
use crate::controllers::controller::{Served, Target};
use crate::controllers::site::Site;
use crate::decision::{Admission, IoCostEvent, WeightReason};
use crate::request::Sector;
use crate::time::MICROSECOND_NS;

impl IoCost {
    /// Decides whether a bio that joined no request may continue. A waiting bio is passed to
    /// [`Site::go_on`] when it may continue.
    pub fn throttle(&mut self, site: &mut Site, bio_id: BioId) -> Passage {
        self.tree.know(&site.groups);
        let bio = &site.bios[bio_id];
        let absolute = self.absolute(bio, false);
        if absolute == 0 {
            let cookie = bio.cookie;
            return pass(site, cookie, Admission::Free, 0, 0);
        }
        let (bio, at) = (*bio, self.clock.at(site.now));
        let group = bio.cgroup;
        if !self.takes_part(site, group, &at) {
            return pass(site, bio.cookie, Admission::Free, 0, 0);
        }
        self.tree[group].cursor = end(&bio);
        let cost = self.price(site, group, absolute, &at);
        let state = &mut self.tree[group];
        if state.waiting.is_empty() && state.debt == 0 && state.affords(cost, at.now) {
            state.charge(absolute, cost);
            site.bios[bio_id].io_cost = cost;
            return pass(site, bio.cookie, Admission::Now, absolute, cost);
        }
        if bio.is_urgent() {
            self.owe(site, &bio, absolute, &at);
            return pass(site, bio.cookie, Admission::Debt, absolute, 0);
        }
        if state.debt == 0 && !state.is_whole() {
            let full = state.full_weight;
            self.tree.set(group, full, full, Some(at.now));
            self.tree.commit();
        }
        self.tree[group].waiting.push_back(Waiting { bio_id, absolute });
        self.kick(site, group, &at, Some(bio_id));
        if self.tree[group].waiting.is_empty() { Passage::Pass } else { Passage::Wait }
    }

    /// Handles a bio that has entered and joins the request `target`. The bio never waits: a cost
    /// above the group's budget becomes a debt.
    pub fn merged(&mut self, site: &mut Site, bio_id: BioId, target: &Target) {
        self.tree.know(&site.groups);
        let at = self.clock.at(site.now);
        let bio = site.bios[bio_id];
        let group = bio.cgroup;
        let mut event = IoCostEvent::Merge { cookie: bio.cookie, how: Admission::Free, absolute: 0, cost: 0 };
        let absolute = self.absolute(&bio, true);
        if absolute > 0 {
            let cost = self.price(site, group, absolute, &at);
            let pays = site.bios[target.first].io_cost > 0;
            let state = &mut self.tree[group];
            if target.sector < end(&bio) && target.end == state.cursor {
                state.cursor = end(&bio);
            }
            let (how, cost) = if (pays && state.affords(cost, at.now)) || !state.active {
                state.charge(absolute, cost);
                site.bios[bio_id].io_cost = cost;
                (Admission::Now, cost)
            } else {
                self.owe(site, &bio, absolute, &at);
                (Admission::Debt, 0)
            };
            event = IoCostEvent::Merge { cookie: bio.cookie, how, absolute, cost };
        }
        note(site, event);
    }

    /// Handles a completed request with these bios.
    pub fn completed(&mut self, site: &Site, request: &Served, bios: &[BioId]) {
        if !self.settings.on {
            let is_free = |&bio_id: &BioId| site.bios[bio_id].io_cost == 0;
            debug_assert!(bios.iter().all(is_free), "io.cost stays on while a bio is in flight");
            return;
        }
        for &bio_id in bios {
            let bio = &site.bios[bio_id];
            self.tree[bio.cgroup].done += bio.io_cost;
        }
        if let Some(direction) = Direction::of(request.op) {
            self.count_latency(site, request, direction);
        }
    }

    /// Counts whether a request met its latency target, and how long it waited for a tag.
    fn count_latency(&mut self, site: &Site, request: &Served, direction: Direction) {
        let transfer_ns = self.settings.costs[direction.index()].transfer(request.nr_sectors) / NANOSECOND;
        let target_ns = u64::from(self.settings.qos.value.target_us[direction.index()]) * MICROSECOND_NS;
        let latency_ns = site.now.since(request.requested);
        let in_time = latency_ns.saturating_sub(transfer_ns) <= target_ns;
        self.load.count(direction, in_time, request.got.since(request.requested));
    }

    /// Returns the cost of a bio on the whole device; 0 if it is free.
    fn absolute(&self, bio: &BioState, merges: bool) -> u64 {
        let Some(direction) = Direction::of(bio.op) else { return 0 };
        if !self.settings.on || bio.cgroup == CgroupId::ROOT {
            return 0;
        }
        let costs = &self.settings.costs[direction.index()];
        if merges {
            costs.merged(bio.nr_sectors)
        } else {
            costs.bio(self.tree[bio.cgroup].cursor, bio.sector, bio.nr_sectors)
        }
    }

    /// Returns whether a group is active. Activates the group if no group above or below it is
    /// active.
    fn takes_part(&mut self, site: &mut Site, group: CgroupId, at: &Moment) -> bool {
        if !self.tree[group].active && self.tree.is_inner(group) {
            return false;
        }
        self.tree[group].seen = self.periods.number;
        if self.tree[group].active {
            return true;
        }
        if self.tree.above(group).iter().any(|&above| self.tree[above].active) {
            return false;
        }
        self.tree.activate(group, at, self.clock.margin(50));
        let weight = self.tree[group].full_weight / WEIGHT_UNIT;
        note(site, IoCostEvent::Activate { group, weight });
        if !self.periods.running {
            self.begin_periods(site, at);
        }
        true
    }

    /// Returns the cost of a bio in its group. A donor with a low
    /// budget takes back the share that it needs.
    fn price(&mut self, site: &mut Site, group: CgroupId, absolute: u64, at: &Moment) -> u64 {
        let mut cost = in_share(absolute, self.tree.shares(group).current);
        let state = &self.tree[group];
        let left = state.budget(at.now).wrapping_sub(cost as i64);
        let is_enough = left >= state.saved_budget || left >= self.clock.margin(20);
        if state.debt > 0 || !state.active || is_enough || state.is_whole() {
            return cost;
        }
        // The product is computed in 32 bits, so the step is smaller for weights above 2621.
        let step = state.full_weight.wrapping_mul(25).div_ceil(100);
        let (full, from) = (state.full_weight, state.current_weight);
        let mut wanted = from;
        loop {
            wanted = wanted.saturating_add(step);
            self.tree.set(group, full, wanted, Some(at.now));
            self.tree.commit();
            cost = in_share(absolute, self.tree.shares(group).current);
            let state = &self.tree[group];
            if state.affords(cost, at.now) || state.is_whole() {
                break;
            }
        }
        let (to, share) = (self.tree[group].current_weight, self.tree.shares(group).current);
        note(site, IoCostEvent::Weight { group, why: WeightReason::Adjust { share }, from, to });
        cost
    }

    /// Admits a bio that must not wait. Its cost becomes a debt of the
    /// group, and its process may have to pause.
    fn owe(&mut self, site: &mut Site, bio: &BioState, absolute: u64, at: &Moment) {
        let group = bio.cgroup;
        let state = &mut self.tree[group];
        if state.debt == 0 {
            state.totals.note(Lasting::Debt, true, at.us);
            let full = state.full_weight;
            self.tree.set(group, full, 0, None);
            self.tree.commit();
        }
        let state = &mut self.tree[group];
        state.debt = state.debt.saturating_add(absolute);
        state.usage = state.usage.wrapping_add(absolute);
        if self.look_at_delay(site, group, at) {
            site.rests(bio.context);
        }
    }
}

/// Returns the sector after the end of a bio.
fn end(bio: &BioState) -> Sector {
    bio.sector.wrapping_add(bio.nr_sectors.into())
}

/// Records that a bio passes.
fn pass(site: &mut Site, cookie: u64, how: Admission, absolute: u64, cost: u64) -> Passage {
    note(site, IoCostEvent::Admit { cookie, how, absolute, cost });
    Passage::Pass
}
