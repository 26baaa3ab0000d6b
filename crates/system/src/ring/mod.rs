//! io_uring: system calls that the kernel makes while the thread continues.
//!
//! A [`Ring`] owns the memory of every [`Call`] in flight. The caller moves the memory into the
//! ring with the call, and gets it back with the completion. If a ring is dropped before the kernel
//! has completed all calls, their memory is never freed. Safe code can therefore not make the
//! kernel write to memory that other code uses.
//!
//! Sometimes the kernel accepts no calls for a while, because it has no memory, or because the ring
//! must take completions first. The ring then tries again after pauses. After some seconds, the
//! wait fails. Calls that are pushed in the meantime wait in the ring.
//!
//! The kernel takes a reference to a call's file at the next wait or submission. Until then, the
//! file must stay open.

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

/// Longest time that the kernel may take to end submitted calls.
const CANCELLING_MAX: Duration = Duration::from_secs(1);
/// Largest number of attempts to submit while the kernel accepts no call.
const REFUSALS_MAX: u32 = 10_000;
/// Pause between two attempts.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// Marks the completion of the bell.
const BELL: u64 = u64::MAX;
/// Marks the completion of a cancellation.
const CANCEL: u64 = u64::MAX - 1;

/// Submits the entries of the queue to the kernel, and waits for this number of completions.
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

/// Options of a call: its I/O priority, and whether a worker makes the call.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct How {
    /// The ioprio as the kernel stores it. 0 stands for the thread's ioprio.
    pub ioprio: u16,
    /// Whether a worker thread of the kernel makes the call. The worker can wait. Without a worker,
    /// the ring would return EAGAIN instead.
    pub by_worker: bool,
}

/// A call in flight, and the memory that the kernel uses for it.
struct Slot<T> {
    /// The submitter's tag, or `None` if the slot is free.
    tag: Option<T>,
    memory: Memory,
    vectors: Vec<libc::iovec>,
    message: Option<Box<libc::msghdr>>,
    /// If the call sends data: number of bytes that earlier calls have sent.
    sent: usize,
}

// SAFETY: the pointers of a slot point to memory of this slot on the heap. This memory does not
// move with the slot. The kernel uses the pointers independently of the thread.
unsafe impl<T: Send> Send for Slot<T> {}

/// A ring. See the module documentation. `T` is the type of the submitter's tags.
pub struct Ring<T> {
    ring: IoUring,
    /// Slots, by the number that identifies a call for the kernel.
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    /// Entries for which the kernel's queue had no room.
    backlog: VecDeque<squeue::Entry>,
    bell: Option<Arc<Bell>>,
    /// Memory into which the bell's counter is read, while the read is in flight.
    rung: Box<u64>,
    is_bell_armed: bool,
    /// Number of consecutive attempts in which the kernel accepted no call.
    refusals: u32,
    refusal_pause: Duration,
    enter: Enter,
}

