//! Parameters of the `hdd` model.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};

/// Parameters of an [`Hdd`](super::Hdd), as in a profile of the model `hdd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddConfig {
    /// Capacity in sectors of 512 bytes. The last sector must be in the last zone.
    pub capacity_sectors: u64,
    /// Number of commands that the disk takes at the same time, 1 to 256. With more than 1, the
    /// disk chooses the order of the commands.
    pub depth: u32,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the host can use force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Revolutions per minute, 1,000 to 100,000.
    pub rpm: f64,
    /// Surfaces with a head, 1 to 64.
    pub heads: u32,
    /// Size of a physical block, bytes, 512 to 65,536; usually 512, or 4,096 (eight sectors for the
    /// host). A write of a part of a block first reads the block.
    #[serde(default = "default_physical_block_bytes")]
    pub physical_block_bytes: u32,
    /// Order of the tracks of a cylinder.
    #[serde(default)]
    pub track_order: TrackOrder,
    /// Time from a switch to another head of the same cylinder until this head can read or write,
    /// ns, shorter than a revolution.
    pub head_switch_ns: u64,
    /// Additional settle time of a write after a seek or a head switch, ns, less than a revolution.
    pub write_settle_ns: u64,
    /// Settle time of a read after a write on the same cylinder, ns, shorter than a revolution. The
    /// elements that read and write have different positions, so the arm moves a little. If absent,
    /// the time is the constant part of a short seek.
    #[serde(default)]
    pub write_to_read_ns: Option<u64>,
    /// Time by which a default skew exceeds the head switch or seek that it covers, ns, less than a
    /// revolution.
    #[serde(default)]
    pub skew_margin_ns: u64,
    /// Seek times by distance in cylinders.
    pub seek: SeekConfig,
    /// Zones from the outer edge, where sector 0 is, inwards; 1 to 1,024.
    pub zones: Vec<ZoneConfig>,
    /// The link to the host.
    pub interface: InterfaceConfig,
    /// The order of commands.
    pub queue: QueueConfig,
    /// Segments of data that was read, and read-ahead.
    pub read_cache: ReadCacheConfig,
    /// Cache for writes that are acknowledged before they are on the medium.
    pub write_cache: WriteCacheConfig,
}

/// A seek curve: time from the start of the movement until the head can read, by distance in
/// cylinders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SeekConfig {
    /// A square root of the distance for short seeks, in which the arm accelerates. A linear
    /// function for long seeks, in which the arm coasts (Ruemmler and Wilkes, "An introduction to
    /// disk drive modeling", 1994).
    Formula(SeekFormula),
    /// Measured points with linear interpolation, ascending in distance. The first point is for one
    /// cylinder.
    Table(Vec<SeekPoint>),
}

/// The function `near_ns + near_root_ns * sqrt(d)` up to `knee_cylinders`, and
/// `far_ns + far_cylinder_ns * d` beyond.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekFormula {
    /// Constant part of a short seek, ns.
    pub near_ns: f64,
    /// Factor of the square root of the distance, ns.
    pub near_root_ns: f64,
    /// Longest short seek, cylinders.
    pub knee_cylinders: u32,
    /// Constant part of a long seek, ns.
    pub far_ns: f64,
    /// Time per cylinder of a long seek, ns.
    pub far_cylinder_ns: f64,
}

/// Measured time of a seek over some cylinders.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekPoint {
    /// Distance, cylinders, at least 1.
    pub cylinders: u32,
    /// Time of the seek, ns.
    pub ns: u64,
}

/// Order of the tracks in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackOrder {
    /// From the first head to the last in every cylinder.
    #[default]
    Ascending,
    /// In every second cylinder of a zone, from the last head to the first. The head then stays the
    /// same when the cylinder changes.
    Serpentine,
}

