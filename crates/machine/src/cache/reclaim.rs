//! Reclaim, and removal of pages.
//!
//! The rules are those of Linux for file pages that no process has mapped:
//!
//! 1. The oldest active pages become inactive. [`Balance`] determines their number. They stay
//!    referenced if they were referenced.
//! 2. Clean pages are dropped from the oldest end of the inactive list, referenced or not. Pages
//!    that cannot be dropped now move to the newest end.
//! 3. If no inactive page is clean, more active pages become inactive.
//!
//! A kernel would also start writeback of the dirty pages that it finds, and drop these pages first
//! when they become clean. Here, only the caller starts writeback.

use super::mapping::PageLookup;
use super::run::{Attributes, NIL};
use super::{ACTIVE, Balance, INACTIVE, NoRoom, PageCache, State};

/// Minimum number of pages that are dropped at once. The kernel reclaims in clusters of 32 pages.
const CLUSTER_PAGES: u64 = 32;

impl PageCache {
    /// Drops clean pages until there is room for `pages`.
    #[inline]
    pub(super) fn make_room(&mut self, pages: u64) -> Result<(), NoRoom> {
        let free = self.pages_max - self.pages();
        if pages <= free { Ok(()) } else { self.reclaim(pages - free) }
    }

    fn reclaim(&mut self, needed: u64) -> Result<(), NoRoom> {
        let reclaimable = self.reclaimable();
        if needed > reclaimable {
            return Err(NoRoom { missing_pages: needed - reclaimable });
        }
        let mut left = needed.max(CLUSTER_PAGES).min(reclaimable);
        self.balance_lists(left);
        while left > 0 {
            while self.lists[INACTIVE].clean == 0 {
                self.deactivate(CLUSTER_PAGES);
            }
            left -= self.reclaim_oldest(left);
        }
        Ok(())
    }

    /// Makes active pages inactive before `pages` pages are dropped.
    fn balance_lists(&mut self, pages: u64) {
        let (active, inactive) = (self.nr_active(), self.nr_inactive());
        let surplus = match self.balance {
            Balance::Halves => active.saturating_sub(inactive).div_ceil(2),
            Balance::Proportional => {
                let wanted = self.scan_remainder + u128::from(pages) * u128::from(active);
                let inactive = u128::from(inactive.max(1));
                self.scan_remainder = wanted % inactive;
                (wanted / inactive).min(u128::from(active)) as u64
            }
        };
        self.deactivate(surplus);
    }

    /// Examines the oldest inactive run once. Drops at most `pages` pages and returns their number.
    fn reclaim_oldest(&mut self, pages: u64) -> u64 {
        let id = self.lists[INACTIVE].oldest;
        let run = &self.runs[id];
        if run.attributes.state != State::Clean {
            let (page, end, attributes) = (run.page, run.end(), run.attributes);
            self.settle(id, page, end, attributes, true);
            return 0;
        }
        let dropped = pages.min(u64::from(run.pages));
        let to = run.page + dropped;
        self.drop_part(id, self.runs[id].page, to);
        dropped
    }

    /// Makes the oldest active pages inactive. They become the newest inactive pages.
    fn deactivate(&mut self, pages: u64) {
        let mut left = pages;
        while left > 0 && self.lists[ACTIVE].oldest != NIL {
            let id = self.lists[ACTIVE].oldest;
            let run = &self.runs[id];
            let pages = left.min(u64::from(run.pages));
            let attributes = Attributes { active: false, ..run.attributes };
            self.settle(id, run.page, run.page + pages, attributes, true);
            left -= pages;
        }
    }

    /// Drops the pages of a range if `goes` returns true for their state.
    pub(super) fn remove(&mut self, mapping: u32, from: u64, end: u64, goes: impl Fn(State) -> bool) {
        let mut id = match self.find(mapping, from) {
            PageLookup::In(id) => id,
            PageLookup::Between(_, behind) => behind,
        };
        while id != NIL && self.runs[id].page < end {
            let run = &self.runs[id];
            let behind = run.behind;
            if goes(run.attributes.state) {
                self.drop_part(id, run.page.max(from), run.end().min(end));
            }
            id = behind;
        }
    }

    /// Drops the pages from `from` to `to`, which belong to one run.
    fn drop_part(&mut self, id: u32, from: u64, to: u64) {
        let run = self.runs[id];
        let slot = &mut self.mappings[run.mapping as usize];
        if from == run.page && to == run.end() {
            slot.unlink(&mut self.runs, id);
            self.lists[usize::from(run.attributes.active)].unlink(&mut self.runs, id);
            self.runs.release(id);
        } else if from == run.page {
            slot.move_start(&mut self.runs, id, to);
        } else {
            if to < run.end() {
                self.split(id, to);
            }
            self.runs[id].pages = (from - run.page) as u32;
        }
        self.count_out(run.mapping, run.attributes, to - from);
        if run.marked {
            self.drop_marks(run.mapping, from, to);
        }
    }

    fn drop_marks(&mut self, mapping: u32, from: u64, to: u64) {
        while let Some(&mark) = self.marks.range((mapping, from)..(mapping, to)).next() {
            self.marks.remove(&mark);
        }
    }

    /// Adds pages with these attributes to the counts.
    #[inline]
    pub(super) fn count_in(&mut self, mapping: u32, attributes: Attributes, pages: u64) {
        self.count(mapping, attributes, |count| *count += pages);
    }

    /// Subtracts pages with these attributes from the counts.
    #[inline]
    pub(super) fn count_out(&mut self, mapping: u32, attributes: Attributes, pages: u64) {
        self.count(mapping, attributes, |count| *count -= pages);
    }

    #[inline]
    fn count(&mut self, mapping: u32, attributes: Attributes, change: impl Fn(&mut u64)) {
        let list = &mut self.lists[usize::from(attributes.active)];
        let slot = &mut self.mappings[mapping as usize];
        change(&mut list.pages);
        change(&mut slot.pages);
        match attributes.state {
            State::Reading => change(&mut self.nr_reading),
            State::Clean => change(&mut list.clean),
            State::Dirty | State::Writeback | State::Redirtied => {
                if attributes.state.is_dirty() {
                    change(&mut self.nr_dirty);
                    change(&mut slot.dirty);
                }
                if attributes.state.is_writeback() {
                    change(&mut self.nr_writeback);
                    change(&mut slot.writeback);
                }
            }
        }
    }
}
