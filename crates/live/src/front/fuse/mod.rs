//! A served disk as a file system. `DIR/<name>` is the disk as one file. `DIR/block/<name>/` is the
//! disk's control tree.
//!
//! The file has the disk's size and no page cache. Each read and write passes through the scheduler
//! as a request of the calling process, with the ioprio of this process. The kernel gets the answer
//! after the disk has completed the request. `fsync` is a flush. A write with `O_SYNC` or `O_DSYNC`
//! has FUA. Punching a hole is a trim. Zeroing a range is a write of zeroes.
//!
//! Mounting needs the feature `fuse`. Without it, [`check`] returns an error.

mod mountpoint;
#[cfg_attr(not(feature = "fuse"), path = "../absent/fuse.rs")]
mod session;

use std::path::{Path, PathBuf};

pub use mountpoint::{MountError, Unmounted, Unmounter, User};
pub use session::{Mounted, mount};

/// Options for mounting a served disk with FUSE.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Directory of the mount.
    pub directory: PathBuf,
    /// Whether other users may also use the disk.
    pub allow_other: bool,
    /// Whether the disk is read-only.
    pub read_only: bool,
}

/// Checks whether a disk of this name can be mounted on `directory`. Returns the full path of the
/// directory.
///
/// # Errors
/// The disk cannot be mounted there. In a build without the feature `fuse`, no disk can be mounted.
pub fn check(name: &str, directory: &Path) -> Result<PathBuf, MountError> {
    if !cfg!(feature = "fuse") {
        return Err(MountError::NotBuilt);
    }
    if name.is_empty() || name.contains('/') || [".", "..", "block"].contains(&name) {
        return Err(MountError::Name { name: name.to_owned() });
    }
    mountpoint::check(directory)
}
