//! The language of the control socket, without sockets: bytes in, requests and answers out, and back.
//!
//! A request is a line, and so is the head of an answer:
//!
//! ```text
//! list PATH             ok LENGTH, then LENGTH bytes: a name a line, a directory's with / at its end
//! read PATH             ok LENGTH, then LENGTH bytes: what the file holds
//! write PATH VALUE      ok 0
//!                       or, of each: error ERRNO MESSAGE
//! ```
//!
//! In a path what is not printable, blanks and `%` are written as `%` and two hexadecimal digits; `/` alone is the root. A value is
//! the rest of its line. Requests are answered in their order. After a line that is too long nothing more is understood: whoever
//! reads it says so and hangs up.

use crate::Errno;

/// Longest line, its end not counted: a path and a value of sysfs fit.
pub const LINE_BYTES_MAX: usize = 8 * 1024;
/// Longest body of an answer.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What a client asks. Paths have no slash at either end; the root's is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, PartialEq, Eq, Debug)]
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
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong,
    /// Not text.
    #[error("a line is not UTF-8")]
    NotText,
    /// An empty line, or one that begins otherwise.
    #[error("{0:?} is not a request: write list PATH, read PATH or write PATH VALUE")]
    UnknownRequest(String),
    /// A path with a % that is not followed by two hexadecimal digits, or with what should have been written so.
    #[error("{0:?} is not a path: write blanks, % and what is not printable as % and two hexadecimal digits")]
    BadPath(String),
    /// A value with a line end, which no line can hold.
    #[error("a value has no line ends within it")]
    BadValue,
    /// Neither `ok LENGTH` nor `error ERRNO MESSAGE`.
    #[error("{0:?} is not the head of an answer")]
    BadAnswer(String),
    /// A body longer than any answer's.
    #[error("an answer of {0} bytes is longer than {BODY_BYTES_MAX}")]
    AnswerTooLong(usize),
}

impl WireError {
    /// Whether what follows cannot be understood either.
    #[must_use]
    pub const fn is_fatal(&self) -> bool {
        !matches!(self, Self::NotText | Self::UnknownRequest(_) | Self::BadPath(_))
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'%'
}

fn encode_path(path: &str, line: &mut String) {
    use std::fmt::Write as _;
    if path.is_empty() {
        line.push('/');
    }
    for &byte in path.as_bytes() {
        if is_plain(byte) {
            line.push(char::from(byte));
        } else {
            let _ = write!(line, "%{byte:02x}");
        }
    }
}

fn decode_path(text: &str) -> Result<String, WireError> {
    let bad = || WireError::BadPath(text.to_owned());
    let mut path = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).ok_or_else(bad);
                let byte = digit()? * 16 + digit()?;
                path.push(u8::try_from(byte).map_err(|_| bad())?);
            }
            _ if is_plain(byte) => path.push(byte),
            _ => return Err(bad()),
        }
    }
    let path = String::from_utf8(path).map_err(|_| bad())?;
    if text.is_empty() {
        return Err(bad());
    }
    Ok(path.trim_matches('/').to_owned())
}

impl Request {
    /// The line that asks this.
    ///
    /// # Errors
    /// If the value has a line end within it, or the line would be too long.
    pub fn encode(&self) -> Result<String, WireError> {
        let mut line = String::new();
        let (verb, path, value) = match self {
            Self::List { path } => ("list ", path, None),
            Self::Read { path } => ("read ", path, None),
            Self::Write { path, value } => ("write ", path, Some(value)),
        };
        line.push_str(verb);
        encode_path(path, &mut line);
        if let Some(value) = value {
            if value.contains('\n') {
                return Err(WireError::BadValue);
            }
            line.push(' ');
            line.push_str(value);
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(WireError::LineTooLong);
        }
        line.push('\n');
        Ok(line)
    }

