//! Block devices, the kernel's disks and their partitions.
//!
//! | file | what it decides |
//! |---|---|
//! | `find.rs` | which device a name, a device file, a directory or a file stands for |
//! | `stack.rs` | what a device is made of, and what is made of it |
//! | `usage.rs` | who uses it: mounts, swap, holders |
//! | `signature.rs` | what it holds that somebody would miss |
//! | `stat.rs` | how busy it was |
//! | `card.rs` | what a record says of it |

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

/// The number of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceNumber {
    /// Which driver's it is, roughly.
    pub major: u32,
    /// Which of those.
    pub minor: u32,
}

impl DeviceNumber {
    /// From what `stat` calls `st_dev` or `st_rdev`.
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

/// A block device: a disk, or a partition of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockDevice {
    roots: Roots,
    /// As in `/sys/class/block`.
    name: String,
    number: DeviceNumber,
    /// Of a partition: its disk.
    disk: Option<String>,
}

impl BlockDevice {
    /// The machine it belongs to.
    #[must_use]
    pub const fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Its name in `/sys/class/block`: `sda`, `sda1`, `nvme0n1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> DeviceNumber {
        self.number
    }

    /// Its device file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        // A slash in a device's name is an exclamation mark in sysfs.
        self.roots.dev(self.name.replace('!', "/"))
    }

    /// Whether it is a partition.
    #[must_use]
    pub const fn is_partition(&self) -> bool {
        self.disk.is_some()
    }

    /// The name of the whole disk: its own, or that of which it is a partition.
    #[must_use]
    pub fn disk_name(&self) -> &str {
        self.disk.as_deref().unwrap_or(&self.name)
    }

    /// Its directory in sysfs.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.roots.sys("class/block").join(&self.name)
    }

    /// The directory of the whole disk.
    fn disk_directory(&self) -> PathBuf {
        self.roots.sys("block").join(self.disk_name())
    }

    /// Largest request that the kernel makes, KiB.
    #[must_use]
    pub fn max_sectors_kb(&self) -> Option<u32> {
        self.queue_number("max_sectors_kb")
    }

    /// Whether the device takes force-unit-access.
    #[must_use]
    pub fn has_fua(&self) -> Option<bool> {
        self.queue_number::<u32>("fua").map(|fua| fua != 0)
    }

    fn queue_number<T: FromStr>(&self, name: &str) -> Option<T> {
        number(&self.queue().join(name))
    }

    /// Its size in bytes; 0 of a drive without a medium, or a loop device without a file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        number::<u64>(&self.directory().join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES)
    }

    /// Bytes of the smallest I/O.
    #[must_use]
    pub fn logical_block_bytes(&self) -> u32 {
        self.queue_number("logical_block_size").unwrap_or(512)
    }

    /// Bytes of the smallest I/O that the device need not read before it writes.
    #[must_use]
    pub fn physical_block_bytes(&self) -> u32 {
        self.queue_number("physical_block_size").unwrap_or_else(|| self.logical_block_bytes())
    }

    /// Whether the kernel takes it for a rotating disk.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.queue_number::<u8>("rotational") == Some(1)
    }

    /// Whether it cannot be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        number::<u8>(&self.directory().join("ro")) == Some(1)
    }

    /// Whether the kernel flushes a volatile write cache of it; `None` if it does not say.
    #[must_use]
    pub fn has_write_cache(&self) -> Option<bool> {
        value(&self.queue().join("write_cache")).map(|text| text == "write back")
    }

    /// Requests that may be allocated at once, for each hardware queue.
    #[must_use]
    pub fn nr_requests(&self) -> Option<u32> {
        self.queue_number("nr_requests")
    }

    /// Commands that the driver takes at once from all hardware queues together: what SCSI says of the device, else the
    /// driver's tags.
    #[must_use]
    pub fn driver_depth(&self) -> Option<u32> {
        let scsi = number::<u32>(&self.disk_directory().join("device/queue_depth"));
        scsi.or_else(|| {
            let (per_queue, queues) = self.driver_tags()?;
            Some(per_queue.saturating_mul(queues))
        })
    }

    /// Requests that the driver takes at once whatever hardware queue they come to: below so many none waits for it.
    #[must_use]
    pub fn driver_takes(&self) -> Option<u32> {
        let of_device = self.driver_depth()?;
        Some(self.driver_tags().map_or(of_device, |(per_queue, _)| per_queue.min(of_device)))
    }

    /// Whether the driver takes all requests that there can be: `nr_requests` are of each hardware queue.
    #[must_use]
    pub fn driver_takes_all(&self) -> Option<bool> {
        let (nr_requests, queues) = (self.nr_requests()?, self.hw_queues().unwrap_or(1));
        let all = nr_requests.saturating_mul(queues) <= self.driver_depth()?;
        Some(all && nr_requests <= self.driver_takes()?)
    }

    /// The driver's tags in each hardware queue, and how many of those there are.
    fn driver_tags(&self) -> Option<(u32, u32)> {
        let queues = self.disk_directory().join("mq");
        let tags: Vec<u32> =
            names(&queues).iter().filter_map(|queue| number(&queues.join(queue).join("nr_tags"))).collect();
        Some((*tags.iter().max()?, u32::try_from(tags.len()).ok()?))
    }

    /// The driver's hardware queues.
    #[must_use]
    pub fn hw_queues(&self) -> Option<u32> {
        self.driver_tags().map(|(_, queues)| queues)
    }

    /// The model's name without its maker's.
    #[must_use]
    pub fn model_name(&self) -> Option<String> {
        value(&self.disk_directory().join("device/model"))
    }

    /// What its maker calls it.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        let of_device = |name: &str| value(&self.disk_directory().join("device").join(name));
        let model = self.model_name()?;
        // SCSI has the maker apart, and "ATA" for all that are not SCSI's own.
        let vendor = of_device("vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
        Some(vendor.map_or_else(|| model.clone(), |vendor| format!("{vendor} {model}")))
    }

    /// The driver of the device below the disk.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        let link = std::fs::read_link(self.disk_directory().join("device/driver")).ok()?;
        Some(link.file_name()?.to_str()?.to_owned())
    }

    /// Which device it is, under whatever name.
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

/// What tells a device from another one that has its name later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub number: DeviceNumber,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Which one it is of all disks since the kernel started (since Linux 5.15).
    pub sequence: Option<u64>,
    /// What its maker or its driver names it.
    pub serial: Option<String>,
    /// Of a loop device: its file.
    pub backing_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
