//! The page cache: which pages of which file are in memory, in what state, and which of them go when room is needed.
//!
//! Pages are kept in runs: consecutive pages of a mapping in the same state and next to one another in the order of
//! reclaim. An operation costs per run it touches, whatever the number of pages; a run is split where an operation
//! covers a part of it, and neighbours are joined again as soon as nothing tells them apart.
//!
//! A page is on one of two lists, as in Linux from 2.4 on. It begins at the newest end of the *inactive* list. The
//! first [access](PageCache::access) makes it referenced, the second moves it to the newest end of the *active* list.
//! Room is made from the oldest end of the inactive list by [dropping clean pages](PageCache::insert).
//!
//! The caller owns time and I/O: it reads pages that it inserts as [`State::Reading`], chooses when dirty pages are
//! written back, and tells when either is done. How long pages are dirty, limits of dirty pages and who waits for what
//! are its business as well.
//!
//! The families of calls: *look* ([`get`](PageCache::get), [`next_dirty`](PageCache::next_dirty), counts), *fill*
//! ([`insert`](PageCache::insert), [`read_done`](PageCache::read_done)), *use* ([`access`](PageCache::access),
//! [`set_dirty`](PageCache::set_dirty)), *write back* ([`start_writeback`](PageCache::start_writeback),
//! [`end_writeback`](PageCache::end_writeback)), *drop* ([`truncate`](PageCache::truncate),
//! [`invalidate`](PageCache::invalidate)) and *readahead marks* ([`mark`](PageCache::mark)).

mod change;
mod check;
mod index;
mod lru;
mod mapping;
mod reclaim;
mod run;

use std::collections::BTreeSet;

use lru::List;
use mapping::{PageLookup, Slot};
use run::{Attributes, NIL, PAGES_PER_RUN, Run, Runs};

/// The list of pages that were used once, or not yet: numbers of lists follow [`Attributes::active`].
const INACTIVE: usize = 0;
/// The list of pages that were used again.
const ACTIVE: usize = 1;

/// Whose pages: the number of an inode, or of a block device's own cache. Numbers are the caller's; memory is needed
/// for all up to the highest, so they are dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mapping(pub u32);

/// What a page is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Being read: not yet of use to anybody.
    Reading,
    /// As on the device.
    Clean,
    /// To be written back.
    Dirty,
    /// Being written back.
    Writeback,
    /// Being written back and dirtied since that began: dirty again when it ends.
    Redirtied,
}

impl State {
    /// Dirty, also while under writeback.
    #[must_use]
    pub const fn is_dirty(self) -> bool {
        matches!(self, Self::Dirty | Self::Redirtied)
    }

    /// Under writeback, dirtied again or not.
    #[must_use]
    pub const fn is_writeback(self) -> bool {
        matches!(self, Self::Writeback | Self::Redirtied)
    }
}

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Not in memory.
    Absent {
        /// The first page behind it that is, or `u64::MAX`.
        until: u64,
    },
    /// In memory.
    Run {
        /// Its state, and that of the following pages.
        state: State,
        /// The page behind the last that is known to be in the same state; pages from there on may be as well.
        until: u64,
    },
}

/// How many of the oldest active pages become inactive when room is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Linux up to 2.6.30: both lists are gone through at the same pace, so for each page dropped, as many as the
    /// active list is longer than the inactive one. What is used once wears away what was used again.
    Proportional,
    /// Linux from 2.6.31 on: as many as the active list is longer than half of both. Up to half of the memory is safe
    /// from what is used once.
    #[default]
    Halves,
}

/// There was not room enough, and no clean page left to drop: something must be written back, or read to its end,
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the page cache is too small: {missing_pages} more pages are needed, and all others are dirty, under \
 writeback or being read"
)]
pub struct NoRoom {
    /// Pages short.
    pub missing_pages: u64,
}

/// The pages in memory.
#[derive(Clone, Debug)]
pub struct PageCache {
    pages_max: u64,
    runs: Runs,
    mappings: Vec<Slot>,
    /// Inactive and active.
    lists: [List; 2],
    balance: Balance,
    /// Of the proportional balance: what is left of a page of the active list, in pages dropped times active pages.
    scan_remainder: u128,
    nr_reading: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    marks: BTreeSet<(u32, u64)>,
}

impl PageCache {
    /// An empty cache for at most `pages_max` pages, balanced as today.
    #[must_use]
    pub fn new(pages_max: u64) -> Self {
        Self::with_balance(pages_max, Balance::default())
    }

    /// An empty cache for at most `pages_max` pages.
    #[must_use]
    pub fn with_balance(pages_max: u64, balance: Balance) -> Self {
        Self {
            pages_max,
            runs: Runs::default(),
            mappings: Vec::new(),
            lists: [List::new(); 2],
            balance,
            scan_remainder: 0,
            nr_reading: 0,
            nr_dirty: 0,
            nr_writeback: 0,
            marks: BTreeSet::new(),
        }
    }

