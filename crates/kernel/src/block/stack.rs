//! What a device is made of, and what is made of it: partitions, loop devices over files, device mapper and RAID over
//! disks.

use std::path::{Path, PathBuf};

use super::BlockDevice;
use crate::roots::{names, value};

/// Stacks are not deeper. Ends what could go in a circle, as a loop device over a file of its own file system.
const LEVELS_MAX: usize = 16;

impl BlockDevice {
    /// The whole disk.
    #[must_use]
    pub fn disk(&self) -> Self {
        match &self.disk {
            Some(disk) => Self::named(&self.roots, disk).unwrap_or_else(|_| self.clone()),
            None => self.clone(),
        }
    }

    /// The partitions of a disk.
    #[must_use]
    pub fn partitions(&self) -> Vec<Self> {
        let directory = self.directory();
        let names = names(&directory).into_iter().filter(|name| directory.join(name).join("partition").exists());
        names.filter_map(|name| Self::named(&self.roots, &name).ok()).collect()
    }

    fn linked(&self, directory: &str) -> Vec<Self> {
        names(&self.directory().join(directory)).iter().filter_map(|name| Self::named(&self.roots, name).ok()).collect()
    }

    /// What is made of this device, partitions aside: device mapper, RAID.
    #[must_use]
    pub fn holders(&self) -> Vec<Self> {
        self.linked("holders")
    }

    /// Of a loop device: its file.
    #[must_use]
    pub fn backing_file(&self) -> Option<PathBuf> {
        value(&self.disk_directory().join("loop/backing_file")).map(PathBuf::from)
    }

    /// Of a loop device: whether it goes past the page cache of what its file is on.
    #[must_use]
    pub fn is_direct_loop(&self) -> Option<bool> {
        value(&self.disk_directory().join("loop/dio")).map(|text| text == "1")
    }

    /// What is directly below: a partition's disk, the disks of device mapper and RAID, the device that a loop device's
    /// file is on.
    #[must_use]
    pub fn below(&self) -> Vec<Self> {
        if self.is_partition() {
            return vec![self.disk()];
        }
        let slaves = self.linked("slaves");
        let backing = self.backing_file().and_then(|file| self.device_of_backing(&file));
        slaves.into_iter().chain(backing).collect()
    }

    /// A loop device's file may be a device itself.
    fn device_of_backing(&self, file: &Path) -> Option<Self> {
        Self::of_device_file(&self.roots, file).or_else(|| Self::find(&self.roots, file).ok())
    }

    /// Everything below, at any depth, itself not among it; each once.
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

    /// The disks whose schedulers decide about I/O to this one: the disk itself if it has a scheduler, else what it is
    /// made of. Those of what a loop device's file is on are not among them.
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

    /// What it is made of, for people: `/srv/disk.img` of a loop device, `sda2, sdb2` of RAID, a model of a disk; the
    /// driver of a disk whose model is not known.
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

    /// Whether nothing below it is a real device as far as this machine can tell: a loop device, memory, a virtual
    /// machine's disk. `None` of an ordinary disk. The sentence says what is below.
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

/// How hypervisors and clouds call the disks they make up.
fn is_virtual_model(model: &str) -> bool {
    const NAMES: [&str; 7] =
        ["QEMU", "VBOX", "VMware", "Virtual Disk", "Virtual disk", "Amazon Elastic Block Store", "PersistentDisk"];
    NAMES.iter().any(|name| model.contains(name))
}
