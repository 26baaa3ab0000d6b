//! End of a period: which groups are idle, short of their share, or able to donate.

use super::clock::{Clock, Moment, scale, scale_up};
use super::donation::Donor;
use super::settings::PPM;
use super::share::{WHOLE, on_whole};
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::event::ControllerEvent;
use crate::controllers::site::Site;
use crate::controllers::wheel::TimerId;
use crate::decision::{IoCostEvent, WeightReason};
use crate::time::MICROSECOND_NS;

/// Number of periods. A group whose unspent budget covers this many periods does not lag.
const LAG_PERIODS_MAX: i64 = 10;

/// State of the periods.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    /// Timer for the end of the period.
    pub(super) timer: TimerId,
    /// Whether a period runs, because a group is active.
    pub(super) running: bool,
    /// Number of the period, from 0.
    pub(super) number: u64,
    /// Number of successive periods with an overloaded device. A negative number counts periods
    /// with spare capacity.
    pub(super) busy: i32,
}

impl Periods {
    pub(super) const fn new(timer: TimerId) -> Self {
        Self { timer, running: false, number: 0, busy: 0 }
    }
}

/// Behaviour of all groups in a period.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Number of groups with bios in flight for more than a period.
    pub(super) lagging: u32,
    /// Number of groups that need their full share.
    pub(super) short: u32,
    /// Use of all groups, in µs of the whole device.
    pub(super) used_us: u64,
    /// Groups that donate. The group that was found last is first.
    donors: Vec<Donor>,
}

impl IoCost {
    /// Begins the periods, because the first group is active.
    pub(super) fn begin_periods(&mut self, site: &mut Site, at: &Moment) {
        self.periods.running = true;
        self.forgiveness.restart(at.us);
        self.begin_period(site, at);
    }

    fn begin_period(&mut self, site: &mut Site, at: &Moment) {
        (self.clock.start_us, self.clock.start) = (at.us, at.now);
        let jiffy_us = site.jiffy_ns / MICROSECOND_NS;
        let jiffy = site.jiffies() + scale_up(self.clock.period_us, 1, jiffy_us);
        site.arm(self.periods.timer, jiffy);
    }

    /// Ends the period.
    pub(super) fn end_period(&mut self, site: &mut Site) {
        self.tree.know(&site.groups);
        let at = self.clock.at(site.now);
        note(site, IoCostEvent::Tick { period: self.periods.number });
        let strain = self.load.take(self.clock.period_us);
        let active: Vec<CgroupId> = self.tree.active.iter().copied().collect();
        let debtors = self.look_after(site, &active, &at);
        let active: Vec<CgroupId> = self.tree.active.iter().copied().collect();
        self.count_usage(&active);
        let mut survey = self.survey(site, &active, &at);
        if survey.short > 0 && !survey.donors.is_empty() {
            let donors = std::mem::take(&mut survey.donors);
            self.donate(site, donors, &at);
        }
        self.tree.commit();
        self.adjust_rate(site, &strain, &survey);
        self.settings.refresh(site.now, &mut self.clock, false);
        self.forgive(site, &active, &at, debtors > 0, survey.used_us);
        self.next_period(site, &at);
        self.tree.check();
    }

    /// Kicks groups with waiting bios or debts, and removes groups that were idle for a period.
    /// Returns the number of groups with debts.
    fn look_after(&mut self, site: &mut Site, active: &[CgroupId], at: &Moment) -> u32 {
        let mut debtors = 0;
        for &group in active {
            let state = &self.tree[group];
            if !state.waiting.is_empty() || state.is_debtor() {
                self.tree[group].totals.count_lasting(at.us);
                self.kick(site, group, at, None);
                debtors += u32::from(self.tree[group].is_debtor());
            } else if state.seen != self.periods.number && state.in_flight() == 0 {
                self.tree[group].totals.count_lasting(at.us);
                self.retire(site, group, at);
            }
        }
        self.tree.commit();
        debtors
    }

    /// Removes an idle group. Drops its budget above half a period's budget. The group gets half a
    /// period's budget when it comes back.
    fn retire(&mut self, site: &mut Site, group: CgroupId, at: &Moment) {
        let budget = self.tree[group].budget(at.now);
        let excess = budget.wrapping_sub(self.clock.margin(50));
        if excess > 0 {
            self.throw_away(group, excess);
        }
        note(site, IoCostEvent::Idle { group, budget });
        self.tree.deactivate(group);
    }

    /// Drops unused budget of a group. Virtual time compensates for it.
    fn throw_away(&mut self, group: CgroupId, budget: i64) {
        let share = self.tree.shares(group).current;
        self.clock.compensate(scale(budget, share.into(), WHOLE.into()));
    }

    /// Counts the use of groups, and passes it to their ancestors.
    fn count_usage(&mut self, active: &[CgroupId]) {
        for &group in active {
            let state = &mut self.tree[group];
            let used = state.usage.wrapping_sub(std::mem::replace(&mut state.usage_seen, state.usage));
            state.used_us = used / self.clock.base.max(1);
            state.totals.add_usage(state.used_us);
            self.show_totals(group);
        }
        for group in self.tree.inner(active.iter().copied()).into_iter().rev() {
            self.show_totals(group);
        }
    }

