//! Why a controller's file refuses what is written to it.

use super::about::cgroup_files;

/// A text was refused; the kernel's error numbers are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It is not what the file takes (`EINVAL`, 22).
    #[error("the file does not accept this text")]
    Invalid,
    /// A value is out of range (`ERANGE`, 34).
    #[error("a value is out of range")]
    Range,
    /// A cgroup's file, and no cgroup is named.
    #[error("no cgroup is named; write CGROUP:WORDS, such as backup:wbps=50000000/wiops=100, with + between cgroups")]
    NoCgroup,
    /// A file that bfq has, under another elevator (`ENOENT`, 2).
    #[error("only bfq has this file, and bfq is not the current scheduler")]
    OfBfq,
    /// There is no such file (`ENOENT`, 2).
    #[error("there is no such file")]
    NoSuchFile,
}

impl WriteError {
    /// The kernel's number of the error.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Invalid | Self::NoCgroup => 22,
            Self::Range => 34,
            Self::OfBfq | Self::NoSuchFile => 2,
        }
    }
}

/// A write to a cgroup's file that was refused.
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

    /// What is wrong.
    #[must_use]
    pub const fn error(&self) -> WriteError {
        self.error
    }
}

/// What may be written to a cgroup's file; which files there are, if it is none.
#[must_use]
pub fn what_it_takes(file: &str) -> String {
    match cgroup_files().find(|known| known.name == file) {
        Some(known) => format!("write {}", known.takes),
        None => format!("available: {}", cgroup_files().map(|known| known.name).collect::<Vec<_>>().join(", ")),
    }
}
