//! How a file system is made and mounted: what mke2fs and mount are told.

use serde::Deserialize;

use super::FsError;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FsKind {
    /// Indirect blocks, blocks allocated when they are written to memory, reservation windows.
    Ext3,
    /// Extents, delayed allocation, many blocks at a time, bitmaps and inode tables of several groups together.
    Ext4,
}

/// What the journal guarantees of file data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataMode {
    /// Data is on the medium before the metadata that leads to it is committed.
    #[default]
    Ordered,
    /// Data goes when it goes.
    Writeback,
}

/// Where mke2fs puts the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalPlace {
    /// In the middle of the file system, as e2fsprogs do since 2008.
    #[default]
    Middle,
    /// At the beginning, as they did before.
    Beginning,
}

/// How a file system is made and mounted. What is not given is as mke2fs and mount of 2009 have it (e2fsprogs 1.41,
/// mke2fs.conf(5), ext4(5)).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsConfig {
    /// Which file system.
    pub kind: FsKind,
    /// Size of an inode: 128, 256, 512 or 1024.
    #[serde(default = "default_inode_bytes")]
    pub inode_bytes: u32,
    /// One inode is made for so many bytes of the device, 4096 to 67108864.
    #[serde(default = "default_bytes_per_inode")]
    pub bytes_per_inode: u64,
    /// Size of the journal, 4 to 400 MiB. Not given: by the size of the device, 128 MiB from 4 GiB on.
    #[serde(default)]
    pub journal_mib: Option<u64>,
    /// Where the journal lies.
    #[serde(default)]
    pub journal_place: JournalPlace,
    /// Directories of more than a block are looked up by hash.
    #[serde(default = "default_true")]
    pub dir_index: bool,
    /// So many groups keep bitmaps and inode tables together: a power of two up to 256, 1: each has its own. Not given:
    /// 16 with ext4, 1 with ext3.
    #[serde(default)]
    pub flex_groups: Option<u32>,
    /// Bitmaps of groups never used need no read (uninit_bg). Not given: with ext4 only.
    #[serde(default)]
    pub uninit_groups: Option<bool>,
    /// Small files that are closed by the time they are written back share chunks too, as up to Linux 2.6.31; later
    /// they are put where there is room near their directory. ext4 only.
    #[serde(default = "default_true")]
    pub preallocate_closed: bool,
    /// Commits go with cache flushes. Not given: with ext4 only.
    #[serde(default)]
    pub barrier: Option<bool>,
    /// A transaction is committed at this age, s, at least 1.
    #[serde(default = "default_commit_interval_s")]
    pub commit_interval_s: u32,
    /// What the journal guarantees of data.
    #[serde(default)]
    pub data: DataMode,
    /// The file system takes so much of the device, from its beginning, at least 64 MiB. Not given: all of it.
    #[serde(default)]
    pub size_mib: Option<u64>,
    /// Applications work in a directory that is as old as the file system, in the group at so many percent of it, 0 to
    /// 100. Not given: at the top.
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
    /// A file system of this kind as mke2fs makes it when told nothing else.
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

    /// Groups that keep bitmaps and inode tables together.
    #[must_use]
    pub fn flex_groups(&self) -> u32 {
        self.flex_groups.unwrap_or(if self.is_ext4() { 16 } else { 1 })
    }

    /// Whether bitmaps of groups never used need no read.
    #[must_use]
    pub fn uninit_groups(&self) -> bool {
        self.uninit_groups.unwrap_or(self.is_ext4())
    }

    /// Whether commits go with cache flushes.
    #[must_use]
    pub fn barrier(&self) -> bool {
        self.barrier.unwrap_or(self.is_ext4())
    }

    /// Whether blocks are allocated when data is written back, not when it is written to memory.
    #[must_use]
    pub const fn delayed_allocation(&self) -> bool {
        self.is_ext4()
    }

    pub(super) const fn is_ext4(&self) -> bool {
        matches!(self.kind, FsKind::Ext4)
    }

    /// Whether every field is in its range.
    ///
    /// # Errors
    /// [`FsError::Setting`] names the first field that is not.
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
