//! Tests of disks as services: sockets that systemd passes, and notifications to systemd. The units
//! are in packaging/systemd.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{IOSCHED, Mounted, PATIENCE, directory, has_fuse, has_program, image};

/// A process that is killed at the end of the test.
struct ChildGuard(Child);

impl ChildGuard {
    /// Starts a server on an inherited socket, as systemd does.
    fn serve(here: &Path, listener: &UnixListener, backing: &str) -> Self {
        let script = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve \"$1\" --control c";
        let mut command = Command::new("sh");
        command.args(["-c", script, IOSCHED, backing]).current_dir(here);
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        Self(command.stdin(Stdio::from(socket)).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.0.id().to_string()]).status().unwrap().success());
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// First bytes that an NBD server sends.
const MAGIC: &[u8] = b"NBDMAGIC";

/// Creates the socket for notifications to systemd.
fn notified(here: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(here.join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[track_caller]
fn is_ready(socket: &UnixDatagram) {
    let mut bytes = [0; 64];
    let length = socket.recv(&mut bytes).expect("a notification from the server");
    assert_eq!(std::str::from_utf8(&bytes[..length]).unwrap().trim_end(), "READY=1");
}

#[track_caller]
fn ends_well(mut child: Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn early_client_is_served_and_systemds_socket_stays() {
    let here = directory("service-socket");
    let listener = UnixListener::bind(here.join("s")).unwrap();
    // This client connects before the server runs. With a socket unit, such a client starts the
    // server.
    let mut first = UnixStream::connect(here.join("s")).unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let notified = notified(&here);
    let script = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve memory:1M --control c";
    let mut command = Command::new("sh");
    command.args(["-c", script, IOSCHED]).current_dir(&here).env("NOTIFY_SOCKET", here.join("notify"));
    let child = command.stdin(Stdio::from(OwnedFd::from(listener))).stderr(Stdio::null()).spawn().unwrap();
    is_ready(&notified);
    let mut bytes = [0; 8];
    first.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, MAGIC);
    let mut second = UnixStream::connect(here.join("s")).unwrap();
    second.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, MAGIC);
    ends_well(child);
    assert!(here.join("s").exists(), "the server removed the socket of systemd");
    assert!(!here.join("c").exists() && !here.join("memory.sock").exists(), "the server left a socket");
}

#[test]
fn reconnecting_clients_lose_no_data_when_server_restarts() {
    if !has_program("qemu-io") {
        return;
    }
    let here = directory("service-replaced");
    image(&here, "disk.img", 16 << 20);
    let listener = UnixListener::bind(here.join("s")).unwrap();
    // The backing is so slow that a request is always in flight.
    let backing = "fault:late=1000000,late_ms=5:disk.img";
    let mut server = ChildGuard::serve(&here, &listener, backing);
    // stdbuf makes qemu-io print each line immediately.
    let mut command = Command::new("stdbuf");
    command.current_dir(&here).args(["-oL", "qemu-io", "-t", "none", "--image-opts"]);
    command.arg("driver=nbd,server.type=unix,server.path=s,reconnect-delay=60");
    for round in 1..=60 {
        let (pattern, places) = (round, || (0..8).map(|at| at * 100_000));
        let writes = places().map(|at| format!("aio_write -P {pattern} {at} 60000"));
        let reads = places().map(|at| format!("read -P {pattern} {at} 60000"));
        for order in writes.chain(["aio_flush".to_owned()]).chain(reads) {
            command.args(["-c", &order]);
        }
    }
    let mut client = ChildGuard(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(client.0.stdout.take().unwrap()).lines().map(Result::unwrap).filter(|line| {
        assert!(!line.contains("rror") && !line.contains("ailed"), "{line}");
        line.contains("60000/60000 bytes")
    });
    for signal in ["-TERM", "-KILL", "-TERM", "-TERM", "-KILL", "-TERM"] {
        // The signal arrives at a random point of the client's work.
        assert_eq!(lines.by_ref().take(101).count(), 101);
        server.signal(signal);
        server.0.wait().unwrap();
        server = ChildGuard::serve(&here, &listener, backing);
    }
    lines.for_each(drop);
    assert!(client.0.wait().unwrap().success());
    server.signal("-TERM");
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    let left = std::fs::read(here.join("disk.img")).unwrap();
    assert!((0..8).all(|at| left[at * 100_000..at * 100_000 + 60_000].iter().all(|&byte| byte == 60)));
}

#[test]
fn mount_notifies_systemd_when_ready() {
    if !has_fuse() {
        return;
    }
    let here = directory("service-mount");
    let notified = notified(&here);
    let environment = [("NOTIFY_SOCKET", here.join("notify"))];
    let mounted = Mounted::with(&here, "disk", "memory:1M", &[], environment);
    is_ready(&notified);
    assert!(mounted.is_mounted());
    assert_eq!(mounted.end(), 0);
}
