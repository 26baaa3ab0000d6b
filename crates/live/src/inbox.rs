//! Messages on their way to a thread that waits on a ring.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// Messages on their way to one thread, and the bell that wakes it.
pub(crate) struct Inbox<M> {
    messages: Mutex<Vec<M>>,
    /// The thread sleeps, or is about to.
    asleep: AtomicBool,
    stopped: AtomicBool,
    bell: File,
}

impl<M> Inbox<M> {
    pub(crate) fn new() -> std::io::Result<Self> {
        let bell = File::from(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (messages, asleep, stopped) = (Mutex::default(), AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { messages, asleep, stopped, bell })
    }

    /// What the thread has its ring read 8 bytes from, to be woken.
    pub(crate) fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// The thread is about to sleep: whoever sends something from now on wakes it. Whether it may, since nothing has come.
    pub(crate) fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let empty = self.messages.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if !empty {
            self.asleep.store(false, Ordering::SeqCst);
        }
        empty
    }

    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Takes what has come, into `empty`.
    pub(crate) fn take(&self, empty: &mut Vec<M>) {
        std::mem::swap(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner), empty);
    }

    /// The thread is no more: what comes from now on is refused.
    pub(crate) fn close(&self) -> Vec<M> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        self.stopped.store(true, Ordering::SeqCst);
        std::mem::take(&mut messages)
    }

    /// Hands a message in; gives it back if the thread is no more.
    pub(crate) fn send(&self, message: M) -> Result<(), M> {
        {
            let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
            if self.stopped.load(Ordering::SeqCst) {
                return Err(message);
            }
            messages.push(message);
        }
        if self.asleep.swap(false, Ordering::SeqCst) {
            // A counter that is full rings, too.
            let _ = (&self.bell).write(&1_u64.to_ne_bytes());
        }
        Ok(())
    }
}
