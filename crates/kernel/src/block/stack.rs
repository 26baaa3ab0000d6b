//! Devices below and above a device: partitions, loop devices over files, device mapper and RAID
//! over disks.

use std::path::{Path, PathBuf};

use super::BlockDevice;
use crate::roots::{names, value};

/// Maximum depth to which a stack of devices is followed. The limit also ends cycles, such as a
/// loop device over a file in its own file system.
const LEVELS_MAX: usize = 16;

impl BlockDevice {
    /// Returns the whole disk.
    #[must_use]
    pub fn disk(&self) -> Self {
        match &self.disk {
            Some(disk) => Self::named(&self.roots, disk).unwrap_or_else(|_| self.clone()),
            None => self.clone(),
        }
    }

    /// Returns the partitions of a disk.
    #[must_use]
    pub fn partitions(&self) -> Vec<Self> {
        let directory = self.directory();
        let names = names(&directory).into_iter().filter(|name| directory.join(name).join("partition").exists());
        names.filter_map(|name| Self::named(&self.roots, &name).ok()).collect()
    }

    fn linked(&self, directory: &str) -> Vec<Self> {
        names(&self.directory().join(directory)).iter().filter_map(|name| Self::named(&self.roots, name).ok()).collect()
    }

    /// Returns the devices that are built on this device, such as device mapper and RAID.
    /// Partitions are not included.
    #[must_use]
    pub fn holders(&self) -> Vec<Self> {
        self.linked("holders")
    }

    /// Returns the file of a loop device.
    #[must_use]
    pub fn backing_file(&self) -> Option<PathBuf> {
        value(&self.disk_directory().join("loop/backing_file")).map(PathBuf::from)
    }

    /// Returns whether a loop device bypasses the page cache of its file's file system. Returns
    /// `None` for other devices.
    #[must_use]
    pub fn is_direct_loop(&self) -> Option<bool> {
        value(&self.disk_directory().join("loop/dio")).map(|text| text == "1")
    }

    /// Returns the devices directly below. A partition is on its disk, device mapper and RAID are
    /// on their members, and a loop device is on the device of its file.
    #[must_use]
    pub fn below(&self) -> Vec<Self> {
        if self.is_partition() {
            return vec![self.disk()];
        }
        let slaves = self.linked("slaves");
        let backing = self.backing_file().and_then(|file| self.device_of_backing(&file));
        slaves.into_iter().chain(backing).collect()
    }

    /// Returns the device of a loop device's file. The file may itself be a device.
    fn device_of_backing(&self, file: &Path) -> Option<Self> {
        Self::of_device_file(&self.roots, file).or_else(|| Self::find(&self.roots, file).ok())
    }

    /// Returns every device below this device, at any depth, without duplicates.
    #[must_use]
    pub fn stack(&self) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut level = self.below();
        for _ in 0..LEVELS_MAX {
            level.retain(|device| !found.contains(device) && device != self);
            level.dedup();
            if level.is_empty() {
                break;
            }
            let next = level.iter().flat_map(Self::below).collect();
            found.append(&mut level);
            level = next;
        }
        found
    }

    /// Returns the disks whose schedulers order the I/O of this device. This is the disk itself if
    /// it has a scheduler, and the devices below otherwise. A loop device has a scheduler, so the
    /// device of its file is not included.
    #[must_use]
    pub fn scheduled(&self) -> Vec<Self> {
        let mut found = Vec::new();
        self.collect_scheduled(&mut found, LEVELS_MAX);
        found
    }

    fn collect_scheduled(&self, found: &mut Vec<Self>, levels: usize) {
        let disk = self.disk();
        if disk.scheduler().is_some() {
            if !found.contains(&disk) {
                found.push(disk);
            }
        } else if levels > 0 {
            disk.below().iter().for_each(|device| device.collect_scheduled(found, levels - 1));
        }
    }

    /// Returns a description of the layer below, for people: `/srv/disk.img` for a loop device,
    /// `sda2, sdb2` for RAID, the model for a disk. If the model of a disk is not known, returns
    /// its driver.
    #[must_use]
    pub fn made_of(&self) -> String {
        if let Some(file) = self.backing_file() {
            return file.display().to_string();
        }
        let below = self.below();
        if below.is_empty() {
            return self.model().or_else(|| self.driver()).unwrap_or_default();
        }
        let names: Vec<_> = below.iter().map(Self::name).collect();
        match value(&self.disk_directory().join("dm/name")) {
            Some(name) if !self.is_partition() => format!("{} ({name})", names.join(", ")),
            _ => names.join(", "),
        }
    }

    /// Returns a description of the layer below, if this machine can detect that it is not real
    /// hardware. Examples are a loop device, memory and the disk of a virtual machine. Otherwise
    /// returns `None`.
    #[must_use]
    pub fn virtual_kind(&self) -> Option<&'static str> {
        let name = self.disk_name();
        let is = |prefix: &str| name.starts_with(prefix);
        match self.driver().as_deref() {
            Some("virtio_blk") => return Some("a virtual machine's disk"),
            Some("xen-blkfront" | "vbd") => return Some("a virtual machine's disk"),
            _ => {}
        }
        match () {
            () if is("loop") => Some("a file"),
            () if is("zram") || is("ram") || is("pmem") => Some("memory"),
            () if is("nbd") || is("rbd") || is("drbd") => Some("another machine's disk"),
            () if is("ublk") => Some("a program"),
            () if is("nullb") => Some("nothing"),
            () if self.model().is_some_and(|model| is_virtual_model(&model)) => Some("a virtual machine's disk"),
            () => None,
        }
    }
}

/// Returns whether a hypervisor or a cloud uses this model name for its virtual disks.
fn is_virtual_model(model: &str) -> bool {
    const NAMES: [&str; 7] =
        ["QEMU", "VBOX", "VMware", "Virtual Disk", "Virtual disk", "Amazon Elastic Block Store", "PersistentDisk"];
    NAMES.iter().any(|name| model.contains(name))
}
