//! Replacement for the session of a mount in a build without the feature `fuse`. Nothing can be
//! mounted.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::mountpoint::{MountError, Unmounter};
use super::{MountOptions, check};
use crate::Handle;

/// A mounted disk. It cannot exist in this build.
pub struct Mounted(Infallible);

/// Returns an error.
///
/// # Errors
/// [`MountError::NotBuilt`], or the error of [`check`].
pub fn mount(disk: &Handle, options: &MountOptions) -> Result<Mounted, MountError> {
    check(disk.name(), &options.directory)?;
    Err(MountError::NotBuilt)
}

impl Mounted {
    /// Returns a handle that unmounts the disk from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        match self.0 {}
    }

    /// Returns the directory where the disk is mounted.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self.0 {}
    }

    /// Waits until the disk is unmounted.
    ///
    /// # Errors
    /// This function never returns an error.
    pub fn wait(self) -> io::Result<()> {
        match self.0 {}
    }
}
