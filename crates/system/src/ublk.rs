//! The interface of Linux' ublk driver: layouts, commands to its control
//! device, and commands and requests of a device's queue.
//!
//! Numbers, layouts and names of fields are the same as in Linux' `include/uapi/linux/ublk_cmd.h`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use memmap2::{MmapOptions, MmapRaw};
use rustix::ioctl::opcode::{read, read_write};

use crate::ring::RingError;

/// Layout of a command to the control device in a submission. The size of this type is part of the
/// numbers of the commands.
#[repr(C)]
struct ControlData([u64; 4]);
/// Layout of a command of a device's queue in a submission.
#[repr(C)]
struct QueueData([u64; 2]);

const FETCH_REQ: u32 = read_write::<QueueData>(b'u', 0x20) as u32;
const COMMIT_AND_FETCH_REQ: u32 = read_write::<QueueData>(b'u', 0x21) as u32;

/// A command to the control device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlCode(u32);

impl ControlCode {
    /// Returns information on a device.
    pub const GET_DEV_INFO: Self = Self(read::<ControlData>(b'u', 0x02) as u32);
    /// Makes a device.
    pub const ADD_DEV: Self = Self(read_write::<ControlData>(b'u', 0x04) as u32);
    /// Removes a device, and waits until no process has it open.
    pub const DEL_DEV: Self = Self(read_write::<ControlData>(b'u', 0x05) as u32);
    /// Starts a device, which then appears.
    pub const START_DEV: Self = Self(read_write::<ControlData>(b'u', 0x06) as u32);
    /// Stops a device, which then disappears.
    pub const STOP_DEV: Self = Self(read_write::<ControlData>(b'u', 0x07) as u32);
    /// Sets the parameters of a device.
    pub const SET_PARAMS: Self = Self(read_write::<ControlData>(b'u', 0x08) as u32);
    /// Removes a device as soon as no process has it open.
    pub const DEL_DEV_ASYNC: Self = Self(read::<ControlData>(b'u', 0x14) as u32);
}

/// The kernel's information about a ublk device.
#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Info {
    pub nr_hw_queues: u16,
    pub queue_depth: u16,
    pub state: u16,
    pub pad0: u16,
    pub max_io_buf_bytes: u32,
    pub dev_id: u32,
    pub pid: i32,
    pub pad1: u32,
    pub flags: u64,
    pub flags_of_server: u64,
    pub owner_uid: u32,
    pub owner_gid: u32,
    pub reserved: [u64; 2],
}

/// Parameters of a ublk device, such as its size.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Parameters {
    pub length: u32,
    pub types: u32,
    pub attrs: u32,
    pub logical_block_shift: u8,
    pub physical_block_shift: u8,
    pub io_opt_shift: u8,
    pub io_min_shift: u8,
    pub max_sectors: u32,
    pub chunk_sectors: u32,
    pub dev_sectors: u64,
    pub virt_boundary_mask: u64,
    pub discard_alignment: u32,
    pub discard_granularity: u32,
    pub max_discard_sectors: u32,
    pub max_write_zeroes_sectors: u32,
    pub max_discard_segments: u16,
    pub reserved: [u16; 3],
}

/// The driver's description of a request.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Description {
    pub op_flags: u32,
    pub nr_sectors: u32,
    pub start_sector: u64,
    pub address: u64,
}

mod plain {
    /// A type that consists of numbers without padding. Any bytes are a valid value, and any value
    /// can be read as bytes.
    ///
    /// # Safety
    /// The type must consist of numbers without padding.
    pub unsafe trait Plain: Copy {}
    // SAFETY: its fields are numbers without gaps, as the tests check.
    unsafe impl Plain for super::Info {}
    // SAFETY: as before.
    unsafe impl Plain for super::Parameters {}
}

/// Memory for the argument of a command.
type Room = [u64; 16];

/// Control device of the ublk driver.
pub struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    /// Argument of the command in flight.
    room: Box<Room>,
    /// Whether entering the kernel failed, so that a command may still be in flight.
    is_broken: bool,
}

impl Control {
    /// Creates the control interface from the open control device.
    ///
    /// # Errors
    /// If the system does not provide io_uring.
    pub fn new(file: File) -> Result<Self, RingError> {
        Ok(Self { file, ring: IoUring::builder().build(4)?, room: Box::default(), is_broken: false })
    }

