//! Calls to the system that the standard library does not have.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::buffer::Segment;

/// `fallocate`: the range becomes a hole.
pub(crate) const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
/// `fallocate`: the range reads as zeroes.
pub(crate) const ZERO_RANGE: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;

/// Block size where a file system does not tell what direct I/O needs.
const DIRECT_BLOCK_BYTES: u32 = 4096;

/// Segments in one system call.
const SEGMENTS_MAX: usize = libc::UIO_MAXIOV as usize;

fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// What the first segments are to a system call, whose layout they have, and how many it takes.
pub(crate) fn io_vectors(segments: &[Segment]) -> (*const libc::iovec, u32) {
    const { assert!(size_of::<Segment>() == size_of::<libc::iovec>()) };
    (segments.as_ptr().cast(), segments.len().min(SEGMENTS_MAX) as u32)
}

/// Reads from byte `offset` on into `segments`; how many bytes.
pub(crate) fn read_at(file: &File, segments: &[Segment], offset: u64) -> io::Result<usize> {
    let (vectors, count) = io_vectors(segments);
    // SAFETY: segments point to as many writable bytes as they say.
    checked(unsafe { libc::preadv(file.as_raw_fd(), vectors, count as i32, offset as libc::off_t) })
}

/// Writes `segments` from byte `offset` on, to stable storage if `fua`; how many bytes.
pub(crate) fn write_at(file: &File, segments: &[Segment], offset: u64, fua: bool) -> io::Result<usize> {
    let flags = if fua { libc::RWF_DSYNC } else { 0 };
    let (vectors, count) = io_vectors(segments);
    // SAFETY: segments point to as many bytes as they say.
    checked(unsafe { libc::pwritev2(file.as_raw_fd(), vectors, count as i32, offset as libc::off_t, flags) })
}

/// `fallocate` with that mode; nothing is counted.
pub(crate) fn allocate(file: &File, mode: i32, offset: u64, length: u64) -> io::Result<usize> {
    // SAFETY: it takes no pointer.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, length as libc::off_t) };
    checked(result as isize)
}

/// Whether what is at `path` is in memory anyway.
pub(crate) fn is_in_memory(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    // SAFETY: all zeroes is a value of the type.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: it fills the value it is given.
    checked(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } as isize)?;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let kind = about.f_type as u64;
    Ok(file.metadata()?.is_file() && (kind == libc::TMPFS_MAGIC as u64 || kind == RAMFS_MAGIC))
}

/// Nobody else who asks like this gets the file.
pub(crate) fn lock_exclusively(file: &File) -> io::Result<()> {
    // SAFETY: it takes no pointer.
    let locked = checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } as isize);
    match locked {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is served already, or locked by another program"))
        }
        locked => locked.map(drop),
    }
}

/// What an open file or device is.
pub(crate) struct About {
    pub(crate) bytes: u64,
    /// What direct I/O reads and writes at least.
    pub(crate) direct_block_bytes: u32,
    pub(crate) rotational: bool,
}

/// Finds out what `file` is.
pub(crate) fn describe(mut file: &File, is_device: bool) -> io::Result<About> {
    let bytes = file.seek(SeekFrom::End(0))?;
    let metadata = file.metadata()?;
    let direct_block_bytes = if is_device {
        let mut block_bytes: libc::c_int = 0;
        // SAFETY: it writes one int.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &raw mut block_bytes) } as isize)?;
        u32::try_from(block_bytes).unwrap_or(DIRECT_BLOCK_BYTES)
    } else {
        direct_alignment(file).unwrap_or(DIRECT_BLOCK_BYTES)
    };
    let device = if is_device { metadata.rdev() } else { device_of_file_system(file, metadata.dev()) };
    let rotational = is_rotational(libc::major(device), libc::minor(device));
    Ok(About { bytes, direct_block_bytes: direct_block_bytes.max(512), rotational })
}

/// Whether zeroes that may become a hole are made without writing them, in a file or device of so many bytes. Nothing
/// is changed.
pub(crate) fn zeroes_quickly(file: &File, is_device: bool, bytes: u64) -> bool {
    if !is_device {
        // Behind the end there is nothing that could become a hole.
        return allocate(file, PUNCH_HOLE, bytes, 1).is_ok();
    }
    let Ok(device) = file.metadata().map(|about| about.rdev()) else { return false };
    let most = of_queue(libc::major(device), libc::minor(device), "write_zeroes_max_bytes");
    most.is_some_and(|value| value.trim().parse::<u64>().is_ok_and(|bytes| bytes > 0))
}

/// An attribute of a device's queue.
fn of_queue(major: u32, minor: u32, attribute: &str) -> Option<String> {
    let device = format!("/sys/dev/block/{major}:{minor}");
    // A partition's queue is its disk's.
    let read = |below: &str| std::fs::read_to_string(format!("{device}/{below}queue/{attribute}")).ok();
    read("").or_else(|| read("../"))
}

/// What the file system says of the file, if it says what `mask` asks for.
fn statx(file: &File, mask: u32) -> Option<libc::statx> {
    // SAFETY: all zeroes is a value of the type.
    let mut about: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string and the value is filled.
    let result = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut about) };
    (result == 0 && about.stx_mask & mask != 0).then_some(about)
}

/// What the file system says that direct I/O needs.
fn direct_alignment(file: &File) -> Option<u32> {
    let about = statx(file, libc::STATX_DIOALIGN)?;
    Some(about.stx_dio_offset_align).filter(|&bytes| bytes > 0)
}