impl<T: Copy> Ring<T> {
    /// Creates a ring that only the calling thread uses. The kernel accepts `entries` calls at a
    /// time, a power of two. The ring has room for `completions` completions, by default for twice
    /// `entries`.
    ///
    /// # Errors
    /// If the system does not provide a ring.
    pub fn new(entries: u32, completions: Option<u32>) -> Result<Self, RingError> {
        let builder = || {
            let mut builder = IoUring::builder();
            completions.map(|entries| builder.setup_cqsize(entries).clone()).unwrap_or(builder)
        };
        // With these flags, the kernel handles completions when this thread enters the kernel, and
        // signals that there are completions. Older kernels do not have these flags.
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

    /// Makes waits also end when `bell` rings, from now on. No other thread may wait for this bell.
    pub fn listen_to(&mut self, bell: Arc<Bell>) {
        // A read in flight for another bell keeps that bell alive.
        if self.bell.is_none() {
            self.bell = Some(bell);
        }
    }

    /// Returns the number of calls whose completions were not taken yet.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues a call on `file`. The kernel starts the call at the next wait or submission. The
    /// completion has `tag`.
    pub fn push(&mut self, file: BorrowedFd<'_>, call: Call, tag: T) {
        self.push_as(file, call, How::default(), tag);
    }

    /// Queues a call like [`Ring::push`], with options.
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

    /// Cancels the call with `tag` at the next wait or submission. The call completes with an
    /// error, unless it completes before the cancellation.
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
            // The queue is full, so the kernel must take its entries. If the kernel takes none, a
            // later wait reports this problem.
            let _ = (self.enter)(&self.ring, 0, None);
            self.fill_queue();
        }
    }

    /// Moves waiting entries into the kernel's queue. Returns whether there was room for all.
    fn fill_queue(&mut self) -> bool {
        while let Some(entry) = self.backlog.front() {
            // SAFETY: an entry points to memory of a slot or of the bell. A slot keeps this memory
            // on the heap until the completion was taken, so that the slot itself may move.
            // Dropping the ring does not free this memory earlier: see `drop`.
            if unsafe { self.ring.submission().push(entry) }.is_err() {
                return false;
            }
            self.backlog.pop_front();
        }
        true
    }

    /// Submits the pushed calls to the kernel, without waiting.
    ///
    /// # Errors
    /// If the kernel has accepted no call for a long time, or cannot accept calls.
    pub fn submit(&mut self) -> io::Result<()> {
        self.submit_and_wait_for(0, None)
    }

    /// Submits the pushed calls, and waits for a completion or the bell, but at most for `timeout`
    /// if it is given. The wait may also end early. A wait of zero length may sleep until the
    /// system's next timer, about 50 µs.
    ///
    /// # Errors
    /// If the kernel has accepted no call for a long time, or cannot accept calls.
    pub fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.arm_bell();
        self.submit_and_wait_for(1, timeout)
    }

    /// Submits the pushed calls, and makes completions visible, without sleeping.
    ///
    /// # Errors
    /// The errors of [`Ring::submit_and_wait`].
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

    /// Handles a kernel that accepts no calls now. The next submission contains the remaining
    /// entries.
    fn refused(&mut self, error: &io::Error) -> io::Result<()> {
        if self.has_completions() {
            // After these completions are taken, the kernel may have room.
            return Ok(());
        }
        self.refusals += 1;
        if self.refusals > REFUSALS_MAX {
            let refused_s = (REFUSALS_MAX * REFUSAL_PAUSE).as_secs();
            let what = format!("io_uring: the kernel has accepted no request for {refused_s} s: {error}");
            return Err(io::Error::new(error.kind(), what));
        }
        std::thread::sleep(self.refusal_pause);
        Ok(())
    }

    /// Returns whether there are completions to take.
    pub fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Takes all completions. Returns their number, including the bell's.
    pub fn completions(&mut self, into: &mut Vec<Completed<T>>) -> usize {
        let mut count = 0;
        while let Some((number, result)) = self.next_entry() {
            into.extend(self.complete(number, result));
            count += 1;
        }
        count
    }

    /// Takes the next completed call, if there is one.
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

    /// Completes a call. Returns `None` for the bell and for cancellations.
    #[inline]
    fn complete(&mut self, number: u64, result: i32) -> Option<Completed<T>> {
        if number == BELL {
            self.is_bell_armed = false;
            return None;
        }
        self.refusals = 0;
        // Cancellations have no slot.
        let slot = self.slots.get_mut(number as usize)?;
        let tag = slot.tag.take()?;
        let memory = match mem::replace(&mut slot.memory, Memory::None) {
            // SAFETY: the kernel has just made the descriptor for this call, and
            // it has no other owner.
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

    /// Waits until all pushed calls are complete, and drops their results.
    ///
    /// # Errors
    /// If the kernel cannot be entered.
    pub fn finish(&mut self) -> io::Result<()> {
        while self.under_way() > 0 {
            self.submit_and_wait(None)?;
            while self.take().is_some() {}
        }
        Ok(())
    }
}

impl<T> Ring<T> {
    /// Cancels all submitted calls, and waits for their end. Returns whether all calls ended.
    fn cancel_all(&mut self) -> bool {
        // Calls that were never submitted never complete.
        if (self.enter)(&self.ring, 0, None).is_err() || !self.backlog.is_empty() {
            return false;
        }
        let timeout = types::Timespec::from(CANCELLING_MAX);
        let cancelled = self.ring.submitter().register_sync_cancel(Some(timeout), types::CancelBuilder::any());
        // An error because there is nothing to cancel does not matter.
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
            // The kernel may still read and write this memory.
            mem::forget((mem::take(&mut self.slots), mem::take(&mut self.rung)));
        }
    }
}

#[cfg(test)]
mod tests;
