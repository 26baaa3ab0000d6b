//! Conversion of a description into parameters of the `hdd` model.

use super::error::DiskSimError;
use super::parameters::{self, Block, Located, Value, whole};
use super::seeks;
use crate::hdd::{
    HddConfig, InterfaceConfig, OverheadsConfig, QueueConfig, ReadAheadAfter, ReadAheadUntil, ReadCacheConfig,
    SeekConfig, TrackOrder, WriteCacheConfig, ZoneConfig,
};

/// Longest time of a mechanical parameter or an overhead, ms.
const MS_MAX: f64 = 1_000.0;

/// Fields without effect on the model. They are names, reports, values that follow from other
/// fields, the precision of DiskSim, the order of commands, and spares after the last sector. The
/// order of commands does not matter, because a described disk has one command at a time.
const WITHOUT_EFFECT: [&str; 10] = [
    "Access time type",
    "Avg sectors per cylinder",
    "Calc sector by sector",
    "Full seek curve",
    "Model",
    "Number of cylinders",
    "Number of spares",
    "Print stats",
    "Rangesize for sparing",
    "Scheduler",
];
/// Fields of features that the model does not have, each with its value for a disk without the
/// feature.
const NOT_MODELLED: [(&str, f64); 39] = [
    ("Hold bus entire read xfer", 0.0),
    ("Hold bus entire write xfer", 0.0),
    ("Allow almost read hits", 0.0),
    ("Allow sneaky full read hits", 0.0),
    ("Allow sneaky partial read hits", 0.0),
    ("Allow sneaky intermediate read hits", 0.0),
    ("Allow write prebuffering", 0.0),
    ("Preseeking level", 0.0),
    ("Never disconnect", 0.0),
    ("Use separate write segment", 0.0),
    ("Low (write) water mark", 0.0),
    ("High (read) water mark", 0.0),
    ("Set watermark by reqsize", 1.0),
    ("Minimum read-ahead (blks)", 0.0),
    ("Read-ahead on idle hit", 0.0),
    ("Read any free blocks", 0.0),
    ("Immediate buffer write", 0.0),
    ("Combine seq writes", 1.0),
    ("Stop prefetch in sector", 0.0),
    ("Disconnect write if seek", 0.0),
    ("Write hit stop prefetch", 1.0),
    ("Read directly to buffer", 1.0),
    ("Immed transfer partial hit", 1.0),
    ("Read completion overhead", 0.0),
    ("Write completion overhead", 0.0),
    ("Data preparation overhead", 0.0),
    ("First reselect overhead", 0.0),
    ("Other reselect overhead", 0.0),
    ("Read disconnect afterread", 0.0),
    ("Read disconnect afterwrite", 0.0),
    ("Write disconnect overhead", 0.0),
    ("Extra write disconnect", 0.0),
    ("Extradisc command overhead", 0.0),
    ("Extradisc disconnect overhead", 0.0),
    ("Extradisc inter-disconnect delay", 0.0),
    ("Extradisc 2nd disconnect overhead", 0.0),
    ("Extradisc seek delta", 0.0),
    ("Minimum seek delay", 0.0),
    ("Percent error in rpms", 0.0),
];

/// The three files. Each is a pair of its name in errors and its text.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'t> {
    /// Geometry and mechanics, `*.model`.
    pub model: (&'t str, &'t str),
    /// Seek times, `*.seek`.
    pub seek: (&'t str, &'t str),
    /// Bus, cache and overheads, `*.diskspecs`.
    pub specs: (&'t str, &'t str),
}

/// A disk as DiskSim describes it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the disk in the description.
    pub name: String,
    /// The parameters of the model.
    pub config: HddConfig,
    /// Differences between the description and the model, one sentence each.
    pub remarks: Vec<String>,
    /// Values from a source other than the description, one sentence each.
    pub found: Vec<String>,
    /// Seek over one cylinder from the separate field of the description, ns.
    pub one_cylinder_ns: u64,
    /// Seek over all cylinders from the separate field of the description, ns.
    pub full_seek_ns: u64,
    pub(super) files: [String; 3],
}

