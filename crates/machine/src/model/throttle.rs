//! Limits on what is dirty: who dirties more is held back.

use super::Model;
use super::flusher::CONGESTION_WAIT_NS;
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use crate::description::Throttling;

/// Most pages dirtied between two looks at the limits: 4 MiB.
const RATELIMIT_PAGES_MAX: u64 = 1024;
/// The same while the limit is exceeded.
const EXCEEDED_PAGES: u64 = 8;
/// Shortest and longest sleep of a writer that is paced, ns.
const PAUSE_NS: (u64, u64) = (10_000_000, 200_000_000);
/// Assumed rate of writeback before any was seen, pages a second: 100 MB/s.
const RATE_FIRST: u64 = 25_600;
/// How often the rate is measured, ns.
const RATE_PERIOD_NS: u64 = 200_000_000;

/// A writer that is held up to the limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttle {
    disk: usize,
    /// Pages it has dirtied since the last time.
    dirtied: u64,
    /// Pages it has written back itself.
    written: u64,
    stage: ThrottleStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleStage {
    Look,
    Written,
    Waited,
}

impl Throttle {
    pub(super) const fn new(disk: usize, dirtied: u64) -> Self {
        Self { disk, dirtied, written: 0, stage: ThrottleStage::Look }
    }
}

/// How fast a disk writes back.
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

    /// A disk has written so many pages until now.
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

impl Model {
    pub(super) fn throttle(&mut self, task: u32, throttle: &mut Throttle) -> Action {
        match self.machine.kernel.throttling() {
            Throttling::WritesBack => self.write_back_own(task, throttle),
            Throttling::Sleeps => self.pace(throttle),
        }
    }

    /// A writer above the limit writes back some pages itself, and waits if that does not help.
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

    /// A writer sleeps as long as the disk takes for what it has dirtied, less below the middle of the limits and more
    /// above.
    fn pace(&mut self, throttle: &mut Throttle) -> Action {
        let disk = &mut self.disks[throttle.disk];
        disk.rate.update(self.now_ns, disk.written_pages);
        let rate = disk.rate.pages_per_s.max(1);
        self.start_background();
        let (background, hard) = self.dirty_limits();
        let unclean = self.cache.nr_dirty() + self.cache.nr_writeback();
        let free_run = (background + hard) / 2;
        self.dirty_exceeded = unclean > free_run;
        if unclean <= free_run || (throttle.stage == ThrottleStage::Waited && unclean <= hard) {
            return Action::Pop;
        }
        // At the setpoint, the middle of free run and limit, as fast as the disk; twice as fast at free run, not at all at the limit.
        let setpoint = (free_run + hard) / 2;
        let span = (hard - setpoint).max(1);
        let share = (setpoint + span).saturating_sub(unclean).min(2 * span);
        let pages = u128::from(throttle.dirtied.max(1));
        let pause_ns = pages * 1_000_000_000 * u128::from(span) / (u128::from(rate) * u128::from(share.max(1)));
        let pause_ns = (pause_ns.min(u128::from(PAUSE_NS.1)) as u64).max(PAUSE_NS.0);
        throttle.stage = ThrottleStage::Waited;
        Action::Block(Wait::Until(self.now_ns + pause_ns))
    }

    /// Pages from which on writeback begins in the background, and from which on writers are held back.
    #[must_use]
    pub fn dirty_limits(&self) -> (u64, u64) {
        let pages = self.cache.pages_max();
        let vm = &self.machine.vm;
        (pages * u64::from(vm.dirty_background_ratio) / 100, pages * u64::from(vm.dirty_ratio) / 100)
    }

    /// Whether so much is dirty that it is written in the background.
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

    /// Pages that a task dirties between two looks at the limits.
    pub(super) fn ratelimit_pages(&self) -> u64 {
        if self.dirty_exceeded { EXCEEDED_PAGES } else { self.ratelimit_pages_max() }
    }
}
