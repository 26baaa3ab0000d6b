//! Errors of attributes.

use std::fmt;
use std::io;

use iosched_kernel::FindError;

/// An error of finding, reading or changing attributes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttributesError {
    /// The disk, the name or the value is wrong. Another one would be right.
    #[error("{0}")]
    Wrong(String),
    /// There is no such disk.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The tree cannot be listed, read or written.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The change failed.
    #[error("{0}")]
    Failed(String),
}

/// An error that another disk, name or value avoids.
pub(crate) fn wrong(problem: impl fmt::Display) -> AttributesError {
    AttributesError::Wrong(problem.to_string())
}

/// An error that the caller cannot avoid.
pub(crate) fn failed(problem: impl fmt::Display) -> AttributesError {
    AttributesError::Failed(problem.to_string())
}

/// An error of listing, reading or writing in a tree.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TreeError {
    /// What the system, or the server, calls it.
    pub kind: io::ErrorKind,
    /// For people, with the path.
    pub message: String,
    /// Whether the message says what would be right.
    pub explains: bool,
}

impl TreeError {
    /// Whether nobody answers any more.
    #[must_use]
    pub fn is_end(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        matches!(self.kind, BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
    }

    /// Whether there is no such file.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self.kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}
