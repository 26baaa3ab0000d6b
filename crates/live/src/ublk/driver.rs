//! What the kernel's driver and we say to each other: commands to its control device, a device's parameters, and the requests of a device.
//!
//! Numbers and layouts are those of Linux' `include/uapi/linux/ublk_cmd.h`.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use memmap2::{MmapOptions, MmapRaw};
use rustix::ioctl::opcode::{read, read_write};

use super::UblkError;
use crate::disk::Action;
use crate::ring::RingError;

/// Requests of a device that the driver hands over before one is answered.
pub(super) const DEPTH: u16 = 128;
/// Largest transfer of one request, in bytes.
pub(super) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Largest range that one request trims or zeroes, in bytes.
const RANGE_BYTES_MAX: u32 = 1 << 30;
/// Largest logical block of a device of Linux, in bytes.
const BLOCK_BYTES_MAX: u32 = 4096;
const SECTOR_SHIFT: u32 = 9;

const CONTROL: &str = "/dev/ublk-control";
/// How long a device's node takes to appear at most, where udev makes it.
const APPEARS_MAX: Duration = Duration::from_secs(2);

/// A command to the control device, as it lies in a submission: its size is part of the commands' numbers.
#[repr(C)]
struct ControlCommand([u64; 4]);
/// A command of a device's queue, as it lies in a submission.
#[repr(C)]
struct QueueCommand([u64; 2]);

const GET_DEV_INFO: u32 = read::<ControlCommand>(b'u', 0x02) as u32;
const ADD_DEV: u32 = read_write::<ControlCommand>(b'u', 0x04) as u32;
const DEL_DEV: u32 = read_write::<ControlCommand>(b'u', 0x05) as u32;
const START_DEV: u32 = read_write::<ControlCommand>(b'u', 0x06) as u32;
const STOP_DEV: u32 = read_write::<ControlCommand>(b'u', 0x07) as u32;
const SET_PARAMS: u32 = read_write::<ControlCommand>(b'u', 0x08) as u32;
const DEL_DEV_ASYNC: u32 = read::<ControlCommand>(b'u', 0x14) as u32;
const FETCH_REQ: u32 = read_write::<QueueCommand>(b'u', 0x20) as u32;
const COMMIT_AND_FETCH_REQ: u32 = read_write::<QueueCommand>(b'u', 0x21) as u32;

/// Commands have the numbers above.
const F_CMD_IOCTL_ENCODE: u64 = 1 << 6;
/// Data is read from and written to the device's character device.
const F_USER_COPY: u64 = 1 << 7;

const STATE_DEAD: u16 = 0;

/// What is known of a device.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
struct Info {
    nr_hw_queues: u16,
    queue_depth: u16,
    state: u16,
    pad0: u16,
    max_io_buf_bytes: u32,
    dev_id: u32,
    pid: i32,
    pad1: u32,
    flags: u64,
    flags_of_server: u64,
    owner_uid: u32,
    owner_gid: u32,
    reserved: [u64; 2],
}

const PARAM_TYPE_BASIC: u32 = 1;
const PARAM_TYPE_DISCARD: u32 = 1 << 1;
const ATTR_READ_ONLY: u32 = 1;
const ATTR_ROTATIONAL: u32 = 1 << 1;
const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
const ATTR_FUA: u32 = 1 << 3;

/// What a device is like.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub(super) struct Parameters {
    length: u32,
    types: u32,
    attrs: u32,
    logical_block_shift: u8,
    physical_block_shift: u8,
    io_opt_shift: u8,
    io_min_shift: u8,
    max_sectors: u32,
    chunk_sectors: u32,
    dev_sectors: u64,
    virt_boundary_mask: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    max_discard_sectors: u32,
    max_write_zeroes_sectors: u32,
    max_discard_segments: u16,
    reserved: [u16; 3],
}

