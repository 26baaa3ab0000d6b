//! Where a sector is: zone, cylinder, head and angle.
//!
//! Sectors fill a track, then the other tracks of the cylinder head by head, then the next cylinder inwards.
//! From one track to the next the first sector is skewed, so that reading on loses no revolution.

use super::config::HddConfig;
use super::seek::SeekTable;
use super::spindle::{Angle, Spindle};

/// Bits behind the point of a transfer time in ns.
const TRANSFER_BITS: u32 = 20;
/// Entries of the table from sector to zone.
const ZONE_HINTS: u64 = 512;

/// Division by a constant with a multiplication, exact while dividend times divisor is less than 2^64.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    const fn new(divisor: u32) -> Self {
        // For a divisor of 1 the reciprocal is 2^64, which `divide` takes for granted.
        let reciprocal = if divisor == 1 { 0 } else { u64::MAX / divisor as u64 + 1 };
        Self { divisor, reciprocal }
    }

    /// Quotient and remainder.
    #[inline]
    const fn divide(self, dividend: u64) -> (u64, u32) {
        if self.divisor == 1 {
            return (dividend, 0);
        }
        let quotient = ((dividend as u128 * self.reciprocal as u128) >> 64) as u64;
        (quotient, (dividend - quotient * self.divisor as u64) as u32)
    }
}

/// Neighbouring cylinders with tracks of one length.
#[derive(Clone, Debug)]
struct Zone {
    first_lbn: u64,
    end_lbn: u64,
    first_cylinder: u32,
    sectors_per_track: Divisor,
    /// Angle of one sector, in units of 2^-64 of a revolution.
    sector_angle: u64,
    /// Time of one sector.
    sector_ns: u64,
    /// Sectors in a nanosecond, in units of 2^-32.
    sectors_per_ns: u64,
    /// Where the zone's first sector is.
    first_angle: Angle,
    track_skew: Angle,
    /// From the first sector of a cylinder to that of the next.
    cylinder_step: Angle,
}

/// Where the head has to be for a sector, and where it comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) cylinder: u32,
    pub(crate) angle: Angle,
    pub(crate) head: u16,
    zone: u16,
    /// Sector within its track.
    sector: u32,
}

/// The layout of a disk. Immutable.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    /// Zone of the sector `i << hint_shift`.
    hints: Vec<u16>,
    hint_shift: u32,
    heads: Divisor,
    pub(crate) capacity_sectors: u64,
    pub(crate) head_switch_ns: u64,
    cylinder_switch_ns: u64,
}

impl Geometry {
    /// The layout that a valid configuration describes.
    pub(crate) fn new(config: &HddConfig, seeks: &SeekTable, spindle: &Spindle) -> Self {
        let cylinder_switch_ns = seeks.ns(1).max(config.head_switch_ns);
        let mut zones = Vec::with_capacity(config.zones.len());
        let (mut first_lbn, mut first_cylinder, mut first_angle) = (0, 0, 0u32);
        for zone in &config.zones {
            let sectors = u64::from(zone.sectors_per_track);
            let skew = |given: Option<u32>, switch_ns: u64| -> Angle {
                let needed = ((switch_ns + config.skew_margin_ns) * sectors).div_ceil(spindle.revolution_ns());
                let skew_sectors = given.map_or(needed, u64::from) % sectors;
                (u128::from(skew_sectors << 32) / u128::from(sectors)) as Angle
            };
            let track_skew = skew(zone.track_skew_sectors, config.head_switch_ns);
            let cylinder_skew = skew(zone.cylinder_skew_sectors, cylinder_switch_ns);
            let cylinder_step = track_skew.wrapping_mul(config.heads - 1).wrapping_add(cylinder_skew);
            let end_lbn = first_lbn + u64::from(zone.cylinders) * u64::from(config.heads) * sectors;
            zones.push(Zone {
                first_lbn,
                end_lbn,
                first_cylinder,
                sectors_per_track: Divisor::new(zone.sectors_per_track),
                sector_angle: u64::MAX / sectors,
                sector_ns: (spindle.revolution_ns() << TRANSFER_BITS) / sectors,
                sectors_per_ns: (sectors << 32) / spindle.revolution_ns(),
                first_angle,
                track_skew,
                cylinder_step,
            });
            first_angle = first_angle.wrapping_add(cylinder_step.wrapping_mul(zone.cylinders));
            first_cylinder += zone.cylinders;
            first_lbn = end_lbn;
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
            capacity_sectors: config.capacity_sectors,
            head_switch_ns: config.head_switch_ns,
            cylinder_switch_ns,
        }
    }

