//! The machine and its kernel's settings, from TOML.

use serde::Deserialize;

/// How writers are held back when too much is dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttling {
    /// Linux up to 3.1: a writer above the limit writes back pages itself.
    #[default]
    WritesBack,
    /// Linux from 3.2 on: a writer sleeps, so that pages are dirtied as fast as they are written back.
    Sleeps,
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
    /// Starting a program from the page cache, and its end, ns.
    pub spawn_ns: u64,
    /// Setting up a request, and handling its completion, ns of the task that submits it.
    pub submit_ns: u64,
}

/// The kernel's settings of memory: /proc/sys/vm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Background writeback begins when so many percent of dirtyable memory are dirty.
    pub dirty_background_ratio: u32,
    /// Writers are held back when so many percent are dirty or under writeback.
    pub dirty_ratio: u32,
    /// Age at which dirty data is written back in any case, ms.
    pub dirty_expire_ms: u64,
    /// How often the periodic writeback looks, ms.
    pub dirty_writeback_ms: u64,
    /// What a writer above the limit does.
    #[serde(default)]
    pub throttling: Throttling,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// One line about it.
    pub about: String,
    /// Jiffies in a second.
    pub hz: u32,
    /// Memory that the page cache may use, MiB: what the kernel and programs leave.
    pub cache_mib: u64,
    /// Largest readahead window, KiB.
    pub read_ahead_kb: u64,
    /// What takes CPU time.
    pub cpu: Cpu,
    /// Settings of memory.
    pub vm: Vm,
}
