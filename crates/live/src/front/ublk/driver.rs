//! The interface to the kernel's ublk driver in the disk's terms: how to create, start and remove a
//! device, its parameters and its requests.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iosched_system::ublk::{self, ControlCode, Description, Descriptions, Info, Parameters};

use super::UblkError;
use crate::disk::Action;

/// Maximum number of requests of a device in flight.
pub(super) const DEPTH: u16 = 128;
/// Maximum size of a transfer, bytes.
pub(super) const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Maximum range that one request can trim or zero, bytes.
const RANGE_BYTES_MAX: u32 = 1 << 30;
/// Maximum logical block size of a Linux device, bytes.
const BLOCK_BYTES_MAX: u32 = 4096;
const SECTOR_SHIFT: u32 = 9;

const CONTROL: &str = "/dev/ublk-control";
/// Maximum time to wait for a device's node, which udev creates.
const APPEARS_MAX: Duration = Duration::from_secs(2);

/// Flag: commands use the numbers of [`ControlCode`].
const F_CMD_IOCTL_ENCODE: u64 = 1 << 6;
/// Flag: the server copies data through the character device.
const F_USER_COPY: u64 = 1 << 7;

const STATE_DEAD: u16 = 0;

const PARAM_TYPE_BASIC: u32 = 1;
const PARAM_TYPE_DISCARD: u32 = 1 << 1;
const ATTR_READ_ONLY: u32 = 1;
const ATTR_ROTATIONAL: u32 = 1 << 1;
const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
const ATTR_FUA: u32 = 1 << 3;

/// Returns the parameters of a device for a disk of `capacity_bytes`. The device ends at the end of
/// the disk's last whole block.
pub(super) fn parameters(capacity_bytes: u64, block_bytes: u32, rotational: bool, read_only: bool) -> Parameters {
    let block_bytes = block_bytes.next_power_of_two().clamp(1 << SECTOR_SHIFT, BLOCK_BYTES_MAX);
    let shift = block_bytes.trailing_zeros() as u8;
    let attrs = [(read_only, ATTR_READ_ONLY), (rotational, ATTR_ROTATIONAL)];
    let attrs = attrs.iter().filter(|(is, _)| *is).fold(ATTR_VOLATILE_CACHE | ATTR_FUA, |all, (_, attr)| all | attr);
    Parameters {
        length: size_of::<Parameters>() as u32,
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
        ..Parameters::default()
    }
}

/// The driver's control device.
pub(super) struct Control(ublk::Control);

impl Control {
    pub(super) fn open() -> Result<Self, UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => UblkError::NoDriver,
            io::ErrorKind::PermissionDenied => UblkError::NotAllowed,
            _ => UblkError::Driver { what: format!("open {CONTROL}"), source },
        })?;
        Ok(Self(ublk::Control::new(file)?))
    }

    /// Creates a device with this number, or with the first free number. Returns the number.
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
        self.0.command_about(ControlCode::ADD_DEV, number, &mut info).map_err(|source| {
            match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => UblkError::NotAllowed,
                // Drivers return these errors for unknown commands.
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENODEV) => UblkError::TooOld,
                _ => UblkError::Driver { what: "create a device".to_owned(), source },
            }
        })?;
        if info.flags & F_USER_COPY == 0 {
            // The device is not usable, so an error does not matter.
            let _ = self.delete(info.dev_id);
            return Err(UblkError::TooOld);
        }
        Ok(info.dev_id)
    }

    /// Frees a number by removing the device of a server that has ended.
    fn make_free(&mut self, number: u32) -> Result<(), UblkError> {
        let mut info = Info::default();
        if self.0.command_about(ControlCode::GET_DEV_INFO, number, &mut info).is_err() {
            return Ok(());
        }
        // Only the server of a device can open the device, and only one process at a time.
        if info.state != STATE_DEAD || File::open(character_device(number)).is_err() {
            return Err(UblkError::Taken { number });
        }
        self.delete(number)
    }

    pub(super) fn set(&mut self, number: u32, parameters: &Parameters) -> Result<(), UblkError> {
        let done = self.0.command_about(ControlCode::SET_PARAMS, number, &mut { *parameters });
        done.map_err(|source| UblkError::Driver { what: format!("set up ublkb{number}"), source })
    }

    /// Makes the device visible. Its requests must be served already, because the kernel then reads
    /// the partition table.
    pub(super) fn start(&mut self, number: u32) -> Result<(), UblkError> {
        self.0
            .command(ControlCode::START_DEV, number, u64::from(std::process::id()))
            .map_err(|source| UblkError::Driver { what: format!("start ublkb{number}"), source })
    }

    /// Stops the device. The kernel first writes its cached data. Requests in flight still get
    /// their answers.
    pub(super) fn stop(&mut self, number: u32) -> Result<(), UblkError> {
        unless_gone(self.0.command(ControlCode::STOP_DEV, number, 0))
            .map_err(|source| UblkError::Driver { what: format!("stop ublkb{number}"), source })
    }

    /// Frees the number of the device as soon as no process has the device open.
    pub(super) fn delete(&mut self, number: u32) -> Result<(), UblkError> {
        let deleted = match self.0.command(ControlCode::DEL_DEV_ASYNC, number, 0) {
            // Kernels before 6.9 lack this command. The older command waits until the device is
            // closed.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.0.command(ControlCode::DEL_DEV, number, 0)
            }
            deleted => deleted,
        };
        unless_gone(deleted).map_err(|source| UblkError::Driver { what: format!("remove ublkb{number}"), source })
    }
}

