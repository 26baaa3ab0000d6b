//! Virtual time: the capacity of the device that was available so
//! far, and the rate at which it increases.

use std::ops::{Add, AddAssign, Sub};

use crate::time::{MICROSECOND_NS, SECOND_NS, Time};

/// Virtual time per second if the device works as its model says.
pub(super) const SECOND: u64 = 1 << 37;
/// Virtual time per µs at that rate.
pub(super) const MICROSECOND: u64 = SECOND / 1_000_000;
/// Virtual time per ns at that rate.
pub(super) const NANOSECOND: u64 = SECOND / SECOND_NS;

/// Returns `a * b / c` rounded up; the product has 64 bits. A divisor of 0 counts as 1.
pub(super) const fn scale_up(a: u64, b: u64, c: u64) -> u64 {
    let divisor = if c == 0 { 1 } else { c };
    a.wrapping_mul(b).div_ceil(divisor)
}

/// Returns `a * b / c` rounded toward 0; the product has 64 bits. A divisor of 0 gives 0.
pub(super) const fn scale(a: i64, b: i64, c: i64) -> i64 {
    if c == 0 { 0 } else { a.wrapping_mul(b).wrapping_div(c) }
}

/// Point in virtual time. It wraps, so times are compared by their difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Virtual(u64);

impl Add<u64> for Virtual {
    type Output = Self;

    fn add(self, cost: u64) -> Self {
        Self(self.0.wrapping_add(cost))
    }
}

impl AddAssign<u64> for Virtual {
    fn add_assign(&mut self, cost: u64) {
        *self = *self + cost;
    }
}

impl AddAssign<i64> for Virtual {
    fn add_assign(&mut self, shift: i64) {
        self.0 = self.0.wrapping_add_signed(shift);
    }
}

impl Sub for Virtual {
    type Output = i64;

    /// Returns the virtual time from `earlier` to this; negative if `earlier` is later.
    fn sub(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }
}

/// Point in time, in real and in virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Real time in whole µs.
    pub(super) us: u64,
    pub(super) now: Virtual,
}

/// Progress of virtual time.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Virtual time per µs in the long run.
    pub(super) base: u64,
    /// Virtual time per µs at present.
    pub(super) rate: u64,
    /// Length of a period, µs, 1,000 to 1,000,000.
    pub(super) period_us: u64,
    /// Start of the period, µs.
    pub(super) start_us: u64,
    /// Start of the period in virtual time.
    pub(super) start: Virtual,
    /// Virtual time that must be compensated. Dropped budgets are subtracted.
    pub(super) error: i64,
}

impl Clock {
    pub(super) fn new() -> Self {
        let start = Virtual::default();
        Self { base: MICROSECOND, rate: MICROSECOND, period_us: 0, start_us: 0, start, error: 0 }
    }

    /// Returns the point in virtual time for `time`.
    pub(super) fn at(&self, time: Time) -> Moment {
        let us = time.as_ns() / MICROSECOND_NS;
        let passed = us.wrapping_sub(self.start_us).wrapping_mul(self.rate);
        Moment { us, now: self.start + passed }
    }

    /// Returns the virtual time of a period at the base rate.
    pub(super) const fn period(&self) -> i64 {
        self.period_us.wrapping_mul(self.base) as i64
    }

    /// Returns the virtual time of `percent` of a period, in whole µs.
    pub(super) const fn margin(&self, percent: u64) -> i64 {
        (self.period_us * percent / 100).wrapping_mul(self.base) as i64
    }

    /// Returns the slack of a group's timer, ns. The slack is the time between the earliest and the
    /// latest time at which the timer may fire.
    pub(super) const fn slack_ns(&self) -> u64 {
        self.period_us * MICROSECOND_NS / 100
    }

    /// Records a dropped budget of the whole device, which is compensated later.
    pub(super) fn compensate(&mut self, thrown_away: i64) {
        self.error = self.error.wrapping_sub(thrown_away);
    }

    /// Sets the rate of the new period so that the error is compensated between `us` and the end of
    /// the period.
    pub(super) fn correct(&mut self, us: u64) {
        let left_us = self.start_us.wrapping_add(self.period_us).wrapping_sub(us) as i64;
        let base = self.base as i64;
        if left_us > 0 {
            let change = (self.error / left_us).wrapping_neg().clamp(-(base / 2), base);
            self.error = self.error.wrapping_add(change.wrapping_mul(left_us));
            self.rate = (base + change) as u64;
        }
        let most = self.period();
        self.error = self.error.clamp(-most, most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_counts_whole_microseconds_and_wraps() {
        let clock = Clock::new();
        assert_eq!(clock.at(Time::from_ns(2_999)).now - Virtual::default(), 2 * MICROSECOND as i64);
        let late = Virtual::default() + u64::MAX;
        assert_eq!(late + 3 - late, 3);
        assert_eq!(late - (late + 3), -3);
    }

    #[test]
    fn discarded_budget_at_most_doubles_the_rate_of_virtual_time() {
        let mut clock = Clock { period_us: 50_000, ..Clock::new() };
        clock.error = -1_000 * 50_000;
        clock.correct(0);
        assert_eq!((clock.rate, clock.error), (MICROSECOND + 1_000, 0));
        clock.error = -10 * clock.period();
        clock.correct(0);
        assert_eq!((clock.rate, clock.error), (2 * MICROSECOND, -clock.period()));
        clock.correct(50_000);
        assert_eq!(clock.rate, 2 * MICROSECOND, "the rate stays if the period is over");
    }
}
