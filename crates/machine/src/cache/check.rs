//! The invariants of the cache, for tests.

use super::run::{NIL, PAGES_PER_RUN};
use super::{ACTIVE, INACTIVE, PageCache, State};

impl PageCache {
    /// Checks all invariants of the page cache.
    ///
    /// # Panics
    ///
    /// If an invariant is broken, which is a defect of this module.
    pub fn check(&self) {
        assert!(self.pages() <= self.pages_max, "the limit is respected");
        let (mut reading, mut dirty, mut writeback, mut runs) = (0, 0, 0, 0);
        let mut by_mapping = vec![(0, 0, 0); self.mappings.len()];
        for (list, active) in [(&self.lists[INACTIVE], false), (&self.lists[ACTIVE], true)] {
            let (mut older, mut id, mut pages, mut clean) = (NIL, list.oldest, 0, 0);
            while id != NIL {
                let run = &self.runs[id];
                assert_eq!(run.older, older, "each entry of a list and its neighbours have links to each other");
                assert_eq!(run.attributes.active, active, "a run is on the list that its attributes name");
                assert!((1..=PAGES_PER_RUN).contains(&run.pages), "no run is empty or too long");
                let counts = &mut by_mapping[run.mapping as usize];
                let n = u64::from(run.pages);
                let state = run.attributes.state;
                counts.0 += n;
                counts.1 += if state.is_dirty() { n } else { 0 };
                counts.2 += if state.is_writeback() { n } else { 0 };
                reading += if state == State::Reading { n } else { 0 };
                clean += if state == State::Clean { n } else { 0 };
                pages += n;
                runs += 1;
                (older, id) = (id, run.newer);
            }
            assert_eq!(list.newest, older, "the newest run of a list is known");
            assert_eq!(
                (list.pages, list.clean),
                (pages, clean),
                "the counts of pages and clean pages of a list are correct"
            );
        }
        for (slot, counts) in self.mappings.iter().zip(&by_mapping) {
            slot.check(&self.runs);
            assert_eq!(
                (slot.pages, slot.dirty, slot.writeback),
                *counts,
                "for each state, the number of pages of a mapping is correct"
            );
            dirty += counts.1;
            writeback += counts.2;
        }
        assert_eq!((self.nr_reading, self.nr_dirty, self.nr_writeback), (reading, dirty, writeback), "pages by state");
        assert_eq!(self.runs(), runs, "every run is on a list");
        for &(mapping, page) in &self.marks {
            let super::PageLookup::In(id) = self.find(mapping, page) else { panic!("a mark without its page") };
            assert!(self.runs[id].marked, "the flag \"may have marks\" of each run is correct");
        }
    }
}
