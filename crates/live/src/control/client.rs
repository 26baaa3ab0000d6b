//! The other end of the control socket.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::wire::{Answer, AnswerDecoder, Request, WireError};
use crate::{Errno, sys};

/// How long an answer may take. A disk answers between two requests of its own, and a write may wait for all under way.
const ANSWER_SECONDS_MAX: u64 = 30;
/// How long the first may take: until then it may be no control socket.
const FIRST_ANSWER_SECONDS_MAX: u64 = 10;
/// How long NBD's greeting may take, for which nobody has to ask.
const GREETING_SECONDS_MAX: u64 = 1;

/// What a server, or the way to it, says instead of an answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refuses: what was wrong, and what would be right.
    #[error("{message}")]
    Refused {
        /// What sysfs says in that case.
        errno: Errno,
        /// For people.
        message: String,
    },
    /// The connection is broken.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What answers is not a control socket, or what is asked cannot be said.
    #[error("{0}")]
    Wire(#[from] WireError),
}

/// The process that serves NBD at a socket, if that is what it is for; 0 if it is not known.
#[must_use]
pub fn nbd_server(path: &Path) -> Option<u32> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(GREETING_SECONDS_MAX))).ok()?;
    let mut greeting = [0; 8];
    stream.read_exact(&mut greeting).ok()?;
    (&greeting == b"NBDMAGIC").then(|| sys::unix_peer(stream.as_fd()).1)
}

/// A connection to a control socket.
#[derive(Debug)]
pub struct ControlClient {
    stream: UnixStream,
    decoder: AnswerDecoder,
    /// How long the next answer may take, s.
    seconds_max: u64,
}

impl ControlClient {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        let mut client = Self { stream, decoder: AnswerDecoder::default(), seconds_max: 0 };
        client.wait_at_most(FIRST_ANSWER_SECONDS_MAX)?;
        Ok(client)
    }

    fn wait_at_most(&mut self, seconds: u64) -> io::Result<()> {
        self.seconds_max = seconds;
        self.stream.set_read_timeout(Some(Duration::from_secs(seconds)))
    }

    /// The names in the directory `path`, a directory's with `/` at its end.
    ///
    /// # Errors
    /// If there is no such directory, or the connection fails.
    pub fn list(&mut self, path: &str) -> Result<Vec<String>, ClientError> {
        let names = self.ask(&Request::List { path: path.to_owned() })?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// What the file `path` holds.
    ///
    /// # Errors
    /// If there is no such file, or the connection fails.
    pub fn read(&mut self, path: &str) -> Result<String, ClientError> {
        self.ask(&Request::Read { path: path.to_owned() })
    }

    /// Gives the file `path` the value `value`.
    ///
    /// # Errors
    /// If there is no such file, it does not take that value, or the connection fails.
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), ClientError> {
        let value = value.trim_end_matches('\n').to_owned();
        self.ask(&Request::Write { path: path.to_owned(), value }).map(drop)
    }

    fn ask(&mut self, request: &Request) -> Result<String, ClientError> {
        self.stream.write_all(&request.encode()?)?;
        let mut bytes = [0; 4096];
        loop {
            let answer = self.decoder.decode()?;
            if answer.is_some() && self.seconds_max != ANSWER_SECONDS_MAX {
                self.wait_at_most(ANSWER_SECONDS_MAX)?;
            }
            match answer {
                Some(Answer::Ok(body)) => return Ok(body),
                Some(Answer::Error { errno, message }) => return Err(ClientError::Refused { errno, message }),
                None => match self.stream.read(&mut bytes) {
                    Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                    Ok(count) => self.decoder.push(&bytes[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let message = format!("no answer within {} seconds", self.seconds_max);
                        return Err(io::Error::new(io::ErrorKind::TimedOut, message).into());
                    }
                    Err(error) => return Err(error.into()),
                },
            }
        }
    }
}
