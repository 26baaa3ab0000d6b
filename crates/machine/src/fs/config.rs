//! Options of a file system, with the names and meanings of the options of mke2fs and mount.

use serde::Deserialize;

use super::FsError;

/// Kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FsKind {
    /// ext3: indirect blocks, allocation at write(2), reservation windows.
    Ext3,
    /// ext4: extents, delayed allocation, allocation of many blocks at a time; the bitmaps and
    /// inode tables of several groups are stored together.
    Ext4,
}

/// Mode that determines when file data is written, relative to the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataMode {
    /// A transaction is committed only after the data to which its metadata points is on the
    /// medium.
    #[default]
    Ordered,
    /// File data is written independently of commits.
    Writeback,
}

/// Place of the journal of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalPlace {
    /// In the middle of the file system, as e2fsprogs has done since 2008.
    #[default]
    Middle,
    /// At the beginning of the file system, as e2fsprogs did before 2008.
    Beginning,
}

/// Options of a file system. The defaults are the defaults of mke2fs and mount in 2009 (e2fsprogs
/// 1.41, mke2fs.conf(5), ext4(5)).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsConfig {
    /// Kind of the file system.
    pub kind: FsKind,
    /// Size of an inode, bytes: 128, 256, 512 or 1024.
    #[serde(default = "default_inode_bytes")]
    pub inode_bytes: u32,
    /// Bytes of the device per inode, 4096 to 67108864.
    #[serde(default = "default_bytes_per_inode")]
    pub bytes_per_inode: u64,
    /// Size of the journal, 4 to 400 MiB. The default depends on the size of the device: it is 128
    /// MiB for devices of 4 GiB or more.
    #[serde(default)]
    pub journal_mib: Option<u64>,
    /// Place of the journal.
    #[serde(default)]
    pub journal_place: JournalPlace,
    /// Whether directories of more than a block are indexed by hash.
    #[serde(default = "default_true")]
    pub dir_index: bool,
    /// Number of groups that store bitmaps and inode tables together, a power of two up to 256. If
    /// it is 1, each group stores its own tables. The default is 16 with ext4, and 1 with ext3.
    #[serde(default)]
    pub flex_groups: Option<u32>,
    /// Whether the kernel knows the bitmaps of unused groups without reading them (uninit_bg). The
    /// default is true with ext4, and false with ext3.
    #[serde(default)]
    pub uninit_groups: Option<bool>,
    /// Whether small files are also placed in shared chunks if they are closed before writeback, as
    /// in Linux up to 2.6.31. Later kernels place such files in free space near their directory.
    /// This option only affects ext4.
    #[serde(default = "default_true")]
    pub preallocate_closed: bool,
    /// Whether commits include cache flushes. The default is true with ext4, and false with ext3.
    #[serde(default)]
    pub barrier: Option<bool>,
    /// Age at which a transaction is committed, s. At least 1.
    #[serde(default = "default_commit_interval_s")]
    pub commit_interval_s: u32,
    /// Mode that determines when file data is written, relative to the journal.
    #[serde(default)]
    pub data: DataMode,
    /// Size of the file system, MiB, from the beginning of the device. At least 64. The default is
    /// the whole device.
    #[serde(default)]
    pub size_mib: Option<u64>,
    /// Position of the directory in which applications work, in percent of the groups of the file
    /// system, 0 to 100. The directory was created with the file system. By default, applications
    /// work in the root directory.
    #[serde(default)]
    pub directory_percent: Option<u32>,
}

const fn default_inode_bytes() -> u32 {
    256
}

const fn default_bytes_per_inode() -> u64 {
    16384
}

const fn default_true() -> bool {
    true
}

const fn default_commit_interval_s() -> u32 {
    5
}

impl FsConfig {
    /// Returns the default options of a file system of this kind.
    #[must_use]
    pub const fn new(kind: FsKind) -> Self {
        Self {
            kind,
            inode_bytes: default_inode_bytes(),
            bytes_per_inode: default_bytes_per_inode(),
            journal_mib: None,
            journal_place: JournalPlace::Middle,
            dir_index: true,
            flex_groups: None,
            uninit_groups: None,
            preallocate_closed: true,
            barrier: None,
            commit_interval_s: default_commit_interval_s(),
            data: DataMode::Ordered,
            size_mib: None,
            directory_percent: None,
        }
    }

    /// Returns the number of neighbouring groups that store their bitmaps and inode tables in one
    /// place (flex_bg).
    #[must_use]
    pub fn flex_groups(&self) -> u32 {
        self.flex_groups.unwrap_or(if self.is_ext4() { 16 } else { 1 })
    }

    /// Returns whether bitmaps of unused groups need no read.
    #[must_use]
    pub fn uninit_groups(&self) -> bool {
        self.uninit_groups.unwrap_or(self.is_ext4())
    }

    /// Returns whether commits include cache flushes.
    #[must_use]
    pub fn barrier(&self) -> bool {
        self.barrier.unwrap_or(self.is_ext4())
    }

    /// Returns whether blocks are allocated at writeback instead of at write(2).
    #[must_use]
    pub const fn delayed_allocation(&self) -> bool {
        self.is_ext4()
    }

    pub(super) const fn is_ext4(&self) -> bool {
        matches!(self.kind, FsKind::Ext4)
    }

    /// Checks that every field is in its range.
    ///
    /// # Errors
    /// [`FsError::Setting`] names the first field that is out of its range.
    pub fn validate(&self) -> Result<(), FsError> {
        let bad = |field, value: u64, expected| Err(FsError::Setting { field, value, expected });
        if !matches!(self.inode_bytes, 128 | 256 | 512 | 1024) {
            return bad("inode_bytes", self.inode_bytes.into(), "128, 256, 512 or 1024");
        }
        if !(4096..=67_108_864).contains(&self.bytes_per_inode) {
            return bad("bytes_per_inode", self.bytes_per_inode, "4096 to 67108864");
        }
        if let Some(mib) = self.journal_mib.filter(|mib| !(4..=400).contains(mib)) {
            return bad("journal_mib", mib, "4 to 400");
        }
        if let Some(groups) = self.flex_groups.filter(|groups| !groups.is_power_of_two() || *groups > 256) {
            return bad("flex_groups", groups.into(), "a power of two up to 256");
        }
        if let Some(mib) = self.size_mib.filter(|mib| *mib < 64) {
            return bad("size_mib", mib, "at least 64");
        }
        if let Some(percent) = self.directory_percent.filter(|percent| *percent > 100) {
            return bad("directory_percent", percent.into(), "0 to 100");
        }
        if self.commit_interval_s == 0 {
            return bad("commit_interval_s", 0, "at least 1");
        }
        Ok(())
    }
}
