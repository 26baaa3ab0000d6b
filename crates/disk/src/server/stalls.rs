//! Stalls of a device, and the working time, which stops during them.

use std::collections::VecDeque;

use super::ServerStalls;
use crate::distribution::{QuantilePoint, at};
use iosched_numbers::SplitMix64;

/// A stall of a device.
#[derive(Clone, Copy, Debug)]
struct Stall {
    /// Start, in working time, ns.
    start_ns: u64,
    length_ns: u64,
}

/// The stalls of a device. Real time is working time plus the length of all earlier stalls.
#[derive(Clone, Debug)]
pub(super) struct Stalls {
    every_ns: u64,
    length: Vec<QuantilePoint>,
    random: SplitMix64,
    /// Total length of the past stalls, ns.
    over_ns: u64,
    /// Future stalls that have been generated, in order.
    ahead: VecDeque<Stall>,
    /// Start of the last generated stall, in working time, ns.
    last_ns: u64,
}

impl Stalls {
    pub(super) fn new(config: Option<&ServerStalls>) -> Self {
        Self {
            every_ns: config.map_or(0, |stalls| stalls.every_ns),
            length: config.map_or_else(Vec::new, |stalls| stalls.length.clone()),
            random: SplitMix64::new(0),
            over_ns: 0,
            ahead: VecDeque::new(),
            last_ns: 0,
        }
    }

    pub(super) const fn set_seed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
    }

    /// Generates the stalls that begin before `working_ns`, and one more stall.
    #[inline]
    pub(super) fn foresee(&mut self, working_ns: u64) {
        while self.every_ns > 0 && self.last_ns < working_ns {
            self.last_ns += 1 + self.random.below(2 * self.every_ns);
            let length_ns = at(&self.length, self.random.unit()) as u64;
            self.ahead.push_back(Stall { start_ns: self.last_ns, length_ns });
        }
    }

    /// Returns the working time at `real_ns`. `real_ns` must not decrease.
    #[inline]
    pub(super) fn working_ns(&mut self, real_ns: u64) -> u64 {
        loop {
            let working_ns = real_ns - self.over_ns;
            self.foresee(working_ns);
            match self.ahead.front() {
                Some(&Stall { start_ns, length_ns }) if start_ns < working_ns => {
                    if working_ns - start_ns < length_ns {
                        return start_ns;
                    }
                    self.over_ns += length_ns;
                    self.ahead.pop_front();
                }
                _ => return working_ns,
            }
        }
    }

    /// Returns the real time of a working time, ns. All stalls before this time must have been
    /// generated.
    #[inline]
    pub(super) fn real_ns(&self, working_ns: u64) -> u64 {
        let before = self.ahead.iter().take_while(|stall| stall.start_ns < working_ns);
        working_ns + self.over_ns + before.map(|stall| stall.length_ns).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls() -> Stalls {
        let length = [(0.0, 1_000), (1.0, 9_000)].map(QuantilePoint::from);
        Stalls::new(Some(&ServerStalls { every_ns: 20_000, length: length.to_vec() }))
    }

    #[test]
    fn stalls_add_real_time_and_the_conversion_is_reversible() {
        let mut stalls = stalls();
        stalls.foresee(1_000_000);
        let working: Vec<u64> = (0..100).map(|i| i * 7_919).collect();
        let real: Vec<u64> = working.iter().map(|&working_ns| stalls.real_ns(working_ns)).collect();
        for (&working_ns, &real_ns) in working.iter().zip(&real) {
            assert_eq!(stalls.working_ns(real_ns), working_ns);
        }
        assert!(real[99] > working[99] + 30 * 1_000, "about forty stalls of 5 us each");
    }

    #[test]
    fn without_stalls_working_time_equals_real_time() {
        let mut none = Stalls::new(None);
        assert_eq!((none.working_ns(12_345), none.real_ns(54_321)), (12_345, 54_321));
    }
}
