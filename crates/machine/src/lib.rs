//! The modelled machine: the part of a kernel above the
//! request queue. It turns system calls into requests.
//!
//! The model covers the page cache, readahead, writeback, and the layout and journal of file
//! systems, as in Linux 2.6 to 6.12. The clock, the request queue and the device belong to the
//! caller. This crate has no access to them.
//!
//! # Inside
//!
//! | file | contents |
//! |---|---|
//! | `description.rs` | the machine and its kernel's settings; the kernel version selects the rules of writeback, readahead and barriers |
//! | `start.rs` | the machine's state at the start of a run: memory and speed vary within bounds from run to run |
//! | `cache/` | the page cache in runs of pages: states, two lists, reclaim; a pure data structure |
//! | `readahead.rs` | how many pages a read of a missing page fetches, and when the next window is requested |
//! | `fs/` | the layout of ext3 and ext4: groups, inodes, directories, blocks of files; each operation returns the metadata blocks that it needs and changes |
//! | `journal/` | jbd as a state machine: transactions, the steps of a commit, space in the log |
//! | `model/` | tasks in system calls, the writeback and journal threads of each disk, and the I/O that they submit |
//!
//! As in a real kernel, a task is a stack of frames. The top frame runs, may push frames for work
//! that must be done first, and pops itself. Each kind of frame has a file (`read`, `write`,
//! `direct`, `sync`, `writeback`, `throttle`, `metadata`, `commit`, `flusher`). A frame has no
//! access to the clock or to the request queue. The engine's `system.rs` lets CPU time pass,
//! submits bios and reports completions. The model asks an application (`workload/src/app`) for its
//! next system call. The model also passes the time to the application, and the application uses
//! the time to measure its results.
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
/// Number of sectors in a page.
pub const PAGE_SECTORS: u64 = PAGE_BYTES / iosched::SECTOR_BYTES;
