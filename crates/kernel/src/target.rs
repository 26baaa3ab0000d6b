//! Targets of a workload: a block device, a file that is only read, or new files in a directory.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::block::{BlockDevice, DeviceNumber};
use crate::consent::Consent;
use crate::directory::{self, DirectoryError, OwnDirectory};
use crate::file::{FileError, FileTarget};
use crate::roots::Roots;
use crate::state::StateDirectory;
use iosched_system::open_directory::OpenDirectory;

/// Device, file or directory on which a workload runs.
#[derive(Debug)]
pub struct Target {
    pub(crate) place: OpenTarget,
}

#[derive(Debug)]
pub(crate) enum OpenTarget {
    /// A device that is only read.
    ReadOnly(BlockDevice),
    /// A device that a workload may write to, which destroys its data.
    Writable(Consent),
    /// A user's file, which is only read.
    File(FileTarget),
    Directory(DirectoryTarget),
}

/// A directory that a person named.
#[derive(Debug)]
pub(crate) struct DirectoryTarget {
    given: PathBuf,
    place: Arc<OpenDirectory>,
    /// Directory that iosched created inside the given directory. `None` if only a user's command
    /// runs there.
    own_directory: Option<OwnDirectory>,
    /// Block device of the file system, if there is one on this machine.
    device: Option<BlockDevice>,
    disk_bytes: Option<u64>,
    /// Name of the directory with the kept file that stands for a device. If `None`, each workload
    /// has its own file.
    kept_disk: Option<PathBuf>,
    next: AtomicU32,
}

impl Target {
    /// Returns a target that is a block device, which is only read.
    #[must_use]
    pub const fn read_only(device: BlockDevice) -> Self {
        Self { place: OpenTarget::ReadOnly(device) }
    }

    /// Returns a target that is a block device. A workload that writes destroys its data.
    #[must_use]
    pub const fn writable(consent: Consent) -> Self {
        Self { place: OpenTarget::Writable(consent) }
    }

    /// Returns a target that is the existing file `path`. The file is only read, with direct I/O.
    ///
    /// # Errors
    /// The file is not regular, is too small to measure a disk, has holes, or does not support
    /// direct I/O.
    pub fn file(roots: &Roots, path: &Path) -> Result<Self, FileError> {
        Ok(Self { place: OpenTarget::File(FileTarget::open(roots, path)?) })
    }

    /// Returns a target with new files in the directory `path`. The files are in a subdirectory
    /// that `state` records and that is removed with the target.
    ///
    /// # Errors
    /// - `path` is not a directory, or nothing can be created in it.
    /// - This process is root, and another user may rename files in `path`.
    pub fn directory(roots: &Roots, path: &Path, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let place = directory::open(path)?;
        let own_directory = OwnDirectory::create_in(&place, state)?;
        Ok(Self::in_directory(roots, path, place, Some(own_directory)))
    }

    /// Returns the directory `path` as target of a user's command. iosched creates nothing there.
    ///
    /// # Errors
    /// `path` is not a directory.
    pub fn directory_of_command(roots: &Roots, path: &Path) -> Result<Self, DirectoryError> {
        Ok(Self::in_directory(roots, path, directory::open(path)?, None))
    }

    fn in_directory(
        roots: &Roots,
        path: &Path,
        place: Arc<OpenDirectory>,
        own_directory: Option<OwnDirectory>,
    ) -> Self {
        let device = BlockDevice::serving(roots, DeviceNumber::from_raw(place.id().device));
        let (given, next) = (path.to_owned(), AtomicU32::new(0));
        let (disk_bytes, kept_disk) = (None, None);
        Self {
            place: OpenTarget::Directory(DirectoryTarget {
                given,
                place,
                own_directory,
                device,
                disk_bytes,
                kept_disk,
                next,
            }),
        }
    }

    /// Sets the size of the file that stands for a device in a directory. By default, the file has
    /// the size that the workload needs, but at most 1 GiB and half of the free space.
    #[must_use]
    pub fn with_disk_bytes(mut self, bytes: u64) -> Self {
        if let OpenTarget::Directory(directory) = &mut self.place {
            directory.disk_bytes = Some(bytes);
        }
        self
    }

