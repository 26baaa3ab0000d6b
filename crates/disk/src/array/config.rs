//! Parameters of the `array` model.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};

/// Sectors of a cached page: 4 KiB.
pub(super) const PAGE_SECTORS: u64 = 8;
const SECOND_NS: u64 = 1_000_000_000;
/// Largest number of members.
const MEMBERS_MAX: u32 = 256;

/// Parameters of an [`Array`](super::Array), as in a profile of the model `array`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// Capacity in sectors of 512 bytes. If absent, it is the sum of the members in whole stripes.
    #[serde(default)]
    pub capacity_sectors: Option<u64>,
    /// Number of commands that the array takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Size of a chunk, sectors: a multiple of 8, up to 65,536. Consecutive chunks are on
    /// consecutive members.
    pub chunk_sectors: u32,
    /// The disks, in the order of the stripes.
    pub members: Vec<ArrayMemberConfig>,
    /// The non-volatile memory for writes.
    pub write_cache: ArrayWriteCacheConfig,
    /// The memory for reads.
    pub read_cache: ArrayReadCacheConfig,
    /// The link to the host.
    pub link: ArrayLinkConfig,
}

/// Members of an array that have the same profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayMemberConfig {
    /// Profile of the members. In a profile from a file, this can also be a path relative to this
    /// file.
    pub profile: String,
    /// Number of members, at least 1. An array has at most 256 members in total.
    pub count: u32,
}

/// Non-volatile memory of the controller, for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayWriteCacheConfig {
    /// Size, sectors, 64 to 2^30.
    pub sectors: u32,
    /// Time from the end of a write's transfer to its acknowledgement, ns, up to a second. It
    /// applies when the memory has space.
    pub acknowledge_ns: u64,
    /// Fill level at which writing back begins, per cent, 1 to 100. Writing back continues until no
    /// dirty data is left.
    pub destage_percent: u32,
    /// Age of the oldest data at which writing back begins, ns, up to a thousand seconds.
    pub destage_after_ns: u64,
    /// Largest number of write-back commands that each member has at the same time, at least 1.
    pub destage_depth: u32,
    /// Largest command for writing back, sectors, 8 to 65,536.
    pub destage_sectors: u32,
}

/// Memory for data that was read or written, with least-recently-used replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayReadCacheConfig {
    /// Size, sectors, up to 2^31; 0 for none.
    pub sectors: u32,
    /// Time of the controller for a read, in addition to the times of members and link, ns, up to a
    /// second.
    pub latency_ns: u64,
    /// Number of sectors that the controller reads ahead for a sequential reader, up to 2^20 and up
    /// to half the cache. 0: no read-ahead.
    pub read_ahead_sectors: u32,
    /// Number of sequential readers that the controller distinguishes, 1 to 1,024.
    pub streams: u32,
}

/// The link to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayLinkConfig {
    /// Time of a command on the link in addition to its data, ns, up to a second.
    pub command_ns: u64,
    /// Rate in each direction, bytes per second, a million to a trillion. The link can transfer in
    /// both directions at the same time.
    pub bytes_per_second: u64,
}

impl ArrayConfig {
    /// Checks every parameter, except the parameters that depend on the members.
    ///
    /// # Errors
    /// The first parameter that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(capacity_sectors) = self.capacity_sectors {
            within("array.capacity_sectors", capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        }
        within("array.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("array.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("array.chunk_sectors", self.chunk_sectors, 8..=65_536)?;
        if !u64::from(self.chunk_sectors).is_multiple_of(PAGE_SECTORS) {
            let problem = format!("{} sectors are not a multiple of 8", self.chunk_sectors);
            return Err(ConfigError::new("array.chunk_sectors", problem, "chunks must be whole pages of 4 KiB"));
        }
        for (i, member) in self.members.iter().enumerate() {
            within(&format!("array.members[{i}].count"), member.count, 1..=MEMBERS_MAX)?;
        }
        let members = self.members.iter().map(|member| member.count).sum();
        within("array.members", members, 1..=MEMBERS_MAX)?;
        let write = &self.write_cache;
        within("array.write_cache.sectors", write.sectors, 64..=1 << 30)?;
        within("array.write_cache.acknowledge_ns", write.acknowledge_ns, 0..=SECOND_NS)?;
        within("array.write_cache.destage_percent", write.destage_percent, 1..=100)?;
        within("array.write_cache.destage_after_ns", write.destage_after_ns, 0..=config::LATENCY_NS_MAX)?;
        within("array.write_cache.destage_depth", write.destage_depth, 1..=config::DEPTH_MAX)?;
        within("array.write_cache.destage_sectors", write.destage_sectors, 8..=65_536)?;
        let read = &self.read_cache;
        within("array.read_cache.sectors", read.sectors, 0..=1 << 31)?;
        within("array.read_cache.latency_ns", read.latency_ns, 0..=SECOND_NS)?;
        let ahead_max = (read.sectors / 2).min(1 << 20);
        within("array.read_cache.read_ahead_sectors", read.read_ahead_sectors, 0..=ahead_max)?;
        within("array.read_cache.streams", read.streams, 1..=1024)?;
        within("array.link.command_ns", self.link.command_ns, 0..=SECOND_NS)?;
        within("array.link.bytes_per_second", self.link.bytes_per_second, 1_000_000..=1_000_000_000_000)
    }
}
