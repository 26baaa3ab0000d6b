//! Errors of operations.

/// An errno of Linux, as a client of the disk sees it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error, serde::Serialize, serde::Deserialize,
)]
#[error("{}", std::io::Error::from_raw_os_error(self.0))]
pub struct Errno(pub i32);

impl Errno {
    /// The operation is not permitted, for example a write to a read-only disk.
    pub const EPERM: Self = Self(1);
    /// The storage cannot read or write.
    pub const EIO: Self = Self(5);
    /// There is not enough memory for a request.
    pub const ENOMEM: Self = Self(12);
    /// The request is not valid, for example a read beyond the end of the disk.
    pub const EINVAL: Self = Self(22);
    /// A write ends beyond the end of the disk, or the storage is full.
    pub const ENOSPC: Self = Self(28);
    /// The data is too large for one request.
    pub const EOVERFLOW: Self = Self(75);
    /// The storage does not support the request.
    pub const ENOTSUP: Self = Self(95);
    /// The disk is shutting down.
    pub const ESHUTDOWN: Self = Self(108);
}

impl From<Errno> for iosched_nbd::ErrorCode {
    fn from(errno: Errno) -> Self {
        Self::from_errno(errno.0)
    }
}
