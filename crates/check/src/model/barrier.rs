//! What barriers promise: everything submitted before one is complete before it is issued, nothing submitted after it
//! is issued before it is complete.
//!
//! A bio's cookie says when it was submitted: later ones are larger.

use std::collections::VecDeque;

use super::{Layer, Model, Sequence, slot_of};
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

impl Model {
    /// Where a bio that founded a request stands from now on among flushes and barriers. A barrier waits for its turn.
    pub(super) fn order(&mut self, cookie: u64) {
        let record = &self.bios[slot_of(cookie)];
        match record.ordering {
            Ordering::None if matches!(record.sequence, Sequence::Flush | Sequence::Before) => {
                self.flushes.wait(record.sequence == Sequence::Before);
            }
            Ordering::None | Ordering::Undecided => {}
            Ordering::Barrier => self.barriers.push(cookie),
        }
    }

    /// An elevator of `layer` has taken over: what arrived meanwhile takes its place. The last barrier among it.
    pub(crate) fn taken_over(&mut self, layer: Layer) -> Option<u64> {
        let held = self.bios.iter().filter(|record| record.cookie != 0 && record.ordering == Ordering::Undecided);
        let mut held: Vec<_> = held.map(|record| record.cookie).collect();
        held.sort_unstable();
        let ordering = if layer == Layer::Single { Ordering::Barrier } else { Ordering::None };
        for &cookie in &held {
            self.bios[slot_of(cookie)].ordering = ordering;
            self.order(cookie);
        }
        held.last().copied().filter(|_| layer == Layer::Single)
    }

    /// The next barrier begins.
    pub(super) fn begin_barrier(&mut self, cookie: u64) -> Checked {
        self.barriers.begin(self.bios.iter().filter(|record| record.cookie != 0 && record.cookie < cookie).count())
    }

    /// The device flush that is given to the device now is that of the next barrier, unless others wait for one.
    pub(super) fn flush_for_barrier(&mut self) -> Checked {
        let Some(cookie) = self.barriers.next().filter(|_| !self.flushes.is_awaited()) else { return Ok(()) };
        self.begin_barrier(cookie)?;
        let record = &mut self.bios[slot_of(cookie)];
        record.flush_after = self.moment - 1;
        self.flushes.wait(record.sequence == Sequence::Before);
        Ok(())
    }
}