    /// What is known of a page.
    #[must_use]
    pub fn get(&self, mapping: Mapping, page: u64) -> Cached {
        match self.find(mapping.0, page) {
            PageLookup::In(id) => Cached::Run { state: self.runs[id].attributes.state, until: self.runs[id].end() },
            PageLookup::Between(_, NIL) => Cached::Absent { until: u64::MAX },
            PageLookup::Between(_, behind) => Cached::Absent { until: self.runs[behind].page },
        }
    }

    /// Puts pages into memory that are not there yet, as the newest of the inactive list, in order of offset.
    ///
    /// Clean pages are dropped where room is needed, 32 at least: any clean page may be gone afterwards, those of the
    /// same mapping not excepted. Nothing is done to pages that are dirty, under writeback or being read.
    ///
    /// # Errors
    ///
    /// [`NoRoom`], with nothing changed, when dropping every clean page would not do.
    ///
    /// # Panics
    ///
    /// If one of the pages is in memory, or `state` is [`State::Redirtied`].
    pub fn insert(&mut self, mapping: Mapping, page: u64, pages: u64, state: State) -> Result<(), NoRoom> {
        self.insert_as(mapping, page, pages, Attributes { state, active: false, referenced: false })
    }

    /// As [`PageCache::insert`] and then [`PageCache::access`], at less cost: what a write of new pages does.
    ///
    /// # Errors
    ///
    /// As [`PageCache::insert`].
    ///
    /// # Panics
    ///
    /// As [`PageCache::insert`].
    pub fn insert_accessed(&mut self, mapping: Mapping, page: u64, pages: u64, state: State) -> Result<(), NoRoom> {
        self.insert_as(mapping, page, pages, Attributes { state, active: false, referenced: true })
    }

    fn insert_as(&mut self, mapping: Mapping, page: u64, pages: u64, attributes: Attributes) -> Result<(), NoRoom> {
        assert!(attributes.state != State::Redirtied, "a page begins with at most one write under way");
        if pages == 0 {
            return Ok(());
        }
        self.make_room(pages)?;
        if mapping.0 as usize >= self.mappings.len() {
            self.mappings.resize_with(mapping.0 as usize + 1, Slot::new);
        }
        let PageLookup::Between(mut before, behind) = self.find(mapping.0, page) else {
            panic!("page {page} of mapping {} is in the cache", mapping.0)
        };
        let end = page + pages;
        assert!(behind == NIL || self.runs[behind].page >= end, "pages from {page} to {end} are in the cache in part");
        self.count_in(mapping.0, attributes, pages);
        let mut page = page;
        if before != NIL && before == self.lists[INACTIVE].newest {
            let run = &mut self.runs[before];
            if run.end() == page && run.attributes == attributes {
                let joined = pages.min(u64::from(PAGES_PER_RUN - run.pages));
                run.pages += joined as u32;
                page += joined;
                self.mappings[mapping.0 as usize].set_hint(before);
            }
        }
        while page < end {
            let pages = (end - page).min(u64::from(PAGES_PER_RUN)) as u32;
            let id = self.runs.add(Run::unlinked(mapping.0, page, pages, attributes));
            self.mappings[mapping.0 as usize].link(&mut self.runs, id, before, behind);
            self.lists[INACTIVE].push_newest(&mut self.runs, id);
            before = id;
            page += u64::from(pages);
        }
        Ok(())
    }

    /// Pages are used: read or written through a system call. The first time makes a page referenced, the second moves
    /// it to the newest end of the active list, the third makes it referenced there; absent pages are passed over.
    pub fn access(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change(mapping.0, page, pages, |old| match old {
            Attributes { referenced: false, .. } => Attributes { referenced: true, ..old },
            Attributes { active: false, .. } => Attributes { active: true, referenced: false, ..old },
            Attributes { .. } => old,
        });
    }

    /// Pages are written to; returns how many were not dirty before. Under writeback they become [`State::Redirtied`];
    /// what was being read is dirty, too, as if overwritten as a whole. Absent pages are passed over.
    pub fn set_dirty(&mut self, mapping: Mapping, page: u64, pages: u64) -> u64 {
        let before = self.nr_dirty;
        self.change_state(mapping.0, page, pages, |old| match old {
            State::Reading | State::Clean | State::Dirty => State::Dirty,
            State::Writeback | State::Redirtied => State::Redirtied,
        });
        self.nr_dirty - before
    }

