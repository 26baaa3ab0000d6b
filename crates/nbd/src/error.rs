//! The errors that a reply can report.

/// An error in a reply. The protocol uses the error numbers of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[repr(u32)]
pub enum ErrorCode {
    /// `EPERM`: the export does not permit the request, for example a write to a read-only export.
    NotPermitted = 1,
    /// `EIO`: the storage failed.
    Io = 5,
    /// `ENOMEM`: the server is out of memory.
    OutOfMemory = 12,
    /// `EINVAL`: the request is not valid.
    Invalid = 22,
    /// `ENOSPC`: the storage is full, or the write ends beyond the export.
    NoSpace = 28,
    /// `EOVERFLOW`: the reply would be too long for one chunk.
    Overflow = 75,
    /// `ENOTSUP`: the server does not support the request.
    NotSupported = 95,
    /// `ESHUTDOWN`: the server is shutting down.
    ShuttingDown = 108,
}

impl ErrorCode {
    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the error with this number on the wire. If the protocol does not define the number,
    /// returns [`Self::Invalid`]. The protocol's specification requires this behaviour of clients.
    ///
    /// ```
    /// # use iosched_nbd::ErrorCode;
    /// assert_eq!(ErrorCode::from_number(28), ErrorCode::NoSpace);
    /// assert_eq!(ErrorCode::from_number(1000), ErrorCode::Invalid);
    /// ```
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::NotPermitted,
            5 => Self::Io,
            12 => Self::OutOfMemory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::NotSupported,
            108 => Self::ShuttingDown,
            _ => Self::Invalid,
        }
    }

    /// Returns the error that is closest to an errno of Linux, or [`Self::Io`] if none is close.
    ///
    /// ```
    /// # use iosched_nbd::ErrorCode;
    /// const EROFS: i32 = 30;
    /// assert_eq!(ErrorCode::from_errno(EROFS), ErrorCode::NotPermitted);
    /// ```
    #[must_use]
    pub const fn from_errno(errno: i32) -> Self {
        match errno {
            // EPERM, EACCES, EROFS
            1 | 13 | 30 => Self::NotPermitted,
            12 => Self::OutOfMemory,
            22 => Self::Invalid,
            // ENOSPC, EFBIG, EDQUOT
            28 | 27 | 122 => Self::NoSpace,
            75 => Self::Overflow,
            // ENOTSUP, ENOSYS
            95 | 38 => Self::NotSupported,
            108 => Self::ShuttingDown,
            _ => Self::Io,
        }
    }
}
