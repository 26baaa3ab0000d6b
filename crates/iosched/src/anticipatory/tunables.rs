//! Tunables of the anticipatory elevator. Times are stored in jiffies.

use crate::tunable::{Declarations, Span, Tuned, tunable};

/// Upper end of the ranges, as in Linux.
const MAX: u64 = i32::MAX as u64;

/// Values of the tunables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    pub(super) hz: u32,
    pub(super) read_expire: u64,
    pub(super) write_expire: u64,
    pub(super) antic_expire: u64,
    pub(super) read_batch_expire: u64,
    pub(super) write_batch_expire: u64,
    /// Mean think time of new processes, which the elevator updates.
    pub(super) est_time: u64,
}

pub(super) static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "anticipatory",
    what: "tunable",
    tunables: &[
        tunable!(Tunables.read_expire, "read_expire", Jiffies(HZ / 8), 0..=MAX, "2.6.0",
            "a sync request that is older than this time goes first within its batch", { until: Some("2.6.32"), clamps: true, tuning: Span::of(8, 1_000) }),
        tunable!(Tunables.write_expire, "write_expire", Jiffies(HZ / 4), 0..=MAX, "2.6.0",
            "an async request that is older than this time goes first within its batch", { until: Some("2.6.32"), clamps: true, tuning: Span::of(16, 2_000) }),
        tunable!(Tunables.antic_expire, "antic_expire", Jiffies(HZ / 150), 0..=MAX, "2.6.0",
            "time to wait for the next request of a reader; 0: do not wait", { until: Some("2.6.32"), clamps: true, tuning: Span::or_zero(1, 32) }),
        tunable!(Tunables.read_batch_expire, "read_batch_expire", Jiffies(HZ / 2), 0..=MAX, "2.6.0",
            "length of a batch of sync requests while async requests wait", { until: Some("2.6.32"), clamps: true, tuning: Span::of(62, 4_000) }),
        tunable!(Tunables.write_batch_expire, "write_batch_expire", Jiffies(HZ / 8), 0..=MAX, "2.6.0",
            "length of a batch of async requests while sync requests wait", { until: Some("2.6.32"), clamps: true, tuning: Span::of(16, 1_000) }),
        tunable!(Tunables.est_time, "est_time", Jiffies(0), 0..=MAX, "2.6.0",
            "estimated think time of a new process (Linux shows more estimates in this file)",
            { until: Some("2.6.32"), read_only: true }),
    ],
};

impl Tunables {
    pub(super) fn new(hz: u32) -> Tuned<Self> {
        DECLARATIONS.tuned(Self { hz, ..Self::default() })
    }

    /// Returns the age, in jiffies, at which a sync or async request is overdue.
    pub(super) fn expire(&self, sync: bool) -> u64 {
        if sync { self.read_expire } else { self.write_expire }
    }

    /// Returns the length of a batch of sync or async requests, in jiffies.
    pub(super) fn batch_expire(&self, sync: bool) -> u64 {
        if sync { self.read_batch_expire } else { self.write_batch_expire }
    }
}
