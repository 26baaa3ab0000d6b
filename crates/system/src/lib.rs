//! What talks to the operating system, for the live disk and for workloads on real devices: the one crate of the
//! workspace with code that the compiler cannot check. What it offers is safe, whatever is done with it.
//!
//! | module | what it is |
//! |---|---|
//! | [`ring`] | io_uring: it owns the memory of what is under way, and hands it back with the completion |
//! | [`buffer`] | memory for data on its way, in parts that can be lent to the kernel |
//! | [`inbox`] | what one thread is told by others, and the bell that wakes it |
//! | [`map`] | memory of which pages that nothing was written to take none; what of it the kernel reads in place |
//! | [`rows`] | rows of numbers, in memory or in a temporary file |
//! | [`apart`] | work in a process of its own that shares this one's memory |
//! | [`call`] | system calls that no safe library has |
//! | [`ublk`] | what is said to the ublk driver, and what it says |
#![allow(unsafe_code)]
#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

pub mod apart;
pub mod buffer;
pub mod call;
pub mod inbox;
pub mod map;
pub mod ring;
pub mod rows;
pub mod ublk;

pub use buffer::{Buffer, Pool, Scratch, Segment, Shared};
pub use inbox::{Bell, Inbox};
pub use ring::{Call, Completed, How, Memory, Piece, Ring, RingError};
pub use rows::Rows;