    fn decode(line: &str) -> Result<Self, WireError> {
        let unknown = || WireError::UnknownRequest(line.chars().take(80).collect());
        let (verb, rest) = line.split_once(' ').ok_or_else(unknown)?;
        match verb {
            "list" => Ok(Self::List { path: decode_path(rest)? }),
            "read" => Ok(Self::Read { path: decode_path(rest)? }),
            "write" => {
                let (path, value) = rest.split_once(' ').ok_or_else(unknown)?;
                Ok(Self::Write { path: decode_path(path)?, value: value.to_owned() })
            }
            _ => Err(unknown()),
        }
    }
}

impl Answer {
    /// Appends this to what is sent.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ok(body) => {
                out.extend_from_slice(format!("ok {}\n", body.len()).as_bytes());
                out.extend_from_slice(body.as_bytes());
            }
            Self::Error { errno, message } => {
                let mut line = format!("error {} {}", errno.0, message.replace(['\n', '\r'], " "));
                let mut end = line.len().min(LINE_BYTES_MAX);
                while !line.is_char_boundary(end) {
                    end -= 1;
                }
                line.truncate(end);
                line.push('\n');
                out.extend_from_slice(line.as_bytes());
            }
        }
    }
}

/// Lines out of bytes as they come. Holds no more than a line and what was last pushed.
#[derive(Default, Debug)]
struct Lines {
    buffer: Vec<u8>,
    /// No line ends before here.
    searched: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line without its end, if it is there.
    fn next(&mut self) -> Result<Option<String>, WireError> {
        let Some(end) = self.buffer[self.searched..].iter().position(|&b| b == b'\n').map(|at| at + self.searched)
        else {
            self.searched = self.buffer.len();
            return if self.searched > LINE_BYTES_MAX { Err(WireError::LineTooLong) } else { Ok(None) };
        };
        if end > LINE_BYTES_MAX {
            return Err(WireError::LineTooLong);
        }
        let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
        self.searched = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|_| WireError::NotText)
    }
}

/// A server's side: bytes in, requests out.
#[derive(Default, Debug)]
pub struct RequestDecoder {
    lines: Lines,
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
#[derive(Default, Debug)]
pub struct AnswerDecoder {
    lines: Lines,
    /// The head is read, and the body has so many bytes.
    body_bytes: Option<usize>,
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
        let body_bytes = match self.body_bytes {
            Some(bytes) => bytes,
            None => match self.head()? {
                None => return Ok(None),
                Some(Head::Error(answer)) => return Ok(Some(answer)),
                Some(Head::Body(bytes)) => *self.body_bytes.insert(bytes),
            },
        };
        if self.lines.buffer.len() < body_bytes {
            return Ok(None);
        }
        self.body_bytes = None;
        let body: Vec<u8> = self.lines.buffer.drain(..body_bytes).collect();
        self.lines.searched = 0;
        String::from_utf8(body).map(|body| Some(Answer::Ok(body))).map_err(|_| WireError::NotText)
    }

    fn head(&mut self) -> Result<Option<Head>, WireError> {
        let Some(line) = self.lines.next()? else {
            return Ok(None);
        };
        let bad = || WireError::BadAnswer(line.chars().take(80).collect());
        match line.split_once(' ').ok_or_else(bad)? {
            ("ok", length) => match length.parse().map_err(|_| bad())? {
                bytes if bytes > BODY_BYTES_MAX => Err(WireError::AnswerTooLong(bytes)),
                bytes => Ok(Some(Head::Body(bytes))),
            },
            ("error", rest) => {
                let (errno, message) = rest.split_once(' ').ok_or_else(bad)?;
                let errno = Errno(errno.parse().ok().filter(|errno| (1..4096).contains(errno)).ok_or_else(bad)?);
                Ok(Some(Head::Error(Answer::Error { errno, message: message.to_owned() })))
            }
            _ => Err(bad()),
        }
    }
}

enum Head {
    Body(usize),
    Error(Answer),
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
