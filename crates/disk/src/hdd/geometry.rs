//! Places of sectors: zone, cylinder, head and angle.
//!
//! Sectors fill a track, then the other tracks of the cylinder head by head, then the next cylinder
//! inwards. The first sector of each track is skewed relative to the previous track, so that
//! sequential reads lose no revolution. Slots without sectors are skipped. Most of them are spare
//! or slipped slots.

use std::ops::Range;

use super::config::{HddConfig, TrackOrder, ZoneConfig};
use super::seek::SeekTable;
use super::spindle::{Angle, Spindle};

/// Fractional bits of a transfer time in ns.
const TRANSFER_BITS: u32 = 20;
/// Number of entries of the table from sector to zone.
const ZONE_HINTS: u64 = 512;

/// Division by a constant with a multiplication. It is exact while dividend times divisor is less
/// than 2^64.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    const fn new(divisor: u32) -> Self {
        // For a divisor of 1 the reciprocal would be 2^64, so `divide` handles it separately.
        let reciprocal = if divisor == 1 { 0 } else { u64::MAX / divisor as u64 + 1 };
        Self { divisor, reciprocal }
    }

    /// Returns quotient and remainder.
    #[inline]
    const fn divide(self, dividend: u64) -> (u64, u32) {
        if self.divisor == 1 {
            return (dividend, 0);
        }
        let quotient = ((dividend as u128 * self.reciprocal as u128) >> 64) as u64;
        (quotient, (dividend - quotient * self.divisor as u64) as u32)
    }
}

/// Number of slots without sectors before each sector of a zone, valid from a given sector on.
#[derive(Clone, Copy, Debug)]
struct Skip {
    /// First sector to which this number of slots applies, counted from the first sector of the
    /// zone.
    from: u64,
    slots: u64,
}

/// Neighbouring cylinders whose tracks have the same length.
#[derive(Clone, Debug)]
struct Zone {
    first_lbn: u64,
    end_lbn: u64,
    first_cylinder: u32,
    sectors_per_track: Divisor,
    /// Angle of one sector, in units of 2^-64 of a revolution.
    sector_angle: u64,
    /// Time of one sector under the head, ns.
    sector_ns: u64,
    /// Sectors per nanosecond, in units of 2^-32.
    sectors_per_ns: u64,
    /// Angle of the zone's first slot.
    first_angle: Angle,
    track_skew: Angle,
    /// Angle from the first slot of a cylinder to the first slot of the next cylinder.
    cylinder_step: Angle,
    /// Skips in ascending order; empty if every slot has a sector.
    skips: Vec<Skip>,
}

/// Position of the head for a sector, and the angle of the sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct HeadPosition {
    pub(crate) cylinder: u32,
    pub(crate) angle: Angle,
    pub(crate) head: u16,
    zone: u16,
    /// Slot in the track.
    pub(crate) slot: u32,
    /// Number of contiguous sectors from here to the end of the track or to a gap.
    run: u32,
}

/// The immutable layout of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    /// Zone of the sector `i << hint_shift`.
    hints: Vec<u16>,
    hint_shift: u32,
    heads: Divisor,
    serpentine: bool,
    pub(crate) seeks: SeekTable,
    pub(crate) capacity_sectors: u64,
    pub(crate) head_switch_ns: u64,
}

