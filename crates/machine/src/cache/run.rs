//! Runs of pages and the slab they live in.

use super::State;

/// No run.
pub(super) const NIL: u32 = u32::MAX;

/// Longest run: 4 MiB. What is done to a part of a run never costs more than this many pages' worth of one.
pub(super) const PAGES_PER_RUN: u32 = 1024;

/// What the pages of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) state: State,
    /// On the active list, not on the inactive one.
    pub(super) active: bool,
    /// Touched once where it is.
    pub(super) referenced: bool,
}

/// Consecutive pages of one mapping, the lowest the oldest, next to one another on their list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// First page.
    pub(super) page: u64,
    pub(super) mapping: u32,
    pub(super) pages: u32,
    /// Next towards the oldest end of its list.
    pub(super) older: u32,
    /// Next towards the newest end of its list.
    pub(super) newer: u32,
    /// The run of lower pages of the same mapping.
    pub(super) before: u32,
    /// The run of higher pages of the same mapping.
    pub(super) behind: u32,
    /// Where the index of its mapping has it, if there is one.
    pub(super) block: u32,
    pub(super) attributes: Attributes,
    /// Some of its pages may have a readahead mark.
    pub(super) marked: bool,
}

impl Run {
    /// A run that no list has yet.
    pub(super) const fn unlinked(mapping: u32, page: u64, pages: u32, attributes: Attributes) -> Self {
        let (older, newer, before, behind) = (NIL, NIL, NIL, NIL);
        Self { page, mapping, pages, older, newer, before, behind, block: NIL, attributes, marked: false }
    }

    /// The page behind the last.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.page + self.pages as u64
    }

    #[inline]
    pub(super) fn is_dirty(&self) -> bool {
        self.attributes.state == State::Dirty
    }
}

/// All runs, by number. A number is used again when its run is gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    slots: Vec<Run>,
    free: Vec<u32>,
}

impl Runs {
    pub(super) fn add(&mut self, run: Run) -> u32 {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = run;
            return id;
        }
        let id = self.slots.len() as u32;
        assert!(id != NIL, "the page cache has too many runs");
        self.slots.push(run);
        id
    }

    /// Gives the number of a run back that nothing names any longer, but for those who look whether it has their page.
    pub(super) fn release(&mut self, id: u32) {
        self.slots[id as usize].pages = 0;
        self.free.push(id);
    }

    /// Runs there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl std::ops::Index<u32> for Runs {
    type Output = Run;

    #[inline]
    fn index(&self, id: u32) -> &Run {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<u32> for Runs {
    #[inline]
    fn index_mut(&mut self, id: u32) -> &mut Run {
        &mut self.slots[id as usize]
    }
}