impl Description {
    /// Parses a description.
    ///
    /// # Errors
    /// A file is not valid, a necessary field is missing, or the disk has a feature that is not
    /// supported. The error always has file and line.
    pub fn read(sources: &Sources<'_>) -> Result<Self, DiskSimError> {
        let model = parameters::parse(sources.model.0, sources.model.1)?;
        let specs = parameters::parse(sources.specs.0, sources.specs.1)?;
        let seek = seeks::parse(sources.seek.0, sources.seek.1)?;
        let file = sources.model.0;
        let mechanics = Mechanics::read(file, model.block(file, "Mechanical Model")?)?;
        let layout = model.block(file, "Layout Model")?;
        let heads = model.whole(file, "Number of data surfaces", 64)?.max(1);
        let mut remarks = Vec::new();
        let zones = zones(file, layout, &mut remarks)?;
        let specs_file = sources.specs.0;
        let config = HddConfig {
            capacity_sectors: whole(file, "Block count", model.required(file, "Block count")?, 1 << 40)?,
            depth: specs.whole(specs_file, "Max queue length", 256)?.max(1),
            max_hw_sectors_kb: crate::config::MAX_HW_SECTORS_KB,
            fua: false,
            rpm: mechanics.rpm,
            heads,
            physical_block_bytes: 512,
            track_order: track_order(file, layout, &zones)?,
            head_switch_ns: mechanics.head_switch_ns,
            write_settle_ns: mechanics.write_settle_ns,
            write_to_read_ns: None,
            skew_margin_ns: 0,
            seek: SeekConfig::Table(seek),
            zones,
            interface: interface(specs_file, &specs)?,
            queue: QueueConfig { starvation_ns: 1_000_000_000 },
            read_cache: read_cache(specs_file, &specs)?,
            write_cache: write_cache(specs_file, &specs, &mut remarks)?,
        };
        config
            .validate()
            .map_err(|error| DiskSimError::of(file, error.to_string(), "correct this parameter in the description"))?;
        remarks.extend([&model, &specs].into_iter().flat_map(Block::unread).filter_map(ignored));
        let name = if specs.name.is_empty() { model.name } else { specs.name };
        let files = [sources.model.0, sources.seek.0, sources.specs.0].map(str::to_owned);
        let Mechanics { one_cylinder_ns, full_seek_ns, .. } = mechanics;
        Ok(Self { name, config, remarks, found: Vec::new(), one_cylinder_ns, full_seek_ns, files })
    }
}

/// Returns the remark on a field that the import has not read.
fn ignored((name, located): (&str, &Located)) -> Option<String> {
    if WITHOUT_EFFECT.contains(&name) {
        return None;
    }
    let value = match &located.value {
        Value::Number(value) if NOT_MODELLED.contains(&(name, *value)) => return None,
        Value::Number(value) => value.to_string(),
        Value::Words(words) => words.clone(),
        Value::List(_) | Value::Block(_) => "a list or a block".to_owned(),
    };
    Some(format!("{name:?} is {value}; the model cannot represent this value"))
}

struct Mechanics {
    rpm: f64,
    head_switch_ns: u64,
    write_settle_ns: u64,
    one_cylinder_ns: u64,
    full_seek_ns: u64,
}

impl Mechanics {
    fn read(file: &str, block: &Block) -> Result<Self, DiskSimError> {
        let kind = block.required(file, "Seek type")?;
        if kind.value != Value::Words("extracted".to_owned()) {
            let problem = "the seek type is not `extracted`";
            return Err(DiskSimError::at(
                file,
                kind.line,
                problem,
                "seek times must come from a table of measured seek times",
            ));
        }
        Ok(Self {
            rpm: block.number(file, "Rotation speed (in rpms)", (1_000.0, 100_000.0))?,
            head_switch_ns: ns(file, block, "Head switch time")?,
            write_settle_ns: ns(file, block, "Add. write settling delay")?,
            one_cylinder_ns: ns(file, block, "Single cylinder seek time")?,
            full_seek_ns: ns(file, block, "Full strobe seek time")?,
        })
    }
}

/// Converts a time in ms to ns.
fn ns(file: &str, block: &Block, name: &str) -> Result<u64, DiskSimError> {
    Ok((block.number(file, name, (0.0, MS_MAX))? * 1e6).round() as u64)
}

/// Place of the spare sectors.
#[derive(Clone, Copy)]
enum Sparing {
    None,
    EachCylinder,
    EndOfDisk,
    EachRange(u32),
    EachZone,
}