impl Geometry {
    /// Creates the layout of a valid configuration.
    pub(crate) fn new(config: &HddConfig, spindle: &Spindle) -> Self {
        let cylinders = config.zones.iter().map(|zone| zone.unused_cylinders_before + zone.cylinders).sum();
        let seeks = SeekTable::new(&config.seek, cylinders);
        let cylinder_switch_ns = seeks.ns(1).max(config.head_switch_ns);
        let mut zones: Vec<Zone> = Vec::with_capacity(config.zones.len());
        let (mut first_lbn, mut first_cylinder, mut next_angle) = (0, 0, 0u32);
        for zone in &config.zones {
            let sectors = u64::from(zone.sectors_per_track);
            let angle = |slots: u64| (((slots % sectors) << 32) / sectors) as Angle;
            let skew = |given: Option<u32>, switch_ns: u64| {
                let needed = ((switch_ns + config.skew_margin_ns) * sectors).div_ceil(spindle.revolution_ns());
                angle(given.map_or(needed, u64::from))
            };
            let track_skew = skew(zone.track_skew_sectors, config.head_switch_ns);
            let cylinder_skew = skew(zone.cylinder_skew_sectors, cylinder_switch_ns);
            let cylinder_step = track_skew.wrapping_mul(config.heads - 1).wrapping_add(cylinder_skew);
            let skips = skips(zone, config.heads);
            let usable_slots = zone.slots(config.heads) - skips.last().map_or(0, |last| last.slots);
            first_cylinder += zone.unused_cylinders_before;
            let first_angle = zone.first_slot_sectors.map_or(next_angle, |slots| angle(slots.into()));
            zones.push(Zone {
                first_lbn,
                end_lbn: first_lbn + usable_slots,
                first_cylinder,
                sectors_per_track: Divisor::new(zone.sectors_per_track),
                sector_angle: u64::MAX / sectors,
                sector_ns: (spindle.revolution_ns() << TRANSFER_BITS) / sectors,
                sectors_per_ns: (sectors << 32) / spindle.revolution_ns(),
                first_angle,
                track_skew,
                cylinder_step,
                skips,
            });
            next_angle = first_angle.wrapping_add(cylinder_step.wrapping_mul(zone.cylinders));
            first_cylinder += zone.cylinders;
            first_lbn += usable_slots;
        }
        let mut hint_shift = 0;
        while first_lbn >> hint_shift > ZONE_HINTS {
            hint_shift += 1;
        }
        let zone_of = |lbn| zones.partition_point(|zone| zone.end_lbn <= lbn).min(zones.len() - 1) as u16;
        Self {
            hints: (0..=first_lbn >> hint_shift).map(|i| zone_of(i << hint_shift)).collect(),
            hint_shift,
            zones,
            heads: Divisor::new(config.heads),
            serpentine: config.track_order == TrackOrder::Serpentine,
            seeks,
            capacity_sectors: config.capacity_sectors,
            head_switch_ns: config.head_switch_ns,
        }
    }

    /// Returns the place of sector `lbn`. A sector beyond the capacity counts as the last sector.
    #[inline]
    pub(crate) fn locate(&self, lbn: u64) -> HeadPosition {
        let lbn = lbn.min(self.capacity_sectors - 1);
        let mut index = self.hints[(lbn >> self.hint_shift) as usize];
        while self.zones[index as usize].end_lbn <= lbn {
            index += 1;
        }
        let zone = &self.zones[index as usize];
        let (slots_before, run_max) = zone.skipped(lbn - zone.first_lbn);
        let (track, slot) = zone.sectors_per_track.divide(lbn - zone.first_lbn + slots_before);
        let (cylinder, order) = self.heads.divide(track);
        let reversed = self.serpentine && cylinder % 2 == 1;
        let angle = zone.track_angle(cylinder as u32, order).wrapping_add(zone.angle_of(slot));
        HeadPosition {
            cylinder: zone.first_cylinder + cylinder as u32,
            angle,
            head: (if reversed { self.heads.divisor - 1 - order } else { order }) as u16,
            zone: index,
            slot,
            run: u64::from(zone.sectors_per_track.divisor - slot).min(run_max) as u32,
        }
    }

    /// Returns the number of sectors before `lbn` that the head can read on arrival. The head
    /// arrives at the track `wait_ns` before it reaches `lbn` at `place`. Only contiguous sectors
    /// directly before `lbn` count.
    pub(crate) fn seen_before(&self, lbn: u64, place: &HeadPosition, wait_ns: u64) -> u64 {
        let zone = &self.zones[place.zone as usize];
        let sector = lbn - zone.first_lbn;
        let behind = zone.skips.partition_point(|skip| skip.from <= sector);
        let run_start = if behind == 0 { 0 } else { zone.skips[behind - 1].from };
        let passed = ((u128::from(wait_ns) * u128::from(zone.sectors_per_ns)) >> 32) as u64;
        passed.min(u64::from(place.slot)).min(sector - run_start)
    }

    /// Returns the sectors of the track with `lbn`.
    pub(crate) fn track(&self, lbn: u64) -> Range<u64> {
        let (zone, track) = self.track_of(lbn);
        let slots = u64::from(zone.sectors_per_track.divisor);
        zone.first_sector(track * slots)..zone.first_sector((track + 1) * slots)
    }

    /// Returns the sector after the last sector of the cylinder with `lbn`.
    pub(crate) fn cylinder_end(&self, lbn: u64) -> u64 {
        let (zone, track) = self.track_of(lbn);
        let heads = u64::from(self.heads.divisor);
        zone.first_sector((track / heads + 1) * heads * u64::from(zone.sectors_per_track.divisor))
    }

