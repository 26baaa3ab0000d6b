//! System calls that the standard library lacks.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Seek, SeekFrom};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iosched_system::{Segment, call};
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Statx, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::backend::Extent;

/// Mode of `fallocate`: the range becomes a hole.
pub(crate) const PUNCH_HOLE: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);
/// Mode of `fallocate`: the range reads as zeroes.
pub(crate) const ZERO_RANGE: FallocateFlags = FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE);

/// Default block size of direct I/O, for file systems that do not report it.
const DIRECT_BLOCK_BYTES: u32 = 4096;

/// Maximum number of segments in one system call. The caller repeats the call for the remaining
/// segments.
const SEGMENTS_MAX: usize = 64;

/// Reads from byte `offset` into `segments`. Returns the number of bytes.
pub(crate) fn read_at(file: &File, segments: &mut [Segment], offset: u64) -> io::Result<usize> {
    let count = segments.len().min(SEGMENTS_MAX);
    let mut segments = segments.iter_mut();
    let mut slices: [_; SEGMENTS_MAX] =
        std::array::from_fn(|_| IoSliceMut::new(segments.next().map_or(&mut [], |segment| &mut segment[..])));
    Ok(rustix::io::preadv(file, &mut slices[..count], offset)?)
}

/// Writes `segments` from byte `offset`. If `fua` is true, writes them to stable storage. Returns
/// the number of bytes.
pub(crate) fn write_at(file: &File, segments: &[Segment], offset: u64, fua: bool) -> io::Result<usize> {
    let flags = if fua { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
    let count = segments.len().min(SEGMENTS_MAX);
    let mut segments = segments.iter();
    let slices: [_; SEGMENTS_MAX] =
        std::array::from_fn(|_| IoSlice::new(segments.next().map_or(&[], |segment| &segment[..])));
    Ok(rustix::io::pwritev2(file, &slices[..count], offset, flags)?)
}

/// Calls `fallocate` with this mode. Returns 0 on success.
pub(crate) fn allocate(file: &File, mode: FallocateFlags, offset: u64, length: u64) -> io::Result<usize> {
    rustix::fs::fallocate(file, mode, offset, length)?;
    Ok(0)
}

/// Returns the data or the hole that begins at `bytes.start`, limited to `bytes`. If the file
/// system does not report holes, the whole range counts as data. Changes the position of the file
/// for reads and writes without an offset.
pub(crate) fn extent(file: &File, bytes: Range<u64>) -> Extent {
    use rustix::fs::{SeekFrom, seek};
    let Range { start, end } = bytes;
    let (until, is_hole) = match seek(file, SeekFrom::Data(start)) {
        Ok(data) if data > start => (data, true),
        // The file has no data after this position.
        Err(Errno::NXIO) => (end, true),
        Ok(_) => (seek(file, SeekFrom::Hole(start)).unwrap_or(end), false),
        Err(_) => (end, false),
    };
    let until = if until > start { until.min(end) } else { end };
    Extent { length: until - start, is_hole }
}

/// Returns whether the file at `path` is in a memory file system.
pub(crate) fn is_in_memory(path: &Path) -> io::Result<bool> {
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let file = File::open(path)?;
    let kind = rustix::fs::fstatfs(&file)?.f_type as u64;
    Ok(file.metadata()?.is_file() && (kind == libc::TMPFS_MAGIC as u64 || kind == RAMFS_MAGIC))
}

/// Returns whether the data of a direct write with FUA is on stable storage when the write
/// completes, even if the kernel completes the write asynchronously. On FUSE, the kernel loses the
/// flag (Linux 6.18), so this function returns true only for known file systems.
pub(crate) fn keeps_direct_writes(file: &File) -> bool {
    const KNOWN: [u64; 4] = [
        libc::EXT4_SUPER_MAGIC as u64,
        libc::XFS_SUPER_MAGIC as u64,
        libc::BTRFS_SUPER_MAGIC as u64,
        libc::F2FS_SUPER_MAGIC as u64,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|about| KNOWN.contains(&(about.f_type as u64)))
}

/// Returns whether a punched hole reads as zeroes. On FUSE, this is not certain: nbdfuse, for
/// example, sends a trim, which may leave the data.
pub(crate) fn has_empty_holes(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| about.f_type as u64 != libc::FUSE_SUPER_MAGIC as u64)
}

