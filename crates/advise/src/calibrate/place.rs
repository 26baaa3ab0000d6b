//! The device, file or directory that a user chooses to measure.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use iosched_disk::Profile;
use iosched_disk::io_cost::Family;
use iosched_kernel::directory::DirectoryError;
use iosched_kernel::file::FileError;
use iosched_kernel::{BlockDevice, FindError, Refusal, Roots, StateDirectory, StateError, Target, consent};
use iosched_workload::Trace;
use iosched_workload::outcome::Note;

use super::device::Device;

/// An error of the device, file or directory to measure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The request is invalid.
    #[error("{0}")]
    Wrong(String),
    /// The free space of the directory is unknown.
    #[error("{place}: {error}")]
    FreeSpace {
        /// The directory.
        place: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The device was not found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Writing to the device is not allowed.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The state directory, which records the files that iosched creates, cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Returns whether `name` is the name of a profile. iosched then measures the profile's model
/// instead of a device.
#[must_use]
pub fn is_model(name: &str) -> bool {
    let is_known = Profile::names().any(|known| known.eq_ignore_ascii_case(name));
    name.ends_with(".toml") || is_known || Family::member(name).is_some()
}

/// A device, file or directory to measure.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// A device, a file or a directory.
    pub name: &'a str,
    /// The same device, if its data may be destroyed.
    pub destroy_data: Option<&'a Path>,
    /// Size of the file that iosched creates in a directory, MiB.
    pub file_size_mib: u64,
}

/// Allowed sizes of the file that iosched creates in a directory, MiB.
pub const FILE_SIZE_MIB: RangeInclusive<u64> = 64..=16_777_216;
/// Default size of the file, MiB.
pub const FILE_SIZE_MIB_DEFAULT: u64 = 4096;
/// Divisor of the free space: the file system uses this part of the space for metadata.
const KEPT_SHARE: u64 = 20;

/// Returns the size of the largest file for which a directory with `free_mib` has room, MiB.
const fn fitting_mib(free_mib: u64) -> u64 {
    free_mib - free_mib / KEPT_SHARE
}

/// Returns the option that `iosched advise` needs for a file in a directory with `free_bytes`. The
/// option is empty if the default size fits. `None` if no allowed size fits.
#[must_use]
pub fn size_option(free_bytes: u64) -> Option<String> {
    let free_mib = free_bytes >> 20;
    if free_mib >= FILE_SIZE_MIB_DEFAULT {
        return Some(String::new());
    }
    let fits_mib = fitting_mib(free_mib);
    FILE_SIZE_MIB.contains(&fits_mib).then(|| format!("--file-size {fits_mib}"))
}

/// Checks that a directory has room for the file before iosched creates the file. `trace` is the
/// trace to run in the file, if any. Error messages end with `instead`, which names an option
/// without a file.
///
/// # Errors
/// There is too little room. The message says which size fits.
pub fn check_room(place: &Target, file_size_mib: u64, trace: Option<&Trace>, instead: &str) -> Result<(), PlaceError> {
    let free = place.free_bytes().map_err(|error| PlaceError::FreeSpace { place: place.to_string(), error })?;
    let Some(free_mib) = free.map(|bytes| bytes >> 20).filter(|free_mib| *free_mib < file_size_mib) else {
        return Ok(());
    };
    let fits_mib = fitting_mib(free_mib);
    let remedy = if FILE_SIZE_MIB.contains(&fits_mib) {
        let effect = |trace: &Trace| {
            let capacity_sectors = fits_mib << 11;
            let fit = trace.fit_on(capacity_sectors);
            Note::of_fit(fit, trace.end_sector(), capacity_sectors).map(|note| format!(" (then {note})"))
        };
        let effect = trace.and_then(effect).unwrap_or_default();
        format!("add --file-size {fits_mib}{effect}{instead}")
    } else {
        format!("free some space: the file needs at least {} MiB{instead}", FILE_SIZE_MIB.start())
    };
    Err(PlaceError::Wrong(format!(
        "{place}: the file for the measurement needs {file_size_mib} MiB (--file-size), but only {free_mib} MiB are \
         free; {remedy}"
    )))
}

/// Opens the device, file or directory to measure. Writing
/// to a device requires its name in `destroy_data`.
///
/// # Errors
/// The device does not exist, or cannot be read or written as the request requires.
pub fn open_device<'i>(named: &Place<'_>, interrupt: &'i AtomicBool) -> Result<Device<'i>, PlaceError> {
    let &Place { name, destroy_data, file_size_mib } = named;
    let (roots, path) = (Roots::default(), Path::new(name));
    if path.is_dir() {
        if destroy_data.is_some() {
            return Err(PlaceError::Wrong(format!(
                "{name}: this is a directory; --destroy-data is only for block devices"
            )));
        }
        let bytes = file_size_mib << 20;
        let state = StateDirectory::usual()?;
        let place = Target::directory(&roots, path, &state)?.with_disk_bytes(bytes).keeping_disk();
        check_room(&place, file_size_mib, None, "")?;
        return Ok(Device::new(place, name, bytes, interrupt));
    }
    if path.is_file() {
        if destroy_data.is_some() {
            return Err(PlaceError::Wrong(format!(
                "{name}: this is a file, and iosched does not write to files that you name; --destroy-data is only for \
                 block devices"
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
