//! Limits on dirty pages. Writers above the limits are throttled.

use super::flusher::CONGESTION_WAIT_NS;
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use super::{Model, PAGE_BYTES};
use crate::description::Throttling;

/// Maximum number of pages that a task dirties between two checks of the limits: 1024 pages, which
/// are 4 MiB.
const RATELIMIT_PAGES_MAX: u64 = 1024;
/// The same maximum while the limit on dirty pages is exceeded.
const EXCEEDED_PAGES: u64 = 8;
/// Target length of a throttled writer's sleep, ns. The next constant is the maximum length.
const PAUSE_NS: u64 = 10_000_000;
const PAUSE_MAX_NS: u64 = 200_000_000;
/// Minimum number of pages between two sleeps. If the disk writes fewer pages in [`PAUSE_NS`],
/// sleeps are longer.
const PAUSE_PAGES_MIN: u64 = 32;
/// Largest delay of a writer behind its rate that it may catch up, ns.
const LATE_NS: u64 = 1_000_000_000;
/// Rate of writeback before the first measurement, pages/s: 100 MB/s.
pub(super) const RATE_FIRST: u64 = 25_600;
/// Interval between measurements of the rate, ns.
pub(super) const RATE_PERIOD_NS: u64 = 200_000_000;

/// A writer whose dirty pages are checked against the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttle {
    disk: usize,
    /// Number of pages that the writer has dirtied since the last check.
    dirtied: u64,
    /// Number of pages that the writer has written back itself.
    written: u64,
    stage: ThrottleStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleStage {
    Look,
    Written,
    Waited,
    /// The writer sleeps or has slept for the pause that its rate requires. It then continues
    /// without another check.
    Paced,
}

impl Throttle {
    pub(super) const fn new(disk: usize, dirtied: u64) -> Self {
        Self { disk, dirtied, written: 0, stage: ThrottleStage::Look }
    }
}

/// Rate at which a disk writes pages back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    since_ns: u64,
    written_pages: u64,
    pages_per_s: u64,
}

impl Rate {
    pub(super) const fn new() -> Self {
        Self { since_ns: 0, written_pages: 0, pages_per_s: RATE_FIRST }
    }

    /// Returns the rate in pages/s, at least 1.
    pub(super) fn pages_per_s(&self) -> u64 {
        self.pages_per_s.max(1)
    }

    /// Measures the rate of a disk. `written_pages` is the number of pages that the disk has
    /// written since the start.
    fn update(&mut self, now_ns: u64, written_pages: u64) {
        let elapsed_ns = now_ns - self.since_ns;
        if elapsed_ns >= RATE_PERIOD_NS {
            let pages = written_pages - self.written_pages;
            if pages > 0 {
                let rate = (u128::from(pages) * 1_000_000_000 / u128::from(elapsed_ns)) as u64;
                self.pages_per_s = (self.pages_per_s * 7 + rate) / 8;
            }
            (self.since_ns, self.written_pages) = (now_ns, written_pages);
        }
    }
}

/// State that makes a task write at its rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// Time until which the task has paid for its dirtied pages by running or sleeping, ns.
    since_ns: u64,
    /// Number of pages between two checks of the limits.
    pages: u64,
}

impl Default for Pacing {
    /// Returns a state with the first check after 128 KiB.
    fn default() -> Self {
        Self { since_ns: 0, pages: PAUSE_PAGES_MIN }
    }
}

/// Targets for the sleeps of a writer: their minimum length, and the number of pages between two
/// sleeps.
#[derive(Clone, Copy, Debug)]
struct Aim {
    /// Minimum length of a sleep, ns. If a sleep would be shorter, the writer does not sleep.
    shortest_ns: u64,
    pages: u64,
}

