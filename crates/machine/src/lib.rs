//! The modelled machine, or what a kernel does above the request queue: system calls turn into the right requests.
//!
//! Page cache, readahead, writeback, file system layout and journal, enough of Linux 2.6 to 4.19 for that. The caller owns
//! time, the request queue and the device; nothing here knows them.
#![forbid(unsafe_code)]

pub mod cache;
pub mod description;
pub mod fs;
pub mod journal;
pub mod model;
pub mod readahead;

/// Bytes of a page, and of a block of a file system.
pub const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / iosched::SECTOR_BYTES;
