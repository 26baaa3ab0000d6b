//! Measures the cost of the page cache: CPU time of the machine on which the example runs, ns per
//! operation. The modelled machine has 8 GiB of memory.
//!
//! `cargo run --release -p iosched-machine --example cache_cost [PART OF A LINE'S NAME]`

#![allow(clippy::disallowed_methods, reason = "it measures this machine")]

use std::hint::black_box;

use iosched_machine::cache::{Cached, Mapping, PageCache, State};

const PAGES_MAX: u64 = 8 << 18;
const FILE_PAGES: u64 = 16 << 18;
const FILE: Mapping = Mapping(7);
const DEVICE: Mapping = Mapping(0);

/// Returns the CPU time of this thread, ns. Other programs do not increase this time.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of threads");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("schedstat begins with a number")
}

/// Returns a cache that is full of clean pages of an unused file.
fn full() -> PageCache {
    let mut cache = PageCache::new(PAGES_MAX);
    cache.insert(Mapping(1), 0, PAGES_MAX, State::Clean).expect("an empty cache has room");
    cache
}

/// Writes dirty pages back, 128 pages at a time, until at most a tenth of the cache is dirty.
fn write_back(cache: &mut PageCache, mapping: Mapping, from: &mut u64) {
    while cache.nr_dirty() > PAGES_MAX / 10 {
        let Some((page, pages)) = cache.next_dirty_up_to(mapping, *from, 128) else { break };
        cache.start_writeback(mapping, page, pages);
        cache.end_writeback(mapping, page, pages);
        *from = page + pages;
    }
}

/// Makes one buffered write of `pages` pages from `page` on. The pages may be in memory or not.
fn write(cache: &mut PageCache, mapping: Mapping, page: u64, pages: u64) {
    let mut at = page;
    while at < page + pages {
        match cache.get(mapping, at) {
            Cached::Absent { until } => {
                let until = until.min(page + pages);
                cache
                    .insert_accessed(mapping, at, until - at, State::Dirty)
                    .expect("dirty pages are written back in time");
                at = until;
            }
            Cached::Run { until, .. } => {
                let until = until.min(page + pages);
                cache.set_dirty(mapping, at, until - at);
                cache.access(mapping, at, until - at);
                at = until;
            }
        }
    }
}

/// Reads `pages` pages from `page` on. Missing pages are fetched in windows of 32 pages.
fn read(cache: &mut PageCache, page: u64, pages: u64) {
    let mut at = page;
    while at < page + pages {
        match cache.get(FILE, at) {
            Cached::Absent { until } => {
                let n = 32.min(until - at);
                cache.insert(FILE, at, n, State::Reading).expect("clean pages make room");
                cache.mark(FILE, at);
                cache.read_done(FILE, at, n);
            }
            Cached::Run { until, .. } => {
                let until = until.min(page + pages);
                cache.take_mark(FILE, at);
                cache.access(FILE, at, until - at);
                at = until;
            }
        }
    }
}

fn scattered(i: u64, below: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(z ^ (z >> 29)) * u128::from(below)) >> 64) as u64
}

type Work = fn() -> (u64, PageCache, u64);

