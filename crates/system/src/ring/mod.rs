//! io_uring: system calls that the kernel makes while the thread does something else.
//!
//! A [`Ring`] owns the memory of every [`Call`] that is under way: it is moved in with the call and handed back with
//! its completion. When a ring is dropped before the kernel is done, the memory is never freed. So nothing that safe
//! code can do lets the kernel write where somebody else looks.
//!
//! A kernel that takes no calls for a while (it has no memory, or wants its completions taken first) is asked again
//! with pauses; after some seconds the wait fails. What is pushed meanwhile waits in the ring.
//!
//! A call's file is the kernel's from the next wait or submission on: it may be closed then, and not before.

mod call;
mod error;

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, mem};

use io_uring::{IoUring, opcode, squeue, types};

use crate::inbox::Bell;
pub use call::{Call, Completed, Memory, Piece};
pub use error::RingError;

/// How long the kernel may take to end what was submitted.
const CANCELLING_MAX: Duration = Duration::from_secs(1);
/// A kernel that takes nothing is asked so many times.
const REFUSALS_MAX: u32 = 10_000;
/// After so long each.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// Marks the completion of the bell.
const BELL: u64 = u64::MAX;
/// Marks the completion of what ends another call.
const CANCEL: u64 = u64::MAX - 1;

/// Gives the kernel what is in the queue, and waits for so many completions.
type Enter = fn(&IoUring, usize, Option<Duration>) -> io::Result<usize>;

fn enter(ring: &IoUring, completions: usize, timeout: Option<Duration>) -> io::Result<usize> {
    match timeout {
        None => ring.submitter().submit_and_wait(completions),
        Some(timeout) => {
            let timespec = types::Timespec::from(timeout);
            ring.submitter().submit_with_args(completions, &types::SubmitArgs::new().timespec(&timespec))
        }
    }
}

/// In what way a call is made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct How {
    /// An ioprio as the kernel writes it; 0: the thread's.
    pub ioprio: u16,
    /// By one of the kernel's threads, which waits where the ring itself would not.
    pub by_worker: bool,
}

/// A call under way, and what the kernel uses of it.
struct Slot<T> {
    /// `None`: the slot is free.
    tag: Option<T>,
    memory: Memory,
    vectors: Vec<libc::iovec>,
    message: Option<Box<libc::msghdr>>,
    /// Of what is sent: bytes before this call.
    sent: usize,
}

// SAFETY: its pointers point into its own memory, which moves along; what they are for is the kernel's, whatever the
// thread.
unsafe impl<T: Send> Send for Slot<T> {}

/// See the module page. `T` is the submitter's name for a call.
pub struct Ring<T> {
    ring: IoUring,
    /// By the number that the kernel knows a call by.
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// What the kernel's queue had no room for.
    backlog: VecDeque<squeue::Entry>,
    bell: Option<Arc<Bell>>,
    /// What the bell's counter is read into, while that is under way.
    rung: Box<u64>,
    is_bell_armed: bool,
    /// How many times in a row the kernel has taken nothing.
    refusals: u32,
    refusal_pause: Duration,
    enter: Enter,
}

impl<T: Copy> Ring<T> {
    /// A ring for the calling thread alone. The kernel takes `entries` calls at a time, a power of two, and has room
    /// for as many completions as `completions` says, or twice the entries.
    ///
    /// # Errors
    /// If the system has none for us.
    pub fn new(entries: u32, completions: Option<u32>) -> Result<Self, RingError> {
        let builder = || {
            let mut builder = IoUring::builder();
            completions.map(|entries| builder.setup_cqsize(entries).clone()).unwrap_or(builder)
        };
        // What the kernel has to do for completions it does when this thread enters it, and says when there is something;
        // older kernels cannot.
        let mut quick = builder();
        quick.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun().setup_taskrun_flag();
        Ok(Self {
            ring: quick.build(entries).or_else(|_| builder().build(entries))?,
            slots: Vec::new(),
            free: Vec::new(),
            backlog: VecDeque::new(),
            bell: None,
            rung: Box::new(0),
            is_bell_armed: false,
            refusals: 0,
            refusal_pause: REFUSAL_PAUSE,
            enter,
        })
    }

    /// From now on a wait also ends when `bell` is rung. Nobody else waits for it.
    pub fn listen_to(&mut self, bell: Arc<Bell>) {
        // What is under way for another one keeps that one alive.
        if self.bell.is_none() {
            self.bell = Some(bell);
        }
    }

