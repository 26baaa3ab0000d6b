//! Disks as services: the sockets that systemd hands over, and what it is told. packaging/systemd has the units.

mod common;

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{IOSCHED, Mounted, PATIENCE, directory, has_fuse};

/// What a server of NBD says first.
const MAGIC: &[u8] = b"NBDMAGIC";

/// Where systemd is told something.
fn notified(here: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(here.join("notify")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

#[track_caller]
fn is_ready(socket: &UnixDatagram) {
    let mut said = [0; 64];
    let length = socket.recv(&mut said).expect("it says that it is ready");
    assert_eq!(std::str::from_utf8(&said[..length]).unwrap().trim_end(), "READY=1");
}

#[track_caller]
fn ends_well(mut child: Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn who_came_before_the_server_was_started_is_served_and_systemds_socket_stays() {
    let here = directory("service-socket");
    let listener = UnixListener::bind(here.join("s")).unwrap();
    // It comes first, as the client does that has a socket unit start the server.
    let mut first = UnixStream::connect(here.join("s")).unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    let notified = notified(&here);
    let script = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" serve memory:1M --control c";
    let mut command = Command::new("sh");
    command.args(["-c", script, IOSCHED]).current_dir(&here).env("NOTIFY_SOCKET", here.join("notify"));
    let child = command.stdin(Stdio::from(OwnedFd::from(listener))).stderr(Stdio::null()).spawn().unwrap();
    is_ready(&notified);
    let mut said = [0; 8];
    first.read_exact(&mut said).unwrap();
    assert_eq!(said, MAGIC);
    let mut second = UnixStream::connect(here.join("s")).unwrap();
    second.read_exact(&mut said).unwrap();
    assert_eq!(said, MAGIC);
    ends_well(child);
    assert!(here.join("s").exists(), "it is systemd's");
    assert!(!here.join("c").exists() && !here.join("memory.sock").exists(), "it has made no other");
}

#[test]
fn a_mount_says_when_it_is_ready() {
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
