//! Errors of operations.

/// An errno of Linux, as a client of the disk sees it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error, serde::Serialize, serde::Deserialize,
)]
#[error("{}", std::io::Error::from_raw_os_error(self.0))]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted, for example a write to a read-only disk.
    pub const EPERM: Self = Self(1);
    /// Error of the storage: it cannot read or write.
    pub const EIO: Self = Self(5);
    /// Lack of memory for a request.
    pub const ENOMEM: Self = Self(12);
    /// Request that is not valid, such as beyond the end.
    pub const EINVAL: Self = Self(22);
    /// Outside the disk, or the storage is full.
    pub const ENOSPC: Self = Self(28);
    /// Too large for one request.
    pub const EOVERFLOW: Self = Self(75);
    /// Not supported by the storage.
    pub const ENOTSUP: Self = Self(95);
    /// The disk is shutting down.
    pub const ESHUTDOWN: Self = Self(108);
}

impl From<Errno> for iosched_nbd::ErrorCode {
    fn from(errno: Errno) -> Self {
        Self::from_errno(errno.0)
    }
}
