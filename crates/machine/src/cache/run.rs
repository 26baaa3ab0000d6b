//! Runs of pages, and the slab that stores them.

use super::State;

/// Number that means "no run".
pub(super) const NIL: u32 = u32::MAX;

/// Maximum number of pages of a run: 1024 pages, which are 4 MiB. It limits the cost of an
/// operation on a part of a run.
pub(super) const PAGES_PER_RUN: u32 = 1024;

/// Attributes that the pages of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) state: State,
    /// Whether the pages are on the active list instead of the inactive list.
    pub(super) active: bool,
    /// Whether the pages were used once since they joined their list.
    pub(super) referenced: bool,
}

/// Consecutive pages of one mapping that are adjacent on their list. The lowest page is the oldest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// First page.
    pub(super) page: u64,
    pub(super) mapping: u32,
    pub(super) pages: u32,
    /// Next run towards the oldest end of its list.
    pub(super) older: u32,
    /// Next run towards the newest end of its list.
    pub(super) newer: u32,
    /// The preceding run of the same mapping, in order of pages.
    pub(super) before: u32,
    /// The following run of the same mapping, in order of pages.
    pub(super) behind: u32,
    /// Block of the run in the index of the mapping, if the mapping has an index.
    pub(super) block: u32,
    pub(super) attributes: Attributes,
    /// Whether some of its pages may have a readahead mark.
    pub(super) marked: bool,
}

impl Run {
    /// Creates a run that is on no list yet.
    pub(super) const fn unlinked(mapping: u32, page: u64, pages: u32, attributes: Attributes) -> Self {
        let (older, newer, before, behind) = (NIL, NIL, NIL, NIL);
        Self { page, mapping, pages, older, newer, before, behind, block: NIL, attributes, marked: false }
    }

    /// Returns the page after the last page of the run.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.page + self.pages as u64
    }

    #[inline]
    pub(super) fn is_dirty(&self) -> bool {
        self.attributes.state == State::Dirty
    }
}

/// All runs, by number. A new run can get the number of a released run.
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
        assert!(id != NIL, "the page cache has too many runs of consecutive pages");
        self.slots.push(run);
        id
    }

    /// Releases the number of an unlinked run. The index may still remember this number, so it must
    /// check whether a remembered run contains the page.
    pub(super) fn release(&mut self, id: u32) {
        self.slots[id as usize].pages = 0;
        self.free.push(id);
    }

    /// Returns the number of runs in use.
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
