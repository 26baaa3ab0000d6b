//! Description of the machine and of its kernel's settings, read from TOML.

use iosched::{Flags, KernelVersion};
use serde::Deserialize;

use crate::cache::Balance;
use crate::fs::FsConfig;
use crate::readahead::Generation;
use crate::start::Spread;

/// A version of Linux, which selects the model's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Version(pub u32, pub u32, pub u32);

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[major, minor]) => Ok(Self(major, minor, 0)),
            Some(&[major, minor, patch]) => Ok(Self(major, minor, patch)),
            _ => Err(format!("{text} is not a version of Linux; write a version such as 2.6.30 or 4.19")),
        }
    }
}

/// Rule by which the kernel throttles writers when too many pages are dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Linux up to 3.1: a writer above the limit writes pages back itself.
    WritesBack,
    /// Linux from 3.2 on: a writer sleeps so that it dirties pages at the rate at which the disk
    /// writes them back.
    Sleeps,
    /// Linux from 3.2 on, with the complete rule. A writer sleeps. Each task has a rate, so that
    /// the tasks together write at the throughput of the disk. The disks share the limit in
    /// proportion to their writeback. The model uses this rule from 4.0 on. For 3.2 to 3.19 it uses
    /// the simpler rule [`Throttling::Sleeps`].
    Balances,
}

/// Rule for the page at which the next pass of ext4's writeback of a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// Linux up to 2.6.36: the start of the last pass plus the number of pages that it wrote. This
    /// is the page after the last written page only if the pass wrote one contiguous range. If a
    /// pass has written at least one page, it does not continue at the beginning of the file.
    BehindAsMany,
    /// Linux from 2.6.37 on, and ext3: the page after the last page that the last pass examined.
    BehindScanned,
}

impl Version {
    /// Returns the [`KernelVersion`] of the simulated block layer, if iosched simulates this
    /// version.
    #[must_use]
    pub fn known(self) -> Option<KernelVersion> {
        let Self(major, minor, patch) = self;
        let text = if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
        text.parse().ok()
    }

    /// Returns the version number of `kernel`, for the rules above the block layer.
    #[must_use]
    pub fn of(kernel: KernelVersion) -> Self {
        Self::try_from(kernel.to_string())
            .unwrap_or_else(|_| unreachable!("the version of a known kernel has two or three numbers"))
    }

    /// Returns the rule for the page at which the next pass of ext4's writeback begins.
    #[must_use]
    pub fn resumption(self) -> Resumption {
        if self < Self(2, 6, 37) { Resumption::BehindAsMany } else { Resumption::BehindScanned }
    }

    /// Returns the rule by which the kernel throttles writers.
    #[must_use]
    pub fn throttling(self) -> Throttling {
        match self {
            _ if self < Self(3, 2, 0) => Throttling::WritesBack,
            _ if self < Self(4, 0, 0) => Throttling::Sleeps,
            _ => Throttling::Balances,
        }
    }

    /// Returns whether ext4's writeback allocates blocks as unwritten, and marks them as written
    /// when their data is on the disk. A commit then does not wait for the data (`dioread_nolock`,
    /// the default from 5.6 on).
    #[must_use]
    pub fn allocates_unwritten(self) -> bool {
        self >= Self(5, 6, 0)
    }

    /// Returns whether the write of a commit block is a barrier in the request queue. Otherwise it
    /// is a flush and a write.
    #[must_use]
    pub fn has_barriers(self) -> bool {
        self < Self(2, 6, 37)
    }

    /// Returns the flags of a commit's writes to the journal. `sync` means that a task waits for
    /// the commit. From 4.10 on, the writes are always sync. From 6.8 on, they have the same
    /// priority as direct I/O, so that writeback throttling does not delay them.
    #[must_use]
    pub fn log_flags(self, sync: bool) -> Flags {
        match self {
            _ if self >= Self(6, 8, 0) => Flags::SYNC | Flags::IDLE,
            _ if self >= Self(4, 10, 0) || sync => Flags::SYNC,
            _ => Flags::empty(),
        }
    }

    /// Returns whether a read that is larger than the readahead window may use requests of the
    /// largest size that the disk accepts.
    #[must_use]
    pub fn reads_large(self) -> bool {
        self >= Self(4, 10, 0)
    }

