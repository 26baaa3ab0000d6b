//! Seek history: whether a queue's requests are scattered.

use crate::request::Sector;

/// A request this many sectors away from where the one before ended was a seek.
const SEEK_SECTORS: u64 = 800;

/// Without seek cost, requests that large are no seeks.
pub(in crate::bfq) const LARGE_SECTORS: u32 = 64;

/// More than this many of the last 32 requests make a queue seeky.
const SEEKY: u32 = 19;

/// Whether a request that begins at `sector` is a seek away from `last_end`; 0: from nowhere.
#[inline]
pub(in crate::bfq) fn is_seek(last_end: Sector, sector: Sector, nr_sectors: u32, rotational: bool) -> bool {
    last_end != 0 && sector.abs_diff(last_end) > SEEK_SECTORS && (rotational || nr_sectors < LARGE_SECTORS)
}

/// The last 32 requests of a queue, one bit each.
#[derive(Clone, Copy, Debug)]
pub(in crate::bfq) struct SeekHistory {
    bits: u32,
    /// End of the last request; 0 before the first.
    last_end: Sector,
}

impl Default for SeekHistory {
    /// A new queue begins with a seek.
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

    /// Whether it did nothing but seek.
    #[inline]
    pub(in crate::bfq) fn is_totally_seeky(&self) -> bool {
        self.bits == u32::MAX
    }
}