fn sparing(file: &str, layout: &Block) -> Result<Sparing, DiskSimError> {
    let located = layout.required(file, "Sparing scheme used")?;
    match whole(file, "Sparing scheme used", located, u64::from(u32::MAX))? {
        0 => Ok(Sparing::None),
        2 => Ok(Sparing::EachCylinder),
        7 => Ok(Sparing::EndOfDisk),
        8 => Ok(Sparing::EachRange(layout.whole(file, "Rangesize for sparing", 1 << 28)?.max(1))),
        9 => Ok(Sparing::EachZone),
        other => Err(DiskSimError::at(
            file,
            located.line,
            format!("sparing scheme {other} is not supported"),
            "supported schemes: 0 (none), 2 (at the end of each cylinder), 7 (of the disk), 8 (of each range of \
             cylinders) and 9 (of each zone)",
        )),
    }
}

fn zones(file: &str, layout: &Block, remarks: &mut Vec<String>) -> Result<Vec<ZoneConfig>, DiskSimError> {
    let sparing = sparing(file, layout)?;
    let mut zones = Vec::new();
    let (mut next_cylinder, mut defects) = (0, 0);
    for located in layout.list(file, "Zones")? {
        let Value::Block(zone) = &located.value else {
            return Err(DiskSimError::at(file, located.line, "this is not a zone", "a zone must be `type { ... }`"));
        };
        let first = zone.whole(file, "First cylinder number", 1 << 28)?;
        let last = zone.whole(file, "Last cylinder number", 1 << 28)?;
        if first < next_cylinder || last < first {
            let problem =
                format!("the zone has cylinders {first} to {last}, but it must begin at cylinder {next_cylinder}");
            return Err(DiskSimError::at(
                file,
                zone.line,
                problem,
                "zones must follow each other inwards without gaps",
            ));
        }
        defects += zone.list(file, "defects")?.len() / 2;
        let spare_slots = match sparing {
            Sparing::None | Sparing::EndOfDisk => 0,
            _ => zone.whole(file, "Number of spares", u32::MAX)?,
        };
        let spare_region_cylinders = match sparing {
            Sparing::EachCylinder => Some(1),
            Sparing::EachRange(cylinders) => Some(cylinders.min(last - first + 1)),
            _ => None,
        };
        let skew = |name| zone.number(file, name, (0.0, 65_535.0)).map(|sectors| Some(sectors.round() as u32));
        zones.push(ZoneConfig {
            cylinders: last - first + 1,
            sectors_per_track: zone.whole(file, "Blocks per track", 65_536)?,
            track_skew_sectors: skew("Skew for track switch")?,
            cylinder_skew_sectors: skew("Skew for cylinder switch")?,
            unused_cylinders_before: first - next_cylinder,
            first_slot_sectors: skew("Offset of first block")?,
            unused_slots_before: zone.whole(file, "Empty space at zone front", u32::MAX)?.into(),
            spare_slots,
            spare_region_cylinders,
            slips: slips(file, zone.list(file, "slips")?)?,
        });
        next_cylinder = last + 1;
    }
    if defects > 0 {
        remarks.push(format!(
            "the disk has {defects} remapped sectors; the model keeps them at their original \
             positions"
        ));
    }
    Ok(zones)
}

/// Returns the slipped slots, sorted and without duplicates.
fn slips(file: &str, list: &[Located]) -> Result<Vec<u64>, DiskSimError> {
    let mut slips: Vec<u64> =
        list.iter().map(|slip| whole(file, "slips", slip, u64::from(u32::MAX))).collect::<Result<_, _>>()?;
    slips.sort_unstable();
    slips.dedup();
    Ok(slips)
}

fn track_order(file: &str, layout: &Block, zones: &[ZoneConfig]) -> Result<TrackOrder, DiskSimError> {
    let name = "LBN-to-PBN mapping scheme";
    let located = layout.required(file, name)?;
    let scheme = whole(file, name, located, u64::from(u32::MAX))?;
    let mut first = 0;
    let even = zones.iter().all(|zone| {
        let is_even = (first + zone.unused_cylinders_before).is_multiple_of(2);
        first += zone.unused_cylinders_before + zone.cylinders;
        is_even
    });
    match scheme {
        0 => Ok(TrackOrder::Ascending),
        1 => Ok(TrackOrder::Serpentine),
        2 if even => Ok(TrackOrder::Serpentine),
        2 => {
            let problem = "mapping scheme 2 is not supported for a zone that begins on an odd cylinder";
            Err(DiskSimError::at(
                file,
                located.line,
                problem,
                "use mapping scheme 1, because the model starts each zone with the same order of surfaces",
            ))
        }
        other => {
            let problem = format!("mapping scheme {other} is not supported");
            Err(DiskSimError::at(file, located.line, problem, "supported schemes: 0, 1 and 2"))
        }
    }
}

