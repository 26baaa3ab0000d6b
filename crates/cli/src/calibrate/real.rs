//! The real device, file or directory that was named.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use iosched_advise::calibrate::Device;
use iosched_kernel::{BlockDevice, Roots, StateDirectory, Target, consent};

use super::CalibrateArgs;
use crate::fail::usage;

/// Nothing is written to a device without its name typed twice.
pub(super) fn open<'i>(args: &CalibrateArgs, name: &str, interrupt: &'i AtomicBool) -> Result<Device<'i>> {
    let (roots, path) = (Roots::default(), Path::new(name));
    if path.is_dir() {
        if args.destroy_data.is_some() {
            return Err(usage(format_args!("{name}: is a directory; --destroy-data is for block devices")));
        }
        let bytes = args.file_size << 20;
        let state = StateDirectory::usual()?;
        let place = Target::directory(&roots, path, &state)?.with_disk_bytes(bytes).keeping_disk();
        return Ok(Device::new(place, name, bytes, interrupt));
    }
    if path.is_file() {
        if args.destroy_data.is_some() {
            return Err(usage(format_args!(
                "{name}: is a file, which is only read; --destroy-data is for block devices"
            )));
        }
        let place = Target::file(&roots, path)?;
        let bytes = place.size_bytes().unwrap_or(0);
        return Ok(Device::new(place, name, bytes, interrupt));
    }
    let device = BlockDevice::itself(&roots, path)?;
    let bytes = device.size_bytes();
    let place = match &args.destroy_data {
        Some(typed) => Target::writable(consent::to_write(&device, Some(typed))?),
        None => Target::read_only(device),
    };
    Ok(Device::new(place, name, bytes, interrupt))
}
