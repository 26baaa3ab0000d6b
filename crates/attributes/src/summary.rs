//! Summaries of the disks of a tree, for a list of disks.

use std::collections::BTreeMap;

use iosched::SECTOR_BYTES;
use iosched_kernel::attribute::chosen;
use iosched_kernel::block::DeviceCard;
use iosched_kernel::cgroup::Controls;
use iosched_kernel::{BlockDevice, Roots};
use serde::Serialize;

use crate::{Disk, Disks};

/// A disk of the kernel, with the values of cgroups for this disk.
#[derive(Debug, Serialize)]
pub struct KernelDisk {
    /// Description of the disk from the kernel.
    #[serde(flatten)]
    pub card: DeviceCard,
    /// Values of cgroup files for the disk, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, String>,
}

impl KernelDisk {
    /// Returns the kernel's disks that are in `disks`.
    #[must_use]
    pub fn all(disks: &Disks) -> Vec<Self> {
        let is_named = |device: &BlockDevice| disks.disks.iter().any(|disk| disk.name == device.name());
        let devices = BlockDevice::disks(&Roots::default()).into_iter().filter(is_named);
        let controls = Controls::of(&Roots::default());
        let of_device = |device: BlockDevice| {
            let number = device.disk().number();
            Self { card: device.card(), cgroups: controls.on(number).into_iter().collect() }
        };
        devices.map(of_device).collect()
    }
}

/// Summary of a disk that does not belong to the kernel. Values that the tree does not have are
/// `None`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DiskSummary {
    /// Name of the disk.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// Present scheduler.
    pub scheduler: Option<String>,
    /// Whether the disk is rotational, so that seeks take time.
    pub is_rotational: Option<bool>,
    /// Number of requests that the driver accepts at once.
    pub driver_depth: Option<u64>,
}

impl DiskSummary {
    /// Reads the attributes of a disk.
    pub fn read(disks: &mut Disks, disk: &Disk) -> Self {
        let mut read = |name: &str| disks.tree.read(&disk.path_of(name)).ok().map(|text| text.trim().to_owned());
        let sectors = read("size").and_then(|sectors| sectors.parse::<u64>().ok());
        Self {
            name: disk.name.clone(),
            size_bytes: sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
            scheduler: read("queue/scheduler").map(|text| chosen(&text).to_owned()),
            is_rotational: read("queue/rotational").map(|text| text != "0"),
            driver_depth: read("device/queue_depth").and_then(|depth| depth.parse().ok()),
        }
    }
}
