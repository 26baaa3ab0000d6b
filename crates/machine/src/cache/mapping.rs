//! The runs of one mapping, in order of offset. A search first tries the run of the last operation.
//! If this fails, the search walks through the runs of a mapping with few runs. For a mapping with
//! many runs, it uses the index.

use std::cell::Cell;

use super::index::Index;
use super::run::{NIL, Run, Runs};

/// Maximum number of runs of a mapping without an index. Most files are small and have only one
/// run.
const WALKED_RUNS: u32 = 8;

/// Result of looking up a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageLookup {
    /// The page is in this run.
    In(u32),
    /// The page is absent. The fields are the runs before and after the page, or `NIL`.
    Between(u32, u32),
}

/// Runs and counts of one mapping.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) first: u32,
    last: u32,
    /// The run of the last operation.
    hint: Cell<u32>,
    nr_runs: u32,
    pub(super) pages: u64,
    /// Number of dirty pages, including pages that were dirtied under writeback.
    pub(super) dirty: u64,
    pub(super) writeback: u64,
    index: Option<Box<Index>>,
}

impl Slot {
    pub(super) const fn new() -> Self {
        Self { first: NIL, last: NIL, hint: Cell::new(NIL), nr_runs: 0, pages: 0, dirty: 0, writeback: 0, index: None }
    }

    /// Stores the run that the next operation is likely to need.
    #[inline]
    pub(super) fn set_hint(&self, id: u32) {
        self.hint.set(id);
    }

    #[inline]
    pub(super) fn find(&self, runs: &Runs, page: u64) -> PageLookup {
        let hint = self.hint.get();
        if hint != NIL && runs[hint].page <= page {
            let run = &runs[hint];
            if page < run.end() {
                return PageLookup::In(hint);
            }
            let behind = run.behind;
            if behind == NIL || page < runs[behind].page {
                return PageLookup::Between(hint, behind);
            }
            if page < runs[behind].end() {
                return PageLookup::In(behind);
            }
        }
        self.search(runs, page)
    }

    fn search(&self, runs: &Runs, page: u64) -> PageLookup {
        let at_or_before = match &self.index {
            Some(index) => {
                let recalled = index.recall(runs, runs[self.first].mapping, page);
                recalled.unwrap_or_else(|| index.last_from(page))
            }
            None => {
                let mut before = NIL;
                let mut id = self.first;
                while id != NIL && runs[id].page <= page {
                    before = id;
                    id = runs[id].behind;
                }
                before
            }
        };
        if at_or_before == NIL {
            return PageLookup::Between(NIL, self.first);
        }
        self.set_hint(at_or_before);
        if page < runs[at_or_before].end() {
            self.index.iter().for_each(|index| index.remember(page, at_or_before));
            PageLookup::In(at_or_before)
        } else {
            PageLookup::Between(at_or_before, runs[at_or_before].behind)
        }
    }

    /// Returns the first dirty run that has a page at or after `from`.
    pub(super) fn first_dirty(&self, runs: &Runs, from: u64) -> u32 {
        if self.dirty == 0 {
            return NIL;
        }
        let mut id = match self.find(runs, from) {
            PageLookup::In(id) => id,
            PageLookup::Between(_, behind) => behind,
        };
        if id == NIL || runs[id].is_dirty() {
            return id;
        }
        if let Some(index) = &self.index {
            return index.first_dirty_behind(runs, id);
        }
        while id != NIL && !runs[id].is_dirty() {
            id = runs[id].behind;
        }
        id
    }

    /// Links a run between `before` and `behind`. All other fields of the run are already set.
    pub(super) fn link(&mut self, runs: &mut Runs, id: u32, before: u32, behind: u32) {
        runs[id].before = before;
        runs[id].behind = behind;
        match before {
            NIL => self.first = id,
            before => runs[before].behind = id,
        }
        match behind {
            NIL => self.last = id,
            behind => runs[behind].before = id,
        }
        self.nr_runs += 1;
        self.set_hint(id);
        if let Some(index) = &mut self.index {
            index.insert(runs, id);
        } else if self.nr_runs > WALKED_RUNS {
            self.begin_index(runs);
        }
    }

    #[cold]
    fn begin_index(&mut self, runs: &mut Runs) {
        let mut index = Box::<Index>::default();
        let mut id = self.first;
        while id != NIL {
            // At this point, the index does not yet contain the runs after this run.
            let behind = std::mem::replace(&mut runs[id].behind, NIL);
            index.insert(runs, id);
            runs[id].behind = behind;
            id = behind;
        }
        self.index = Some(index);
    }

    /// Unlinks a run. The caller updates the counts of pages.
    pub(super) fn unlink(&mut self, runs: &mut Runs, id: u32) {
        if let Some(index) = &mut self.index {
            index.remove(runs, id);
        }
        let Run { before, behind, .. } = runs[id];
        match before {
            NIL => self.first = behind,
            before => runs[before].behind = behind,
        }
        match behind {
            NIL => self.last = before,
            behind => runs[behind].before = before,
        }
        self.nr_runs -= 1;
        if self.hint.get() == id {
            self.set_hint(if before == NIL { behind } else { before });
        }
        if self.nr_runs == 0 {
            self.index = None;
        }
    }

    /// Changes the first page of a run that keeps its position among the runs.
    #[inline]
    pub(super) fn move_start(&mut self, runs: &mut Runs, id: u32, page: u64) {
        let run = &mut runs[id];
        if let Some(index) = &mut self.index {
            index.move_start(run.block, run.page, page);
        }
        run.pages = (run.end() - page) as u32;
        run.page = page;
    }

    /// Updates the index after a run has become dirty or has become clean.
    #[inline]
    pub(super) fn dirtiness_changed(&mut self, run: &Run) {
        if let Some(index) = &mut self.index {
            index.set_dirty(run.block, run.page, run.is_dirty());
        }
    }

    /// Checks the links, the counts and the index. Panics if they disagree.
    pub(super) fn check(&self, runs: &Runs) {
        let (mut before, mut id, mut count, mut pages) = (NIL, self.first, 0, 0);
        while id != NIL {
            let run = &runs[id];
            assert_eq!(
                run.before, before,
                "each entry of the index by offset points to a run, and the run points back"
            );
            assert!(
                before == NIL || runs[before].end() <= run.page,
                "runs do not overlap, and are in the order of their offsets"
            );
            (pages, count) = (pages + u64::from(run.pages), count + 1);
            (before, id) = (id, run.behind);
        }
        assert_eq!(self.last, before, "the last run");
        assert_eq!((self.nr_runs, self.pages), (count, pages), "the counts of runs and pages of a mapping are correct");
        if let Some(index) = &self.index {
            index.check(runs, self.first);
        }
    }
}
