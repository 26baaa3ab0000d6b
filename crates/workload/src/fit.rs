//! A trace on a smaller device than it was recorded on.
//!
//! What lies next to each other must stay so, or merging and sequential detection see another workload; what lies
//! apart must not fall together. So regions that the trace touches keep their size and order, and only the gaps
//! between them shrink, all by the same factor. If even the touched regions are too much, positions wrap around.

use iosched::{Op, Sector};

use crate::trace::{Entry, Trace};

/// Touched regions are counted in MiB.
const GRANULE: u64 = 2048;

/// How a trace was brought onto a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// It fits as it is.
    AsIs,
    /// Gaps were shrunk.
    GapsShrunk {
        /// What is left of each gap, in per cent.
        gap_percent: f64,
    },
    /// Positions were taken modulo the capacity.
    Wrapped {
        /// Sectors the trace touches, in whole MiB.
        touched_sectors: u64,
    },
}

/// A touched region and where it goes, in granules.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    end: u64,
    to: u64,
}

impl Trace {
    /// See [`Trace::fitted`].
    pub(crate) fn fit(&self, capacity_sectors: Sector) -> (Option<Self>, Fit) {
        if self.end_sector() <= capacity_sectors {
            return (None, Fit::AsIs);
        }
        let mut regions = touched(self.entries());
        let touched: u64 = regions.iter().map(|region| region.end - region.start).sum();
        let capacity = capacity_sectors / GRANULE;
        let place = |sector: Sector, nr_sectors: u32| {
            let nr_sectors = u64::from(nr_sectors).min(capacity_sectors);
            (sector.min(capacity_sectors - nr_sectors), nr_sectors as u32)
        };
        if touched > capacity || touched == 0 {
            let entries = self.entries().iter().map(|entry| {
                let (sector, nr_sectors) = place(entry.sector() % capacity_sectors, entry.nr_sectors);
                entry.moved(sector, nr_sectors)
            });
            let trace = self.with_entries(entries.collect(), self.processes().to_vec());
            return (Some(trace), Fit::Wrapped { touched_sectors: touched * GRANULE });
        }
        let gaps = regions.last().map_or(0, |region| region.end) - touched;
        let room = capacity - touched;
        let mut before = 0;
        for region in &mut regions {
            let gaps_before = region.start - before;
            region.to = before + shrink(gaps_before, room, gaps);
            before += region.end - region.start;
        }
        let entries = self.entries().iter().map(|entry| {
            let (sector, nr_sectors) = place(moved(&regions, entry.sector()), entry.nr_sectors);
            entry.moved(sector, nr_sectors)
        });
        let trace = self.with_entries(entries.collect(), self.processes().to_vec());
        (Some(trace), Fit::GapsShrunk { gap_percent: (room.min(gaps) as f64 / gaps.max(1) as f64) * 100.0 })
    }
}

/// `gap` of `gaps` in `room`, never longer than it was.
fn shrink(gap: u64, room: u64, gaps: u64) -> u64 {
    if room >= gaps { gap } else { (u128::from(gap) * u128::from(room) / u128::from(gaps)) as u64 }
}

/// The regions that data is read from or written to, in order. Discards may cover what nobody ever touches.
fn touched(entries: &[Entry]) -> Vec<Region> {
    let data = entries.iter().filter(|entry| matches!(entry.op(), Op::Read | Op::Write | Op::WriteZeroes));
    let mut all: Vec<(u64, u64)> = data
        .map(|entry| (entry.sector() / GRANULE, (entry.sector() + u64::from(entry.nr_sectors)).div_ceil(GRANULE)))
        .collect();
    all.sort_unstable();
    let mut regions: Vec<Region> = Vec::new();
    for (start, end) in all {
        match regions.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => regions.push(Region { start, end, to: 0 }),
        }
    }
    regions
}

/// Where a sector goes.
fn moved(regions: &[Region], sector: Sector) -> Sector {
    let granule = sector / GRANULE;
    let next = regions.partition_point(|region| region.start <= granule);
    let Some(index) = next.checked_sub(1) else {
        return regions.first().map_or(0, |first| first.to * GRANULE);
    };
    let region = regions[index];
    // In a gap (discards only): at the end of the region before it.
    let offset = (sector - region.start * GRANULE).min((region.end - region.start) * GRANULE);
    region.to * GRANULE + offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched::{Flags, Time};
    use iosched_trace::TraceRequest;
    use proptest::prelude::*;

    fn trace(places: &[(u64, u32)]) -> Trace {
        let requests = places.iter().enumerate().map(|(i, &(sector, nr_sectors))| {
            Ok(TraceRequest {
                arrival: Time::from_ns(i as u64),
                pid: 1,
                device: None,
                op: Op::Read,
                flags: Flags::SYNC,
                sector,
                nr_sectors,
                latency_ns: None,
            })
        });
        Trace::collect("t", 1, requests).unwrap()
    }

    #[test]
    fn what_fits_is_left_alone() {
        let (fitted, fit) = trace(&[(0, 8), (1000, 8)]).fit(1008);
        assert!(fitted.is_none() && fit == Fit::AsIs);
    }

    #[test]
    fn what_touches_too_much_wraps() {
        let (fitted, fit) = trace(&[(0, 8), (5 * GRANULE, 8)]).fit(GRANULE + 10);
        assert_eq!(fit, Fit::Wrapped { touched_sectors: 2 * GRANULE });
        let sectors: Vec<u64> = fitted.unwrap().entries().iter().map(Entry::sector).collect();
        assert_eq!(sectors, [0, 5 * GRANULE % (GRANULE + 10)]);
    }

    proptest! {
        #[test]
        fn shrinking_gaps_keeps_order_neighbours_and_separation(
            places in proptest::collection::vec((0u64..1 << 30, 1u32..3000), 1..60),
            spare in 0u64..100_000,
        ) {
            let whole = trace(&places);
            let needed: u64 = touched(whole.entries()).iter().map(|r| (r.end - r.start) * GRANULE).sum();
            let (fitted, fit) = whole.fit(needed + spare);
            prop_assume!(fitted.is_some());
            let small = fitted.unwrap();
            let shrunk = matches!(fit, Fit::GapsShrunk { .. });
            prop_assert!(shrunk);
            prop_assert!(small.end_sector() <= needed + spare);
            for (a, x) in whole.entries().iter().zip(small.entries()) {
                prop_assert_eq!(a.nr_sectors, x.nr_sectors);
                for (b, y) in whole.entries().iter().zip(small.entries()) {
                    prop_assert_eq!(a.sector().cmp(&b.sector()), x.sector().cmp(&y.sector()));
                    let end = |e: &Entry| e.sector() + u64::from(e.nr_sectors);
                    prop_assert!(end(a) != b.sector() || end(x) == y.sector());
                }
            }
        }
    }
}
