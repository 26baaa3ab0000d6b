//! Executes the I/Os of one thread, by single system calls or by an io_uring. The port also extends
//! I/Os to whole blocks, and counts them.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use iosched_system::{Bell, Buffer, How, call};
use iosched_workload::outcome::IoKind;
use rustix::fs::FallocateFlags;
use rustix::io::ReadWriteFlags;

use super::memory::WriteData;
use super::recorder::Recorder;
use super::ring::{Command, Ring};

/// Longest interval at which an idle thread checks whether the run ends.
pub(super) const LOOK_ROUND: Duration = Duration::from_millis(100);
/// Result of an io_uring for an I/O that must be repeated.
const AGAIN: i32 = -rustix::io::Errno::AGAIN.raw_os_error();

/// Operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoOp {
    Read,
    /// A write. If `stable` is true, the data is on the medium when the write completes.
    Write {
        stable: bool,
    },
    Discard,
    /// Zeroing of a range without a transfer of data.
    Zero,
    Sync {
        data_only: bool,
    },
}

impl IoOp {
    /// Returns the name of the operation.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write { .. } => "write",
            Self::Discard => "discard",
            Self::Zero => "zeroing",
            Self::Sync { .. } => "sync",
        }
    }

    const fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write { .. })
    }
}

/// An I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    pub(super) op: IoOp,
    /// Index of the file in the port, and the offset in the file, bytes.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Whether the I/O uses the page cache.
    pub(super) buffered: bool,
    /// Priority of this I/O in the kernel's encoding. If it is 0, the thread's priority applies.
    pub(super) ioprio: u16,
    /// Index of the task in the port's list of tasks.
    pub(super) task: usize,
    /// Tag that is returned at completion.
    pub(super) tag: u64,
}

/// A file that a thread has open.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Whether `file` uses the page cache.
    pub(super) buffered: bool,
    /// The same file, opened in the other mode (direct or buffered), if the workload uses both
    /// modes.
    pub(super) other: Option<File>,
    /// Block size of direct I/O, bytes.
    pub(super) block_bytes: u64,
    pub(super) is_device: bool,
}

/// A failed I/O.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) io: Io,
    pub(super) error: io::Error,
}

/// An I/O in flight.
#[derive(Clone, Copy)]
struct Pending {
    io: Io,
    submitted_ns: u64,
    /// Command for a ring, if a ring can execute the I/O.
    command: Option<Command>,
}

/// Method of executing I/Os.
pub(super) enum Engine {
    /// One at a time, by pread(2) and pwrite(2).
    Calls { read: Buffer, written: Arc<WriteData> },
    /// By an io_uring.
    Ring(Box<Ring>),
}

/// Counters for the notes of a result.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// I/Os that were extended to whole blocks.
    pub(super) part_blocks: u64,
    /// Number of executed discards and zeroings. They removed data from the target.
    pub(super) emptied: u64,
    /// Discards and zeroings that the target does not support.
    pub(super) unsupported: u64,
    /// Number of I/Os with a priority that the engine cannot pass to the kernel.
    pub(super) priorities_ignored: u64,
    /// I/Os past the end of the device, which were moved to another address.
    pub(super) past_end: u64,
}

impl Counts {
    /// Adds the counters of another thread.
    pub(super) fn merge(&mut self, other: &Self) {
        self.part_blocks += other.part_blocks;
        self.emptied += other.emptied;
        self.unsupported += other.unsupported;
        self.priorities_ignored += other.priorities_ignored;
        self.past_end += other.past_end;
    }
}

/// Executes the I/Os of one thread. The module page has the details.
pub(super) struct Port<'a> {
    files: Vec<Opened>,
    engine: Engine,
    bell: &'a Bell,
    pending: Vec<Pending>,
    free: Vec<u32>,
    /// Slots of I/Os that were complete when `submit` returned.
    done: Vec<u32>,
    writes: u64,
    pub(super) counts: Counts,
    pub(super) recorder: Recorder,
    pub(super) failed: Option<Failed>,
    /// Error after which nothing can be submitted.
    broken: Option<io::Error>,
}

impl<'a> Port<'a> {
    /// Creates a port of the calling thread. `first_write` is the number of its first write, which
    /// determines the data.
    pub(super) fn new(
        files: Vec<Opened>,
        engine: Engine,
        bell: &'a Bell,
        recorder: Recorder,
        first_write: u64,
    ) -> Self {
        Self {
            files,
            engine,
            bell,
            pending: Vec::new(),
            free: Vec::new(),
            done: Vec::new(),
            writes: first_write,
            counts: Counts::default(),
            recorder,
            failed: None,
            broken: None,
        }
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, file: usize) -> &Path {
        &self.files[file].path
    }

    /// Returns the results and counters.
    pub(super) fn into_counts(self) -> (Recorder, Counts) {
        (self.recorder, self.counts)
    }

    /// Returns the number of I/Os that are in flight, or complete but not yet taken.
    pub(super) fn under_way(&self) -> usize {
        self.pending.len() - self.free.len()
    }

