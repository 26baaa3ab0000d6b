//! The real device, file or directory that was named.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use iosched_advise::calibrate::Device;
use iosched_kernel::{BlockDevice, Roots, StateDirectory, Target, consent};

use crate::fail::usage;

/// What was named.
pub(crate) struct Place<'a> {
    /// A device, a file or a directory.
    pub(crate) name: &'a str,
    /// The name typed once more of a device whose data may be destroyed.
    pub(crate) destroy_data: Option<&'a Path>,
    /// Size of the file that is made in a directory, MiB.
    pub(crate) file_size_mib: u64,
}

/// Nothing is written to a device without its name typed twice.
pub(crate) fn open_device<'i>(named: &Place<'_>, interrupt: &'i AtomicBool) -> Result<Device<'i>> {
    let &Place { name, destroy_data, file_size_mib } = named;
    let (roots, path) = (Roots::default(), Path::new(name));
    if path.is_dir() {
        if destroy_data.is_some() {
            return Err(usage(format_args!("{name}: is a directory; --destroy-data is only for block devices")));
        }
        let bytes = file_size_mib << 20;
        let state = StateDirectory::usual()?;
        let place = Target::directory(&roots, path, &state)?.with_disk_bytes(bytes).keeping_disk();
        return Ok(Device::new(place, name, bytes, interrupt));
    }
    if path.is_file() {
        if destroy_data.is_some() {
            return Err(usage(format_args!(
                "{name}: is a file, which is only read; --destroy-data is only for block devices"
            )));
        }
        let place = Target::file(&roots, path)?;
        let bytes = place.size_bytes().unwrap_or(0);
        return Ok(Device::new(place, name, bytes, interrupt));
    }
    let device = BlockDevice::itself(&roots, path)?;
    let bytes = device.size_bytes();
    let place = match destroy_data {
        Some(typed) => Target::writable(consent::to_write(&device, Some(typed))?),
        None => Target::read_only(device),
    };
    Ok(Device::new(place, name, bytes, interrupt))
}
