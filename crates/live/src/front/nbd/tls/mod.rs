//! TLS below the protocol: bytes received to plain bytes, plain bytes to bytes to send, both bounded.
//!
//! Decides nothing of when TLS starts: that is the handshake's ([`iosched_nbd::Progress::StartTls`]). Needs the feature
//! `tls`: without it, certificates cannot be loaded, and [`TlsFiles::load`] says so.

#[cfg(feature = "tls")]
mod key_size;
#[cfg_attr(not(feature = "tls"), path = "../../absent/tls.rs")]
mod session;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use session::{ServerConfig, TlsError, TlsFilesError};

/// Where a server's certificates are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate and those between it and a root, PEM.
    pub certificate: PathBuf,
    /// The certificate's private key, PEM.
    pub key: PathBuf,
    /// The roots of clients' certificates, PEM: clients without one of theirs are refused. `None`: clients need none.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// `server-cert.pem` and `server-key.pem` of a directory, as other NBD servers name them. If `ca-cert.pem` is
    /// there, too, or cannot be told to be absent, clients need a certificate of it: set [`Self::client_ca`] to `None`
    /// where they need none all the same.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        let client_ca = directory.join("ca-cert.pem");
        let absent = matches!(client_ca.try_exists(), Ok(false));
        Self {
            certificate: directory.join("server-cert.pem"),
            key: directory.join("server-key.pem"),
            client_ca: (!absent).then_some(client_ca),
        }
    }

    /// What a person should know of these files although they can be used: that others can read the key, or have made
    /// it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // What cannot be looked at is told when it is loaded.
        let Ok(key) = std::fs::metadata(&self.key) else { return Vec::new() };
        let (name, mode, owner) = (self.key.display(), key.mode() & 0o777, key.uid());
        let mut warnings = Vec::new();
        if mode & 0o077 != 0 {
            warnings.push(format!(
                "{name}: other users can read or change the private key (mode {mode:04o}): run chmod 600 {name}"
            ));
        }
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            warnings.push(format!("{name}: the private key belongs to another user (uid {owner}), who can change it"));
        }
        warnings
    }

    /// The configuration for all connections of a server: TLS 1.2 and 1.3, no resumption, so that nothing is kept of
    /// sessions that have ended.
    ///
    /// # Errors
    /// Which file is missing, unreadable or not what it should be; or that this build has no TLS.
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsFilesError> {
        session::load(self)
    }
}

/// What a client's bytes came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// More can come. If input is left, or `plain` is full: call again when there is room for plain bytes.
    Open,
    /// The client said that nothing more comes, so that nothing has been cut off.
    Closed,
}

/// What carries the protocol's bytes.
#[derive(Debug)]
pub enum Transport {
    /// They go as they are; callers may as well pass it by.
    Plain,
    /// Inside TLS.
    Tls(Box<session::Session>),
}

impl Transport {
    /// TLS as a server, from the client's first message on.
    ///
    /// # Errors
    /// If the configuration does not do.
    pub fn tls(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        session::Session::new(config).map(|session| Self::Tls(Box::new(session)))
    }

    /// Takes received bytes from the front of `input` and appends plain ones to `plain`, which does not grow beyond
    /// `plain_bytes_max`. What TLS itself has to say is appended to `out`.
    ///
    /// # Errors
    /// If TLS is broken; `out` then ends with what tells the client so.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        plain: &mut Vec<u8>,
        plain_bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        match self {
            Self::Plain => {
                let (taken, rest) = input.split_at(input.len().min(plain_bytes_max.saturating_sub(plain.len())));
                plain.extend_from_slice(taken);
                *input = rest;
                Ok(Received::Open)
            }
            Self::Tls(session) => session.receive(input, plain, plain_bytes_max, out),
        }
    }

    /// Takes plain bytes from the front of `plain` and appends what is to be sent to `out`, which does not grow beyond
    /// `out_bytes_max` by more than a piece of 16 KiB with its frame. Takes nothing before TLS is established.
    ///
    /// # Errors
    /// If TLS is broken.
    pub fn send(&mut self, plain: &mut &[u8], out: &mut Vec<u8>, out_bytes_max: usize) -> Result<(), TlsError> {
        match self {
            Self::Plain => {
                let (taken, rest) = plain.split_at(plain.len().min(out_bytes_max.saturating_sub(out.len())));
                out.extend_from_slice(taken);
                *plain = rest;
                Ok(())
            }
            Self::Tls(session) => session.send(plain, out, out_bytes_max),
        }
    }

    /// Nothing more will be sent: what tells the client so is appended to `out`.
    ///
    /// # Errors
    /// If TLS is broken.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        match self {
            Self::Plain => Ok(()),
            Self::Tls(session) => session.finish(out),
        }
    }

    /// Whether bytes can be sent: always without TLS, with it once it is established.
    #[must_use]
    pub fn is_established(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(session) => session.is_established(),
        }
    }
}