    /// Returns the flags of direct writes. Up to 2.6.29 they have the
    /// flags of writeback, so that schedulers treat them as async.
    #[must_use]
    pub fn direct_write_flags(self) -> Flags {
        if self < Self(2, 6, 30) { Flags::empty() } else { Flags::SYNC | Flags::IDLE }
    }

    /// Returns the rule by which reclaim balances the active and the inactive list.
    #[must_use]
    pub fn balance(self) -> Balance {
        if self < Self(2, 6, 31) { Balance::Proportional } else { Balance::Halves }
    }

    /// Returns the generation of the readahead algorithm. Versions before 2.6.23 get the generation
    /// of 2.6.23.
    #[must_use]
    pub fn readahead(self) -> Generation {
        match self {
            _ if self < Self(2, 6, 31) => Generation::Linux2_6_23,
            _ if self < Self(3, 12, 0) => Generation::Linux2_6_31,
            _ => Generation::Linux3_12,
        }
    }
}

/// CPU time of the kernel's operations. Each field describes one operation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Entering and leaving the kernel for a system call, ns.
    pub syscall_ns: u64,
    /// Finding or adding a page in the page cache, and other work for each page, ns.
    pub page_ns: u64,
    /// Speed of copying between two areas of memory, bytes/s.
    pub copy_bytes_per_s: u64,
    /// Speed of copying data that is in the CPU's cache, bytes/s.
    pub cached_copy_bytes_per_s: u64,
    /// Size of the CPU's largest cache, bytes.
    pub cache_bytes: u64,
    /// Speed of filling memory with zeroes, bytes/s.
    pub zero_bytes_per_s: u64,
    /// Adding or removing one directory entry with its inode, ns.
    pub metadata_ns: u64,
    /// Time for creating a directory or removing a file, ns. Both change a name, an inode and a
    /// block in several journal handles. The default is `metadata_ns`.
    #[serde(default)]
    pub inode_ns: Option<u64>,
    /// Starting a program from the page cache, and ending it, ns.
    pub spawn_ns: u64,
    /// Setting up a request and handling its completion, ns. The submitting task spends this time.
    pub submit_ns: u64,
}

/// The kernel's settings of memory (/proc/sys/vm).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Percentage of dirtyable memory that must be dirty for background writeback to begin.
    pub dirty_background_ratio: u32,
    /// Percentage of dirtyable memory that must be dirty or under writeback before writers are
    /// throttled.
    pub dirty_ratio: u32,
    /// Number of bytes that replaces `dirty_background_ratio`, if given.
    #[serde(default)]
    pub dirty_background_bytes: Option<u64>,
    /// Number of bytes that replaces `dirty_ratio`, if given.
    #[serde(default)]
    pub dirty_bytes: Option<u64>,
    /// Age at which the kernel always writes dirty data back, ms.
    pub dirty_expire_ms: u64,
    /// Interval of periodic writeback, ms.
    pub dirty_writeback_ms: u64,
}

/// Description of a modelled machine: memory, kernel and file system.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One line that describes the machine.
    pub about: String,
    /// The kernel version, which selects the rules of writeback and readahead.
    pub kernel: Version,
    /// Jiffies per second.
    pub hz: u32,
    /// Time for which the machine runs before an application starts, s. In this time, the kernel's
    /// threads reach the state of a machine in use.
    #[serde(default = "settle_s_default")]
    pub settle_s: u64,
    /// Memory for the page cache, MiB: the memory that the kernel and programs leave free.
    pub cache_mib: u64,
    /// Variation of the machine between runs. The default is none.
    #[serde(default)]
    pub spread: Spread,
    /// Largest readahead window for disks without a given `read_ahead_kb`, KiB.
    pub read_ahead_kb: u32,
    /// CPU time of operations.
    pub cpu: Cpu,
    /// Settings of memory.
    pub vm: Vm,
    /// The file system on every disk.
    pub file_system: FsConfig,
}

/// Returns the default of `settle_s`: the time of several commits of the journal.
const fn settle_s_default() -> u64 {
    60
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn ext4_allocates_unwritten_blocks_from_5_6() {
        assert_eq!(
            ["5.4", "5.5", "5.6", "6.12"].map(|text| version(text).allocates_unwritten()),
            [false, false, true, true]
        );
    }

    #[test]
    fn wbt_limits_journal_writes_up_to_6_7() {
        let passes = |text: &str| version(text).log_flags(true).contains(Flags::SYNC | Flags::IDLE);
        assert_eq!(["5.15", "6.7", "6.8", "6.12"].map(passes), [false, false, true, true]);
    }
}