impl Parameters {
    /// Those of a disk of `capacity_bytes`; what is beyond its last whole block is not to be seen.
    pub(super) fn new(capacity_bytes: u64, block_bytes: u32, rotational: bool, read_only: bool) -> Self {
        let block_bytes = block_bytes.next_power_of_two().clamp(1 << SECTOR_SHIFT, BLOCK_BYTES_MAX);
        let shift = block_bytes.trailing_zeros() as u8;
        let attrs = [(read_only, ATTR_READ_ONLY), (rotational, ATTR_ROTATIONAL)];
        let attrs =
            attrs.iter().filter(|(is, _)| *is).fold(ATTR_VOLATILE_CACHE | ATTR_FUA, |all, (_, attr)| all | attr);
        Self {
            length: size_of::<Self>() as u32,
            types: PARAM_TYPE_BASIC | PARAM_TYPE_DISCARD,
            attrs,
            logical_block_shift: shift,
            physical_block_shift: shift,
            io_opt_shift: shift,
            io_min_shift: shift,
            max_sectors: TRANSFER_BYTES_MAX >> SECTOR_SHIFT,
            dev_sectors: capacity_bytes / u64::from(block_bytes) * u64::from(block_bytes >> SECTOR_SHIFT),
            discard_granularity: block_bytes,
            max_discard_sectors: RANGE_BYTES_MAX >> SECTOR_SHIFT,
            max_write_zeroes_sectors: RANGE_BYTES_MAX >> SECTOR_SHIFT,
            max_discard_segments: 1,
            ..Self::default()
        }
    }
}

/// The driver's control device.
pub(super) struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    pub(super) fn open() -> Result<Self, UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver,
            io::ErrorKind::PermissionDenied => UblkError::NotAllowed,
            _ => UblkError::Driver { what: format!("open {CONTROL}"), source },
        })?;
        let ring = IoUring::builder().build(4).map_err(RingError::from)?;
        Ok(Self { file, ring })
    }

    /// Gives the driver a command for device `number`, about the `length` bytes at `address` if any, and waits until it is done.
    ///
    /// # Safety
    /// The bytes are the caller's, and may be read and written as the command does.
    unsafe fn command(&mut self, code: u32, number: u32, address: u64, length: usize, value: u64) -> io::Result<()> {
        let mut command = [0; 80];
        command[0..4].copy_from_slice(&number.to_ne_bytes());
        // About no queue.
        command[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
        command[6..8].copy_from_slice(&(length as u16).to_ne_bytes());
        command[8..16].copy_from_slice(&address.to_ne_bytes());
        command[16..24].copy_from_slice(&value.to_ne_bytes());
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), code).cmd(command).build();
        // SAFETY: the command is in the entry itself; what it points to the caller keeps until this returns, which is when the
        // command is done.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if let Some(done) = self.ring.completion().next() {
                return if done.result() < 0 { Err(io::Error::from_raw_os_error(-done.result())) } else { Ok(()) };
            }
        }
    }

    fn plain(&mut self, code: u32, number: u32, value: u64) -> io::Result<()> {
        // SAFETY: it is about no bytes.
        unsafe { self.command(code, number, 0, 0, value) }
    }

    fn with_info(&mut self, code: u32, number: u32, info: &mut Info) -> io::Result<()> {
        // SAFETY: the bytes are those of the value, which is borrowed and is valid whatever they are.
        unsafe { self.command(code, number, &raw mut *info as u64, size_of::<Info>(), 0) }
    }

    /// Makes a device, with that number or the first that is free; its number.
    pub(super) fn add(&mut self, number: Option<u32>) -> Result<u32, UblkError> {
        if let Some(number) = number {
            self.make_free(number)?;
        }
        let number = number.unwrap_or(u32::MAX);
        let mut info = Info {
            nr_hw_queues: 1,
            queue_depth: DEPTH,
            max_io_buf_bytes: TRANSFER_BYTES_MAX,
            dev_id: number,
            flags: F_CMD_IOCTL_ENCODE | F_USER_COPY,
            ..Info::default()
        };
        self.with_info(ADD_DEV, number, &mut info).map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => UblkError::NotAllowed,
            // What drivers say to commands that they do not know.
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENODEV) => UblkError::TooOld,
            _ => UblkError::Driver { what: "make a device".to_owned(), source },
        })?;
        if info.flags & F_USER_COPY == 0 {
            // It was not more than a try.
            let _ = self.delete(info.dev_id);
            return Err(UblkError::TooOld);
        }
        Ok(info.dev_id)
    }

    /// Sees to it that no device has that number: what a server that has died left of one is removed.
    fn make_free(&mut self, number: u32) -> Result<(), UblkError> {
        let mut info = Info::default();
        if self.with_info(GET_DEV_INFO, number, &mut info).is_err() {
            return Ok(());
        }
        // Only its server has it open, and no two processes can.
        if info.state != STATE_DEAD || File::open(character_device(number)).is_err() {
            return Err(UblkError::Taken { number });
        }
        self.delete(number)
    }

    pub(super) fn set(&mut self, number: u32, parameters: &Parameters) -> Result<(), UblkError> {
        let (address, length) = (&raw const *parameters as u64, size_of::<Parameters>());
        // SAFETY: the bytes are those of the value, which is borrowed, and this command only reads them.
        let done = unsafe { self.command(SET_PARAMS, number, address, length, 0) };
        done.map_err(|source| UblkError::Driver { what: format!("set up ublkb{number}"), source })
    }

    /// Lets the device appear. Its requests have to be served already: its partitions are looked for.
    pub(super) fn start(&mut self, number: u32) -> Result<(), UblkError> {
        self.plain(START_DEV, number, u64::from(std::process::id()))
            .map_err(|source| UblkError::Driver { what: format!("start ublkb{number}"), source })
    }

    /// Takes the device away: what the kernel has cached of it is written, what was asked for is answered, and nothing more is asked.
    pub(super) fn stop(&mut self, number: u32) -> Result<(), UblkError> {
        unless_gone(self.plain(STOP_DEV, number, 0))
            .map_err(|source| UblkError::Driver { what: format!("stop ublkb{number}"), source })
    }

    /// Frees its number, as soon as nobody has it open.
    pub(super) fn delete(&mut self, number: u32) -> Result<(), UblkError> {
        let deleted = match self.plain(DEL_DEV_ASYNC, number, 0) {
            // Kernels before 6.9 wait.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => self.plain(DEL_DEV, number, 0),
            deleted => deleted,
        };
        unless_gone(deleted).map_err(|source| UblkError::Driver { what: format!("remove ublkb{number}"), source })
    }
}

