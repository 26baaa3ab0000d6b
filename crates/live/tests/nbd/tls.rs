//! Tests of TLS between a client with rustls and the server's transport, without a network.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iosched_live::nbd::{Received, TlsError, TlsFiles, Transport};
use iosched_nbd::client::{FLAGS, Messages, OptionReply};
use iosched_nbd::{Handshake, Offer, Progress, TlsMode, wire};
use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

/// A directory of certificates. It is removed when the test ends.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Creates a root certificate, and certificates from this root for the server and for a client.
pub(crate) fn certificates() -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    let mut ca = CertificateParams::new([]).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    folder.write("ca-cert.pem", &ca.pem());
    for (whom, names) in [("server", vec!["localhost".to_owned()]), ("client", vec!["tenant".to_owned()])] {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &ca).unwrap();
        folder.write(&format!("{whom}-cert.pem"), &certificate.pem());
        folder.write(&format!("{whom}-key.pem"), &key.serialize_pem());
    }
    folder
}

/// Returns the files of a server that accepts clients without a certificate.
fn files(folder: &Folder) -> TlsFiles {
    TlsFiles { client_ca: None, ..TlsFiles::in_directory(folder.0.path()) }
}

fn connect(folder: &Folder, with_certificate: bool) -> ClientConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path("ca-cert.pem")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = if with_certificate {
        let chain = vec![CertificateDer::from_pem_file(folder.path("client-cert.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(folder.path("client-key.pem")).unwrap();
        builder.with_client_auth_cert(chain, key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap()
}

fn server(config: &Arc<ServerConfig>) -> Transport {
    Transport::tls(Arc::clone(config)).unwrap()
}

/// Sends all output of the client to the server in pieces, and sends the server's answers back.
/// Appends the plain bytes to `plain`.
fn exchange(
    client: &mut ClientConnection,
    server: &mut Transport,
    plain: &mut Vec<u8>,
    piece: usize,
) -> Result<Received, TlsError> {
    let mut received = Received::Open;
    while client.wants_write() {
        let (mut sent, mut out) = (Vec::new(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut sent).unwrap();
        }
        for piece in sent.chunks(piece) {
            let mut input = piece;
            let result = server.receive(&mut input, plain, usize::MAX, &mut out);
            deliver(client, &out);
            out.clear();
            received = result?;
        }
    }
    Ok(received)
}

fn deliver(client: &mut ClientConnection, mut out: &[u8]) {
    while !out.is_empty() {
        client.read_tls(&mut out).unwrap();
        // It does not matter how the client reacts to an alert.
        let _ = client.process_new_packets();
    }
}

#[test]
fn plain_bytes_pass_through_tls_in_both_directions() {
    let folder = certificates();
    let config = files(&folder).load().unwrap();
    for piece in [1, 100, usize::MAX] {
        let (mut client, mut server, mut plain) = (connect(&folder, false), server(&config), Vec::new());
        assert!(!server.is_established());
        exchange(&mut client, &mut server, &mut plain, piece).unwrap();
        assert!(server.is_established() && plain.is_empty());

        client.writer().write_all(b"request").unwrap();
        exchange(&mut client, &mut server, &mut plain, piece).unwrap();
        assert_eq!(plain, b"request");

        let (data, mut back) = (vec![0x5a; 300_000], Vec::new());
        let mut left = &data[..];
        while !left.is_empty() {
            let mut out = Vec::new();
            server.send(&mut left, &mut out, 50_000).unwrap();
            assert!((1..50_000 + 17_000).contains(&out.len()), "{}", out.len());
            for piece in out.chunks(4000) {
                deliver(&mut client, piece);
                let _ = client.reader().read_to_end(&mut back);
            }
        }
        assert_eq!(back, data);
    }
}

#[test]
fn plain_bytes_received_are_bounded() {
    let folder = certificates();
    let config = files(&folder).load().unwrap();
    let (mut client, mut server, mut plain) = (connect(&folder, false), server(&config), Vec::new());
    exchange(&mut client, &mut server, &mut plain, usize::MAX).unwrap();

    let data: Vec<u8> = (0..=250).cycle().take(40_000).collect();
    client.writer().write_all(&data).unwrap();
    let (mut sent, mut out, mut all) = (Vec::new(), Vec::new(), Vec::new());
    while client.wants_write() {
        client.write_tls(&mut sent).unwrap();
    }
    let mut input = &sent[..];
    while all.len() < data.len() {
        let mut plain = Vec::new();
        server.receive(&mut input, &mut plain, 1000, &mut out).unwrap();
        assert!((1..=1000).contains(&plain.len()));
        all.extend(plain);
    }
    assert!(all == data && input.is_empty());
}

#[test]
fn close_notify_ends_the_stream_in_both_directions() {
    let folder = certificates();
    let config = files(&folder).load().unwrap();
    let (mut client, mut server, mut plain) = (connect(&folder, false), server(&config), Vec::new());
    exchange(&mut client, &mut server, &mut plain, usize::MAX).unwrap();
    client.writer().write_all(b"last").unwrap();
    client.send_close_notify();
    assert_eq!(exchange(&mut client, &mut server, &mut plain, usize::MAX).unwrap(), Received::Closed);
    assert_eq!(plain, b"last");

    let mut out = Vec::new();
    server.finish(&mut out).unwrap();
    deliver(&mut client, &out);
    assert_eq!(client.reader().read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn nothing_is_sent_before_tls_is_established() {
    let folder = certificates();
    let mut server = server(&files(&folder).load().unwrap());
    let (mut plain, mut out) = (&b"secret"[..], Vec::new());
    server.send(&mut plain, &mut out, 1 << 20).unwrap();
    assert_eq!((plain.len(), out.len()), (6, 0));
}

#[test]
fn garbage_instead_of_tls_gets_an_alert() {
    let folder = certificates();
    let mut server = server(&files(&folder).load().unwrap());
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    // Plain options that a client sends directly after NBD_OPT_STARTTLS arrive here.
    let options = Messages::default().go("backup").0;
    let result = server.receive(&mut &options[..], &mut plain, 1 << 20, &mut out);
    assert!(matches!(result, Err(TlsError::Tls(_))), "{result:?}");
    assert!(plain.is_empty() && out.first() == Some(&0x15), "{out:?}");
}

#[test]
fn client_certificate_is_required_if_configured() {
    let folder = certificates();
    // The directory contains the root certificate next to the server's certificate. The server
    // therefore requires client certificates.
    let config = TlsFiles::in_directory(folder.0.path()).load().unwrap();
    let (mut client, mut transport, mut plain) = (connect(&folder, true), server(&config), Vec::new());
    exchange(&mut client, &mut transport, &mut plain, 100).unwrap();
    assert!(transport.is_established());

    let (mut client, mut transport) = (connect(&folder, false), server(&config));
    let result = exchange(&mut client, &mut transport, &mut plain, 100);
    assert!(matches!(result, Err(TlsError::Tls(_))) && !transport.is_established(), "{result:?}");

    std::fs::remove_file(folder.path("ca-cert.pem")).unwrap();
    assert_eq!(TlsFiles::in_directory(folder.0.path()).client_ca, None);
}

#[test]
fn nbd_handshake_continues_inside_tls() {
    let folder = certificates();
    let config = files(&folder).load().unwrap();
    let mut out = Vec::new();
    let mut handshake = Handshake::new([Offer::new("db", 4096)].into(), TlsMode::Required, &mut out);
    let sent = Messages::flags(FLAGS).option(wire::OPT_STARTTLS, &[]).0;
    let mut input = &sent[..];
    assert_eq!(handshake.advance(&mut input, &mut out), Progress::StartTls);

    let (mut client, mut server, mut plain) = (connect(&folder, false), server(&config), Vec::new());
    exchange(&mut client, &mut server, &mut plain, usize::MAX).unwrap();
    client.writer().write_all(&Messages::default().go("db").0).unwrap();
    exchange(&mut client, &mut server, &mut plain, usize::MAX).unwrap();
    let mut answer = Vec::new();
    assert!(matches!(handshake.advance(&mut &plain[..], &mut answer), Progress::Negotiated(_)));

    let (mut left, mut out, mut back) = (&answer[..], Vec::new(), Vec::new());
    server.send(&mut left, &mut out, 1 << 20).unwrap();
    deliver(&mut client, &out);
    let _ = client.reader().read_to_end(&mut back);
    let (mut back, mut replies) = (&back[..], 0);
    while let Some(reply) = OptionReply::read(&mut back).unwrap() {
        assert_eq!(reply.option, wire::OPT_GO);
        replies += 1;
    }
    assert_eq!((replies, back.len()), (2, 0));
}

#[test]
fn plain_transport_passes_bounded_bytes_unchanged() {
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    let mut input = &b"0123456789"[..];
    Transport::Plain.receive(&mut input, &mut plain, 4, &mut out).unwrap();
    assert_eq!((&plain[..], input), (&b"0123"[..], &b"456789"[..]));
    Transport::Plain.send(&mut input, &mut out, 5).unwrap();
    assert_eq!((&out[..], input), (&b"45678"[..], &b"9"[..]));
}

fn wrong(certificate: &Path, key: &Path, client_ca: Option<PathBuf>) -> String {
    let files = TlsFiles { certificate: certificate.to_owned(), key: key.to_owned(), client_ca };
    files.load().unwrap_err().to_string()
}

#[test]
fn errors_name_the_wrong_tls_file() {
    let folder = certificates();
    let (certificate, key) = (folder.path("server-cert.pem"), folder.path("server-key.pem"));
    let nothing = folder.write("nothing.pem", "nothing\n");
    let missing = folder.path("missing.pem");
    let name = |path: &Path| path.display().to_string();
    let starts = |message: String, path: &Path| assert!(message.starts_with(&name(path)), "{message}");

    starts(wrong(&missing, &key, None), &missing);
    starts(wrong(&nothing, &key, None), &nothing);
    starts(wrong(&certificate, &missing, None), &missing);
    starts(wrong(&certificate, &nothing, None), &nothing);
    starts(wrong(&certificate, &key, Some(missing.clone())), &missing);
    starts(wrong(&certificate, &key, Some(nothing.clone())), &nothing);
    let message = wrong(&certificate, &folder.path("client-key.pem"), None);
    assert!(message.contains("do not match"), "{message}");
}

/// Returns the first message of a client.
fn client_hello(folder: &Folder) -> Vec<u8> {
    let (mut client, mut sent) = (connect(folder, false), Vec::new());
    client.write_tls(&mut sent).unwrap();
    sent
}

#[test]
fn damaged_tls_records_take_little_memory() {
    let folder = certificates();
    let config = files(&folder).load().unwrap();
    let hello = client_hello(&folder);
    let run = |sent: &[u8]| {
        let (mut transport, mut plain, mut out) = (server(&config), Vec::new(), Vec::new());
        for mut input in sent.chunks(1000) {
            if transport.receive(&mut input, &mut plain, 1 << 16, &mut out).is_err() {
                break;
            }
            assert!(input.is_empty());
        }
        assert!(plain.is_empty() && !transport.is_established());
    };
    // A message that announces a length of 16 MiB, in records of maximum length.
    let record = [&[22, 3, 1, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 0x4000 - 4]].concat();
    run(&record.repeat(100));
    let damaged =
        (prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), any::<prop::sample::Index>());
    proptest!(|((changes, end) in damaged, garbage in prop::collection::vec(any::<u8>(), 0..3000))| {
        let mut sent = hello.clone();
        for (at, byte) in changes {
            *at.get_mut(&mut sent) = byte;
        }
        sent.truncate(end.index(hello.len() + 1));
        sent.extend(garbage);
        let used = allocation_counter::measure(|| run(&sent));
        prop_assert!(used.bytes_max < 256 << 10, "{used:?}");
    });
}
