//! Rate of virtual time: slower while the device is overloaded, faster while it has spare capacity.

use super::model::Direction;
use super::period::Survey;
use super::settings::PPM;
use super::{IoCost, note};
use crate::controllers::site::Site;
use crate::decision::IoCostEvent;
use crate::time::MICROSECOND_NS;

/// Waiting time for tags above which the device is overloaded, percent of a period.
const WAITED_OVERLOADED: u64 = 5;
/// Waiting time for tags up to which the device has spare capacity, percent of a period.
const WAITED_LITTLE: u64 = 3;
/// Part of the allowed misses up to which the device has spare capacity, percent.
const MISSED_LITTLE: u32 = 75;
/// Limit of `busy` in both directions.
const BUSY_MAX: i32 = 1_000;
/// Step toward the bounds, percent.
const BOUND_STEP: u64 = 4;

/// Performance of a device since the period began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Reads and writes within their latency targets, and reads and writes that missed them.
    met: [u64; 2],
    missed: [u64; 2],
    /// Sum of the times that requests waited for tags, ns.
    waited_ns: u64,
}

/// Performance of a device in a period, as ratios.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strain {
    missed_ppm: [u32; 2],
    waited_percent: u64,
}

impl Load {
    /// Counts a completed request.
    pub(super) fn count(&mut self, direction: Direction, in_time: bool, waited_ns: u64) {
        let counts = if in_time { &mut self.met } else { &mut self.missed };
        counts[direction.index()] += 1;
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
    }

    /// Returns the ratios and starts again.
    pub(super) fn take(&mut self, period_us: u64) -> Strain {
        let Self { met, missed, waited_ns } = std::mem::take(self);
        let missed_ppm = [0, 1].map(|at| match met[at] + missed[at] {
            0 => 0,
            all => missed[at].saturating_mul(PPM.into()).div_ceil(all) as u32,
        });
        let waited_percent = waited_ns.saturating_mul(100) / (period_us * MICROSECOND_NS).max(1);
        Strain { missed_ppm, waited_percent }
    }
}

/// Returns the change of the rate, percent.
const fn step_percent(busy: i32) -> u64 {
    match busy.unsigned_abs() {
        0..=3 => 0,
        4..=19 => 1,
        20..=35 => 2,
        36..=43 => 4,
        44..=51 => 8,
        _ => 16,
    }
}

impl IoCost {
    /// Returns the allowed misses of reads and writes, parts per million.
    pub(super) fn may_miss_ppm(&self) -> [u32; 2] {
        self.settings.qos.value.target_ppm.map(|target_ppm| PPM.saturating_sub(target_ppm))
    }

    /// Sets the base rate from the performance and the behaviour of groups in a period.
    pub(super) fn adjust_rate(&mut self, site: &mut Site, strain: &Strain, survey: &Survey) {
        let before = self.periods.busy;
        let busy = self.busier(strain, survey);
        self.periods.busy = busy;
        let from = self.clock.base;
        if busy == 0 || (busy < 0 && survey.lagging > 0) {
            if busy == before && survey.lagging == 0 {
                return;
            }
        } else {
            self.clock.base = self.next_base(from, busy);
        }
        let &Strain { missed_ppm, waited_percent } = strain;
        let &Survey { lagging, short, .. } = survey;
        note(site, IoCostEvent::Rate { from, to: self.clock.base, busy, missed_ppm, waited_percent, lagging, short });
    }

    /// Returns the updated number of successive periods with an overloaded device. A negative
    /// number counts periods with spare capacity.
    fn busier(&self, strain: &Strain, survey: &Survey) -> i32 {
        let busy = self.periods.busy;
        let limits = self.may_miss_ppm();
        let misses = strain.missed_ppm.iter().zip(limits);
        let busy = if strain.waited_percent > WAITED_OVERLOADED || misses.clone().any(|(&ppm, limit)| ppm > limit) {
            busy.max(0) + 1
        } else if survey.short > 0
            && strain.waited_percent <= WAITED_LITTLE
            && misses.clone().all(|(&ppm, limit)| ppm <= limit * MISSED_LITTLE / 100)
        {
            busy.min(0) - i32::from(survey.lagging == 0)
        } else {
            0
        };
        busy.clamp(-BUSY_MAX, BUSY_MAX)
    }

    fn next_base(&self, base: u64, busy: i32) -> u64 {
        let [slowest, fastest] = self.settings.bounds;
        if base < slowest {
            (base * (100 + BOUND_STEP) / 100).min(slowest)
        } else if base > fastest {
            (base * (100 - BOUND_STEP) / 100).max(fastest)
        } else {
            let step = step_percent(busy);
            let percent = if busy > 0 { 100 - step } else { 100 + step };
            (base * percent).div_ceil(100).clamp(slowest, fastest)
        }
    }
}