/// The device that a file system is on. Some have a number of their own (`device`, as btrfs): it is then what was mounted.
fn device_of_file_system(file: &File, device: u64) -> u64 {
    if libc::major(device) != 0 {
        return device;
    }
    let mounted = || {
        let mount = statx(file, libc::STATX_MNT_ID)?.stx_mnt_id.to_string();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let line = mounts.lines().find(|line| line.split(' ').next() == Some(&mount))?;
        let source = line.split_once(" - ")?.1.split(' ').nth(1)?;
        let metadata = std::fs::metadata(source).ok()?;
        metadata.file_type().is_block_device().then(|| metadata.rdev())
    };
    mounted().unwrap_or(device)
}

/// What the kernel says of the device; a disk if it says nothing.
fn is_rotational(major: u32, minor: u32) -> bool {
    of_queue(major, minor, "rotational").is_none_or(|value| value.trim() != "0")
}

/// The calling thread's sleeps end when asked, not 50 µs later.
pub(crate) fn sleep_exactly() {
    // SAFETY: it takes no pointer. Without it timers are late, and that is all.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}

/// The calling thread runs as soon as it has something to do, as the kernel's own threads for disks do: clients wait for it.
pub(crate) fn run_before_others() {
    const NICE: libc::c_int = -15;
    // SAFETY: it takes no pointer. Without CAP_SYS_NICE it has its turn like others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}

/// What the calling thread allocates never waits for dirty memory to be written: it may be the one that others wait for to write it. Needs
/// CAP_SYS_RESOURCE.
pub(crate) fn serve_writeback() {
    // Linux' include/uapi/linux/prctl.h.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: it takes no pointer. Without it a machine that is out of memory may wait for itself, which is no worse than not to serve.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1_usize, 0_usize, 0_usize, 0_usize) };
}

/// Who is at the other end of a unix socket: a name for people, and the process.
pub(crate) fn unix_peer(socket: BorrowedFd<'_>) -> (String, u32) {
    // SAFETY: all zeroes is a value of the type.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, value) = (socket.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: the value is as long as `length` says.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, value, &raw mut length) };
    let pid = u32::try_from(peer.pid).unwrap_or(0);
    if result != 0 || pid == 0 {
        return ("somebody".to_owned(), 0);
    }
    (format!("{}[{pid}]", process_name(pid)), pid)
}

/// How a process calls itself; empty if it is gone. It may call itself anything, so nothing in it can pass for the
/// end of a line or move a terminal's cursor.
pub(crate) fn process_name(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    printable(String::from_utf8_lossy(&name).trim_end_matches('\n'))
}

/// Text of others without what moves a terminal's cursor or ends a line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Whether nobody is at the other end of a socket any more. Over the network that is seen only once something was
/// sent in vain.
pub(crate) fn has_hung_up(socket: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut about = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    let polled = poll(&mut about, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_err() || about[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// What the kernel keeps for a socket to send, and of a TCP socket what it has received, is `bytes` at most from now
/// on, if it was more.
pub(crate) fn bound_buffers(socket: BorrowedFd<'_>, bytes: usize, is_tcp: bool) {
    use rustix::net::sockopt::{
        set_socket_recv_buffer_size, set_socket_send_buffer_size, socket_recv_buffer_size, socket_send_buffer_size,
    };
    // The kernel doubles what it is told, for its own. What it does not allow it keeps as it was.
    if socket_send_buffer_size(socket).is_ok_and(|now| now > bytes) || is_tcp {
        let _ = set_socket_send_buffer_size(socket, bytes / 2);
    }
    if socket_recv_buffer_size(socket).is_ok_and(|now| now > bytes) || is_tcp {
        let _ = set_socket_recv_buffer_size(socket, bytes / 2);
    }
}

/// The process may have as many files open as its administrator allows; some begin with fewer. How many.
pub(crate) fn allow_open_files() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // As many as before do as well.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    getrlimit(Resource::Nofile).current
}

/// Who is at the other end of a TCP connection. It sends at once what it has from now on.
pub(crate) fn tcp_peer(socket: BorrowedFd<'_>) -> String {
    let Ok(stream) = socket.try_clone_to_owned().map(TcpStream::from) else { return "somebody".to_owned() };
    // A connection that waits is slower, and that is all.
    let _ = stream.set_nodelay(true);
    stream.peer_addr().map_or_else(|_| "somebody".to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;

    #[test]
    fn a_process_cannot_have_its_name_taken_for_something_else() {
        let named = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"a\nb\x1b[2J\xff").unwrap();
            process_name(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs())
        });
        assert_eq!(named.join().unwrap(), "a?b?[2J\u{fffd}");
        assert_eq!(process_name(u32::MAX), "", "it is gone");
    }

    #[test]
    fn a_call_takes_as_many_segments_as_it_may_and_leaves_the_rest() {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = Pool::default().buffer(2000 * 512);
        buffer.fill(7);
        let segments: Vec<Segment> = (0..2000).map(|number| buffer.segment(number * 512, 512)).collect();
        assert_eq!(write_at(&file, &segments, 0, false).unwrap(), SEGMENTS_MAX * 512);
        assert_eq!(read_at(&file, &segments, 0).unwrap(), SEGMENTS_MAX * 512);
    }
}
