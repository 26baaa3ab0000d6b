//! The io_uring of one thread of a workload.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use iosched_system::{Bell, Call, How, Scratch, Shared};

use super::memory::{ALIGN_BYTES, WriteData, room};

/// Largest number of entries of the submission queue. Larger batches are submitted in several
/// calls.
const ENTRIES_MAX: u32 = 4096;
/// Largest memory for reads, bytes. If the reads need more memory, they share it, because nobody
/// uses the data.
const READ_BYTES_MAX: usize = 64 << 20;

/// Operation of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    /// `number` is the index of the data in the write data. If `stable` is true, the data is on the
    /// medium when the write completes.
    Write {
        number: u64,
        stable: bool,
    },
    Sync {
        data_only: bool,
    },
}

/// The io_uring, with its memory for reads and its write data.
pub(super) struct Ring {
    ring: iosched_system::Ring<u32>,
    read: Scratch,
    stride: usize,
    slots: usize,
    written: Arc<WriteData>,
    shared: Shared,
}

impl Ring {
    /// Creates a ring of the calling thread for at most `depth` I/Os in flight, of up to `io_bytes`
    /// each. If a `bell` is given, it can end a wait.
    pub(super) fn new(
        depth: usize,
        io_bytes: usize,
        written: Arc<WriteData>,
        bell: Option<&Arc<Bell>>,
    ) -> io::Result<Self> {
        let entries = u32::try_from(depth + 1).unwrap_or(ENTRIES_MAX).next_power_of_two().clamp(8, ENTRIES_MAX);
        let mut ring = iosched_system::Ring::new(entries, None)?;
        if let Some(bell) = bell {
            ring.listen_to(Arc::clone(bell));
        }
        let stride = io_bytes.next_multiple_of(ALIGN_BYTES).max(ALIGN_BYTES);
        let slots = depth.clamp(1, (READ_BYTES_MAX / stride).max(1));
        let read = room(slots * stride).into_scratch();
        let shared = written.share();
        Ok(Self { ring, read, stride, slots, written, shared })
    }

    /// Queues a command on `bytes` of `file`, which must stay open until completion. The completion
    /// returns `slot`.
    pub(super) fn push(
        &mut self,
        file: BorrowedFd<'_>,
        command: Command,
        (offset, bytes): (u64, usize),
        slot: u32,
        how: How,
    ) {
        let call = match command {
            Command::Read => {
                let start = (slot as usize % self.slots) * self.stride;
                Call::ReadAway { scratch: self.read.clone(), place: start..start + bytes, offset }
            }
            Command::Write { number, stable } => {
                let place = self.written.place(number, bytes);
                Call::WriteShared { bytes: Arc::clone(&self.shared), place, offset, stable }
            }
            Command::Sync { data_only } => Call::Sync { data_only },
        };
        self.ring.push_as(file, call, how, slot);
    }

    /// Submits the queued commands. If the kernel has no room for some commands, the next wait
    /// submits them.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    /// Waits for a completion or the bell, at most for `timeout` if one is given.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.ring.has_completions() { Ok(()) } else { self.ring.submit_and_wait(timeout) }
    }

    /// Takes a completion: the slot of its command, and the return value of the system call. A
    /// negative value is an errno.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(u32, i32)> {
        self.ring.take().map(|completed| (completed.tag, completed.result))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A run ends only when its I/Os are complete. The ring keeps the memory of the I/Os valid,
        // even after an error.
        let _ = self.ring.finish();
    }
}
