//! A real device that is measured: a block device, or a file of our own in a directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use iosched_kernel::{BlockDevice, ExecuteError, Host, Options, StateDirectory, Target as Place, consent, execute};
use iosched_lab::calibrate::{Measurer, Target};
use iosched_sim::RunResult;
use iosched_workload::Workload;

use super::CalibrateArgs;
use crate::fail::usage;

/// Depth and largest command where nobody says.
const DEPTH_DEFAULT: u32 = 128;
const MAX_SECTORS_KB_DEFAULT: u32 = 1280;

/// A real device.
pub(super) struct Real {
    place: Place,
    target: Target,
    interrupt: Arc<AtomicBool>,
}

impl Real {
    /// The device or directory that was named. Nothing is written to a device without its name typed twice.
    pub(super) fn open(args: &CalibrateArgs, name: &str, interrupt: &Arc<AtomicBool>) -> Result<Self> {
        let (host, path) = (Host::default(), Path::new(name));
        if path.is_dir() {
            if args.destroy_data.is_some() {
                return Err(usage(format_args!("{name}: is a directory; --destroy-data is for block devices")));
            }
            let bytes = args.file_size << 20;
            let state = StateDirectory::usual()?;
            let place = Place::directory(&host, path, &state)?.with_disk_bytes(bytes).keeping_disk();
            return Ok(Self::of(place, name, bytes, interrupt));
        }
        if path.is_file() {
            return Err(usage(format_args!(
                "{name}: is a file; give a block device, or a directory, in which a file is made, measured and removed"
            )));
        }
        let device = BlockDevice::find(&host, path)?;
        let bytes = device.size_bytes();
        let place = match &args.destroy_data {
            Some(typed) => Place::writable(consent::to_write(&device, Some(typed))?),
            None => Place::read_only(device),
        };
        Ok(Self::of(place, name, bytes, interrupt))
    }

    fn of(place: Place, name: &str, bytes: u64, interrupt: &Arc<AtomicBool>) -> Self {
        let device = place.block_device();
        let target = Target {
            name: name.to_owned(),
            capacity_sectors: bytes / 512,
            depth: device.and_then(BlockDevice::driver_depth).unwrap_or(DEPTH_DEFAULT),
            max_sectors_kb: device.and_then(BlockDevice::max_sectors_kb).unwrap_or(MAX_SECTORS_KB_DEFAULT),
            rotational: device.is_some_and(BlockDevice::is_rotational),
            write_cache: device.and_then(BlockDevice::has_write_cache).unwrap_or(false),
            fua: device.and_then(BlockDevice::has_fua).unwrap_or(false),
            writable: place.is_writable(),
            conditions: conditions(device),
        };
        Self { place, target, interrupt: Arc::clone(interrupt) }
    }
}

/// Under which the device is measured.
fn conditions(device: Option<&BlockDevice>) -> Vec<String> {
    let mut conditions = Vec::new();
    if let Some(device) = device {
        let scheduler = device.scheduler().unwrap_or_else(|| "none".to_owned());
        conditions.push(format!("{}, {}, scheduler {scheduler}", device.path().display(), device.made_of()));
    }
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let minute = load.split(' ').next().unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        conditions.push(format!("load average {minute} on {cpus} CPUs at the beginning"));
    }
    conditions
}

impl Measurer for Real {
    type Error = ExecuteError;

    fn target(&self) -> &Target {
        &self.target
    }

    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, ExecuteError> {
        let options = Options { seed, interrupt: Some(&self.interrupt), ..Options::default() };
        execute::run(workload, &self.place, &options)
    }
}
