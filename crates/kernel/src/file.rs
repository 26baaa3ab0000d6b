//! Existing files that a workload reads as if they were a device. Checks reject files whose reads
//! do not measure the disk below.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, SeekFrom, seek};
use rustix::io::Errno;

use crate::block::{BlockDevice, DeviceNumber};
use crate::roots::Roots;

/// Smallest size of a file, bytes. A cache of the disk soon holds smaller files completely.
const BYTES_MIN: u64 = 64 << 20;
/// Divisor that limits the holes: their size may be at most the file's size divided by this number.
const HOLES_PART: u64 = 64;
/// Unit of sizes, bytes. Direct I/O needs whole blocks of this size.
const BLOCK_BYTES: u64 = 4096;

/// A file that is only read.
#[derive(Debug)]
pub(crate) struct FileTarget {
    path: PathBuf,
    /// Open file. Reads use this file even if its name changes.
    file: File,
    bytes: u64,
    /// Block device of the file system, if there is one on this machine.
    device: Option<BlockDevice>,
}

/// Reason why a file cannot stand for a device.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses to open or examine the file.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// The path is not a regular file.
    #[error("{}: this is not a regular file; give a file, a block device or a directory", path.display())]
    NotRegular {
        /// Given path.
        path: PathBuf,
    },
    /// The file is so small that a cache would serve the reads.
    #[error(
        "{}: the file has {} MiB, which fits into a cache; give a file of at least {} MiB, or a directory, in \
         which iosched creates such a file",
        path.display(), bytes >> 20, BYTES_MIN >> 20
    )]
    TooSmall {
        /// Path of the file.
        path: PathBuf,
        /// Size of the file, bytes.
        bytes: u64,
    },
    /// A part of the file is not stored on the disk.
    #[error(
        "{}: {hole_bytes} of the {bytes} bytes of this file are holes, which are not on the disk; give a file \
         without holes (copy the file with `cp --sparse=never`), or a directory, in which iosched creates a file",
        path.display()
    )]
    Holes {
        /// Path of the file.
        path: PathBuf,
        /// Size of the holes, bytes.
        hole_bytes: u64,
        /// Size of the file, bytes.
        bytes: u64,
    },
    /// The file can only be read through the page cache.
    #[error(
        "{}: the file system of this file does not allow reads that bypass the page cache ({error}), so iosched \
         would measure memory; give a file on a disk",
        path.display()
    )]
    NotDirect {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
}

impl FileTarget {
    /// Opens the file `path`. First checks that reads of the file reach a disk.
    pub(crate) fn open(roots: &Roots, path: &Path) -> Result<Self, FileError> {
        let failed = |error| FileError::Io { path: path.to_owned(), error };
        // The file is opened for reading only after its type is known. Opening a pipe would block,
        // and opening a tape would move the tape.
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

    /// Opens the same file once more for reading, with `flags`.
    pub(crate) fn open_again(&self, flags: OFlags) -> io::Result<File> {
        open_again(&self.file, flags)
    }

    /// Returns the open file.
    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size in whole blocks, bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the block device of the file system.
    pub(crate) const fn device(&self) -> Option<&BlockDevice> {
        self.device.as_ref()
    }
}

/// Opens an open file once more for reading. This works even if the file's name now belongs to
/// another file.
fn open_again(file: &File, flags: OFlags) -> io::Result<File> {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(descriptor, flags | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
}

/// Returns the number of written bytes among the first `bytes` bytes, according to the file system.
/// Space that is allocated but not written does not count.
fn written_bytes(file: &File, bytes: u64) -> io::Result<u64> {
    let (mut at, mut written) = (0, 0);
    while at < bytes {
        let begins = match seek(file, SeekFrom::Data(at)) {
            Ok(begins) => begins.min(bytes),
            // The rest of the file is a hole.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(begins))?.min(bytes);
        written += at - begins;
    }
    Ok(written)
}
