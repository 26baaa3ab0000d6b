//! The machine and its kernel's settings, from TOML.

use iosched::{Flags, KernelVersion};
use serde::Deserialize;

use crate::cache::Balance;
use crate::fs::FsConfig;
use crate::readahead::Generation;
use crate::start::Spread;

/// A version of Linux: its rules.
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
            _ => Err(format!("{text} is not a version of Linux; write it as 2.6.30 or 4.19")),
        }
    }
}

/// How writers are held back when too much is dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// Linux up to 3.1: a writer above the limit writes back pages itself.
    WritesBack,
    /// Linux from 3.2 on: a writer sleeps, so that pages are dirtied as fast as they are written back.
    Sleeps,
    /// As today: likewise, and what a disk writes is shared out among those who write to it by a rate for each task; the
    /// limit is shared out among disks by what each has written back. (Linux has had that from 3.2 on, too. What runs on
    /// machines of before 4.0 here keeps the simpler rule.)
    Balances,
}

/// Where ext4's writeback of a file goes on in the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// Linux up to 2.6.36: as many pages behind where the pass began as it has written, which is not behind what it
    /// wrote unless that was all in one piece; and a pass that has written anything does not begin again at the
    /// beginning of the file.
    BehindAsMany,
    /// Linux from 2.6.37 on, and ext3: behind what it looked at last.
    BehindScanned,
}

impl Version {
    /// The version whose block layer can be simulated, if this is one.
    #[must_use]
    pub fn known(self) -> Option<KernelVersion> {
        let Self(major, minor, patch) = self;
        let text = if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
        text.parse().ok()
    }

    /// The same version, of what is above the block layer.
    #[must_use]
    pub fn of(kernel: KernelVersion) -> Self {
        Self::try_from(kernel.to_string()).unwrap_or_else(|_| unreachable!("a known version has two or three numbers"))
    }

    /// Where ext4's writeback goes on.
    #[must_use]
    pub fn resumption(self) -> Resumption {
        if self < Self(2, 6, 37) { Resumption::BehindAsMany } else { Resumption::BehindScanned }
    }

    /// How it holds writers back.
    #[must_use]
    pub fn throttling(self) -> Throttling {
        match self {
            _ if self < Self(3, 2, 0) => Throttling::WritesBack,
            _ if self < Self(4, 0, 0) => Throttling::Sleeps,
            _ => Throttling::Balances,
        }
    }

    /// Whether blocks that ext4's writeback allocates count as unwritten until the data is there, so that a commit need not
    /// wait for it (`dioread_nolock`, the default from 5.6 on).
    #[must_use]
    pub fn allocates_unwritten(self) -> bool {
        self >= Self(5, 6, 0)
    }

    /// Whether a commit block is a barrier to the request queue, rather than a flush and a write.
    #[must_use]
    pub fn has_barriers(self) -> bool {
        self < Self(2, 6, 37)
    }

    /// How what a commit writes to the journal is flagged; `sync`: somebody waits for it. From 4.10 on somebody always
    /// may; from 6.8 on it is as urgent as direct I/O, so that writeback throttling lets it pass.
    #[must_use]
    pub fn log_flags(self, sync: bool) -> Flags {
        match self {
            _ if self >= Self(6, 8, 0) => Flags::SYNC | Flags::IDLE,
            _ if self >= Self(4, 10, 0) || sync => Flags::SYNC,
            _ => Flags::empty(),
        }
    }

    /// Whether a read that is larger than the readahead window may be fetched in requests as long as the disk takes.
    #[must_use]
    pub fn reads_large(self) -> bool {
        self >= Self(4, 10, 0)
    }

    /// How writes past the page cache are flagged: up to 2.6.29 no more than writeback's, so that elevators take them
    /// for asynchronous.
    #[must_use]
    pub fn direct_write_flags(self) -> Flags {
        if self < Self(2, 6, 30) { Flags::empty() } else { Flags::SYNC | Flags::IDLE }
    }

    /// How it balances what was used once against what was used again.
    #[must_use]
    pub fn balance(self) -> Balance {
        if self < Self(2, 6, 31) { Balance::Proportional } else { Balance::Halves }
    }

