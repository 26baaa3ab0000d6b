//! The page cache: the pages of files that are in memory, their states, and the
//! choice of pages to drop.
//!
//! Pages are stored in runs. The pages of a run are consecutive in their mapping, have the same
//! state, and are adjacent in the order of reclaim. The cost of an operation depends on the number
//! of runs that it changes, not on the number of pages. An operation on a part of a run splits the
//! run. Neighbours that become equal are joined at once.
//!
//! A page is on one of two lists, as in Linux from 2.4 on. It begins at the newest end of the
//! *inactive* list. The first [access](PageCache::access) makes the page referenced. The second
//! access moves the page to the newest end of the *active* list. Reclaim [drops clean
//! pages](PageCache::insert) from the oldest end of the inactive list.
//!
//! The caller is responsible for time and I/O. It reads the pages that it inserts as
//! [`State::Reading`], decides when dirty pages are written back, and reports the end of reads and
//! writeback. The caller also decides how long pages stay dirty, how many pages may be dirty, and
//! which tasks wait.
//!
//! The methods form these groups:
//!
//! - Look: [`get`](PageCache::get), [`next_dirty`](PageCache::next_dirty), counts
//! - Fill: [`insert`](PageCache::insert), [`read_done`](PageCache::read_done)
//! - Use: [`access`](PageCache::access), [`set_dirty`](PageCache::set_dirty)
//! - Write back: [`start_writeback`](PageCache::start_writeback),
//!   [`end_writeback`](PageCache::end_writeback)
//! - Drop: [`truncate`](PageCache::truncate), [`invalidate`](PageCache::invalidate)
//! - Readahead marks: [`mark`](PageCache::mark)

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

/// Index of the list of pages that were used at most once. The indices of lists are the values of
/// [`Attributes::active`].
const INACTIVE: usize = 0;
/// Index of the list of pages that were used again.
const ACTIVE: usize = 1;

/// Number of a mapping: the owner of pages, which is an inode or the cache of a block device. The
/// caller chooses the numbers. They should be dense, because every number up to the highest needs
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mapping(pub u32);

/// State of a page in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Being read, and not yet usable.
    Reading,
    /// Same as on the device.
    Clean,
    /// Must be written back.
    Dirty,
    /// Being written back.
    Writeback,
    /// Being written back, and dirtied again since this writeback began. The page is dirty when the
    /// writeback ends.
    Redirtied,
}

impl State {
    /// Returns whether the page is [`State::Dirty`] or [`State::Redirtied`].
    #[must_use]
    pub const fn is_dirty(self) -> bool {
        matches!(self, Self::Dirty | Self::Redirtied)
    }

    /// Returns whether the page is [`State::Writeback`] or [`State::Redirtied`].
    #[must_use]
    pub const fn is_writeback(self) -> bool {
        matches!(self, Self::Writeback | Self::Redirtied)
    }
}

/// Result of looking up a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Not in memory.
    Absent {
        /// The next page of the mapping that is in memory. `u64::MAX` if there is none.
        until: u64,
    },
    /// In memory.
    Run {
        /// State of all pages from the page to `until`.
        state: State,
        /// First page after the run. This page and later pages may also have the same state.
        until: u64,
    },
}

/// Rule that says how many of the oldest active pages become inactive when reclaim makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// Linux up to 2.6.30: both lists are scanned in proportion to their lengths. If the active
    /// list is n times as long as the inactive list, n active pages become inactive for each
    /// dropped page. Therefore, pages that are used once can displace pages that were used again.
    Proportional,
    /// Linux from 2.6.31 on: active pages become inactive until the active list has at most half of
    /// all pages. Pages that are used once therefore cannot displace active pages in up to half of
    /// the memory.
    #[default]
    Halves,
}

/// There is not enough room, even if all clean pages are dropped. Dirty pages must first be written
/// back, or reads must complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the page cache is too small: {missing_pages} more pages are needed, but all pages are dirty, under writeback or \
     being read; use a machine model with a larger cache_mib"
)]
pub struct NoRoom {
    /// Number of pages for which there is no room.
    pub missing_pages: u64,
}

