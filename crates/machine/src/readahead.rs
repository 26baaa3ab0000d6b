//! Readahead: how many pages to read when a page is missing, and when to read the following pages.
//!
//! This is the on-demand readahead of Linux from 2.6.23 on, in three [generations](Generation), as
//! published by Fengguang Wu and others ("On the design of a new Linux readahead framework",
//! Operating Systems Review 42(5), 2008; "Linux Readahead: Less Tricks for More", Ottawa Linux
//! Symposium 2007). It acts in two cases only: a page that is read is [absent](Readahead::sync), or
//! the page has [a mark](Readahead::hit_mark) from an earlier readahead. The mark lies before the
//! end of a window, so that the next window is requested before the reader needs it.
//!
//! A window begins small and grows up to the largest size. Readahead does not detect backward and
//! strided reads. Each of them counts as a random read and reads only its own pages. A read of more
//! pages than the largest window counts as the beginning of a sequential read.
//!
//! Not modelled: the older algorithm with two windows (up to 2.6.22), and large folios with the
//! alignment of windows to folios. From 4.10 on, a read that is larger than the window uses the
//! largest requests of the disk. The caller passes a larger window for such a read.
//!
//! The caller knows which pages of a plan are cached, where the file ends, and whether the queue is
//! too congested for readahead. The caller leaves out pages for these reasons.

/// Version of the kernel's readahead algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Linux 2.6.23 to 2.6.30.
    #[default]
    Linux2_6_23,
    /// Linux 2.6.31 to 3.11. A read of the first page of a file always begins a window. A missing
    /// page directly after cached pages (*traces*) also begins a window, because a sequential
    /// reader has probably read these cached pages. At a mark of another stream, the window also
    /// includes the remaining pages of the read.
    Linux2_6_31,
    /// Linux from 3.12 on. Traces count only if there are more traces than pages that the read
    /// needs. They begin a smaller window than before.
    Linux3_12,
}

/// Pages that readahead decides to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// First page.
    pub start: u64,
    /// Number of pages, at least 1. The caller skips cached pages and pages after the end of the
    /// file.
    pub pages: u64,
    /// The page that gets the mark, if readahead reads this page.
    pub mark: Option<u64>,
}

/// Readahead state of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readahead {
    /// First page of the current window.
    start: u64,
    /// Number of pages of the current window.
    size: u64,
    /// Distance of the mark from the end of the window, in pages.
    async_size: u64,
    /// The last page that the previous read call used.
    previous: Option<u64>,
    generation: Generation,
}

impl Readahead {
    /// Creates the state of a file that was just opened.
    #[must_use]
    pub const fn new(generation: Generation) -> Self {
        Self { start: 0, size: 0, async_size: 0, previous: None, generation }
    }

    /// Returns the maximum size of the window in pages: `read_ahead_kb`, but at most half of the
    /// memory that is free or on the inactive list.
    #[must_use]
    pub const fn pages_max(read_ahead_kb: u64, free_pages: u64, inactive_pages: u64) -> u64 {
        let wished = read_ahead_kb * 1024 / crate::PAGE_BYTES;
        let sane = (free_pages + inactive_pages) / 2;
        if wished < sane { wished } else { sane }
    }

    /// Returns the last page that the last read call used.
    #[must_use]
    pub const fn previous_page(&self) -> Option<u64> {
        self.previous
    }

    /// Records the end of a read call. `last_page` is the last page that the call used. If this
    /// page or the next page is missing in the next call, the next call counts as sequential.
    pub const fn read_ended(&mut self, last_page: u64) {
        self.previous = Some(last_page);
    }

    /// Plans the read of an absent `page`. The read call needs `wanted_pages` from this page on, at
    /// least 1. `max_pages` is the largest window; 0 disables readahead. `cached_before` returns
    /// the number of cached pages directly before `page`, and may stop counting at `max_pages`.
    /// This method calls `cached_before` only if the number matters.
    pub fn sync(&mut self, page: u64, wanted_pages: u64, max_pages: u64, cached_before: impl FnOnce() -> u64) -> Plan {
        if max_pages == 0 {
            return Plan { start: page, pages: 1, mark: None };
        }
        if self.expects(page) {
            return self.advance(page, max_pages);
        }
        let sequential = self.follows_previous(page) || wanted_pages > max_pages;
        if !sequential && !self.follows_traces(page, wanted_pages, max_pages, cached_before) {
            return Plan { start: page, pages: wanted_pages, mark: None };
        }
        if sequential {
            self.size = first_size(wanted_pages, max_pages);
            self.async_size = if self.size > wanted_pages { self.size - wanted_pages } else { self.size };
        }
        self.start = page;
        self.submit(page, max_pages)
    }

