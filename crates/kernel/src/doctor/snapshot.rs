//! Facts about the machine as plain data, without judgements.

use std::path::PathBuf;

use serde::Serialize;

use super::groups::Cgroups;
use crate::block::DeviceNumber;

/// State of a machine at one time.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Release of the kernel: `6.12.5-amd64`.
    pub kernel: String,
    /// Hypervisor of the machine, if one is detected.
    pub virtualisation: Option<String>,
    /// Disks, without partitions.
    pub disks: Vec<Disk>,
    /// Settings of cgroups.
    pub cgroups: Cgroups,
    /// File systems over several disks.
    pub spread: Vec<Spread>,
    /// Mount points of ZFS.
    pub zfs: Vec<PathBuf>,
    /// Ioprios that processes have set; kernel threads do not count. `None` if they could not be
    /// read.
    pub ioprios: Option<Vec<Ioprio>>,
    /// Files that could not be read without permission.
    pub refused: Vec<String>,
}

impl Snapshot {
    /// Returns the disk of this name.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// Returns the disks that serve I/O to the disk `name`: the disk itself, the disks below it,
    /// and the disks that hold the same file system.
    #[must_use]
    pub fn way(&self, name: &str) -> Vec<&Disk> {
        let mut found: Vec<&Disk> = self.disk(name).into_iter().collect();
        let mut next = 0;
        while let Some(disk) = found.get(next).copied() {
            next += 1;
            let spread = self.spread.iter().filter(|spread| spread.disks.contains(&disk.name));
            let siblings = spread.flat_map(|spread| &spread.disks);
            for below in disk.below.iter().chain(siblings).filter_map(|name| self.disk(name)) {
                if !found.iter().any(|known| known.name == below.name) {
                    found.push(below);
                }
            }
        }
        found
    }

    /// Returns the devices that are built on `name`, at any height.
    #[must_use]
    pub fn above(&self, name: &str) -> Vec<&Disk> {
        let mut names = vec![name.to_owned()];
        let mut found: Vec<&Disk> = Vec::new();
        let mut next = 0;
        while let Some(below) = names.get(next).cloned() {
            next += 1;
            for disk in self.disks.iter().filter(|disk| disk.below.contains(&below)) {
                if !names.contains(&disk.name) {
                    names.push(disk.name.clone());
                    found.push(disk);
                }
            }
        }
        found
    }

    /// Returns whether the kernel has this release or a newer one. An unknown release counts as the
    /// newest.
    pub(super) fn is_since(&self, release: (u32, u32)) -> bool {
        crate::checks::version(&self.kernel).is_none_or(|version| version >= release)
    }
}

/// Ioprio that processes have set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ioprio {
    /// Class: `rt`, `be` or `idle`.
    pub class: &'static str,
    /// Level from 0 to 7, where 0 is the most urgent. `None` for the class idle.
    pub level: Option<u8>,
    /// Number of threads with this ioprio.
    pub threads: usize,
    /// Name of a process with this ioprio.
    pub example: String,
}

/// File system over several disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Kind of file system.
    pub kind: &'static str,
    /// Directory that lists the disks.
    pub file: String,
    /// Disks, in natural order.
    pub disks: Vec<String>,
}

/// Kind of a device that is not itself a disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Layer {
    /// Logical volume of LVM.
    Lvm,
    /// Device encrypted by dm-crypt.
    Crypt,
    /// Several paths to one disk.
    Multipath,
    /// Another device that is built on disks, with or without device mapper.
    Other,
    /// NVMe disk with hidden paths that have their own queues.
    NvmePaths {
        /// Paths, such as `nvme0c0n1`, each with its scheduler.
        paths: Vec<(String, Option<String>)>,
    },
    /// RAID of md.
    Raid {
        /// Level: `raid0`, `raid1`, `raid5` and so on.
        level: String,
    },
    /// Loop device over a file or another device.
    Loop {
        /// Path of the file.
        file: String,
        /// Whether the loop device bypasses the page cache.
        is_direct: bool,
    },
}

/// State of writeback throttling on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttling {
    /// On, with this target latency of reads, us.
    TargetUs(u64),
    /// Off.
    Off,
}

