//! The modelled machine, or what a kernel does above the request queue: system calls turn into the right requests.
//!
//! Page cache, readahead, writeback, file system layout and journal, enough of Linux 2.6 to 4.19 for that. The caller
//! owns time, the request queue and the device; nothing here knows them.
//!
//! # Inside
//!
//! | file | what it is |
//! |---|---|
//! | `description.rs` | the machine and its kernel's settings; the version decides whose rules writeback, readahead and barriers follow |
//! | `start.rs` | how a run finds the machine: memory and speed differ within bounds from run to run |
//! | `cache/` | the page cache in runs of pages: states, two lists, what is dropped when room is needed; a pure data structure |
//! | `readahead.rs` | how much a read that misses fetches, and when the next window is asked for |
//! | `fs/` | the layout of ext3 and ext4: groups, inodes, directories, blocks of files; each operation tells which metadata blocks it needs and changes |
//! | `journal/` | jbd as a state machine: transactions, the steps of a commit, room in the log |
//! | `model/` | tasks in system calls, the writeback and journal threads of each disk, and the I/O they ask for |
//!
//! A kernel's task is a stack of frames, as a real one's is: the frame on top runs, may push what must be done first,
//! and pops itself; each frame is a file (`read`, `write`, `direct`, `sync`, `writeback`, `throttle`, `metadata`,
//! `commit`, `flusher`). None of them knows time or the request queue: the engine's `system.rs` lets CPU time pass,
//! hands bios over and tells what is done. An application (`workload/src/app`) is asked for its next system call and
//! told the time, and measures itself with it.
#![forbid(unsafe_code)]

pub mod cache;
pub mod description;
pub mod fs;
pub mod journal;
pub mod model;
pub mod readahead;
pub mod start;

/// Bytes of a page, and of a block of a file system.
pub const PAGE_BYTES: u64 = 4096;
/// Sectors of a page.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / iosched::SECTOR_BYTES;
