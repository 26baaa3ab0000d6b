//! Peak rate of the device: the observed rate of sequential requests.

use super::Bfq;
use super::data::peak_rate::RATE_SHIFT;
use super::data::seek::is_seek;
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::request::Sector;
use crate::time::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

/// Pause with an empty device that ends an observation, ns.
const PAUSE_NS: u64 = 100 * MILLISECOND_NS;

/// A request within this time after a completion counts as backlogged, ns.
const BACKLOG_NS: u64 = 2 * MILLISECOND_NS;

/// Duration after which an observation ends, ns.
const SPAN_NS: u64 = SECOND_NS;

/// A completion that took longer than the first constant, µs, at a
/// rate below the second ends an observation.
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

    /// Handles a completion. If it was so slow that the device was not
    /// busy all the time, the observation ends.
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
