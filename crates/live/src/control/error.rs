//! What the control tree answers instead of a value.

use rustix::io::Errno as Os;

use crate::Errno;

/// Why a path of the control tree cannot be listed, read or written. Nothing has changed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// There is nothing of that name.
    #[error("{path}: does not exist; {known}")]
    NotFound {
        /// What was asked for.
        path: String,
        /// What there is instead, with its verb.
        known: String,
    },
    /// A file is read or written, and this is a directory.
    #[error("{path} is a directory; list it, or name a file in it")]
    IsDirectory {
        /// What was asked for.
        path: String,
    },
    /// A directory is listed, and this is a file.
    #[error("{path} is a file, not a directory; read it instead of listing it")]
    NotADirectory {
        /// What was asked for.
        path: String,
    },
    /// It can be read but not written.
    #[error("{path} is read-only")]
    ReadOnly {
        /// What was asked for.
        path: String,
    },
    /// The value is not one that can be written there.
    #[error("{path}: {problem}")]
    Invalid {
        /// Where it was written.
        path: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// It is of the right kind, and out of range.
    #[error("{path}: {problem}")]
    OutOfRange {
        /// Where it was written.
        path: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// It is to be made, and is there.
    #[error("{path} already exists")]
    Exists {
        /// What was to be made.
        path: String,
    },
    /// It is to be removed, and somebody needs it.
    #[error("{path}: {problem}")]
    InUse {
        /// What was to be removed.
        path: String,
        /// Who needs it, and what to do.
        problem: String,
    },
    /// Not now, or not of this disk.
    #[error("{path}: {problem}")]
    Refused {
        /// What was asked for.
        path: String,
        /// Why.
        problem: String,
    },
    /// The disk has been stopped.
    #[error("the disk is ending")]
    Stopped,
}

impl ControlError {
    /// What sysfs says in that case.
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
