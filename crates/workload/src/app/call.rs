//! System calls, with the details that affect a disk.

use crate::outcome::SyncKind;

/// A file or a directory. The application identifies each node by a number. It can use a number for
/// another node only after it has removed the first node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl Node {
    /// Largest number of disks of an application.
    pub const DISKS_MAX: u32 = 16;

    /// Returns the root directory of the file system on disk number `disk`.
    ///
    /// # Panics
    /// `disk` is not below [`DISKS_MAX`](Self::DISKS_MAX).
    #[must_use]
    pub const fn root(disk: u32) -> Self {
        assert!(disk < Self::DISKS_MAX);
        Self(disk)
    }

    /// Creates node number `number` of an application, from 0.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(Self::DISKS_MAX + number)
    }

    /// Returns the number of the disk if the node is a root directory.
    #[must_use]
    pub const fn as_root(self) -> Option<u32> {
        if self.0 < Self::DISKS_MAX { Some(self.0) } else { None }
    }
}

/// Expected use of a file (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// Sequential use: readahead windows are twice as large.
    Sequential,
    /// Random use: there is no readahead.
    Random,
}

/// Flags of the system call open(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// The file is created if it does not exist (`O_CREAT`).
    pub create: bool,
    /// The length of the file becomes 0 (`O_TRUNC`).
    pub truncate: bool,
    /// I/O bypasses the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Whether a write returns only when the data, and the metadata that is needed to find the
    /// data, are on the medium (`O_SYNC`).
    pub sync: bool,
    /// With `sync`, whether metadata that is not needed to read the data, such as times, can be
    /// written later (`O_DSYNC`).
    pub data_only: bool,
    /// Advice that the program gives directly after the open.
    pub advice: Advice,
}

/// Source of the bytes of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A buffer of the program.
    #[default]
    Buffer,
    /// `/dev/zero`: before the program writes a block, it reads the block from this file.
    Zero,
}

/// A system call. Offsets and sizes are in bytes. Each task has its own open files, and must open a
/// file ([`Call::Open`]) before it reads or writes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The start and the end of a program: fork, exec, exit and wait. Separate calls describe the
    /// I/O between the start and the end.
    Spawn,
    /// mkdir(2).
    MakeDirectory {
        /// Parent directory.
        parent: Node,
        /// Number of the new directory.
        node: Node,
        /// Length of the name, bytes.
        name_bytes: u8,
    },
    /// rmdir(2) of an empty directory.
    RemoveDirectory {
        /// The directory.
        node: Node,
    },
    /// open(2) of a file.
    Open {
        /// Directory of the file.
        parent: Node,
        /// The file.
        node: Node,
        /// Length of the name, bytes.
        name_bytes: u8,
        /// Flags of the open.
        flags: OpenFlags,
    },
    /// close(2).
    Close {
        /// The file.
        node: Node,
    },
    /// unlink(2) of a file.
    Unlink {
        /// The file.
        node: Node,
    },
    /// Sequential reads from `offset` on: `calls` calls of read(2), each of `bytes` bytes.
    Read {
        /// The file.
        node: Node,
        /// First offset.
        offset: u64,
        /// Bytes of each call; at least 1.
        bytes: u64,
        /// Number of calls; at least 1.
        calls: u64,
    },
    /// Sequential writes from `offset` on: `calls` calls of write(2), each of `bytes` bytes. The
    /// file grows if necessary.
    Write {
        /// The file.
        node: Node,
        /// First offset.
        offset: u64,
        /// Bytes of each call; at least 1.
        bytes: u64,
        /// Number of calls; at least 1.
        calls: u64,
        /// Source of the data.
        source: Source,
    },
    /// Direct writes of `bytes` at each of the offsets that
    /// [`Application::batch`](super::Application::batch) returns. The program submits all writes
    /// together (`io_submit`). The call returns when all writes are complete (`io_getevents`).
    WriteScattered {
        /// The file.
        node: Node,
        /// Bytes at each offset; at least 1.
        bytes: u64,
    },
    /// Submission of a direct read or write (`io_submit`). The call returns when the bios are
    /// submitted. [`Application::done`](super::Application::done) reports the completion.
    Submit {
        /// The file.
        node: Node,
        /// Whether this is a write.
        is_write: bool,
        /// Offset.
        offset: u64,
        /// Bytes; at least 1.
        bytes: u64,
        /// Number that identifies the I/O at its completion.
        tag: u32,
    },
    /// Discard of a part of a file (`BLKDISCARD` if the file is the device).
    Discard {
        /// The file.
        node: Node,
        /// Offset.
        offset: u64,
        /// Bytes; at least 1.
        bytes: u64,
    },
    /// fsync(2).
    Fsync {
        /// The file.
        node: Node,
    },
    /// fdatasync(2).
    Fdatasync {
        /// The file.
        node: Node,
    },
    /// sync(2).
    Sync,
}

impl Call {
    /// Returns the kind of sync if the call syncs a single file.
    #[must_use]
    pub const fn sync_kind(&self) -> Option<SyncKind> {
        match self {
            Self::Fsync { .. } => Some(SyncKind::Fsync),
            Self::Fdatasync { .. } => Some(SyncKind::Fdatasync),
            _ => None,
        }
    }
}
