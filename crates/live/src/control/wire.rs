//! Protocol of the control socket, sans-IO: converts bytes to requests and answers, and back.
//!
//! Each request is one line of JSON. Each answer is also one line:
//!
//! ```text
//! {"op":"list","path":"queue"}                               {"ok":"nr_requests\nscheduler\niosched/\n"}
//! {"op":"read","path":"queue/nr_requests"}                   {"ok":"128\n"}
//! {"op":"write","path":"queue/nr_requests","value":"64"}     {"ok":""}
//! {"op":"read","path":"queue/nr_request"}                    {"error":{"errno":2,"message":"queue/nr_request: …"}}
//! ```
//!
//! A list has one name per line. The name of a directory ends with `/`. The path of the root is
//! empty. Requests are answered in order. After a line that is too long, the following bytes cannot
//! be decoded. The reader then reports an error and closes the connection.

use serde::{Deserialize, Serialize};

use crate::Errno;

/// Maximum length of a request without its newline, bytes. The longest path and value of sysfs fit
/// into it.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Maximum length of an answer, bytes.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A request of a client. Paths have no slash at either end; the path of the root is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// Lists a directory.
    List {
        /// Path of the directory.
        path: String,
    },
    /// Reads a file.
    Read {
        /// Path of the file.
        path: String,
    },
    /// Writes a file.
    Write {
        /// Path of the file.
        path: String,
        /// Value, without newlines.
        value: String,
    },
}

/// Answer to a request on the control socket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The request succeeded. The text is the list or the content of the file, and is empty for a
    /// write.
    Ok(String),
    /// The request failed.
    Error {
        /// Error number that sysfs would return.
        errno: Errno,
        /// Description of the error and of the correct form.
        message: String,
    },
}

/// Error in a message on the control socket.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// A line is longer than this number of bytes.
    #[error("a line is longer than {0} bytes")]
    LineTooLong(usize),
    /// A line is not a request.
    #[error("{found:?} is not a valid request: {problem}; write {REQUEST}")]
    NotARequest {
        /// Beginning of the line.
        found: String,
        /// Description of the error.
        problem: String,
    },
    /// A value contains a newline, which no file of the tree accepts.
    #[error("a value must not contain line ends")]
    BadValue,
    /// A line is not an answer of a server.
    #[error("{found:?} is not a valid reply: {problem}")]
    NotAnAnswer {
        /// Beginning of the line.
        found: String,
        /// Description of the error.
        problem: String,
    },
}

/// Valid forms of a request, for error messages.
const REQUEST: &str =
    r#"{"op":"list","path":""}, {"op":"read","path":PATH} or {"op":"write","path":PATH,"value":VALUE}"#;
/// Number of characters of a line that an error message quotes.
const FOUND_CHARS: usize = 80;

impl WireError {
    /// Returns whether decoding must stop after this error. After a fatal error, the decoder cannot
    /// decode any further bytes.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::LineTooLong(_) | Self::NotAnAnswer { .. })
    }
}

fn line_of(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("strings and numbers are JSON");
    line.push(b'\n');
    line
}

/// Returns the beginning of a line, for a message.
fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(FOUND_CHARS).collect()
}

impl Request {
    /// Encodes the request as a line.
    ///
    /// # Errors
    /// The value contains a newline, or the line would be too long.
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let line = line_of(self);
        if line.len() > LINE_BYTES_MAX + 1 {
            return Err(WireError::LineTooLong(LINE_BYTES_MAX));
        }
        self.check()?;
        Ok(line)
    }

    fn decode(line: &[u8]) -> Result<Self, WireError> {
        let mut request: Self = serde_json::from_slice(line)
            .map_err(|error| WireError::NotARequest { found: excerpt(line), problem: error.to_string() })?;
        let (Self::List { path } | Self::Read { path } | Self::Write { path, .. }) = &mut request;
        *path = path.trim_matches('/').to_owned();
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), WireError> {
        match self {
            Self::Write { value, .. } if value.contains(['\n', '\r']) => Err(WireError::BadValue),
            _ => Ok(()),
        }
    }
}

impl Answer {
    /// Appends the encoded answer to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&line_of(self));
    }
}

/// Splits a stream of bytes into lines. Holds at most one line and the bytes of the last push.
#[derive(Debug)]
struct Lines {
    buffer: Vec<u8>,
    /// Start of the part that was not searched yet. There is no newline before it.
    searched: usize,
    bytes_max: usize,
}

impl Lines {
    const fn new(bytes_max: usize) -> Self {
        Self { buffer: Vec::new(), searched: 0, bytes_max }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next line without its newline, if the line is complete.
    fn next(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let found = self.buffer[self.searched..].iter().position(|&b| b == b'\n').map(|at| at + self.searched);
        self.searched = found.unwrap_or(self.buffer.len());
        if self.searched > self.bytes_max {
            return Err(WireError::LineTooLong(self.bytes_max));
        }
        let Some(end) = found else { return Ok(None) };
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        self.searched = 0;
        line.pop();
        Ok(Some(line))
    }
}

/// Decoder of the server: bytes in, requests out.
#[derive(Debug)]
pub struct RequestDecoder {
    lines: Lines,
}

impl Default for RequestDecoder {
    fn default() -> Self {
        Self { lines: Lines::new(LINE_BYTES_MAX) }
    }
}

impl RequestDecoder {
    /// Appends received bytes. Decode all requests before the next push, because the buffer keeps
    /// all bytes that are not decoded.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Returns the next request, if it is complete.
    ///
    /// # Errors
    /// A line is not a request. If the error is [fatal](WireError::is_fatal), every later call
    /// returns the same error.
    pub fn decode(&mut self) -> Result<Option<Request>, WireError> {
        self.lines.next()?.map(|line| Request::decode(&line)).transpose()
    }
}

/// Decoder of the client: bytes in, answers out.
#[derive(Debug)]
pub struct AnswerDecoder {
    lines: Lines,
}

impl Default for AnswerDecoder {
    fn default() -> Self {
        Self { lines: Lines::new(ANSWER_BYTES_MAX) }
    }
}

impl AnswerDecoder {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Returns the next answer, if it is complete.
    ///
    /// # Errors
    /// The line is not an answer. The following bytes cannot be decoded either.
    pub fn decode(&mut self) -> Result<Option<Answer>, WireError> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        let not_one =
            |error: serde_json::Error| WireError::NotAnAnswer { found: excerpt(&line), problem: error.to_string() };
        serde_json::from_slice(&line).map(Some).map_err(not_one)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
