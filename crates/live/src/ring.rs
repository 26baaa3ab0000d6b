//! The interface of a disk's thread to the system: calls with completions, and time.
//!
//! The real implementation is the thread's io_uring and the machine's clock. Tests use a virtual
//! clock and a virtual network instead.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iosched::Time;
use iosched_system::{Bell, Call, RingError};

/// Maximum number of calls that the kernel takes at the same time. More calls are submitted in
/// several steps.
const ENTRIES: u32 = 256;

/// The part of the program that makes a call and gets its completion.
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

/// Source of a call, and the number of the call within this source.
pub(crate) type Tag = (Source, u32);
pub(crate) type Ring = iosched_system::Ring<Tag>;
pub(crate) type Completed = iosched_system::Completed<Tag>;

/// Creates a ring for the calling thread.
pub(crate) fn new() -> Result<Ring, RingError> {
    Ring::new(ENTRIES, Some(ENTRIES * 16))
}

/// Interface for calls on files and sockets.
pub(crate) trait Calls {
    /// Queues a call on `file`. The call's completion has `tag`.
    fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: Tag);

    /// Cancels the call with `tag`. The call then completes with an error, unless it is complete
    /// already.
    fn cancel(&mut self, tag: Tag);
}

/// Complete interface of a disk's thread to the system.
pub(crate) trait System: Calls {
    /// Makes `bell` end a wait when the bell is rung.
    fn listen_to(&mut self, bell: Arc<Bell>);

    /// Returns the time since the start of the disk.
    fn now(&self) -> Time;

    /// Takes all completions. Returns the number of completions.
    fn completions(&mut self, into: &mut Vec<Completed>) -> usize;

    /// Returns whether there are completions.
    fn has_completions(&mut self) -> bool;

    /// Submits queued calls, and waits for an event for at most `timeout`. May return early.
    ///
    /// # Errors
    /// The ring is no longer usable.
    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Submits queued calls and checks for completions, without sleeping.
    ///
    /// # Errors
    /// The ring is no longer usable.
    fn look(&mut self) -> io::Result<()> {
        self.submit_and_wait(Some(Duration::ZERO))
    }
}

impl Calls for Ring {
    #[inline]
    fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: Tag) {
        Ring::push(self, file, call, tag);
    }

    fn cancel(&mut self, tag: Tag) {
        Ring::cancel(self, tag);
    }
}

/// The real system.
pub(crate) struct Kernel {
    ring: Ring,
    began: Instant,
}

impl Kernel {
    /// Creates the system. Its time starts now.
    pub(crate) fn new(ring: Ring) -> Self {
        Self { ring, began: Instant::now() }
    }
}

impl Calls for Kernel {
    #[inline]
    fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: Tag) {
        self.ring.push(file, call, tag);
    }

    fn cancel(&mut self, tag: Tag) {
        self.ring.cancel(tag);
    }
}

impl System for Kernel {
    fn listen_to(&mut self, bell: Arc<Bell>) {
        self.ring.listen_to(bell);
    }

    #[inline]
    fn now(&self) -> Time {
        Time::BEGINNING + self.began.elapsed().as_nanos() as u64
    }

    #[inline]
    fn completions(&mut self, into: &mut Vec<Completed>) -> usize {
        self.ring.completions(into)
    }

    #[inline]
    fn has_completions(&mut self) -> bool {
        self.ring.has_completions()
    }

    #[inline]
    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.ring.submit_and_wait(timeout)
    }

    #[inline]
    fn look(&mut self) -> io::Result<()> {
        self.ring.look()
    }
}

/// Interface for the calls of one [`Source`].
pub(crate) struct Submissions<'a> {
    pub(crate) ring: &'a mut dyn Calls,
    pub(crate) source: Source,
}

impl Submissions<'_> {
    /// Queues a call on `file`. The call's completion has `id`.
    pub(crate) fn push(&mut self, file: BorrowedFd<'_>, call: Call, id: u32) {
        self.ring.push(file, call, (self.source, id));
    }
}
