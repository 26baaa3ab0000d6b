//! TLS with rustls: the server's configuration from certificates, and the session of a connection.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConnection};

pub use rustls::ServerConfig;

use super::key_size::{self, RSA_BITS};
use super::{Received, TlsFiles};

/// Number of plain bytes that are encrypted in one step.
const PIECE_BYTES: usize = 16 << 10;

/// Error in a server's certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// The system cannot read a file, or the file is not PEM of the required kind.
    #[error("{}: {what}: {source}", file.display())]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Required content.
        what: &'static str,
        /// Error of the PEM reader.
        source: pem::Error,
    },
    /// The file contains no certificate.
    #[error(
        "{}: the file contains no certificate (-----BEGIN CERTIFICATE-----); use a file in PEM format",
        file.display()
    )]
    NoCertificate {
        /// Path of the file.
        file: PathBuf,
    },
    /// A root is not a valid certificate.
    #[error("{}: the file contains a certificate that cannot be a root for client certificates: \
             {source}", file.display())]
    Root {
        /// Path of the file.
        file: PathBuf,
        /// Error of rustls.
        source: rustls::Error,
    },
    /// The roots cannot verify clients.
    #[error("{}: these certificates cannot verify clients: {source}", file.display())]
    Verifier {
        /// Path of the file.
        file: PathBuf,
        /// Error of rustls.
        source: VerifierBuilderError,
    },
    /// The server does not support an RSA key of this size.
    #[error("{}: RSA keys of {bits} bits are not supported: use {RSA_BITS} bits, or an ECDSA or Ed25519 key", file.display())]
    KeySize {
        /// Path of the file.
        file: PathBuf,
        /// Size of the key, bits.
        bits: u64,
    },
    /// The certificate and the key do not match.
    #[error("the certificate {} and the key {} do not match: {source}", certificate.display(), key.display())]
    Pair {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the key.
        key: PathBuf,
        /// Error of rustls.
        source: rustls::Error,
    },
}

/// Implements [`TlsFiles::load`].
pub(super) fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsFilesError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pair_error =
        |source| TlsFilesError::Pair { certificate: files.certificate.clone(), key: files.key.clone(), source };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(pair_error)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider)
                .build()
                .map_err(|source| TlsFilesError::Verifier { file: file.clone(), source })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|source| TlsFilesError::File {
        file: files.key.clone(),
        what: "a private key is needed",
        source,
    })?;
    let bits = key_size::rsa_bits(&key);
    let mut config = builder.with_single_cert(chain, key).map_err(|source| match bits {
        // The library reports only that the key is not usable.
        Some(bits) if !key_size::is_usable(bits) => TlsFilesError::KeySize { file: files.key.clone(), bits },
        _ => pair_error(source),
    })?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
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

/// TLS error of a connection. The caller must send the content of `out`, which reports the error to
/// the client, and must close the connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The client violated TLS, or the server does not accept its certificate.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The buffers of TLS failed.
    #[error("TLS: {0}")]
    Buffer(#[from] io::Error),
}

/// TLS session of one connection.
#[derive(Debug)]
pub struct Session(ServerConnection);

impl Session {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, TlsError> {
        let mut connection = ServerConnection::new(config)?;
        connection.set_buffer_limit(Some(2 * PIECE_BYTES));
        Ok(Self(connection))
    }

    pub(super) fn receive(
        &mut self,
        input: &mut &[u8],
        plain: &mut Vec<u8>,
        plain_bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<Received, TlsError> {
        loop {
            if !self.take_plain(plain, plain_bytes_max)? {
                return Ok(Received::Closed);
            }
            if input.is_empty() || plain.len() >= plain_bytes_max {
                return Ok(Received::Open);
            }
            self.0.read_tls(input)?;
            let processed = self.0.process_new_packets();
            self.flush(out)?;
            processed?;
        }
    }

    pub(super) fn send(&mut self, plain: &mut &[u8], out: &mut Vec<u8>, out_bytes_max: usize) -> Result<(), TlsError> {
        while !plain.is_empty() && out.len() < out_bytes_max && self.is_established() {
            let taken = self.0.writer().write(&plain[..plain.len().min(PIECE_BYTES)])?;
            *plain = &plain[taken..];
            self.flush(out)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        self.0.send_close_notify();
        self.flush(out)
    }

    pub(super) fn is_established(&self) -> bool {
        !self.0.is_handshaking()
    }

    /// Moves decrypted bytes to `plain`. Returns whether more bytes can arrive.
    fn take_plain(&mut self, plain: &mut Vec<u8>, plain_bytes_max: usize) -> Result<bool, TlsError> {
        let mut reader = self.0.reader();
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

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), TlsError> {
        while self.0.wants_write() {
            self.0.write_tls(out)?;
        }
        Ok(())
    }
}
