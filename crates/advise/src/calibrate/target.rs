//! What is known of a device before it is measured, and what may be done to it.

use iosched_disk::Card;
use serde::{Deserialize, Serialize};

/// A device to be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name: `/dev/sdb`, a file, a profile.
    pub name: String,
    /// The model name that the device says of itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// Size in sectors of 512 bytes: of a file, the file's.
    pub capacity_sectors: u64,
    /// Commands its driver takes at once.
    pub depth: u32,
    /// Largest command in KiB: larger I/Os are sent in parts.
    pub max_sectors_kb: u32,
    /// Whether it says of itself that seeking costs.
    pub rotational: bool,
    /// Whether it says that it has a volatile cache.
    pub write_cache: bool,
    /// Whether it takes force-unit-access.
    pub fua: bool,
    /// Whether what is on it may be lost.
    pub writable: bool,
    /// Under which conditions it is measured, as "scheduler none": for the reader of the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
}

impl Target {
    /// A modelled device, which may be written to.
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
