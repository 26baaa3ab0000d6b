//! Parameters of the `array` model.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};

/// Sectors of a cached page: 4 KiB.
pub(super) const PAGE_SECTORS: u64 = 8;
const SECOND_NS: u64 = 1_000_000_000;
/// Most members.
const MEMBERS_MAX: u32 = 256;

/// Parameters of [`Array`](super::Array).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayConfig {
    /// Size in sectors of 512 bytes; if absent, all that the members hold in whole stripes.
    #[serde(default)]
    pub capacity_sectors: Option<u64>,
    /// Commands it takes at once, 1 to 65,535.
    pub depth: u32,
    /// Largest command in KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Sectors that lie together on one member before the next has its turn: a multiple of 8, up to 65,536.
    pub chunk_sectors: u32,
    /// The disks, in the order in which chunks go round them.
    pub members: Vec<ArrayMemberConfig>,
    /// The memory that outlives a loss of power.
    pub write_cache: ArrayWriteCacheConfig,
    /// The memory for what was read.
    pub read_cache: ArrayReadCacheConfig,
    /// The link to the host.
    pub link: ArrayLinkConfig,
}

/// Members of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayMemberConfig {
    /// Their profile; in a profile that is a file also another file, seen from there.
    pub profile: String,
    /// How many, at least 1; 256 members in all.
    pub count: u32,
}

/// Write-back memory: what is in it is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayWriteCacheConfig {
    /// Its size in sectors, 64 to 2^30.
    pub sectors: u32,
    /// From the end of a write's transfer, once there is room for it, to its acknowledgement, in ns, up to a second.
    pub acknowledge_ns: u64,
    /// Writing back begins when it is so full, in percent, 1 to 100, and goes on until nothing is left to write back.
    pub destage_percent: u32,
    /// Or when something was in it for this long, in ns, up to a thousand seconds.
    pub destage_after_ns: u64,
    /// Commands each member has at once for it, at least 1.
    pub destage_depth: u32,
    /// Most sectors of such a command, 8 to 65,536.
    pub destage_sectors: u32,
}

/// Memory for what was read or written, least recently used first to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayReadCacheConfig {
    /// Its size in sectors, up to 2^31; 0 for none.
    pub sectors: u32,
    /// What the controller needs for a read beside members and link, in ns, up to a second.
    pub latency_ns: u64,
    /// How far it reads ahead of a sequential reader, in sectors, up to 2^20 and half the cache; 0 for none.
    pub read_ahead_sectors: u32,
    /// Sequential readers it can tell apart, 1 to 1,024.
    pub streams: u32,
}

/// The link to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayLinkConfig {
    /// What a command occupies the link beyond its data, in ns, up to a second.
    pub command_ns: u64,
    /// Its rate each way at the same time, in bytes per second, a million to a trillion.
    pub bytes_per_second: u64,
}

impl ArrayConfig {
    /// Checks every parameter but those that depend on what the members are.
    ///
    /// # Errors
    /// Names the first that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let Some(capacity_sectors) = self.capacity_sectors {
            within("array.capacity_sectors", capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        }
        within("array.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("array.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("array.chunk_sectors", self.chunk_sectors, 8..=65_536)?;
        if !u64::from(self.chunk_sectors).is_multiple_of(PAGE_SECTORS) {
            let problem = format!("{} is not a multiple of 8", self.chunk_sectors);
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
