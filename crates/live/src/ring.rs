//! What a disk's thread asks of the system: who makes a call is told of its completion, and time is the system's.
//!
//! The real one is the thread's io_uring and the machine's clock; tests put a virtual clock and a virtual network in
//! its place.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iosched::Time;
use iosched_system::{Bell, Call, RingError};

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

/// Whoever makes calls on files and sockets.
pub(crate) trait Calls {
    /// Has a call made on `file`; its completion comes with `tag`.
    fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: Tag);

    /// Ends the call with `tag`: it completes with an error, if it is not done before.
    fn cancel(&mut self, tag: Tag);
}

/// All that a disk's thread asks of the system.
pub(crate) trait System: Calls {
    /// From now on a wait also ends when `bell` is rung.
    fn listen_to(&mut self, bell: Arc<Bell>);

    /// The time since the disk began.
    fn now(&self) -> Time;

    /// Takes every completion there is. How many there were.
    fn completions(&mut self, into: &mut Vec<Completed>) -> usize;

    /// Whether there are completions to be taken.
    fn has_completions(&mut self) -> bool;

    /// Begins what was pushed, and waits for something to come, at most for `timeout`. It may also return early.
    ///
    /// # Errors
    /// If nothing can be done any more.
    fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()>;

    /// Begins what was pushed and takes notice of what has come, without sleeping.
    ///
    /// # Errors
    /// If nothing can be done any more.
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
    /// Time begins now.
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

/// A way to make calls for one source.
pub(crate) struct Submissions<'a> {
    pub(crate) ring: &'a mut dyn Calls,
    pub(crate) source: Source,
}

impl Submissions<'_> {
    /// Has a call made on `file`; its completion comes with `id`.
    pub(crate) fn push(&mut self, file: BorrowedFd<'_>, call: Call, id: u32) {
        self.ring.push(file, call, (self.source, id));
    }
}