/// Neighbouring cylinders whose tracks have the same length.
///
/// A *slot* is a place for a sector on the medium. Slots are numbered from the first slot of the
/// zone. Some slots have no sector: unused slots at the start, spare slots, and slipped slots,
/// which were bad when the disk was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneConfig {
    /// Number of cylinders, at least 1.
    pub cylinders: u32,
    /// Sectors of 512 bytes on each track, 8 to 65,536.
    pub sectors_per_track: u32,
    /// Skew from one track to the next in the same cylinder, sectors. If absent, the skew covers a
    /// head switch and the margin.
    #[serde(default)]
    pub track_skew_sectors: Option<u32>,
    /// Skew from the last track of a cylinder to the first track of the next cylinder, sectors. If
    /// absent, the skew covers a seek over one cylinder and the margin.
    #[serde(default)]
    pub cylinder_skew_sectors: Option<u32>,
    /// Cylinders without data between the previous zone and this zone.
    #[serde(default, skip_serializing_if = "config::is_default")]
    pub unused_cylinders_before: u32,
    /// Position of the zone's first slot, in sectors of this zone after the index mark. If absent,
    /// the position follows from the skew between the previous zone and this zone.
    #[serde(default)]
    pub first_slot_sectors: Option<u32>,
    /// Slots without data at the beginning of the zone.
    #[serde(default, skip_serializing_if = "config::is_default")]
    pub unused_slots_before: u64,
    /// Spare slots at the end of each region, including the slipped slots of the region. At most a
    /// quarter of the region.
    #[serde(default, skip_serializing_if = "config::is_default")]
    pub spare_slots: u32,
    /// Cylinders of a region; if absent, the whole zone is one region.
    #[serde(default)]
    pub spare_region_cylinders: Option<u32>,
    /// Slipped slots, ascending. The sectors from each slipped slot on are one slot further.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
}

/// The link to the host, and the overhead per command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// Overhead at the start of each command, ns, up to a second.
    pub command_ns: u64,
    /// Rate of the link after encoding and framing, bytes per second, a million to a trillion.
    pub bytes_per_second: u64,
    /// Overheads for kinds of commands whose overhead differs from `command_ns`.
    #[serde(default, skip_serializing_if = "config::is_default")]
    pub overheads: OverheadsConfig,
}

/// Overheads by kind of command, ns, up to a second. The first value applies after a read, the
/// second after a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadsConfig {
    /// Reads from the cache.
    pub read_hit_ns: Option<[u64; 2]>,
    /// Reads from the medium.
    pub read_miss_ns: Option<[u64; 2]>,
    /// Writes into the cache.
    pub write_hit_ns: Option<[u64; 2]>,
    /// Writes that wait for the medium.
    pub write_miss_ns: Option<[u64; 2]>,
}

/// The order of commands: shortest positioning time first, unless a command has waited too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// Wait after which a command precedes all younger commands, ns, up to a thousand seconds.
    pub starvation_ns: u64,
}

/// Parameters of the read segments. Each segment has one range of sectors, and grows while the head
/// is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheConfig {
    /// Number of segments, 1 to 256.
    pub segments: u32,
    /// Size of each segment, sectors, 1 to 2^24.
    pub segment_sectors: u32,
    /// Number of sectors that the disk reads ahead after the requested sectors, at most a segment.
    /// 0: no read-ahead.
    pub read_ahead_sectors: u32,
    /// Part of the read-ahead, in sectors, that the disk completes even if another command waits.
    /// The disk does this only after a read that continued an earlier read. At most
    /// `read_ahead_sectors`.
    #[serde(default)]
    pub sequential_read_ahead_sectors: u32,
    /// Kind of read after which the drive begins read-ahead.
    #[serde(default)]
    pub read_ahead_after: ReadAheadAfter,
    /// Point at which the read-ahead ends at the latest.
    #[serde(default)]
    pub read_ahead_until: ReadAheadUntil,
    /// Whether the disk stores the sectors that pass under the head between its arrival on the
    /// track and the first requested sector.
    #[serde(default)]
    pub read_on_arrival: bool,
    /// Whether read-ahead can replace, within the segment, sectors that the host has already read.
    /// Otherwise read-ahead stops when the segment is full. It continues when the host reads
    /// further sectors.
    #[serde(default = "config::yes")]
    pub replace_requested: bool,
    /// Whether written data is stored in a segment, from which it can be read.
    #[serde(default)]
    pub keep_written: bool,
}

