//! Tests of the page cache: the pages that stay, the pages that are dropped, and the memory that
//! the cache needs.

use iosched_machine::cache::{Balance, Cached, Mapping, NoRoom, PageCache, State};

const FILE: Mapping = Mapping(3);
const OTHER: Mapping = Mapping(12);
const DEVICE: Mapping = Mapping(0);

/// Reads pages as a system call does. Returns how many were cached.
fn read(cache: &mut PageCache, mapping: Mapping, page: u64, pages: u64) -> u64 {
    let (mut at, mut hits) = (page, 0);
    while at < page + pages {
        match cache.get(mapping, at) {
            Cached::Absent { until } => {
                let n = until.min(page + pages) - at;
                cache.insert_accessed(mapping, at, n, State::Reading).expect("clean pages make room");
                cache.read_done(mapping, at, n);
                at += n;
            }
            Cached::Run { until, .. } => {
                let n = until.min(page + pages) - at;
                cache.access(mapping, at, n);
                hits += n;
                at += n;
            }
        }
    }
    hits
}

#[test]
fn rereading_a_file_larger_than_memory_never_hits() {
    let mut cache = PageCache::new(8 << 10);
    let hits: u64 = (0..3).flat_map(|_| 0..64).map(|record| read(&mut cache, FILE, record * 256, 256)).sum();
    assert_eq!(hits, 0);
}

#[test]
fn reading_a_large_file_backwards_hits_the_cached_end() {
    let mut cache = PageCache::new(8 << 10);
    let forwards: u64 = (0..64).map(|record| read(&mut cache, FILE, record * 256, 256)).sum();
    let backwards: u64 = (0..64).rev().map(|record| read(&mut cache, FILE, record * 256, 256)).sum();
    assert_eq!((forwards, backwards), (0, 8 << 10));
}

#[test]
fn reused_pages_outlive_single_use_pages_since_2_6_31() {
    for (balance, survives) in [(Balance::Halves, true), (Balance::Proportional, false)] {
        let mut cache = PageCache::with_balance(8 << 10, balance);
        for _ in 0..2 {
            read(&mut cache, OTHER, 0, 3 << 10);
        }
        assert_eq!(cache.nr_active(), 3 << 10);
        for record in 0..640 {
            read(&mut cache, FILE, record * 256, 256);
        }
        assert_eq!(cache.pages_of(OTHER), if survives { 3 << 10 } else { 0 }, "{balance:?}");
    }
}

#[test]
fn reads_do_not_evict_dirty_pages() {
    let mut cache = PageCache::new(8 << 10);
    for page in 0..1000 {
        cache.insert_accessed(OTHER, page * 3, 2, State::Dirty).expect("there is room");
    }
    for record in 0..640 {
        read(&mut cache, FILE, record * 256, 256);
    }
    assert_eq!((cache.nr_dirty(), cache.dirty_pages(OTHER)), (2000, 2000));
    assert_eq!(cache.next_dirty(OTHER, 0), Some((0, 2)));
    assert_eq!(cache.next_dirty(OTHER, 1), Some((1, 1)));
    assert_eq!(cache.next_dirty(OTHER, 2), Some((3, 2)));
    assert_eq!(cache.next_dirty(OTHER, 2999), None);
}

#[test]
fn insert_fails_without_clean_pages_and_drops_none() {
    let mut cache = PageCache::new(100);
    cache.insert(FILE, 0, 60, State::Dirty).expect("there is room");
    cache.insert(FILE, 60, 20, State::Reading).expect("there is room");
    cache.insert(FILE, 80, 10, State::Clean).expect("there is room");
    assert_eq!(cache.insert(OTHER, 0, 21, State::Clean), Err(NoRoom { missing_pages: 1 }));
    assert_eq!((cache.pages(), cache.reclaimable()), (90, 10));
    assert_eq!(cache.insert(OTHER, 0, 20, State::Dirty), Ok(()));
    assert_eq!((cache.pages(), cache.nr_dirty(), cache.nr_reading(), cache.reclaimable()), (100, 80, 20, 0));
}

