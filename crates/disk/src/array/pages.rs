//! Sets of pages: the read cache with least-recently-used replacement, and the dirty pages of each
//! member.
//!
//! Pages are stored in segments of 32 neighbouring pages, with one bit per page.

use std::collections::BTreeMap;
use std::ops::Range;

/// Pages per segment.
const SEGMENT: u64 = 32;
/// Number of an entry that does not exist.
const NONE: u32 = u32::MAX;

/// Returns the segments of `pages`, each with a mask of its pages.
fn segments(pages: Range<u64>) -> impl Iterator<Item = (u64, u32)> {
    (pages.start / SEGMENT..pages.end.div_ceil(SEGMENT)).map(move |segment| {
        let from = pages.start.max(segment * SEGMENT) - segment * SEGMENT;
        let to = pages.end.min((segment + 1) * SEGMENT) - segment * SEGMENT;
        (segment, (((1u64 << (to - from)) - 1) << from) as u32)
    })
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    segment: u64,
    mask: u32,
    older: u32,
    younger: u32,
}

/// Pages of the read cache. The least recently used segment is replaced first.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    entries: Vec<Entry>,
    by_segment: BTreeMap<u64, u32>,
    oldest: u32,
    youngest: u32,
    entries_max: usize,
}

impl Recent {
    /// Creates a set with space for this number of pages.
    pub(super) fn new(pages: u64) -> Self {
        let entries_max = (pages / SEGMENT) as usize;
        Self { entries: Vec::new(), by_segment: BTreeMap::new(), oldest: NONE, youngest: NONE, entries_max }
    }

    /// Returns whether a page is in the set. If it is, its segment becomes the youngest one.
    #[inline]
    pub(super) fn find(&mut self, page: u64) -> bool {
        let segment = page / SEGMENT;
        // The page usually has the segment of the previous page.
        let entry = match self.entries.get(self.youngest as usize) {
            Some(youngest) if youngest.segment == segment => self.youngest,
            _ => match self.by_segment.get(&segment) {
                Some(&entry) => entry,
                None => return false,
            },
        };
        let found = self.entries[entry as usize].mask >> (page % SEGMENT) & 1 > 0;
        if found {
            self.touch(entry);
        }
        found
    }

    /// Returns the first of `pages` that is in the set. This does not count as a use.
    pub(super) fn first_in(&self, pages: Range<u64>) -> Option<u64> {
        segments(pages).find_map(|(segment, mask)| {
            let found = self.entries[*self.by_segment.get(&segment)? as usize].mask & mask;
            (found > 0).then(|| segment * SEGMENT + u64::from(found.trailing_zeros()))
        })
    }

    /// Adds pages.
    pub(super) fn insert(&mut self, pages: Range<u64>) {
        if self.entries_max == 0 {
            return;
        }
        for (segment, mask) in segments(pages) {
            if let Some(&entry) = self.by_segment.get(&segment) {
                self.entries[entry as usize].mask |= mask;
                self.touch(entry);
                continue;
            }
            let entry = if self.entries.len() < self.entries_max {
                self.entries.push(Entry { segment, mask, older: NONE, younger: NONE });
                (self.entries.len() - 1) as u32
            } else {
                let oldest = self.oldest;
                self.unlink(oldest);
                let entry = &mut self.entries[oldest as usize];
                self.by_segment.remove(&entry.segment);
                (entry.segment, entry.mask) = (segment, mask);
                oldest
            };
            self.link(entry);
            self.by_segment.insert(segment, entry);
        }
    }

    #[inline]
    fn touch(&mut self, entry: u32) {
        if entry != self.youngest {
            self.unlink(entry);
            self.link(entry);
        }
    }

    fn unlink(&mut self, entry: u32) {
        let Entry { older, younger, .. } = self.entries[entry as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.entries[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.entries[younger as usize].older = older,
        }
    }

    /// Makes an entry the youngest one. The entry must not be in a list.
    fn link(&mut self, entry: u32) {
        let older = std::mem::replace(&mut self.youngest, entry);
        (self.entries[entry as usize].older, self.entries[entry as usize].younger) = (older, NONE);
        match older {
            NONE => self.oldest = entry,
            older => self.entries[older as usize].younger = entry,
        }
    }
}

/// Dirty pages, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    segments: BTreeMap<u64, u32>,
    /// Position at which writing back continues.
    cursor: u64,
}

impl Dirty {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn contains(&self, page: u64) -> bool {
        self.segments.get(&(page / SEGMENT)).is_some_and(|mask| mask >> (page % SEGMENT) & 1 > 0)
    }

    /// Adds a page. Returns whether it is new.
    pub(super) fn insert(&mut self, page: u64) -> bool {
        let mask = self.segments.entry(page / SEGMENT).or_default();
        let bit = 1 << (page % SEGMENT);
        let new = *mask & bit == 0;
        *mask |= bit;
        new
    }

    /// Removes and returns the next contiguous pages, at most `most`. After the highest page, this
    /// continues at the lowest page.
    pub(super) fn take(&mut self, most: u64) -> Option<Range<u64>> {
        let start = self.first_from(self.cursor).or_else(|| self.first_from(0))?;
        let mut end = start;
        while end - start < most && self.contains(end) {
            end += 1;
        }
        for (segment, taken) in segments(start..end) {
            if let Some(mask) = self.segments.get_mut(&segment) {
                *mask &= !taken;
                if *mask == 0 {
                    self.segments.remove(&segment);
                }
            }
        }
        self.cursor = end;
        Some(start..end)
    }

    /// Returns the first page from `page` on.
    pub(super) fn first_from(&self, page: u64) -> Option<u64> {
        let beyond = |segment: u64| if segment == page / SEGMENT { u32::MAX << (page % SEGMENT) } else { u32::MAX };
        self.segments
            .range(page / SEGMENT..)
            .map(|(&segment, &mask)| (segment, mask & beyond(segment)))
            .find(|&(_, mask)| mask > 0)
            .map(|(segment, mask)| segment * SEGMENT + u64::from(mask.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn least_recently_used_segment_is_evicted() {
        let mut recent = Recent::new(64);
        recent.insert(0..40);
        assert!(recent.find(31) && recent.find(39) && !recent.find(40));
        assert!(recent.find(0));
        recent.insert(1000..1001);
        assert_eq!([0, 39, 1000].map(|page| recent.find(page)), [true, false, true]);
        let mut none = Recent::new(0);
        none.insert(0..40);
        assert!(!none.find(0));
    }

    proptest! {
        #[test]
        fn every_dirty_page_is_taken_once_and_in_order(pages in prop::collection::vec(0u64..300, 0..200), most in 1u64..70) {
            let mut dirty = Dirty::default();
            let mut model = BTreeSet::new();
            for page in pages {
                prop_assert_eq!(dirty.insert(page), model.insert(page));
            }
            let mut last = 0;
            while let Some(taken) = dirty.take(most) {
                prop_assert!(taken.start >= last && !taken.is_empty() && taken.end - taken.start <= most);
                last = taken.end;
                for page in taken {
                    prop_assert!(model.remove(&page));
                }
            }
            prop_assert!(model.is_empty() && dirty.is_empty());
        }
    }
}