    /// Plans the readahead at a `page` with a mark, which the caller has removed. The read call
    /// needs `wanted_pages` from this page on. `next_absent` is the first page after `page` that is
    /// not cached. If the mark is from another reader of the file, or from this reader before a
    /// seek, the window begins at `next_absent`.
    pub fn hit_mark(&mut self, page: u64, wanted_pages: u64, max_pages: u64, next_absent: u64) -> Option<Plan> {
        if max_pages == 0 {
            return None;
        }
        if self.expects(page) {
            return Some(self.advance(page, max_pages));
        }
        let mut size = next_absent.saturating_sub(page);
        if size > max_pages {
            return None;
        }
        if self.generation != Generation::Linux2_6_23 {
            size += wanted_pages;
        }
        self.start = next_absent;
        self.size = next_size(size, max_pages);
        self.async_size = self.size;
        Some(self.submit(page, max_pages))
    }

    /// Sets the size of a window from the number of cached pages before `page`. A sequential reader
    /// has probably read these pages. Returns whether they are enough for a window.
    fn follows_traces(&mut self, page: u64, wanted: u64, max: u64, cached_before: impl FnOnce() -> u64) -> bool {
        let traces = match self.generation {
            Generation::Linux2_6_23 => return false,
            Generation::Linux2_6_31 | Generation::Linux3_12 => cached_before().min(max),
        };
        // If the traces begin at the start of the file, the reader will probably continue for long.
        let weight = if traces >= page { traces * 2 } else { traces };
        match self.generation {
            Generation::Linux3_12 if traces > wanted => {
                self.size = (weight + wanted).min(max);
                self.async_size = 1;
                true
            }
            Generation::Linux2_6_31 if traces > 0 => {
                self.size = first_size(weight + wanted, max);
                self.async_size = self.size;
                true
            }
            _ => false,
        }
    }

    /// Returns whether a sequential reader needs the next window at `page`. This is the case at the
    /// mark and at the end of the current window.
    const fn expects(&self, page: u64) -> bool {
        let end = self.start + self.size;
        page != 0 && (page == end - self.async_size || page == end)
    }

    /// Returns whether the previous read ended at this page or at the page before. Also returns
    /// true for the first page of a file that was not read yet.
    const fn follows_previous(&self, page: u64) -> bool {
        match self.previous {
            Some(_) if page == 0 && !matches!(self.generation, Generation::Linux2_6_23) => true,
            None => page == 0,
            Some(previous) => page == previous || page == previous + 1,
        }
    }

    fn advance(&mut self, page: u64, max_pages: u64) -> Plan {
        self.start += self.size;
        self.size = next_size(self.size, max_pages);
        self.async_size = self.size;
        self.submit(page, max_pages)
    }

    /// Returns the window as a plan. If the mark would be at the first page of the window, this
    /// read would reach the mark at once. In this case, the plan also contains the next window.
    fn submit(&mut self, page: u64, max_pages: u64) -> Plan {
        if page == self.start && self.size == self.async_size {
            self.async_size = next_size(self.size, max_pages);
            self.size += self.async_size;
        }
        Plan { start: self.start, pages: self.size, mark: Some(self.start + self.size - self.async_size) }
    }
}

/// Returns the size of the first window of a sequential read that needs `wanted_pages`.
const fn first_size(wanted_pages: u64, max_pages: u64) -> u64 {
    // For more pages than this, the window is always the largest.
    let wanted = if wanted_pages < max_pages { wanted_pages.next_power_of_two() } else { max_pages };
    if wanted <= max_pages / 32 {
        wanted * 4
    } else if wanted <= max_pages / 4 {
        wanted * 2
    } else {
        max_pages
    }
}

