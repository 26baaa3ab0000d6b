//! Delays: the pauses of processes of a group in debt.

use super::clock::{Moment, scale};
use super::share::in_share;
use super::stat::Lasting;
use super::{IoCost, note};
use crate::context::CgroupId;
use crate::controllers::site::Site;
use crate::decision::IoCostEvent;
use crate::time::MICROSECOND_NS;

/// Largest excess over the budget without a delay, in percent of a period's budget: five periods.
const FREE_PERCENT: i64 = 500;
/// Smallest excess with the longest delay, in percent of a period's budget: 250 periods.
const LONGEST_PERCENT: i64 = 25_000;
/// Shortest delay, µs.
const SHORTEST_US: u64 = 250;
/// Longest delay, µs.
const LONGEST_US: u64 = 250_000;

/// Returns the delay of a group, µs. `percent`: debt beyond the group's budget, in percent of a
/// period's budget.
const fn delay_us(percent: i64) -> u64 {
    if percent <= FREE_PERCENT {
        0
    } else if percent >= LONGEST_PERCENT {
        LONGEST_US
    } else {
        let over = (percent - FREE_PERCENT) as u64;
        SHORTEST_US + (LONGEST_US - SHORTEST_US) * over / (LONGEST_PERCENT - FREE_PERCENT) as u64
    }
}

impl IoCost {
    /// Computes the delay for processes of `group`. Returns whether there is one.
    pub(super) fn look_at_delay(&mut self, site: &mut Site, group: CgroupId, at: &Moment) -> bool {
        let share = self.tree.shares(group).full;
        let state = &mut self.tree[group];
        let owed = in_share(state.debt, share) as i64;
        let over = owed.wrapping_sub(state.budget(at.now));
        let wanted_us = delay_us(scale(100, over, self.clock.period()));
        let mut us = state.decayed_delay_us(at.us);
        if wanted_us > us {
            us = wanted_us;
            (state.delay_us, state.delay_since_us) = (us, at.us);
        }
        let delayed = us >= SHORTEST_US;
        if !delayed {
            (state.delay_us, us) = (0, 0);
        }
        state.totals.note(Lasting::Delay, delayed, at.us);
        self.report_delay(site, group, us * MICROSECOND_NS);
        delayed
    }

    /// Sets the delay of processes of `group`, ns, and reports a change.
    pub(super) fn report_delay(&mut self, site: &mut Site, group: CgroupId, ns: u64) {
        let state = &mut self.tree[group];
        state.delayed = ns > 0;
        if std::mem::replace(&mut state.delay_reported_ns, ns) != ns {
            note(site, IoCostEvent::Delay { group, ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_grows_from_5_to_250_periods_over_budget() {
        assert_eq!([-1, 500, 501, 12_750, 24_999].map(delay_us), [0, 0, 260, 125_125, 249_989]);
        assert_eq!([25_000, i64::MAX].map(delay_us), [LONGEST_US; 2]);
    }
}
