//! Conversion of a description into the text of a profile.

use std::fmt::Write;

use super::import::Description;
use crate::hdd::{HddConfig, ReadAheadAfter, SeekConfig, SeekPoint, TrackOrder, ZoneConfig};

impl Description {
    /// Returns the text of a profile. `about` is its description for lists. If `about` is absent,
    /// the description is derived from the parameters. A comment in each part names its source
    /// file.
    #[must_use]
    pub fn to_toml(&self, about: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text, about);
        text
    }

    fn write(&self, out: &mut String, about: Option<&str>) -> std::fmt::Result {
        let Self { name, config, remarks, found, one_cylinder_ns, full_seek_ns, files: [model, seek, specs] } = self;
        writeln!(out, "# {name}, as DiskSim describes it.\n#")?;
        let [model, seek, specs] = [model, seek, specs].map(|path| path.rsplit('/').next().unwrap_or(path));
        writeln!(
            out,
            "# Sources: files of DiskSim 4.0 (Carnegie Mellon University), whose values were extracted from a real"
        )?;
        writeln!(out, "# disk by measurement. \"model\": {model}, \"seek\": {seek}, \"specs\": {specs}.")?;
        for remark in remarks {
            writeln!(out, "# Difference from the description: {remark}.")?;
        }
        for found in found {
            writeln!(out, "# {found}")?;
        }
        writeln!(out, "\nkind = \"hdd\"")?;
        if let Some(about) = about {
            writeln!(out, "about = {about:?}")?;
        }
        write_mechanics(out, config)?;
        write_interface(out, config)?;
        write_caches(out, config)?;
        if let SeekConfig::Table(points) = &config.seek {
            write_seeks(out, points)?;
        }
        writeln!(
            out,
            "\n# Model: sectors per track, skews, slipped slots and positions of spares, from the outer to the inner \
             edge."
        )?;
        config.zones.iter().try_for_each(|zone| write_zone(out, zone))?;
        for (figure, ns) in [("track_to_track_read_seek", one_cylinder_ns), ("full_stroke_read_seek", full_seek_ns)] {
            writeln!(out, "\n[[anchors]]\nfigure = \"{figure}\"\nvalue = {}\nunit = \"ms\"", *ns as f64 / 1e6)?;
            writeln!(out, "source = \"model\"")?;
        }
        Ok(())
    }
}

fn write_mechanics(out: &mut String, config: &HddConfig) -> std::fmt::Result {
    writeln!(out, "\n[hdd]\n# Model.")?;
    writeln!(out, "capacity_sectors = {}", grouped(config.capacity_sectors))?;
    writeln!(out, "rpm = {:?}\nheads = {}", config.rpm, config.heads)?;
    let order = match config.track_order {
        TrackOrder::Ascending => "ascending",
        TrackOrder::Serpentine => "serpentine",
    };
    writeln!(out, "track_order = \"{order}\"")?;
    writeln!(out, "head_switch_ns = {}", grouped(config.head_switch_ns))?;
    writeln!(out, "write_settle_ns = {}", grouped(config.write_settle_ns))?;
    writeln!(out, "# Specs: the disk accepts one command at a time.\ndepth = {}", config.depth)
}

fn write_interface(out: &mut String, config: &HddConfig) -> std::fmt::Result {
    let interface = &config.interface;
    writeln!(out, "\n[hdd.interface]\n# Specs: the overhead of a read hit after a read.")?;
    writeln!(out, "command_ns = {}", grouped(interface.command_ns))?;
    writeln!(out, "# Specs: 512 bytes, divided by the bulk sector transfer time.")?;
    writeln!(out, "bytes_per_second = {}", grouped(interface.bytes_per_second))?;
    writeln!(out, "\n# Specs: overheads after a read, and after a write.\n[hdd.interface.overheads]")?;
    let overheads = &interface.overheads;
    for (name, ns) in [
        ("read_hit_ns", overheads.read_hit_ns),
        ("read_miss_ns", overheads.read_miss_ns),
        ("write_hit_ns", overheads.write_hit_ns),
        ("write_miss_ns", overheads.write_miss_ns),
    ] {
        if let Some([after_read, after_write]) = ns {
            writeln!(out, "{name} = [{}, {}]", grouped(after_read), grouped(after_write))?;
        }
    }
    writeln!(out, "\n# Has no effect at a depth of 1.\n[hdd.queue]")?;
    writeln!(out, "starvation_ns = {}", grouped(config.queue.starvation_ns))
}