    /// Where sector `lbn` is; one beyond the capacity is taken for the last.
    #[inline]
    pub(crate) fn locate(&self, lbn: u64) -> Place {
        let lbn = lbn.min(self.capacity_sectors - 1);
        let mut index = self.hints[(lbn >> self.hint_shift) as usize];
        while self.zones[index as usize].end_lbn <= lbn {
            index += 1;
        }
        let zone = &self.zones[index as usize];
        let (track, sector) = zone.sectors_per_track.divide(lbn - zone.first_lbn);
        let (cylinder, head) = self.heads.divide(track);
        let cylinder = zone.first_cylinder + cylinder as u32;
        let place = Place { cylinder, angle: 0, head: head as u16, zone: index, sector };
        Place { angle: self.track_angle(&place).wrapping_add(zone.angle_of(sector)), ..place }
    }

    /// The angle of the first sector on the track of `place`.
    #[inline]
    fn track_angle(&self, place: &Place) -> Angle {
        let zone = &self.zones[place.zone as usize];
        let cylinders = (place.cylinder - zone.first_cylinder).wrapping_mul(zone.cylinder_step);
        zone.first_angle.wrapping_add(cylinders).wrapping_add(zone.track_skew.wrapping_mul(u32::from(place.head)))
    }

    /// The first sector of the track behind that of `place`, and what it takes to get there in ns.
    #[inline]
    fn next_track(&self, place: &Place) -> (Place, u64) {
        let mut next = Place { sector: 0, ..*place };
        let switch_ns = if u32::from(place.head) + 1 < self.heads.divisor {
            next.head += 1;
            self.head_switch_ns
        } else {
            next.head = 0;
            next.cylinder += 1;
            if self.zones.get(next.zone as usize + 1).is_some_and(|zone| zone.first_cylinder <= next.cylinder) {
                next.zone += 1;
            }
            self.cylinder_switch_ns
        };
        next.angle = self.track_angle(&next);
        (next, switch_ns)
    }
}

impl Zone {
    #[inline]
    const fn angle_of(&self, sector: u32) -> Angle {
        ((sector as u64).wrapping_mul(self.sector_angle) >> 32) as Angle
    }
}

/// A head that follows the tracks from some sector on: the one thing that tells when a sector has passed by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// A sector on the present track that was, or will be, followed from its beginning.
    lbn: u64,
    /// When it comes under the head, in ns.
    at_ns: u64,
    track_end: u64,
    sector_ns: u64,
    sectors_per_ns: u64,
    pub(crate) place: Place,
}

impl Pass {
    /// A head that meets sector `lbn`, which is at `place`, at `at_ns`.
    #[inline]
    pub(crate) fn new(geometry: &Geometry, place: Place, lbn: u64, at_ns: u64) -> Self {
        let zone = &geometry.zones[place.zone as usize];
        Self {
            lbn,
            at_ns,
            track_end: lbn + u64::from(zone.sectors_per_track.divisor - place.sector),
            sector_ns: zone.sector_ns,
            sectors_per_ns: zone.sectors_per_ns,
            place,
        }
    }

    #[inline]
    const fn end_ns(&self, end: u64) -> u64 {
        self.at_ns + (((end - self.lbn) * self.sector_ns) >> TRANSFER_BITS)
    }

    /// Moves on to the next track, to be at its first sector.
    #[inline(never)]
    fn turn(&mut self, geometry: &Geometry, spindle: &Spindle) {
        let (next, switch_ns) = geometry.next_track(&self.place);
        let ready_ns = self.end_ns(self.track_end) + switch_ns;
        let at_ns = ready_ns + spindle.wait_ns(spindle.angle_at(ready_ns), next.angle);
        *self = Self::new(geometry, next, self.track_end, at_ns);
    }

    /// When the sectors before `end` have passed by, in ns; `end` is not before the present position.
    #[inline]
    pub(crate) fn passed_ns(mut self, geometry: &Geometry, spindle: &Spindle, end: u64) -> u64 {
        while end > self.track_end {
            self.turn(geometry, spindle);
        }
        self.end_ns(end.max(self.lbn))
    }

    /// Follows until `now_ns`, not beyond `end`; tells up to which sector everything has passed by.
    #[inline]
    pub(crate) fn follow(&mut self, geometry: &Geometry, spindle: &Spindle, now_ns: u64, end: u64) -> u64 {
        loop {
            let track_end = self.track_end.min(end).max(self.lbn);
            let elapsed_ns = now_ns.saturating_sub(self.at_ns);
            // A nanosecond more, so that rounding never withholds a sector whose end `passed_ns` announced for now.
            let passed = ((elapsed_ns + 1).saturating_mul(self.sectors_per_ns + 1) >> 32).min(track_end - self.lbn);
            let lbn = self.lbn + if elapsed_ns == 0 { 0 } else { passed };
            if lbn < self.track_end || lbn >= end {
                return lbn;
            }
            self.turn(geometry, spindle);
        }
    }

    /// Sectors of the present track.
    pub(crate) fn track_sectors(&self, geometry: &Geometry) -> u64 {
        u64::from(geometry.zones[self.place.zone as usize].sectors_per_track.divisor)
    }
}