/// That there is no such device is as well.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        done => done,
    }
}

fn character_device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

/// What the kernel asks of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// `None`: nothing that was offered.
    pub(super) action: Option<Action>,
    pub(super) fua: bool,
    /// Of zeroes: their room stays allocated.
    pub(super) no_hole: bool,
    /// In bytes.
    pub(super) offset: u64,
    /// In bytes.
    pub(super) length: u32,
}

impl Request {
    /// Bytes of memory that it needs while it is under way.
    pub(super) fn held_bytes(self) -> u64 {
        let transfers = matches!(self.action, Some(Action::Read | Action::Write));
        if transfers { self.length.into() } else { 0 }
    }
}

/// As the driver describes a request.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Description {
    op_flags: u32,
    nr_sectors: u32,
    start_sector: u64,
    address: u64,
}

const IO_FUA: u32 = 1 << 13;
const IO_NOUNMAP: u32 = 1 << 15;

impl Description {
    fn request(self) -> Request {
        let action = match self.op_flags & 0xff {
            0 => Some(Action::Read),
            1 => Some(Action::Write),
            2 => Some(Action::Flush),
            3 => Some(Action::Trim),
            5 => Some(Action::WriteZeroes),
            _ => None,
        };
        let length = u32::try_from(u64::from(self.nr_sectors) << SECTOR_SHIFT);
        Request {
            action: action.filter(|_| length.is_ok()),
            fua: self.op_flags & IO_FUA != 0,
            no_hole: self.op_flags & IO_NOUNMAP != 0,
            offset: self.start_sector << SECTOR_SHIFT,
            length: length.unwrap_or(0),
        }
    }
}

/// The requests of a device: the driver's side of its queue.
pub(super) struct Requests {
    file: File,
    /// One for each tag. The kernel writes it.
    descriptions: MmapRaw,
}

impl Requests {
    /// Those of device `number`, which is made but not started.
    pub(super) fn open(number: u32) -> Result<Self, UblkError> {
        let path = character_device(number);
        let failed = |source| UblkError::Driver { what: format!("open {}", path.display()), source };
        let file = open_when_there(&path).map_err(failed)?;
        let bytes = usize::from(DEPTH) * size_of::<Description>();
        let descriptions = MmapOptions::new().len(bytes).map_raw_read_only(&file).map_err(failed)?;
        Ok(Self { file, descriptions })
    }

