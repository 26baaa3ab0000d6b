//! Files of somebody's that are read as if they were a device: whether reading one tells anything about the disk below
//! it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;

use crate::block::{BlockDevice, DeviceNumber};
use crate::roots::Roots;

/// Least size, bytes: what is smaller soon comes from a cache of the disk.
const BYTES_MIN: u64 = 64 << 20;
/// A file may have one part in so many in holes.
const HOLES_PART: u64 = 64;
/// Sizes are counted in whole blocks of so many bytes, as direct I/O needs them.
const BLOCK_BYTES: u64 = 4096;

/// A file that is only read.
#[derive(Debug)]
pub(crate) struct FileTarget {
    path: PathBuf,
    /// Open as long as this lives: what is read is this file, whatever its name becomes.
    file: File,
    bytes: u64,
    /// What its file system is on, if that is one block device of this machine.
    device: Option<BlockDevice>,
}

/// Why a file cannot stand for a device.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Something else has that name.
    #[error("{}: is not a regular file; give a file, a block device or a directory", path.display())]
    NotRegular {
        /// What has it.
        path: PathBuf,
    },
    /// It would be read from a cache.
    #[error(
        "{}: has {} MiB, which a cache can hold; give a file of at least {} MiB, or a directory, in which iosched \
         creates one",
        path.display(), bytes >> 20, BYTES_MIN >> 20
    )]
    TooSmall {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Part of it is nowhere on the disk.
    #[error(
        "{}: {hole_bytes} of its {bytes} bytes were never written, so the disk does not read them; give a full file, \
         as `cp --sparse=never` makes one, or a directory, in which iosched creates one", path.display()
    )]
    Holes {
        /// The file.
        path: PathBuf,
        /// What is missing.
        hole_bytes: u64,
        /// Its size.
        bytes: u64,
    },
    /// It can only be read through the page cache.
    #[error(
        "{}: its file system does not allow reads past the page cache ({error}), so iosched would measure memory; \
         give a file on a disk",
        path.display()
    )]
    NotDirect {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl FileTarget {
    /// The file of that name, once it is known that reading it means reading a disk.
    pub(crate) fn open(roots: &Roots, path: &Path) -> Result<Self, FileError> {
        let failed = |error| FileError::Io { path: path.to_owned(), error };
        // It is opened for reading once it is known: opening a pipe waits, and opening a tape winds
        // it.
        let named = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let named = File::from(named.map_err(|error| failed(error.into()))?);
        let about = named.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(FileError::NotRegular { path: path.to_owned() });
        }
        let file = open_again(&named, OFlags::empty()).map_err(failed)?;
        let bytes = about.len() / BLOCK_BYTES * BLOCK_BYTES;
        if bytes < BYTES_MIN {
            return Err(FileError::TooSmall { path: path.to_owned(), bytes });
        }
        let hole_bytes = bytes - written_bytes(&file, bytes).map_err(failed)?;
        if hole_bytes > bytes / HOLES_PART {
            return Err(FileError::Holes { path: path.to_owned(), hole_bytes, bytes });
        }
        let device = BlockDevice::serving(roots, DeviceNumber::from_raw(about.dev()));
        let target = Self { path: path.to_owned(), file, bytes, device };
        let direct = target.open_again(OFlags::DIRECT);
        direct.map_err(|error| FileError::NotDirect { path: path.to_owned(), error })?;
        Ok(target)
    }

    /// Opens the same file once more to read it, with `flags`.
    pub(crate) fn open_again(&self, flags: OFlags) -> io::Result<File> {
        open_again(&self.file, flags)
    }

    /// The open file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in whole blocks, bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What its file system is on.
    pub(crate) const fn device(&self) -> Option<&BlockDevice> {
        self.device.as_ref()
    }
}

/// Opens an open file once more to read it, whatever its name leads to by now.
fn open_again(file: &File, flags: OFlags) -> io::Result<File> {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(descriptor, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// How much of the first `bytes` is there, as far as the file system tells: what was only set aside is not.
fn written_bytes(file: &File, bytes: u64) -> io::Result<u64> {
    let (mut at, mut written) = (0, 0);
    while at < bytes {
        let begins = match seek(file, SeekFrom::Data(at)) {
            Ok(begins) => begins.min(bytes),
            // Nothing but a hole is left.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(begins))?.min(bytes);
        written += at - begins;
    }
    Ok(written)
}
