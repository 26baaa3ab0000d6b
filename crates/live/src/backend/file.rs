//! A back end that is a file or a block device.
//!
//! Reads and writes bypass the page cache if the file system supports direct I/O. In a file system
//! in memory (tmpfs), system calls never wait for a device. The disk's own thread therefore makes
//! these calls. io_uring would pass them to other threads.

use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use iosched::{Op, Time};
use iosched_system::map::FileMap;
use iosched_system::{Call, Memory, Pool, Segment, Shared};

use super::contract::{Backend, BackendCard, Completion, Extent};
use crate::Errno;
use crate::disk::{Command, Measure};
use crate::ring::Submissions;
use crate::sys::{self, PUNCH_HOLE, ZERO_RANGE};

/// Maximum number of zero bytes in one write, if the file system cannot zero a range itself.
const ZEROES_BYTES: usize = 1 << 20;

/// Maximum number of retries to lock a file that another process holds.
const LOCK_TRIES: u32 = 100;
/// Pause before a retry.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Method of reading and writing the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum IoMethod {
    /// Through io_uring.
    Ring,
    /// By system calls on the disk's own thread. These calls never wait.
    Call,
}

/// Method of zeroing a range. In order of preference: punch a hole, if the range may become a hole;
/// let the file system zero the range; write zeroes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Zeroing {
    PunchHole,
    ZeroRange,
    Write,
}

/// A command in flight.
struct UnderWay {
    command: Command,
    /// Data that is not transferred yet. During a call, the ring holds these segments.
    segments: Vec<Segment>,
    /// Method that was tried last, for a write of zeroes or a trim.
    zeroing: Zeroing,
    /// Number of bytes that are complete. A call may transfer fewer bytes than requested; further
    /// calls transfer the rest.
    done: u64,
}

impl UnderWay {
    /// Returns whether the result of the system call is a number of transferred bytes.
    fn is_by_bytes(&self) -> bool {
        match self.command.op {
            Op::Read | Op::Write => true,
            Op::WriteZeroes => self.zeroing == Zeroing::Write,
            Op::Flush | Op::Discard => false,
        }
    }
}

/// A back end that is a file or a block device.
pub struct File {
    card: BackendCard,
    path: PathBuf,
    file: Arc<std::fs::File>,
    method: IoMethod,
    /// The mapped file, from which the kernel can send data without a copy.
    map: Option<FileMap>,
    /// Whether holes read as zeroes.
    has_empty_holes: bool,
    /// Whether the file system may support punching holes. This is true until the file system
    /// refuses a call as not supported. `zeroes_ranges` is the same for calls to zero a range.
    punches_holes: bool,
    zeroes_ranges: bool,
    under_way: Vec<UnderWay>,
    zeroes: Shared,
}

/// Reason why a file cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system does not open the path.
    #[error("{path}: {}", explained(error))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The path is neither a file nor a block device.
    #[error("{path}: this is neither a file nor a block device")]
    Kind {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is smaller than one block.
    #[error(
        "{path}: the file has only {bytes} bytes, which is less than one block of {block_bytes} bytes; make the \
         file larger, for example with truncate -s 1G"
    )]
    Empty {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file, bytes.
        bytes: u64,
        /// Size of one block, bytes.
        block_bytes: u32,
    },
}

/// Checks that the open file is the file that was examined before. A user with write permission for
/// the directory could have replaced the file by a link to a disk.
fn check_same(file: &fs::File, looked_at: &Metadata) -> io::Result<()> {
    let open = file.metadata()?;
    let is_same = (open.dev(), open.ino()) == (looked_at.dev(), looked_at.ino());
    is_same.then_some(()).ok_or_else(|| io::Error::other("another file replaced this file while iosched opened it"))
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "{error}: the server must open this file for reading and writing, even if all exports are read-only"
            )
        }
        _ => error.to_string(),
    }
}