/// Returns the size of the window after a window of `size` pages.
const fn next_size(size: u64, max_pages: u64) -> u64 {
    let next = if size < max_pages / 16 { size * 4 } else { size * 2 };
    if next < max_pages { next } else { max_pages }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn plan(start: u64, pages: u64, mark: u64) -> Plan {
        Plan { start, pages, mark: Some(mark) }
    }

    const fn as_requested(start: u64, pages: u64) -> Plan {
        Plan { start, pages, mark: None }
    }

    /// Returns the plans of several reads of an uncached file. Each read has `pages` pages and
    /// begins at the next page of `reads`. The largest window is `max`.
    fn fetched(reads: impl IntoIterator<Item = u64>, pages: u64, max: u64) -> Vec<Plan> {
        let mut cached = std::collections::BTreeSet::new();
        let mut marks = std::collections::BTreeSet::new();
        let mut file = Readahead::new(Generation::Linux2_6_23);
        let mut plans = Vec::new();
        for first in reads {
            let end = first + pages;
            for page in first..end {
                for on_mark in [false, true] {
                    let absent = (page..).find(|page| !cached.contains(page)).unwrap_or(u64::MAX);
                    let plan = match on_mark {
                        false => (absent == page).then(|| file.sync(page, end - page, max, || 0)),
                        true if marks.remove(&page) => file.hit_mark(page, end - page, max, absent),
                        true => None,
                    };
                    let Some(plan) = plan else { continue };
                    for page in plan.start..plan.start + plan.pages {
                        if cached.insert(page) && plan.mark == Some(page) {
                            marks.insert(page);
                        }
                    }
                    plans.push(plan);
                }
                assert!(cached.contains(&page), "the cache has each page that a process reads");
            }
            file.read_ended(end - 1);
        }
        plans
    }

    #[test]
    fn windows_of_single_page_reads_ramp_up_to_the_largest() {
        let plans = fetched(0..100, 1, 32);
        assert_eq!(plans[..5], [plan(0, 4, 1), plan(4, 8, 4), plan(12, 16, 12), plan(28, 32, 28), plan(60, 32, 60)]);
    }

    #[test]
    fn windows_quadruple_while_they_are_small() {
        let plans = fetched(0..2000, 1, 512);
        assert_eq!(
            plans[..5],
            [plan(0, 4, 1), plan(4, 16, 4), plan(20, 64, 20), plan(84, 128, 84), plan(212, 256, 212)]
        );
    }

    #[test]
    fn first_window_depends_on_the_requested_pages() {
        for (wanted, max, expected) in [
            (1, 32, 4),
            (2, 32, 4),
            (3, 32, 8),
            (5, 32, 16),
            (8, 32, 16),
            (9, 32, 32),
            (256, 32, 32),
            (4, 128, 16),
            (5, 128, 16),
            (17, 128, 64),
            (1, 4, 2),
            (1, 1, 1),
        ] {
            assert_eq!(first_size(wanted, max), expected, "{wanted} of at most {max}");
        }
    }

    #[test]
    fn read_above_the_largest_window_starts_with_two_windows() {
        let plans = fetched([1000], 256, 32);
        let mut expected = vec![plan(1000, 64, 1032)];
        expected.extend(
            (0..).map(|i| 1064 + 32 * i).take_while(|start| start - 32 < 1256).map(|start| plan(start, 32, start)),
        );
        assert_eq!(plans, expected);
        assert_eq!(
            plans.last().map(|last| last.start + last.pages),
            Some(1288),
            "one window beyond the requested pages"
        );
    }

    #[test]
    fn isolated_reads_of_the_largest_window_are_random() {
        assert_eq!(
            fetched([64, 640, 128], 32, 32),
            [as_requested(64, 32), as_requested(640, 32), as_requested(128, 32)]
        );
        assert_eq!(fetched([64, 96], 32, 32), [as_requested(64, 32), plan(96, 64, 128)]);
    }

    #[test]
    fn small_random_reads_do_not_change_the_window() {
        let mut file = Readahead::new(Generation::Linux2_6_23);
        assert_eq!(file.sync(0, 1, 32, || 0), plan(0, 4, 1));
        let before = file;
        file.read_ended(0);
        assert_eq!(file.sync(500, 2, 32, || 0), as_requested(500, 2));
        file.read_ended(501);
        assert_eq!(Readahead { previous: before.previous, ..file }, before);
        assert_eq!(file.hit_mark(1, 1, 32, 4), Some(plan(4, 8, 4)), "the random read did not change the window");
    }

    #[test]
    fn backward_reads_are_random() {
        assert_eq!(fetched([24, 16, 8], 8, 32), [as_requested(24, 8), as_requested(16, 8), as_requested(8, 8)]);
    }

    #[test]
    fn backward_reads_of_large_records_fetch_missing_pages() {
        let plans = fetched([512, 256], 256, 32);
        // The second read reaches the first one. The pages up to the end of the first read's window
        // are cached.
        assert_eq!(plans[0], plan(512, 64, 544));
        assert_eq!(plans.iter().find(|plan| plan.start < 512), Some(&plan(256, 64, 288)));
    }

    #[test]
    fn strided_reads_are_random() {
        assert_eq!(
            fetched([0, 17, 34, 51], 1, 32)[1..],
            [as_requested(17, 1), as_requested(34, 1), as_requested(51, 1)]
        );
    }

    #[test]
    fn mark_of_another_stream_sets_the_window_after_cached_pages() {
        let mut file = Readahead::new(Generation::Linux2_6_23);
        file.read_ended(5000);
        assert_eq!(file.hit_mark(100, 1, 32, 108), Some(plan(108, 16, 108)));
        assert_eq!(file.hit_mark(108, 1, 32, 124), Some(plan(124, 32, 124)), "the next mark continues this window");
    }

    #[test]
    fn a_mark_before_a_cached_window_is_ignored() {
        let mut file = Readahead::new(Generation::Linux2_6_23);
        assert_eq!(file.hit_mark(100, 1, 32, 133), None);
        assert_eq!(file, Readahead::new(Generation::Linux2_6_23));
    }

    #[test]
    fn only_one_of_two_streams_of_an_open_file_reads_ahead() {
        let reads = (0..200).flat_map(|i| [i, 10_000 + i]);
        let plans = fetched(reads, 1, 32);
        let largest = |from: u64| {
            plans.iter().filter(|plan| plan.start >= from && plan.start < from + 5000).map(|plan| plan.pages).max()
        };
        assert_eq!(largest(0), Some(32));
        assert_eq!(largest(10_000), Some(1), "the second stream has no window");
    }

    #[test]
    fn page_zero_starts_a_new_window_since_2_6_31() {
        for (generation, expected) in [
            (Generation::Linux2_6_23, as_requested(0, 1)),
            (Generation::Linux2_6_31, plan(0, 4, 1)),
            (Generation::Linux3_12, plan(0, 4, 1)),
        ] {
            let mut file = Readahead::new(generation);
            file.read_ended(700);
            assert_eq!(file.sync(0, 1, 32, || 0), expected, "{generation:?}");
        }
    }

    #[test]
    fn cached_pages_before_a_read_start_a_window_since_2_6_31() {
        for (generation, wanted, traces, expected) in [
            (Generation::Linux2_6_23, 1, 9, as_requested(100, 1)),
            (Generation::Linux2_6_31, 1, 0, as_requested(100, 1)),
            // 1 trace and 1 wanted page begin a window of 4 pages, which is merged with the next
            // window.
            (Generation::Linux2_6_31, 1, 1, plan(100, 12, 104)),
            (Generation::Linux2_6_31, 1, 100, plan(100, 64, 132)),
            (Generation::Linux3_12, 1, 1, as_requested(100, 1)),
            (Generation::Linux3_12, 1, 2, plan(100, 3, 102)),
            (Generation::Linux3_12, 2, 20, plan(100, 22, 121)),
            (Generation::Linux3_12, 2, 31, plan(100, 32, 131)),
        ] {
            let mut file = Readahead::new(generation);
            file.read_ended(700);
            assert_eq!(file.sync(100, wanted, 32, || traces), expected, "{generation:?}, {traces} traces");
        }
    }

    #[test]
    fn mark_of_another_stream_adds_requested_pages_since_2_6_31() {
        let mut file = Readahead::new(Generation::Linux2_6_31);
        assert_eq!(file.hit_mark(100, 4, 32, 108), Some(plan(108, 24, 108)));
    }

    #[test]
    fn without_readahead_pages_are_read_one_by_one() {
        assert_eq!(fetched([7], 3, 0), [as_requested(7, 1), as_requested(8, 1), as_requested(9, 1)]);
    }

    #[test]
    fn memory_limits_the_largest_window() {
        assert_eq!(Readahead::pages_max(128, 1000, 1000), 32);
        assert_eq!(Readahead::pages_max(128, 10, 11), 10);
        assert_eq!(Readahead::pages_max(0, 1000, 1000), 0);
    }
}
