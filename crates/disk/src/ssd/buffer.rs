//! The write buffer: pages that wait for the dies, in the order of arrival.
//!
//! Pages are gathered into units. A unit has the pages that a die programs in one operation. The
//! space of a unit becomes free when this unit and all earlier units are programmed.

use std::collections::VecDeque;

/// Pages that a die programs in one operation.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    pages: u32,
    /// Number of ranges of pages in the unit.
    extents: u32,
    programmed: bool,
}

/// State of the write buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pages_max: u32,
    unit_pages: u32,
    /// Number of pages in the buffer, including pages that are being programmed.
    pages: u32,
    /// First page and number of pages of each range, for all units in order.
    extents: VecDeque<(u64, u32)>,
    /// Units that were given to dies, in order.
    units: VecDeque<Unit>,
    /// Number of the first of these units.
    oldest: u64,
    /// Unit that is being gathered.
    open: Unit,
    held: PageSet,
}

impl Buffer {
    /// Creates a buffer of `pages_max` pages. A die programs `unit_pages` in one operation.
    pub(super) fn new(pages_max: u32, unit_pages: u32) -> Self {
        Self {
            pages_max,
            unit_pages,
            pages: 0,
            extents: VecDeque::new(),
            units: VecDeque::new(),
            oldest: 0,
            open: Unit::default(),
            held: PageSet::default(),
        }
    }

    /// Returns the number of pages that still fit.
    #[inline]
    pub(super) const fn room(&self) -> u32 {
        self.pages_max - self.pages
    }

    /// Returns the number of pages in the buffer.
    #[inline]
    pub(super) const fn pages(&self) -> u32 {
        self.pages
    }

    /// Returns whether a page is in the buffer.
    #[inline]
    pub(super) fn holds(&self, page: u64) -> bool {
        self.pages > 0 && self.held.contains(page)
    }

    /// Adds pages from `first` on: at most `nr`, and at most to the end of the unit. Returns the
    /// number of added pages. The buffer must have room for a page.
    #[inline]
    pub(super) fn take(&mut self, first: u64, nr: u32) -> u32 {
        let taken = nr.min(self.unit_pages - self.open.pages).min(self.room());
        for page in first..first + u64::from(taken) {
            self.held.insert(page);
        }
        self.extents.push_back((first, taken));
        self.open.pages += taken;
        self.open.extents += 1;
        self.pages += taken;
        taken
    }

    /// Returns whether the gathered pages fill a unit.
    #[inline]
    pub(super) const fn is_unit(&self) -> bool {
        self.open.pages == self.unit_pages
    }

    /// Moves the gathered pages to a unit for a die, and returns the number of the unit. Returns
    /// `None` if no pages are gathered.
    #[inline]
    pub(super) fn issue(&mut self) -> Option<u64> {
        if self.open.pages == 0 {
            return None;
        }
        self.units.push_back(std::mem::take(&mut self.open));
        Some(self.oldest + self.units.len() as u64 - 1)
    }

    /// Returns the number of the first unit that is not programmed. If all units are programmed,
    /// this is the number of the next unit.
    #[inline]
    pub(super) const fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Returns the number of the next unit.
    #[inline]
    pub(super) fn next_unit(&self) -> u64 {
        self.oldest + self.units.len() as u64
    }

    /// Records that unit `number` is programmed.
    #[inline]
    pub(super) fn programmed(&mut self, number: u64) {
        self.units[(number - self.oldest) as usize].programmed = true;
        while let Some(unit) = self.units.front().copied().filter(|unit| unit.programmed) {
            self.units.pop_front();
            self.oldest += 1;
            self.pages -= unit.pages;
            for _ in 0..unit.extents {
                let Some((first, nr)) = self.extents.pop_front() else { break };
                for page in first..first + u64::from(nr) {
                    self.held.remove(page);
                }
            }
        }
    }
}

/// A multiset of pages: a hash table with open addressing and linear probing. The internal order
/// does not affect results.
#[derive(Clone, Debug, Default)]
struct PageSet {
    /// Pairs of page and count. A count of 0 means an empty slot of the table. The length is a
    /// power of two, and at most half of the slots are used.
    places: Vec<(u64, u32)>,
    used: usize,
}

impl PageSet {
    #[inline]
    fn home(&self, page: u64) -> usize {
        (page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.places.len() - 1)
    }

    /// Returns the slot of a page, or the empty slot in which the page can be inserted.
    #[inline]
    fn place(&self, page: u64) -> usize {
        let mut at = self.home(page);
        while self.places[at].1 > 0 && self.places[at].0 != page {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }

    #[inline]
    fn contains(&self, page: u64) -> bool {
        self.used > 0 && self.places[self.place(page)].1 > 0
    }

    #[inline]
    fn insert(&mut self, page: u64) {
        if self.used * 2 >= self.places.len() {
            self.grow();
        }
        let at = self.place(page);
        self.used += usize::from(self.places[at].1 == 0);
        self.places[at] = (page, self.places[at].1 + 1);
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); (self.places.len() * 2).max(64)];
        let old = std::mem::replace(&mut self.places, larger);
        for (page, count) in old.into_iter().filter(|&(_, count)| count > 0) {
            let at = self.place(page);
            self.places[at] = (page, count);
        }
    }

    /// Removes one occurrence of a page.
    #[inline]
    fn remove(&mut self, page: u64) {
        let mut hole = self.place(page);
        if self.places[hole].1 > 1 {
            self.places[hole].1 -= 1;
            return;
        }
        self.used -= 1;
        // Later entries that belong at the hole or before it move back.
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            if self.places[at].1 == 0 {
                break;
            }
            let home = self.home(self.places[at].0);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn page_set_counts_inserts_and_removals(steps in prop::collection::vec((0u64..200, any::<bool>()), 1..400)) {
            let (mut set, mut model) = (PageSet::default(), BTreeMap::<u64, u32>::new());
            for (page, insert) in steps {
                // These pages collide: their searches begin at the same slot.
                let page = page << 40;
                if insert {
                    set.insert(page);
                    *model.entry(page).or_default() += 1;
                } else if model.get(&page).is_some_and(|&count| count > 0) {
                    set.remove(page);
                    *model.entry(page).or_default() -= 1;
                }
                for page in 0..200u64 {
                    let page = page << 40;
                    prop_assert_eq!(set.contains(page), model.get(&page).is_some_and(|&count| count > 0));
                }
            }
        }
    }

    #[test]
    fn pages_are_held_until_all_older_units_are_programmed() {
        let mut buffer = Buffer::new(8, 4);
        assert_eq!(buffer.take(100, 6), 4);
        assert!(buffer.is_unit());
        assert_eq!(buffer.issue(), Some(0));
        assert_eq!(buffer.take(104, 2), 2);
        assert_eq!(buffer.take(100, 9), 2);
        assert_eq!((buffer.issue(), buffer.issue(), buffer.room()), (Some(1), None, 0));
        buffer.programmed(1);
        assert_eq!((buffer.room(), buffer.oldest(), buffer.holds(104)), (0, 0, true));
        buffer.programmed(0);
        assert_eq!((buffer.room(), buffer.oldest(), buffer.next_unit()), (8, 2, 2));
        assert!(!buffer.holds(100) && !buffer.holds(104));
    }
}
