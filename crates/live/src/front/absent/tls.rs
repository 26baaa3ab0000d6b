//! Replaces TLS in a build without the feature `tls`: certificates cannot be loaded, so no session can start.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Received, TlsFiles};

/// A server's certificates: there are none in this build.
#[derive(Debug)]
pub enum ServerConfig {}

/// Why certificates cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// This build has no TLS.
    #[error("this build of iosched has no TLS; install a package, or build it with --features full")]
    NotBuilt,
}

/// Why a connection's TLS failed: it does not begin.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {}

/// One connection's TLS: there is none in this build.
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