/// Page cache of the modelled kernel.
#[derive(Clone, Debug)]
pub struct PageCache {
    pages_max: u64,
    runs: Runs,
    mappings: Vec<Slot>,
    /// The inactive and the active list.
    lists: [List; 2],
    balance: Balance,
    /// Remainder of the division in [`Balance::Proportional`]. It is less than one active page. It
    /// is not yet divided by the number of inactive pages, so its unit is dropped pages times
    /// active pages.
    scan_remainder: u128,
    nr_reading: u64,
    nr_dirty: u64,
    nr_writeback: u64,
    marks: BTreeSet<(u32, u64)>,
}

impl PageCache {
    /// Creates an empty cache for at most `pages_max` pages, with the balance of today's kernels.
    #[must_use]
    pub fn new(pages_max: u64) -> Self {
        Self::with_balance(pages_max, Balance::default())
    }

    /// Creates an empty cache for at most `pages_max` pages.
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

    /// Returns whether a page is in memory, and if so, its state.
    #[must_use]
    pub fn get(&self, mapping: Mapping, page: u64) -> Cached {
        match self.find(mapping.0, page) {
            PageLookup::In(id) => Cached::Run { state: self.runs[id].attributes.state, until: self.runs[id].end() },
            PageLookup::Between(_, NIL) => Cached::Absent { until: u64::MAX },
            PageLookup::Between(_, behind) => Cached::Absent { until: self.runs[behind].page },
        }
    }

    /// Inserts pages that are not in memory yet. In order of offset, they become the newest pages
    /// of the inactive list.
    ///
    /// If room is needed, drops at least 32 clean pages. It can drop any clean page, including
    /// pages of the same mapping. It drops no pages that are dirty, under writeback or being read.
    ///
    /// # Errors
    ///
    /// [`NoRoom`] if dropping every clean page would not make enough room. Nothing is changed then.
    ///
    /// # Panics
    ///
    /// If one of the pages is in memory, or `state` is [`State::Redirtied`].
    pub fn insert(&mut self, mapping: Mapping, page: u64, pages: u64, state: State) -> Result<(), NoRoom> {
        self.insert_as(mapping, page, pages, Attributes { state, active: false, referenced: false })
    }

    /// Inserts pages with the same result as [`PageCache::insert`] followed by
    /// [`PageCache::access`], at less cost. A write of new pages uses this method.
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
        assert!(attributes.state != State::Redirtied, "a page has at most one new write at a time");
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
        assert!(
            behind == NIL || self.runs[behind].page >= end,
            "only some of the pages from {page} to {end} are in the cache"
        );
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

    /// Marks pages as used by a read or write through a system call. The first use makes a page
    /// referenced. The second use moves it to the newest end of the active list. The third use
    /// makes it referenced on this list. Absent pages are skipped.
    pub fn access(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change(mapping.0, page, pages, |old| match old {
            Attributes { referenced: false, .. } => Attributes { referenced: true, ..old },
            Attributes { active: false, .. } => Attributes { active: true, referenced: false, ..old },
            Attributes { .. } => old,
        });
    }

    /// Makes pages dirty, and returns how many of them were not dirty before. Pages under writeback
    /// become [`State::Redirtied`]. Pages that are being read become dirty, as if the caller had
    /// overwritten them completely. Absent pages are skipped.
    pub fn set_dirty(&mut self, mapping: Mapping, page: u64, pages: u64) -> u64 {
        let before = self.nr_dirty;
        self.change_state(mapping.0, page, pages, |old| match old {
            State::Reading | State::Clean | State::Dirty => State::Dirty,
            State::Writeback | State::Redirtied => State::Redirtied,
        });
        self.nr_dirty - before
    }

