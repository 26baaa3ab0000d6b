//! Finds the device that a name, a device file, a directory or a file stands for.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{BlockDevice, DeviceNumber};
use crate::roots::{Roots, names, value};

use super::usage::mounts;

/// Reason why a name or path stands for no device.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is no block device of this name.
    #[error("{name}: there is no such block device; available: {known}")]
    Unknown {
        /// Requested name.
        name: String,
        /// Names of the existing disks.
        known: String,
    },
    /// The path cannot be examined.
    #[error("{path}: {error}")]
    Io {
        /// Given path.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// The path is in a file system without a block device.
    #[error("{path}: this path is in a file system ({kind}) that is not on a block device of this machine")]
    NoDevice {
        /// Given path.
        path: PathBuf,
        /// Type of the file system, or its device number if the type is not known.
        kind: String,
    },
    /// The path is not a device. The file at the path may be stored on one.
    #[error(
        "{path}: this is a {kind}, not a block device{}; give a block device or a directory. In a directory, iosched \
         writes only to files that it creates",
        on(below.as_deref())
    )]
    NotADevice {
        /// Given path.
        path: PathBuf,
        /// Kind of file.
        kind: &'static str,
        /// Device file of the device that the path is stored on, if known.
        below: Option<PathBuf>,
    },
}

fn on(below: Option<&Path>) -> String {
    below.map_or_else(String::new, |path| format!(" (the path is on the device {})", path.display()))
}

/// Returns the kind of a file that is not a block device.
fn kind_of(kind: std::fs::FileType) -> &'static str {
    match () {
        () if kind.is_file() => "regular file",
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => "character device",
    }
}

impl BlockDevice {
    /// Returns every disk in natural order, without partitions.
    #[must_use]
    pub fn disks(roots: &Roots) -> Vec<Self> {
        names(&roots.sys("block")).iter().filter_map(|name| Self::named(roots, name).ok()).collect()
    }

    /// Returns the device of this name in `/sys/class/block`.
    ///
    /// # Errors
    /// There is no such device.
    pub fn named(roots: &Roots, name: &str) -> Result<Self, FindError> {
        let sysfs_name = name.replace('/', "!");
        let directory = roots.sys("class/block").join(&sysfs_name);
        let is_name = !sysfs_name.is_empty() && !sysfs_name.starts_with('.');
        let number = value(&directory.join("dev")).and_then(|text| text.parse().ok());
        let Some(number) = number.filter(|_| is_name) else {
            return Err(FindError::Unknown { name: name.to_owned(), known: names(&roots.sys("block")).join(", ") });
        };
        let disk = if directory.join("partition").exists() { disk_of_partition(roots, &sysfs_name) } else { None };
        Ok(Self { roots: roots.clone(), name: sysfs_name, number, disk })
    }

    /// Returns the device with this number.
    #[must_use]
    pub fn numbered(roots: &Roots, number: DeviceNumber) -> Option<Self> {
        let link = roots.sys(format!("dev/block/{number}"));
        let name = std::fs::canonicalize(link).ok()?.file_name()?.to_str()?.to_owned();
        Self::named(roots, &name).ok()
    }

    /// Returns the device that `given` identifies: a name in `/sys/class/block`, a device file, or
    /// a file or directory on the device.
    ///
    /// # Errors
    /// There is no such device or file. Or the file is in a file system that is not on a block
    /// device of this machine.
    pub fn find(roots: &Roots, given: &Path) -> Result<Self, FindError> {
        let name = given.to_str().filter(|name| !name.contains('/'));
        if let Some(device) = name.and_then(|name| Self::named(roots, name).ok()) {
            return Ok(device);
        }
        let metadata = match std::fs::metadata(given) {
            Ok(metadata) => metadata,
            Err(error) => match name {
                Some(name) if error.kind() == io::ErrorKind::NotFound => return Self::named(roots, name),
                _ => return Err(FindError::Io { path: given.to_owned(), error }),
            },
        };
        let is_device = metadata.file_type().is_block_device();
        let raw = if is_device { metadata.rdev() } else { metadata.dev() };
        let number = DeviceNumber::from_raw(raw);
        Self::serving(roots, number).ok_or_else(|| {
            let mounted = mounts(roots).into_iter().find(|mount| mount.number == number);
            let kind = mounted.map_or_else(|| format!("device {number}"), |mount| mount.kind);
            FindError::NoDevice { path: given.to_owned(), kind }
        })
    }

    /// Returns the device of a file system whose files have this device number.
    pub(crate) fn serving(roots: &Roots, number: DeviceNumber) -> Option<Self> {
        Self::numbered(roots, number).or_else(|| Self::mounted_as(roots, number))
    }

    /// Returns the device whose name or device file is `given`. Does not accept a file on a device.
    ///
    /// # Errors
    /// There is no such device or file, or the path is not a device.
    pub fn itself(roots: &Roots, given: &Path) -> Result<Self, FindError> {
        let found = Self::find(roots, given);
        let is_name = given.to_str().is_some_and(|name| !name.contains('/') && Self::named(roots, name).is_ok());
        match std::fs::metadata(given).map(|about| about.file_type()) {
            Ok(kind) if !is_name && !kind.is_block_device() => Err(FindError::NotADevice {
                path: given.to_owned(),
                kind: kind_of(kind),
                below: found.ok().map(|device| device.path()),
            }),
            _ => found,
        }
    }

    /// Returns the device of a file system with its own device number, such as btrfs. The mount's
    /// source names the device.
    fn mounted_as(roots: &Roots, number: DeviceNumber) -> Option<Self> {
        let mount = mounts(roots).into_iter().find(|mount| mount.number == number)?;
        Self::of_device_file(roots, Path::new(&mount.source))
    }

    /// Returns the device of a device file, or of a link to one, such as `/dev/mapper/root`.
    pub(super) fn of_device_file(roots: &Roots, path: &Path) -> Option<Self> {
        let name = path.strip_prefix("/dev").ok()?;
        let file = std::fs::canonicalize(roots.dev(name)).ok();
        let real = file.and_then(|file| Some(file.strip_prefix(roots.dev("").canonicalize().ok()?).ok()?.to_owned()));
        Self::named(roots, real.as_deref().unwrap_or(name).to_str()?).ok()
    }
}

/// Returns the disk of a partition. In sysfs, the directory of a partition is in the directory of
/// its disk.
fn disk_of_partition(roots: &Roots, name: &str) -> Option<String> {
    let real = std::fs::canonicalize(roots.sys("class/block").join(name)).ok()?;
    Some(real.parent()?.file_name()?.to_str()?.to_owned())
}