/// State of a disk in the kernel. A field is `None` if its file could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Disk {
    /// Name in `/sys/block`.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Present scheduler. `None` for a device without a request queue, such as most devices that
    /// are built on other devices.
    pub scheduler: Option<String>,
    /// Available schedulers.
    pub schedulers: Vec<String>,
    /// Number of the driver's hardware queues.
    pub hw_queues: Option<u32>,
    /// Number of requests that can exist for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Number of commands that the driver accepts from one hardware queue.
    pub queue_depth: Option<u32>,
    /// Age above which mq-deadline dispatches requests of lower classes before requests of higher
    /// classes, ms.
    pub prio_aging_expire_ms: Option<u64>,
    /// File in the disk's directory that makes the kernel send the class rt to the drive. `None` if
    /// the kernel does not send the class to this drive.
    pub drive_priority: Option<&'static str>,
    /// Whether the kernel treats the disk as a rotating one.
    pub is_rotational: Option<bool>,
    /// Restriction of merges. 0: none, 1: only simple merges, 2: no merges.
    pub nomerges: Option<u8>,
    /// Whether the kernel keeps statistics.
    pub iostats: Option<bool>,
    /// State of writeback throttling. `None` if the disk has no writeback throttling.
    pub wbt: Option<Throttling>,
    /// Mode of the write cache. The kernel flushes the cache if the mode is `write back`, but not
    /// if it is `write through`.
    pub write_cache: Option<String>,
    /// Cache type that a SCSI or SATA drive reports.
    pub drive_cache: Option<String>,
    /// Largest discard that the kernel sends, bytes. 0: none.
    pub discard_max_bytes: Option<u64>,
    /// Largest discard that the disk supports, bytes. 0: none.
    pub discard_max_hw_bytes: Option<u64>,
    /// Largest request that the kernel sends, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request that the disk supports, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Readahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Model name from the manufacturer.
    pub model: Option<String>,
    /// Name of the driver.
    pub driver: Option<String>,
    /// Whether the disk is connected by USB.
    pub is_usb: bool,
    /// Description of the layer below a disk that is not real hardware, such as `a virtual
    /// machine's disk` or `a file`.
    pub virtual_kind: Option<&'static str>,
    /// Whether the disk is read-only.
    pub is_read_only: bool,
    /// Kind of device, if it is not itself a disk.
    pub layer: Option<Layer>,
    /// Disks on which this device is built. A partition is listed by the name of its disk.
    pub below: Vec<String>,
}

impl Disk {
    /// Returns the path of a file in the disk's directory.
    pub(super) fn file(&self, name: &str) -> String {
        format!("/sys/block/{}/{name}", self.name)
    }

    /// Returns whether the disk is not built on other devices.
    pub(super) const fn is_real(&self) -> bool {
        matches!(self.layer, None | Some(Layer::NvmePaths { .. }))
    }

    /// Returns whether the disk is an NVMe disk.
    pub(super) fn is_nvme(&self) -> bool {
        self.name.starts_with("nvme")
    }

    /// Returns whether the scheduler has this name.
    pub(super) fn has_scheduler(&self, name: &str) -> bool {
        self.scheduler.as_deref() == Some(name)
    }

    /// Returns the reason to doubt that the disk rotates. Returns `None` if the kernel does not
    /// report rotation, or if there is no doubt.
    pub(super) fn rotation_doubt(&self) -> Option<RotationDoubt> {
        // A device that is built on other devices takes this property from them.
        if self.is_rotational != Some(true) || !self.is_real() {
            return None;
        }
        let model = self.model.as_deref().unwrap_or_default();
        match () {
            () if self.virtual_kind.is_some() => Some(RotationDoubt::Virtual),
            () if model.to_ascii_uppercase().contains("SSD") => Some(RotationDoubt::Model),
            () if self.is_usb => Some(RotationDoubt::Usb),
            () => None,
        }
    }
}

/// Reason to doubt the kernel's report that a disk rotates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RotationDoubt {
    /// The disk is virtual, and hypervisors report every disk as rotating.
    Virtual,
    /// The model is an SSD.
    Model,
    /// The disk is behind a USB bridge.
    Usb,
}

impl Layer {
    /// Returns whether the device is a loop device.
    #[must_use]
    pub const fn is_loop(&self) -> bool {
        matches!(self, Self::Loop { .. })
    }

    /// Returns whether kernel threads usually send the writes to the devices below.
    #[must_use]
    pub fn is_written_by_kernel(&self) -> bool {
        match self {
            Self::Crypt => true,
            Self::Raid { level } => ["raid4", "raid5", "raid6"].contains(&level.as_str()),
            _ => false,
        }
    }
}