/// Locks the file against other programs that use the same kind of lock.
pub(crate) fn lock_exclusively(file: &File) -> io::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "another server or program has locked this file"))
        }
        locked => Ok(locked?),
    }
}

/// Properties of an open file or device.
pub(crate) struct About {
    pub(crate) bytes: u64,
    /// Smallest unit of direct I/O, bytes.
    pub(crate) direct_block_bytes: u32,
    pub(crate) rotational: bool,
}

/// Returns the current size of a file or device.
pub(crate) fn size_bytes(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Returns the properties of `file`.
pub(crate) fn describe(file: &File, is_device: bool) -> io::Result<About> {
    let bytes = size_bytes(file)?;
    let metadata = file.metadata()?;
    let direct_block_bytes = if is_device {
        rustix::fs::ioctl_blksszget(file)?
    } else {
        direct_alignment(file).unwrap_or(DIRECT_BLOCK_BYTES)
    };
    let device = if is_device { metadata.rdev() } else { device_of_file_system(file, metadata.dev()) };
    let rotational = is_rotational(libc::major(device), libc::minor(device));
    Ok(About { bytes, direct_block_bytes: direct_block_bytes.max(512), rotational })
}

/// Returns whether a file or device of `bytes` bytes can create zeroes without writing them, if the
/// zeroes may become a hole. Changes nothing.
pub(crate) fn zeroes_quickly(file: &File, is_device: bool, bytes: u64) -> bool {
    if !is_device {
        // The range after the end has no data, so the call changes nothing.
        return allocate(file, PUNCH_HOLE, bytes, 1).is_ok();
    }
    let Ok(device) = file.metadata().map(|about| about.rdev()) else { return false };
    let most = of_queue(libc::major(device), libc::minor(device), "write_zeroes_max_bytes");
    most.is_some_and(|value| value.trim().parse::<u64>().is_ok_and(|bytes| bytes > 0))
}

/// Reads an attribute of a device's queue.
fn of_queue(major: u32, minor: u32, attribute: &str) -> Option<String> {
    let device = format!("/sys/dev/block/{major}:{minor}");
    // A partition uses the queue of its disk.
    let read = |below: &str| std::fs::read_to_string(format!("{device}/{below}queue/{attribute}")).ok();
    read("").or_else(|| read("../"))
}

/// Calls statx for the file. Returns `None` if the file system does not report the fields of
/// `mask`.
fn statx(file: &File, mask: StatxFlags) -> Option<Statx> {
    let about = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask).ok()?;
    (about.stx_mask & mask.bits() != 0).then_some(about)
}

/// Returns the alignment of direct I/O that the file system reports.
fn direct_alignment(file: &File) -> Option<u32> {
    let about = statx(file, StatxFlags::DIOALIGN)?;
    Some(about.stx_dio_offset_align).filter(|&bytes| bytes > 0)
}

/// Returns the device of a file system. For a file system with an anonymous device number
/// (`device`), such as btrfs, returns the mounted device.
fn device_of_file_system(file: &File, device: u64) -> u64 {
    if libc::major(device) != 0 {
        return device;
    }
    let mounted = || {
        let mount = statx(file, StatxFlags::MNT_ID)?.stx_mnt_id.to_string();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let line = mounts.lines().find(|line| line.split(' ').next() == Some(&mount))?;
        let source = line.split_once(" - ")?.1.split(' ').nth(1)?;
        let metadata = std::fs::metadata(source).ok()?;
        metadata.file_type().is_block_device().then(|| metadata.rdev())
    };
    mounted().unwrap_or(device)
}

/// Returns whether the kernel reports the device as rotational. Returns true if the kernel reports
/// nothing.
fn is_rotational(major: u32, minor: u32) -> bool {
    of_queue(major, minor, "rotational").is_none_or(|value| value.trim() != "0")
}

