//! The io_uring of one thread that plays a part of a workload.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use iosched_system::{Bell, Call, How, Scratch, Shared};

use super::memory::{ALIGN_BYTES, WriteData, room};

/// Entries of the submission queue at most; more are submitted in several goes.
const ENTRIES_MAX: u32 = 4096;
/// Memory for reads at most, bytes; I/Os beyond share it. What is read is looked at by nobody.
const READ_BYTES_MAX: usize = 64 << 20;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read,
    /// Its data is number `number` of what there is to write; `stable`: on the medium when it is done.
    Write {
        number: u64,
        stable: bool,
    },
    Sync {
        data_only: bool,
    },
}

/// The ring.
pub(super) struct Ring {
    ring: iosched_system::Ring<u32>,
    read: Scratch,
    stride: usize,
    slots: usize,
    written: Arc<WriteData>,
    shared: Shared,
}

impl Ring {
    /// A ring of the calling thread for `depth` I/Os at once, of up to `io_bytes` each. `bell`, if there is one, ends a
    /// wait.
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

    /// Adds a command on `bytes` of `file`, which stays open until its completion. It comes with `slot`.
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

    /// Hands over what was added. What the kernel has no room for goes with the wait for completions.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    /// Waits for a completion or the bell, at most for `timeout` if there is one.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if self.ring.has_completions() { Ok(()) } else { self.ring.submit_and_wait(timeout) }
    }

    /// Takes a completion: its command's slot, and what the system call would return, negative an errno.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(u32, i32)> {
        self.ring.take().map(|completed| (completed.tag, completed.result))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // A run is over when its I/Os are. If the kernel cannot be asked, the ring sees to its memory.
        let _ = self.ring.finish();
    }
}
