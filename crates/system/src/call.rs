//! System calls that no safe library offers.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `IOPRIO_WHO_PROCESS` of Linux' include/uapi/linux/ioprio.h. Despite its name, it means a thread.
const WHO_PROCESS: libc::c_int = 1;
/// `BLKDISCARD` of include/uapi/linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the ioprio of the thread `tid`, as the kernel stores it. 0 means the calling thread.
/// Returns `None` if the thread does not exist or is not visible.
#[must_use]
pub fn ioprio_of(tid: u32) -> Option<i32> {
    // SAFETY: the call takes numbers only.
    let ioprio = checked(unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, tid) });
    ioprio.ok().and_then(|ioprio| i32::try_from(ioprio).ok())
}

/// Sets the ioprio of the calling thread, as the kernel stores it.
///
/// # Errors
/// If the system does not allow it.
pub fn set_ioprio(value: u16) -> io::Result<()> {
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    checked(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_int::from(value)) }).map(drop)
}

/// Discards bytes of a block device.
///
/// # Errors
/// If `BLKDISCARD` fails.
pub fn discard(device: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the call reads two numbers of 64 bits.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) }.into()).map(drop)
}

/// Returns the process number of the peer of a unix socket. Returns `None` if the peer is not
/// visible in the PID namespace of the caller. For such a peer, the kernel reports the number 0.
/// This function does not use rustix, because rustix assumes that a process number is never 0.
#[must_use]
pub fn unix_peer(socket: BorrowedFd<'_>) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, value) = (socket.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: the value has the length that `length` states.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, value, &raw mut length) };
    u32::try_from(peer.pid).ok().filter(|&pid| result == 0 && pid > 0)
}

/// Returns the sockets that systemd has created for this process, if any. Only the first call can
/// take them.
///
/// # Errors
/// If systemd's variables cannot be read, or the sockets were taken before.
pub fn systemd_sockets() -> io::Result<Vec<OwnedFd>> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static ASKED: AtomicBool = AtomicBool::new(false);
    let fds: Vec<_> = sd_notify::listen_fds()?.collect();
    if !fds.is_empty() && ASKED.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("this process has already used the sockets from systemd"));
    }
    // SAFETY: systemd gave them to this process, and no other code takes them, as checked above.
    Ok(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn an_ioprio_that_is_set_is_read_back() {
        let read = |value| {
            std::thread::spawn(move || {
                set_ioprio(value).unwrap();
                ioprio_of(0)
            })
        };
        // Best effort, levels 0 and 7.
        for value in [2 << 13, 2 << 13 | 7] {
            assert_eq!(read(value).join().unwrap(), Some(i32::from(value)));
        }
        assert_eq!(ioprio_of(i32::MAX as u32), None);
        assert_eq!(set_ioprio(7 << 13).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn unix_peer_returns_the_pid_of_the_other_end() {
        let (one, _other) = UnixStream::pair().unwrap();
        assert_eq!(unix_peer(one.as_fd()), Some(std::process::id()));
        assert_eq!(unix_peer(tempfile::tempfile().unwrap().as_fd()), None);
    }
}