fn interface(file: &str, specs: &Block) -> Result<InterfaceConfig, DiskSimError> {
    let scale = specs.number(file, "Time scale for overheads", (0.0, 1_000.0))?;
    let every_ms = specs.number(file, "Per-request overhead time", (0.0, MS_MAX))?;
    let pair = |name: &str| -> Result<[u64; 2], DiskSimError> {
        let ns = |after: &str| {
            let ms = specs.number(file, &format!("{name} over. after {after}"), (0.0, MS_MAX))?;
            Ok((((ms + every_ms) * scale) * 1e6).round().min(1e9) as u64)
        };
        Ok([ns("read")?, ns("write")?])
    };
    let overheads = OverheadsConfig {
        read_hit_ns: Some(pair("Read hit")?),
        read_miss_ns: Some(pair("Read miss")?),
        write_hit_ns: Some(pair("Write hit")?),
        write_miss_ns: Some(pair("Write miss")?),
    };
    // Realistic links transfer a sector in 0.6 ns to 0.5 ms.
    let sector_ms = specs.number(file, "Bulk sector transfer time", (0.000_000_6, 0.5))?;
    Ok(InterfaceConfig {
        command_ns: overheads.read_hit_ns.map_or(0, |ns| ns[0]),
        bytes_per_second: (512.0 / (sector_ms / 1e3)).round() as u64,
        overheads,
    })
}

fn read_cache(file: &str, specs: &Block) -> Result<ReadCacheConfig, DiskSimError> {
    let segment_sectors = specs.whole(file, "Segment size (in blks)", 1 << 24)?.max(1);
    let caches = specs.whole(file, "Enable caching in buffer", 2)? > 0;
    let (reads_ahead, read_ahead_until) = match specs.whole(file, "Buffer continuous read", 4)? {
        0 => (false, ReadAheadUntil::Distance),
        1 => (true, ReadAheadUntil::Track),
        2 => (true, ReadAheadUntil::Cylinder),
        3 => (true, ReadAheadUntil::Distance),
        _ => (true, ReadAheadUntil::NextTrack),
    };
    let read_ahead_sectors = specs.whole(file, "Maximum read-ahead (blks)", 1 << 24)?.min(segment_sectors);
    Ok(ReadCacheConfig {
        segments: if caches { specs.whole(file, "Number of buffer segments", 256)?.max(1) } else { 1 },
        segment_sectors,
        read_ahead_sectors: if caches && reads_ahead { read_ahead_sectors } else { 0 },
        sequential_read_ahead_sectors: 0,
        read_ahead_after: ReadAheadAfter::AnyRead,
        read_ahead_until,
        read_on_arrival: specs.flag(file, "Immediate buffer read")?,
        replace_requested: specs.flag(file, "Read-ahead over requested")?,
        keep_written: specs.flag(file, "Allow read hits on write data")?,
    })
}

fn write_cache(file: &str, specs: &Block, remarks: &mut Vec<String>) -> Result<WriteCacheConfig, DiskSimError> {
    let segment_sectors = specs.whole(file, "Segment size (in blks)", 1 << 20)?;
    let segments = specs.whole(file, "Maximum number of write segments", 256)?.max(1);
    let sectors = (segment_sectors * segments).clamp(32, 1 << 24);
    let level = specs.whole(file, "Fast write level", 2)?;
    if level == 1 {
        remarks.push(
            "in the model, the cache acknowledges all writes; \"Fast write level\" 1 allows this only for \
             some writes"
                .to_owned(),
        );
    }
    Ok(WriteCacheConfig {
        enabled: level > 0,
        sectors,
        extents: segments,
        high_percent: 100,
        idle_ns: 0,
        destage_sectors: segment_sectors.clamp(8, sectors),
        flush_ns: 0,
    })
}
