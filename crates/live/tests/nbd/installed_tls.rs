//! Tests with installed clients over TLS.

use std::process::Command;
use std::sync::Mutex;

use iosched_live::nbd::TlsFiles;
use iosched_nbd::TlsMode;

use super::installed::{PYTHON, SIZE, client, has_libnbd, offers};
use super::server::{Served, Server};
use super::tls::certificates;

#[test]
fn nbdinfo_and_nbdcopy_work_over_tls() {
    let folder = certificates();
    let files = TlsFiles::in_directory(folder.0.path());
    let served = |tls| Served {
        offers: offers().into(),
        tls,
        config: Some(files.load().unwrap()),
        memory: Mutex::new(vec![0; SIZE]),
    };
    let (required, available) = (Server::start(served(TlsMode::Required)), Server::start(served(TlsMode::Available)));
    let certificates = folder.0.path().display();
    let uri = format!("nbds+unix:///db?socket=SOCKET&tls-certificates={certificates}");
    let Some(out) = client(&required, "nbdinfo", &["--json", &uri]) else { return };
    assert!(out.contains("\"TLS\": true") && out.contains("\"structured\": true"), "{out}");

    let data: Vec<u8> = (0..SIZE).map(|at| (at / 512 * 11 + at) as u8).collect();
    std::fs::write(required.folder().join("in"), &data).unwrap();
    client(&required, "nbdcopy", &["DIR/in", &uri]);
    assert!(*required.served.memory.lock().unwrap() == data);
    client(&required, "nbdcopy", &[&uri, "DIR/out"]);
    assert!(std::fs::read(required.folder().join("out")).unwrap() == data);

    client(&available, "nbdinfo", &["nbd+unix:///db?socket=SOCKET"]);
    let plain = format!("nbd+unix:///db?socket={}", required.socket().display());
    let refused = Command::new("nbdinfo").arg(plain).output().unwrap();
    assert!(!refused.status.success());
}

/// rustls supports pre-shared keys only for its own sessions, as docs/compat.md says.
#[test]
fn clients_with_a_pre_shared_key_are_refused() {
    const SCRIPT: &str = r#"
import nbd
def connect(prepare):
    h = nbd.NBD()
    h.set_tls(nbd.TLS_REQUIRE)
    prepare(h)
    h.set_export_name("db")
    h.connect_unix("SOCKET")
    return h

def with_key(h):
    h.set_tls_psk_file("DIR/keys.psk")
    h.set_tls_username("alice")

def with_certificates(h):
    h.set_tls_certificates("CERTIFICATES")
    h.set_tls_verify_peer(False)

try:
    connect(with_key)
except nbd.Error as error:
    print("refused" if "handshake" in str(error).lower() else error)
else:
    print("accepted")
print(connect(with_certificates).get_tls_negotiated())
"#;
    if !has_libnbd() {
        return;
    }
    let folder = certificates();
    let config = TlsFiles::in_directory(folder.0.path()).load().unwrap();
    let memory = Mutex::new(vec![0; SIZE]);
    let server =
        Server::start(Served { offers: offers().into(), tls: TlsMode::Required, config: Some(config), memory });
    std::fs::write(server.folder().join("keys.psk"), format!("alice:{}\n", "5a".repeat(32))).unwrap();
    let script = SCRIPT.replace("CERTIFICATES", &folder.0.path().display().to_string());
    assert_eq!(client(&server, PYTHON, &["-c", &script]).as_deref(), Some("refused\nTrue\n"));
}
