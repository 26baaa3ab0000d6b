//! Order of held bios: a group serves its sources in turn, one bio each. Its
//! own processes and each child are sources.

use std::collections::VecDeque;

use crate::context::CgroupId;
use crate::controllers::bio_state::BioId;

/// Source of a held bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// Processes of the group.
    Own,
    /// Child of the group.
    Child(CgroupId),
}

/// Waiting bios of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingBios {
    /// Sources with bios, in turn.
    ring: VecDeque<(Source, VecDeque<BioId>)>,
    len: usize,
}

impl WaitingBios {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, source: Source, bio_id: BioId) {
        self.len += 1;
        match self.ring.iter_mut().find(|(other, _)| *other == source) {
            Some((_, bios)) => bios.push_back(bio_id),
            None => self.ring.push_back((source, VecDeque::from([bio_id]))),
        }
    }

    /// Returns the next bio.
    pub(super) fn head(&self) -> Option<BioId> {
        self.ring.front().and_then(|(_, bios)| bios.front()).copied()
    }

    /// Removes the next bio, and returns it with its source.
    pub(super) fn pop(&mut self) -> Option<(Source, BioId)> {
        let (source, mut bios) = self.ring.pop_front()?;
        let bio_id = bios.pop_front()?;
        self.len -= 1;
        if !bios.is_empty() {
            self.ring.push_back((source, bios));
        }
        Some((source, bio_id))
    }
}