    /// Calls whose completions were not taken.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Has the kernel make a call on `file`, from the next wait or submission on. Its completion comes with `tag`.
    pub fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: T) {
        self.push_as(file, call, How::default(), tag);
    }

    /// As [`Ring::push`], in a way of its own.
    pub fn push_as(&mut self, file: BorrowedFd<'_>, call: Call, how: How, tag: T) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { tag: None, memory: Memory::None, vectors: Vec::new(), message: None, sent: 0 });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[number as usize];
        slot.tag = Some(tag);
        let entry = call.prepare(types::Fd(file.as_raw_fd()), how.ioprio, slot);
        let entry = if how.by_worker { entry.flags(squeue::Flags::ASYNC) } else { entry };
        self.push_entry(entry.user_data(number.into()));
    }

    /// Ends the call with `tag`, from the next wait or submission on: it completes with an error, if it is not done
    /// before.
    pub fn cancel(&mut self, tag: T)
    where
        T: PartialEq,
    {
        if let Some(number) = self.slots.iter().position(|slot| slot.tag == Some(tag)) {
            self.push_entry(opcode::AsyncCancel::new(number as u64).build().user_data(CANCEL));
        }
    }

    fn push_entry(&mut self, entry: squeue::Entry) {
        self.backlog.push_back(entry);
        if !self.fill_queue() {
            // The queue is full: the kernel takes what is in it. If it does not, a wait will tell.
            let _ = (self.enter)(&self.ring, 0, None);
            self.fill_queue();
        }
    }

    /// Moves what waits into the kernel's queue. Whether there was room for all of it.
    fn fill_queue(&mut self) -> bool {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: what an entry points to belongs to a slot or is the bell's. A slot keeps it until the completion
            // was taken, on the heap, so that the slot itself may move; dropping the ring lets go of nothing before:
            // see `drop`.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return false;
            }
            self.backlog.pop_front();
        }
        true
    }

    /// Submits what was pushed.
    ///
    /// # Errors
    /// If the kernel takes nothing, and has not for long; or cannot at all.
    pub fn submit(&mut self) -> io::Result<()> {
        self.submit_and_wait_for(0, None)
    }

    /// Submits what was pushed, and waits for a completion or the bell, at most as long as `timeout` if there is one. It
    /// may also return early. To wait for no time may be to sleep until the system's next timer, some 50 µs.
    ///
    /// # Errors
    /// If the kernel takes nothing, and has not for long; or cannot at all.
    pub fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.arm_bell();
        self.submit_and_wait_for(1, timeout)
    }

    /// Submits what was pushed and takes notice of what has come, without sleeping.
    ///
    /// # Errors
    /// As [`Ring::submit_and_wait`].
    pub fn look(&mut self) -> io::Result<()> {
        self.arm_bell();
        self.submit()
    }

    fn arm_bell(&mut self) {
        if let Some(bell) = self.bell.as_ref().filter(|_| !self.is_bell_armed) {
            let fd = types::Fd(bell.as_fd().as_raw_fd());
            let read = opcode::Read::new(fd, (&raw mut *self.rung).cast(), size_of::<u64>() as u32);
            self.is_bell_armed = true;
            self.push_entry(read.build().user_data(BELL));
        }
    }

    fn submit_and_wait_for(&mut self, completions: usize, timeout: Option<Duration>) -> io::Result<()> {
        loop {
            let is_all = self.fill_queue();
            let entered =
                if is_all { (self.enter)(&self.ring, completions, timeout) } else { (self.enter)(&self.ring, 0, None) };
            let error = match entered {
                Ok(_) if is_all => {
                    self.refusals = 0;
                    return Ok(());
                }
                Ok(submitted) if submitted > 0 => continue,
                Ok(_) => io::Error::from_raw_os_error(libc::EAGAIN),
                Err(error) => error,
            };
            match error.raw_os_error() {
                Some(libc::EINTR) if completions == 0 => {}
                Some(libc::ETIME | libc::EINTR) => return Ok(()),
                Some(libc::EBUSY | libc::EAGAIN | libc::ENOMEM) => return self.refused(&error),
                _ => return Err(error),
            }
        }
    }

    /// The kernel takes nothing now: what is left goes with the next submission.
    fn refused(&mut self, error: &io::Error) -> io::Result<()> {
        if self.has_completions() {
            // Once they are taken it may have room.
            return Ok(());
        }
        self.refusals += 1;
        if self.refusals > REFUSALS_MAX {
            let refused_s = (REFUSALS_MAX * REFUSAL_PAUSE).as_secs();
            let what = format!("io_uring: the kernel has taken nothing for {refused_s} s: {error}");
            return Err(io::Error::new(error.kind(), what));
        }
        std::thread::sleep(self.refusal_pause);
        Ok(())
    }

    /// Whether there are completions to be taken.
    pub fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Takes every completion there is. How many there were, the bell's included.
    pub fn completions(&mut self, into: &mut Vec<Completed<T>>) -> usize {
        let mut count = 0;
        while let Some((number, result)) = self.next_entry() {
            into.extend(self.complete(number, result));
            count += 1;
        }
        count
    }

    /// Takes a completion.
    #[inline]
    pub fn take(&mut self) -> Option<Completed<T>> {
        loop {
            let (number, result) = self.next_entry()?;
            if let Some(completed) = self.complete(number, result) {
                return Some(completed);
            }
        }
    }

    #[inline]
    fn next_entry(&mut self) -> Option<(u64, i32)> {
        self.ring.completion().next().map(|entry| (entry.user_data(), entry.result()))
    }

    /// The call is over; `None` for the bell, and for what ends calls.
    #[inline]
    fn complete(&mut self, number: u64, result: i32) -> Option<Completed<T>> {
        if number == BELL {
            self.is_bell_armed = false;
            return None;
        }
        self.refusals = 0;
        // There is no slot of that number for what ends calls.
        let slot = self.slots.get_mut(number as usize)?;
        let tag = slot.tag.take()?;
        let memory = match mem::replace(&mut slot.memory, Memory::None) {
            // SAFETY: the kernel has made the descriptor just now, for this call, and nobody else has it.
            Memory::Accepting if result >= 0 => Memory::Socket(unsafe { OwnedFd::from_raw_fd(result) }),
            Memory::Pieces(mut pieces) if result > 0 => {
                call::keep_page(&mut pieces, slot.sent + result as usize);
                Memory::Pieces(pieces)
            }
            memory => memory,
        };
        self.free.push(number as u32);
        Some(Completed { tag, result, memory })
    }

    /// Waits until everything that was pushed is done, and forgets what came of it.
    ///
    /// # Errors
    /// If the kernel cannot be asked.
    pub fn finish(&mut self) -> io::Result<()> {
        while self.under_way() > 0 {
            self.submit_and_wait(None)?;
            while self.take().is_some() {}
        }
        Ok(())
    }
}

