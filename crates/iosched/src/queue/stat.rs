//! Statistics, as `/sys/block/<dev>/stat` shows them.

use std::fmt;

use crate::request::Op;
use crate::time::{MILLISECOND_NS, Time};

/// Counters of one kind of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatGroup {
    /// Completed requests.
    pub ios: u64,
    /// Bios and requests that merged into a queued request.
    pub merges: u64,
    /// Transferred sectors.
    pub sectors: u64,
    /// Sum of the times from allocation to completion of all requests, ns.
    pub time_ns: u64,
}

/// Statistics of a request queue, as in the file `stat` of sysfs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Reads.
    pub reads: StatGroup,
    /// Writes, and write zeroes.
    pub writes: StatGroup,
    /// Discards.
    pub discards: StatGroup,
    /// Flushes; they have neither merges nor sectors.
    pub flushes: StatGroup,
    /// Requests that are allocated and not complete.
    pub in_flight: u64,
    /// Time with at least one request in flight, ns.
    pub busy_ns: u64,
    /// Sum of the times in flight of all requests, ns.
    pub weighted_ns: u64,
    pub(super) stamp: Time,
}

impl Stat {
    #[inline]
    fn group(&mut self, op: Op) -> &mut StatGroup {
        match op {
            Op::Read => &mut self.reads,
            Op::Write | Op::WriteZeroes => &mut self.writes,
            Op::Discard => &mut self.discards,
            Op::Flush => &mut self.flushes,
        }
    }

    /// Adds the time since the last change of `in_flight`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        let elapsed_ns = now.since(self.stamp);
        if self.in_flight > 0 {
            self.busy_ns += elapsed_ns;
            self.weighted_ns += elapsed_ns * self.in_flight;
        }
        self.stamp = now;
    }

    #[inline]
    pub(super) fn merged(&mut self, op: Op) {
        self.group(op).merges += 1;
    }

    #[inline]
    pub(super) fn completed(&mut self, op: Op, nr_sectors: u32, time_ns: u64) {
        let group = self.group(op);
        group.ios += 1;
        group.sectors += u64::from(nr_sectors);
        group.time_ns += time_ns;
    }
}

impl fmt::Display for Stat {
    /// Formats the 17 columns of the `stat` file, with times in ms.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns / MILLISECOND_NS;
        for group in [&self.reads, &self.writes] {
            write!(f, "{:8} {:8} {:8} {:8} ", group.ios, group.merges, group.sectors, ms(group.time_ns))?;
        }
        write!(f, "{:8} {:8} {:8} ", self.in_flight, ms(self.busy_ns), ms(self.weighted_ns))?;
        let StatGroup { ios, merges, sectors, time_ns } = self.discards;
        write!(f, "{ios:8} {merges:8} {sectors:8} {:8} ", ms(time_ns))?;
        write!(f, "{:8} {:8}", self.flushes.ios, ms(self.flushes.time_ns))
    }
}
