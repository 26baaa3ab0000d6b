//! Seek history: whether a queue's requests are scattered.

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
