//! Replacement for TLS in a build without the feature `tls`. Certificates cannot be loaded, so no
//! session can start.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Received, TlsFiles};

/// Configuration of a server. It cannot exist in this build.
#[derive(Debug)]
pub enum ServerConfig {}

/// Reason why certificates cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// This build has no TLS.
    #[error("this build of iosched has no TLS; install a package, or build it with --features full")]
    NotBuilt,
}

/// TLS error of a connection. It cannot occur in this build.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {}

/// TLS session of a connection. It cannot exist in this build.
#[derive(Debug)]
pub struct Session(Infallible);

pub(super) fn load(_: &TlsFiles) -> Result<Arc<ServerConfig>, TlsFilesError> {
    Err(TlsFilesError::NotBuilt)
}

impl Session {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        match *config {}
    }

    pub(super) fn receive(
        &mut self,
        _: &mut &[u8],
        _: &mut Vec<u8>,
        _: usize,
        _: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        match self.0 {}
    }

    pub(super) fn send(&mut self, _: &mut &[u8], _: &mut Vec<u8>, _: usize) -> Result<(), TlsError> {
        match self.0 {}
    }

    pub(super) fn finish(&mut self, _: &mut Vec<u8>) -> Result<(), TlsError> {
        match self.0 {}
    }

    pub(super) fn is_established(&self) -> bool {
        match self.0 {}
    }
}
