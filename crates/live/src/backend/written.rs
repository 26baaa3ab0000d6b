//! Map of the written pages of a disk in memory. All other pages count as holes.
//!
//! The kernel does not distinguish swapped pages from pages that were never used. The map therefore
//! has a bit for each page. The map also has a summary. One bit of the summary represents all pages
//! whose bits are in one page of the map (`SUMMED_PAGES`). With the summary, a search skips large
//! holes, and the map uses no memory for these holes.

use std::io;
use std::ops::Range;

use iosched_system::map::ZeroedMap;

use super::contract::Extent;

/// Number of bytes that one bit represents. No Linux kernel has smaller pages. The map is the same
/// on a kernel with larger pages.
const PAGE_BYTES: u64 = 4096;
/// Number of pages that one bit of the summary represents.
const SUMMED_PAGES: u64 = 8 * 4096;

/// Map of the written pages. See the documentation of this module.
pub(super) struct Written {
    /// A bit for each page: whether the page was written.
    pages: ZeroedMap,
    /// A bit for each group of [`SUMMED_PAGES`] pages: whether a page of the group may have been
    /// written.
    summary: Vec<u8>,
}

fn has(bits: &[u8], at: u64) -> bool {
    bits.get((at / 8) as usize).is_some_and(|byte| byte & (1 << (at % 8)) != 0)
}

fn set(bits: &mut [u8], range: Range<u64>, value: bool) {
    let mut at = range.start;
    while at < range.end {
        let byte = &mut bits[(at / 8) as usize];
        if at.is_multiple_of(8) && range.end - at >= 8 {
            *byte = if value { 0xff } else { 0 };
            at += 8;
        } else {
            let bit = 1 << (at % 8);
            *byte = if value { *byte | bit } else { *byte & !bit };
            at += 1;
        }
    }
}

/// Returns the first position in `range` whose bit is `value`, or the end of the range if there is
/// none.
fn next(bits: &[u8], range: Range<u64>, value: bool) -> u64 {
    let of_other = if value { 0 } else { 0xff };
    let mut at = range.start;
    while at < range.end && has(bits, at) != value {
        let passes_byte = at.is_multiple_of(8) && bits[(at / 8) as usize] == of_other;
        at += if passes_byte { 8 } else { 1 };
    }
    at.min(range.end)
}

impl Written {
    /// Creates the map of a disk of this size. No page counts as written.
    pub(super) fn new(capacity_bytes: u64) -> io::Result<Self> {
        let pages = capacity_bytes.div_ceil(PAGE_BYTES);
        let summary = vec![0; pages.div_ceil(SUMMED_PAGES).div_ceil(8) as usize];
        Ok(Self { pages: ZeroedMap::new(pages.div_ceil(8).max(1))?, summary })
    }

    /// Marks bytes as written.
    pub(super) fn write(&mut self, bytes: &Range<u64>) {
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        // Most writes go to pages that were written before.
        if pages.end - pages.start == 1 && has(&self.pages, pages.start) {
            return;
        }
        set(&mut self.summary, pages.start / SUMMED_PAGES..pages.end.div_ceil(SUMMED_PAGES), true);
        set(&mut self.pages, pages, true);
    }

    /// Marks all pages that lie completely in `bytes` as a hole.
    pub(super) fn punch(&mut self, bytes: &Range<u64>) {
        let pages = bytes.start.div_ceil(PAGE_BYTES)..bytes.end / PAGE_BYTES;
        let mut at = pages.start;
        while at < pages.end {
            let group = at / SUMMED_PAGES;
            let end = pages.end.min((group + 1) * SUMMED_PAGES);
            if has(&self.summary, group) {
                set(&mut self.pages, at..end, false);
            }
            at = end;
        }
    }

    /// Returns the data or the hole that begins at `bytes.start`, limited to `bytes`.
    pub(super) fn extent(&self, bytes: Range<u64>) -> Extent {
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        let is_hole = !has(&self.pages, pages.start);
        let end = if is_hole { self.next_written(pages) } else { next(&self.pages, pages, false) };
        Extent { length: (end * PAGE_BYTES).min(bytes.end) - bytes.start, is_hole }
    }

    /// Returns the first written page in `pages`, or the end of `pages` if there is none.
    fn next_written(&self, pages: Range<u64>) -> u64 {
        let mut at = pages.start;
        while at < pages.end {
            let groups = at / SUMMED_PAGES..pages.end.div_ceil(SUMMED_PAGES);
            let group = next(&self.summary, groups, true);
            at = at.max(group * SUMMED_PAGES).min(pages.end);
            let end = pages.end.min((group + 1) * SUMMED_PAGES);
            let found = next(&self.pages, at..end, true);
            if found < end {
                return found;
            }
            at = end;
        }
        pages.end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGES: u64 = 3 * SUMMED_PAGES + 5;

    #[test]
    fn hole_of_terabytes_is_one_extent() {
        let capacity_bytes = 16 << 40;
        let mut written = Written::new(capacity_bytes).unwrap();
        assert_eq!(written.extent(0..capacity_bytes), Extent { length: capacity_bytes, is_hole: true });
        written.write(&(capacity_bytes - 1..capacity_bytes));
        let hole = Extent { length: capacity_bytes - PAGE_BYTES - 700, is_hole: true };
        assert_eq!(written.extent(700..capacity_bytes), hole);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn extents_match_a_model_of_pages(
            changes in prop::collection::vec((any::<bool>(), 0..PAGES * PAGE_BYTES, 1..3 * SUMMED_PAGES * PAGE_BYTES), 1..12),
            from in 0..PAGES * PAGE_BYTES,
        ) {
            let capacity = PAGES * PAGE_BYTES;
            let (mut written, mut model) = (Written::new(capacity).unwrap(), vec![false; PAGES as usize]);
            for (writes, start, length) in changes {
                let bytes = start..(start + length).min(capacity);
                let (first, last) = if writes {
                    written.write(&bytes);
                    (bytes.start / PAGE_BYTES, bytes.end.div_ceil(PAGE_BYTES))
                } else {
                    written.punch(&bytes);
                    (bytes.start.div_ceil(PAGE_BYTES), bytes.end / PAGE_BYTES)
                };
                model[first as usize..(last as usize).max(first as usize)].fill(writes);
            }
            let mut at = from;
            while at < capacity {
                let Extent { length, is_hole } = written.extent(at..capacity);
                prop_assert!(length > 0);
                let pages = &model[(at / PAGE_BYTES) as usize..(at + length).div_ceil(PAGE_BYTES) as usize];
                prop_assert!(pages.iter().all(|&page| page != is_hole));
                at += length;
                prop_assert!(at == capacity || model[(at / PAGE_BYTES) as usize] == is_hole, "extent ends too early");
            }
        }
    }
}
