//! Verdict on a window's latencies, and the next step.

use super::Wbt;
use super::limits::Limits;
use crate::controllers::site::Site;
use crate::decision::{Step, Verdict, WbtEvent};
use crate::request::Op;
use crate::time::MILLISECOND_NS;

/// Length of a window at step 0 and below, ns.
pub(super) const WINDOW_NS: u64 = 100 * MILLISECOND_NS;
/// Number of writes that a window needs for a verdict on its reads.
const WRITES_MIN: u64 = 3;
/// Number of windows in a row without a verdict, after which the step moves towards 0.
const UNKNOWN_MAX: u32 = 5;

/// I/O that completed in a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Samples {
    reads: u64,
    writes: u64,
    /// Shortest latency of the reads, ns.
    read_min_ns: Option<u64>,
}

impl Samples {
    pub(super) fn add(&mut self, op: Op, latency_ns: u64) {
        if op.is_write() {
            self.writes += 1;
            return;
        }
        self.reads += 1;
        self.read_min_ns = Some(self.read_min_ns.map_or(latency_ns, |least| least.min(latency_ns)));
    }
}

impl Wbt {
    /// Begins a window. Steps above 0 make it shorter.
    pub(super) fn arm(&mut self, site: &mut Site) {
        self.window_ns = match u64::try_from(self.step) {
            Ok(step @ 1..) => WINDOW_NS * 16 / ((step + 1) * 256).isqrt(),
            _ => WINDOW_NS,
        };
        site.arm(self.timer, site.jiffies() + self.window_ns / site.jiffy_ns);
    }

    /// Handles the end of a window.
    pub fn fire(&mut self, site: &mut Site) {
        let inflight: i64 = self.waits.iter().map(|waits| waits.inflight).sum();
        let samples = std::mem::take(&mut self.samples);
        let verdict = self.verdict(site, &samples, inflight);
        let (step, unknown) = (self.step, self.unknown);
        site.note(|| {
            let Samples { reads, writes, read_min_ns } = samples;
            WbtEvent::Window { verdict, step, inflight, unknown, reads, writes, read_min_ns }.into()
        });
        match verdict {
            Verdict::Exceeded => self.step_down(site, true),
            Verdict::Ok | Verdict::OnlyWrites => self.step_up(site),
            Verdict::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_MAX {
                    match self.step {
                        1.. => self.step_up(site),
                        ..0 => self.step_down(site, false),
                        0 => {}
                    }
                }
            }
        }
        if self.step != 0 || inflight > 0 {
            self.arm(site);
        }
    }

    fn verdict(&self, site: &mut Site, samples: &Samples, inflight: i64) -> Verdict {
        let waited_ns = self.watched.map_or(0, |(_, started)| site.now.since(started));
        let exceeded = |site: &mut Site, latency_ns| {
            site.note(|| WbtEvent::Exceeded { latency_ns }.into());
            Verdict::Exceeded
        };
        if waited_ns > self.window_ns || (waited_ns > self.target_ns && samples.reads == 0) {
            return exceeded(site, waited_ns);
        }
        match samples.read_min_ns.filter(|_| samples.writes >= WRITES_MIN) {
            Some(least_ns) if least_ns > self.target_ns => exceeded(site, least_ns),
            Some(_) => Verdict::Ok,
            None if samples.writes > 0 || inflight > 0 || self.dirties_much(site) => Verdict::OnlyWrites,
            None => Verdict::Unknown,
        }
    }

    fn step_up(&mut self, site: &mut Site) {
        if self.limits.at_most {
            return;
        }
        self.step -= 1;
        self.limits = Limits::of(self.queue_depth, self.step, self.target_ns);
        self.unknown = 0;
        self.wake_all(site);
        self.note_step(site, Step::Up);
    }

    fn step_down(&mut self, site: &mut Site, hard: bool) {
        if self.limits.depth == 1 {
            return;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        self.limits = Limits { at_most: false, ..Limits::of(self.queue_depth, self.step, self.target_ns) };
        self.unknown = 0;
        self.note_step(site, Step::Down);
    }

    fn note_step(&self, site: &mut Site, way: Step) {
        let &Self { step, limits: Limits { background, normal, depth, .. }, .. } = self;
        site.note(|| WbtEvent::Step { way, step, background, normal, depth }.into());
    }
}