/// Locks a file exclusively. Retries, because the kernel keeps the lock of a killed server until
/// the kernel has cleaned up the server's io_uring.
fn lock(file: &std::fs::File) -> io::Result<()> {
    let mut tries = LOCK_TRIES;
    loop {
        match sys::lock_exclusively(file) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries > 0 => tries -= 1,
            locked => return locked,
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

impl File {
    /// Default number of commands in flight.
    const DEPTH: u32 = 32;

    /// Opens the file or block device at `path`. A device is opened exclusively unless `shared` is
    /// true. A file is always locked. The lock affects only programs that also lock the file.
    ///
    /// # Errors
    /// The path cannot be opened for reading and writing, another process has locked it, or it is
    /// neither a file nor a block device.
    pub fn open(path: &Path, shared: bool) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Io { path: path.to_owned(), error };
        let metadata = fs::metadata(path).map_err(failed)?;
        let is_device = metadata.file_type().is_block_device();
        if !is_device && !metadata.is_file() {
            return Err(OpenError::Kind { path: path.to_owned() });
        }
        // The kernel refuses an exclusive open of a device that is mounted or used by another
        // device.
        let exclusive = if is_device && !shared { libc::O_EXCL } else { 0 };
        let open = |flags| OpenOptions::new().read(true).write(true).custom_flags(exclusive | flags).open(path);
        let in_memory = sys::is_in_memory(path).map_err(failed)?;
        let (file, direct) = match open(libc::O_DIRECT) {
            _ if in_memory => (open(0).map_err(failed)?, false),
            Ok(file) => (file, true),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => (open(0).map_err(failed)?, false),
            Err(error) => return Err(failed(error)),
        };
        check_same(&file, &metadata).map_err(failed)?;
        if !is_device {
            lock(&file).map_err(failed)?;
        }
        let about = sys::describe(&file, is_device).map_err(failed)?;
        let block_bytes = if direct { about.direct_block_bytes } else { 512 };
        let bytes = about.bytes;
        let capacity_bytes = in_blocks(bytes, block_bytes);
        if capacity_bytes == 0 {
            return Err(OpenError::Empty { path: path.to_owned(), bytes, block_bytes });
        }
        let has_empty_holes = is_device || sys::has_empty_holes(&file);
        let card = BackendCard {
            about: format!("{}{}", path.display(), if direct { "" } else { " (through the page cache)" }),
            device: iosched_disk::Card {
                capacity_sectors: capacity_bytes / iosched::SECTOR_BYTES,
                depth: Self::DEPTH,
                hw_queues: 1,
                rotational: about.rotational && !in_memory,
                write_cache: true,
                // Without FUA, the queue sends a flush after the write.
                fua: is_device || !direct || sys::keeps_direct_writes(&file),
                max_hw_sectors_kb: 1024,
            },
            block_bytes,
            depth_max: 4096,
            trim_zeroes: false,
            fast_zeroes: has_empty_holes && sys::zeroes_quickly(&file, is_device, bytes),
        };
        let file = Arc::new(file);
        let method = if in_memory { IoMethod::Call } else { IoMethod::Ring };
        // Without a map, reads copy the data.
        let map = if in_memory { FileMap::new(&file, capacity_bytes).ok() } else { None };
        let mut zeroes = Pool::default().buffer(ZEROES_BYTES);
        zeroes.fill(0);
        let zeroes = Arc::new(Arc::new(zeroes));
        let path = path.to_owned();
        let (punches_holes, zeroes_ranges, under_way) = (true, true, Vec::new());
        Ok(Self { card, path, file, method, map, has_empty_holes, punches_holes, zeroes_ranges, under_way, zeroes })
    }

    /// Returns the method for a write of zeroes or a trim.
    fn zeroing(&self, command: &Command) -> Zeroing {
        if command.op == Op::Discard || (self.punches_holes && self.has_empty_holes && !command.no_hole) {
            Zeroing::PunchHole
        } else if self.zeroes_ranges {
            Zeroing::ZeroRange
        } else {
            Zeroing::Write
        }
    }

    /// Starts or continues the command `id`.
    fn go_on(&mut self, id: u32, ring: &mut Submissions<'_>, done: &mut Vec<Completion>) {
        self.under_way[id as usize].zeroing = self.zeroing(&self.under_way[id as usize].command);
        if self.method == IoMethod::Call {
            let result = self.call(id);
            self.forget(id);
            done.push((id, result));
            return;
        }
        let UnderWay { command, segments, zeroing, done: so_far } = &mut self.under_way[id as usize];
        let (offset, left) = (command.offset + *so_far, command.length - *so_far);
        let call = match command.op {
            Op::Read => Call::Read { segments: std::mem::take(segments), offset },
            Op::Write => Call::Write { segments: std::mem::take(segments), offset, stable: command.fua },
            Op::Flush => Call::Sync { data_only: true },
            Op::Discard | Op::WriteZeroes => match zeroing {
                Zeroing::PunchHole => Call::Allocate { mode: PUNCH_HOLE.bits() as i32, offset, length: left },
                Zeroing::ZeroRange => Call::Allocate { mode: ZERO_RANGE.bits() as i32, offset, length: left },
                Zeroing::Write => {
                    let (bytes, place) = (Arc::clone(&self.zeroes), 0..left.min(ZEROES_BYTES as u64) as usize);
                    Call::WriteShared { bytes, place, offset, stable: false }
                }
            },
        };
        ring.push(self.file.as_fd(), call, id);
    }

    /// Makes a read return the mapped file's own memory, so that the kernel sends the data without
    /// a copy. Returns whether this is possible for all the data.
    fn lies_in_place(&mut self, id: u32) -> bool {
        let UnderWay { command, segments, .. } = &mut self.under_way[id as usize];
        let Some(map) = self.map.as_ref().filter(|_| command.op == Op::Read) else { return false };
        let mut at = command.offset as usize;
        segments.iter_mut().all(|segment| {
            let place = at..at + segment.len();
            at = place.end;
            segment.stands_for(|| map.view(place))
        })
    }

    /// Executes the command with system calls.
    fn call(&mut self, id: u32) -> Result<(), Errno> {
        if self.lies_in_place(id) {
            return Ok(());
        }
        loop {
            self.under_way[id as usize].zeroing = self.zeroing(&self.under_way[id as usize].command);
            let UnderWay { command, segments, zeroing, done } = &mut self.under_way[id as usize];
            let (offset, left) = (command.offset + *done, command.length - *done);
            let result = match command.op {
                Op::Read => sys::read_at(&self.file, segments, offset),
                Op::Write => sys::write_at(&self.file, segments, offset, command.fua),
                Op::Flush => self.file.sync_data().map(|()| 0),
                Op::Discard | Op::WriteZeroes => match zeroing {
                    Zeroing::PunchHole => sys::allocate(&self.file, PUNCH_HOLE, offset, left),
                    Zeroing::ZeroRange => sys::allocate(&self.file, ZERO_RANGE, offset, left),
                    Zeroing::Write => {
                        let bytes = left.min(ZEROES_BYTES as u64) as usize;
                        std::os::unix::fs::FileExt::write_at(&*self.file, &self.zeroes[..bytes], offset)
                    }
                },
            };
            let result = result.map_or_else(|error| -error.raw_os_error().unwrap_or(libc::EIO), |bytes| bytes as i32);
            if let Some(finished) = self.progress(id, result) {
                return finished;
            }
        }
    }

    /// Processes the result of a system call. Returns the result of the command, or `None` if the
    /// command must continue.
    fn progress(&mut self, id: u32, result: i32) -> Option<Result<(), Errno>> {
        let slot = &mut self.under_way[id as usize];
        let op = slot.command.op;
        if result < 0 {
            return match -result {
                libc::EINTR | libc::EAGAIN => None,
                // A trim is only a hint, so a trim without support succeeds.
                libc::EOPNOTSUPP | libc::ENOSYS if op == Op::Discard => Some(Ok(())),
                libc::EOPNOTSUPP | libc::ENOSYS if op == Op::WriteZeroes && slot.zeroing != Zeroing::Write => {
                    match slot.zeroing {
                        Zeroing::PunchHole => self.punches_holes = false,
                        _ => self.zeroes_ranges = false,
                    }
                    None
                }
                errno => Some(Err(Errno(errno))),
            };
        }
        if !slot.is_by_bytes() {
            return Some(Ok(()));
        }
        let bytes = result as u64;
        slot.done += bytes;
        if slot.done >= slot.command.length {
            return Some(Ok(()));
        }
        if bytes == 0 {
            // Another process has made the file shorter.
            return Some(Err(Errno::EIO));
        }
        skip(&mut slot.segments, bytes as usize);
        None
    }

    fn forget(&mut self, id: u32) {
        self.under_way[id as usize].segments.clear();
    }
}

/// Rounds down to whole blocks.
fn in_blocks(bytes: u64, block_bytes: u32) -> u64 {
    bytes / u64::from(block_bytes) * u64::from(block_bytes)
}

/// Removes the first `bytes` from `segments`.
fn skip(segments: &mut Vec<Segment>, mut bytes: usize) {
    let written = segments.iter().take_while(|segment| {
        let fits = segment.len() <= bytes;
        if fits {
            bytes -= segment.len();
        }
        fits
    });
    let written = written.count();
    segments.drain(..written);
    if let Some(first) = segments.first_mut() {
        first.skip(bytes);
    }
}

impl Backend for File {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        _now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        let id = command.id;
        while self.under_way.len() <= id as usize {
            self.under_way.push(UnderWay { command: *command, segments: Vec::new(), zeroing: Zeroing::Write, done: 0 });
        }
        let slot = &mut self.under_way[id as usize];
        (slot.command, slot.done) = (*command, 0);
        slot.segments.append(segments);
        self.go_on(id, ring, done);
    }

    fn extent(&self, bytes: Range<u64>) -> Extent {
        sys::extent(&self.file, bytes)
    }

    fn measure(&self) -> Option<Measure> {
        let (file, block_bytes) = (Arc::clone(&self.file), self.card.block_bytes);
        Some(Box::new(move || Ok(in_blocks(sys::size_bytes(&file)?, block_bytes))))
    }

    fn gone(&self) -> Option<PathBuf> {
        let ours = self.file.metadata().ok()?;
        let is_ours =
            fs::metadata(&self.path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino()));
        (!is_ours).then(|| self.path.clone())
    }

    fn completed(
        &mut self,
        _now: Time,
        id: u32,
        result: i32,
        memory: Memory,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        if let Memory::Segments(segments) = memory {
            self.under_way[id as usize].segments = segments;
        }
        match self.progress(id, result) {
            Some(result) => {
                self.forget(id);
                done.push((id, result));
            }
            None => self.go_on(id, ring, done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_exchanged_during_open_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let [image, other] = ["image", "other"].map(|name| here.path().join(name));
        for path in [&image, &other] {
            fs::write(path, [0; 4096]).unwrap();
        }
        let looked_at = fs::metadata(&image).unwrap();
        check_same(&fs::File::open(&image).unwrap(), &looked_at).unwrap();
        fs::rename(&other, &image).unwrap();
        assert!(check_same(&fs::File::open(&image).unwrap(), &looked_at).is_err());
    }
}
