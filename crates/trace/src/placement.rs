//! Placement of a trace's sectors on a smaller device than the recorded one.
//!
//! Adjacent sectors must stay adjacent. Otherwise merging and sequential detection see another
//! workload. Separate sectors must not become adjacent. So regions that the trace uses keep their
//! size and order, and only the gaps between them shrink, all by the same factor. If the used
//! regions alone are larger than the device, positions are taken modulo its capacity.

use std::collections::BTreeMap;

use iosched::{Op, Sector};

/// Unit in which used regions are counted: 1 MiB, in sectors.
const GRANULE: u64 = 2048;

/// How a trace was placed on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// The trace fits without changes.
    AsIs,
    /// Gaps were shrunk.
    GapsShrunk {
        /// Remaining part of each gap, percent.
        gap_percent: f64,
    },
    /// Positions were taken modulo the capacity.
    Wrapped {
        /// Sectors that the trace touches, in whole MiB.
        touched_sectors: u64,
    },
}

/// The regions that a trace touches, collected in a first pass. Memory depends
/// on the number of separate regions of whole MiB.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// Start and end of touched regions, in granules. They neither overlap nor adjoin.
    touched: BTreeMap<u64, u64>,
    end: Sector,
}

impl Extent {
    /// Creates an extent without any sectors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request. A discard moves the end of the trace, but uses no region, because it may
    /// cover unused sectors.
    pub fn add(&mut self, op: Op, sector: Sector, nr_sectors: u32) {
        let end = sector.saturating_add(u64::from(nr_sectors));
        self.end = self.end.max(end);
        if matches!(op, Op::Read | Op::Write | Op::WriteZeroes) {
            self.touch(sector / GRANULE, end.div_ceil(GRANULE));
        }
    }

    fn touch(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, &until)) = self.touched.range(..=start).next_back() {
            if until >= end {
                return;
            }
            if until >= start {
                start = before;
            }
        }
        while let Some((&next, &until)) = self.touched.range(start..=end).next() {
            end = end.max(until);
            self.touched.remove(&next);
        }
        self.touched.insert(start, end);
    }

    /// Returns the sector after the last one: the smallest capacity, in sectors, on which the trace
    /// fits without changes.
    #[must_use]
    pub fn end_sector(&self) -> Sector {
        self.end
    }

    /// Returns the placement on a device of `capacity_sectors`, at least 1.
    #[must_use]
    pub fn placed_on(&self, capacity_sectors: Sector) -> Placement {
        let touched: u64 = self.touched.iter().map(|(start, end)| end - start).sum();
        let capacity = capacity_sectors / GRANULE;
        let mut placement = Placement { fit: Fit::AsIs, capacity_sectors, regions: Vec::new() };
        if self.end <= capacity_sectors {
            return placement;
        }
        if touched > capacity || touched == 0 {
            placement.fit = Fit::Wrapped { touched_sectors: touched * GRANULE };
            return placement;
        }
        let gaps = self.touched.last_key_value().map_or(0, |(_, end)| *end) - touched;
        let room = capacity - touched;
        let mut before = 0;
        for (&start, &end) in &self.touched {
            let to = before + shrink(start - before, room, gaps);
            placement.regions.push(Region { start, end, to });
            before += end - start;
        }
        placement.fit = Fit::GapsShrunk { gap_percent: (room.min(gaps) as f64 / gaps.max(1) as f64) * 100.0 };
        placement
    }
}

/// Returns the new length of `gap` if `gaps` (the sum of all gaps) must fit into `room`. The new
/// length is at most the old one.
fn shrink(gap: u64, room: u64, gaps: u64) -> u64 {
    if room >= gaps { gap } else { (u128::from(gap) * u128::from(room) / u128::from(gaps)) as u64 }
}

/// A touched region and its new place, in granules.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    end: u64,
    to: u64,
}

/// New positions of the sectors of a trace.
#[derive(Clone, Debug)]
pub struct Placement {
    fit: Fit,
    capacity_sectors: Sector,
    regions: Vec<Region>,
}

impl Placement {
    /// Returns how the trace was placed on the device.
    #[must_use]
    pub fn fit(&self) -> Fit {
        self.fit
    }

    /// Returns the new first sector and length of a request. No request is longer than the device.
    #[must_use]
    pub fn place(&self, sector: Sector, nr_sectors: u32) -> (Sector, u32) {
        let sector = match self.fit {
            Fit::AsIs => return (sector, nr_sectors),
            Fit::GapsShrunk { .. } => self.moved(sector),
            Fit::Wrapped { .. } => sector % self.capacity_sectors.max(1),
        };
        let nr_sectors = u64::from(nr_sectors).min(self.capacity_sectors);
        (sector.min(self.capacity_sectors - nr_sectors), nr_sectors as u32)
    }

    fn moved(&self, sector: Sector) -> Sector {
        let granule = sector / GRANULE;
        let next = self.regions.partition_point(|region| region.start <= granule);
        let Some(index) = next.checked_sub(1) else {
            return self.regions.first().map_or(0, |first| first.to * GRANULE);
        };
        let region = self.regions[index];
        // Only discards use sectors in a gap. Such a sector goes to the end of the preceding
        // region.
        let offset = (sector - region.start * GRANULE).min((region.end - region.start) * GRANULE);
        region.to * GRANULE + offset
    }
}
