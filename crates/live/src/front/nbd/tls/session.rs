//! TLS by rustls: what certificates make of a server, and one connection's session.

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

/// Plain bytes encrypted at a time.
const PIECE_BYTES: usize = 16 << 10;

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
    #[error("{}: contains no certificate (-----BEGIN CERTIFICATE-----)", file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// A root that is no certificate.
    #[error("{}: a certificate in it cannot be a root for client certificates: {source}", file.display())]
    Root {
        /// The file.
        file: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The roots cannot check clients.
    #[error("{}: these certificates cannot verify clients: {source}", file.display())]
    Verifier {
        /// The file.
        file: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
    /// An RSA key of a size that cannot be used.
    #[error("{}: RSA keys of {bits} bits are not supported: use {RSA_BITS} bits, or an ECDSA or Ed25519 key", file.display())]
    KeySize {
        /// The file.
        file: PathBuf,
        /// Its size.
        bits: u64,
    },
    /// Certificate and key do not fit.
    #[error("{} and {} do not belong together: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// See [`TlsFiles::load`].
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
        // It says no more than that it cannot use the key.
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

/// One connection's TLS.
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

    /// Moves decrypted bytes; whether more can come.
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