    /// How it reads ahead. What is older than 2.6.23 is taken to be as that.
    #[must_use]
    pub fn readahead(self) -> Generation {
        match self {
            _ if self < Self(2, 6, 31) => Generation::Linux2_6_23,
            _ if self < Self(3, 12, 0) => Generation::Linux2_6_31,
            _ => Generation::Linux3_12,
        }
    }
}

/// What takes CPU time, and how much.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Entering and leaving the kernel for a system call, ns.
    pub syscall_ns: u64,
    /// Finding a page in the page cache, or adding it, and what else is done once a page, ns.
    pub page_ns: u64,
    /// Copying between memory and memory, bytes a second.
    pub copy_bytes_per_s: u64,
    /// Copying what is in the CPU's cache, bytes a second.
    pub cached_copy_bytes_per_s: u64,
    /// Size of the CPU's largest cache.
    pub cache_bytes: u64,
    /// Filling memory with zeroes, bytes a second.
    pub zero_bytes_per_s: u64,
    /// Changing a directory: one entry made or removed, with its inode, ns.
    pub metadata_ns: u64,
    /// Making a directory or removing a file: a name, an inode and a block come or go, in several journal handles; ns.
    /// Not given: as `metadata_ns`.
    #[serde(default)]
    pub inode_ns: Option<u64>,
    /// Starting a program from the page cache, and its end, ns.
    pub spawn_ns: u64,
    /// Setting up a request, and handling its completion, ns of the task that submits it.
    pub submit_ns: u64,
}

/// What direct I/O costs the host: processors that submit and complete requests, and the lock of a scheduler.
///
/// Processes are bound to cores in turn. Each time a process runs, it pays `wake_ns`, and `request_ns` for each I/O that
/// it submits; the process on a core that is busy waits.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Processors, at least 1.
    pub cores: u32,
    /// Waking a process and its system call, ns.
    pub wake_ns: u64,
    /// Submitting a request and handling its completion without a scheduler, ns.
    pub request_ns: u64,
    /// What schedulers add, by name; nothing for those that are not named.
    #[serde(default)]
    pub schedulers: std::collections::BTreeMap<String, SchedulerCost>,
}

/// What a scheduler costs the host for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerCost {
    /// Work beyond that without a scheduler, ns.
    pub request_ns: u64,
    /// How much of all work is done under the lock of the disk's scheduler, which one core at a time can hold, ns.
    #[serde(default)]
    pub lock_ns: u64,
}

/// The kernel's settings of memory: /proc/sys/vm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Background writeback begins when so many percent of dirtyable memory are dirty.
    pub dirty_background_ratio: u32,
    /// Writers are held back when so many percent are dirty or under writeback.
    pub dirty_ratio: u32,
    /// Instead of `dirty_background_ratio`: so many bytes.
    #[serde(default)]
    pub dirty_background_bytes: Option<u64>,
    /// Instead of `dirty_ratio`: so many bytes.
    #[serde(default)]
    pub dirty_bytes: Option<u64>,
    /// Age at which dirty data is written back in any case, ms.
    pub dirty_expire_ms: u64,
    /// How often the periodic writeback looks, ms.
    pub dirty_writeback_ms: u64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One line about it.
    pub about: String,
    /// Its kernel: whose rules writeback and readahead follow.
    pub kernel: Version,
    /// Jiffies in a second.
    pub hz: u32,
    /// How long the machine has run before an application starts, s: its threads have a history by then.
    #[serde(default = "settle_s_default")]
    pub settle_s: u64,
    /// Memory that the page cache may use, MiB: what the kernel and programs leave.
    pub cache_mib: u64,
    /// How far runs differ before they begin; not at all unless given.
    #[serde(default)]
    pub spread: Spread,
    /// Largest readahead window, KiB, unless `read_ahead_kb` of a disk is written.
    pub read_ahead_kb: u32,
    /// What takes CPU time.
    pub cpu: Cpu,
    /// What direct I/O costs; nothing unless given.
    #[serde(default)]
    pub host: Option<Host>,
    /// Settings of memory.
    pub vm: Vm,
    /// The file system on every disk.
    pub file_system: FsConfig,
}

/// Some commits of the journal.
const fn settle_s_default() -> u64 {
    60
}