impl Aim {
    /// Computes the targets for a disk that writes `rate` pages/s, and a task
    /// that may dirty `task_rate` pages/s.
    fn of(rate: u64, task_rate: u64, longest_ns: u64) -> Self {
        let in_ns = |ns: u64, rate: u64| (u128::from(rate) * u128::from(ns) / 1_000_000_000) as u64;
        let (mut ns, mut pages) = (PAUSE_NS.min(longest_ns), in_ns(PAUSE_NS.min(longest_ns), rate));
        // On a slow disk, sleeps are longer than usual, so that the task dirties enough pages
        // between two sleeps.
        if pages < PAUSE_PAGES_MIN {
            (ns, pages) = (longest_ns, in_ns(longest_ns, rate));
            if pages > PAUSE_PAGES_MIN {
                (ns, pages) = (ns_for(PAUSE_PAGES_MIN, rate), PAUSE_PAGES_MIN);
            }
        }
        if ns_for(pages, task_rate) > longest_ns {
            (ns, pages) = (longest_ns, in_ns(longest_ns, task_rate));
        }
        Self { shortest_ns: if pages >= PAUSE_PAGES_MIN { ns / 2 } else { ns }, pages: pages.max(1) }
    }
}

/// Returns the time for `pages` pages at a rate of `rate` pages/s, ns.
fn ns_for(pages: u64, rate: u64) -> u64 {
    (u128::from(pages) * 1_000_000_000 / u128::from(rate.max(1))) as u64
}

/// Returns the number of pages between two checks, if `room` pages are left below the limit. The
/// number is about the square root of `room`, and a power of two.
fn poll_pages(room: u64) -> u64 {
    1 << (room.max(1).ilog2() / 2)
}

/// Returns the ratio of a writer's rate to the rate of the disk, from a cubic curve. The ratio is 2
/// at `free_run` dirty pages, 1 in the middle between `free_run` and `limit`, and 0 at `limit`.
pub(super) fn position_ratio(free_run: u64, limit: u64, unclean: u64) -> f64 {
    if unclean >= limit {
        return 0.0;
    }
    let setpoint = (free_run + limit) as f64 / 2.0;
    let below = (setpoint - unclean as f64) / (limit as f64 - setpoint).max(1.0);
    1.0 + below * below * below
}

impl Model {
    pub(super) fn throttle(&mut self, task: u32, throttle: &mut Throttle) -> Action {
        match self.machine.kernel.throttling() {
            Throttling::WritesBack => self.write_back_own(task, throttle),
            Throttling::Sleeps | Throttling::Balances => self.pace(task, throttle),
        }
    }

    /// Makes a writer above the limit write some pages back, and wait if this is not enough.
    fn write_back_own(&mut self, task: u32, throttle: &mut Throttle) -> Action {
        let (_, hard) = self.dirty_limits();
        let unclean = self.cache.nr_dirty() + self.cache.nr_writeback();
        if throttle.stage == ThrottleStage::Written {
            throttle.written += std::mem::take(&mut self.tasks[task as usize].written).written;
        }
        let turn = self.ratelimit_pages_max() * 3 / 2;
        if unclean <= hard || (throttle.stage == ThrottleStage::Written && throttle.written >= turn) {
            self.dirty_exceeded = unclean > hard;
            self.start_background();
            return Action::Pop;
        }
        self.dirty_exceeded = true;
        if throttle.stage == ThrottleStage::Written {
            throttle.stage = ThrottleStage::Waited;
            return Action::Block(Wait::Congestion(throttle.disk, self.now_ns + CONGESTION_WAIT_NS));
        }
        throttle.stage = ThrottleStage::Written;
        let budget = turn - throttle.written;
        Action::Push(Frame::Writeback(Writeback::new(throttle.disk, Scope::All, budget)))
    }

