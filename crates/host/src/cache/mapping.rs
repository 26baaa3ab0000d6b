//! The runs of one mapping in order of offset: found by a hint, by walking when they are few, by a tree when they are many.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::run::{NIL, Run, Runs};

/// So many runs are found by walking; most files are small and have one.
const WALKED_RUNS: u32 = 8;

/// Where a page is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In this run.
    In(u32),
    /// Between these runs, either of which may be none.
    Between(u32, u32),
}

/// Of a mapping of many runs: all of them and the dirty ones, by first page.
#[derive(Clone, Debug, Default)]
struct Tree {
    runs: BTreeMap<u64, u32>,
    dirty: BTreeSet<u64>,
}

/// One mapping.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) first: u32,
    last: u32,
    /// The run of the last operation.
    hint: u32,
    nr_runs: u32,
    pub(super) pages: u64,
    /// Dirty, also those of them under writeback.
    pub(super) dirty: u64,
    pub(super) writeback: u64,
    tree: Option<Box<Tree>>,
}

impl Slot {
    pub(super) const fn new() -> Self {
        Self { first: NIL, last: NIL, hint: NIL, nr_runs: 0, pages: 0, dirty: 0, writeback: 0, tree: None }
    }

    /// Remembers where the next operation is likely to be.
    #[inline]
    pub(super) const fn set_hint(&mut self, id: u32) {
        self.hint = id;
    }

    #[inline]
    pub(super) fn find(&self, runs: &Runs, page: u64) -> Place {
        if self.hint != NIL && runs[self.hint].page <= page {
            let run = &runs[self.hint];
            if page < run.end() {
                return Place::In(self.hint);
            }
            let behind = run.behind;
            if behind == NIL || page < runs[behind].page {
                return Place::Between(self.hint, behind);
            }
            if page < runs[behind].end() {
                return Place::In(behind);
            }
        }
        self.search(runs, page)
    }

    fn search(&self, runs: &Runs, page: u64) -> Place {
        let at_or_before = match &self.tree {
            Some(tree) => tree.runs.range(..=page).next_back().map_or(NIL, |(_, &id)| id),
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
        match at_or_before {
            NIL => Place::Between(NIL, self.first),
            id if page < runs[id].end() => Place::In(id),
            id => Place::Between(id, runs[id].behind),
        }
    }

    /// The first dirty run that has a page at or behind `from`.
    pub(super) fn first_dirty(&self, runs: &Runs, from: u64) -> u32 {
        if self.dirty == 0 {
            return NIL;
        }
        let mut id = match self.find(runs, from) {
            Place::In(id) => id,
            Place::Between(_, behind) => behind,
        };
        if id == NIL || runs[id].is_dirty() {
            return id;
        }
        if let Some(tree) = &self.tree {
            let next = tree.dirty.range((Bound::Excluded(runs[id].page), Bound::Unbounded)).next();
            return next.map_or(NIL, |page| tree.runs[page]);
        }
        while id != NIL && !runs[id].is_dirty() {
            id = runs[id].behind;
        }
        id
    }

    /// Links a run that is complete but for `before` and `behind` in between the two.
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
        self.hint = id;
        if self.tree.is_some() {
            self.enter(&runs[id], id);
        } else if self.nr_runs > WALKED_RUNS {
            self.tree = Some(Box::default());
            let mut id = self.first;
            while id != NIL {
                self.enter(&runs[id], id);
                id = runs[id].behind;
            }
        }
    }

    /// Takes a run out; its pages are counted elsewhere.
    pub(super) fn unlink(&mut self, runs: &mut Runs, id: u32) {
        let Run { before, behind, .. } = runs[id];
        self.leave(&runs[id]);
        match before {
            NIL => self.first = behind,
            before => runs[before].behind = behind,
        }
        match behind {
            NIL => self.last = before,
            behind => runs[behind].before = before,
        }
        self.nr_runs -= 1;
        if self.hint == id {
            self.hint = if before == NIL { behind } else { before };
        }
        if self.nr_runs == 0 {
            self.tree = None;
        }
    }

    /// Moves the first page of a run, which keeps its place among the others.
    pub(super) fn move_start(&mut self, runs: &mut Runs, id: u32, page: u64) {
        self.leave(&runs[id]);
        let end = runs[id].end();
        runs[id].page = page;
        runs[id].pages = (end - page) as u32;
        self.enter(&runs[id], id);
    }

    /// A run that was dirty is not, or the other way round; to be told behind the change.
    #[inline]
    pub(super) fn dirtiness_changed(&mut self, run: &Run) {
        if let Some(tree) = &mut self.tree {
            if run.is_dirty() {
                tree.dirty.insert(run.page);
            } else {
                tree.dirty.remove(&run.page);
            }
        }
    }

    fn enter(&mut self, run: &Run, id: u32) {
        if let Some(tree) = &mut self.tree {
            tree.runs.insert(run.page, id);
            if run.is_dirty() {
                tree.dirty.insert(run.page);
            }
        }
    }

    fn leave(&mut self, run: &Run) {
        if let Some(tree) = &mut self.tree {
            tree.runs.remove(&run.page);
            if run.is_dirty() {
                tree.dirty.remove(&run.page);
            }
        }
    }

    /// Panics where its own parts disagree.
    pub(super) fn check(&self, runs: &Runs) {
        let (mut before, mut id, mut count) = (NIL, self.first, 0);
        let (mut pages, mut dirty) = (0, BTreeSet::new());
        while id != NIL {
            let run = &runs[id];
            assert_eq!(run.before, before, "links by offset go both ways");
            assert!(
                before == NIL || runs[before].end() <= run.page,
                "runs do not overlap and stand in order of offset"
            );
            if let Some(tree) = &self.tree {
                assert_eq!(tree.runs.get(&run.page), Some(&id), "the tree has every run");
            }
            if run.is_dirty() {
                dirty.insert(run.page);
            }
            (pages, count) = (pages + u64::from(run.pages), count + 1);
            (before, id) = (id, run.behind);
        }
        assert_eq!(self.last, before, "the last run");
        assert_eq!((self.nr_runs, self.pages), (count, pages), "runs and pages of a mapping");
        if let Some(tree) = &self.tree {
            assert_eq!(tree.runs.len(), count as usize, "the tree has no other runs");
            assert_eq!(tree.dirty, dirty, "dirty runs of the tree");
        }
    }
}
