//! Stands for the sockets where the feature `vhost` is off: there is no way to get one.

use std::convert::Infallible;

use super::{Door, VhostError};
use crate::Handle;
use crate::nbd::Exports;

/// Sockets that virtual machines connect to: there are none in this build.
pub struct Sockets(Infallible);

/// Serves nothing.
///
/// # Errors
/// Always.
pub fn serve(_: &Handle, _: &Exports, _: Vec<Door>) -> Result<Sockets, VhostError> {
    Err(VhostError::NotBuilt)
}

impl Sockets {
    /// What a person should know.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        match self.0 {}
    }
}
