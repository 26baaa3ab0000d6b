//! What wakes a thread: other threads ring it, and what they have to say is in its inbox.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A thread's bell.
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(super) fn ring(&self) {
        // It cannot overflow: whoever hears it takes all that was rung.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits until it is rung, at most for `timeout`.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn hush(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What one thread tells another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A job is to start at this moment, ns.
    Start { at_ns: u64 },
    /// A job is to issue no more.
    Stop,
    /// A job ends without having started.
    Skip,
    /// A task is to submit so many I/Os at this moment, ns.
    Called { at_ns: u64, ios: u64 },
    /// A task of an application that waits is to go on.
    GoOn,
}

/// What a thread is told.
pub(super) struct Inbox {
    pub(super) bell: Bell,
    any: AtomicBool,
    messages: Mutex<Vec<Message>>,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { bell: Bell::new()?, any: AtomicBool::new(false), messages: Mutex::default() })
    }

    /// Tells it something.
    pub(super) fn post(&self, message: Message) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.any.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// The thread wakes, and looks round.
    pub(super) fn wake(&self) {
        self.any.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Gives what was told since, in order.
    #[inline]
    pub(super) fn read(&self, told: impl FnMut(Message)) {
        if self.any.load(Ordering::Acquire) {
            self.read_all(told);
        }
    }

    #[cold]
    fn read_all(&self, told: impl FnMut(Message)) {
        self.any.store(false, Ordering::Release);
        self.bell.hush();
        let messages = std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        messages.into_iter().for_each(told);
    }
}
