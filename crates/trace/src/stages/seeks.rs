//! Seeks as btt counts them: the distance from one request to the next, in sectors.
//!
//! The distance is 0 if the start or end of the next request lies within the last request or at its
//! edge. A forward distance is measured from the end of the last request to the start of the next
//! one. A backward distance is measured from start to start. The first distance is measured from
//! sector 0. The mean ignores the direction. For median and mode, backward distances are negative.

use std::collections::BTreeMap;

use iosched::Sector;
use serde::{Deserialize, Serialize};

use super::end_of;
use crate::blktrace::BlkEvent;

/// Maximum number of different distances that are remembered. If a trace has more, medians and
/// modes are unknown.
pub const DISTANCES_MAX: usize = 1 << 20;

/// Distances between successive requests of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeekSummary {
    /// Number of seeks, including those of distance 0.
    pub count: u64,
    /// Mean distance, sectors, regardless of the direction.
    pub mean_sectors: f64,
    /// Median distance, sectors, negative for backward seeks. `None` if there were more than
    /// [`DISTANCES_MAX`] different distances.
    pub median_sectors: Option<i64>,
    /// Most frequent distance, sectors. If several are equally frequent, the smallest. `None` if
    /// there were more than [`DISTANCES_MAX`] different distances.
    pub mode_sectors: Option<i64>,
    /// Number of seeks with the most frequent distance.
    pub mode_count: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Seeks {
    start: Sector,
    end: Sector,
    count: u64,
    sum: u128,
    distances: BTreeMap<i64, u64>,
    incomplete: bool,
}

impl Seeks {
    /// Adds an event. `known` is the number of remembered distances of all devices.
    pub(super) fn add(&mut self, event: &BlkEvent, known: &mut usize) {
        let sector = event.sector;
        let (end, last) = (end_of(event), self.start..=self.end);
        let distance = if last.contains(&sector) || last.contains(&end) {
            0
        } else if sector > self.end {
            signed(sector - self.end)
        } else {
            -signed(self.start.saturating_sub(sector))
        };
        (self.start, self.end) = (sector, end);
        self.count += 1;
        self.sum += u128::from(distance.unsigned_abs());
        if let Some(count) = self.distances.get_mut(&distance) {
            *count += 1;
        } else if *known < DISTANCES_MAX {
            *known += 1;
            self.distances.insert(distance, 1);
        } else {
            self.incomplete = true;
        }
    }

    pub(super) fn summary(&self) -> Option<SeekSummary> {
        let mode = self.distances.iter().rev().max_by_key(|(_, count)| **count);
        let mode = mode.filter(|_| !self.incomplete);
        (self.count > 0).then(|| SeekSummary {
            count: self.count,
            mean_sectors: self.sum as f64 / self.count as f64,
            median_sectors: if self.incomplete { None } else { self.median() },
            mode_sectors: mode.map(|(distance, _)| *distance),
            mode_count: mode.map(|(_, count)| *count),
        })
    }

    fn median(&self) -> Option<i64> {
        let mut before = 0;
        let (distance, _) = self.distances.iter().find(|(_, count)| {
            before += **count;
            before * 2 >= self.count
        })?;
        Some(*distance)
    }
}

fn signed(distance: u64) -> i64 {
    i64::try_from(distance).unwrap_or(i64::MAX)
}
