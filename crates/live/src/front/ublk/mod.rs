//! A live disk as block devices `/dev/ublkbN`, by Linux' ublk driver.
//!
//! Each declared [`Export`] is a device and a client of the disk, with its class, level, weight and group: the driver
//! does not say which process a request is from, so all requests of a device are one client's. What shares a disk gets
//! a device each.
//!
//! The driver is spoken to directly, through io_uring as the rest of a live disk uses it: two commands a request. The
//! crate `libublk` (0.4) needs libclang to be built, and drives a queue by an async executor where answers are to come
//! from another thread.
//!
//! The kernel's own scheduler and writeback throttling of a device are switched off: they would decide before the
//! disk's elevator can.
//!
//! A device lasts as long as its server: the driver's recovery, by which a new server takes over what a dead one left,
//! is not used. If the server is killed, `/dev/ublkbN` is gone, with errors for what was under way, and its number is
//! taken until a server is given that number.

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

/// How often devices in use are looked at again.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub enum UblkError {
    /// No control device.
    #[error(
        "/dev/ublk-control does not exist: load the driver with modprobe ublk_drv (Linux 6.4 or later, built with \
         CONFIG_BLK_DEV_UBLK)"
    )]
    NoDriver,
    /// Not for this user.
    #[error("/dev/ublk-control: permission denied: creating block devices needs root (CAP_SYS_ADMIN)")]
    NotAllowed,
    /// The driver is too old.
    #[error("the ublk driver of this kernel cannot copy data on request: Linux 6.4 or later is needed")]
    TooOld,
    /// Somebody has the number.
    #[error("ublkb{number} is already in use: choose another --number, or leave the option out")]
    Taken {
        /// The number.
        number: u32,
    },
    /// The system has no io_uring for us.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The system gives no thread.
    #[error("cannot start a thread for requests of the devices: {0}")]
    Thread(io::Error),
    /// The disk does not take clients.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The driver does not do what it should.
    #[error("the ublk driver cannot {what}: {source}")]
    Driver {
        /// What.
        what: String,
        /// What it says.
        source: io::Error,
    },
}

/// Whether block devices can be made here.
///
/// # Errors
/// If not.
pub fn check() -> Result<(), UblkError> {
    Control::open().map(drop)
}

/// A block device.
#[derive(Clone, Debug)]
pub struct Device {
    /// The N of `/dev/ublkbN`.
    pub number: u32,
    /// What it stands for.
    pub export: Export,
}

impl Device {
    /// Its node.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        block_device(self.number)
    }
}

fn block_device(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/ublkb{number}"))
}

/// Block devices of a disk that are there.
pub struct Devices {
    devices: Vec<Device>,
    thread: JoinHandle<()>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Devices that are made, to be taken back if what follows fails.
struct CreatedDevices {
    control: Control,
    numbers: Vec<u32>,
}

impl Drop for CreatedDevices {
    fn drop(&mut self) {
        for &number in &self.numbers {
            // Whatever can be taken back is.
            let _ = self.control.stop(number).and_then(|()| self.control.delete(number));
        }
    }
}

/// Makes a block device of each of `exports`, with numbers from `number` on or any that are free.
///
/// # Errors
/// If the driver is not there, or does not let us.
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
        if let Some((name, weight)) = group.map(|(name, weight)| (name.to_owned(), weight)) {
            let set = disk.control(move |disk, _| disk.group(&name, weight)).map_err(ConnectError::from)?;
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

/// The client that a device is.
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

/// Begins to serve the requests of devices.
fn serve(disk: &Handle, devices: Vec<worker::Device>) -> Result<JoinHandle<()>, UblkError> {
    let (ready, readied) = mpsc::sync_channel(1);
    let disk = disk.clone();
    // A ring belongs to the thread that makes it, and a queue to the thread that first asks.
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

/// Lets the kernel decide nothing about the order of a device's requests; what to know if that cannot be.
fn leave_to_disk(number: u32) -> Option<String> {
    let queue = PathBuf::from(format!("/sys/block/ublkb{number}/queue"));
    // Kernels without throttling have no such attribute.
    let _ = std::fs::write(queue.join("wbt_lat_usec"), "0");
    let scheduler = queue.join("scheduler");
    let error = std::fs::write(&scheduler, "none").err()?;
    Some(format!("{}: {error}; the kernel's own scheduler still decides before iosched", scheduler.display()))
}

impl Devices {
    /// The devices, in the order of their exports.
    #[must_use]
    pub fn as_slice(&self) -> &[Device] {
        &self.devices
    }

    /// What stops them, from any thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { numbers: self.devices.iter().map(|device| device.number).collect() }
    }

    /// Waits until they are gone, stopped by us or by anybody else, and frees their numbers.
    ///
    /// # Errors
    /// If the driver does not let us.
    pub fn wait(self) -> Result<(), UblkError> {
        // What a thread that has failed leaves is cleared away like the rest.
        let _ = self.thread.join();
        let mut control = Control::open()?;
        let deleted: Vec<_> = self.devices.iter().map(|device| control.delete(device.number)).collect();
        deleted.into_iter().collect()
    }
}

/// Stops block devices.
#[derive(Clone, Debug)]
pub struct Stopper {
    numbers: Vec<u32>,
}

impl Stopper {
    /// Takes the devices away, each when nothing is mounted from it or built on it: until then `in_use` is told of
    /// those that wait. What the kernel has cached is written before.
    ///
    /// # Errors
    /// If the driver does not let us.
    pub fn stop(&self, mut in_use: impl FnMut(&[PathBuf])) -> Result<(), UblkError> {
        let mut control = Control::open()?;
        let mut left = self.numbers.clone();
        let mut is_reported = false;
        loop {
            let mut waiting = Vec::new();
            for number in left {
                // Nobody else can begin to use it that way while we do.
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
