//! Calls to the system that rustix does not have: the ioprio of a thread, discards of a device.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use iosched::{IoClass, IoPriority};

/// `IOPRIO_WHO_PROCESS` of Linux' include/uapi/linux/ioprio.h; a thread is meant by it.
const WHO_PROCESS: libc::c_int = 1;
/// Bits below the class there.
const CLASS_SHIFT: u32 = 13;
/// `BLKDISCARD` of include/uapi/linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An ioprio as the kernel writes it.
pub(super) const fn ioprio_value(ioprio: IoPriority) -> u16 {
    let class: u16 = match ioprio.class {
        IoClass::None => return 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << CLASS_SHIFT | ioprio.level as u16
}

/// The calling thread has this ioprio from now on.
pub(super) fn set_ioprio(ioprio: IoPriority) -> io::Result<()> {
    let value = libc::c_int::from(ioprio_value(ioprio));
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    checked(unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) }).map(drop)
}

/// The ioprio of the calling thread, as the kernel writes it.
#[cfg(test)]
pub(super) fn ioprio() -> io::Result<u16> {
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    checked(unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) }).map(|value| value as u16)
}

/// Says that the bytes of a block device are no longer needed.
pub(super) fn discard(device: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let range = [offset, bytes];
    // SAFETY: the call reads two numbers of 64 bits.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) }.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ioprio_that_is_set_is_read_back() {
        std::thread::spawn(|| {
            for given in ["be/0", "be/7", "idle"] {
                let wanted: IoPriority = given.parse().unwrap();
                set_ioprio(wanted).unwrap();
                // Of the idle class the kernel keeps no level.
                let level = if given == "idle" { 0b111 } else { 0 };
                assert_eq!(ioprio().unwrap() | level, ioprio_value(wanted) | level, "{given}");
            }
        })
        .join()
        .unwrap();
    }
}