    /// Keeps the file that stands for a device in a directory. The file is created and filled once
    /// for all workloads, and is removed with the target.
    /// [`with_disk_bytes`](Self::with_disk_bytes) sets its size. Otherwise, the size is what the
    /// first workload needs.
    #[must_use]
    pub fn keeping_disk(mut self) -> Self {
        if let OpenTarget::Directory(directory) = &mut self.place {
            directory.kept_disk = Some(directory.fresh());
        }
        self
    }

    /// Removes the files that iosched created for the target. Dropping the value does the same
    /// without an error.
    ///
    /// # Errors
    /// Another process replaced or moved the directory of the files, or a file cannot be removed.
    pub fn remove(self) -> Result<(), DirectoryError> {
        match self.place {
            OpenTarget::Directory(DirectoryTarget { own_directory: Some(own_directory), .. }) => own_directory.remove(),
            _ => Ok(()),
        }
    }

    /// Returns the block device of the target. Returns `None` if this machine has no such device.
    #[must_use]
    pub const fn block_device(&self) -> Option<&BlockDevice> {
        match &self.place {
            OpenTarget::ReadOnly(device) => Some(device),
            OpenTarget::Writable(consent) => Some(consent.device()),
            OpenTarget::File(file) => file.device(),
            OpenTarget::Directory(directory) => directory.device.as_ref(),
        }
    }

    /// Returns whether a workload that writes may run on the target.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        !matches!(self.place, OpenTarget::ReadOnly(_) | OpenTarget::File(_))
    }

    /// Returns the size of the device or file. Returns `None` for a directory, in which files have
    /// the size that a workload needs.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        match &self.place {
            OpenTarget::ReadOnly(device) => Some(device.size_bytes()),
            OpenTarget::Writable(consent) => Some(consent.device().size_bytes()),
            OpenTarget::File(file) => Some(file.bytes()),
            OpenTarget::Directory(_) => None,
        }
    }

    /// Returns the free space in the file system of a directory, bytes. Returns `None` for other
    /// targets.
    ///
    /// # Errors
    /// The file system does not report it.
    pub fn free_bytes(&self) -> io::Result<Option<u64>> {
        match &self.place {
            OpenTarget::Directory(directory) => directory.available_bytes().map(Some),
            OpenTarget::ReadOnly(_) | OpenTarget::Writable(_) | OpenTarget::File(_) => Ok(None),
        }
    }

    /// Returns whether the target is a directory, so that programs that need files may run on it.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        matches!(self.place, OpenTarget::Directory(_))
    }
}

impl Target {
    /// Returns whether the file that stands for a device is kept for the next workload.
    pub(crate) fn keeps_disk(&self) -> bool {
        matches!(&self.place, OpenTarget::Directory(directory) if directory.kept_disk.is_some())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            OpenTarget::ReadOnly(device) => device.path().display().fmt(f),
            OpenTarget::Writable(consent) => consent.device().path().display().fmt(f),
            OpenTarget::File(file) => file.path().display().fmt(f),
            OpenTarget::Directory(directory) => directory.given.display().fmt(f),
        }
    }
}

impl DirectoryTarget {
    /// Returns the path of the directory as the user gave it.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// Returns the directory of iosched.
    pub(crate) fn own_directory(&self) -> io::Result<&Arc<OpenDirectory>> {
        let none = || {
            io::Error::other(
                "only the measured command uses this directory; iosched's own workloads do \
            not run in it",
            )
        };
        self.own_directory.as_ref().map(OwnDirectory::held).ok_or_else(none)
    }

    /// Returns a new name in the directory of iosched.
    pub(crate) fn fresh(&self) -> PathBuf {
        self.next.fetch_add(1, Ordering::Relaxed).to_string().into()
    }

    /// Returns the name of the directory with the kept file that stands for a device.
    pub(crate) fn kept_disk(&self) -> Option<&Path> {
        self.kept_disk.as_deref()
    }

    /// Returns the requested size of the file that stands for a device, bytes.
    pub(crate) const fn disk_bytes(&self) -> Option<u64> {
        self.disk_bytes
    }

    /// Returns the free space in the file system, bytes.
    pub(crate) fn available_bytes(&self) -> io::Result<u64> {
        free_bytes(self.place.file())
    }
}

/// Returns the free space in the file system of an open directory, bytes.
///
/// # Errors
/// The file system does not answer.
pub fn free_bytes(directory: impl AsFd) -> io::Result<u64> {
    let about = rustix::fs::fstatvfs(directory)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}