    /// Makes a writer sleep so that it dirties pages at the rate at which the disk writes them. The
    /// rate is higher if there are few dirty pages, and lower if there are many. The middle between
    /// `free_run` and the limit is neutral. The time since the last check counts as a part of the
    /// pause, so the writer sleeps only for the rest.
    fn pace(&mut self, task: u32, throttle: &mut Throttle) -> Action {
        let now_ns = self.now_ns;
        if throttle.stage == ThrottleStage::Paced {
            return Action::Pop;
        }
        let disk = &mut self.disks[throttle.disk];
        disk.rate.update(now_ns, disk.written_pages);
        let rate = disk.rate.pages_per_s();
        if throttle.stage == ThrottleStage::Look {
            disk.share.dirtied(throttle.dirtied);
        }
        self.start_background();
        let (background, hard) = self.dirty_limits();
        let unclean = self.cache.nr_dirty() + self.cache.nr_writeback();
        let free_run = (background + hard) / 2;
        if unclean <= free_run {
            self.dirty_exceeded = false;
            self.tasks[task as usize].pacing = Pacing { since_ns: now_ns, pages: poll_pages(hard - unclean) };
            return Action::Pop;
        }
        self.dirty_exceeded = unclean > hard;
        let (base, ratio) = match self.machine.kernel.throttling() {
            Throttling::Balances => self.balanced(throttle.disk, free_run, hard, unclean),
            _ => (rate, position_ratio(free_run, hard, unclean)),
        };
        let task_rate = (base as f64 * ratio) as u64;
        let pacing = &mut self.tasks[task as usize].pacing;
        let longest_ns = (ns_for(unclean, rate) / 8).clamp(1, PAUSE_MAX_NS);
        let aim = Aim::of(base, task_rate, longest_ns);
        throttle.stage = ThrottleStage::Waited;
        let mut pause_ns = longest_ns;
        if task_rate > 0 {
            throttle.stage = ThrottleStage::Paced;
            let period_ns = ns_for(throttle.dirtied, task_rate);
            let ran_ns = now_ns.saturating_sub(pacing.since_ns);
            if period_ns < ran_ns + aim.shortest_ns {
                pacing.since_ns = if ran_ns > period_ns + LATE_NS { now_ns } else { pacing.since_ns + period_ns };
                return Action::Pop;
            }
            pause_ns = period_ns - ran_ns;
        }
        let over_ns = pause_ns.saturating_sub(longest_ns);
        pause_ns -= over_ns;
        // The writer sleeps at most for the longest pause. If its pause would be longer, the rest
        // is added to the next pause, but at most the length of the longest pause.
        *pacing = Pacing { since_ns: now_ns + pause_ns - over_ns.min(longest_ns).min(now_ns), pages: aim.pages };
        self.throttled.push((task, throttle.disk));
        Action::Block(Wait::Until(now_ns + pause_ns))
    }

    /// Returns the numbers of dirty pages at which background writeback begins
    /// and at which writers are throttled.
    #[must_use]
    pub fn dirty_limits(&self) -> (u64, u64) {
        let pages = self.cache.pages_max();
        let vm = &self.machine.vm;
        let limit = |bytes: Option<u64>, percent: u32| match bytes {
            Some(bytes) => bytes.div_ceil(PAGE_BYTES).min(pages),
            None => pages * u64::from(percent) / 100,
        };
        let hard = limit(vm.dirty_bytes, vm.dirty_ratio);
        let background = limit(vm.dirty_background_bytes, vm.dirty_background_ratio);
        // A background limit that is given in bytes may be above the other limit.
        (if background >= hard { hard / 2 } else { background }, hard)
    }

    /// Returns whether enough pages are dirty for background writeback.
    pub(super) fn over_background(&self) -> bool {
        self.cache.nr_dirty() > self.dirty_limits().0
    }

    fn start_background(&mut self) {
        if self.over_background() {
            for disk in 0..self.disks.len() {
                let flusher = self.disks[disk].flusher_task;
                self.wake_if(flusher, |wait| matches!(wait, Wait::Work(_)));
            }
        }
    }

    fn ratelimit_pages_max(&self) -> u64 {
        (self.cache.pages_max() / 128).clamp(16, RATELIMIT_PAGES_MAX)
    }

    /// Returns the number of pages that `task` dirties between two checks of the limits.
    pub(super) fn ratelimit_pages(&self, task: u32) -> u64 {
        let usual = match self.machine.kernel.throttling() {
            Throttling::WritesBack => self.ratelimit_pages_max(),
            Throttling::Sleeps | Throttling::Balances => self.tasks[task as usize].pacing.pages,
        };
        if self.dirty_exceeded { usual.min(EXCEEDED_PAGES) } else { usual }
    }
}
