//! What a workload is run on: a block device, a file that is only read, or files of its own in a directory.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::block::{BlockDevice, DeviceNumber};
use crate::consent::Consent;
use crate::directory::{self, DirectoryError, OwnDirectory};
use crate::file::{FileError, FileTarget};
use crate::held::Held;
use crate::roots::Roots;
use crate::state::StateDirectory;

/// What a workload is run on.
#[derive(Debug)]
pub struct Target {
    pub(crate) place: OpenTarget,
}

#[derive(Debug)]
pub(crate) enum OpenTarget {
    /// A device that is only read.
    ReadOnly(BlockDevice),
    /// A device whose data may be destroyed.
    Writable(Consent),
    /// A file of somebody's, which is only read.
    File(FileTarget),
    Directory(DirectoryTarget),
}

/// A directory that was named.
#[derive(Debug)]
pub(crate) struct DirectoryTarget {
    given: PathBuf,
    place: Arc<Held>,
    /// A directory of our own in it; `None` if no workload of ours runs there.
    own_directory: Option<OwnDirectory>,
    /// What the file system is on, if that is one block device of this machine.
    device: Option<BlockDevice>,
    disk_bytes: Option<u64>,
    /// In which directory the file that stands for a device stays; `None`: each workload has one of
    /// its own.
    kept_disk: Option<PathBuf>,
    next: AtomicU32,
}

impl Target {
    /// A block device that is only read.
    #[must_use]
    pub const fn read_only(device: BlockDevice) -> Self {
        Self { place: OpenTarget::ReadOnly(device) }
    }

    /// A block device whose data is destroyed if the workload writes.
    #[must_use]
    pub const fn writable(consent: Consent) -> Self {
        Self { place: OpenTarget::Writable(consent) }
    }

    /// The file `path`, which is only read, past the page cache, and is there with all its data.
    ///
    /// # Errors
    /// It is no regular file, is too small to tell of a disk, has holes, or cannot be read past the page cache.
    pub fn file(roots: &Roots, path: &Path) -> Result<Self, FileError> {
        Ok(Self { place: OpenTarget::File(FileTarget::open(roots, path)?) })
    }

    /// Files of our own in the directory `path`. They are in a directory of their own there, which `state` keeps in
    /// mind and which is removed with the target.
    ///
    /// # Errors
    /// `path` is no directory, or nothing can be made in it; as root, another user may rename files
    /// in it.
    pub fn directory(roots: &Roots, path: &Path, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let place = directory::open(path)?;
        let own_directory = OwnDirectory::create_in(&place, state)?;
        Ok(Self::in_directory(roots, path, place, Some(own_directory)))
    }

    /// The directory `path`, for a command of the user's: iosched makes nothing there.
    ///
    /// # Errors
    /// `path` is no directory.
    pub fn directory_of_command(roots: &Roots, path: &Path) -> Result<Self, DirectoryError> {
        Ok(Self::in_directory(roots, path, directory::open(path)?, None))
    }

    fn in_directory(roots: &Roots, path: &Path, place: Arc<Held>, own_directory: Option<OwnDirectory>) -> Self {
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

    /// Of a directory: the size of the file that stands for a device, where a workload addresses one. Without it, what
    /// the workload reaches to, at most 1 GiB and half of the room there is.
    #[must_use]
    pub fn with_disk_bytes(mut self, bytes: u64) -> Self {
        if let OpenTarget::Directory(directory) = &mut self.place {
            directory.disk_bytes = Some(bytes);
        }
        self
    }

    /// Of a directory: the file that stands for a device is made and filled once, for all workloads, and is removed
    /// with the target. It has the size that [`with_disk_bytes`](Self::with_disk_bytes) says, or that the first
    /// workload needs.
    #[must_use]
    pub fn keeping_disk(mut self) -> Self {
        if let OpenTarget::Directory(directory) = &mut self.place {
            directory.kept_disk = Some(directory.fresh());
        }
        self
    }

    /// The block device that serves it; `None` if that is not one of this machine.
    #[must_use]
    pub const fn block_device(&self) -> Option<&BlockDevice> {
        match &self.place {
            OpenTarget::ReadOnly(device) => Some(device),
            OpenTarget::Writable(consent) => Some(consent.device()),
            OpenTarget::File(file) => file.device(),
            OpenTarget::Directory(directory) => directory.device.as_ref(),
        }
    }

    /// Whether a workload that writes may run on it.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        !matches!(self.place, OpenTarget::ReadOnly(_) | OpenTarget::File(_))
    }

    /// Size of the device or file that is only read, or may be written to; `None` of a directory, in which files have
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

    /// Of a directory: free space in its file system, bytes.
    ///
    /// # Errors
    /// The file system does not tell.
    pub fn free_bytes(&self) -> io::Result<Option<u64>> {
        match &self.place {
            OpenTarget::Directory(directory) => directory.available_bytes().map(Some),
            OpenTarget::ReadOnly(_) | OpenTarget::Writable(_) | OpenTarget::File(_) => Ok(None),
        }
    }

    /// Whether it is a directory, so that programs that work on files may run on it.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        matches!(self.place, OpenTarget::Directory(_))
    }
}

impl Target {
    /// Whether the file that stands for a device stays for the next workload.
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
    /// The directory as it was named.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// Our own directory.
    pub(crate) fn own_directory(&self) -> io::Result<&Arc<Held>> {
        let none = || io::Error::other("is the directory of a command; workloads of iosched do not run in it");
        self.own_directory.as_ref().map(OwnDirectory::held).ok_or_else(none)
    }

    /// A name in our own directory that nobody else uses.
    pub(crate) fn fresh(&self) -> PathBuf {
        self.next.fetch_add(1, Ordering::Relaxed).to_string().into()
    }

    /// The directory in which the file that stands for a device stays, if it does.
    pub(crate) fn kept_disk(&self) -> Option<&Path> {
        self.kept_disk.as_deref()
    }

    /// What was asked of the file that stands for a device, bytes.
    pub(crate) const fn disk_bytes(&self) -> Option<u64> {
        self.disk_bytes
    }

    /// Room in the file system, bytes.
    pub(crate) fn available_bytes(&self) -> io::Result<u64> {
        let about = rustix::fs::fstatvfs(self.place.file())?;
        Ok(about.f_bavail.saturating_mul(about.f_frsize))
    }
}
