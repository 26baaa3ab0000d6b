//! Release of a group's waiting bios, the time of the next check, and the payment of debts.

use super::clock::{Moment, scale_up};
use super::group::Waiting;
use super::share::{in_share, on_whole};
use super::stat::Lasting;
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::bio_state::BioId;
use crate::controllers::site::Site;
use crate::decision::{Admission, IoCostEvent};
use crate::time::{MICROSECOND_NS, Time};

impl IoCost {
    /// Pays debts and releases bios of a group, as far as its budget allows. `arriving` is a bio
    /// that has just begun to wait. The caller checks whether this bio continues.
    pub(super) fn kick(&mut self, site: &mut Site, group: CgroupId, at: &Moment, arriving: Option<BioId>) {
        let share = self.tree.shares(group).full;
        let mut budget = self.tree[group].budget(at.now);
        if self.tree[group].debt > 0 && budget > 0 {
            budget = budget.wrapping_sub(self.pay(group, share, budget, at) as i64);
        }
        if self.tree[group].is_debtor() {
            self.look_at_delay(site, group, at);
        }
        let owed = self.tree[group].debt;
        if owed > 0 {
            budget = budget.wrapping_sub(in_share(owed, share) as i64).min(0);
        }
        let missing = self.admit_waiting(site, group, budget, arriving);
        self.tree[group].totals.note(Lasting::Wait, missing.is_some(), at.us);
        if let Some(missing) = missing {
            self.arm(site, group, missing);
        }
    }

    /// Pays debt from the budget. Returns the spent cost.
    fn pay(&mut self, group: CgroupId, share: u32, budget: i64, at: &Moment) -> u64 {
        let state = &mut self.tree[group];
        let paid = on_whole(budget as u64, share).min(state.debt);
        let cost = in_share(paid, share);
        state.spent += cost;
        state.done += cost;
        state.debt -= paid;
        if state.debt == 0 {
            state.totals.note(Lasting::Debt, false, at.us);
            let (full, current) = (state.full_weight, state.last_current_weight);
            self.tree.set(group, full, current, None);
            self.tree.commit();
        }
        cost
    }

    /// Releases bios in the order of arrival, as far as the budget lasts.
    /// Returns the missing budget of the next bio.
    fn admit_waiting(
        &mut self,
        site: &mut Site,
        group: CgroupId,
        mut budget: i64,
        arriving: Option<BioId>,
    ) -> Option<u64> {
        let share = self.tree.shares(group).current;
        let state = &mut self.tree[group];
        while let Some(&Waiting { bio_id, absolute }) = state.waiting.front() {
            let cost = in_share(absolute, share);
            budget = budget.wrapping_sub(cost as i64);
            if budget < 0 {
                return Some(budget.unsigned_abs());
            }
            state.waiting.pop_front();
            state.charge(absolute, cost);
            let mark = &mut site.bios[bio_id];
            mark.io_cost = cost;
            let event = IoCostEvent::Admit { cookie: mark.cookie, how: Admission::Woken, absolute, cost };
            note(site, event);
            if arriving != Some(bio_id) {
                site.go_on(bio_id);
            }
        }
        None
    }

    /// Sets the group's timer to the time when the missing budget is available. Does nothing if the
    /// timer is already set to about this time.
    fn arm(&mut self, site: &mut Site, group: CgroupId, missing: u64) {
        let slack_ns = self.clock.slack_ns();
        let wait_us = scale_up(missing, 1, self.clock.base);
        let soft = site.now + wait_us.saturating_mul(MICROSECOND_NS).saturating_add(slack_ns);
        let is_near = |set: Time| set.signed_since(soft).unsigned_abs() <= slack_ns;
        if !self.timers.soft(group).is_some_and(is_near) {
            let hard = soft + slack_ns;
            self.timers.arm(group, soft, hard);
            note(site, IoCostEvent::Arm { group, soft, hard });
        }
    }
}
