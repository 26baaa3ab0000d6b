//! Uses of a device: mounts, swap and holders of the device, of its partitions and of devices built
//! on them.

use std::fmt;
use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{BlockDevice, DeviceNumber};
use crate::roots::{Roots, names, read};

/// Mounted file system, from `/proc/self/mountinfo`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mounted {
    pub(crate) number: DeviceNumber,
    pub(crate) at: PathBuf,
    pub(crate) kind: String,
    pub(crate) source: String,
}

/// Returns all mounts.
pub(crate) fn mounts(roots: &Roots) -> Vec<Mounted> {
    let text = read(&roots.proc("self/mountinfo")).unwrap_or_default();
    text.lines().filter_map(mounted).collect()
}

/// Parses a line: id, parent, number, root, mount point, options, optional fields, a dash, type,
/// source, options.
fn mounted(line: &str) -> Option<Mounted> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ');
    let number = fields.nth(2)?.parse().ok()?;
    let at = PathBuf::from(unescaped(fields.nth(1)?));
    let mut fields = after.split(' ');
    Some(Mounted { number, at, kind: fields.next()?.to_owned(), source: unescaped(fields.next()?) })
}

/// Decodes white space and backslashes, which are written as a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or("").as_bytes().to_vec();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => bytes.extend([b"\\", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// File system that is mounted from a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mount {
    /// Name of the mounted device.
    pub device: String,
    /// Mount point.
    pub at: PathBuf,
}

/// Swap space that is in use on a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Swap {
    /// Name of the device, or path of the swap file.
    pub device: String,
}

/// All uses of a device that a test would disturb.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// Mounts of the device, its partitions, and devices built on them.
    pub mounts: Vec<Mount>,
    /// Swap on these devices.
    pub swaps: Vec<Swap>,
    /// Devices built on the device or its partitions: device mapper, RAID, loop devices.
    pub holders: Vec<String>,
}

impl Usage {
    /// Returns whether the device has no uses.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.mounts.is_empty() && self.swaps.is_empty() && self.holders.is_empty()
    }
}

/// Shows the uses as `sda1 is mounted on /boot, sda2 is used for swap, the device dm-0 uses
/// space on this device`.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mounts = self.mounts.iter().map(|Mount { device, at }| format!("{device} is mounted on {}", at.display()));
        let swaps = self.swaps.iter().map(|Swap { device }| format!("{device} is used for swap"));
        let holders = self.holders.iter().map(|holder| format!("the device {holder} uses space on this device"));
        let all: Vec<String> = mounts.chain(swaps).chain(holders).collect();
        f.write_str(&if all.is_empty() { "no program uses this device".to_owned() } else { all.join(", ") })
    }
}

impl BlockDevice {
    /// Returns the uses of the device, its partitions, and all devices built on them. For a
    /// partition, the uses of its whole disk are included.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut devices = vec![self.clone()];
        let parts = if self.is_partition() { vec![self.disk()] } else { self.partitions() };
        devices.extend(parts);
        let mut usage = Usage::default();
        let loops = loops(&self.roots);
        // The loop appends the devices that it finds to the list, and then examines them as well.
        let mut next = 0;
        while let Some(device) = devices.get(next).cloned() {
            next += 1;
            let over = loops.iter().filter(|(_, below)| *below == device).map(|(over, _)| over.clone());
            for holder in device.holders().into_iter().chain(over) {
                if !devices.contains(&holder) {
                    usage.holders.push(holder.name.clone());
                    devices.extend(holder.partitions());
                    devices.push(holder);
                }
            }
        }
        usage.mounts = self.mounts_of(&devices);
        usage.swaps = swaps_of(&self.roots, &devices);
        usage
    }

    fn mounts_of(&self, devices: &[Self]) -> Vec<Mount> {
        let mut found = Vec::new();
        for mount in mounts(&self.roots) {
            // btrfs reports its own device numbers, so its mounts are found by their source.
            let is_named = |device: &&Self| {
                let source = Path::new(&mount.source);
                mount.number.major == 0 && Self::of_device_file(&self.roots, source).as_ref() == Some(*device)
            };
            let device = devices.iter().find(|device| device.number == mount.number || is_named(device));
            let here = device.map(|device| Mount { device: device.name.clone(), at: mount.at.clone() });
            found.extend(here.filter(|mount| !found.contains(mount)));
        }
        found
    }

    /// Returns whether the root file system is on this disk, or on a device that is built on it.
    #[must_use]
    pub fn is_under_root(&self) -> bool {
        let root = mounts(&self.roots).into_iter().rev().find(|mount| mount.at == Path::new("/"));
        let device = root.and_then(|root| {
            let by_number = Self::numbered(&self.roots, root.number);
            by_number.or_else(|| Self::of_device_file(&self.roots, Path::new(&root.source)))
        });
        let Some(device) = device else { return false };
        let (disk, others) = (self.disk_name(), device.in_the_same_btrfs());
        let is_on =
            |device: &Self| device.disk_name() == disk || device.stack().iter().any(|below| below.disk_name() == disk);
        others.iter().any(is_on) || is_on(&device)
    }

    /// Returns all devices of the btrfs that contains this device. A mount of btrfs names only one
    /// of them.
    fn in_the_same_btrfs(&self) -> Vec<Self> {
        let all = self.roots.sys("fs/btrfs");
        let members = names(&all).into_iter().map(|id| names(&all.join(id).join("devices")));
        let here = members.into_iter().find(|members| members.contains(&self.name)).unwrap_or_default();
        here.iter().filter_map(|name| Self::named(&self.roots, name).ok()).collect()
    }

    /// Opens the device exclusively. While the file is open, the device cannot be mounted, mapped
    /// or used for swap.
    ///
    /// # Errors
    /// Errors of the system: [`ResourceBusy`](std::io::ErrorKind::ResourceBusy) if the device is in
    /// use.
    pub fn open_exclusively(&self) -> std::io::Result<std::fs::File> {
        let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
        OpenOptions::new().read(true).custom_flags(exclusive).open(self.path())
    }
}

