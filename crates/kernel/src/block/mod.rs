//! Block devices: the kernel's disks and their partitions.
//!
//! | file | contents |
//! |---|---|
//! | `find.rs` | finds the device of a name, a device file, a directory or a file |
//! | `stack.rs` | devices below and above a device |
//! | `usage.rs` | mounts, swaps and holders of a device |
//! | `signature.rs` | marks of valuable data on a device |
//! | `stat.rs` | I/O statistics of a device |
//! | `card.rs` | description of a device in a record |

mod card;
mod find;
mod signature;
mod stack;
mod stat;
mod usage;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::roots::{Roots, names, number, value};

pub use card::DeviceCard;
pub use find::FindError;
pub use stat::{Direction, Stat};
pub use usage::{Mount, Swap, Usage, usage_of_file};
pub(crate) use usage::{Mounted, mounts};

/// Bytes in a sector, the unit of `size`, `start` and `stat`.
const SECTOR_BYTES: u64 = iosched::SECTOR_BYTES;

/// Number of a block device: its major and minor part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceNumber {
    /// Major number, roughly the driver.
    pub major: u32,
    /// Minor number, the device of this driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Converts a device number from the form of `st_dev` and `st_rdev` in `stat`.
    #[must_use]
    pub fn from_raw(raw: u64) -> Self {
        Self { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.trim().split_once(':');
        let parsed = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let (major, minor) = parsed.ok_or_else(|| format!("{text:?} is not a device number, such as 8:0"))?;
        Ok(Self { major, minor })
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> Self {
        number.to_string()
    }
}

/// Block device: a disk or a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockDevice {
    roots: Roots,
    /// Name in `/sys/class/block`.
    name: String,
    number: DeviceNumber,
    /// Name of the disk, if the device is a partition.
    disk: Option<String>,
}