#[test]
fn page_dirtied_during_writeback_is_dirty_afterwards() {
    let mut cache = PageCache::new(100);
    cache.insert(FILE, 0, 10, State::Dirty).expect("there is room");
    cache.start_writeback(FILE, 0, 10);
    assert_eq!((cache.nr_dirty(), cache.nr_writeback()), (0, 10));
    assert_eq!(cache.set_dirty(FILE, 4, 2), 2);
    assert_eq!((cache.nr_dirty(), cache.nr_writeback(), cache.next_dirty(FILE, 0)), (2, 10, None));
    assert!(cache.has_dirty(FILE));
    cache.start_writeback(FILE, 4, 2);
    cache.end_writeback(FILE, 0, 10);
    assert_eq!((cache.nr_dirty(), cache.nr_writeback(), cache.next_dirty(FILE, 0)), (2, 0, Some((4, 2))));
}

#[test]
fn completions_for_truncated_pages_do_nothing() {
    let mut cache = PageCache::new(100);
    cache.insert(FILE, 0, 10, State::Dirty).expect("there is room");
    cache.start_writeback(FILE, 0, 6);
    cache.insert(FILE, 10, 10, State::Reading).expect("there is room");
    assert_eq!(cache.truncate(FILE, 3), 4);
    cache.end_writeback(FILE, 0, 6);
    cache.read_done(FILE, 10, 10);
    cache.check();
    assert_eq!((cache.pages(), cache.reclaimable()), (3, 3));
}

#[test]
fn marks_are_removed_with_their_pages() {
    let mut cache = PageCache::new(64);
    cache.insert(FILE, 0, 64, State::Clean).expect("there is room");
    for page in [5, 40, 60] {
        cache.mark(FILE, page);
    }
    cache.mark(FILE, 64);
    cache.insert(OTHER, 0, 1, State::Clean).expect("32 pages are evicted");
    assert_eq!(cache.next_mark(FILE, 0, 64), Some(40));
    cache.truncate(FILE, 50);
    assert_eq!(cache.next_mark(FILE, 41, u64::MAX), None);
    assert!(cache.take_mark(FILE, 40));
    assert!(!cache.take_mark(FILE, 40));
}

#[test]
fn number_of_runs_is_limited_by_the_simulated_memory() {
    // 8 GiB of memory. 16 GiB are written in single pages, in records in order, and backwards.
    let pages_max = 8 << 18;
    let mut cache = PageCache::new(pages_max);
    let least = (pages_max / 1024) as usize;
    let mut written = 0;
    for page in 0..16 << 18 {
        cache.insert_accessed(FILE, page, 1, State::Dirty).expect("written back in time");
        if cache.nr_dirty() > 100_000 {
            cache.start_writeback(FILE, written, 50_000);
            cache.end_writeback(FILE, written, 50_000);
            written += 50_000;
        }
    }
    assert!(cache.runs() < least + 200, "{} runs of a file written in order", cache.runs());
    cache.end_writeback(FILE, 0, u64::MAX);
    cache.start_writeback(FILE, 0, u64::MAX);
    cache.end_writeback(FILE, 0, u64::MAX);
    for record in 0..16 << 10 {
        read(&mut cache, FILE, record * 256, 256);
    }
    assert!(cache.runs() < least + 200, "{} runs of a file read in order", cache.runs());
    for record in (0..16 << 10).rev() {
        read(&mut cache, FILE, record * 256, 256);
    }
    assert!(cache.runs() < 4 * least + 200, "{} runs of a file read backwards in records of 256 pages", cache.runs());
    cache.check();
}

#[test]
fn small_files_are_evicted_oldest_first() {
    let mut cache = PageCache::new(500_000);
    for file in 0..500_000 {
        let mapping = Mapping(1 + file);
        cache.insert_accessed(mapping, 0, 1, State::Clean).expect("clean pages make room");
        let block = u64::from(file % 5_000) * 7919 % 5_000 * 100;
        read(&mut cache, DEVICE, block, 1);
    }
    cache.check();
    assert_eq!(cache.pages_of(DEVICE), 5_000, "pages of the device are reused often");
    let kept = |file: u32| cache.pages_of(Mapping(1 + file)) == 1;
    let oldest = (0..500_000).find(|&file| kept(file)).expect("most files are cached");
    assert!(oldest > 0 && (oldest..500_000).all(kept), "only the oldest files are evicted");
    for file in 0..500_000 {
        cache.truncate(Mapping(1 + file), 0);
    }
    assert_eq!(cache.pages(), 5_000);
}
