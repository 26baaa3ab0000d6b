//! TLS below the protocol: bytes received to plain bytes, plain bytes to bytes to send, both bounded.
//!
//! Decides nothing of when TLS starts: that is the handshake's ([`super::Progress::StartTls`]).

use std::io::{self, BufRead, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use super::key_size::{self, RSA_BITS};

/// Plain bytes encrypted at a time.
const PIECE_BYTES: usize = 16 << 10;

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

/// What is wrong with a server's certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// A file that cannot be read, or that is not PEM of the kind needed.
    #[error("{}: {what}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What was looked for in it.
        what: &'static str,
        /// What was found instead.
        source: pem::Error,
    },
    /// Nothing in the file.
    #[error("{}: there is no certificate in it: it needs -----BEGIN CERTIFICATE-----", file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// A root that is no certificate.
    #[error("{}: a certificate in it cannot be a root of clients' certificates: {source}", file.display())]
    Root {
        /// The file.
        file: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The roots cannot check clients.
    #[error("{}: clients cannot be checked with these certificates: {source}", file.display())]
    Verifier {
        /// The file.
        file: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
    /// An RSA key of a size that cannot be used.
    #[error("{}: an RSA key of {bits} bits cannot be used: make one of {RSA_BITS} bits, or one of the kind ECDSA or Ed25519", file.display())]
    KeySize {
        /// The file.
        file: PathBuf,
        /// Its size.
        bits: u64,
    },
    /// Certificate and key do not fit.
    #[error("{} and {} cannot be used together: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

impl TlsFiles {
    /// `server-cert.pem` and `server-key.pem` of a directory, as other NBD servers name them. If `ca-cert.pem` is there, too,
    /// or cannot be told to be absent, clients need a certificate of it: set [`Self::client_ca`] to `None` where they need
    /// none all the same.
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
                "{name}: others can read the private key, or write it (mode {mode:04o}): chmod 600 {name}"
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
    /// Which file is missing, unreadable or not what it should be.
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsFilesError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let pair_error =
            |source| TlsFilesError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), source };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(pair_error)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider)
                    .build()
                    .map_err(|source| TlsFilesError::Verifier { file: file.clone(), source })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|source| TlsFilesError::File {
            file: self.key.clone(),
            what: "a private key is needed",
            source,
        })?;
        let bits = key_size::rsa_bits(&key);
        let mut config = builder.with_single_cert(chain, key).map_err(|source| match bits {
            // It says no more than that it cannot use the key.
            Some(bits) if !key_size::is_usable(bits) => TlsFilesError::KeySize { file: self.key.clone(), bits },
            _ => pair_error(source),
        })?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let wrong = |source| TlsFilesError::File { file: file.to_owned(), what: "certificates are needed", source };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).map_err(wrong)?.collect();
    match found.map_err(wrong)? {
        none if none.is_empty() => Err(TlsFilesError::NoCertificate { file: file.to_owned() }),
        found => Ok(found),
    }
}

fn roots(file: &Path) -> Result<RootCertStore, TlsFilesError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|source| TlsFilesError::Root { file: file.to_owned(), source })?;
    }
    Ok(roots)
}

/// Why a connection's TLS failed. What is in `out` then is to be sent, it tells the client, and the connection closed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The client broke TLS, or its certificate is not accepted.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The buffers of TLS.
    #[error("TLS: {0}")]
    Buffer(#[from] io::Error),
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
    Tls(Box<ServerConnection>),
}

impl Transport {
    /// TLS as a server, from the client's first message on.
    ///
    /// # Errors
    /// If the configuration does not do.
    pub fn tls(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        let mut connection = ServerConnection::new(config)?;
        connection.set_buffer_limit(Some(2 * PIECE_BYTES));
        Ok(Self::Tls(Box::new(connection)))
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
        let Self::Tls(connection) = self else {
            let (taken, rest) = input.split_at(input.len().min(plain_bytes_max.saturating_sub(plain.len())));
            plain.extend_from_slice(taken);
            *input = rest;
            return Ok(Received::Open);
        };
        loop {
            if !take_plain(connection, plain, plain_bytes_max)? {
                return Ok(Received::Closed);
            }
            if input.is_empty() || plain.len() >= plain_bytes_max {
                return Ok(Received::Open);
            }
            connection.read_tls(input)?;
            let processed = connection.process_new_packets();
            flush(connection, out)?;
            processed?;
        }
    }

    /// Takes plain bytes from the front of `plain` and appends what is to be sent to `out`, which does not grow beyond
    /// `out_bytes_max` by more than a piece of 16 KiB with its frame. Takes nothing before TLS is established.
    ///
    /// # Errors
    /// If TLS is broken.
    pub fn send(&mut self, plain: &mut &[u8], out: &mut Vec<u8>, out_bytes_max: usize) -> Result<(), TlsError> {
        let Self::Tls(connection) = self else {
            let (taken, rest) = plain.split_at(plain.len().min(out_bytes_max.saturating_sub(out.len())));
            out.extend_from_slice(taken);
            *plain = rest;
            return Ok(());
        };
        while !plain.is_empty() && out.len() < out_bytes_max && !connection.is_handshaking() {
            let taken = connection.writer().write(&plain[..plain.len().min(PIECE_BYTES)])?;
            *plain = &plain[taken..];
            flush(connection, out)?;
        }
        Ok(())
    }

    /// Nothing more will be sent: what tells the client so is appended to `out`.
    ///
    /// # Errors
    /// If TLS is broken.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        if let Self::Tls(connection) = self {
            connection.send_close_notify();
            flush(connection, out)?;
        }
        Ok(())
    }

    /// Whether bytes can be sent: always without TLS, with it once it is established.
    #[must_use]
    pub fn is_established(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(connection) => !connection.is_handshaking(),
        }
    }
}

/// Moves decrypted bytes; whether more can come.
fn take_plain(
    connection: &mut ServerConnection,
    plain: &mut Vec<u8>,
    plain_bytes_max: usize,
) -> Result<bool, TlsError> {
    let mut reader = connection.reader();
    while plain.len() < plain_bytes_max {
        let bytes = match reader.fill_buf() {
            Ok([]) => return Ok(false),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        };
        let taken = bytes.len().min(plain_bytes_max - plain.len());
        plain.extend_from_slice(&bytes[..taken]);
        reader.consume(taken);
    }
    Ok(true)
}

fn flush(connection: &mut ServerConnection, out: &mut Vec<u8>) -> Result<(), TlsError> {
    while connection.wants_write() {
        connection.write_tls(out)?;
    }
    Ok(())
}