/// Reads that start read-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadAfter {
    /// All reads.
    #[default]
    AnyRead,
    /// Reads that begin where an earlier read ended.
    ContinuedRead,
}

impl fmt::Display for ReadAheadAfter {
    /// Writes the name as in a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnyRead => "any-read",
            Self::ContinuedRead => "continued-read",
        })
    }
}

/// Point at which the read-ahead ends, if this point comes before `read_ahead_sectors`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAheadUntil {
    /// Only `read_ahead_sectors` is the limit.
    #[default]
    Distance,
    /// End of the track.
    Track,
    /// End of the track, or of the next track if the segment began on an earlier track.
    NextTrack,
    /// End of the cylinder.
    Cylinder,
}

/// Parameters of the drive's volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheConfig {
    /// Whether writes are acknowledged from the cache.
    pub enabled: bool,
    /// Size, sectors, up to 2^24. A longer write bypasses the cache.
    pub sectors: u32,
    /// Largest number of separate ranges of sectors, 1 to 65,535.
    pub extents: u32,
    /// Share of `sectors` or of `extents` above which writing back competes with reads, per cent, 1
    /// to 100.
    pub high_percent: u32,
    /// Time without reads after which writing back begins even below `high_percent`, ns.
    pub idle_ns: u64,
    /// Largest number of sectors that are written back in one operation, at least 8.
    pub destage_sectors: u32,
    /// Additional time of a flush that wrote dirty data, ns.
    #[serde(default)]
    pub flush_ns: u64,
}

impl fmt::Display for ReadAheadUntil {
    /// Writes the name as in a profile.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distance => "distance",
            Self::Track => "track",
            Self::NextTrack => "next-track",
            Self::Cylinder => "cylinder",
        })
    }
}

impl HddConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("hdd.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("hdd.depth", self.depth, 1..=256)?;
        within("hdd.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("hdd.rpm", self.rpm, 1_000.0..=100_000.0)?;
        within("hdd.heads", self.heads, 1..=64)?;
        within("hdd.physical_block_bytes", self.physical_block_bytes, 512..=65_536)?;
        let revolution_ns = (60e9 / self.rpm) as u64;
        within("hdd.head_switch_ns", self.head_switch_ns, 0..=revolution_ns)?;
        within("hdd.write_settle_ns", self.write_settle_ns, 0..=revolution_ns)?;
        within("hdd.write_to_read_ns", self.write_to_read_ns.unwrap_or(0), 0..=revolution_ns)?;
        within("hdd.skew_margin_ns", self.skew_margin_ns, 0..=revolution_ns)?;
        self.validate_zones()?;
        self.seek.validate()?;
        self.interface.validate()?;
        within("hdd.queue.starvation_ns", self.queue.starvation_ns, 0..=config::LATENCY_NS_MAX)?;
        self.read_cache.validate()?;
        self.write_cache.validate()
    }

    fn validate_zones(&self) -> Result<(), ConfigError> {
        if self.zones.is_empty() || self.zones.len() > 1024 {
            let problem = format!("{} zones are given", self.zones.len());
            return Err(ConfigError::new("hdd.zones", problem, "give from 1 to 1024 zones"));
        }
        let (mut sectors, mut cylinders, mut last_sectors) = (0u64, 0u64, 0u64);
        for (i, zone) in self.zones.iter().enumerate() {
            zone.validate(i, self.heads)?;
            last_sectors = zone.sectors(self.heads);
            sectors = sectors.saturating_add(last_sectors);
            cylinders += u64::from(zone.cylinders) + u64::from(zone.unused_cylinders_before);
        }
        within("hdd.zones: total number of cylinders", cylinders, 1..=1 << 28)?;
        let fits = sectors.saturating_sub(last_sectors) + 1..=sectors;
        if !fits.contains(&self.capacity_sectors) {
            let problem = format!("a disk of {} sectors does not end in the last zone", self.capacity_sectors);
            let remedy = format!(
                "the zones hold {sectors} sectors, so capacity_sectors must be from {} to {sectors}",
                fits.start()
            );
            return Err(ConfigError::new("hdd.capacity_sectors", problem, remedy));
        }
        Ok(())
    }
}

