//! Seek history: whether the requests of a queue or process are scattered.

use super::mean::DecayingMean;
use crate::request::Sector;

/// On a disk: a request this many sectors away from the one before was a seek.
const SEEK_SECTORS: u64 = 800;
/// Without seek cost: smaller requests than this count as scattered.
const SMALL_SECTORS: u32 = 64;
/// More than this many of the last 32 requests make a queue seeky.
const SEEKY: u32 = 4;

/// The last 32 requests of a queue, one bit each.
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

/// Distances longer than this count as this: the sums of means hold them.
const DISTANCE_MAX_SECTORS: u64 = 1 << 48;
/// A mean of so many samples or fewer, in the mean's fixed point, is young.
const SAMPLES_YOUNG: u64 = 60;

/// The mean distance between requests, in sectors, as the 2.6 elevators before 2.6.34 keep it: a single leap counts at
/// most a few times what is usual.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeekMean {
    history: DecayingMean,
    mean_sectors: u64,
}

impl SeekMean {
    /// The distance from the end of one request to a sector.
    #[inline]
    pub(crate) fn distance(sector: Sector, last_end: Sector) -> u64 {
        sector.abs_diff(last_end).min(DISTANCE_MAX_SECTORS)
    }

    /// One more seek, of [`distance`](Self::distance).
    #[inline]
    pub(crate) fn record(&mut self, distance_sectors: u64) {
        let leap_sectors = if self.history.samples <= SAMPLES_YOUNG { 2 << 20 } else { 2 << 16 };
        self.history.record(distance_sectors.min(4 * self.mean_sectors + leap_sectors));
        let DecayingMean { samples, total } = self.history;
        self.mean_sectors = (total + samples / 2) / samples;
    }

    /// The mean; 0 before the first.
    #[inline]
    pub(crate) fn mean(&self) -> u64 {
        self.mean_sectors
    }

    /// Whether there are samples enough to trust the mean.
    #[inline]
    pub(crate) fn is_trusted(&self) -> bool {
        self.history.is_valid()
    }

    /// Whether there was none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.history.samples == 0
    }
}

/// A process whose requests are further apart than this on average is seeky.
const SEEKY_SECTORS: u64 = 8192;

/// How far apart the requests of one process are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessSeeks {
    mean: SeekMean,
    /// End of the last request; 0 before the first.
    last_end: Sector,
}

impl ProcessSeeks {
    /// One more request.
    pub(crate) fn record(&mut self, sector: Sector, nr_sectors: u32) {
        let first = self.last_end == 0;
        self.mean.record(if first { 0 } else { SeekMean::distance(sector, self.last_end) });
        self.last_end = sector + u64::from(nr_sectors);
    }

    /// The mean, in sectors, if there are samples enough to trust it.
    pub(crate) fn trusted_mean(&self) -> Option<u64> {
        self.mean.is_trusted().then_some(self.mean.mean())
    }

    /// Whether the mean, trusted or not, is that of a seeky process.
    pub(crate) fn is_seeky(&self) -> bool {
        self.mean.mean() > SEEKY_SECTORS
    }
}