    /// Returns the zone with `lbn`, and the number of its track.
    fn track_of(&self, lbn: u64) -> (&Zone, u64) {
        let lbn = lbn.min(self.capacity_sectors - 1);
        let zone = &self.zones[self.locate(lbn).zone as usize];
        let sector = lbn - zone.first_lbn;
        (zone, zone.sectors_per_track.divide(sector + zone.skipped(sector).0).0)
    }

    /// Returns the time from one place to another, ns, without rotation.
    #[inline]
    fn switch_ns(&self, from: &HeadPosition, to: &HeadPosition) -> u64 {
        let seek_ns = self.seeks.ns(from.cylinder.abs_diff(to.cylinder));
        if from.head == to.head { seek_ns } else { seek_ns.max(self.head_switch_ns) }
    }
}

/// Returns the skips for the slots without sectors of a zone.
fn skips(zone: &ZoneConfig, heads: u32) -> Vec<Skip> {
    let mut slots = 0;
    let skip = |hole: std::ops::Range<u64>| {
        let from = hole.start - slots;
        slots += hole.end - hole.start;
        Skip { from, slots }
    };
    let mut skips: Vec<Skip> = zone.holes(heads).into_iter().map(skip).collect();
    // If ranges touch, the last skip has the slots of all these ranges.
    skips.dedup_by(|later, earlier| {
        let touch = later.from == earlier.from;
        if touch {
            earlier.slots = later.slots;
        }
        touch
    });
    skips
}

impl Zone {
    #[inline]
    const fn angle_of(&self, slot: u32) -> Angle {
        ((slot as u64).wrapping_mul(self.sector_angle) >> 32) as Angle
    }

    /// Returns the angle of the first slot of the track `order` in the zone's cylinder `cylinder`.
    #[inline]
    const fn track_angle(&self, cylinder: u32, order: u32) -> Angle {
        let to_cylinder = self.first_angle.wrapping_add(cylinder.wrapping_mul(self.cylinder_step));
        to_cylinder.wrapping_add(self.track_skew.wrapping_mul(order))
    }

    /// Returns the first sector at or after `slot` of the zone.
    fn first_sector(&self, slot: u64) -> u64 {
        let behind = self.skips.partition_point(|skip| skip.from + skip.slots <= slot);
        let before = if behind == 0 { 0 } else { self.skips[behind - 1].slots };
        let stored_slots = self.skips.get(behind).map_or(slot - before, |next| next.from.min(slot - before));
        (self.first_lbn + stored_slots).min(self.end_lbn)
    }

    /// Returns the number of slots without sectors before a sector, and the number of sectors
    /// before the next slot without a sector.
    #[inline]
    fn skipped(&self, sector: u64) -> (u64, u64) {
        if self.skips.is_empty() {
            return (0, u64::MAX);
        }
        let behind = self.skips.partition_point(|skip| skip.from <= sector);
        let before = if behind == 0 { 0 } else { self.skips[behind - 1].slots };
        (before, self.skips.get(behind).map_or(u64::MAX, |next| next.from - sector))
    }
}

/// A head that follows the tracks from a sector on. It determines when the head has passed each
/// sector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// Sector of the current run from which times are computed.
    lbn: u64,
    /// Time at which this sector is under the head, ns.
    at_ns: u64,
    /// End of the run: at the end of the track, or before a slot without a sector.
    run_end: u64,
    sector_ns: u64,
    sectors_per_ns: u64,
    pub(crate) place: HeadPosition,
}

impl Pass {
    /// Creates a pass that starts at the time `at_ns`. At this time, the head meets the sector
    /// `lbn`. The position of this sector is `place`.
    #[inline]
    pub(crate) fn new(geometry: &Geometry, place: HeadPosition, lbn: u64, at_ns: u64) -> Self {
        let zone = &geometry.zones[place.zone as usize];
        Self {
            lbn,
            at_ns,
            run_end: lbn + u64::from(place.run),
            sector_ns: zone.sector_ns,
            sectors_per_ns: zone.sectors_per_ns,
            place,
        }
    }

    #[inline]
    const fn end_ns(&self, end: u64) -> u64 {
        self.at_ns + (((end - self.lbn) * self.sector_ns) >> TRANSFER_BITS)
    }