impl<T> Ring<T> {
    /// Ends everything that was submitted, and sees all of it end. Whether it did.
    fn cancel_all(&mut self) -> bool {
        // What was never submitted never completes.
        if (self.enter)(&self.ring, 0, None).is_err() || !self.backlog.is_empty() {
            return false;
        }
        let timeout = types::Timespec::from(CANCELLING_MAX);
        let cancelled = self.ring.submitter().register_sync_cancel(Some(timeout), types::CancelBuilder::any());
        // Nothing to cancel is fine, too.
        if cancelled.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
            return false;
        }
        let began = Instant::now();
        loop {
            for entry in self.ring.completion() {
                if entry.user_data() == BELL {
                    self.is_bell_armed = false;
                } else if let Some(slot) = self.slots.get_mut(entry.user_data() as usize) {
                    if let (Memory::Accepting, result @ 0..) = (&slot.memory, entry.result()) {
                        // SAFETY: as in `complete`.
                        drop(unsafe { OwnedFd::from_raw_fd(result) });
                    }
                    slot.tag = None;
                }
            }
            if !self.is_bell_armed && self.slots.iter().all(|slot| slot.tag.is_none()) {
                return true;
            }
            let left = CANCELLING_MAX.saturating_sub(began.elapsed());
            if left.is_zero() || (self.enter)(&self.ring, 1, Some(left)).is_err() {
                return false;
            }
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let is_idle = !self.is_bell_armed && self.slots.iter().all(|slot| slot.tag.is_none());
        if !is_idle && !self.cancel_all() {
            // The kernel may still read and write there.
            mem::forget((mem::take(&mut self.slots), mem::take(&mut self.rung)));
        }
    }
}

#[cfg(test)]
mod tests;