    /// Starts writeback of dirty pages. Pages in other states are skipped.
    pub fn start_writeback(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| if old == State::Dirty { State::Writeback } else { old });
    }

    /// Ends writeback of pages. A page becomes clean, or dirty if it was dirtied during the
    /// writeback. Pages that are not under writeback, and absent pages, are skipped.
    pub fn end_writeback(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| match old {
            State::Writeback => State::Clean,
            State::Redirtied => State::Dirty,
            old => old,
        });
    }

    /// Ends the read of pages, which become clean. Pages that are not being read, and absent pages,
    /// are skipped.
    pub fn read_done(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.change_state(mapping.0, page, pages, |old| if old == State::Reading { State::Clean } else { old });
    }

    /// Returns the first page at or after `from` that is [`State::Dirty`], and the number of dirty
    /// pages that follow without a gap, including this page. A page that was dirtied under
    /// writeback does not count until that writeback ends.
    #[must_use]
    pub fn next_dirty(&self, mapping: Mapping, from: u64) -> Option<(u64, u64)> {
        self.next_dirty_up_to(mapping, from, u64::MAX)
    }

    /// Returns the same as [`PageCache::next_dirty`], but counts at most `pages_max` pages (at
    /// least 1). With this limit, the search does not examine all of a large dirty file.
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

    /// Returns whether a mapping has dirty pages, including those under writeback.
    #[must_use]
    pub fn has_dirty(&self, mapping: Mapping) -> bool {
        self.dirty_pages(mapping) > 0
    }

    /// Returns the number of dirty pages of a mapping, including those under writeback.
    #[must_use]
    pub fn dirty_pages(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.dirty)
    }

    /// Returns the number of pages of a mapping under writeback.
    #[must_use]
    pub fn nr_writeback_of(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.writeback)
    }

    /// Returns the number of pages of a mapping that are in memory.
    #[must_use]
    pub fn pages_of(&self, mapping: Mapping) -> u64 {
        self.mappings.get(mapping.0 as usize).map_or(0, |slot| slot.pages)
    }

    /// Returns the number of dirty pages, including those under writeback.
    #[must_use]
    pub const fn nr_dirty(&self) -> u64 {
        self.nr_dirty
    }

    /// Returns the number of pages under writeback.
    #[must_use]
    pub const fn nr_writeback(&self) -> u64 {
        self.nr_writeback
    }

    /// Returns the number of pages being read.
    #[must_use]
    pub const fn nr_reading(&self) -> u64 {
        self.nr_reading
    }

    /// Returns the number of pages in memory, at most [`PageCache::pages_max`].
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.lists[INACTIVE].pages + self.lists[ACTIVE].pages
    }

    /// Returns the capacity in pages.
    #[must_use]
    pub const fn pages_max(&self) -> u64 {
        self.pages_max
    }

    /// Returns the number of pages on the active list.
    #[must_use]
    pub const fn nr_active(&self) -> u64 {
        self.lists[ACTIVE].pages
    }

    /// Returns the number of pages on the inactive list.
    #[must_use]
    pub const fn nr_inactive(&self) -> u64 {
        self.lists[INACTIVE].pages
    }

    /// Returns the number of clean pages. [`PageCache::insert`] can drop them.
    #[must_use]
    pub const fn reclaimable(&self) -> u64 {
        self.lists[INACTIVE].clean + self.lists[ACTIVE].clean
    }

    /// Returns the number of runs. This number determines the cost in memory and time.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Sets the readahead mark of a page, if the page is in memory.
    pub fn mark(&mut self, mapping: Mapping, page: u64) {
        if let PageLookup::In(id) = self.find(mapping.0, page) {
            self.runs[id].marked = true;
            self.marks.insert((mapping.0, page));
        }
    }

    /// Removes the readahead mark of a page, and returns whether there was one.
    pub fn take_mark(&mut self, mapping: Mapping, page: u64) -> bool {
        !self.marks.is_empty() && self.marks.remove(&(mapping.0, page))
    }

    /// Returns the first page with a readahead mark in `from..until`.
    #[must_use]
    pub fn next_mark(&self, mapping: Mapping, from: u64, until: u64) -> Option<u64> {
        if self.marks.is_empty() || from >= until {
            return None;
        }
        self.marks.range((mapping.0, from)..(mapping.0, until)).next().map(|&(_, page)| page)
    }

    /// Drops the pages of a mapping from the page `from` on, in any state. Returns how many of them
    /// were dirty.
    ///
    /// If I/O of these pages completes later, the completion has no effect, unless the pages are in
    /// the cache again. A kernel therefore waits for writeback before it truncates. The caller can
    /// wait in the same way ([`PageCache::nr_writeback_of`]).
    pub fn truncate(&mut self, mapping: Mapping, from: u64) -> u64 {
        let before = self.nr_dirty;
        self.remove(mapping.0, from, u64::MAX, |_| true);
        before - self.nr_dirty
    }

    /// Drops the pages of a range in any state, as [`truncate`](Self::truncate) does.
    pub fn discard(&mut self, mapping: Mapping, page: u64, pages: u64) {
        self.remove(mapping.0, page, page.saturating_add(pages), |_| true);
    }

    /// Drops the clean pages of a range, as direct I/O and fadvise do. Returns how many pages were
    /// dropped.
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
