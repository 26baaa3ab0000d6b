//! Parameters of the `hdd` model.

use serde::Deserialize;

use crate::config::{self, ConfigError, within};

/// Parameters of [`Hdd`](super::Hdd).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddConfig {
    /// Size in sectors of 512 bytes; ends within the last zone.
    pub capacity_sectors: u64,
    /// Commands it takes at once, 1 to 256. Above 1 it chooses the order itself.
    pub depth: u32,
    /// Largest command in KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the host may ask for force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Revolutions per minute, 1,000 to 100,000.
    pub rpm: f64,
    /// Surfaces with a head, 1 to 64.
    pub heads: u32,
    /// From one head to another of the same cylinder until it can read or write, in ns, less than a revolution.
    pub head_switch_ns: u64,
    /// What a write needs to settle beyond a read after a seek or a head switch, in ns, less than a revolution.
    pub write_settle_ns: u64,
    /// Time by which the default skews exceed the switch they cover, in ns, less than a revolution.
    #[serde(default)]
    pub skew_margin_ns: u64,
    /// How long the arm takes over how many cylinders.
    pub seek: SeekConfig,
    /// From the outer edge, where sector 0 is, inwards; 1 to 1,024.
    pub zones: Vec<ZoneConfig>,
    /// The link to the host.
    pub interface: InterfaceConfig,
    /// The order of commands.
    pub queue: QueueConfig,
    /// What it keeps of what it read, and how far it reads on.
    pub read_cache: ReadCacheConfig,
    /// What it acknowledges before it is on the medium.
    pub write_cache: WriteCacheConfig,
}

/// A seek curve: time from the start of the movement until the head can read, by distance in cylinders.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum SeekConfig {
    /// A root for short seeks, where the arm accelerates all the way, and a line for long ones, where it coasts
    /// (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994).
    Formula(SeekFormula),
    /// Measured points, straight lines between them; ascending in distance, the first of one cylinder.
    Table(Vec<SeekPoint>),
}

/// `near_ns + near_root_ns * sqrt(d)` up to `knee_cylinders`, `far_ns + far_cylinder_ns * d` beyond.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekFormula {
    /// Constant part of a short seek, in ns.
    pub near_ns: f64,
    /// Factor of the root of the distance, in ns.
    pub near_root_ns: f64,
    /// Longest short seek, in cylinders.
    pub knee_cylinders: u32,
    /// Constant part of a long seek, in ns.
    pub far_ns: f64,
    /// Each further cylinder of a long seek, in ns.
    pub far_cylinder_ns: f64,
}

/// A measured seek.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekPoint {
    /// Distance in cylinders, at least 1.
    pub cylinders: u32,
    /// Its time in ns.
    pub ns: u64,
}

/// Neighbouring cylinders with tracks of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneConfig {
    /// How many, at least 1.
    pub cylinders: u32,
    /// Sectors of 512 bytes on each track, 8 to 65,536.
    pub sectors_per_track: u32,
    /// How far the first sector of a track lies behind that of the track before in the same cylinder, in
    /// sectors; if absent, as far as a head switch and the margin need.
    #[serde(default)]
    pub track_skew_sectors: Option<u32>,
    /// The same from the last track of a cylinder to the next cylinder; if absent, as far as a seek of one cylinder and the
    /// margin need.
    #[serde(default)]
    pub cylinder_skew_sectors: Option<u32>,
}

/// The link to the host and the work per command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterfaceConfig {
    /// Work per command before anything else happens to it, in ns, up to a second.
    pub command_ns: u64,
    /// Rate of the link after encoding and framing, in bytes per second, a million to a trillion.
    pub bytes_per_second: u64,
}

/// The order of commands: shortest positioning time first, but for old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    /// A command that waited this long goes before all younger ones, in ns, up to a thousand seconds.
    pub starvation_ns: u64,
}

/// Read segments: each holds one stretch of sectors, and grows while the head has nothing else to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadCacheConfig {
    /// How many, 1 to 256.
    pub segments: u32,
    /// Size of each in sectors, 1 to 2^24.
    pub segment_sectors: u32,
    /// How far reading goes on behind what the host wanted, in sectors; at most a segment; 0 for none.
    pub read_ahead_sectors: u32,
    /// How far it goes on even if another command waits, after a read that continued an earlier one; at most
    /// `read_ahead_sectors`.
    #[serde(default)]
    pub sequential_read_ahead_sectors: u32,
}

