//! Messages to one thread, and the bell that wakes this thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A bell that wakes a thread. The thread waits for it with a
/// [`Ring`](crate::Ring) or directly, but not with both.
pub struct Bell(File);

impl Bell {
    fn new() -> io::Result<Self> {
        Ok(Self(File::from(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the thread now, or prevents its next sleep.
    pub fn ring(&self) {
        // The write can fail if the counter is full. A full counter also wakes the thread.
        let _ = (&self.0).write(&1_u64.to_ne_bytes());
    }

    /// Waits until the bell is rung, at most for `timeout`.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            // No other thread reads the counter, so this does not wait.
            Ok(_) => (&self.0).read(&mut [0; size_of::<u64>()]).map(drop),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Messages to one thread, and the bell that wakes this thread.
pub struct Inbox<M> {
    /// Messages, or `None` if the thread has ended.
    messages: Mutex<Option<Vec<M>>>,
    /// Whether there are messages.
    any: AtomicBool,
    /// Whether the thread sleeps or is about to sleep.
    asleep: AtomicBool,
    bell: Arc<Bell>,
}

impl<M> Inbox<M> {
    /// Creates an inbox without messages.
    ///
    /// # Errors
    /// If the system cannot make a bell (an eventfd) for it.
    pub fn new() -> io::Result<Self> {
        let (any, asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { messages: Mutex::new(Some(Vec::new())), any, asleep, bell: Arc::new(Bell::new()?) })
    }

    /// Returns the bell for which the thread waits.
    #[must_use]
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Announces that the thread is about to sleep. Messages that are sent from now on wake it.
    /// Returns true if no message has arrived, so that the thread may sleep.
    #[inline]
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        let any = self.any.load(Ordering::SeqCst);
        if any {
            self.awake();
        }
        !any
    }

    /// Announces that the thread no longer sleeps.
    #[inline]
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Wakes the thread without a message.
    pub fn wake(&self) {
        self.bell.ring();
    }

    /// Moves the messages that have arrived into `empty`, which must be empty.
    #[inline]
    pub fn take(&self, empty: &mut Vec<M>) {
        if self.any.load(Ordering::Acquire)
            && let Some(messages) = &mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner)
        {
            self.any.store(false, Ordering::SeqCst);
            std::mem::swap(messages, empty);
        }
    }

    /// Closes the inbox, because the thread ends. Later messages are refused.
    /// Returns the messages that were not taken.
    pub fn close(&self) -> Vec<M> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Sends a message to the receiver.
    ///
    /// # Errors
    /// Returns the message if the receiving thread has ended.
    pub fn send(&self, message: M) -> Result<(), M> {
        match &mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner) {
            None => return Err(message),
            Some(messages) => {
                messages.push(message);
                self.any.store(true, Ordering::SeqCst);
            }
        }
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.bell.ring();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn messages_arrive_in_order_and_wake_the_receiver() {
        let inbox = Inbox::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|number| inbox.send(number).unwrap()));
            let (mut all, mut messages) = (Vec::new(), Vec::new());
            while all.len() < 1000 {
                inbox.take(&mut messages);
                all.append(&mut messages);
                if all.len() < 1000 && inbox.may_sleep() {
                    inbox.bell().wait(LONG).unwrap();
                    inbox.awake();
                }
            }
            assert_eq!(all, (0..1000).collect::<Vec<_>>());
        });
    }

    #[test]
    fn receiver_may_not_sleep_while_messages_wait() {
        let inbox = Inbox::new().unwrap();
        assert!(inbox.may_sleep());
        inbox.awake();
        inbox.send(1).unwrap();
        assert!(!inbox.may_sleep());
        inbox.take(&mut Vec::new());
        assert!(inbox.may_sleep());
    }

    #[test]
    fn closed_inbox_returns_old_and_new_messages() {
        let inbox = Inbox::new().unwrap();
        inbox.send(1).unwrap();
        assert_eq!(inbox.close(), [1]);
        assert_eq!(inbox.send(2), Err(2));
    }

    #[test]
    fn bells_rung_before_a_wait_end_one_wait() {
        let inbox = Inbox::<()>::new().unwrap();
        let is_rung = || {
            let mut polled = [PollFd::new(inbox.bell(), PollFlags::IN)];
            poll(&mut polled, Some(&Timespec::default())).unwrap() == 1
        };
        assert!(!is_rung());
        inbox.wake();
        inbox.wake();
        assert!(is_rung());
        inbox.bell().wait(LONG).unwrap();
        assert!(!is_rung(), "one wait answers both rings");
    }
}
