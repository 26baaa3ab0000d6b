//! Links and channels: what a transfer takes, and what waits to cross.

use crate::Command;

/// Bits behind the point of the time per sector.
const POINT_BITS: u32 = 16;

/// The rate of a link or channel, as a time per sector: neither a division nor a float per transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkRate {
    /// Time of a sector, in units of 2^-16 ns.
    sector: u64,
}

impl LinkRate {
    /// A link of so many bytes per second, at least one.
    pub(crate) const fn new(bytes_per_second: u64) -> Self {
        Self { sector: ((512_000_000_000 << POINT_BITS) / bytes_per_second as u128) as u64 }
    }

    /// Time of so many sectors, ns.
    #[inline]
    pub(crate) const fn ns(self, nr_sectors: u64) -> u64 {
        (nr_sectors * self.sector) >> POINT_BITS
    }

    /// Sectors that cross from `from_ns` until `to_ns`, a part of one as a whole one.
    #[inline]
    pub(crate) const fn sectors_in(self, from_ns: u64, to_ns: u64) -> u64 {
        if to_ns <= from_ns { 0 } else { ((to_ns - from_ns) << POINT_BITS).div_ceil(self.sector) }
    }
}

/// A command other than a read, in the order in which they cross the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) at_ns: u64,
    pub(crate) command: Command,
    pub(crate) sequence: u64,
}
