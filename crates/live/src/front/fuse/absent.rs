//! Stands for the session where the feature `fuse` is off: there is no way to get one.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::mountpoint::{MountError, Unmounter};
use super::{MountOptions, check};
use crate::Handle;

/// A disk that is mounted: there is none in this build.
pub struct Mounted(Infallible);

/// Mounts nothing.
///
/// # Errors
/// Always.
pub fn mount(disk: &Handle, options: &MountOptions) -> Result<Mounted, MountError> {
    check(disk.name(), &options.directory)?;
    Err(MountError::NotBuilt)
}

impl Mounted {
    /// What unmounts it, from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        match self.0 {}
    }

    /// Where.
    #[must_use]
    pub fn directory(&self) -> &Path {
        match self.0 {}
    }

    /// Waits until it is unmounted.
    ///
    /// # Errors
    /// None.
    pub fn wait(self) -> io::Result<()> {
        match self.0 {}
    }
}