/// Treats the error for a missing device as success.
fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        done => done,
    }
}

fn character_device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkc{number}"))
}

/// A request of the kernel to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// Action of the request; `None` if the device does not support it.
    pub(super) action: Option<Action>,
    pub(super) fua: bool,
    /// For a write of zeroes: whether the blocks stay allocated.
    pub(super) no_hole: bool,
    /// Offset, bytes.
    pub(super) offset: u64,
    /// Length, bytes.
    pub(super) length: u32,
}

impl Request {
    /// Returns the memory that the request needs while it is in flight, bytes.
    pub(super) fn held_bytes(self) -> u64 {
        let transfers = matches!(self.action, Some(Action::Read | Action::Write));
        if transfers { self.length.into() } else { 0 }
    }
}

const IO_FUA: u32 = 1 << 13;
const IO_NOUNMAP: u32 = 1 << 15;

impl From<Description> for Request {
    fn from(description: Description) -> Self {
        let Description { op_flags, nr_sectors, start_sector, .. } = description;
        let action = match op_flags & 0xff {
            0 => Some(Action::Read),
            1 => Some(Action::Write),
            2 => Some(Action::Flush),
            3 => Some(Action::Trim),
            5 => Some(Action::WriteZeroes),
            _ => None,
        };
        let length = u32::try_from(u64::from(nr_sectors) << SECTOR_SHIFT);
        Self {
            action: action.filter(|_| length.is_ok()),
            fua: op_flags & IO_FUA != 0,
            no_hole: op_flags & IO_NOUNMAP != 0,
            offset: start_sector << SECTOR_SHIFT,
            length: length.unwrap_or(0),
        }
    }
}

/// Requests of a device, as the driver's side of the queue describes them.
pub(super) struct Requests {
    file: File,
    descriptions: Descriptions,
}

impl Requests {
    /// Opens the requests of the device `number`. The device must be created but not started.
    pub(super) fn open(number: u32) -> Result<Self, UblkError> {
        let path = character_device(number);
        let failed = |source| UblkError::Driver { what: format!("open {}", path.display()), source };
        let file = open_when_there(&path).map_err(failed)?;
        let descriptions = Descriptions::map(&file, DEPTH).map_err(failed)?;
        Ok(Self { file, descriptions })
    }

    /// Returns the request with `tag`. It is valid after a command with this tag has completed,
    /// until the next command with this tag.
    pub(super) fn get(&self, tag: u16) -> Request {
        self.descriptions.get(tag).into()
    }

    /// Returns the file for commands of the queue.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Copies the data of the write with `tag` from the driver.
    pub(super) fn take(&self, tag: u16, data: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(data, place(tag))
    }

    /// Copies the data of the read with `tag` to the driver.
    pub(super) fn give(&self, tag: u16, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, place(tag))
    }
}

/// Returns the offset of a request's data in the character device. The offset is for queue 0.
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
    fn disk_has_whole_blocks_of_a_size_that_linux_supports() {
        let new = |capacity_bytes, block_bytes| parameters(capacity_bytes, block_bytes, false, false);
        assert_eq!((new(10_000, 512).dev_sectors, new(10_000, 512).logical_block_shift), (19, 9));
        assert_eq!((new(10_000, 4096).dev_sectors, new(10_000, 4096).logical_block_shift), (16, 12));
        assert_eq!((new(1 << 20, 65_536).dev_sectors, new(1 << 20, 65_536).logical_block_shift), (2048, 12));
        assert_eq!(parameters(512, 512, true, true).attrs, 0b1111);
    }

    #[test]
    fn descriptions_are_converted_to_requests() {
        let description =
            |op_flags, nr_sectors| Request::from(Description { op_flags, nr_sectors, start_sector: 8, address: 0 });
        let write = description(1 | IO_FUA, 2);
        assert_eq!(
            write,
            Request { action: Some(Action::Write), fua: true, no_hole: false, offset: 4096, length: 1024 }
        );
        let discard = description(3, RANGE_BYTES_MAX >> SECTOR_SHIFT);
        assert_eq!((discard.action, discard.length), (Some(Action::Trim), RANGE_BYTES_MAX));
        assert!(description(5 | IO_NOUNMAP, 1).no_hole);
        for refused in [description(4, 1), description(15, 1), description(3, u32::MAX)] {
            assert_eq!(refused.action, None);
        }
    }
}