    /// Moves to the first sector of the next run.
    #[inline(never)]
    fn turn(&mut self, geometry: &Geometry, spindle: &Spindle) {
        let next = geometry.locate(self.run_end);
        let ready_ns = self.end_ns(self.run_end) + geometry.switch_ns(&self.place, &next);
        let at_ns = ready_ns + spindle.wait_ns(spindle.angle_at(ready_ns), next.angle);
        *self = Self::new(geometry, next, self.run_end, at_ns);
    }

    /// Returns the time at which the head has passed all sectors before `end`, ns. `end` must not
    /// be before the current position.
    #[inline]
    pub(crate) fn passed_ns(&self, geometry: &Geometry, spindle: &Spindle, end: u64) -> u64 {
        // Most commands end on the track on which they begin, and need no copy.
        if end <= self.run_end { self.end_ns(end.max(self.lbn)) } else { self.passed_beyond_ns(geometry, spindle, end) }
    }

    /// Returns the same time for an `end` beyond the current run.
    #[inline(never)]
    fn passed_beyond_ns(mut self, geometry: &Geometry, spindle: &Spindle, end: u64) -> u64 {
        while end > self.run_end {
            self.turn(geometry, spindle);
        }
        self.end_ns(end.max(self.lbn))
    }

    /// Advances to `now_ns`, but not beyond `end`. Returns the end of the sectors that the head has
    /// passed.
    #[inline]
    pub(crate) fn follow(&mut self, geometry: &Geometry, spindle: &Spindle, now_ns: u64, end: u64) -> u64 {
        loop {
            let run_end = self.run_end.min(end).max(self.lbn);
            let elapsed_ns = now_ns.saturating_sub(self.at_ns);
            // One nanosecond is added because of rounding: if `passed_ns` returns the present time
            // for a sector, this function must include the sector.
            let passed = ((elapsed_ns + 1).saturating_mul(self.sectors_per_ns + 1) >> 32).min(run_end - self.lbn);
            let lbn = self.lbn + if elapsed_ns == 0 { 0 } else { passed };
            if lbn < self.run_end || lbn >= end {
                return lbn;
            }
            self.turn(geometry, spindle);
        }
    }

