//! What a record says of a device, so that its figures can be understood elsewhere and later.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{BlockDevice, Usage};

/// A device as it was: what it is, and how its queue is set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceCard {
    /// Its name in `/sys/class/block`.
    pub name: String,
    /// Its device file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes of the smallest I/O.
    pub logical_block_bytes: u32,
    /// Bytes of the smallest I/O that the device need not read before it writes.
    pub physical_block_bytes: u32,
    /// Whether the kernel takes it for a rotating disk.
    pub is_rotational: bool,
    /// The present scheduler; none of devices that are made of others.
    pub scheduler: Option<String>,
    /// Those that can be chosen.
    pub schedulers: Vec<String>,
    /// Requests that may be allocated at once.
    pub nr_requests: Option<u32>,
    /// Commands that the driver takes at once.
    pub driver_depth: Option<u32>,
    /// The driver's hardware queues.
    pub hw_queues: Option<u32>,
    /// Whether the kernel flushes a volatile write cache.
    pub has_write_cache: Option<bool>,
    /// Its model.
    pub model: Option<String>,
    /// The driver below it.
    pub driver: Option<String>,
    /// What it is made of, if not itself: a file, other devices; for people.
    pub made_of: String,
    /// What is below a device that is not a real one.
    pub virtual_kind: Option<String>,
    /// Who uses it.
    pub usage: Usage,
}

impl BlockDevice {
    /// The device as it is now.
    #[must_use]
    pub fn card(&self) -> DeviceCard {
        DeviceCard {
            name: self.name().to_owned(),
            path: self.path(),
            size_bytes: self.size_bytes(),
            logical_block_bytes: self.logical_block_bytes(),
            physical_block_bytes: self.physical_block_bytes(),
            is_rotational: self.is_rotational(),
            scheduler: self.scheduler(),
            schedulers: self.schedulers(),
            nr_requests: self.nr_requests(),
            driver_depth: self.driver_depth(),
            hw_queues: self.hw_queues(),
            has_write_cache: self.has_write_cache(),
            model: self.model(),
            driver: self.driver(),
            made_of: self.made_of(),
            virtual_kind: self.virtual_kind().map(str::to_owned),
            usage: self.usage(),
        }
    }
}
