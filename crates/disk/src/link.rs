//! Links and channels: the time of a transfer, and the commands that wait for the link.

use crate::Command;

/// Fractional bits of the time per sector.
const POINT_BITS: u32 = 16;

/// Rate of a link or channel, stored as the time per sector. A transfer therefore needs neither a
/// division nor floating-point arithmetic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRate {
    /// Time of a sector, in units of 2^-16 ns.
    sector: u64,
}

impl LinkRate {
    /// Creates a rate from bytes per second, at least 1.
    pub(crate) const fn new(bytes_per_second: u64) -> Self {
        Self { sector: ((512_000_000_000 << POINT_BITS) / bytes_per_second as u128) as u64 }
    }

    /// Returns the time of a transfer, ns.
    #[inline]
    pub(crate) const fn ns(self, nr_sectors: u64) -> u64 {
        (nr_sectors * self.sector) >> POINT_BITS
    }

    /// Returns the number of sectors that cross the link from `from_ns` until `to_ns`, rounded up.
    #[inline]
    pub(crate) const fn sectors_in(self, from_ns: u64, to_ns: u64) -> u64 {
        if to_ns <= from_ns { 0 } else { ((to_ns - from_ns) << POINT_BITS).div_ceil(self.sector) }
    }
}

/// A command other than a read. Such commands cross the link in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at_ns: u64,
    pub(crate) command: Command,
    pub(crate) sequence: u64,
}
