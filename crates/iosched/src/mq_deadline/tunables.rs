//! Tunables of mq-deadline, as in Linux 6.12. A number that fits into 32 bits but is out of range
//! becomes the nearest valid value. Hexadecimal and octal numbers are accepted. Times are stored in
//! jiffies.

use crate::tunable::{Declarations, Reads, Span, Tuned, tunable};

/// Largest value, as in Linux.
const MAX: u64 = i32::MAX as u64;
/// Smallest value of the tunable that may be negative.
const MIN: u64 = (-(MAX as i64) - 1) as u64;

#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    hz: u32,
    pub(super) read_expire: u64,
    pub(super) write_expire: u64,
    pub(super) prio_aging_expire: u64,
    pub(super) fifo_batch: u32,
    /// Number of read batches before a batch of writes. If negative, writes wait as long as there
    /// are reads.
    pub(super) writes_starved: i32,
    pub(super) front_merges: bool,
    pub(super) async_depth: u32,
}

pub(super) static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "mq-deadline",
    what: "tunable",
    tunables: &[
        tunable!(Tunables.read_expire, "read_expire", Jiffies(500), 0..=MAX, "4.11",
            "a read that is older than this time begins the next batch of reads", { clamps: true, reads: Reads::I32, tuning: Span::of(16, 2_000) }),
        tunable!(Tunables.write_expire, "write_expire", Jiffies(5000), 0..=MAX, "4.11",
            "a write that is older than this time begins the next batch of writes", { clamps: true, reads: Reads::I32, tuning: Span::of(78, 20_000) }),
        tunable!(Tunables.prio_aging_expire, "prio_aging_expire", Jiffies(10_000), 0..=MAX, "5.14",
            "a request of a lower class that is older than this time goes before requests of higher classes", { clamps: true, reads: Reads::I32, tuning: Span::of(1_250, 40_000) }),
        tunable!(Tunables.fifo_batch, "fifo_batch", Requests, 1, 16, 0..=MAX, "4.11",
            "largest number of requests in one batch", { clamps: true, reads: Reads::I32, tuning: Span::of(1, 128) }),
        tunable!(Tunables.writes_starved, "writes_starved", Count, 1, 2, 0..=MAX, "4.11",
            "largest number of consecutive batches of reads while writes wait; negative: no limit", { clamps: true, reads: Reads::I32, signed: true, min: MIN, tuning: Span::or_zero(1, 16) }),
        tunable!(Tunables.front_merges, "front_merges", Switch, 1, 1, 0..=1, "4.11",
            "1: also merge a bio with the beginning of a request", { clamps: true, reads: Reads::I32, tuning: Span::SWITCH }),
        tunable!(Tunables.async_depth, "async_depth", Requests, 1, 256, 1..=MAX, "5.14",
            "number of tags that all requests except reads can hold in total. A write to nr_requests sets async_depth to the same value",
            { clamps: true, reads: Reads::I32, tuning: Span::of(4, 256) }),
    ],
};

impl Tunables {
    pub(super) fn new(hz: u32) -> Tuned<Self> {
        DECLARATIONS.tuned(Self { hz, ..Self::default() })
    }

    /// Returns the longest wait of a read or of another request, in jiffies.
    #[inline]
    pub(super) fn expire(&self, write: bool) -> u64 {
        if write { self.write_expire } else { self.read_expire }
    }

    /// Sets `async_depth` to the number of tags, up to the maximum of the tunable.
    pub(super) fn resized(&mut self, nr_requests: u32) {
        self.async_depth = nr_requests.min(MAX as u32);
    }
}