const LINES: &[(&str, Work)] = &[
    ("append a page, insert alone", || {
        let mut cache = PageCache::new(PAGES_MAX);
        let began = cpu_ns();
        for page in 0..PAGES_MAX {
            cache.insert(FILE, page, 1, State::Dirty).expect("there is room");
        }
        (PAGES_MAX, cache, began)
    }),
    ("append a page, insert alone, full memory", || {
        let mut cache = full();
        let began = cpu_ns();
        for page in 0..PAGES_MAX / 4 {
            cache.insert(FILE, page, 1, State::Dirty).expect("there is room");
        }
        (PAGES_MAX / 4, cache, began)
    }),
    ("append a page, all of a 4 KiB write", || {
        let (mut cache, mut from) = (full(), 0);
        let began = cpu_ns();
        for page in 0..FILE_PAGES {
            write(&mut cache, FILE, page, 1);
            write_back(&mut cache, FILE, &mut from);
        }
        (FILE_PAGES, cache, began)
    }),
    ("write the same page again (512-byte writes)", || {
        let (mut cache, mut from) = (full(), 0);
        let began = cpu_ns();
        for page in 0..FILE_PAGES / 8 {
            for _ in 0..8 {
                write(&mut cache, FILE, page, 1);
            }
            write_back(&mut cache, FILE, &mut from);
        }
        (FILE_PAGES, cache, began)
    }),
    ("write 1 MiB, in order", || {
        let (mut cache, mut from) = (full(), 0);
        let began = cpu_ns();
        for record in 0..FILE_PAGES / 256 {
            write(&mut cache, FILE, record * 256, 256);
            write_back(&mut cache, FILE, &mut from);
        }
        (FILE_PAGES / 256, cache, began)
    }),
    ("write 1 MiB, anywhere in 16 GiB", || {
        let (mut cache, mut from) = (full(), 0);
        let began = cpu_ns();
        for record in 0..FILE_PAGES / 256 {
            write(&mut cache, FILE, scattered(record, FILE_PAGES / 256) * 256, 256);
            write_back(&mut cache, FILE, &mut from);
            if cache.nr_dirty() > PAGES_MAX / 10 {
                from = 0;
            }
        }
        (FILE_PAGES / 256, cache, began)
    }),
    ("read 32 pages of 16 GiB, in order", || {
        let mut cache = full();
        let began = cpu_ns();
        for record in 0..FILE_PAGES / 32 {
            read(&mut cache, record * 32, 32);
        }
        (FILE_PAGES / 32, cache, began)
    }),
    ("insert 32 pages and access them, in order", || {
        let mut cache = full();
        let began = cpu_ns();
        for record in 0..FILE_PAGES / 32 {
            cache.insert(FILE, record * 32, 32, State::Clean).expect("clean pages make room");
            cache.access(FILE, record * 32, 32);
        }
        (FILE_PAGES / 32, cache, began)
    }),
    ("insert 32 pages accessed, in order", || {
        let mut cache = full();
        let began = cpu_ns();
        for record in 0..FILE_PAGES / 32 {
            cache.insert_accessed(FILE, record * 32, 32, State::Clean).expect("clean pages make room");
        }
        (FILE_PAGES / 32, cache, began)
    }),
    ("read 32 pages of 16 GiB, backwards", || {
        let mut cache = full();
        let began = cpu_ns();
        for record in (0..FILE_PAGES / 32).rev() {
            read(&mut cache, record * 32, 32);
        }
        (FILE_PAGES / 32, cache, began)
    }),
    ("read a page of 16 GiB, anywhere", || {
        let mut cache = full();
        let began = cpu_ns();
        for i in 0..FILE_PAGES {
            let page = scattered(i, FILE_PAGES);
            if let Cached::Absent { .. } = cache.get(FILE, page) {
                cache.insert(FILE, page, 1, State::Reading).expect("clean pages make room");
                cache.read_done(FILE, page, 1);
            }
            cache.access(FILE, page, 1);
        }
        (FILE_PAGES, cache, began)
    }),
    ("write and write back one of 350,000 small files", || {
        let mut cache = full();
        let began = cpu_ns();
        for file in 8..350_008 {
            write(&mut cache, Mapping(file), 0, 1);
        }
        for file in 8..350_008 {
            let (page, pages) = cache.next_dirty(Mapping(file), 0).expect("it is dirty");
            cache.start_writeback(Mapping(file), page, pages);
        }
        for file in 8..350_008 {
            cache.end_writeback(Mapping(file), 0, 1);
        }
        (350_000, cache, began)
    }),
    ("remove one of 350,000 small files", || {
        let mut cache = full();
        for file in 8..350_008 {
            write(&mut cache, Mapping(file), 0, 1);
        }
        let began = cpu_ns();
        for file in 8..350_008 {
            cache.truncate(Mapping(file), 0);
        }
        (350_000, cache, began)
    }),
    ("touch one of 200,000 scattered metadata pages", || {
        let mut cache = full();
        for i in 0..200_000 {
            let page = scattered(i, 1 << 27);
            if matches!(cache.get(DEVICE, page), Cached::Absent { .. }) {
                cache.insert(DEVICE, page, 1, State::Clean).expect("clean pages make room");
            }
        }
        let began = cpu_ns();
        for i in 0..2_000_000u64 {
            let page = scattered(i * 7919 % 200_000, 1 << 27);
            black_box(cache.get(DEVICE, page));
            cache.access(DEVICE, page, 1);
            cache.set_dirty(DEVICE, page, 1);
            if i % 4096 == 4095 {
                let mut from = 0;
                while let Some((page, pages)) = cache.next_dirty(DEVICE, from) {
                    cache.start_writeback(DEVICE, page, pages);
                    cache.end_writeback(DEVICE, page, pages);
                    from = page + pages;
                }
            }
        }
        (2_000_000, cache, began)
    }),
];

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    println!("{:<52} {:>11} {:>12} {:>8}", "", "CPU ns each", "operations", "runs");
    for (name, work) in LINES.iter().filter(|(name, _)| name.contains(&only)) {
        let (operations, cache, began) = work();
        let ns = (cpu_ns() - began) as f64 / operations as f64;
        println!("{name:<52} {ns:>11.1} {operations:>12} {:>8}", cache.runs());
    }
}
