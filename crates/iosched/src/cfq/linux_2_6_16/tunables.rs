//! Tunables of CFQ of Linux 2.6.16. Times are stored in jiffies.

use crate::tunable::{Declarations, Span, Tuned, tunable};

/// Upper end of the ranges, as in Linux.
const MAX: u64 = u32::MAX as u64;

/// Values of the tunables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    pub(super) hz: u32,
    pub(super) quantum: u32,
    queued: u32,
    pub(super) max_depth: u32,
    fifo_expire_sync: u64,
    fifo_expire_async: u64,
    back_seek_max_kb: u64,
    back_seek_penalty: u64,
    slice_sync: u64,
    slice_async: u64,
    slice_async_rq: u32,
    pub(super) slice_idle: u64,
}

pub(super) static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "cfq-2.6.16",
    what: "tunable",
    tunables: &[
        tunable!(Tunables.quantum, "quantum", Requests, 1, 4, 1..=MAX, "2.6.6",
            "requests that a queue sends together", { clamps: true, tuning: Span::of(1, 64) }),
        tunable!(Tunables.queued, "queued", Requests, 1, 8, 1..=MAX, "2.6.6",
            "no effect, as in Linux 2.6.16", { until: Some("2.6.16"), clamps: true }),
        tunable!(Tunables.max_depth, "max_depth", Requests, 1, 2, 1..=MAX, "2.6.13",
            "if CFQ does not idle for a queue, this queue gets a turn only while the device has fewer than max_depth \
             requests",
            { until: Some("2.6.16"), clamps: true, tuning: Span::of(1, 32) }),
        tunable!(Tunables.fifo_expire_sync, "fifo_expire_sync", Jiffies(HZ / 8), 1..=MAX, "2.6.10",
            "in a queue of one process, a request that is older than this time is served first, once per turn", { clamps: true, tuning: Span::of(8, 1_000) }),
        tunable!(Tunables.fifo_expire_async, "fifo_expire_async", Jiffies(HZ / 4), 1..=MAX, "2.6.10",
            "in an async queue, a request that is older than this time is served first, once per turn", { clamps: true, tuning: Span::of(16, 4_000) }),
        tunable!(Tunables.back_seek_max_kb, "back_seek_max", Kibibytes, 1, 16384, 0..=MAX, "2.6.10",
            "no effect, as in Linux 2.6.16", { clamps: true }),
        tunable!(Tunables.back_seek_penalty, "back_seek_penalty", Factor, 1, 2, 1..=MAX, "2.6.10",
            "no effect, as in Linux 2.6.16", { clamps: true }),
        tunable!(Tunables.slice_sync, "slice_sync", Jiffies(HZ / 10), 1..=MAX, "2.6.13",
            "base time slice (at level 4) of a queue that belongs to one process, or that has sync requests in \
             flight", { clamps: true, tuning: Span::of(12, 800) }),
        tunable!(Tunables.slice_async, "slice_async", Jiffies(HZ / 25), 1..=MAX, "2.6.13",
            "base time slice (at level 4) of all other queues", { clamps: true, tuning: Span::of(5, 320) }),
        tunable!(Tunables.slice_async_rq, "slice_async_rq", Requests, 1, 2, 1..=MAX, "2.6.13",
            "an async slice can dispatch 2 * (8 - level) times this number of requests", { clamps: true, tuning: Span::of(1, 32) }),
        tunable!(Tunables.slice_idle, "slice_idle", Jiffies(HZ / 100), 0..=MAX, "2.6.13",
            "time to wait for the next request of a queue", { clamps: true, tuning: Span::or_zero(1, 32) }),
    ],
};

impl Tunables {
    pub(super) fn new(hz: u32) -> Tuned<Self> {
        DECLARATIONS.tuned(Self { hz, ..Self::default() })
    }

    /// Returns the age, in jiffies, at which a request of a sync or async queue is overdue.
    pub(super) fn fifo_expire(&self, sync: bool) -> u64 {
        if sync { self.fifo_expire_sync } else { self.fifo_expire_async }
    }

    /// Returns the length of a slice, in jiffies.
    pub(super) fn slice(&self, sync: bool, level: u8) -> u64 {
        let base = if sync { self.slice_sync } else { self.slice_async };
        base + 4 * (base / 5) - u64::from(level) * (base / 5)
    }

    /// Returns the largest number of requests in an async slice.
    pub(super) fn async_requests_max(&self, level: u8) -> u64 {
        2 * u64::from(self.slice_async_rq) * (8 - u64::from(level))
    }
}
