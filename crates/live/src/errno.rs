//! What an operation fails with.

/// An errno of Linux: what a client of the disk is told.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, thiserror::Error, serde::Serialize, serde::Deserialize,
)]
#[error("{}", std::io::Error::from_raw_os_error(self.0))]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted: a write to what is read-only.
    pub const EPERM: Self = Self(1);
    /// The storage failed.
    pub const EIO: Self = Self(5);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Nothing like that can be asked for.
    pub const EINVAL: Self = Self(22);
    /// Outside the disk, or the storage is full.
    pub const ENOSPC: Self = Self(28);
    /// More than can be done at once.
    pub const EOVERFLOW: Self = Self(75);
    /// The storage cannot do that.
    pub const ENOTSUP: Self = Self(95);
    /// The disk is going away.
    pub const ESHUTDOWN: Self = Self(108);
}

impl From<Errno> for iosched_nbd::ErrorCode {
    fn from(errno: Errno) -> Self {
        Self::from_errno(errno.0)
    }
}
