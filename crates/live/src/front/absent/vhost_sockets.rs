//! Replacement for the sockets of virtual machines in a build without the feature `vhost`.

use std::convert::Infallible;

use super::{Door, VhostError};
use crate::Handle;
use crate::nbd::Exports;

/// Sockets for virtual machines. They cannot exist in this build.
pub struct Sockets(Infallible);

/// Returns an error.
///
/// # Errors
/// Always [`VhostError::NotBuilt`].
pub fn serve(_: &Handle, _: &Exports, _: Vec<Door>) -> Result<Sockets, VhostError> {
    Err(VhostError::NotBuilt)
}

impl Sockets {
    /// Returns warnings about the sockets. This function cannot be called in this build.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        match self.0 {}
    }
}
