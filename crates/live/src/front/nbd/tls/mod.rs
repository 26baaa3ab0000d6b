//! TLS below the protocol: decrypts received bytes and encrypts bytes to send. Bounds the number of
//! bytes in both directions.
//!
//! The handshake decides when TLS starts ([`iosched_nbd::Progress::StartTls`]). TLS needs the
//! feature `tls`. Without it, [`TlsFiles::load`] returns an error.

#[cfg(feature = "tls")]
mod key_size;
#[cfg_attr(not(feature = "tls"), path = "../../absent/tls.rs")]
mod session;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use session::{ServerConfig, TlsError, TlsFilesError};

/// Paths of a server's certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// Certificate of the server and intermediate certificates, PEM.
    pub certificate: PathBuf,
    /// Private key of the certificate, PEM.
    pub key: PathBuf,
    /// Root certificates for clients, PEM. The server refuses a client without a certificate from
    /// one of these roots. If `None`, clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// Returns the paths `server-cert.pem` and `server-key.pem` in a directory. These are the usual
    /// names for NBD servers. Clients need a certificate if `ca-cert.pem` exists, or if the system
    /// cannot tell whether it exists. To accept clients without a certificate, set
    /// [`Self::client_ca`] to `None`.
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

    /// Returns warnings about files that are usable but unsafe: other users can read the key, or
    /// another user owns it.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // A missing key is reported when the files are loaded.
        let Ok(key) = std::fs::metadata(&self.key) else { return Vec::new() };
        let (name, mode, owner) = (self.key.display(), key.mode() & 0o777, key.uid());
        let mut warnings = Vec::new();
        if mode & 0o077 != 0 {
            warnings.push(format!(
                "{name}: other users can read or change the private key (mode {mode:04o}): run chmod 600 {name}"
            ));
        }
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            warnings.push(format!(
                "{name}: the private key belongs to another user (uid {owner}). That user can change the key. Run chown \
                 to make the user of this server the owner"
            ));
        }
        warnings
    }

    /// Loads the configuration for all connections of a server. It allows TLS 1.2 and 1.3. It does
    /// not allow resumption, so that the server keeps no state of ended sessions.
    ///
    /// # Errors
    /// A file is missing, unreadable or has the wrong content, or this build has no TLS.
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsFilesError> {
        session::load(self)
    }
}

/// State of a connection after received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// More bytes can arrive. If input is left or `plain` is full, call again when there is room
    /// for plain bytes.
    Open,
    /// The client has ended its data properly. No data is missing.
    Closed,
}

/// Transport for the bytes of the protocol.
#[derive(Debug)]
pub enum Transport {
    /// No encryption. Callers may bypass this type.
    Plain,
    /// TLS.
    Tls(Box<session::Session>),
}

impl Transport {
    /// Starts TLS as a server, from the client's first message.
    ///
    /// # Errors
    /// The configuration is not usable.
    pub fn tls(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        session::Session::new(config).map(|session| Self::Tls(Box::new(session)))
    }

    /// Takes received bytes from the front of `input` and appends plain bytes to `plain`, up to a
    /// total length of `plain_bytes_max`. Appends TLS's own messages to `out`.
    ///
    /// # Errors
    /// TLS has failed. `out` then ends with an error message to the client.
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

    /// Takes plain bytes from the front of `plain`, and appends bytes to send to `out`. `out`
    /// exceeds `out_bytes_max` by at most one record of 16 KiB and its header. Takes nothing before
    /// TLS is established.
    ///
    /// # Errors
    /// TLS has failed.
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

    /// Ends the data to the client. Appends a message about the end to `out`.
    ///
    /// # Errors
    /// TLS has failed.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        match self {
            Self::Plain => Ok(()),
            Self::Tls(session) => session.finish(out),
        }
    }

    /// Returns whether bytes can be sent. Without TLS, this is always true. With TLS, it is true
    /// after TLS is established.
    #[must_use]
    pub fn is_established(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(session) => session.is_established(),
        }
    }
}
