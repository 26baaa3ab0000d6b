//! Tree of a server, which the server offers through its control socket.

use std::io;
use std::path::{Path, PathBuf};

use iosched_live::control::{ClientError, ControlClient, nbd_server};

use crate::error::{failed as failed_with, wrong};
use crate::place::LIVE;
use crate::{AttributesError, Entry, Tree, TreeError};

/// Tree of the server that listens at a socket.
pub(crate) struct Socket {
    client: ControlClient,
    path: PathBuf,
}

impl Socket {
    pub(crate) fn connect(path: &Path) -> Result<Self, AttributesError> {
        let client = ControlClient::connect(path).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => wrong(format!(
                "{}: the server of this control socket has ended; start the server again",
                path.display()
            )),
            _ => failed_with(format!("{}: {error}", path.display())),
        })?;
        Ok(Self { client, path: path.to_owned() })
    }
}

/// Returns the error for a socket that does not answer like a control socket. If it is the socket
/// of an NBD server, the message names the control socket of this server.
pub(crate) fn instead(path: &Path, error: TreeError) -> AttributesError {
    let shown = path.display();
    let Some(server) = nbd_server(path) else {
        let is_other = error.is_end() || matches!(error.kind, io::ErrorKind::InvalidData | io::ErrorKind::TimedOut);
        return match is_other {
            true => wrong(format!("{shown}: this is not a control socket: its server does not answer as iosched does")),
            false => error.into(),
        };
    };
    let hint = control_of(server).map_or_else(
        || {
            "iosched finds no control socket of this server; start the server with iosched serve --control SOCKET"
                .to_owned()
        },
        |control| format!("the control socket of this server is {control}"),
    );
    wrong(format!("{shown}: this is a socket for NBD clients, not a control socket; {hint}"))
}

/// Returns the path of the control socket in the command line of a server.
fn control_of(server: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{server}/cmdline")).ok()?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.split('\0');
    let named = words.find_map(|word| word.strip_prefix("--control"))?;
    let named = named.strip_prefix('=').or_else(|| words.next())?;
    if named.starts_with(LIVE) {
        return Some(named.to_owned());
    }
    let of_server = std::fs::read_link(format!("/proc/{server}/cwd")).ok()?;
    Some(of_server.join(named).display().to_string())
}

fn failed(socket: &Path, error: &ClientError) -> TreeError {
    let (kind, explains) = match error {
        ClientError::Refused { errno, .. } => (io::Error::from_raw_os_error(errno.0).kind(), true),
        ClientError::Io(error) => (error.kind(), false),
        ClientError::Wire(_) => (io::ErrorKind::InvalidData, true),
    };
    let message = match error {
        ClientError::Refused { message, .. } => message.clone(),
        _ => format!("{}: {error}", socket.display()),
    };
    TreeError { kind, message, explains }
}

impl Tree for Socket {
    fn list(&mut self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let names = self.client.list(path).map_err(|error| failed(&self.path, &error))?;
        let entry = |name: String| match name.strip_suffix('/') {
            Some(name) => Entry { name: name.to_owned(), is_directory: true },
            None => Entry { name, is_directory: false },
        };
        Ok(names.into_iter().map(entry).collect())
    }

    fn read(&mut self, path: &str) -> Result<String, TreeError> {
        self.client.read(path).map_err(|error| failed(&self.path, &error))
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), TreeError> {
        self.client.write(path, value).map_err(|error| failed(&self.path, &error))
    }
}
