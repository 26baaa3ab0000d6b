//! Sockets of other servers and of servers that have ended, keys, and limits of the system.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use super::tools::{MESSAGES, READ, Serving, ask, wait_until};
use crate::common::{IOSCHED, has_program, is_root, output};
use crate::list::Sandbox;

/// The id of another user.
const NOBODY: u32 = 65_534;

/// Creates a socket in the state in which a killed server leaves it.
fn stale(path: &Path) {
    let _ = fs::remove_file(path);
    drop(UnixListener::bind(path).unwrap());
}

pub(super) fn sockets_after_a_failed_start(place: &Sandbox) {
    for (socket, other) in [("s", "c"), ("c", "s")] {
        stale(&place.path(socket));
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = taken.local_addr().unwrap().to_string();
        let wrong = [
            &["gone.img"][..],
            &["memory:1M", "--depth", "100000"],
            &["memory:1M", "--metrics", &metrics],
            &["memory:1M", "--record", "gone/trace"],
        ];
        for args in wrong {
            let all = [&["serve"], args, &["--unix", "s", "--control", "c"]].concat();
            assert_ne!(place.iosched(&all).code, 0);
            assert!(place.path(socket).exists(), "{args:?}: the existing socket remains");
            assert!(!place.path(other).exists(), "{args:?}: no other socket is created");
        }
        fs::remove_file(place.path(socket)).unwrap();
    }
}

pub(super) fn same_path_for_two_options(place: &Sandbox) {
    let args = ["serve", "memory:1M", "--unix", "s", "--control", "./s"];
    place
        .iosched(&args)
        .refused(2, &["./s: both --unix and --control name this socket; use a different socket for each"]);
    assert!(!place.path("s").exists());
}

pub(super) fn not_a_control_socket(place: &Sandbox) {
    let mut server = Serving::start(place, &["memory:1M"]);
    let control =
        format!("the control socket of this server is {}", fs::canonicalize(place.path("c")).unwrap().display());
    for command in ["get", "ls"] {
        place.iosched(&[command, "s"]).refused(2, &["s: this is a socket for NBD clients", &control]);
    }
    assert_eq!(server.stop(), Some(0));
    let listener = UnixListener::bind(place.path("other")).unwrap();
    let thread = std::thread::spawn(move || (0..2).for_each(|_| drop(listener.accept().unwrap())));
    place
        .iosched(&["get", "other"])
        .refused(2, &["other: this is not a control socket: its server does not answer as iosched does"]);
    thread.join().unwrap();
    let _silent = UnixListener::bind(place.path("silent")).unwrap();
    place
        .iosched(&["get", "silent"])
        .refused(2, &["silent: this is not a control socket: its server does not answer as iosched does"]);
}

pub(super) fn stale_socket_of_another_user(place: &Sandbox) {
    if !is_root() {
        return;
    }
    for socket in ["s", "c"] {
        let path = place.path(socket);
        stale(&path);
        chown(&path, Some(NOBODY), None).unwrap();
        let args = ["serve", "memory:1M", "--unix", "s", "--control", "c"];
        place.iosched(&args).refused(1, &[socket, "another user (uid 65534)", "name another socket"]);
        assert!(path.exists(), "only that user can remove the socket");
        fs::remove_file(path).unwrap();
    }
}

pub(super) fn full_backlog(place: &Sandbox) {
    let listener = UnixListener::bind(place.path("s")).unwrap();
    // No process accepts connections, and the backlog is full.
    let script = "import socket, sys\nheld = []\ntry:\n  while True:\n    s = socket.socket(socket.AF_UNIX)\n    s.setblocking(False)\n    \
                  s.connect('s')\n    held.append(s)\nexcept BlockingIOError: pass\nprint('full', flush=True)\nsys.stdin.read()";
    let mut python = Command::new("python3");
    python.args(["-c", script]).current_dir(&place.here).stdin(Stdio::piped()).stdout(Stdio::piped());
    if !has_program("python3") {
        return;
    }
    let mut crowd = python.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(crowd.stdout.as_mut().unwrap()), &mut line).unwrap();
    place.iosched(&["serve", "memory:1M", "--unix", "s"]).refused(1, &["another server listens on this socket"]);
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
    drop(listener);
}

