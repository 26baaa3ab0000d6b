//! What is known of the machine before anything is judged: plain data.

use std::path::PathBuf;

use serde::Serialize;

use super::groups::Cgroups;
use crate::block::DeviceNumber;

/// A machine as it was.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The kernel's release: `6.12.5-amd64`.
    pub kernel: String,
    /// The hypervisor that it runs under, if one is known.
    pub virtualisation: Option<String>,
    /// The disks, partitions not among them.
    pub disks: Vec<Disk>,
    /// What cgroups set.
    pub cgroups: Cgroups,
    /// File systems over several disks.
    pub spread: Vec<Spread>,
    /// Where ZFS is mounted.
    pub zfs: Vec<PathBuf>,
    /// The ioprios that are set among running processes, threads of the kernel aside; `None` if they could not be
    /// asked.
    pub ioprios: Option<Vec<Ioprio>>,
    /// Files that could not be read for want of rights.
    pub refused: Vec<String>,
}

impl Snapshot {
    /// The disk of that name.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// The disks on the way of whatever is done to `name`: itself, then those below it, and those that hold the same
    /// file system.
    #[must_use]
    pub fn way(&self, name: &str) -> Vec<&Disk> {
        let mut found: Vec<&Disk> = self.disk(name).into_iter().collect();
        let mut next = 0;
        while let Some(disk) = found.get(next).copied() {
            next += 1;
            let spread = self.spread.iter().filter(|spread| spread.disks.contains(&disk.name));
            let beside = spread.flat_map(|spread| &spread.disks);
            for below in disk.below.iter().chain(beside).filter_map(|name| self.disk(name)) {
                if !found.iter().any(|known| known.name == below.name) {
                    found.push(below);
                }
            }
        }
        found
    }

    /// The disks that are made of `name`, at any height.
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

    /// Whether the kernel is at least that of a release; one that is not known counts as today's.
    pub(super) fn is_since(&self, release: (u32, u32)) -> bool {
        crate::checks::version(&self.kernel).is_none_or(|version| version >= release)
    }
}

/// An ioprio that processes have set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ioprio {
    /// `rt`, `be` or `idle`.
    pub class: &'static str,
    /// 0 to 7, 0 the most urgent; `None` of the class idle.
    pub level: Option<u8>,
    /// Threads that have it.
    pub threads: usize,
    /// The name of a process that has it.
    pub example: String,
}

/// A file system over several disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Which file system.
    pub kind: &'static str,
    /// The directory that says so.
    pub file: String,
    /// The disks, in natural order.
    pub disks: Vec<String>,
}

/// What a disk is made of, if it is no disk by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Layer {
    /// A logical volume of LVM.
    Lvm,
    /// Encrypted by dm-crypt.
    Crypt,
    /// Several paths to one disk.
    Multipath,
    /// Something else that is made of other disks, of device mapper or not.
    Other,
    /// NVMe by paths that have queues of their own, and are hidden.
    NvmePaths {
        /// The paths, as `nvme0c0n1`, each with its scheduler.
        paths: Vec<(String, Option<String>)>,
    },
    /// RAID of md.
    Raid {
        /// `raid0`, `raid1`, `raid5` and so on.
        level: String,
    },
    /// A file, or another device.
    Loop {
        /// The file.
        file: String,
        /// Whether the page cache is left out.
        is_direct: bool,
    },
}

/// Writeback throttling of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Throttling {
    /// The latency that reads are to have, us.
    TargetUs(u64),
    /// It is off.
    Off,
}

/// A disk as the kernel shows it. What is `None` was not to be read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Disk {
    /// Its name in `/sys/block`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// The scheduler; `None` of a device without a request queue, as those that are made of others.
    pub scheduler: Option<String>,
    /// Those that can be chosen.
    pub schedulers: Vec<String>,
    /// Hardware queues of the driver.
    pub hw_queues: Option<u32>,
    /// Requests there can be, for each hardware queue.
    pub nr_requests: Option<u32>,
    /// Commands that the driver takes from one hardware queue.
    pub queue_depth: Option<u32>,
    /// Age from which mq-deadline sends requests of lower classes before higher ones, ms.
    pub prio_aging_expire_ms: Option<u64>,
    /// The file, in its directory, that has the drive told of the class rt; `None` if it is not.
    pub drive_priority: Option<&'static str>,
    /// Whether the kernel takes it for a rotating one.
    pub is_rotational: Option<bool>,
    /// 0: requests are merged, 1: only simply, 2: not.
    pub nomerges: Option<u8>,
    /// Whether the kernel keeps statistics.
    pub iostats: Option<bool>,
    /// Writeback throttling; `None` if it has none.
    pub wbt: Option<Throttling>,
    /// `write back`: it is flushed; `write through`: it is not.
    pub write_cache: Option<String>,
    /// What the drive says of its cache, of SCSI and SATA.
    pub drive_cache: Option<String>,
    /// Largest discard that is made, bytes; 0: none.
    pub discard_max_bytes: Option<u64>,
    /// Largest discard that the disk takes, bytes; 0: none.
    pub discard_max_hw_bytes: Option<u64>,
    /// Largest request that is made, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request that the disk takes, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// How far is read ahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// What its maker calls it.
    pub model: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// Whether it hangs on USB.
    pub is_usb: bool,
    /// What is below a disk that is not a real one: `a virtual machine's disk`, `a file`.
    pub virtual_kind: Option<&'static str>,
    /// Whether it cannot be written.
    pub is_read_only: bool,
    /// What it is made of.
    pub layer: Option<Layer>,
    /// The disks below it, partitions by the name of their disk.
    pub below: Vec<String>,
}

impl Disk {
    /// The path of something in its directory.
    pub(super) fn file(&self, name: &str) -> String {
        format!("/sys/block/{}/{name}", self.name)
    }

    /// Whether it is not made of others.
    pub(super) const fn is_real(&self) -> bool {
        matches!(self.layer, None | Some(Layer::NvmePaths { .. }))
    }

    /// Whether it is NVMe.
    pub(super) fn is_nvme(&self) -> bool {
        self.name.starts_with("nvme")
    }

    /// Whether the scheduler is this one.
    pub(super) fn has_scheduler(&self, name: &str) -> bool {
        self.scheduler.as_deref() == Some(name)
    }

    /// Why the kernel's word that it rotates is doubtful; `None` if it does not say so, or there is no doubt.
    pub(super) fn rotation_doubt(&self) -> Option<RotationDoubt> {
        // What is made of others says what those say.
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

/// Why the kernel's word that a disk rotates is doubtful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RotationDoubt {
    /// It is virtual, and hypervisors say so of any disk.
    Virtual,
    /// Its model is that of an SSD.
    Model,
    /// A USB bridge is before it.
    Usb,
}

impl Layer {
    /// Whether it is a loop device.
    #[must_use]
    pub const fn is_loop(&self) -> bool {
        matches!(self, Self::Loop { .. })
    }

    /// Whether threads of the kernel send the writes to what is below, as a rule.
    #[must_use]
    pub fn is_written_by_kernel(&self) -> bool {
        match self {
            Self::Crypt => true,
            Self::Raid { level } => ["raid4", "raid5", "raid6"].contains(&level.as_str()),
            _ => false,
        }
    }
}
