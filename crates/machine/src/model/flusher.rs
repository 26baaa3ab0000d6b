//! The writeback thread of a disk. It writes old pages every few seconds. If many pages are dirty,
//! it writes more pages.

use super::Model;
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use crate::description::Throttling;

/// Number of pages of one pass of the thread.
const PASS_PAGES: u64 = 1024;
/// Longest wait for a congested queue, ns.
pub(super) const CONGESTION_WAIT_NS: u64 = 100_000_000;

/// The loop of the writeback thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flusher {
    disk: usize,
    /// Time of the next search for old pages, ns.
    next_ns: u64,
    stage: FlusherStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlusherStage {
    /// Looking for work.
    Look,
    /// A pass over this scope is done.
    Passed(Scope),
    /// The thread has waited because the queue was congested, and continues with this scope.
    Again(Scope),
}

impl Flusher {
    pub(super) const fn new(disk: usize, first_ns: u64) -> Self {
        Self { disk, next_ns: first_ns, stage: FlusherStage::Look }
    }

    fn pass(&mut self, scope: Scope, pages: u64) -> Action {
        self.stage = FlusherStage::Passed(scope);
        Action::Push(Frame::Writeback(Writeback::new(self.disk, scope, pages).nonblocking()))
    }
}

impl Model {
    /// Returns the number of pages of one pass of a disk's thread. In today's kernels, this is what
    /// the disk writes in half a second, but at most an eighth of the limit on dirty pages.
    fn pass_pages(&self, disk: usize) -> u64 {
        match self.machine.kernel.throttling() {
            Throttling::Balances => {
                let half_a_second = self.disks[disk].rate.pages_per_s() / 2;
                half_a_second.min(self.dirty_limits().1 / 8) / PASS_PAGES * PASS_PAGES
            }
            Throttling::WritesBack | Throttling::Sleeps => PASS_PAGES,
        }
        .max(PASS_PAGES)
    }

    pub(super) fn flusher(&mut self, task: u32, flusher: &mut Flusher) -> Action {
        match std::mem::replace(&mut flusher.stage, FlusherStage::Look) {
            FlusherStage::Look => self.look(flusher),
            FlusherStage::Again(scope) => flusher.pass(scope, self.pass_pages(flusher.disk)),
            FlusherStage::Passed(scope) => {
                let outcome = std::mem::take(&mut self.tasks[task as usize].written);
                match scope {
                    _ if outcome.congested => {
                        // The thread checks again whether background writeback is still needed.
                        if scope != Scope::All {
                            flusher.stage = FlusherStage::Again(scope);
                        }
                        Action::Block(Wait::Congestion(flusher.disk, self.now_ns + CONGESTION_WAIT_NS))
                    }
                    // The pass wrote nothing, because other tasks write the dirty pages. The thread
                    // looks again later.
                    Scope::All if outcome.written == 0 => Action::Block(Wait::Until(self.now_ns + CONGESTION_WAIT_NS)),
                    Scope::All => Action::Cpu(0),
                    _ if outcome.more => flusher.pass(scope, self.pass_pages(flusher.disk)),
                    _ => Action::Cpu(0),
                }
            }
        }
    }

    /// Begins the next pass, or waits for work.
    fn look(&self, flusher: &mut Flusher) -> Action {
        if self.now_ns >= flusher.next_ns {
            let vm = &self.machine.vm;
            flusher.next_ns = self.now_ns + vm.dirty_writeback_ms * 1_000_000;
            let pages = self.pass_pages(flusher.disk);
            let oldest_ns = self.now_ns.saturating_sub(vm.dirty_expire_ms * 1_000_000);
            return flusher.pass(Scope::Older(oldest_ns), pages);
        }
        if self.over_background() {
            return flusher.pass(Scope::All, self.pass_pages(flusher.disk));
        }
        Action::Block(Wait::Work(flusher.next_ns))
    }
}
