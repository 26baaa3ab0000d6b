//! Replaces the session of a mount in a build without the feature `fuse`: nothing can be mounted.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::mountpoint::{MountError, Unmounter};
use super::{MountOptions, check};
use crate::Handle;

/// A mounted disk; this build cannot have one.
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
    /// A handle that unmounts the disk from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        match self.0 {}
    }

    /// The directory where the disk is mounted.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self.0 {}
    }

    /// Waits until the disk is unmounted.
    ///
    /// # Errors
    /// None.
    pub fn wait(self) -> io::Result<()> {
        match self.0 {}
    }
}
