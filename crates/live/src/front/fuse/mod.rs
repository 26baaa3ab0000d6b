//! A live disk as a file system: `DIR/<name>` is the disk as one file, and `DIR/block/<name>/` its control tree.
//!
//! The file has the disk's size and no page cache: each read and write goes through the elevator as a request of the
//! process that made it, with that process' ioprio, and is answered when the disk has done it. `fsync` is a flush,
//! `O_SYNC` and `O_DSYNC` are force-unit-access, a punched hole is a trim, a zeroed range is written as zeroes.
//!
//! All of it but the names needs the feature `fuse`: without it nothing can be mounted, and [`check`] says so.

mod mountpoint;
#[cfg_attr(not(feature = "fuse"), path = "../absent/fuse.rs")]
mod session;

use std::path::{Path, PathBuf};

pub use mountpoint::{MountError, Unmounted, Unmounter, User};
pub use session::{Mounted, mount};

/// How a disk is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Where.
    pub directory: PathBuf,
    /// Whether other users may use the disk, too.
    pub allow_other: bool,
    /// Whether the disk can only be read.
    pub read_only: bool,
}

/// Whether a disk of that name can be mounted on `directory`; that one by its full name.
///
/// # Errors
/// If not; none can in a build without the feature `fuse`.
pub fn check(name: &str, directory: &Path) -> Result<PathBuf, MountError> {
    if !cfg!(feature = "fuse") {
        return Err(MountError::NotBuilt);
    }
    if name.is_empty() || name.contains('/') || [".", "..", "block"].contains(&name) {
        return Err(MountError::Name { name: name.to_owned() });
    }
    mountpoint::check(directory)
}