    fn show_totals(&mut self, group: CgroupId) {
        let new = self.tree[group].totals.show();
        if let Some(parent) = self.tree[group].parent {
            self.tree[parent].totals.add(new);
        }
    }

    /// Checks which groups lag, are short, or donate.
    fn survey(&mut self, site: &mut Site, active: &[CgroupId], at: &Moment) -> Survey {
        let passed = at.now - self.clock.start;
        let has_targets = self.may_miss_ppm() != [PPM; 2];
        let mut survey = Survey::default();
        for &group in active {
            let shares = self.tree.shares(group);
            let state = &self.tree[group];
            let budget = state.budget(at.now);
            let is_late = state.in_flight() > 0 && at.now - state.done > passed;
            if has_targets && !state.delayed && is_late && budget < passed.wrapping_mul(LAG_PERIODS_MAX) {
                survey.lagging += 1;
            }
            survey.used_us = survey.used_us.saturating_add(state.used_us);
            let has_plenty = state.waiting.is_empty() && budget > self.clock.margin(20);
            if shares.current >= shares.full && !has_plenty {
                survey.short += 1;
                continue;
            }
            let highest = self.tree.highest_share(group);
            let after = self.needed_share(group, highest, at);
            if after < highest && shares.full >= 2 {
                survey.donors.push(Donor { group, given: shares.full.into(), after: after.into() });
            } else if self.tree[group].debt == 0 {
                let state = &self.tree[group];
                let (from, to) = (state.current_weight, state.full_weight);
                note(site, IoCostEvent::Weight { group, why: WeightReason::Short, from, to });
                self.tree.set(group, to, to, Some(at.now));
                survey.short += 1;
            }
        }
        survey.donors.reverse();
        survey
    }

    /// Returns the share that a group needs in the next period, from its use and its remaining
    /// budget. The share is at most `highest`. Drops the budget above half a period's budget.
    fn needed_share(&mut self, group: CgroupId, highest: u32, at: &Moment) -> u32 {
        let state = &self.tree[group];
        if state.debt > 0 {
            return 1;
        }
        if !state.waiting.is_empty() || state.budget(at.now) < self.clock.margin(10) {
            return highest;
        }
        let used = self.used_share(group, at);
        let excess = self.tree[group].budget(at.now).wrapping_sub(self.clock.margin(50));
        if excess > 0 {
            self.tree[group].shift(excess);
            self.throw_away(group, excess);
        }
        let left = scale(WHOLE.into(), self.tree[group].budget(at.now), at.now - self.clock.start);
        // The product is computed in 32 bits, so a group that used the whole device keeps nothing.
        let target = i64::from(WHOLE.wrapping_mul(used));
        let needed = target.checked_div(i64::from(WHOLE / 2).wrapping_add(left)).unwrap_or(0);
        needed.max(1).min(highest.into()) as u32
    }

    /// Returns the share that a group used in the period, or has in flight; from 1 to the whole.
    fn used_share(&mut self, group: CgroupId, at: &Moment) -> u32 {
        let share = self.tree.shares(group).current;
        let state = &self.tree[group];
        let mut used_us = state.used_us;
        if state.in_flight() != 0 {
            let in_flight = on_whole(state.in_flight() as u64, share);
            used_us = used_us.max(in_flight.div_ceil(self.clock.base.max(1)));
        }
        let since_us = state.active_since_us.max(self.clock.start_us);
        let length_us = at.us.saturating_sub(since_us).max(1);
        (scale_up(used_us, WHOLE.into(), length_us) as u32).clamp(1, WHOLE)
    }

    /// Begins the next period, if any group is active.
    fn next_period(&mut self, site: &mut Site, at: &Moment) {
        self.periods.number += 1;
        if self.tree.active.is_empty() {
            self.periods.running = false;
            self.periods.busy = 0;
            self.clock.error = 0;
        } else {
            self.begin_period(site, at);
        }
        self.clock.correct(at.us);
        self.note_period(site);
    }

    fn note_period(&self, site: &mut Site) {
        let (runs, busy) = (self.periods.running, self.periods.busy);
        let Clock { base, rate, period_us, error, start, .. } = self.clock;
        note(site, IoCostEvent::Period { runs, base, rate, error, busy, period_us });
        for &group in &self.tree.active {
            let state = &self.tree[group];
            site.note(|| {
                let shares = self.tree.shares_afresh(group);
                let standing = IoCostEvent::Standing {
                    group,
                    full_weight: state.full_weight,
                    current_weight: state.current_weight,
                    full_share: shares.full,
                    current_share: shares.current,
                    budget: state.budget(start),
                    in_flight: state.in_flight(),
                    debt: state.debt,
                    delay_us: state.delay_us,
                    used_us: state.used_us,
                    waiting: state.waiting.len(),
                };
                ControllerEvent::IoCost(standing)
            });
        }
    }
}
