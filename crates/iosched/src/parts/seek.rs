//! Seek history: whether the requests of a queue or process are scattered.

use super::mean::DecayingMean;
use crate::request::Sector;

/// Largest distance from the previous request, in sectors, at which a request is not a seek on a
/// rotational device.
const SEEK_SECTORS: u64 = 800;
/// Size, in sectors, below which a request counts as scattered on other devices.
const SMALL_SECTORS: u32 = 64;
/// A queue is seeky if more than this many of the last 32 requests are seeks.
const SEEKY: u32 = 4;

/// Last 32 requests of a queue, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekHistory {
    bits: u32,
    /// End of the last request; 0 before the first.
    last_end: Sector,
}

impl SeekHistory {
    #[inline]
    pub(crate) fn record(&mut self, sector: Sector, nr_sectors: u32, rotational: bool) {
        let seek = if rotational {
            self.last_end != 0 && sector.abs_diff(self.last_end) > SEEK_SECTORS
        } else {
            nr_sectors < SMALL_SECTORS
        };
        self.bits = self.bits << 1 | u32::from(seek);
        self.last_end = sector + u64::from(nr_sectors);
    }

    #[inline]
    pub(crate) fn is_seeky(&self) -> bool {
        self.bits.count_ones() > SEEKY
    }
}

/// Largest distance that counts, in sectors. Longer distances count as this distance, so that the
/// sums of means do not overflow.
const DISTANCE_MAX_SECTORS: u64 = 1 << 48;
/// Largest number of samples of a young mean, in the fixed point of the mean.
const SAMPLES_YOUNG: u64 = 60;

/// Mean distance between requests, in sectors, as in Linux 2.6 before 2.6.34. The effect of a
/// single long seek is limited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekMean {
    history: DecayingMean,
    mean_sectors: u64,
}

impl SeekMean {
    /// Returns the distance from the end of a request to a sector.
    #[inline]
    pub(crate) fn distance(sector: Sector, last_end: Sector) -> u64 {
        sector.abs_diff(last_end).min(DISTANCE_MAX_SECTORS)
    }

    /// Adds a seek of the given [`distance`](Self::distance).
    #[inline]
    pub(crate) fn record(&mut self, distance_sectors: u64) {
        let leap_sectors = if self.history.samples <= SAMPLES_YOUNG { 2 << 20 } else { 2 << 16 };
        self.history.record(distance_sectors.min(4 * self.mean_sectors + leap_sectors));
        let DecayingMean { samples, total } = self.history;
        self.mean_sectors = (total + samples / 2) / samples;
    }

    /// Returns the mean; 0 before the first seek.
    #[inline]
    pub(crate) fn mean(&self) -> u64 {
        self.mean_sectors
    }

    /// Returns whether there are enough samples for a valid mean.
    #[inline]
    pub(crate) fn is_trusted(&self) -> bool {
        self.history.is_valid()
    }

    /// Returns whether there are no samples.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.history.samples == 0
    }
}

/// Largest mean distance between requests, in sectors, of a process that is not seeky.
const SEEKY_SECTORS: u64 = 8192;

/// Distances between requests of one process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessSeeks {
    mean: SeekMean,
    /// End of the last request; 0 before the first.
    last_end: Sector,
}

impl ProcessSeeks {
    /// Adds a request.
    pub(crate) fn record(&mut self, sector: Sector, nr_sectors: u32) {
        let first = self.last_end == 0;
        self.mean.record(if first { 0 } else { SeekMean::distance(sector, self.last_end) });
        self.last_end = sector + u64::from(nr_sectors);
    }

    /// Returns the mean in sectors, if it is valid.
    pub(crate) fn trusted_mean(&self) -> Option<u64> {
        self.mean.is_trusted().then_some(self.mean.mean())
    }

    /// Returns whether the mean, valid or not, is large enough for a seeky process.
    pub(crate) fn is_seeky(&self) -> bool {
        self.mean.mean() > SEEKY_SECTORS
    }
}
