//! Seek history: whether a queue's requests are scattered.

use crate::request::Sector;

/// Largest distance from the end of the previous request, in sectors, at which a request is not a
/// seek.
const SEEK_SECTORS: u64 = 800;

/// On devices that are not rotational, a request of this size or more is not a seek, in sectors.
pub(in crate::bfq) const LARGE_SECTORS: u32 = 64;

/// A queue is seeky if more than this many of the last 32 requests are seeks.
const SEEKY: u32 = 19;

/// Returns whether a request at `sector` is a seek from `last_end`; 0: there is no last request.
#[inline]
pub(in crate::bfq) fn is_seek(last_end: Sector, sector: Sector, nr_sectors: u32, rotational: bool) -> bool {
    last_end != 0 && sector.abs_diff(last_end) > SEEK_SECTORS && (rotational || nr_sectors < LARGE_SECTORS)
}

/// Last 32 requests of a queue, one bit each.
#[derive(Clone, Copy, Debug)]
pub(in crate::bfq) struct SeekHistory {
    bits: u32,
    /// End of the last request; 0 before the first.
    last_end: Sector,
}

impl Default for SeekHistory {
    /// Creates the history of a new queue, which begins with a seek.
    fn default() -> Self {
        Self { bits: 1, last_end: 0 }
    }
}

impl SeekHistory {
    #[inline]
    pub(in crate::bfq) fn record(&mut self, sector: Sector, nr_sectors: u32, rotational: bool) {
        self.bits = self.bits << 1 | u32::from(is_seek(self.last_end, sector, nr_sectors, rotational));
    }

    #[inline]
    pub(in crate::bfq) fn inserted(&mut self, end: Sector) {
        self.last_end = end;
    }

    #[inline]
    pub(in crate::bfq) fn is_seeky(&self) -> bool {
        self.bits.count_ones() > SEEKY
    }

    /// Returns whether all recorded requests were seeks.
    #[inline]
    pub(in crate::bfq) fn is_totally_seeky(&self) -> bool {
        self.bits == u32::MAX
    }
}
