//! Forgiveness of debts: while a device is little used, debts harm no other group, so they are
//! reduced.

use super::clock::Moment;
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::decision::IoCostEvent;

/// Interval at which debts are halved, µs.
const HALVED_EACH_US: u64 = 100_000;
/// Utilisation above which a device is not idle, percent.
const IDLE_PERCENT: u64 = 50;
/// Maximum number of halvings in one step.
const HALVINGS_MAX: u64 = 63;

/// Utilisation of a device with debtors since the last halving.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forgiveness {
    since_us: u64,
    /// Rest of the interval at the last halving.
    pub(super) rest_us: u64,
    used_us: u64,
}

impl Forgiveness {
    /// Starts the measurement again at `us`, when periods begin.
    pub(super) fn restart(&mut self, us: u64) {
        (self.since_us, self.rest_us) = (us, 0);
    }
}

/// Returns a debt after `times` halvings; at least 1 if there was a debt.
fn halved(debt: u64, times: u32) -> u64 {
    if debt > 0 { (debt >> times).max(1) } else { 0 }
}

impl IoCost {
    /// Reduces debts if the interval is over and the device was idle for at least half of it.
    /// `used_us`: use of the device in this period.
    pub(super) fn forgive(&mut self, site: &mut Site, active: &[CgroupId], at: &Moment, any: bool, used_us: u64) {
        if !any {
            self.forgiveness = Forgiveness { since_us: at.us, rest_us: 0, used_us: 0 };
            return;
        }
        let used_us = if self.periods.busy > 0 { used_us.max(self.clock.period_us) } else { used_us };
        let past = &mut self.forgiveness;
        past.used_us = past.used_us.saturating_add(used_us);
        let span_us = at.us.saturating_sub(past.since_us);
        if span_us < HALVED_EACH_US {
            return;
        }
        let used_percent = past.used_us.saturating_mul(100) / span_us;
        (past.since_us, past.used_us) = (at.us, 0);
        if used_percent > IDLE_PERCENT {
            past.rest_us = 0;
            return;
        }
        let idle_us = span_us.saturating_add(past.rest_us);
        let times = (idle_us / HALVED_EACH_US).min(HALVINGS_MAX) as u32;
        past.rest_us = idle_us % HALVED_EACH_US;
        for &group in active {
            if self.tree[group].is_debtor() {
                self.forgive_group(site, group, at, times, used_percent);
            }
        }
    }

    fn forgive_group(&mut self, site: &mut Site, group: CgroupId, at: &Moment, times: u32, used_percent: u64) {
        let state = &mut self.tree[group];
        let (debt, delay_us) = (state.debt, state.delay_us);
        state.debt = halved(debt, times);
        state.delay_us = halved(delay_us, times);
        self.kick(site, group, at, None);
        let state = &self.tree[group];
        let (debt, delay_us) = ([debt, state.debt], [delay_us, state.delay_us]);
        note(site, IoCostEvent::Forgive { group, used_percent, debt, delay_us });
    }
}
