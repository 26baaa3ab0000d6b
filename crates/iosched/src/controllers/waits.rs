//! A place of which so many at once may be taken, and who waits for one.

use std::collections::VecDeque;

use super::bio_state::{BioId, Passage};
use super::site::Site;

/// Places, and bios that wait for one in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// Places taken. Below zero where more were given back than taken, as can be when a controller was off meanwhile.
    pub(super) inflight: i64,
    waiting: VecDeque<BioId>,
}

impl Waits {
    /// A bio comes and takes a place if there is one below `limit` and nobody waits; otherwise it waits.
    pub(super) fn arrive(&mut self, bio_id: BioId, limit: u32) -> Passage {
        if self.waiting.is_empty() && self.inflight < i64::from(limit) {
            self.inflight += 1;
            return Passage::Pass;
        }
        self.waiting.push_back(bio_id);
        Passage::Wait
    }

    /// The first that waits.
    pub(super) fn first(&self) -> Option<BioId> {
        self.waiting.front().copied()
    }

    /// Lets all that wait go on without a place.
    pub(super) fn release(&mut self, site: &mut Site) {
        for bio_id in self.waiting.drain(..) {
            site.go_on(bio_id);
        }
    }

    /// Gives the first that waits a place, if there is one below `limit`.
    pub(super) fn wake_one(&mut self, site: &mut Site, limit: u32) -> bool {
        let Some(first) = self.first().filter(|_| self.inflight < i64::from(limit)) else { return false };
        self.waiting.pop_front();
        self.inflight += 1;
        site.go_on(first);
        true
    }
}
