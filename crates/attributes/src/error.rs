//! Errors of attributes.

use std::fmt;
use std::io;

use iosched_kernel::FindError;

/// Error of finding, reading or changing attributes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttributesError {
    /// The disk, the name or the value is wrong. Another disk, name or value could be right.
    #[error("{0}")]
    Wrong(String),
    /// The disk does not exist.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The tree cannot be listed, read or written.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The change failed.
    #[error("{0}")]
    Failed(String),
}

/// Creates an error that the user can avoid with another disk, name or value.
pub(crate) fn wrong(problem: impl fmt::Display) -> AttributesError {
    AttributesError::Wrong(problem.to_string())
}

/// Creates an error that the user cannot avoid.
pub(crate) fn failed(problem: impl fmt::Display) -> AttributesError {
    AttributesError::Failed(problem.to_string())
}

/// Error of listing, reading or writing in a tree.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TreeError {
    /// Kind of the error from the system or the server.
    pub kind: io::ErrorKind,
    /// Message for people, with the path.
    pub message: String,
    /// Whether the message states the accepted values.
    pub explains: bool,
}

impl TreeError {
    /// Returns whether the error means that the server has ended or closed the connection.
    #[must_use]
    pub fn is_end(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        matches!(self.kind, BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
    }

    /// Returns whether the error means that the file does not exist.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self.kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }
}
