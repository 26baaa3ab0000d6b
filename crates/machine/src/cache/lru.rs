//! The order of runs on the active and the inactive list.

use super::run::{NIL, Runs};

/// A list of runs from the oldest to the newest, linked through the runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) oldest: u32,
    pub(super) newest: u32,
    /// Number of pages of the runs.
    pub(super) pages: u64,
    /// Number of clean pages of the runs.
    pub(super) clean: u64,
}

impl List {
    pub(super) const fn new() -> Self {
        Self { oldest: NIL, newest: NIL, pages: 0, clean: 0 }
    }

    /// Links a run at the newest end. The caller updates the counts of pages.
    #[inline]
    pub(super) fn push_newest(&mut self, runs: &mut Runs, id: u32) {
        runs[id].older = self.newest;
        runs[id].newer = NIL;
        match self.newest {
            NIL => self.oldest = id,
            newest => runs[newest].newer = id,
        }
        self.newest = id;
    }

    /// Links a run directly after `anchor`, towards the newest end.
    #[inline]
    pub(super) fn push_newer_than(&mut self, runs: &mut Runs, anchor: u32, id: u32) {
        let newer = runs[anchor].newer;
        runs[id].older = anchor;
        runs[id].newer = newer;
        runs[anchor].newer = id;
        match newer {
            NIL => self.newest = id,
            newer => runs[newer].older = id,
        }
    }

    #[inline]
    pub(super) fn unlink(&mut self, runs: &mut Runs, id: u32) {
        let (older, newer) = (runs[id].older, runs[id].newer);
        match older {
            NIL => self.oldest = newer,
            older => runs[older].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => runs[newer].older = older,
        }
    }
}
