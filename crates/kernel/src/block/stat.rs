//! I/O statistics of a device, from `/sys/block/<dev>/stat`. The difference of two readings shows
//! the load between them.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BlockDevice, SECTOR_BYTES};
use crate::roots::value;

/// Counters of one direction since the kernel found the device.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Direction {
    /// Number of completed requests.
    pub requests: u64,
    /// Number of bios that were merged into a request.
    pub merges: u64,
    /// Transferred bytes.
    pub bytes: u64,
    /// Time from queueing to completion, summed over all requests, ms.
    pub waited_ms: u64,
}

impl Direction {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(earlier.requests),
            merges: self.merges.saturating_sub(earlier.merges),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            waited_ms: self.waited_ms.saturating_sub(earlier.waited_ms),
        }
    }
}

/// Statistics of a device. Source: Documentation/admin-guide/iostats.rst of Linux 6.12.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stat {
    /// Counters of reads.
    pub reads: Direction,
    /// Counters of writes.
    pub writes: Direction,
    /// Counters of discards (since Linux 4.18).
    pub discards: Direction,
    /// Number of flushes (since Linux 5.5).
    pub flushes: u64,
    /// Number of requests in flight.
    pub in_flight: u64,
    /// Time with at least one request in flight, ms.
    pub busy_ms: u64,
    /// Time that requests spent in flight, summed over all directions, ms.
    pub queue_ms: u64,
}

impl Stat {
    /// Returns the difference to an `earlier` reading. `in_flight` is not a difference: it is the
    /// number of this reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads.since(&earlier.reads),
            writes: self.writes.since(&earlier.writes),
            discards: self.discards.since(&earlier.discards),
            flushes: self.flushes.saturating_sub(earlier.flushes),
            in_flight: self.in_flight,
            busy_ms: self.busy_ms.saturating_sub(earlier.busy_ms),
            queue_ms: self.queue_ms.saturating_sub(earlier.queue_ms),
        }
    }

    /// Returns the number of completed requests in all directions, without flushes.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.reads.requests + self.writes.requests + self.discards.requests
    }
}

impl FromStr for Stat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let problem =
            || format!("{:?}: these are not the statistics of a disk, which have 11 or more numbers", text.trim());
        let numbers = numbers.ok().filter(|numbers| numbers.len() >= 11).ok_or_else(problem)?;
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        let direction = |at: usize| Direction {
            requests: number(at),
            merges: number(at + 1),
            bytes: number(at + 2).saturating_mul(SECTOR_BYTES),
            waited_ms: number(at + 3),
        };
        Ok(Self {
            reads: direction(0),
            writes: direction(4),
            in_flight: number(8),
            busy_ms: number(9),
            queue_ms: number(10),
            discards: direction(11),
            flushes: number(15),
        })
    }
}

impl BlockDevice {
    /// Returns the statistics so far. Returns `None` if the kernel does not report them or does not
    /// count (`iostats` is 0).
    #[must_use]
    pub fn stat(&self) -> Option<Stat> {
        if self.queue_number::<u8>("iostats") == Some(0) {
            return None;
        }
        value(&self.directory().join("stat"))?.parse().ok()
    }
}
