//! Why a controller's file refuses what is written to it.

/// A text was refused; the kernel's error numbers are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// It is not what the file takes (`EINVAL`, 22).
    #[error("this is not what the file takes")]
    Invalid,
    /// A value is out of range (`ERANGE`, 34).
    #[error("a value is out of range")]
    Range,
}

impl WriteError {
    /// The kernel's number of the error.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Invalid => 22,
            Self::Range => 34,
        }
    }
}
