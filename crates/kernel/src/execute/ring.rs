//! The io_uring of one thread. It owns the memory that reads go to, and lets go of nothing before the kernel is done with it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::memory::{ALIGN_BYTES, Memory, WriteData};

/// Entries of the submission queue at most; more are submitted in several goes.
const ENTRIES_MAX: u32 = 4096;
/// Memory for reads at most, bytes; I/Os beyond share it. What is read is looked at by nobody.
const READ_BYTES_MAX: usize = 64 << 20;
/// Marks the completion of the bell.
const BELL: u64 = u64::MAX;

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
    ring: IoUring,
    read: Memory,
    stride: usize,
    slots: usize,
    written: Arc<WriteData>,
    bell: RawFd,
    bell_armed: bool,
    under_way: usize,
}

impl Ring {
    /// A ring of the calling thread for `depth` I/Os at once, of up to `io_bytes` each. A number written to the eventfd `bell`, which
    /// outlives the ring, ends a wait.
    pub(super) fn new(
        depth: usize,
        io_bytes: usize,
        written: Arc<WriteData>,
        bell: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        let entries = u32::try_from(depth + 1).unwrap_or(ENTRIES_MAX).next_power_of_two().clamp(8, ENTRIES_MAX);
        // What the kernel has to do for completions it does when this thread waits for them; older kernels cannot.
        let quick = IoUring::builder().setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun().build(entries);
        let ring = quick.or_else(|_| IoUring::new(entries))?;
        let stride = io_bytes.next_multiple_of(ALIGN_BYTES).max(ALIGN_BYTES);
        let slots = depth.clamp(1, (READ_BYTES_MAX / stride).max(1));
        let read = Memory::new(slots * stride);
        let bell = bell.as_raw_fd();
        Ok(Self { ring, read, stride, slots, written, bell, bell_armed: false, under_way: 0 })
    }

    /// Adds a command on `bytes` of `file`, which stays open until its completion. It comes with `slot`.
    pub(super) fn push(
        &mut self,
        file: BorrowedFd<'_>,
        command: Command,
        (offset, bytes): (u64, usize),
        slot: u32,
        ioprio: u16,
    ) {
        let file = types::Fd(file.as_raw_fd());
        let entry = match command {
            Command::Read => {
                let start = (slot as usize % self.slots) * self.stride;
                let room = &mut self.read.as_mut_slice()[start..start + bytes];
                opcode::Read::new(file, room.as_mut_ptr(), bytes as u32).offset(offset).ioprio(ioprio).build()
            }
            Command::Write { number, stable } => {
                let data = self.written.of(number, bytes);
                let flags = if stable { libc::RWF_DSYNC } else { 0 };
                let write = opcode::Write::new(file, data.as_ptr(), bytes as u32).offset(offset);
                write.ioprio(ioprio).rw_flags(flags).build()
            }
            Command::Sync { data_only } => {
                let flags = if data_only { types::FsyncFlags::DATASYNC } else { types::FsyncFlags::empty() };
                opcode::Fsync::new(file).flags(flags).build()
            }
        };
        self.under_way += 1;
        self.push_entry(&entry.user_data(slot.into()));
    }

    fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: what an entry points to is inside of `read` or `written`, as slices have checked, and both live until no command is
        // under way: see `drop`. Nobody looks at `read`, and nobody changes `written`.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // The queue is full: the kernel takes what is in it. Whatever it says, it is asked again.
            let _ = self.ring.submit();
        }
    }

    /// Hands over what was added.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) => return Ok(()),
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // The kernel has no room until completions were taken: what is left goes with the wait for them.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a completion or the bell, at most for `timeout` if there is one.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.ring.completion().is_empty() {
            return Ok(());
        }
        if !self.bell_armed {
            self.bell_armed = true;
            let poll = opcode::PollAdd::new(types::Fd(self.bell), libc::POLLIN as u32);
            self.push_entry(&poll.build().user_data(BELL));
        }
        let submitter = self.ring.submitter();
        let waited = match timeout {
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timespec = types::Timespec::from(timeout);
                submitter.submit_with_args(1, &types::SubmitArgs::new().timespec(&timespec))
            }
        };
        match waited {
            Err(error)
                if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Takes a completion: its command's slot, and what the system call would return, negative an errno.
    pub(super) fn take(&mut self) -> Option<(u32, i32)> {
        loop {
            let entry = self.ring.completion().next()?;
            if entry.user_data() == BELL {
                self.bell_armed = false;
                continue;
            }
            self.under_way -= 1;
            return Some((entry.user_data() as u32, entry.result()));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel may write to memory of this ring as long as a command is under way.
        while self.under_way > 0 {
            let waited = self.wait(None);
            while self.take().is_some() {}
            if waited.is_err() {
                // It cannot be asked: it keeps the memory.
                std::mem::forget(std::mem::replace(&mut self.read, Memory::new(0)));
                std::mem::forget(Arc::clone(&self.written));
                return;
            }
        }
    }
}
