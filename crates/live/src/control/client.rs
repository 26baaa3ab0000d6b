//! Client of the control socket.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::wire::{Answer, AnswerDecoder, Request, WireError};
use crate::{Errno, sys};

/// Maximum time to wait for an answer, seconds. The disk's thread first finishes its current work,
/// and a write may wait for all requests in flight.
const ANSWER_SECONDS_MAX: u64 = 30;
/// Maximum time to wait for the first answer, seconds. Until this answer, the socket may not be a
/// control socket.
const FIRST_ANSWER_SECONDS_MAX: u64 = 10;
/// Maximum time to wait for the greeting of NBD, seconds. An NBD server sends its greeting without
/// a request.
const GREETING_SECONDS_MAX: u64 = 1;

/// Error of a request to a server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refuses the request. The message describes the error and the correct values.
    #[error("{message}")]
    Refused {
        /// Error number that sysfs would return.
        errno: Errno,
        /// Message for the user.
        message: String,
    },
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other end is not a control socket, or the request cannot be encoded.
    #[error("{0}")]
    Wire(#[from] WireError),
}

/// Returns the process number of the server at the socket `path` if the server speaks NBD. The
/// number is 0 if it is not known. Returns `None` if the server does not speak NBD.
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
    /// Maximum time to wait for the next answer, seconds.
    seconds_max: u64,
}

impl ControlClient {
    /// Connects to the server at `path`.
    ///
    /// # Errors
    /// No server listens at `path`.
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

    /// Returns the names in the directory `path`. The name of a directory ends with `/`.
    ///
    /// # Errors
    /// The directory does not exist, or the connection fails.
    pub fn list(&mut self, path: &str) -> Result<Vec<String>, ClientError> {
        let names = self.ask(&Request::List { path: path.to_owned() })?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Returns the content of the file `path`.
    ///
    /// # Errors
    /// The file does not exist, or the connection fails.
    pub fn read(&mut self, path: &str) -> Result<String, ClientError> {
        self.ask(&Request::Read { path: path.to_owned() })
    }

    /// Writes `value` to the file `path`.
    ///
    /// # Errors
    /// The file does not exist, it does not accept the value, or the connection fails.
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
