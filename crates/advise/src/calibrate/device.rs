//! A real device to measure: a block device, a file, or a file that iosched creates in a directory.

use std::sync::atomic::AtomicBool;

use iosched_kernel::execute::{self, ExecuteError};
use iosched_kernel::target::Target as KernelTarget;
use iosched_kernel::{BlockDevice, ExecuteOptions};
use iosched_sim::RunResult;
use iosched_workload::Workload;

use super::measurer::Measurer;
use super::target::Target;

/// Values for a device that does not report its queue depth or its largest command.
const DEPTH_DEFAULT: u32 = 128;
const MAX_SECTORS_KB_DEFAULT: u32 = 1280;

/// Measures a real device with its present scheduler.
#[derive(Debug)]
pub struct Device<'i> {
    place: KernelTarget,
    target: Target,
    interrupt: &'i AtomicBool,
}

impl<'i> Device<'i> {
    /// Creates a measurer of the first `bytes` of the target, with
    /// the name `name`. Runs end early when `interrupt` is true.
    #[must_use]
    pub fn new(place: KernelTarget, name: &str, bytes: u64, interrupt: &'i AtomicBool) -> Self {
        let device = place.block_device();
        let target = Target {
            name: name.to_owned(),
            model_name: device.and_then(BlockDevice::model_name),
            capacity_sectors: bytes / iosched::SECTOR_BYTES,
            depth: device.and_then(BlockDevice::driver_depth).unwrap_or(DEPTH_DEFAULT),
            max_sectors_kb: device.and_then(BlockDevice::max_sectors_kb).unwrap_or(MAX_SECTORS_KB_DEFAULT),
            rotational: device.is_some_and(BlockDevice::is_rotational),
            write_cache: device.and_then(BlockDevice::has_write_cache).unwrap_or(false),
            fua: device.and_then(BlockDevice::has_fua).unwrap_or(false),
            writable: place.is_writable(),
            conditions: conditions(device),
        };
        Self { place, target, interrupt }
    }

    /// Returns the target on which the workloads run.
    #[must_use]
    pub const fn place(&self) -> &KernelTarget {
        &self.place
    }
}

/// Returns the conditions of the measurement: device, scheduler and load of the machine.
fn conditions(device: Option<&BlockDevice>) -> Vec<String> {
    let mut conditions = Vec::new();
    if let Some(device) = device {
        let scheduler = device.scheduler().unwrap_or_else(|| "none".to_owned());
        conditions.push(format!("{}, {}, scheduler {scheduler}", device.path().display(), device.made_of()));
    } else {
        conditions.push("the path is in a file system that is not on a block device of this machine".to_owned());
    }
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        let minute = load.split(' ').next().unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        conditions.push(format!("load average {minute} on {cpus} CPUs at the beginning"));
    }
    conditions
}

impl Measurer for Device<'_> {
    type Error = ExecuteError;

    fn target(&self) -> &Target {
        &self.target
    }

    fn measure(&mut self, workload: &Workload, seed: u64) -> Result<RunResult, ExecuteError> {
        let options = ExecuteOptions { seed, interrupt: Some(self.interrupt), ..ExecuteOptions::default() };
        execute::run(workload, &self.place, &options)
    }
}
