//! The device's peak rate: how fast it serves sequential requests, as far as it was seen to.

use super::Bfq;
use super::seek::is_seek;
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::request::Sector;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

/// Rates are in sectors per us with so many binary places.
const RATE_SHIFT: u32 = 16;
/// Rates of reference devices, with and without seek cost, in those units; what is estimated at first is two thirds of it.
const REFERENCE_RATES: [u64; 2] = [14_000, 33_000];
/// The time such a device takes to load a large application, ms.
const REFERENCE_MS: [u64; 2] = [7000, 2500];
/// A pause this long with nothing in the device ends an observation, ns.
const PAUSE_NS: u64 = 100 * MILLISECOND_NS;
/// A request this soon after a completion was under way before, ns.
const BACKLOG_NS: u64 = 2 * MILLISECOND_NS;
/// Observations this long count.
const SPAN_MIN_NS: u64 = 300 * MILLISECOND_NS;
/// And are ended.
const SPAN_NS: u64 = SECOND_NS;
/// With so many requests.
const SAMPLES_MIN: u64 = 32;
/// Rates above are noise.
const RATE_MAX: u64 = 20 << RATE_SHIFT;
/// A completion that took longer than the first, us, at less than the second, in units of rates, ends an observation.
const SLOW_US: u64 = 2000;
const SLOW_RATE: u64 = 1 << (RATE_SHIFT - 10);

/// The estimate, and the observation that is to better it.
#[derive(Debug)]
pub(super) struct PeakRate {
    rate: u64,
    /// The time this device takes for what takes the reference device its time, in jiffies.
    jiffies: u64,
    /// Rate times time of the reference device, in jiffies.
    reference: u64,
    first_ns: u64,
    last_dispatch_ns: u64,
    samples: u64,
    sequential: u64,
    sectors: u64,
    /// Largest request of late.
    largest: u32,
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

    /// The time this device takes for what takes the reference device its time, in jiffies.
    pub(super) fn reference_jiffies(&self) -> u64 {
        self.jiffies
    }

    /// What it does in a time.
    pub(super) fn sectors_in_ms(&self, ms: u64) -> i64 {
        i64::try_from((self.rate * (MILLISECOND_NS / MICROSECOND_NS) * ms) >> RATE_SHIFT).unwrap_or(i64::MAX)
    }

    fn begin(&mut self, now_ns: u64, nr_sectors: u32) {
        self.first_ns = now_ns;
        self.last_dispatch_ns = now_ns;
        self.samples = 1;
        self.sequential = 0;
        self.sectors = u64::from(nr_sectors);
        self.largest = nr_sectors;
    }

    /// Betters the estimate by what was observed, if that is worth it; the last completion was then. Returns whether it did.
    fn conclude(&mut self, last_completion_ns: u64) -> bool {
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

impl Bfq {
    /// An observation ends.
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

    /// A request is given out.
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

    /// A request completes: one so slow that the device was not busy all the time ends the observation.
    pub(super) fn observe_completion(&mut self, env: &mut Env) {
        let now_ns = env.now.as_ns();
        // The original counts in 32 bits.
        let took_us = u64::from((now_ns.wrapping_sub(self.last_completion_ns) / MICROSECOND_NS) as u32);
        if took_us > SLOW_US && (u64::from(self.peak_rate.largest) << RATE_SHIFT) / took_us < SLOW_RATE {
            self.conclude_rate(env);
            self.peak_rate.samples = 0;
        }
        self.last_completion_ns = now_ns;
    }
}
