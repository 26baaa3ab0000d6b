//! A server whose messages go to a file or to no reader, and a client for this server.

use std::fs::{self, File};
use std::io::{PipeReader, Read, Write, pipe};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::PATIENCE;
use crate::list::Sandbox;

/// File for the messages of a server.
pub(super) const MESSAGES: &str = "said";

pub(super) struct Serving {
    pub(super) child: Child,
    pub(super) here: PathBuf,
}

impl Serving {
    /// Starts a server at `s` with the control socket `c`, and waits until it is ready.
    pub(super) fn start(place: &Sandbox, args: &[&str]) -> Self {
        Self::of(place, &mut place.command(&[&["serve"], args, &["--unix", "s", "--control", "c"]].concat()))
    }

    /// Starts a server with this command.
    pub(super) fn of(place: &Sandbox, command: &mut Command) -> Self {
        let messages = File::create(place.path(MESSAGES)).unwrap();
        let serving = Self::spawn(place, command.stderr(messages));
        serving.says("control: ");
        serving
    }

    pub(super) fn spawn(place: &Sandbox, command: &mut Command) -> Self {
        Self { child: command.spawn().unwrap(), here: place.here.clone() }
    }

    pub(super) fn messages(&self) -> String {
        fs::read_to_string(self.here.join(MESSAGES)).unwrap()
    }

    /// Waits until the messages contain `part`.
    #[track_caller]
    pub(super) fn says(&self, part: &str) -> String {
        wait_until(
            || self.messages().contains(part).then(|| self.messages()),
            || format!("{part:?} in {}", self.messages()),
        )
    }

    pub(super) fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }

    /// Waits for the end of the server. Returns the exit code.
    #[track_caller]
    pub(super) fn wait(&mut self) -> Option<i32> {
        wait_until(|| self.child.try_wait().unwrap(), || "the end of the server".to_owned()).code()
    }

    #[track_caller]
    pub(super) fn stop(&mut self) -> Option<i32> {
        self.signal("-TERM");
        self.wait()
    }

    /// Returns a connection after its handshake, with simple replies.
    pub(super) fn connect(&self) -> UnixStream {
        let mut socket = UnixStream::connect(self.here.join("s")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.read_exact(&mut [0; 18]).unwrap();
        socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        socket.read_exact(&mut [0; 10]).unwrap();
        socket
    }

    /// Returns the metrics for this header `Accept`, after the headers of the response.
    pub(super) fn metrics(&self, accept: &str) -> String {
        let mut stream = self.metrics_socket();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    pub(super) fn metrics_socket(&self) -> TcpStream {
        let messages = self.messages();
        let at = messages.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics")).unwrap().0;
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(super) fn wait_until<T>(mut look: impl FnMut() -> Option<T>, what: impl Fn() -> String) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "timeout while waiting for {}", what());
        thread::sleep(Duration::from_millis(2));
    }
}

pub(super) const READ: u16 = 0;
pub(super) const WRITE: u16 = 1;
pub(super) const WRITE_ZEROES: u16 = 6;
pub(super) const NO_HOLE: u16 = 1 << 1;
pub(super) const FAST_ZERO: u16 = 1 << 4;

/// Sends a request for the first block. Returns the error of the reply.
#[track_caller]
pub(super) fn ask(socket: &mut UnixStream, command: u16, flags: u16) -> u32 {
    send(socket, command, flags);
    let mut reply = [0; 16];
    socket.read_exact(&mut reply).unwrap();
    let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
    if error == 0 && command == READ {
        socket.read_exact(&mut [0; 4096]).unwrap();
    }
    error
}

pub(super) fn send(socket: &mut UnixStream, command: u16, flags: u16) {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(command.to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(4096_u32.to_be_bytes());
    if command == WRITE {
        bytes.resize(bytes.len() + 4096, 0x5a);
    }
    socket.write_all(&bytes).unwrap();
}

/// Connects a client that sends a wrong handshake.
pub(super) fn bad_handshake(here: &Path) {
    let mut socket = UnixStream::connect(here.join("s")).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.read_exact(&mut [0; 18]).unwrap();
    socket.write_all(b"garbage!").unwrap();
    let _ = socket.read_to_end(&mut Vec::new());
}

/// Returns the write end of a full pipe, and the read end. No process reads from the pipe.
pub(super) fn full_pipe() -> (Stdio, PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let mut filler = writer.try_clone().unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    // The thread ends when the reader is dropped.
    thread::spawn(move || {
        while filler.write_all(&[b'.'; 1024]).is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut last = 0;
    wait_until(
        || {
            thread::sleep(Duration::from_millis(100));
            let now = written.load(Ordering::SeqCst);
            (now > 0 && std::mem::replace(&mut last, now) == now).then_some(())
        },
        || "a full pipe".to_owned(),
    );
    (writer.into(), reader)
}
