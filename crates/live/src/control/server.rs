//! The control socket. One thread answers all clients, and answers one request of each client at a
//! time.
//!
//! The handler executes the requests. A client that does not read its answers must wait. A client
//! that sends a line above the maximum length gets an error, and the server closes its connection.
//! If there are [`CONNECTIONS_MAX`] connections, a new connection replaces the connection that has
//! been idle for the longest time.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::wire::{Answer, Request, RequestDecoder};
use crate::Errno;
use crate::OwnedListener;

/// Maximum number of connections at the same time.
pub const CONNECTIONS_MAX: usize = 64;
/// Pause before the listener accepts again after a failure.
const DEAF: Duration = Duration::from_millis(100);
/// Maximum number of bytes per read.
const READ_BYTES: usize = 4096;

/// A thread that answers requests. It ends when this value is dropped.
#[derive(Debug)]
pub struct ControlServer {
    wake: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Answers the requests at `listener` with the results of `handler`.
    ///
    /// # Errors
    /// The system cannot create a thread or an event.
    pub fn spawn(listener: OwnedListener, handler: impl FnMut(Request) -> Answer + Send + 'static) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        listener.listener().set_nonblocking(true)?;
        let mut service =
            Service { listener, wake: wake.try_clone()?, handler, connections: Vec::new(), turn: 0, deaf_until: None };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || service.run())?;
        Ok(Self { wake, thread: Some(thread) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Connection {
    stream: UnixStream,
    decoder: RequestDecoder,
    /// The answer that is being sent. `sent` is the number of its bytes that are already sent.
    out: Vec<u8>,
    sent: usize,
    /// Whether the connection ends after the current answer.
    closing: bool,
    /// Number of the turn in which the connection was last active.
    turn: u64,
}

/// Whether a connection stays open.
#[derive(PartialEq, Eq)]
enum Fate {
    Stays,
    Ends,
}

impl Connection {
    fn new(stream: UnixStream, turn: u64) -> Self {
        let decoder = RequestDecoder::default();
        Self { stream, decoder, out: Vec::new(), sent: 0, closing: false, turn }
    }

    fn awaited(&self) -> PollFlags {
        if self.out.is_empty() { PollFlags::IN } else { PollFlags::OUT }
    }

    fn advance(&mut self, handler: &mut impl FnMut(Request) -> Answer) -> io::Result<Fate> {
        if self.out.is_empty() {
            let mut bytes = [0; READ_BYTES];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Fate::Ends),
                Ok(count) => self.decoder.push(&bytes[..count]),
                Err(error) if is_transient(&error) => return Ok(Fate::Stays),
                Err(error) => return Err(error),
            }
        }
        loop {
            if !self.send()? {
                return Ok(Fate::Stays);
            }
            if self.closing {
                return Ok(Fate::Ends);
            }
            let answer = match self.decoder.decode() {
                Ok(None) => return Ok(Fate::Stays),
                Ok(Some(request)) => handler(request),
                Err(error) => {
                    self.closing = error.is_fatal();
                    Answer::Error { errno: Errno::EINVAL, message: error.to_string() }
                }
            };
            answer.encode(&mut self.out);
        }
    }

    /// Sends pending bytes. Returns whether all bytes are sent.
    fn send(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if is_transient(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.out = Vec::new();
        self.sent = 0;
        Ok(true)
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

struct Service<H> {
    listener: OwnedListener,
    wake: OwnedFd,
    handler: H,
    connections: Vec<Connection>,
    turn: u64,
    /// End of the pause during which the server accepts no connection.
    deaf_until: Option<Instant>,
}

impl<H: FnMut(Request) -> Answer> Service<H> {
    fn run(&mut self) {
        while let Ok(ready) = self.wait() {
            self.turn += 1;
            let [stop, accept, connections @ ..] = ready.as_slice() else { return };
            if *stop {
                return;
            }
            for at in (0..connections.len()).rev().filter(|&at| connections[at]) {
                let connection = &mut self.connections[at];
                connection.turn = self.turn;
                if connection.advance(&mut self.handler).unwrap_or(Fate::Ends) == Fate::Ends {
                    self.connections.swap_remove(at);
                }
            }
            if *accept {
                self.accept();
            }
        }
    }

    /// Waits for an event. Returns flags: whether the server must stop, whether a client connects,
    /// and whether each connection is ready.
    fn wait(&mut self) -> io::Result<Vec<bool>> {
        self.deaf_until = self.deaf_until.filter(|&until| until > Instant::now());
        let accepting = if self.deaf_until.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut waiting =
            vec![PollFd::new(&self.wake, PollFlags::IN), PollFd::new(self.listener.listener(), accepting)];
        waiting.extend(self.connections.iter().map(|c| PollFd::new(&c.stream, c.awaited())));
        let timeout = self.deaf_until.and_then(|_| Timespec::try_from(DEAF).ok());
        loop {
            match poll(&mut waiting, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(waiting.iter().map(|fd| !fd.revents().is_empty()).collect()),
            }
        }
    }

    fn accept(&mut self) {
        let stream = match self.listener.listener().accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_transient(&error) {
                    // The most likely cause is too many open files. The server still serves
                    // connected clients. New clients wait for a moment.
                    self.deaf_until = Some(Instant::now() + DEAF);
                }
                return;
            }
        };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.connections.len() == CONNECTIONS_MAX {
            let silent = (0..CONNECTIONS_MAX).min_by_key(|&at| self.connections[at].turn);
            silent.map(|at| self.connections.swap_remove(at));
        }
        self.connections.push(Connection::new(stream, self.turn));
    }
}

/// Returns whether there is a socket at `path`. It may be the socket of a [`ControlServer`].
#[must_use]
pub fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}