/// Returns each loop device whose file is itself a device, together with that device.
fn loops(roots: &Roots) -> Vec<(BlockDevice, BlockDevice)> {
    let over = |device: BlockDevice| {
        let below = BlockDevice::of_device_file(roots, &device.backing_file()?)?;
        Some((device, below))
    };
    BlockDevice::disks(roots).into_iter().filter_map(over).collect()
}

/// Returns the uses of a file as a disk: loop devices over the file, the uses of these devices, and
/// swap.
#[must_use]
pub fn usage_of_file(roots: &Roots, file: &Path) -> Usage {
    let Ok((about, full)) = std::fs::metadata(file).and_then(|about| Ok((about, file.canonicalize()?))) else {
        return Usage::default();
    };
    let mounts = mounts(roots);
    let number = DeviceNumber::from_raw(about.dev());
    // Only files of the same file system are examined, because a network file system may not
    // answer.
    let may_be_it = |path: &Path| {
        let around = mounts.iter().filter(|mount| path.starts_with(&mount.at));
        around.max_by_key(|mount| mount.at.as_os_str().len()).is_some_and(|mount| mount.number == number)
    };
    let is_same =
        |path: &Path| std::fs::metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (about.dev(), about.ino()));
    let is_it = |path: &Path| path == full || (may_be_it(path) && is_same(path));
    let mut usage = Usage::default();
    for device in
        BlockDevice::disks(roots).into_iter().filter(|device| device.backing_file().is_some_and(|file| is_it(&file)))
    {
        let Usage { mounts, swaps, holders } = device.usage();
        usage.holders.push(device.name);
        usage.holders.extend(holders);
        usage.mounts.extend(mounts);
        usage.swaps.extend(swaps);
    }
    let swapped = swap_files(roots).into_iter().filter(|path| is_it(path));
    usage.swaps.extend(swapped.map(|path| Swap { device: path.display().to_string() }));
    usage
}

/// Returns files and devices that are used for swap.
fn swap_files(roots: &Roots) -> Vec<PathBuf> {
    let text = read(&roots.proc("swaps")).unwrap_or_default();
    let files = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    files.map(|file| PathBuf::from(unescaped(file))).collect()
}

fn swaps_of(roots: &Roots, devices: &[BlockDevice]) -> Vec<Swap> {
    let swapped = swap_files(roots).into_iter().filter_map(|file| BlockDevice::of_device_file(roots, &file));
    let swapped = swapped.filter(|device| devices.contains(device));
    swapped.map(|device| Swap { device: device.name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_in_mount_points_are_decoded() {
        let line = r"27 1 8:1 / /mnt/a\040b\134c rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw";
        let found = mounted(line).unwrap();
        assert_eq!(found.at, Path::new(r"/mnt/a b\c"));
        assert_eq!((found.kind.as_str(), found.source.as_str()), ("ext4", "/dev/sda1"));
        assert_eq!(mounted("27 1 8:1 /"), None);
        assert_eq!(unescaped(r"a\9"), r"a\9");
    }
}
