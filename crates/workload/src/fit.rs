//! Placement of a trace on a smaller device than the recorded one.
//! [`Placement`](iosched_trace::Placement) computes the new sectors; this module applies them.

use std::io;

use iosched::Sector;
use iosched_system::Rows;
use iosched_trace::{Extent, Fit};

use crate::trace::Trace;

impl Trace {
    /// See [`Trace::fitted`].
    pub(crate) fn fit(&self, capacity_sectors: Sector) -> io::Result<(Option<Self>, Fit)> {
        if self.end_sector() <= capacity_sectors {
            return Ok((None, Fit::AsIs));
        }
        let placement = self.extent().placed_on(capacity_sectors);
        let rows = Rows::collect(self.entries().map(|entry| {
            let (sector, nr_sectors) = placement.place(entry.sector(), entry.nr_sectors);
            entry.moved(sector, nr_sectors)
        }))?;
        let trace = self.with_rows(rows.into(), 0..self.len(), self.processes().to_vec());
        Ok((Some(trace), placement.fit()))
    }

    /// Returns whether and how the trace must change to fit on a device with `capacity_sectors`
    /// sectors. `capacity_sectors` must be at least 1.
    #[must_use]
    pub fn fit_on(&self, capacity_sectors: Sector) -> Fit {
        self.extent().placed_on(capacity_sectors).fit()
    }

    fn extent(&self) -> Extent {
        let mut extent = Extent::new();
        self.entries().for_each(|entry| extent.add(entry.op(), entry.sector(), entry.nr_sectors));
        extent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Entry;
    use iosched::{Flags, Op, Time};
    use iosched_trace::TraceRequest;
    use proptest::prelude::*;

    /// Sectors in 1 MiB, the unit in which the test counts touched regions.
    const GRANULE: u64 = 2048;

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
                ioprio: None,
            })
        });
        Trace::collect("t", 1, requests).unwrap()
    }

    #[test]
    fn fitting_trace_is_unchanged() {
        let (fitted, fit) = trace(&[(0, 8), (1000, 8)]).fit(1008).unwrap();
        assert!(fitted.is_none() && fit == Fit::AsIs);
    }

    #[test]
    fn trace_beyond_the_device_wraps() {
        let (fitted, fit) = trace(&[(0, 8), (5 * GRANULE, 8)]).fit(GRANULE + 10).unwrap();
        assert_eq!(fit, Fit::Wrapped { touched_sectors: 2 * GRANULE });
        let sectors: Vec<u64> = fitted.unwrap().entries().map(|entry| entry.sector()).collect();
        assert_eq!(sectors, [0, 5 * GRANULE % (GRANULE + 10)]);
    }

    proptest! {
        #[test]
        fn shrinking_gaps_keeps_order_and_adjacency(
            places in proptest::collection::vec((0u64..1 << 30, 1u32..3000), 1..60),
            spare in 0u64..100_000,
        ) {
            let whole = trace(&places);
            let granules = places.iter().flat_map(|&(sector, nr_sectors)| {
                sector / GRANULE..(sector + u64::from(nr_sectors)).div_ceil(GRANULE)
            });
            let needed = granules.collect::<std::collections::BTreeSet<_>>().len() as u64 * GRANULE;
            let (fitted, fit) = whole.fit(needed + spare).unwrap();
            prop_assume!(fitted.is_some());
            let small = fitted.unwrap();
            let shrunk = matches!(fit, Fit::GapsShrunk { .. });
            prop_assert!(shrunk);
            prop_assert!(small.end_sector() <= needed + spare);
            for (a, x) in whole.entries().zip(small.entries()) {
                prop_assert_eq!(a.nr_sectors, x.nr_sectors);
                for (b, y) in whole.entries().zip(small.entries()) {
                    prop_assert_eq!(a.sector().cmp(&b.sector()), x.sector().cmp(&y.sector()));
                    let end = |e: Entry| e.sector() + u64::from(e.nr_sectors);
                    prop_assert!(end(a) != b.sector() || end(x) == y.sector());
                }
            }
        }
    }
}