    /// Starts an I/O. Without a ring, the I/O is complete when this function returns.
    pub(super) fn submit(&mut self, io: &Io, now_ns: u64) {
        let io = self.whole_blocks(io);
        self.recorder.submitted(io.task, now_ns);
        let command = match io.op {
            IoOp::Read => Some(Command::Read),
            IoOp::Write { stable } => {
                self.writes += 1;
                Some(Command::Write { number: self.writes, stable })
            }
            IoOp::Sync { data_only } => Some(Command::Sync { data_only }),
            // Discards and zeroings are blocking system calls with every engine.
            IoOp::Discard | IoOp::Zero => None,
        };
        let slot = self.keep(Pending { io, submitted_ns: now_ns, command });
        let file = file_of(&self.files[io.file], &io);
        if let (Engine::Ring(ring), Some(command)) = (&mut self.engine, command) {
            let how = How { ioprio: io.ioprio, by_worker: false };
            ring.push(file, command, (io.offset, io.bytes as usize), slot, how);
            return;
        }
        self.counts.priorities_ignored += u64::from(io.ioprio != 0);
        let is_device = self.files[io.file].is_device;
        match carry_out(&mut self.engine, file, is_device, &io, self.writes) {
            Err(error) if !io.op.moves_data() && is_unsupported(&error) => self.counts.unsupported += 1,
            Err(error) => self.fail(io, error),
            Ok(()) => self.counts.emptied += u64::from(matches!(io.op, IoOp::Discard | IoOp::Zero)),
        }
        self.done.push(slot);
    }

    /// Submits all queued commands to the kernel. Returns whether the engine is a ring.
    pub(super) fn hand_over(&mut self) -> bool {
        let Engine::Ring(ring) = &mut self.engine else { return false };
        if let Err(error) = ring.submit() {
            self.broken = Some(error);
        }
        true
    }

    /// Waits until an I/O completes or the bell rings, at most for `timeout`. Without a timeout,
    /// waits at most for [`LOOK_ROUND`] if no I/O is in flight.
    pub(super) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        // A timer costs more than the rest of a wait. If I/Os are in flight, their completions end
        // the wait without a timer.
        let timeout = timeout.or((self.under_way() == 0).then_some(LOOK_ROUND));
        match &mut self.engine {
            Engine::Ring(ring) if self.done.is_empty() => ring.wait(timeout),
            Engine::Ring(ring) => ring.submit(),
            Engine::Calls { .. } if self.done.is_empty() => self.bell.wait(timeout.unwrap_or(LOOK_ROUND)),
            Engine::Calls { .. } => Ok(()),
        }
    }

    /// Takes a completed I/O and returns its tag.
    #[inline]
    pub(super) fn take(&mut self, now_ns: u64) -> Option<u64> {
        let slot = match self.done.pop() {
            Some(slot) => slot,
            None => {
                let Engine::Ring(ring) = &mut self.engine else { return None };
                let (mut slot, mut result) = ring.take()?;
                while let (true, Pending { io, command: Some(command), .. }) =
                    (result == AGAIN, self.pending[slot as usize])
                {
                    // The kernel returned EAGAIN because this call must not block, for example if
                    // io.max delayed the bio and then no tag was free. A worker of the kernel,
                    // which may block, repeats the I/O.
                    let file = file_of(&self.files[io.file], &io);
                    let how = How { ioprio: io.ioprio, by_worker: true };
                    ring.push(file, command, (io.offset, io.bytes as usize), slot, how);
                    if let Err(error) = ring.submit() {
                        self.broken = Some(error);
                    }
                    (slot, result) = ring.take()?;
                }
                let io = self.pending[slot as usize].io;
                if let Err(error) = check(result, &self.files[io.file], &io) {
                    self.fail(io, error);
                }
                slot
            }
        };
        let Pending { io, submitted_ns, .. } = self.pending[slot as usize];
        self.free.push(slot);
        let kind = match io.op {
            IoOp::Read => IoKind::Read,
            // The write used the page cache, and nobody waits for the medium.
            IoOp::Write { stable: false } if io.buffered => IoKind::WriteAsync,
            IoOp::Write { .. } => IoKind::WriteSync,
            IoOp::Discard | IoOp::Zero | IoOp::Sync { .. } => IoKind::Other,
        };
        self.recorder.completed(io.task, kind, io.bytes, (submitted_ns, now_ns));
        Some(io.tag)
    }

    fn keep(&mut self, pending: Pending) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.pending[slot as usize] = pending;
                slot
            }
            None => {
                self.pending.push(pending);
                (self.pending.len() - 1) as u32
            }
        }
    }

    #[cold]
    fn fail(&mut self, io: Io, error: io::Error) {
        self.failed.get_or_insert(Failed { io, error });
    }

    /// Extends an I/O to whole blocks if the kernel accepts only whole blocks.
    #[inline]
    fn whole_blocks(&mut self, io: &Io) -> Io {
        let block = self.files[io.file].block_bytes;
        if (io.offset | io.bytes) & (block - 1) == 0 || io.buffered && io.op.moves_data() {
            return *io;
        }
        self.counts.part_blocks += 1;
        let offset = io.offset & !(block - 1);
        Io { offset, bytes: (io.offset + io.bytes).next_multiple_of(block) - offset, ..*io }
    }
}

