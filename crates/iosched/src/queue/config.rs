//! Configuration of a request queue.

use crate::kernel::KernelVersion;
use crate::parts::tags::TagLayout;

/// Configuration of a request queue: its device, its host and the version of Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Number of jiffies per second, from 1 to 1,000,000. Some rules of Linux count in jiffies.
    pub hz: u32,
    /// Whether seeks cost time on the device.
    pub rotational: bool,
    /// Whether elevators treat cgroups separately.
    pub groups: bool,
    /// Whether the device queues commands. `None`: the host does not know. CFQ then judges by the
    /// requests that it sees in the device, as in Linux. When this judgement changes, CFQ charges
    /// groups in another unit (time or requests). A group that was charged in time may then wait
    /// for minutes.
    pub command_queueing: Option<bool>,
    /// Whether the device acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// Whether the device honours force-unit-access itself.
    pub fua: bool,
    /// Whether flushes and bios with the flag PREFLUSH are barriers in the single-queue layer.
    /// Linux had barriers up to 2.6.36. A barrier is issued when all earlier requests are complete.
    /// Later requests wait until the barrier is complete.
    pub barriers: bool,
    /// Largest request that the device takes, in KiB.
    pub max_hw_sectors_kb: u32,
    /// Largest readahead window of a buffered reader until `read_ahead_kb` is written, in KiB. The
    /// queue only stores this value; the host's page cache reads ahead.
    pub read_ahead_kb: u32,
    /// Number of commands that each hardware queue of the device takes at the same time, at least
    /// 1.
    pub depth: u32,
    /// Number of hardware queues of the device, at least 1. Processes are spread over them.
    pub hw_queues: u16,
    /// Layout of the tags: how many tags one word contains.
    pub tag_layout: TagLayout,
    /// Whether each insertion runs the queue immediately, as in Linux. Otherwise the queue runs
    /// once, at the end of the event. An immediate run may issue a request before the next bio can
    /// merge with it. The requests of a plug are inserted together when the plug ends.
    pub run_at_insertion: bool,
    /// Whether wbt limits buffered writes by default, as in Linux: under all elevators of the
    /// multi-queue layer except bfq. A write to `wbt_lat_usec` overrides the default.
    pub throttles_writeback: bool,
    /// The version of Linux whose rules the multi-queue layer, its elevators and its controllers
    /// follow.
    pub kernel: KernelVersion,
    /// Whether the driver limits the number of requests that it takes from the elevator in one run
    /// of the queue, as SCSI drivers do. Without this limit, Linux 5.9 to 5.13 moves all requests
    /// to the driver's list.
    pub driver_has_budget: bool,
}

impl Default for QueueConfig {
    /// Returns the configuration of a disk that takes 32 commands, with a write cache and without
    /// force-unit-access. The queue runs once per event.
    fn default() -> Self {
        Self {
            hz: 1000,
            rotational: true,
            groups: false,
            command_queueing: None,
            write_cache: true,
            fua: false,
            barriers: false,
            max_hw_sectors_kb: 512,
            read_ahead_kb: 128,
            depth: 32,
            hw_queues: 1,
            tag_layout: TagLayout::Spread,
            run_at_insertion: false,
            throttles_writeback: false,
            kernel: KernelVersion::default(),
            driver_has_budget: true,
        }
    }
}

/// The hardware queues of the device, and the layout of their tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceQueues {
    pub(super) depth: u32,
    pub(super) count: u16,
    pub(super) layout: TagLayout,
    /// Whether limits on tags are counted in each word of the tags.
    pub(super) limits_words: bool,
}
