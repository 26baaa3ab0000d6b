//! Parameters of the `ssd` model.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};

/// Sectors of a mapped page: 4 KiB, the unit of flash translation layers.
pub(super) const PAGE_SECTORS: u32 = 8;
/// Number of blocks beyond the capacity that cleaning needs.
const SPARE_BLOCKS_MIN: u64 = 8;
/// Largest number of blocks. With more blocks, the sample would have too few pages of each block.
const BLOCKS_MAX: u64 = 1 << 14;
const SECOND_NS: u64 = 1_000_000_000;

fn default_hw_queues() -> u16 {
    1
}

/// Parameters of an [`Ssd`](super::Ssd), as in a profile of the model `ssd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdConfig {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of commands that the device takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Number of hardware queues, 1 to 1,024; 1 if absent.
    #[serde(default = "default_hw_queues")]
    pub hw_queues: u16,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the host can use force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Largest difference in speed between disks of this model, per cent, 0 to 50. If jobs use
    /// several disks in turn, their I/Os collect at the slowest one. 0, or absent: all disks are
    /// equal.
    #[serde(default, skip_serializing_if = "is_no_share")]
    pub specimens_percent: f64,
    /// The dies.
    pub flash: SsdFlashConfig,
    /// Buffer in which writes wait for the dies.
    pub buffer: SsdBufferConfig,
    /// Flash with one bit per cell that accepts writes first; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<SsdCacheConfig>,
    /// Space beyond the capacity, and garbage collection.
    pub cleaning: SsdCleaningConfig,
    /// Writes before the run; none if absent.
    #[serde(default)]
    pub start: SsdStartConfig,
    /// The link to the host.
    pub interface: SsdInterfaceConfig,
}

/// Parameters of the flash dies of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdFlashConfig {
    /// Number of dies, which work at the same time, 1 to 4,096.
    pub dies: u32,
    /// Number of channels that the dies share evenly, 1 to `dies`.
    pub channels: u32,
    /// Rate of each channel, bytes per second, a million to a trillion.
    pub channel_bytes_per_second: u64,
    /// Sectors that a die reads in one operation, 1 to 65,536. Consecutive units of this size are
    /// on consecutive dies.
    pub read_sectors: u32,
    /// Time of a read, ns, up to a second.
    pub read_ns: u64,
    /// Sectors that a die programs in one operation, a multiple of 8 up to 65,536.
    pub program_sectors: u32,
    /// Time of a program, ns, up to a second.
    pub program_ns: u64,
    /// Sectors that a die erases in one operation, on all its planes, a multiple of
    /// `program_sectors` up to 2^24.
    pub erase_sectors: u32,
    /// Time of an erase, ns, up to a second.
    pub erase_ns: u64,
    /// Wait of a read that interrupts a program or erase, ns, up to a second.
    pub suspend_ns: u64,
    /// Largest number of interruptions of one program or erase; 0 for none.
    pub suspends_max: u32,
    /// Number of reads that a die serves in a row while a program or erase waits for the die, at
    /// least 1.
    pub reads_in_a_row: u32,
    /// Largest number of dies that program at the same time, 1 to `dies`; all if absent. Power and
    /// the controller limit this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_max: Option<u32>,
    /// Number of further programs that a die can begin directly after a program while data waits
    /// (cache programming), up to 1,000. 0, or absent: a die serves waiting reads before its next
    /// program.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_programs: u32,
    /// Time of reads of few sectors. If absent, all reads take `read_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_read: Option<SsdQuickReadConfig>,
}

/// A read of a part of a die's read unit, which takes less time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdQuickReadConfig {
    /// Largest size of the command, sectors, 1 to `read_sectors`.
    pub sectors: u32,
    /// Time of the read, ns, up to `read_ns`.
    pub ns: u64,
}

/// Flash with one bit per cell. The device writes all data there first. When this flash is full,
/// each new unit forces the device to move an older unit to the rest of the flash. The device then
/// reads the older unit and programs it again (folding).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCacheConfig {
    /// Size, sectors, at least one program unit of a die. A device that was overwritten before the
    /// run starts with a full cache.
    pub sectors: u64,
    /// Time in which a die programs a unit of the cache, ns, up to a second.
    pub program_ns: u64,
}

/// Parameters of the write buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdBufferConfig {
    /// Size, sectors: at least twice the program unit of a die, up to 2^24.
    pub sectors: u32,
    /// Whether capacitors preserve the buffer at a power loss. If true, flushes and forced writes
    /// do not wait for the flash.
    #[serde(default)]
    pub power_loss_protection: bool,
    /// Whether the device reports a volatile cache. If absent, the device reports a volatile cache
    /// if it has no power loss protection.
    #[serde(default)]
    pub reported: Option<bool>,
    /// Time of a flush in addition to programming the data, ns, up to a thousand seconds. With a
    /// volatile buffer, this time applies only if data was written. With power loss protection, it
    /// always applies.
    pub flush_ns: u64,
}