const fn default_physical_block_bytes() -> u32 {
    512
}

impl ZoneConfig {
    /// Returns the number of slots of the zone.
    pub(crate) fn slots(&self, heads: u32) -> u64 {
        u64::from(self.cylinders) * u64::from(heads) * u64::from(self.sectors_per_track)
    }

    /// Returns the number of slots of each region except the last, which can be shorter.
    fn region_slots(&self, heads: u32) -> u64 {
        let cylinders = self.spare_region_cylinders.unwrap_or(self.cylinders);
        u64::from(cylinders) * u64::from(heads) * u64::from(self.sectors_per_track)
    }

    /// Returns the slots without sectors, as ascending ranges that are not empty.
    pub(crate) fn holes(&self, heads: u32) -> Vec<Range<u64>> {
        let (slots, region_slots) = (self.slots(heads), self.region_slots(heads));
        let mut slips = self.slips.iter().copied().peekable();
        let mut holes = Vec::new();
        let mut add = |hole: Range<u64>| {
            let start = hole.start.max(holes.last().map_or(0, |last: &Range<u64>| last.end));
            if start < hole.end {
                holes.push(start..hole.end);
            }
        };
        add(0..self.unused_slots_before);
        let regions = if self.spare_slots == 0 { 1 } else { slots.div_ceil(region_slots) };
        for region in 0..regions {
            let end = if region + 1 == regions { slots } else { (region + 1) * region_slots };
            let mut spare = u64::from(self.spare_slots);
            while let Some(slip) = slips.next_if(|&slip| slip < end) {
                add(slip..slip + 1);
                spare = spare.saturating_sub(1);
            }
            add(end - spare..end);
        }
        holes
    }

    /// Returns the number of sectors of the zone that the host can use.
    fn sectors(&self, heads: u32) -> u64 {
        self.slots(heads) - self.holes(heads).iter().map(|hole| hole.end - hole.start).sum::<u64>()
    }

    fn validate(&self, index: usize, heads: u32) -> Result<(), ConfigError> {
        let field = |name| format!("hdd.zones[{index}].{name}");
        within(&field("cylinders"), self.cylinders, 1..=1 << 28)?;
        within(&field("sectors_per_track"), self.sectors_per_track, 8..=65_536)?;
        let most = self.sectors_per_track - 1;
        within(&field("track_skew_sectors"), self.track_skew_sectors.unwrap_or(0), 0..=most)?;
        within(&field("cylinder_skew_sectors"), self.cylinder_skew_sectors.unwrap_or(0), 0..=most)?;
        within(&field("first_slot_sectors"), self.first_slot_sectors.unwrap_or(0), 0..=most)?;
        within(&field("unused_cylinders_before"), self.unused_cylinders_before, 0..=1 << 28)?;
        let slots = self.slots(heads);
        let region_cylinders = self.spare_region_cylinders.unwrap_or(self.cylinders);
        within(&field("spare_region_cylinders"), region_cylinders, 1..=self.cylinders)?;
        // The last region can be short, but spare slots may take at most a quarter of it.
        let last = slots - (slots - 1) / self.region_slots(heads) * self.region_slots(heads);
        within(&field("spare_slots"), u64::from(self.spare_slots), 0..=last / 4)?;
        within(&field("unused_slots_before"), self.unused_slots_before, 0..=slots / 4)?;
        if self.spare_slots > 0 {
            within(
                &field("spare_region_cylinders: number of regions"),
                slots.div_ceil(self.region_slots(heads)),
                1..=1 << 16,
            )?;
        }
        within(&field("number of slips"), self.slips.len() as u64, 0..=(slots / 4).min(1 << 20))?;
        if let Some(pair) = self.slips.windows(2).find(|pair| pair[1] <= pair[0]) {
            let problem = format!("{} comes after {}", pair[1], pair[0]);
            return Err(ConfigError::new(&field("slips"), problem, "the numbers of the slots must increase"));
        }
        within(&field("slips"), self.slips.last().copied().unwrap_or(0), 0..=slots - 1)?;
        if self.spare_slots == 0 {
            return Ok(());
        }
        let region_of = |slip: &u64| slip / self.region_slots(heads);
        let crowded = self
            .slips
            .chunk_by(|a, b| region_of(a) == region_of(b))
            .find(|chunk| chunk.len() as u64 > u64::from(self.spare_slots));
        match crowded {
            None => Ok(()),
            Some(chunk) => Err(ConfigError::new(
                &field("slips"),
                format!("the region of slot {} has {} slips", chunk[0], chunk.len()),
                format!(
                    "give fewer slips: the region has only {} spare sectors, and each slip uses one spare sector",
                    self.spare_slots
                ),
            )),
        }
    }
}