/// The volatile write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteCacheConfig {
    /// Whether writes are acknowledged from it.
    pub enabled: bool,
    /// Its size in sectors, up to 2^24; it takes no single write of more than a quarter of it.
    pub sectors: u32,
    /// Separate stretches it can hold, 2 to 65,535.
    pub extents: u32,
    /// Above this share of either it is written back in competition with reads, in percent, 1 to 100.
    pub high_percent: u32,
    /// Below it is written back once no read came for this long, in ns.
    pub idle_ns: u64,
    /// Most that is written back in one go, in sectors, at least 8.
    pub destage_sectors: u32,
    /// What a flush that found something to write costs beyond writing it, in ns.
    #[serde(default)]
    pub flush_ns: u64,
}

impl HddConfig {
    /// Checks every parameter.
    ///
    /// # Errors
    /// Names the first that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("hdd.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("hdd.depth", self.depth, 1..=256)?;
        within("hdd.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("hdd.rpm", self.rpm, 1_000.0..=100_000.0)?;
        within("hdd.heads", self.heads, 1..=64)?;
        let revolution_ns = (60e9 / self.rpm) as u64;
        within("hdd.head_switch_ns", self.head_switch_ns, 0..=revolution_ns)?;
        within("hdd.write_settle_ns", self.write_settle_ns, 0..=revolution_ns)?;
        within("hdd.skew_margin_ns", self.skew_margin_ns, 0..=revolution_ns)?;
        self.validate_zones()?;
        self.seek.validate()?;
        within("hdd.interface.command_ns", self.interface.command_ns, 0..=1_000_000_000)?;
        within("hdd.interface.bytes_per_second", self.interface.bytes_per_second, 1_000_000..=1_000_000_000_000)?;
        within("hdd.queue.starvation_ns", self.queue.starvation_ns, 0..=config::LATENCY_NS_MAX)?;
        self.read_cache.validate()?;
        self.write_cache.validate()
    }

    fn validate_zones(&self) -> Result<(), ConfigError> {
        if self.zones.is_empty() || self.zones.len() > 1024 {
            let problem = format!("there are {}", self.zones.len());
            return Err(ConfigError::new("hdd.zones", problem, "a disk has 1 to 1024 zones"));
        }
        let (mut sectors, mut cylinders, mut last_sectors) = (0u64, 0u64, 0u64);
        for (i, zone) in self.zones.iter().enumerate() {
            let field = |name| format!("hdd.zones[{i}].{name}");
            within(&field("cylinders"), zone.cylinders, 1..=1 << 28)?;
            within(&field("sectors_per_track"), zone.sectors_per_track, 8..=65_536)?;
            let most = zone.sectors_per_track - 1;
            within(&field("track_skew_sectors"), zone.track_skew_sectors.unwrap_or(0), 0..=most)?;
            within(&field("cylinder_skew_sectors"), zone.cylinder_skew_sectors.unwrap_or(0), 0..=most)?;
            last_sectors = u64::from(zone.cylinders) * u64::from(zone.sectors_per_track) * u64::from(self.heads);
            sectors = sectors.saturating_add(last_sectors);
            cylinders += u64::from(zone.cylinders);
        }
        within("hdd.zones: cylinders in all", cylinders, 1..=1 << 28)?;
        let fits = sectors.saturating_sub(last_sectors) + 1..=sectors;
        if !fits.contains(&self.capacity_sectors) {
            let problem = format!("{} do not end in the last zone", self.capacity_sectors);
            let remedy = format!("the zones hold {sectors}, so it is from {} to that", fits.start());
            return Err(ConfigError::new("hdd.capacity_sectors", problem, remedy));
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
                        "it does not begin",
                        "its first point is a seek of 1 cylinder",
                    ));
                }
                for pair in points.windows(2) {
                    if pair[1].cylinders <= pair[0].cylinders {
                        let problem = format!("{} comes after {}", pair[1].cylinders, pair[0].cylinders);
                        return Err(ConfigError::new(field, problem, "distances ascend"));
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
        within("hdd.write_cache.extents", self.extents, 2..=65_535)?;
        within("hdd.write_cache.high_percent", self.high_percent, 1..=100)?;
        within("hdd.write_cache.idle_ns", self.idle_ns, 0..=config::LATENCY_NS_MAX)?;
        within("hdd.write_cache.destage_sectors", self.destage_sectors, 8..=self.sectors)?;
        within("hdd.write_cache.flush_ns", self.flush_ns, 0..=config::LATENCY_NS_MAX)
    }
}