/// Parameters of garbage collection, which frees blocks for writes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdCleaningConfig {
    /// Writable flash beyond the capacity, per cent of the capacity, 2 to 400.
    pub spare_percent: f64,
    /// Choice of the block to clean.
    #[serde(default)]
    pub victim: SsdVictim,
    /// Number of sectors that the device gathers before it moves them, up to 2^24. Cleaning and
    /// folding then come in bursts of this size. 0, or absent: the device moves pages in step with
    /// the writes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub burst_sectors: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
fn is_no_share(value: &f64) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde wants")]
const fn is_no_time(value: &u64) -> bool {
    *value == 0
}

/// Choice of the block to clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SsdVictim {
    /// The block with the fewest valid pages.
    #[default]
    Greedy,
    /// The block with the largest ratio of benefit to cost: (1 - u) x age / 2u, where u is the
    /// share of valid pages. Old blocks are preferred (Rosenblum and Ousterhout, "The design and
    /// implementation of a log-structured file system", 1992, as used for flash by Kawaguchi and
    /// others, 1995).
    CostBenefit,
}

/// Writes that have filled the device before a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdStartConfig {
    /// Share of the capacity that was written once, from the first sector on, per cent.
    #[serde(default)]
    pub filled_percent: u32,
    /// Amount of random 4 KiB writes in the filled range, per cent of the capacity, up to 1,000.
    /// They follow the sequential writes. 200 leads to the steady state.
    #[serde(default)]
    pub overwritten_percent: u32,
}

impl SsdStartConfig {
    /// State of a new device, to which nothing was written.
    pub const FRESH: Self = Self { filled_percent: 0, overwritten_percent: 0 };
    /// A full device that was overwritten at random until its state is stable.
    pub const STEADY: Self = Self { filled_percent: 100, overwritten_percent: 200 };
}

/// The link to the host, and the overhead per command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdInterfaceConfig {
    /// Overhead of a read, without its time on the link, ns, up to a second.
    pub read_latency_ns: u64,
    /// Overhead of a write, without its time on the link, ns, up to a second.
    pub write_latency_ns: u64,
    /// Time of a read on the link in addition to its data, ns, up to a second.
    pub read_command_ns: u64,
    /// Time on the link of a command that is not a read, ns, up to a second. The transfer of data
    /// takes additional time.
    pub write_command_ns: u64,
    /// Rate of the link, bytes per second, a million to a trillion.
    pub bytes_per_second: u64,
    /// Whether data is transferred in both directions at the same time, as with PCIe, each at the
    /// full rate.
    #[serde(default)]
    pub full_duplex: bool,
    /// Time that is added on the link for each 4 KiB page of a read after the first page, ns, up to
    /// a second. This is in addition to the transfer of the data.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub read_page_ns: u64,
    /// Number of commands that the controller executes at the same time, 1 to 65,535; `depth` if
    /// absent. Further commands of any kind wait until a command ends. Therefore reads also wait
    /// when the write buffer is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_slots: Option<u32>,
}