    /// What is asked with `tag`, while it is: from the completion of a command to the next one.
    pub(super) fn get(&self, tag: u16) -> Request {
        assert!(tag < DEPTH, "tag {tag}");
        let first = self.descriptions.as_ptr().cast::<Description>();
        // SAFETY: there is one for each tag, aligned to a page; the kernel leaves it alone while the request is with us.
        unsafe { first.add(tag.into()).read_volatile() }.request()
    }

    /// What asks the driver for the first request with `tag`.
    pub(super) fn fetch(&self, tag: u16) -> squeue::Entry {
        self.command(FETCH_REQ, tag, 0)
    }

    /// What tells the driver how the request with `tag` has ended: bytes, or an errno below 0. And asks for the next one.
    pub(super) fn answer(&self, tag: u16, result: i32) -> squeue::Entry {
        self.command(COMMIT_AND_FETCH_REQ, tag, result)
    }

    fn command(&self, code: u32, tag: u16, result: i32) -> squeue::Entry {
        let mut command = [0; 16];
        command[2..4].copy_from_slice(&tag.to_ne_bytes());
        command[4..8].copy_from_slice(&result.to_ne_bytes());
        let fd: RawFd = self.file.as_raw_fd();
        opcode::UringCmd16::new(types::Fd(fd), code).cmd(command).build()
    }

    /// Takes the data of the write with `tag`.
    pub(super) fn take(&self, tag: u16, data: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(data, place(tag))
    }

    /// Gives the data of the read with `tag`.
    pub(super) fn give(&self, tag: u16, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, place(tag))
    }
}

/// Where the data of the request with `tag` is in the character device, for a queue of number 0.
fn place(tag: u16) -> u64 {
    const DATA: u64 = 0x8000_0000;
    DATA + (u64::from(tag) << 25)
}

fn open_when_there(path: &Path) -> io::Result<File> {
    let began = Instant::now();
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && began.elapsed() < APPEARS_MAX => {
                std::thread::sleep(Duration::from_millis(1));
            }
            opened => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(std::mem::offset_of!(Info, flags), 24);
        assert_eq!(std::mem::offset_of!(Parameters, dev_sectors), 24);
        assert_eq!(std::mem::offset_of!(Parameters, discard_alignment), 40);
        assert_eq!(size_of::<Description>(), 24);
        assert_eq!((ADD_DEV, FETCH_REQ), (0xc020_7504, 0xc010_7520));
    }

    #[test]
    fn a_disk_shows_whole_blocks_that_linux_can_have() {
        let new = |capacity_bytes, block_bytes| Parameters::new(capacity_bytes, block_bytes, false, false);
        assert_eq!((new(10_000, 512).dev_sectors, new(10_000, 512).logical_block_shift), (19, 9));
        assert_eq!((new(10_000, 4096).dev_sectors, new(10_000, 4096).logical_block_shift), (16, 12));
        assert_eq!((new(1 << 20, 65_536).dev_sectors, new(1 << 20, 65_536).logical_block_shift), (2048, 12));
        assert_eq!(Parameters::new(512, 512, true, true).attrs, 0b1111);
    }

    #[test]
    fn descriptions_become_requests() {
        let description = |op_flags, nr_sectors| Description { op_flags, nr_sectors, start_sector: 8, address: 0 };
        let write = description(1 | IO_FUA, 2).request();
        assert_eq!(
            write,
            Request { action: Some(Action::Write), fua: true, no_hole: false, offset: 4096, length: 1024 }
        );
        let discard = description(3, RANGE_BYTES_MAX >> SECTOR_SHIFT).request();
        assert_eq!((discard.action, discard.length), (Some(Action::Trim), RANGE_BYTES_MAX));
        assert!(description(5 | IO_NOUNMAP, 1).request().no_hole);
        for refused in [description(4, 1), description(15, 1), description(3, u32::MAX)] {
            assert_eq!(refused.request().action, None);
        }
    }
}