    /// Returns the number of sectors of the current track.
    pub(crate) fn track_sectors(&self, geometry: &Geometry) -> u64 {
        u64::from(geometry.zones[self.place.zone as usize].sectors_per_track.divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Profile};

    /// A zone with two heads, ten sectors per track and four cylinders, and another zone after it.
    fn config(zone: ZoneConfig) -> HddConfig {
        let profile = Profile::named("sata-7200").unwrap();
        let Model::Hdd(config) = profile.model() else { unreachable!("sata-7200 is an hdd") };
        let zone = ZoneConfig { cylinders: 4, sectors_per_track: 10, ..zone };
        let last = ZoneConfig { cylinders: 1000, sectors_per_track: 8, ..ZoneConfig::default() };
        HddConfig { heads: 2, zones: vec![zone, last], capacity_sectors: 1000, ..(**config).clone() }
    }

    /// Returns cylinder, head and slot of sectors.
    fn places(config: &HddConfig, sectors: impl IntoIterator<Item = u64>) -> Vec<(u32, u16, u32)> {
        let geometry = Geometry::new(config, &Spindle::new(config.rpm));
        let place = |sector| geometry.locate(sector);
        sectors.into_iter().map(place).map(|place| (place.cylinder, place.head, place.slot)).collect()
    }

    #[test]
    fn sectors_fill_tracks_then_cylinders_then_zones() {
        let config = config(ZoneConfig::default());
        let expected = [(0, 0, 0), (0, 0, 9), (0, 1, 0), (1, 0, 0), (3, 1, 9), (4, 0, 0)];
        assert_eq!(places(&config, [0, 9, 10, 20, 79, 80]), expected);
    }

    #[test]
    fn serpentine_order_reverses_heads_on_every_other_cylinder() {
        let config = HddConfig { track_order: TrackOrder::Serpentine, ..config(ZoneConfig::default()) };
        let expected = [(0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0), (2, 0, 0)];
        assert_eq!(places(&config, [0, 10, 20, 30, 40]), expected);
    }

    #[test]
    fn slipped_slots_are_skipped() {
        let config = config(ZoneConfig { slips: vec![2, 3, 12], ..ZoneConfig::default() });
        let expected = [(0, 0, 1), (0, 0, 4), (0, 1, 1), (0, 1, 3), (3, 1, 9), (4, 0, 0)];
        assert_eq!(places(&config, [1, 2, 9, 10, 76, 77]), expected);
    }

    #[test]
    fn track_range_holds_exactly_the_sectors_of_the_track() {
        let region = ZoneConfig { spare_slots: 3, spare_region_cylinders: Some(2), ..ZoneConfig::default() };
        for zone in [
            ZoneConfig::default(),
            ZoneConfig { slips: vec![2, 3, 12, 19, 20], ..ZoneConfig::default() },
            ZoneConfig { slips: vec![5, 45], ..region },
            ZoneConfig { unused_slots_before: 13, ..ZoneConfig::default() },
        ] {
            let geometry = Geometry::new(&config(zone.clone()), &Spindle::new(7200.0));
            let at = |lbn| geometry.locate(lbn);
            for lbn in 0..200 {
                let Range { start, end } = geometry.track(lbn);
                assert!(start <= lbn && lbn < end, "{zone:?}: {lbn} is on {start}..{end}");
                let on = |other: u64| (at(other).cylinder, at(other).head) == (at(lbn).cylinder, at(lbn).head);
                assert!((start..end).all(on) && !on(end) && (start == 0 || !on(start - 1)), "{zone:?}: {lbn}");
                let end = geometry.cylinder_end(lbn);
                assert!(at(end - 1).cylinder == at(lbn).cylinder && at(end).cylinder != at(lbn).cylinder);
            }
        }
    }

    #[test]
    fn spare_slots_are_at_the_region_end_and_slips_use_them() {
        let region = ZoneConfig { spare_slots: 3, spare_region_cylinders: Some(2), ..ZoneConfig::default() };
        // There are 37 sectors in 40 slots.
        assert_eq!(places(&config(region.clone()), [36, 37, 73, 74]), [(1, 1, 6), (2, 0, 0), (3, 1, 6), (4, 0, 0)]);
        let config = config(ZoneConfig { slips: vec![5, 45], ..region });
        assert_eq!(
            places(&config, [4, 5, 36, 37, 41, 42]),
            [(0, 0, 4), (0, 0, 6), (1, 1, 7), (2, 0, 0), (2, 0, 4), (2, 0, 6)]
        );
    }

    #[test]
    fn unused_slots_and_cylinders_are_at_the_zone_start() {
        let mut config = config(ZoneConfig { unused_slots_before: 13, ..ZoneConfig::default() });
        config.zones[1].unused_cylinders_before = 5;
        assert_eq!(places(&config, [0, 66, 67]), [(0, 1, 3), (3, 1, 9), (9, 0, 0)]);
    }

    #[test]
    fn zone_starts_at_the_configured_angle() {
        let zone = ZoneConfig { first_slot_sectors: Some(5), ..ZoneConfig::default() };
        let geometry = Geometry::new(&config(zone), &Spindle::new(7200.0));
        assert_eq!(geometry.locate(0).angle, 1 << 31);
    }

    #[test]
    fn transfer_waits_while_a_slipped_slot_passes() {
        let spindle = Spindle::new(7200.0);
        let slot_ns = spindle.revolution_ns() / 10;
        let geometry = Geometry::new(&config(ZoneConfig { slips: vec![4], ..ZoneConfig::default() }), &spindle);
        let pass = Pass::new(&geometry, geometry.locate(2), 2, 0);
        // The start angle puts sector 2 under the head at time 0.
        let mut spindle = spindle;
        spindle.start = geometry.locate(2).angle;
        let passed = |end| pass.passed_ns(&geometry, &spindle, end);
        assert!(passed(4).abs_diff(2 * slot_ns) < 1000);
        assert!(passed(5).abs_diff(4 * slot_ns) < 1000, "{} and {slot_ns}", passed(5));
    }

    #[test]
    fn head_that_arrives_early_reads_the_sectors_before() {
        let spindle = Spindle::new(7200.0);
        let slot_ns = spindle.revolution_ns() / 10;
        let geometry = Geometry::new(&config(ZoneConfig { slips: vec![4], ..ZoneConfig::default() }), &spindle);
        let seen = |lbn, wait_ns| geometry.seen_before(lbn, &geometry.locate(lbn), wait_ns);
        assert_eq!(seen(3, slot_ns * 5 / 2), 2);
        assert_eq!(seen(3, slot_ns * 9), 3, "no further than the track");
        assert_eq!(seen(7, slot_ns * 9), 3, "no further than the slipped slot");
        assert_eq!(seen(9, slot_ns * 9), 0);
    }
}
