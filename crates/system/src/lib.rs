//! Access to the operating system, for the live disk and for workloads on real devices. This is the
//! only crate of the workspace with `unsafe` code. Its interface is safe.
//!
//! | module | contents |
//! |---|---|
//! | [`ring`] | io_uring: it owns the memory of calls in flight, and returns the memory with the completion |
//! | [`buffer`] | memory for data in flight, in parts that can be lent to the kernel |
//! | [`open_directory`] | directories held by descriptor, in which files are created and removed |
//! | [`inbox`] | messages from other threads to one thread, and the bell that wakes it |
//! | [`map`] | memory in which unused pages take no space, and views of it that the kernel reads in place |
//! | [`rows`] | rows of numbers, in memory or in a temporary file |
//! | [`apart`] | work in a separate process that shares this one's memory |
//! | [`call`] | system calls that no safe library offers |
//! | [`ublk`] | commands to the ublk driver and requests from it |
#![allow(unsafe_code)]
#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod apart;
pub mod buffer;
pub mod call;
pub mod inbox;
pub mod map;
pub mod open_directory;
pub mod ring;
pub mod rows;
pub mod ublk;

pub use buffer::{Buffer, Pool, Scratch, Segment, Shared};
pub use inbox::{Bell, Inbox};
pub use ring::{Call, Completed, How, Memory, Piece, Ring, RingError};
pub use rows::Rows;