/// Makes sleeps of the calling thread precise. By default a sleep can end 50 µs late.
pub(crate) fn sleep_exactly() {
    // If this call fails, timers are late.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Gives the calling thread a high priority, because clients wait for this thread. The kernel's own
/// threads for disks also have a high priority.
pub(crate) fn run_before_others() {
    const NICE: i32 = -15;
    // Without CAP_SYS_NICE, the priority stays unchanged.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Prevents a deadlock: memory allocations of the calling thread no longer wait for writeback,
/// which may itself wait for this thread. Needs CAP_SYS_RESOURCE.
pub(crate) fn serve_writeback() {
    // Without this capability, a machine without free memory may deadlock. The server continues
    // nevertheless.
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// Returns a name for the user and the process number of the peer of a unix socket.
pub(crate) fn unix_peer(socket: BorrowedFd<'_>) -> (String, u32) {
    match call::unix_peer(socket) {
        Some(pid) => (format!("{}[{pid}]", process_name(pid)), pid),
        None => ("somebody".to_owned(), 0),
    }
}

/// Returns the name of a process; empty if it has ended. A process can choose any name, so
/// unprintable characters are replaced.
pub(crate) fn process_name(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    printable(String::from_utf8_lossy(&name).trim_end_matches('\n'))
}

/// Returns whether a character may be shown. A printable character does not end a line, move a
/// terminal's cursor, or change the direction of the surrounding text.
#[must_use]
pub fn is_printable(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}') && !turns
}

/// Returns the text on one line, with question marks instead of characters that may not be shown.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { '?' }).collect()
}

/// Returns whether the peer of a socket has disconnected. On a network connection, this function
/// notices a lost peer only after a failed send.
pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut about = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    let polled = poll(&mut about, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_err() || about[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Limits the send buffer of a socket to `bytes` if it is larger. Does the same with the receive
/// buffer of a TCP socket.
pub(crate) fn bound_buffers(socket: BorrowedFd<'_>, bytes: usize, is_tcp: bool) {
    use rustix::net::sockopt::{
        set_socket_recv_buffer_size, set_socket_send_buffer_size, socket_recv_buffer_size, socket_send_buffer_size,
    };
    // The kernel doubles the value for its own overhead. If the kernel refuses the value, the
    // buffer does not change.
    if socket_send_buffer_size(socket).is_ok_and(|now| now > bytes) || is_tcp {
        let _ = set_socket_send_buffer_size(socket, bytes / 2);
    }
    if socket_recv_buffer_size(socket).is_ok_and(|now| now > bytes) || is_tcp {
        let _ = set_socket_recv_buffer_size(socket, bytes / 2);
    }
}

/// Enlarges the send buffer of a socket to `bytes` if it is smaller and the system allows this
/// size.
pub(crate) fn widen_send_buffer(socket: BorrowedFd<'_>, bytes: usize) {
    use rustix::net::sockopt::{
        set_socket_send_buffer_size, set_socket_send_buffer_size_force, socket_send_buffer_size,
    };
    // The kernel doubles the value. Only an administrator may exceed `net.core.wmem_max`.
    if socket_send_buffer_size(socket).is_ok_and(|now| now < bytes)
        && set_socket_send_buffer_size_force(socket, bytes / 2).is_err()
    {
        let _ = set_socket_send_buffer_size(socket, bytes / 2);
    }
}

/// Raises the soft limit of open files to the hard limit. Returns the limit.
pub(crate) fn allow_open_files() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // If this fails, the previous limit stays.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current
}

/// Returns the address of the peer of a TCP connection. Also disables Nagle's algorithm, which
/// delays small packets.
pub(crate) fn tcp_peer(socket: BorrowedFd<'_>) -> String {
    let Ok(stream) = socket.try_clone_to_owned().map(TcpStream::from) else { return "somebody".to_owned() };
    // If this call fails, the connection is only slower.
    let _ = stream.set_nodelay(true);
    stream.peer_addr().map_or_else(|_| "somebody".to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn control_characters_in_process_names_are_replaced() {
        let named = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"a\nb\x1b[2J\xff").unwrap();
            process_name(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs())
        });
        assert_eq!(named.join().unwrap(), "a?b?[2J\u{fffd}");
        assert_eq!(process_name(u32::MAX), "", "no such process");
    }

    #[test]
    fn call_is_limited_to_the_maximum_number_of_segments() {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = Pool::default().buffer(2000 * 512);
        buffer.fill(7);
        let mut segments: Vec<Segment> = (0..2000).map(|number| buffer.lend(number * 512, 512)).collect();
        assert_eq!(write_at(&file, &segments, 0, false).unwrap(), SEGMENTS_MAX * 512);
        assert_eq!(read_at(&file, &mut segments, 0).unwrap(), SEGMENTS_MAX * 512);
    }
}