    /// Dirty pages begin to be written back; pages in other states are passed over.
    pub fn start_writeback(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| if old == State::Dirty { State::Writeback } else { old });
    }

    /// Pages are on the device: they are clean, or dirty if they were dirtied meanwhile. Pages that are not under
    /// writeback, and absent ones, are passed over.
    pub fn end_writeback(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| match old {
            State::Writeback => State::Clean,
            State::Redirtied => State::Dirty,
            old => old,
        });
    }

    /// Pages are read: they are clean. Pages that are not being read, and absent ones, are passed over.
    pub fn read_done(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| if old == State::Reading { State::Clean } else { old });
    }

    /// The first page at or behind `from` that is [`State::Dirty`], and how many without a gap are from there on. Pages
    /// that were dirtied under writeback are not among them until that has ended.
    #[must_use]
    pub fn next_dirty(&self, mapping: Mapping, from: u64) -> Option<(u64, u64)> {
        self.next_dirty_up_to(mapping, from, u64::MAX)
    }

    /// As [`PageCache::next_dirty`], but not more than `pages_max` pages, 1 at least: a large file that is dirty as a
    /// whole is not looked at as a whole.
    #[must_use]
    pub fn next_dirty_up_to(&self, mapping: Mapping, from: u64, pages_max: u64) -> Option<(u64, u64)> {
        let mut id = self.mappings.get(mapping.0 as usize)?.first_dirty(&self.runs, from);
        if id == NIL {
            return None;
        }
        let page = self.runs[id].page.max(from);
        let limit = page.saturating_add(pages_max.max(1));
        let mut end = page;
        while id != NIL && end < limit && self.runs[id].is_dirty() && (end == page || self.runs[id].page == end) {
            end = self.runs[id].end();
            id = self.runs[id].behind;
        }
        Some((page, end.min(limit) - page))
    }

    /// Whether a mapping has dirty pages, also such as are under writeback.
    #[must_use]
    pub fn has_dirty(&self, mapping: Mapping) -> bool {
        self.dirty_pages(mapping) > 0
    }

    /// Dirty pages of a mapping, also those under writeback.
    #[must_use]
    pub fn dirty_pages(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.dirty)
    }

    /// Pages of a mapping under writeback.
    #[must_use]
    pub fn nr_writeback_of(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.writeback)
    }

    /// Pages of a mapping.
    #[must_use]
    pub fn pages_of(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.pages)
    }

    /// Dirty pages, also those under writeback.
    #[must_use]
    pub const fn nr_dirty(&self) -> u64 {
        self.nr_dirty
    }

    /// Pages under writeback.
    #[must_use]
    pub const fn nr_writeback(&self) -> u64 {
        self.nr_writeback
    }

    /// Pages being read.
    #[must_use]
    pub const fn nr_reading(&self) -> u64 {
        self.nr_reading
    }

    /// Pages in memory, at most [`PageCache::pages_max`].
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.lists[INACTIVE].pages + self.lists[ACTIVE].pages
    }

    /// Pages there is room for.
    #[must_use]
    pub const fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// Pages on the active list.
    #[must_use]
    pub const fn nr_active(&self) -> u64 {
        self.lists[ACTIVE].pages
    }

    /// Pages on the inactive list.
    #[must_use]
    pub const fn nr_inactive(&self) -> u64 {
        self.lists[INACTIVE].pages
    }

    /// Clean pages: what [`PageCache::insert`] could drop.
    #[must_use]
    pub const fn reclaimable(&self) -> u64 {
        self.lists[INACTIVE].clean + self.lists[ACTIVE].clean
    }

    /// Runs the pages are kept in: what memory and time are spent on.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Sets the readahead mark of a page that is in memory; an absent one gets none.
    pub fn mark(&mut self, mapping: Mapping, page: u64) {
        if let PageLookup::In(id) = self.find(mapping.0, page) {
            self.runs[id].marked = true;
            self.marks.insert((mapping.0, page));
        }
    }

    /// Takes the readahead mark of a page away; whether there was one.
    pub fn take_mark(&mut self, mapping: Mapping, page: u64) -> bool {
        !self.marks.is_empty() && self.marks.remove(&(mapping.0, page))
    }

    /// The first page with a readahead mark from `from` on and before `until`.
    #[must_use]
    pub fn next_mark(&self, mapping: Mapping, from: u64, until: u64) -> Option<u64> {
        if self.marks.is_empty() || from >= until {
            return None;
        }
        self.marks.range((mapping.0, from)..(mapping.0, until)).next().map(|&(_, page)| page)
    }

    /// Drops the pages of a mapping from `from` on, whatever their state; returns how many of them were dirty.
    ///
    /// Completions of I/O that was under way do nothing when they come, as long as the pages are not in the cache again
    /// by then: a kernel waits for writeback before it truncates, and so may the caller
    /// ([`PageCache::nr_writeback_of`]).
    pub fn truncate(&mut self, mapping: Mapping, from: u64) -> u64 {
        let before = self.nr_dirty;
        self.remove(mapping.0, from, u64::MAX, |_| true);
        before - self.nr_dirty
    }

    /// Drops the pages of a range, whatever their state, as [`truncate`](Self::truncate) does.
    pub fn discard(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.remove(mapping.0, page, page.saturating_add(pages), |_| true);
    }

    /// Drops the clean pages of a range, as direct I/O and advice do; returns how many.
    pub fn invalidate(&mut self, mapping: Mapping, page: u64, pages: u64) -> u64 {
        let before = self.pages();
        self.remove(mapping.0, page, page.saturating_add(pages), |state| state == State::Clean);
        before - self.pages()
    }

    #[inline]
    fn find(&self, mapping: u32, page: u64) -> PageLookup {
        self.mappings.get(mapping as usize).map_or(PageLookup::Between(NIL, NIL), |slot| slot.find(&self.runs, page))
    }
}
