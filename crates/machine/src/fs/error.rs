//! Errors of a file system.

/// Reason why a file system cannot be created or an operation fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// A setting is out of its range.
    #[error("file system: {field} is {value}; it must be {expected}")]
    Setting {
        /// Name of the setting.
        field: &'static str,
        /// The value of the setting.
        value: u64,
        /// Valid values of the setting.
        expected: &'static str,
    },
    /// The device is too small for a file system with these settings.
    #[error(
        "file system: a device of {capacity_sectors} sectors is too small; use a larger device or a smaller \
         journal_mib"
    )]
    TooSmall {
        /// Size of the device, sectors.
        capacity_sectors: u64,
    },
    /// The device has more than 2^32 blocks.
    #[error("file system: a device of {capacity_sectors} sectors is larger than 16 TiB; use a smaller device")]
    TooLarge {
        /// Size of the device, sectors.
        capacity_sectors: u64,
    },
    /// All blocks are in use.
    #[error("file system: no space is left; use a larger device or smaller files")]
    NoSpace,
    /// All inodes are in use.
    #[error("file system: no inodes are left; use fewer files or a smaller bytes_per_inode")]
    NoInodes,
    /// The index of the directory is full.
    #[error("file system: the directory's index is full; use more directories")]
    DirectoryFull,
    /// A directory to be removed has entries.
    #[error("file system: the directory is not empty")]
    NotEmpty,
    /// The root directory cannot be removed.
    #[error("file system: the root directory cannot be removed")]
    IsRoot,
    /// The path is a directory instead of a file.
    #[error("file system: the path is a directory, not a file")]
    IsDirectory,
    /// The path is not a directory.
    #[error("file system: the path is not a directory")]
    NotDirectory,
    /// The range exceeds the largest file.
    #[error("file system: a file can have at most {pages_max} pages of 4 KiB")]
    FileTooLarge {
        /// Number of pages of the largest file.
        pages_max: u64,
    },
}
