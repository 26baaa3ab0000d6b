//! Errors of writing a controller's file.

use super::about::cgroup_files;

/// Reason why a text was refused, with the error number of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file does not accept the text (`EINVAL`, 22).
    #[error("the file does not accept this text")]
    Invalid,
    /// A value is out of range (`ERANGE`, 34).
    #[error("a value is out of range")]
    Range,
    /// The file belongs to a cgroup, and the text names no cgroup.
    #[error(
        "the name of the cgroup is missing; write CGROUP:VALUES, such as backup:wbps=50000000/wiops=100, \
         with + between cgroups"
    )]
    NoCgroup,
    /// The file belongs to bfq, and another elevator is in use (`ENOENT`, 2).
    #[error("only bfq has this file, and bfq is not the current scheduler")]
    OfBfq,
    /// The file belongs to mclock, and another elevator is in use (`ENOENT`, 2).
    #[error("only mclock has this file, and mclock is not the current scheduler")]
    OfMClock,
    /// The reservation is above the limit (`ERANGE`, 34).
    #[error("the reservation is above the limit")]
    AboveLimit,
    /// The file does not exist (`ENOENT`, 2).
    #[error("there is no such file")]
    NoSuchFile,
}

impl WriteError {
    /// Returns the error number of the kernel.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Invalid | Self::NoCgroup => 22,
            Self::Range | Self::AboveLimit => 34,
            Self::OfBfq | Self::OfMClock | Self::NoSuchFile => 2,
        }
    }
}

/// Refused write to a file of a cgroup.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {text:?}: {error}; {}", what_it_takes(.file))]
pub struct CgroupFileError {
    file: String,
    text: String,
    #[source]
    error: WriteError,
}

impl CgroupFileError {
    pub(crate) fn new(file: &str, text: &str, error: WriteError) -> Self {
        Self { file: file.to_owned(), text: text.to_owned(), error }
    }

    /// Returns the reason.
    #[must_use]
    pub const fn error(&self) -> WriteError {
        self.error
    }
}

/// Describes the accepted texts of a cgroup's file. For an unknown file, lists the existing ones.
#[must_use]
pub fn what_it_takes(file: &str) -> String {
    match cgroup_files().find(|known| known.name == file) {
        Some(known) => format!("write {}", known.takes),
        None => format!("available: {}", cgroup_files().map(|known| known.name).collect::<Vec<_>>().join(", ")),
    }
}