    /// Executes a command with a device number and a value, and waits until it is done.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn command(&mut self, code: ControlCode, number: u32, value: u64) -> io::Result<()> {
        self.execute(code, number, 0, value)
    }

    /// Executes a command with a device number and the argument `about`, which
    /// the driver may change. Waits until it is done.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn command_about<A: plain::Plain>(&mut self, code: ControlCode, number: u32, about: &mut A) -> io::Result<()> {
        const { assert!(size_of::<A>() <= size_of::<Room>() && align_of::<A>() <= align_of::<Room>()) };
        self.check()?;
        let room: *mut A = (&raw mut *self.room).cast();
        // SAFETY: the room is large enough and aligned, and no command is in flight.
        unsafe { room.write(*about) };
        self.execute(code, number, size_of::<A>(), 0)?;
        // SAFETY: any bytes that the driver has written there are a valid value.
        *about = unsafe { room.read() };
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.is_broken {
            return Err(io::Error::other("an earlier command may still be in flight"));
        }
        Ok(())
    }

    fn execute(&mut self, code: ControlCode, number: u32, length: usize, value: u64) -> io::Result<()> {
        self.check()?;
        let address = if length == 0 { 0 } else { &raw mut *self.room as u64 };
        let mut command = [0; 80];
        command[0..4].copy_from_slice(&number.to_ne_bytes());
        // The command concerns no queue.
        command[4..6].copy_from_slice(&u16::MAX.to_ne_bytes());
        command[6..8].copy_from_slice(&(length as u16).to_ne_bytes());
        command[8..16].copy_from_slice(&address.to_ne_bytes());
        command[16..24].copy_from_slice(&value.to_ne_bytes());
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), code.0).cmd(command).build();
        // SAFETY: the entry contains the command. The command points to the memory of the argument.
        // This memory stays valid until the command is done, because the loop waits for the
        // command, or because the memory is never freed.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    self.is_broken = true;
                    return Err(error);
                }
                _ => {}
            }
            if let Some(done) = self.ring.completion().next() {
                return if done.result() < 0 { Err(io::Error::from_raw_os_error(-done.result())) } else { Ok(()) };
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if self.is_broken {
            // The driver may still read and write this memory.
            std::mem::forget(std::mem::take(&mut self.room));
        }
    }
}

/// A command of a device's queue: it answers a request, or fetches the first request.
#[derive(Clone, Copy, Debug)]
pub struct QueueCommand {
    code: u32,
    tag: u16,
    result: i32,
}

impl QueueCommand {
    /// Fetches the first request with `tag` from the driver.
    #[must_use]
    pub fn fetch(tag: u16) -> Self {
        Self { code: FETCH_REQ, tag, result: 0 }
    }

    /// Answers the request with `tag`, and fetches the next one. The result is a
    /// number of bytes, or a negative errno.
    #[must_use]
    pub fn answer(tag: u16, result: i32) -> Self {
        Self { code: COMMIT_AND_FETCH_REQ, tag, result }
    }

    /// Returns the entry of the command, for the device's first queue. The address in the command
    /// is 0, because other calls transfer the data.
    pub(crate) fn entry(self, fd: types::Fd) -> squeue::Entry {
        let mut command = [0; size_of::<QueueData>()];
        command[2..4].copy_from_slice(&self.tag.to_ne_bytes());
        command[4..8].copy_from_slice(&self.result.to_ne_bytes());
        opcode::UringCmd16::new(fd, self.code).cmd(command).build()
    }
}

/// The requests of the driver: a [`Description`] for each tag, which the kernel writes.
pub struct Descriptions {
    map: MmapRaw,
    count: u16,
}

impl Descriptions {
    /// Maps the descriptions of a device with `count` tags, from its character device.
    ///
    /// # Errors
    /// If the driver does not allow it.
    pub fn map(device: &File, count: u16) -> io::Result<Self> {
        let bytes = usize::from(count) * size_of::<Description>();
        Ok(Self { map: MmapOptions::new().len(bytes).map_raw_read_only(device)?, count })
    }

    /// Returns the request with `tag`. It is valid after a command completes, until the next
    /// command.
    ///
    /// # Panics
    /// If there is no such tag.
    #[must_use]
    pub fn get(&self, tag: u16) -> Description {
        assert!(tag < self.count, "tag {tag}");
        let first = self.map.as_ptr().cast::<Description>();
        // SAFETY: there is one description for each tag, the first is aligned to a page, and any
        // bytes are valid. The kernel does not change a description while this program has the
        // request.
        unsafe { first.add(tag.into()).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn struct_layouts_match_the_kernel() {
        assert_eq!(size_of::<Info>(), 64);
        assert_eq!(std::mem::offset_of!(Info, flags), 24);
        assert_eq!(size_of::<Parameters>(), 64);
        assert_eq!(std::mem::offset_of!(Parameters, dev_sectors), 24);
        assert_eq!(std::mem::offset_of!(Parameters, discard_alignment), 40);
        // There is no padding after the last fields.
        assert_eq!(std::mem::offset_of!(Info, reserved) + size_of::<[u64; 2]>(), size_of::<Info>());
        assert_eq!(std::mem::offset_of!(Parameters, reserved) + size_of::<[u16; 3]>(), size_of::<Parameters>());
        assert_eq!(size_of::<Description>(), 24);
        assert_eq!((ControlCode::ADD_DEV.0, FETCH_REQ), (0xc020_7504, 0xc010_7520));
    }
}
