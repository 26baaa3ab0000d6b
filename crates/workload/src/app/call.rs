//! System calls, as far as they matter to a disk.

use crate::outcome::SyncKind;

/// A file or a directory, by the number its application gives it. A number is given again only after the node was
/// removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl Node {
    /// Disks an application may use.
    pub const DISKS_MAX: u32 = 16;

    /// The root directory of the file system on disk number `disk`.
    ///
    /// # Panics
    /// `disk` is not below [`DISKS_MAX`](Self::DISKS_MAX).
    #[must_use]
    pub const fn root(disk: u32) -> Self {
        assert!(disk < Self::DISKS_MAX);
        Self(disk)
    }

    /// Node number `number` of an application's own, from 0.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(Self::DISKS_MAX + number)
    }

    /// Whether it is a root directory, and of which disk.
    #[must_use]
    pub const fn as_root(self) -> Option<u32> {
        if self.0 < Self::DISKS_MAX { Some(self.0) } else { None }
    }
}

/// What a program says of how it will use a file (posix_fadvise(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// From front to back: windows of readahead are twice as large.
    Sequential,
    /// Here and there: nothing is read ahead.
    Random,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// It is created if it does not exist (`O_CREAT`).
    pub create: bool,
    /// Its length becomes 0 (`O_TRUNC`).
    pub truncate: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// A write returns when data, and the metadata needed to find it, are on the medium (`O_SYNC`).
    pub sync: bool,
    /// Only with `sync`: what is not needed to read the data back, such as times, may come later (`O_DSYNC`).
    pub data_only: bool,
    /// What is said of its use right after.
    pub advice: Advice,
}

/// Where the bytes of a write come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A buffer of the program's.
    #[default]
    Buffer,
    /// Each block was read from `/dev/zero` before it is written.
    Zero,
}

/// A system call. Offsets and sizes are in bytes. What a task has open is its own: [`Call::Open`] comes before reads
/// and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A program is started, and has ended: fork, exec, exit and wait. What it does between is told by calls of its
    /// own.
    Spawn,
    /// mkdir(2).
    MakeDirectory {
        /// Where.
        parent: Node,
        /// What it is called from now on.
        node: Node,
        /// Length of its name.
        name_bytes: u8,
    },
    /// rmdir(2) of an empty directory.
    RemoveDirectory {
        /// Which.
        node: Node,
    },
    /// open(2) of a file.
    Open {
        /// The directory it is in.
        parent: Node,
        /// The file.
        node: Node,
        /// Length of its name.
        name_bytes: u8,
        /// How.
        flags: OpenFlags,
    },
    /// close(2).
    Close {
        /// Which file.
        node: Node,
    },
    /// unlink(2) of a file.
    Unlink {
        /// Which.
        node: Node,
    },
    /// `calls` times read(2) of `bytes`, one behind the other from `offset` on.
    Read {
        /// Of which file.
        node: Node,
        /// From where.
        offset: u64,
        /// How much, each time; at least 1.
        bytes: u64,
        /// How often; at least 1.
        calls: u64,
    },
    /// `calls` times write(2) of `bytes`, one behind the other from `offset` on. The file grows if need be.
    Write {
        /// To which file.
        node: Node,
        /// From where.
        offset: u64,
        /// How much, each time; at least 1.
        bytes: u64,
        /// How often; at least 1.
        calls: u64,
        /// What is written.
        source: Source,
    },
    /// Writes of `bytes` each at the offsets that [`Application::batch`](super::Application::batch) gives, submitted
    /// together (`io_submit`); done when all are done (`io_getevents`). Of a file opened past the page cache.
    WriteScattered {
        /// To which file.
        node: Node,
        /// How much, at each offset; at least 1.
        bytes: u64,
    },
    /// A read or write of a file opened past the page cache that is only begun (`io_submit`): the call returns when its
    /// bios are handed over, and [`Application::done`](super::Application::done) tells of its end.
    Submit {
        /// Of which file.
        node: Node,
        /// Whether it writes.
        is_write: bool,
        /// From where.
        offset: u64,
        /// How much; at least 1.
        bytes: u64,
        /// What its end is told with.
        tag: u32,
    },
    /// The device may forget what it has of a part of a file (`BLKDISCARD` where the file is the device).
    Discard {
        /// Of which file.
        node: Node,
        /// From where.
        offset: u64,
        /// How much; at least 1.
        bytes: u64,
    },
    /// fsync(2).
    Fsync {
        /// Of which file.
        node: Node,
    },
    /// fdatasync(2).
    Fdatasync {
        /// Of which file.
        node: Node,
    },
    /// sync(2).
    Sync,
}

impl Call {
    /// Whether it syncs one file, and how.
    #[must_use]
    pub const fn sync_kind(&self) -> Option<SyncKind> {
        match self {
            Self::Fsync { .. } => Some(SyncKind::Fsync),
            Self::Fdatasync { .. } => Some(SyncKind::Fdatasync),
            _ => None,
        }
    }
}
