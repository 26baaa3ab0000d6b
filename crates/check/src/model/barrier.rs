//! The guarantees of barriers. A barrier starts only when all bios that were submitted before it
//! are complete. Bios that were submitted after the barrier start only when the barrier is
//! complete.
//!
//! A bio's cookie shows the order of submission: later bios have larger cookies.

use std::collections::VecDeque;

use super::{Layer, Model, Sequence, slot_of};
use crate::violation::{Checked, ensure};

/// Whether a bio is a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ordering {
    /// The bio is not a barrier.
    None,
    /// The bio arrived while elevators were switched. The layer of the new elevator decides.
    Undecided,
    /// The bio is a barrier.
    Barrier,
}

/// Barriers that are not complete.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    /// Cookies in order of submission.
    waiting: VecDeque<u64>,
    /// Whether the device has received a command of the first waiting barrier.
    begun: bool,
}

impl Barriers {
    pub(super) fn push(&mut self, cookie: u64) {
        self.waiting.push_back(cookie);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the first barrier, if the device has not received a command of it.
    pub(super) fn next(&self) -> Option<u64> {
        self.waiting.front().copied().filter(|_| !self.begun)
    }

    /// Begins the first barrier, with `earlier` preceding bios in flight.
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

    /// Checks a bio that starts or completes.
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

    /// Records the completion of a bio.
    pub(super) fn complete(&mut self, cookie: u64) {
        if self.waiting.front() == Some(&cookie) {
            self.waiting.pop_front();
            self.begun = false;
        }
    }
}

impl Model {
    /// Registers a bio with which a request began: as a bio that waits for a flush, or as the last
    /// of the waiting barriers.
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

    /// Registers the flushes and barriers that arrived during a switch, after an elevator of
    /// `layer` has taken over. Returns the last barrier among them.
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

    /// Begins the next barrier.
    pub(super) fn begin_barrier(&mut self, cookie: u64) -> Checked {
        self.barriers.begin(self.bios.iter().filter(|record| record.cookie != 0 && record.cookie < cookie).count())
    }

    /// Records that the device receives a flush. The flush belongs to the next barrier, unless
    /// other bios wait for a flush.
    pub(super) fn flush_for_barrier(&mut self) -> Checked {
        let Some(cookie) = self.barriers.next().filter(|_| !self.flushes.is_awaited()) else { return Ok(()) };
        self.begin_barrier(cookie)?;
        let record = &mut self.bios[slot_of(cookie)];
        record.flush_after = self.moment - 1;
        self.flushes.wait(record.sequence == Sequence::Before);
        Ok(())
    }
}
