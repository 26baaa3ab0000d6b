//! The properties of a device that are known before the measurement.

use iosched_disk::Card;
use serde::{Deserialize, Serialize};

/// A device to measure, with its known properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name of the device: a path such as `/dev/sdb`, a file, or a profile.
    pub name: String,
    /// Model name that the device reports, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Size of the device or file, sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of commands that the driver accepts at the same time.
    pub depth: u32,
    /// Largest command, KiB. Larger I/Os are sent in parts.
    pub max_sectors_kb: u32,
    /// Whether the device reports that it is rotational.
    pub rotational: bool,
    /// Whether the device reports a volatile write cache.
    pub write_cache: bool,
    /// Whether the device supports force-unit-access.
    pub fua: bool,
    /// Whether the data on the device may be lost.
    pub writable: bool,
    /// Conditions of the measurement, such as "scheduler none", for the reader of the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
}

impl Target {
    /// Creates the target of a modelled device. It may be written to.
    #[must_use]
    pub fn of_card(name: &str, card: &Card) -> Self {
        Self {
            name: name.to_owned(),
            model_name: None,
            capacity_sectors: card.capacity_sectors,
            depth: card.depth,
            max_sectors_kb: card.max_hw_sectors_kb,
            rotational: card.rotational,
            write_cache: card.write_cache,
            fua: card.fua,
            writable: true,
            conditions: Vec::new(),
        }
    }
}