fn write_caches(out: &mut String, config: &HddConfig) -> std::fmt::Result {
    let read = &config.read_cache;
    writeln!(out, "\n# Specs.\n[hdd.read_cache]\nsegments = {}", read.segments)?;
    writeln!(out, "segment_sectors = {}", read.segment_sectors)?;
    writeln!(out, "read_ahead_sectors = {}", read.read_ahead_sectors)?;
    if read.read_ahead_after != ReadAheadAfter::default() {
        writeln!(
            out,
            "# Derived from a trace; see the comments at the top.\nread_ahead_after = \"{}\"",
            read.read_ahead_after
        )?;
    }
    writeln!(out, "# \"Buffer continuous read\".\nread_ahead_until = \"{}\"", read.read_ahead_until)?;
    writeln!(out, "# \"Immediate buffer read\".\nread_on_arrival = {}", read.read_on_arrival)?;
    writeln!(out, "# \"Read-ahead over requested\".\nreplace_requested = {}", read.replace_requested)?;
    writeln!(out, "# \"Allow read hits on write data\".\nkeep_written = {}", read.keep_written)?;
    let write = &config.write_cache;
    writeln!(
        out,
        "\n# Specs: the write segments. The disk writes their data to the medium at once.\n[hdd.write_cache]"
    )?;
    writeln!(out, "enabled = {}\nsectors = {}\nextents = {}", write.enabled, write.sectors, write.extents)?;
    writeln!(out, "high_percent = {}\nidle_ns = {}", write.high_percent, write.idle_ns)?;
    writeln!(out, "destage_sectors = {}", write.destage_sectors)
}

fn write_seeks(out: &mut String, points: &[SeekPoint]) -> std::fmt::Result {
    writeln!(out, "\n# Seek.\n[hdd.seek]\ntable = [")?;
    for point in points {
        writeln!(out, "    {{ cylinders = {}, ns = {} }},", grouped(point.cylinders.into()), grouped(point.ns))?;
    }
    writeln!(out, "]")
}

fn write_zone(out: &mut String, zone: &ZoneConfig) -> std::fmt::Result {
    writeln!(out, "\n[[hdd.zones]]")?;
    if zone.unused_cylinders_before > 0 {
        writeln!(out, "unused_cylinders_before = {}", zone.unused_cylinders_before)?;
    }
    writeln!(out, "cylinders = {}\nsectors_per_track = {}", grouped(zone.cylinders.into()), zone.sectors_per_track)?;
    for (name, value) in [
        ("track_skew_sectors", zone.track_skew_sectors),
        ("cylinder_skew_sectors", zone.cylinder_skew_sectors),
        ("first_slot_sectors", zone.first_slot_sectors),
    ] {
        if let Some(value) = value {
            writeln!(out, "{name} = {value}")?;
        }
    }
    if zone.unused_slots_before > 0 {
        writeln!(out, "unused_slots_before = {}", grouped(zone.unused_slots_before))?;
    }
    if zone.spare_slots > 0 {
        writeln!(out, "spare_slots = {}", zone.spare_slots)?;
        if let Some(cylinders) = zone.spare_region_cylinders {
            writeln!(out, "spare_region_cylinders = {cylinders}")?;
        }
    }
    if zone.slips.is_empty() {
        return Ok(());
    }
    writeln!(out, "slips = [")?;
    for slips in zone.slips.chunks(10) {
        let slips: Vec<String> = slips.iter().map(|&slip| grouped(slip)).collect();
        writeln!(out, "    {},", slips.join(", "))?;
    }
    writeln!(out, "]")
}

/// Formats a number in TOML's syntax: `17_938_986`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('_');
        }
        text.push(digit);
    }
    text
}
