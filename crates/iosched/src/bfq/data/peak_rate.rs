//! Peak rate of the device: the observed rate of sequential requests.

use crate::env::Env;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

/// Fractional bits of rates, which are in sectors per µs.
pub(in crate::bfq) const RATE_SHIFT: u32 = 16;

/// Rates of reference devices, rotational and not, in these units.
/// The first estimate is two thirds of them.
const REFERENCE_RATES: [u64; 2] = [14_000, 33_000];

/// Time that a reference device needs to load a large application, ms.
const REFERENCE_MS: [u64; 2] = [7000, 2500];

/// Minimum duration of an observation, ns.
const SPAN_MIN_NS: u64 = 300 * MILLISECOND_NS;

/// Minimum number of requests in an observation.
const SAMPLES_MIN: u64 = 32;

/// Larger rates are noise.
const RATE_MAX: u64 = 20 << RATE_SHIFT;

/// Estimate of the peak rate, and the present observation.
#[derive(Debug)]
pub(in crate::bfq) struct PeakRate {
    pub(in crate::bfq) rate: u64,
    /// Time that this device needs for the work of [`REFERENCE_MS`], in jiffies.
    jiffies: u64,
    /// Rate times time of the reference device, in jiffies.
    reference: u64,
    pub(in crate::bfq) first_ns: u64,
    pub(in crate::bfq) last_dispatch_ns: u64,
    pub(in crate::bfq) samples: u64,
    pub(in crate::bfq) sequential: u64,
    pub(in crate::bfq) sectors: u64,
    /// Largest recent request, in sectors.
    pub(in crate::bfq) largest: u32,
}

impl PeakRate {
    pub(in crate::bfq) fn new(env: &Env) -> Self {
        let kind = usize::from(!env.rotational);
        let jiffies = (REFERENCE_MS[kind] * MILLISECOND_NS).div_ceil(env.jiffy_ns);
        let (rate, reference) = (REFERENCE_RATES[kind] * 2 / 3, REFERENCE_RATES[kind] * jiffies);
        Self {
            rate,
            jiffies: reference / rate,
            reference,
            first_ns: 0,
            last_dispatch_ns: 0,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
        }
    }

    /// Returns the time that this device needs for the work of [`REFERENCE_MS`], in jiffies.
    pub(in crate::bfq) fn reference_jiffies(&self) -> u64 {
        self.jiffies
    }

    /// Returns the number of sectors that the device serves in `ms` milliseconds.
    pub(in crate::bfq) fn sectors_in_ms(&self, ms: u64) -> i64 {
        i64::try_from((self.rate * (MILLISECOND_NS / MICROSECOND_NS) * ms) >> RATE_SHIFT).unwrap_or(i64::MAX)
    }

    pub(in crate::bfq) fn begin(&mut self, now_ns: u64, nr_sectors: u32) {
        self.first_ns = now_ns;
        self.last_dispatch_ns = now_ns;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = u64::from(nr_sectors);
        self.largest = nr_sectors;
    }

    /// Ends the observation and updates the estimate if the observation is good enough.
    /// `last_completion_ns`: time of the last completion. Returns whether the estimate was updated.
    pub(in crate::bfq) fn conclude(&mut self, last_completion_ns: u64) -> bool {
        let span_ns = self.last_dispatch_ns.wrapping_sub(self.first_ns);
        if self.samples < SAMPLES_MIN || span_ns < SPAN_MIN_NS {
            return false;
        }
        let span_ns = span_ns.max(last_completion_ns.wrapping_sub(self.first_ns));
        let rate = (self.sectors << RATE_SHIFT) / (span_ns / MICROSECOND_NS);
        let mostly_sequential = self.sequential >= 3 * self.samples / 4;
        if (!mostly_sequential && rate <= self.rate) || rate > RATE_MAX {
            return false;
        }
        let weight = 9 * self.sequential / self.samples;
        let weight = (u128::from(weight) * u128::from(span_ns) / u128::from(SECOND_NS)).min(8) as u64;
        let divisor = 10 - weight;
        self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
        self.jiffies = self.reference / self.rate;
        true
    }
}