impl SsdConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("ssd.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("ssd.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("ssd.hw_queues", self.hw_queues, 1..=1024)?;
        within("ssd.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        self.flash.validate()?;
        within("ssd.buffer.sectors", self.buffer.sectors, 2 * self.flash.program_sectors..=1 << 24)?;
        within("ssd.buffer.flush_ns", self.buffer.flush_ns, 0..=config::LATENCY_NS_MAX)?;
        if let Some(cache) = self.cache {
            let unit = u64::from(self.flash.program_sectors);
            within("ssd.cache.sectors", cache.sectors, unit..=self.capacity_sectors)?;
            within("ssd.cache.program_ns", cache.program_ns, 0..=SECOND_NS)?;
        }
        self.validate_cleaning()?;
        within("ssd.start.filled_percent", self.start.filled_percent, 0..=100)?;
        within("ssd.start.overwritten_percent", self.start.overwritten_percent, 0..=1000)?;
        let interface = &self.interface;
        within("ssd.interface.read_latency_ns", interface.read_latency_ns, 0..=SECOND_NS)?;
        within("ssd.interface.write_latency_ns", interface.write_latency_ns, 0..=SECOND_NS)?;
        within("ssd.interface.read_command_ns", interface.read_command_ns, 0..=SECOND_NS)?;
        within("ssd.interface.write_command_ns", interface.write_command_ns, 0..=SECOND_NS)?;
        within("ssd.interface.read_page_ns", interface.read_page_ns, 0..=SECOND_NS)?;
        within("ssd.interface.command_slots", interface.command_slots.unwrap_or(1), 1..=config::DEPTH_MAX)?;
        within("ssd.interface.bytes_per_second", interface.bytes_per_second, 1_000_000..=1_000_000_000_000)?;
        within("ssd.specimens_percent", self.specimens_percent, 0.0..=50.0)
    }

    /// Returns the parameters of disk `number` of several disks of this model. All times of one
    /// disk are longer or shorter by the same share. Disk 0 has the times of the profile. The
    /// shares of the other disks fill the range of [`specimens_percent`](Self::specimens_percent)
    /// evenly.
    #[must_use]
    pub fn specimen(&self, number: u32) -> Self {
        let factor = 1.0 + self.specimens_percent / 100.0 * slowness(number);
        let mut config = self.clone();
        let SsdConfig { flash, cache, interface, .. } = &mut config;
        let cache_ns = cache.as_mut().map(|cache| &mut cache.program_ns);
        let quick_ns = flash.quick_read.as_mut().map(|quick| &mut quick.ns);
        let times = [
            &mut flash.read_ns,
            &mut flash.program_ns,
            &mut flash.erase_ns,
            &mut interface.read_latency_ns,
            &mut interface.write_latency_ns,
            &mut interface.read_command_ns,
            &mut interface.write_command_ns,
            &mut interface.read_page_ns,
        ];
        for ns in times.into_iter().chain(cache_ns).chain(quick_ns) {
            *ns = ((*ns as f64 * factor).round() as u64).min(SECOND_NS);
        }
        for rate in [&mut flash.channel_bytes_per_second, &mut interface.bytes_per_second] {
            *rate = ((*rate as f64 / factor).round() as u64).clamp(1_000_000, 1_000_000_000_000);
        }
        config
    }

    fn validate_cleaning(&self) -> Result<(), ConfigError> {
        let field = "ssd.cleaning.spare_percent";
        within(field, self.cleaning.spare_percent, 2.0..=400.0)?;
        within("ssd.cleaning.burst_sectors", self.cleaning.burst_sectors, 0..=1 << 24)?;
        let (blocks, needed) = (self.blocks(), self.capacity_sectors.div_ceil(self.block_sectors()) + SPARE_BLOCKS_MIN);
        if blocks < needed {
            let problem = format!(
                "with this value, the SSD has {blocks} blocks (a block consists of one erase unit of every \
                         die)"
            );
            let remedy = format!(
                "the SSD needs at least {needed} blocks; give more spare space, or a smaller ssd.flash.erase_sectors"
            );
            return Err(ConfigError::new(field, problem, remedy));
        }
        if blocks > BLOCKS_MAX {
            let problem = format!("the SSD has {blocks} blocks (a block consists of one erase unit of every die)");
            return Err(ConfigError::new(
                "ssd.flash.erase_sectors",
                problem,
                format!("an SSD can have at most {BLOCKS_MAX} blocks; give a larger ssd.flash.erase_sectors"),
            ));
        }
        Ok(())
    }

    /// Returns the sectors of a block: an erase unit on every die.
    pub(super) fn block_sectors(&self) -> u64 {
        u64::from(self.flash.erase_sectors) * u64::from(self.flash.dies)
    }

    /// Returns the number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        let sectors = self.capacity_sectors as f64 * (1.0 + self.cleaning.spare_percent / 100.0);
        (sectors / self.block_sectors() as f64) as u64
    }
}

/// Returns the relative slowness of one of several disks, from -1 to 1. It is 0 for the first disk.
/// The other values are from the van der Corput sequence, which fills the range evenly for any
/// number of disks.
fn slowness(number: u32) -> f64 {
    if number == 0 {
        return 0.0;
    }
    let reversed = number.saturating_add(1).reverse_bits();
    1.0 - f64::from(reversed) / f64::from(1u32 << 31)
}

impl SsdFlashConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        within("ssd.flash.dies", self.dies, 1..=4096)?;
        within("ssd.flash.channels", self.channels, 1..=self.dies)?;
        let channel = self.channel_bytes_per_second;
        within("ssd.flash.channel_bytes_per_second", channel, 1_000_000..=1_000_000_000_000)?;
        within("ssd.flash.read_sectors", self.read_sectors, 1..=65_536)?;
        within("ssd.flash.read_ns", self.read_ns, 0..=SECOND_NS)?;
        within("ssd.flash.program_sectors", self.program_sectors, PAGE_SECTORS..=65_536)?;
        within("ssd.flash.program_ns", self.program_ns, 0..=SECOND_NS)?;
        within("ssd.flash.erase_sectors", self.erase_sectors, self.program_sectors..=1 << 24)?;
        for (field, value, of) in [
            ("ssd.flash.program_sectors", self.program_sectors, PAGE_SECTORS),
            ("ssd.flash.erase_sectors", self.erase_sectors, self.program_sectors),
        ] {
            if !value.is_multiple_of(of) {
                let problem = format!("{value} is not a multiple of {of}");
                return Err(ConfigError::new(field, problem, format!("the value must be a multiple of {of}")));
            }
        }
        within("ssd.flash.erase_ns", self.erase_ns, 0..=SECOND_NS)?;
        within("ssd.flash.suspend_ns", self.suspend_ns, 0..=SECOND_NS)?;
        within("ssd.flash.suspends_max", self.suspends_max, 0..=1_000_000)?;
        within("ssd.flash.cached_programs", self.cached_programs, 0..=1000)?;
        within("ssd.flash.programs_max", self.programs_max.unwrap_or(1), 1..=self.dies)?;
        if let Some(quick) = self.quick_read {
            within("ssd.flash.quick_read.sectors", quick.sectors, 1..=self.read_sectors)?;
            within("ssd.flash.quick_read.ns", quick.ns, 0..=self.read_ns)?;
        }
        within("ssd.flash.reads_in_a_row", self.reads_in_a_row, 1..=1_000_000)
    }
}