/// Returns the descriptor for an I/O.
fn file_of<'f>(opened: &'f Opened, io: &Io) -> BorrowedFd<'f> {
    match (&opened.other, io.buffered == opened.buffered) {
        (Some(other), false) => other.as_fd(),
        _ => opened.file.as_fd(),
    }
}

/// Executes an I/O by a system call.
fn carry_out(engine: &mut Engine, file: BorrowedFd<'_>, is_device: bool, io: &Io, number: u64) -> io::Result<()> {
    let length = io.bytes as usize;
    let moved = match (io.op, engine) {
        (IoOp::Read, Engine::Calls { read, .. }) => again(|| rustix::io::pread(file, &mut read[..length], io.offset))?,
        (IoOp::Write { stable: false }, Engine::Calls { written, .. }) => {
            again(|| rustix::io::pwrite(file, written.of(number, length), io.offset))?
        }
        (IoOp::Write { stable: true }, Engine::Calls { written, .. }) => {
            let data = [IoSlice::new(written.of(number, length))];
            again(|| rustix::io::pwritev2(file, &data, io.offset, ReadWriteFlags::DSYNC))?
        }
        // The ring executes these itself.
        (IoOp::Read | IoOp::Write { .. }, Engine::Ring(_)) => 0,
        (IoOp::Sync { data_only: true }, _) => again(|| rustix::fs::fdatasync(file)).map(|()| 0)?,
        (IoOp::Sync { data_only: false }, _) => again(|| rustix::fs::fsync(file)).map(|()| 0)?,
        (IoOp::Discard, _) if is_device => call::discard(file, io.offset, io.bytes).map(|()| 0)?,
        (IoOp::Discard, _) => allocate(file, FallocateFlags::PUNCH_HOLE, io)?,
        (IoOp::Zero, _) => allocate(file, FallocateFlags::ZERO_RANGE, io)?,
    };
    if io.op.moves_data() && moved < length { Err(short(file, is_device, io, moved)) } else { Ok(()) }
}

fn allocate(file: BorrowedFd<'_>, mode: FallocateFlags, io: &Io) -> io::Result<usize> {
    again(|| rustix::fs::fallocate(file, mode | FallocateFlags::KEEP_SIZE, io.offset, io.bytes))?;
    Ok(0)
}

/// Repeats a call that a signal interrupted.
fn again<T>(call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    Ok(rustix::io::retry_on_intr(call)?)
}

/// Checks the result of an io_uring.
fn check(result: i32, opened: &Opened, io: &Io) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    let (moved, length) = (result as usize, io.bytes as usize);
    if io.op.moves_data() && moved < length {
        return Err(short(file_of(opened, io), opened.is_device, io, moved));
    }
    Ok(())
}

/// Returns the reason why an I/O transferred too few bytes. Usually the file or device ends before
/// the end of the I/O.
fn short(file: BorrowedFd<'_>, is_device: bool, io: &Io, moved: usize) -> io::Error {
    let Io { offset, bytes, .. } = io;
    io::Error::other(match rustix::fs::seek(file, rustix::fs::SeekFrom::End(0)) {
        Ok(0) | Err(_) if is_device => "the device is gone, or has no medium".to_owned(),
        Ok(end) if end < offset + bytes => {
            let what = if is_device { "device" } else { "file" };
            format!(
                "the {what} now has {end} bytes, but this I/O ends at byte {}, because another program has made the \
                 {what} smaller",
                offset + bytes
            )
        }
        _ => format!("this I/O transferred only {moved} of {bytes} bytes"),
    })
}

/// Returns whether the target does not support the operation.
fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::NOTTY, rustix::io::Errno::NOSYS];
    unsupported.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn error_of_a_short_io_names_the_cause() {
        let mut file = tempfile::tempfile().unwrap();
        let io = Io { op: IoOp::Read, file: 0, offset: 4096, bytes: 4096, buffered: true, ioprio: 0, task: 0, tag: 0 };
        let message = |file: &File, is_device| short(file.as_fd(), is_device, &io, 0).to_string();
        assert_eq!(message(&file, true), "the device is gone, or has no medium");
        file.write_all(&[0; 5000]).unwrap();
        assert!(message(&file, false).starts_with("the file now has 5000 bytes, but this I/O ends at byte 8192"));
        assert!(message(&file, true).starts_with("the device now has 5000 bytes"));
        file.write_all(&[0; 5000]).unwrap();
        assert_eq!(message(&file, true), "this I/O transferred only 0 of 4096 bytes");
    }
}
