//! A served disk as block devices `/dev/ublkbN`, through the ublk driver of Linux.
//!
//! Each declared [`Export`] is a device. Each device is a client of the disk, with the class,
//! level, weight and group of its export. The driver does not report which process sent a request,
//! so all requests of a device belong to one client. To share a disk between users, give each user
//! a device.
//!
//! This module uses the driver directly through io_uring, as the rest of a served disk does, with
//! two commands per request. It does not use the crate `libublk` (0.4), because its build needs
//! libclang. `libublk` also drives a queue with an async executor, but here another thread answers
//! requests.
//!
//! For each device, this module switches off the kernel's own scheduler and writeback throttling.
//! They would delay or reorder requests before the requests reach the disk's scheduler.
//!
//! A device exists as long as its server. The driver supports recovery by a new server, but this
//! module does not use it. If the server is killed, `/dev/ublkbN` disappears, and its requests in
//! flight fail. The number stays in use until a new server starts with the same number.

mod driver;
mod worker;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::disk::Identity;
use crate::nbd::{Export, Exports};
use crate::reactor::ConnectError;
use crate::{Handle, LiveDisk, RingError};
use driver::{Control, Requests};
use worker::Worker;

/// Interval at which a waiting stop checks whether devices are still in use.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Reason why devices cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// The control device does not exist.
    #[error(
        "/dev/ublk-control does not exist: load the driver with modprobe ublk_drv (Linux 6.4 or later, built with \
         CONFIG_BLK_DEV_UBLK)"
    )]
    NoDriver,
    /// The user has no permission.
    #[error("/dev/ublk-control: permission denied: creating block devices needs root (CAP_SYS_ADMIN)")]
    NotAllowed,
    /// The driver is too old.
    #[error("the ublk driver of this kernel cannot copy data on request: Linux 6.4 or later is needed")]
    TooOld,
    /// Another device has the number.
    #[error("ublkb{number} is already in use: choose another --number, or leave the option out")]
    Taken {
        /// Number of the device.
        number: u32,
    },
    /// The system provides no io_uring.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system cannot create a thread.
    #[error("cannot start a thread for requests of the devices: {0}")]
    Thread(io::Error),
    /// The disk accepts no clients.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The driver returned an error.
    #[error("the ublk driver cannot {what}: {source}")]
    Driver {
        /// Action that failed.
        what: String,
        /// Error of the driver.
        source: io::Error,
    },
}

/// Checks whether block devices can be created.
///
/// # Errors
/// The driver is missing, the user has no permission, or the system provides no io_uring.
pub fn check() -> Result<(), UblkError> {
    Control::open().map(drop)
}

/// A block device of the kernel that serves an export.
#[derive(Clone, Debug)]
pub struct Device {
    /// The number N of `/dev/ublkbN`.
    pub number: u32,
    /// Export of the device.
    pub export: Export,
}

impl Device {
    /// Returns the path of the device's node.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        block_device(self.number)
    }
}

fn block_device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkb{number}"))
}