impl BlockDevice {
    /// Returns the file system roots of the device's machine.
    #[must_use]
    pub const fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Returns the name in `/sys/class/block`: `sda`, `sda1`, `nvme0n1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the device.
    #[must_use]
    pub const fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Returns the path of the device file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        // A slash in a device's name is an exclamation mark in sysfs.
        self.roots.dev(self.name.replace('!', "/"))
    }

    /// Returns whether the device is a partition.
    #[must_use]
    pub const fn is_partition(&self) -> bool {
        self.disk.is_some()
    }

    /// Returns the name of the whole disk. For a partition, this is the disk that contains it.
    #[must_use]
    pub fn disk_name(&self) -> &str {
        self.disk.as_deref().unwrap_or(&self.name)
    }

    /// Returns the directory of the device in sysfs.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.roots.sys("class/block").join(&self.name)
    }

    /// Returns the directory of the whole disk in sysfs.
    fn disk_directory(&self) -> PathBuf {
        self.roots.sys("block").join(self.disk_name())
    }

    /// Returns the size of the largest request that the kernel creates, KiB.
    #[must_use]
    pub fn max_sectors_kb(&self) -> Option<u32> {
        self.queue_number("max_sectors_kb")
    }

    /// Returns whether the device supports force-unit-access.
    #[must_use]
    pub fn has_fua(&self) -> Option<bool> {
        self.queue_number::<u32>("fua").map(|fua| fua != 0)
    }

    fn queue_number<T: FromStr>(&self, name: &str) -> Option<T> {
        number(&self.queue().join(name))
    }

    /// Returns the size in bytes. The size is 0 for a drive without a medium and for a loop device
    /// without a file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        number::<u64>(&self.directory().join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES)
    }

    /// Returns the bytes of the smallest I/O.
    #[must_use]
    pub fn logical_block_bytes(&self) -> u32 {
        self.queue_number("logical_block_size").unwrap_or(512)
    }

    /// Returns the bytes of the smallest write for which the device need not first read.
    #[must_use]
    pub fn physical_block_bytes(&self) -> u32 {
        self.queue_number("physical_block_size").unwrap_or_else(|| self.logical_block_bytes())
    }

    /// Returns whether the kernel treats the device as a rotating disk.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.queue_number::<u8>("rotational") == Some(1)
    }

    /// Returns whether the device is read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        number::<u8>(&self.directory().join("ro")) == Some(1)
    }

    /// Returns whether the kernel flushes a volatile write cache of the device. Returns `None` if
    /// the kernel does not report it.
    #[must_use]
    pub fn has_write_cache(&self) -> Option<bool> {
        value(&self.queue().join("write_cache")).map(|text| text == "write back")
    }

    /// Returns the number of requests that can be allocated at once for each hardware queue.
    #[must_use]
    pub fn nr_requests(&self) -> Option<u32> {
        self.queue_number("nr_requests")
    }

    /// Returns the number of commands that the driver accepts at once over all hardware queues. The
    /// number is the queue depth that SCSI reports, or otherwise the sum of the tags of the
    /// hardware queues.
    #[must_use]
    pub fn driver_depth(&self) -> Option<u32> {
        let scsi = number::<u32>(&self.disk_directory().join("device/queue_depth"));
        scsi.or_else(|| {
            let (per_queue, queues) = self.driver_tags()?;
            Some(per_queue.saturating_mul(queues))
        })
    }

    /// Returns the number of requests that the driver always accepts at once, even if all come to
    /// one hardware queue.
    #[must_use]
    pub fn driver_takes(&self) -> Option<u32> {
        let of_device = self.driver_depth()?;
        Some(self.driver_tags().map_or(of_device, |(per_queue, _)| per_queue.min(of_device)))
    }

    /// Returns whether the driver accepts all requests that can exist: `nr_requests` for each
    /// hardware queue.
    #[must_use]
    pub fn driver_takes_all(&self) -> Option<bool> {
        let (nr_requests, queues) = (self.nr_requests()?, self.hw_queues().unwrap_or(1));
        let all = nr_requests.saturating_mul(queues) <= self.driver_depth()?;
        Some(all && nr_requests <= self.driver_takes()?)
    }

    /// Returns the largest number of the driver's tags in a hardware queue, and the number of
    /// hardware queues.
    fn driver_tags(&self) -> Option<(u32, u32)> {
        let queues = self.disk_directory().join("mq");
        let tags: Vec<u32> =
            names(&queues).iter().filter_map(|queue| number(&queues.join(queue).join("nr_tags"))).collect();
        Some((*tags.iter().max()?, u32::try_from(tags.len()).ok()?))
    }

    /// Returns the number of the driver's hardware queues.
    #[must_use]
    pub fn hw_queues(&self) -> Option<u32> {
        self.driver_tags().map(|(_, queues)| queues)
    }

    /// Returns the name of the model without the manufacturer.
    #[must_use]
    pub fn model_name(&self) -> Option<String> {
        value(&self.disk_directory().join("device/model"))
    }

    /// Returns the manufacturer and the model.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        let of_device = |name: &str| value(&self.disk_directory().join("device").join(name));
        let model = self.model_name()?;
        // SCSI stores the manufacturer separately. For all ATA disks it is "ATA", which is omitted.
        let vendor = of_device("vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
        Some(vendor.map_or_else(|| model.clone(), |vendor| format!("{vendor} {model}")))
    }

    /// Returns the name of the driver of the device below the disk.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        let link = std::fs::read_link(self.disk_directory().join("device/driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    /// Returns the identity of the device, which does not depend on its name.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let of_disk = |name: &str| value(&self.disk_directory().join(name)).filter(|text| !text.is_empty());
        Identity {
            number: self.number,
            size_bytes: self.size_bytes(),
            sequence: of_disk("diskseq").and_then(|text| text.parse().ok()),
            serial: ["wwid", "device/wwid", "serial", "device/serial", "dm/uuid", "md/uuid"]
                .into_iter()
                .find_map(of_disk),
            backing_file: self.backing_file(),
        }
    }
}

impl fmt::Display for BlockDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Properties that distinguish a device from a later device with the same name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Number of the device.
    pub number: DeviceNumber,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Sequence number of the disk since the kernel started (since Linux 5.15).
    pub sequence: Option<u64>,
    /// Serial number or unique identifier from the manufacturer or the driver.
    pub serial: Option<String>,
    /// File of a loop device.
    pub backing_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
