//! The sockets for frontends. Each socket has its own thread. A frontend has a session until one
//! side disconnects.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::session::Session;
use super::{Door, VhostError};
use crate::disk::Identity;
use crate::nbd::{Export, Exports};
use crate::reactor::ConnectError;
use crate::{Handle, OwnedListener, sys};

/// Pause before a socket accepts again after a failure.
const DEAF: Duration = Duration::from_millis(100);

/// Sockets for virtual machines. When dropped, they end the service for connected frontends.
pub struct Sockets {
    /// Each socket, with the state of its thread. A dropped listener removes its file, even if its
    /// thread still runs.
    doors: Vec<(OwnedListener, Arc<Mutex<State>>)>,
    warnings: Vec<String>,
}

/// State of a socket.
#[derive(Default)]
struct State {
    ended: bool,
    /// Connection of the current frontend.
    stream: Option<UnixStream>,
}

/// Serves frontends at each door. The export of each door is one of `exports`.
///
/// # Errors
/// The disk has ended, or the system cannot create threads.
pub fn serve(disk: &Handle, exports: &Exports, doors: Vec<Door>) -> Result<Sockets, VhostError> {
    let mut sockets = Sockets { doors: Vec::new(), warnings: Vec::new() };
    for Door { listener, export } in doors {
        let group = exports.group(&export).map(|(name, portion)| (name.to_owned(), portion));
        if let Some((name, portion)) = group.clone() {
            let set = disk.control(move |disk, _| disk.group(&name, portion)).map_err(ConnectError::from)?;
            sockets.warnings.extend(set.err().map(|error| error.to_string()));
        }
        let state = Arc::new(Mutex::new(State::default()));
        let mut socket = Socket {
            disk: disk.clone(),
            listener: listener.listener().try_clone().map_err(VhostError::Socket)?,
            state: Arc::clone(&state),
            export,
            group: group.map(|(name, _)| name),
        };
        let thread = std::thread::Builder::new().name("vhost".to_owned());
        thread.spawn(move || socket.run()).map_err(VhostError::Socket)?;
        sockets.doors.push((listener, state));
    }
    Ok(sockets)
}

impl Sockets {
    /// Returns warnings for the user.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for (listener, state) in &self.doors {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ended = true;
            // The shutdown wakes both sides. An error means that the socket is already closed.
            let _ = rustix::net::shutdown(listener.listener(), rustix::net::Shutdown::Both);
            let _ = state.stream.take().map(|stream| stream.shutdown(Shutdown::Both));
        }
    }
}

/// State of a socket's thread.
struct Socket {
    disk: Handle,
    listener: UnixListener,
    state: Arc<Mutex<State>>,
    export: Export,
    group: Option<String>,
}

impl Socket {
    fn run(&mut self) {
        loop {
            let accepted = self.listener.accept();
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.ended {
                return;
            }
            let stream = accepted.and_then(|(stream, _)| {
                state.stream = Some(stream.try_clone()?);
                Ok(stream)
            });
            drop(state);
            match stream {
                Ok(stream) => self.serve(stream),
                Err(error) => {
                    let text = format!("warning: cannot accept the connection of a virtual machine: {error}");
                    self.disk.messages().note("virtual machines that could not connect", &text);
                    std::thread::sleep(DEAF);
                }
            }
            self.state.lock().unwrap_or_else(PoisonError::into_inner).stream = None;
        }
    }

    fn serve(&self, stream: UnixStream) {
        let (peer, pid) = sys::unix_peer(stream.as_fd());
        let name = if self.export.name.is_empty() { peer } else { format!("{} {peer}", self.export.name) };
        let identity = Identity {
            name: name.clone(),
            pid,
            ioprio: self.export.ioprio,
            group: self.group.clone(),
            read_only: self.export.read_only,
            sync: self.export.sync,
        };
        let served = Session::open(&self.disk, &self.export, identity)
            .map_err(io::Error::other)
            .and_then(|session| session.run(stream));
        if let Err(error) = served {
            self.disk
                .messages()
                .note("virtual machines whose connection was closed", &format!("{name}: connection closed: {error}"));
        }
    }
}