impl InterfaceConfig {
    /// Returns the overheads by kind of command, ns: for each kind, the overhead after a read and
    /// the overhead after a write.
    pub(crate) fn overheads(&self) -> [[u64; 2]; 4] {
        let OverheadsConfig { read_hit_ns, read_miss_ns, write_hit_ns, write_miss_ns } = self.overheads;
        [read_hit_ns, read_miss_ns, write_hit_ns, write_miss_ns].map(|ns| ns.unwrap_or([self.command_ns; 2]))
    }

    fn validate(&self) -> Result<(), ConfigError> {
        within("hdd.interface.command_ns", self.command_ns, 0..=1_000_000_000)?;
        within("hdd.interface.bytes_per_second", self.bytes_per_second, 1_000_000..=1_000_000_000_000)?;
        for ns in self.overheads().into_iter().flatten() {
            within("hdd.interface.overheads", ns, 0..=1_000_000_000)?;
        }
        Ok(())
    }
}

impl SeekConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Formula(formula) => {
                for (field, value) in [
                    ("hdd.seek.formula.near_ns", formula.near_ns),
                    ("hdd.seek.formula.near_root_ns", formula.near_root_ns),
                    ("hdd.seek.formula.far_ns", formula.far_ns),
                    ("hdd.seek.formula.far_cylinder_ns", formula.far_cylinder_ns),
                ] {
                    within(field, value, 0.0..=1e9)?;
                }
                Ok(())
            }
            Self::Table(points) => {
                let field = "hdd.seek.table";
                if points.first().is_none_or(|first| first.cylinders != 1) {
                    return Err(ConfigError::new(
                        field,
                        "the table does not begin with a seek over 1 cylinder",
                        "add this seek as the first point",
                    ));
                }
                for pair in points.windows(2) {
                    if pair[1].cylinders <= pair[0].cylinders {
                        let problem = format!("{} comes after {}", pair[1].cylinders, pair[0].cylinders);
                        return Err(ConfigError::new(
                            field,
                            problem,
                            "distances must increase from one point to the \
                            next",
                        ));
                    }
                }
                points.iter().try_for_each(|point| within(field, point.ns, 0..=1_000_000_000))
            }
        }
    }
}

impl ReadCacheConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        within("hdd.read_cache.segments", self.segments, 1..=256)?;
        within("hdd.read_cache.segment_sectors", self.segment_sectors, 1..=1 << 24)?;
        within("hdd.read_cache.read_ahead_sectors", self.read_ahead_sectors, 0..=self.segment_sectors)?;
        within(
            "hdd.read_cache.sequential_read_ahead_sectors",
            self.sequential_read_ahead_sectors,
            0..=self.read_ahead_sectors,
        )
    }
}

impl WriteCacheConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        within("hdd.write_cache.sectors", self.sectors, 32..=1 << 24)?;
        within("hdd.write_cache.extents", self.extents, 1..=65_535)?;
        within("hdd.write_cache.high_percent", self.high_percent, 1..=100)?;
        within("hdd.write_cache.idle_ns", self.idle_ns, 0..=config::LATENCY_NS_MAX)?;
        within("hdd.write_cache.destage_sectors", self.destage_sectors, 8..=self.sectors)?;
        within("hdd.write_cache.flush_ns", self.flush_ns, 0..=config::LATENCY_NS_MAX)
    }
}
