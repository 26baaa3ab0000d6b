//! A limited number of places for bios in flight, and the bios that wait for a place.

use std::collections::VecDeque;

use super::bio_state::{BioId, Passage};
use super::site::Site;

/// Places of a controller, and the bios that wait for a place, in the order of arrival. Each bio in
/// flight takes a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// Number of taken places. It is negative if more places were returned than taken, because the
    /// controller was off in the meantime.
    pub(super) inflight: i64,
    waiting: VecDeque<BioId>,
}

impl Waits {
    /// Gives a new bio a place if fewer than `limit` places are taken and no bio waits. Otherwise
    /// the bio waits.
    pub(super) fn arrive(&mut self, bio_id: BioId, limit: u32) -> Passage {
        if self.waiting.is_empty() && self.inflight < i64::from(limit) {
            self.inflight += 1;
            return Passage::Pass;
        }
        self.waiting.push_back(bio_id);
        Passage::Wait
    }

    /// Returns the first waiting bio.
    pub(super) fn first(&self) -> Option<BioId> {
        self.waiting.front().copied()
    }

    /// Lets all waiting bios continue without a place.
    pub(super) fn release(&mut self, site: &mut Site) {
        for bio_id in self.waiting.drain(..) {
            site.go_on(bio_id);
        }
    }

    /// Gives the first waiting bio a place, if fewer than `limit` places are taken. Returns whether
    /// the bio got a place.
    pub(super) fn wake_one(&mut self, site: &mut Site, limit: u32) -> bool {
        let Some(first) = self.first().filter(|_| self.inflight < i64::from(limit)) else { return false };
        self.waiting.pop_front();
        self.inflight += 1;
        site.go_on(first);
        true
    }
}