/// The block devices of a disk.
pub struct Devices {
    devices: Vec<Device>,
    thread: JoinHandle<()>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// New devices. If a later step fails, they are removed.
struct CreatedDevices {
    control: Control,
    numbers: Vec<u32>,
}

impl Drop for CreatedDevices {
    fn drop(&mut self) {
        for &number in &self.numbers {
            // Errors do not matter here. Each device is removed if possible.
            let _ = self.control.stop(number).and_then(|()| self.control.delete(number));
        }
    }
}

/// Creates a block device for each export in `exports`. The devices get consecutive numbers from
/// `number`, or any free numbers.
///
/// # Errors
/// The driver is missing or returns an error.
pub fn attach(disk: &Handle, exports: &Exports, number: Option<u32>) -> Result<Devices, UblkError> {
    let mut created = CreatedDevices { control: Control::open()?, numbers: Vec::new() };
    let about = |disk: &mut LiveDisk, _| {
        crate::sys::serve_writeback();
        disk.is_rotational()
    };
    let rotational = disk.control(about).map_err(ConnectError::from)?;
    let (mut served, mut warnings) = (Vec::new(), Vec::new());
    for (place, export) in exports.as_slice().iter().enumerate() {
        let number = created.control.add(number.map(|first| first.saturating_add(place as u32)))?;
        created.numbers.push(number);
        let parameters = driver::parameters(disk.capacity_bytes(), disk.block_bytes(), rotational, export.read_only);
        created.control.set(number, &parameters)?;
        let group = exports.group(export);
        if let Some((name, portion)) = group.map(|(name, portion)| (name.to_owned(), portion)) {
            let set = disk.control(move |disk, _| disk.group(&name, portion)).map_err(ConnectError::from)?;
            warnings.extend(set.err().map(|error| error.to_string()));
        }
        let client = disk.connect(identity(disk, export, group.map(|(name, _)| name), number))?;
        served.push(worker::Device::new(Requests::open(number)?, client));
    }
    let thread = serve(disk, served)?;
    for &number in &created.numbers {
        created.control.start(number)?;
    }
    let numbers = std::mem::take(&mut created.numbers);
    warnings.extend(numbers.iter().filter_map(|&number| leave_to_disk(number)));
    let devices =
        numbers.into_iter().zip(exports.as_slice()).map(|(number, export)| Device { number, export: export.clone() });
    Ok(Devices { devices: devices.collect(), thread, warnings })
}

/// Returns the description of a device's client.
fn identity(disk: &Handle, export: &Export, group: Option<&str>, number: u32) -> Identity {
    let name = if export.name.is_empty() { disk.name() } else { &export.name };
    Identity {
        name: format!("{name} ublkb{number}"),
        pid: 0,
        ioprio: export.ioprio,
        group: group.map(str::to_owned),
        read_only: export.read_only,
        sync: export.sync,
    }
}

/// Starts to serve the requests of devices.
fn serve(disk: &Handle, devices: Vec<worker::Device>) -> Result<JoinHandle<()>, UblkError> {
    let (ready, readied) = mpsc::sync_channel(1);
    let disk = disk.clone();
    // A ring belongs to the thread that creates it. A queue belongs to the thread that first
    // fetches requests from it.
    let run = move || match Worker::new(disk, devices) {
        Ok(worker) => {
            let _ = ready.send(Ok(()));
            worker.run();
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    };
    let thread = std::thread::Builder::new().name("ublk".to_owned()).spawn(run).map_err(UblkError::Thread)?;
    match readied.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(UblkError::Thread(io::Error::other("the thread of the devices has failed"))),
    }
}

/// Switches off the kernel's own scheduling for a device. Returns a warning if this fails.
fn leave_to_disk(number: u32) -> Option<String> {
    let queue = PathBuf::from(format!("/sys/block/ublkb{number}/queue"));
    // Kernels without writeback throttling lack this attribute.
    let _ = std::fs::write(queue.join("wbt_lat_usec"), "0");
    let scheduler = queue.join("scheduler");
    let error = std::fs::write(&scheduler, "none").err()?;
    Some(format!("{}: {error}; the kernel's scheduler still orders requests before iosched does", scheduler.display()))
}

impl Devices {
    /// Returns the devices, in the order of their exports.
    #[must_use]
    pub fn as_slice(&self) -> &[Device] {
        &self.devices
    }

    /// Returns a handle that stops the devices from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { numbers: self.devices.iter().map(|device| device.number).collect() }
    }

    /// Waits until the devices are stopped, by this process or another one, and frees their
    /// numbers.
    ///
    /// # Errors
    /// The driver returns an error.
    pub fn wait(self) -> Result<(), UblkError> {
        // The cleanup is the same if the thread has failed.
        let _ = self.thread.join();
        let mut control = Control::open()?;
        let deleted: Vec<_> = self.devices.iter().map(|device| control.delete(device.number)).collect();
        deleted.into_iter().collect()
    }
}

/// Stops block devices of ublk, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    numbers: Vec<u32>,
}

impl Stopper {
    /// Stops each device as soon as it is not mounted and no other device uses it. Calls `in_use`
    /// once with the devices that are still in use. Before a stop, the kernel writes its cached
    /// data to the device.
    ///
    /// # Errors
    /// The driver returns an error.
    pub fn stop(&self, mut in_use: impl FnMut(&[PathBuf])) -> Result<(), UblkError> {
        let mut control = Control::open()?;
        let mut left = self.numbers.clone();
        let mut is_reported = false;
        loop {
            let mut waiting = Vec::new();
            for number in left {
                // While this exclusive open lasts, no mount and no other device can begin to use
                // the device.
                let claim = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(block_device(number));
                match claim {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => waiting.push(number),
                    _ => control.stop(number)?,
                }
            }
            if waiting.is_empty() {
                return Ok(());
            }
            if !is_reported {
                in_use(&waiting.iter().copied().map(block_device).collect::<Vec<_>>());
                is_reported = true;
            }
            left = waiting;
            std::thread::sleep(LOOKS_EVERY);
        }
    }
}
