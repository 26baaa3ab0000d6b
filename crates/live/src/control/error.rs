//! Errors of the control tree.

use rustix::io::Errno as Os;

use crate::Errno;

/// Reason why a path of the control tree cannot be listed, read or written. After such an error,
/// nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The path does not exist.
    #[error("{path}: there is no such file or directory; {known}")]
    NotFound {
        /// Path of the request.
        path: String,
        /// Phrase that lists the existing names.
        known: String,
    },
    /// The request reads or writes a file, but the path is a directory.
    #[error("{path} is a directory; list the directory, or name a file in it")]
    IsDirectory {
        /// Path of the request.
        path: String,
    },
    /// The request lists a directory, but the path is a file.
    #[error("{path} is a file, not a directory; read the file instead of listing it")]
    NotADirectory {
        /// Path of the request.
        path: String,
    },
    /// The file cannot be written.
    #[error("{path} is read-only")]
    ReadOnly {
        /// Path of the request.
        path: String,
    },
    /// The file does not accept the value.
    #[error("{path}: {problem}")]
    Invalid {
        /// Path of the file.
        path: String,
        /// Description of the error and of allowed values.
        problem: String,
    },
    /// The value has the right form but is out of range.
    #[error("{path}: {problem}")]
    OutOfRange {
        /// Path of the file.
        path: String,
        /// Description of the error and of allowed values.
        problem: String,
    },
    /// The directory to create exists already.
    #[error("{path} already exists")]
    Exists {
        /// Path of the directory.
        path: String,
    },
    /// The directory to remove is in use.
    #[error("{path}: {problem}")]
    InUse {
        /// Path of the directory.
        path: String,
        /// The users of the directory, and the remedy.
        problem: String,
    },
    /// The disk does not allow the request, or does not allow it now.
    #[error("{path}: {problem}")]
    Refused {
        /// Path of the request.
        path: String,
        /// Reason of the refusal.
        problem: String,
    },
    /// The disk has been stopped.
    #[error("the server of this disk is ending")]
    Stopped,
}

impl ControlError {
    /// Returns the error number that sysfs would return.
    #[must_use]
    pub fn errno(&self) -> Errno {
        let os = match self {
            Self::NotFound { .. } => Os::NOENT,
            Self::IsDirectory { .. } => Os::ISDIR,
            Self::NotADirectory { .. } => Os::NOTDIR,
            Self::ReadOnly { .. } => Os::ACCESS,
            Self::Invalid { .. } => Os::INVAL,
            Self::OutOfRange { .. } => Os::RANGE,
            Self::Exists { .. } => Os::EXIST,
            Self::InUse { .. } => Os::BUSY,
            Self::Refused { .. } => Os::PERM,
            Self::Stopped => Os::NODEV,
        };
        Errno(os.raw_os_error())
    }
}
