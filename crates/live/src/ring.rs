//! The io_uring of a disk's thread: who makes a call through it is told of its completion.

use std::os::fd::BorrowedFd;

use iosched_system::{Call, RingError};

/// Calls that the kernel takes at a time; more are submitted in several goes.
const ENTRIES: u32 = 256;

/// Who made a call, and is told of its completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    Backend,
    Accept,
    Receive,
    Send,
    Ublk,
    #[cfg(feature = "vhost")]
    Kick,
}

/// Who made a call, and its number there.
pub(crate) type Tag = (Source, u32);
pub(crate) type Ring = iosched_system::Ring<Tag>;
pub(crate) type Completed = iosched_system::Completed<Tag>;

/// A ring for the calling thread alone.
pub(crate) fn new() -> Result<Ring, RingError> {
    Ring::new(ENTRIES, Some(ENTRIES * 16))
}

/// A way to make calls for one source.
pub(crate) struct Submissions<'a> {
    pub(crate) ring: &'a mut Ring,
    pub(crate) source: Source,
}

impl Submissions<'_> {
    /// Has the kernel make a call on `file`; its completion comes with `id`.
    pub(crate) fn push(&mut self, file: BorrowedFd<'_>, call: Call, id: u32) {
        self.ring.push(file, call, (self.source, id));
    }
}