pub(super) fn six_servers_on_one_socket(place: &Sandbox) {
    stale(&place.path("s"));
    let start = |number: usize| {
        let text = fs::File::create(place.path(&format!("said-{number}"))).unwrap();
        Serving::spawn(place, place.command(&["serve", "memory:1M", "--unix", "s"]).stderr(text))
    };
    let mut servers: Vec<_> = (0..6).map(start).collect();
    // All servers give up, except one server.
    wait_until(
        || {
            servers.retain_mut(|server| server.child.try_wait().unwrap().is_none());
            (servers.len() <= 1).then_some(())
        },
        || "one server".to_owned(),
    );
    assert_eq!(ask(&mut servers[0].connect(), READ, 0), 0);
    assert_eq!(servers[0].stop(), Some(0));
    assert!(!place.path("s").exists());
}

/// Creates a certificate and its key with openssl.
fn certificate(place: &Sandbox, kind: &str) -> bool {
    if !has_program("openssl") {
        return false;
    }
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-nodes", "-newkey", kind, "-subj", "/CN=here", "-days", "2"]);
    openssl.args(["-keyout", "server-key.pem", "-out", "server-cert.pem"]).current_dir(&place.here);
    output(&mut openssl).is_some()
}

pub(super) fn rsa_key_of_unsupported_size(place: &Sandbox) {
    if !certificate(place, "rsa:2432") {
        return;
    }
    let args = ["serve", "memory:1M", "--unix", "s", "--tls", "."];
    place.iosched(&args).refused(2, &["server-key.pem", "2432 bits", "2048, 3072 or 4096", "ECDSA"]);
    let mut openssl = Command::new("openssl");
    openssl.args(["rsa", "-in", "server-key.pem", "-traditional", "-out", "old.pem"]).current_dir(&place.here);
    output(&mut openssl);
    fs::rename(place.path("old.pem"), place.path("server-key.pem")).unwrap();
    place.iosched(&args).refused(2, &["server-key.pem", "2432 bits"]);
}

pub(super) fn keys_that_others_can_read(place: &Sandbox) {
    if !certificate(place, "rsa:3072") {
        return;
    }
    for (mode, warned) in [(0o644, true), (0o640, true), (0o600, false), (0o400, false)] {
        fs::set_permissions(place.path("server-key.pem"), fs::Permissions::from_mode(mode)).unwrap();
        let mut serving = Serving::start(place, &["memory:1M", "--tls", "."]);
        let text = serving.messages();
        let warning =
            format!("warning: ./server-key.pem: other users can read or change the private key (mode {mode:04o})");
        assert_eq!(text.contains(&warning), warned, "{mode:o}: {text}");
        assert_eq!(text.contains("warning"), warned, "{mode:o}: {text}");
        assert_eq!(serving.stop(), Some(0));
    }
}

pub(super) fn limit_of_locked_memory(place: &Sandbox) {
    if !is_root() || !has_program("setpriv") || !has_program("prlimit") {
        return;
    }
    let text = fs::File::create(place.path(MESSAGES)).unwrap();
    let mut command = Command::new("prlimit");
    command.args(["--memlock=16384:16384", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", IOSCHED]);
    command.args(["serve", "memory:1M", "--unix", "s", "--control", "c"]).current_dir(&place.here);
    let mut serving = Serving::spawn(place, command.stdin(Stdio::null()).stderr(text));
    wait_until(|| (!serving.messages().is_empty()).then_some(()), || "a message".to_owned());
    if serving.messages().starts_with("error: ") {
        assert_eq!(serving.wait(), Some(1));
        let text = serving.messages();
        for part in ["RLIMIT_MEMLOCK", "16 KiB", "1024 KiB", "ulimit -l", "LimitMEMLOCK="] {
            assert!(text.contains(part), "{text}");
        }
    } else {
        // Some kernels do not count io_uring's rings as locked memory. Then the server starts.
        serving.says("control: ");
        assert_eq!(serving.stop(), Some(0));
    }
}
