//! Peak rate of the device: the observed rate of sequential requests.

use super::Bfq;
use super::data::seek::is_seek;
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::request::Sector;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

/// Fractional bits of rates, which are in sectors per µs.
pub(super) const RATE_SHIFT: u32 = 16;

/// Rates of the reference devices (rotational, not rotational), with `RATE_SHIFT` fractional bits.
/// The first estimate is two thirds of the reference rate.
const REFERENCE_RATES: [u64; 2] = [14_000, 33_000];

/// Time that a reference device needs to load a large application, ms.
const REFERENCE_MS: [u64; 2] = [7000, 2500];

/// Minimum duration of an observation, ns.
const SPAN_MIN_NS: u64 = 300 * MILLISECOND_NS;

/// Minimum number of requests in an observation.
const SAMPLES_MIN: u64 = 32;

/// Largest plausible rate, with `RATE_SHIFT` fractional bits. Larger rates are noise.
const RATE_MAX: u64 = 20 << RATE_SHIFT;

/// Estimate of the peak rate, and the present observation.
#[derive(Debug)]
pub(super) struct PeakRate {
    pub(super) rate: u64,
    /// Time that this device needs for the work of [`REFERENCE_MS`], in jiffies.
    jiffies: u64,
    /// Product of the reference device's rate and its time in jiffies.
    reference: u64,
    pub(super) first_ns: u64,
    pub(super) last_dispatch_ns: u64,
    pub(super) samples: u64,
    pub(super) sequential: u64,
    pub(super) sectors: u64,
    /// Largest recent request, in sectors.
    pub(super) largest: u32,
}

impl PeakRate {
    pub(super) fn new(env: &Env) -> Self {
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
    pub(super) fn reference_jiffies(&self) -> u64 {
        self.jiffies
    }

    /// Returns the number of sectors that the device serves in `ms` milliseconds.
    pub(super) fn sectors_in_ms(&self, ms: u64) -> i64 {
        i64::try_from((self.rate * (MILLISECOND_NS / MICROSECOND_NS) * ms) >> RATE_SHIFT).unwrap_or(i64::MAX)
    }

    pub(super) fn begin(&mut self, now_ns: u64, nr_sectors: u32) {
        self.first_ns = now_ns;
        self.last_dispatch_ns = now_ns;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = u64::from(nr_sectors);
        self.largest = nr_sectors;
    }

    /// Ends the observation and updates the estimate if the observation is good enough.
    /// `last_completion_ns`: time of the last completion. Returns whether the estimate was updated.
    pub(super) fn conclude(&mut self, last_completion_ns: u64) -> bool {
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

/// Pause with an empty device that ends an observation, ns.
const PAUSE_NS: u64 = 100 * MILLISECOND_NS;

/// A request within this time after a completion counts as backlogged, ns.
const BACKLOG_NS: u64 = 2 * MILLISECOND_NS;

/// Duration after which an observation ends, ns.
const SPAN_NS: u64 = SECOND_NS;

/// Time between two completions, µs. After a longer time, the observation ends if the largest
/// request would have a rate below `SLOW_RATE` in this time.
const SLOW_US: u64 = 2000;

const SLOW_RATE: u64 = 1 << (RATE_SHIFT - 10);

impl Bfq {
    /// Ends an observation.
    fn conclude_rate(&mut self, env: &mut Env) {
        let before = self.peak_rate.rate;
        if !self.peak_rate.conclude(self.last_completion_ns) {
            return;
        }
        let peak_rate = self.peak_rate.rate;
        if self.tunables.max_budget == 0 {
            let max_budget = self.automatic_max_budget(env);
            self.budgets.max = max_budget;
            env.note(|| BfqEvent::MaxBudget { max_budget, peak_rate }.into());
        }
        if peak_rate != before {
            env.note(|| BfqEvent::PeakRate { peak_rate }.into());
        }
    }

    /// Counts a dispatched request.
    pub(super) fn observe_dispatch(&mut self, env: &mut Env, sector: Sector, nr_sectors: u32) {
        let now_ns = env.now.as_ns();
        if self.peak_rate.samples == 0 {
            self.peak_rate.begin(now_ns, nr_sectors);
            return;
        }
        if now_ns - self.peak_rate.last_dispatch_ns > PAUSE_NS && self.in_driver == 0 {
            self.conclude_rate(env);
            self.peak_rate.begin(now_ns, nr_sectors);
            return;
        }
        let backlogged = self.in_driver > 0 || now_ns - self.last_completion_ns < BACKLOG_NS;
        let sequential = backlogged && !is_seek(self.position, sector, nr_sectors, env.rotational);
        let peak = &mut self.peak_rate;
        peak.samples += 1;
        peak.sequential += u64::from(sequential);
        peak.sectors += u64::from(nr_sectors);
        peak.largest = if peak.samples.is_multiple_of(32) { nr_sectors } else { peak.largest.max(nr_sectors) };
        peak.last_dispatch_ns = now_ns;
        if now_ns - peak.first_ns >= SPAN_NS {
            self.conclude_rate(env);
            self.peak_rate.begin(now_ns, nr_sectors);
        }
    }

    /// Handles a completion. The observation ends if the completion came so late that the device
    /// was not busy all the time.
    pub(super) fn observe_completion(&mut self, env: &mut Env) {
        let now_ns = env.now.as_ns();
        // Linux counts in 32 bits.
        let took_us = u64::from((now_ns.wrapping_sub(self.last_completion_ns) / MICROSECOND_NS) as u32);
        if took_us > SLOW_US && (u64::from(self.peak_rate.largest) << RATE_SHIFT) / took_us < SLOW_RATE {
            self.conclude_rate(env);
            self.peak_rate.samples = 0;
        }
        self.last_completion_ns = now_ns;
    }
}
