//! The language of the control socket, without sockets: bytes in, requests and answers out, and back.
//!
//! A request is a line of JSON, and so is its answer:
//!
//! ```text
//! {"op":"list","path":"queue"}                               {"ok":"nr_requests\nscheduler\niosched/\n"}
//! {"op":"read","path":"queue/nr_requests"}                   {"ok":"128\n"}
//! {"op":"write","path":"queue/nr_requests","value":"64"}     {"ok":""}
//! {"op":"read","path":"queue/nr_request"}                    {"error":{"errno":2,"message":"queue/nr_request: …"}}
//! ```
//!
//! A list is a name a line, a directory's with `/` at its end; the root's path is empty. Requests are answered in their
//! order. After a line that is too long nothing more is understood: whoever reads it says so and hangs up.

use serde::{Deserialize, Serialize};

use crate::Errno;

/// Longest request, its line's end not counted: a path and a value of sysfs fit.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Longest answer.
pub const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a client asks. Paths have no slash at either end; the root's is empty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// What is in a directory.
    List {
        /// The directory.
        path: String,
    },
    /// What a file holds.
    Read {
        /// The file.
        path: String,
    },
    /// Give a file a value.
    Write {
        /// The file.
        path: String,
        /// The value, without line ends.
        value: String,
    },
}

/// What it is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// A list, or what a file holds; of a write nothing.
    Ok(String),
    /// It cannot be.
    Error {
        /// What sysfs says in that case.
        errno: Errno,
        /// What was wrong, and what would be right.
        message: String,
    },
}

/// Bytes that are not of this language.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// No end of line in sight.
    #[error("a line is longer than {0} bytes")]
    LineTooLong(usize),
    /// A line that says something else.
    #[error("{found:?} is not a request: {problem}; write {REQUEST}")]
    NotARequest {
        /// How it begins.
        found: String,
        /// What is wrong.
        problem: String,
    },
    /// A value with a line end, which no file of the tree takes.
    #[error("a value must not contain line ends")]
    BadValue,
    /// Not what a server says.
    #[error("{found:?} is not a reply: {problem}")]
    NotAnAnswer {
        /// How it begins.
        found: String,
        /// What is wrong.
        problem: String,
    },
}

/// One that can be asked anywhere.
const REQUEST: &str =
    r#"{"op":"list","path":""}, {"op":"read","path":PATH} or {"op":"write","path":PATH,"value":VALUE}"#;
/// Characters told of what was not understood.
const FOUND_CHARS: usize = 80;

impl WireError {
    /// Whether what follows cannot be understood either.
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

/// How a line begins, for people.
fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(FOUND_CHARS).collect()
}

impl Request {
    /// The line that asks this.
    ///
    /// # Errors
    /// If the value has a line end within it, or the line would be too long.
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
    /// Appends this to what is sent.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&line_of(self));
    }
}

/// Lines out of bytes as they come. Holds no more than a line and what was last pushed.
#[derive(Debug)]
struct Lines {
    buffer: Vec<u8>,
    /// No line ends before here.
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

    /// The next line without its end, if it is there.
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

/// A server's side: bytes in, requests out.
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
    /// Takes bytes as they come. Take all requests out before pushing more: that bounds what is held.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next request, if it is there whole.
    ///
    /// # Errors
    /// If a line is not a request; if that is [`WireError::is_fatal`], the same again and again.
    pub fn decode(&mut self) -> Result<Option<Request>, WireError> {
        self.lines.next()?.map(|line| Request::decode(&line)).transpose()
    }
}

/// A client's side: bytes in, answers out.
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
    /// Takes bytes as they come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next answer, if it is there whole.
    ///
    /// # Errors
    /// If it is not an answer; nothing after it can be understood.
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
