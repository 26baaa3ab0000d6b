//! Description of a device in a record, so that readers can interpret the record later and on other
//! machines.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{BlockDevice, Usage};

/// State of a device at one time: its properties and the settings of its queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceCard {
    /// Name in `/sys/class/block`.
    pub name: String,
    /// Path of the device file.
    pub path: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes of the smallest I/O.
    pub logical_block_bytes: u32,
    /// Bytes of the smallest write for which the device need not first read.
    pub physical_block_bytes: u32,
    /// Whether the kernel treats the device as a rotating disk.
    pub is_rotational: bool,
    /// Present scheduler. `None` for devices built from other devices.
    pub scheduler: Option<String>,
    /// Available schedulers.
    pub schedulers: Vec<String>,
    /// Number of requests that can be allocated at once.
    pub nr_requests: Option<u32>,
    /// Number of commands that the driver accepts at once.
    pub driver_depth: Option<u32>,
    /// Number of the driver's hardware queues.
    pub hw_queues: Option<u32>,
    /// Whether the kernel flushes a volatile write cache.
    pub has_write_cache: Option<bool>,
    /// Name of the model, as the device reports it.
    pub model: Option<String>,
    /// Name of the driver below the device.
    pub driver: Option<String>,
    /// Description, for people, of the file or the devices below. For a real disk, this is its
    /// model or driver.
    pub made_of: String,
    /// Description of the layer below a device that is not real hardware.
    pub virtual_kind: Option<String>,
    /// Mounts, swaps and holders of the device.
    pub usage: Usage,
}

impl BlockDevice {
    /// Returns the description of the device as it is now.
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
