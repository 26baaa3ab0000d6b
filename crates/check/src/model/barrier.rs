//! What barriers promise: everything submitted before one is complete before it is issued, nothing submitted after it is
//! issued before it is complete.
//!
//! A bio's cookie says when it was submitted: later ones are larger.

use std::collections::VecDeque;

use crate::violation::{Checked, ensure};

/// Whether a bio is a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ordering {
    /// It is none.
    None,
    /// It arrived while elevators were switched: the layer of the one that takes over decides.
    Undecided,
    /// It is one.
    Barrier,
}

/// Barriers that are not complete.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// In order of submission.
    waiting: VecDeque<u64>,
    /// The device has had something to do for the first.
    begun: bool,
}

impl Barriers {
    pub(super) fn push(&mut self, cookie: u64) {
        self.waiting.push_back(cookie);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The first, if the device has had nothing to do for it.
    pub(super) fn next(&self) -> Option<u64> {
        self.waiting.front().copied().filter(|_| !self.begun)
    }

    /// The first begins, and these many bios before it are under way.
    pub(super) fn begin(&mut self, earlier: usize) -> Checked {
        ensure!(
            earlier == 0,
            NothingCrossesABarrier,
            "{:x?} began before {earlier} bios that precede it",
            self.waiting
        );
        self.begun = true;
        Ok(())
    }

    /// The bio is issued or complete.
    #[inline]
    pub(super) fn pass(&self, cookie: u64) -> Checked {
        ensure!(
            self.waiting.front().is_none_or(|&first| cookie <= first),
            NothingCrossesABarrier,
            "bio {cookie:x} was issued before barrier {:x?}, which precedes it, was complete",
            self.waiting
        );
        Ok(())
    }

    /// The bio is complete.
    pub(super) fn complete(&mut self, cookie: u64) {
        if self.waiting.front() == Some(&cookie) {
            self.waiting.pop_front();
            self.begun = false;
        }
    }
}
