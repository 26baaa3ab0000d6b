//! Tunables of CFQ: the values, and the declarations that generations share.
//!
//! The list of a generation's tunables is in the file of the generation.

use crate::env::Env;
use crate::time::SECOND_NS;
use crate::tunable::{Declarations, Tunable, Tuned, tunable};

/// Upper end of the ranges, as in Linux.
pub(super) const MAX: u64 = u32::MAX as u64;

/// Values of the tunables; times are in ticks of the generation's clock. Tunables
/// that a generation does not declare are 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    /// Jiffies per second.
    pub(super) hz: u32,
    pub(super) quantum: u32,
    pub(super) fifo_expire_sync: u64,
    pub(super) fifo_expire_async: u64,
    pub(super) back_seek_max_kb: u64,
    pub(super) back_seek_penalty: u64,
    pub(super) slice_sync: u64,
    pub(super) slice_async: u64,
    pub(super) slice_async_rq: u32,
    pub(super) slice_idle: u64,
    pub(super) group_idle: u64,
    pub(super) low_latency: bool,
    pub(super) target_latency: u64,
    pub(super) yielding: bool,
}

impl Tunables {
    /// Returns the declared defaults.
    pub(super) fn new(env: &Env, declarations: &'static Declarations<Self>) -> Tuned<Self> {
        let hz = u32::try_from(SECOND_NS / env.jiffy_ns).unwrap_or(u32::MAX);
        declarations.tuned(Self { hz, ..Self::default() })
    }

    pub(super) fn slice(&self, sync: bool) -> u64 {
        if sync { self.slice_sync } else { self.slice_async }
    }

    pub(super) fn fifo_expire(&self, sync: bool) -> u64 {
        if sync { self.fifo_expire_sync } else { self.fifo_expire_async }
    }
}

/// Declaration of `yield`, for the generations that the patches of 2010 apply to.
pub(super) const YIELD: Tunable<Tunables> = tunable!(
    Tunables.yielding,
    "yield",
    Switch,
    1,
    0,
    0..=1,
    "patches of 2010",
    "1: a task that waits for the I/O of another task gives its turn to that task (queue yielding)"
);

/// Declarations for generations that count in jiffies.
pub(super) mod in_jiffies {
    use super::{MAX, Tunables};
    use crate::tunable::{Span, Tunable, tunable};

    pub(in super::super) const fn quantum(default: u64) -> Tunable<Tunables> {
        tunable!(
            Tunables.quantum,
            "quantum",
            Requests,
            1,
            default,
            1..=MAX,
            "2.6.6",
            "requests that one queue can have in the device while others wait",
            { clamps: true, tuning: Span::of(1, 64) }
        )
    }

    pub(in super::super) const FIFO_EXPIRE_SYNC: Tunable<Tunables> = tunable!(
        Tunables.fifo_expire_sync,
        "fifo_expire_sync",
        Jiffies(HZ / 8),
        1..=MAX,
        "2.6.10",
        "a sync request that is older than this time is served first when its queue has its turn",
        { clamps: true, tuning: Span::of(8, 1_000) }
    );

    pub(in super::super) const FIFO_EXPIRE_ASYNC: Tunable<Tunables> = tunable!(
        Tunables.fifo_expire_async,
        "fifo_expire_async",
        Jiffies(HZ / 4),
        1..=MAX,
        "2.6.10",
        "an async request that is older than this time is served first when its queue has its turn",
        { clamps: true, tuning: Span::of(16, 4_000) }
    );

    pub(in super::super) const BACK_SEEK_MAX: Tunable<Tunables> = tunable!(
        Tunables.back_seek_max_kb,
        "back_seek_max",
        Kibibytes,
        1,
        16384,
        0..=MAX,
        "2.6.10",
        "longest distance of a backward seek from the head",
        { clamps: true, tuning: Span::or_zero(256, 1_048_576) }
    );

    pub(in super::super) const BACK_SEEK_PENALTY: Tunable<Tunables> = tunable!(
        Tunables.back_seek_penalty,
        "back_seek_penalty",
        Factor,
        1,
        2,
        1..=MAX,
        "2.6.10",
        "cost of a backward seek, as a multiple of a forward seek",
        { clamps: true, tuning: Span::of(1, 16) }
    );

    pub(in super::super) const SLICE_SYNC: Tunable<Tunables> = tunable!(
        Tunables.slice_sync,
        "slice_sync",
        Jiffies(HZ / 10),
        1..=MAX,
        "2.6.13",
        "base time slice of a sync queue (at level 4)",
        { clamps: true, tuning: Span::of(12, 800) }
    );

    pub(in super::super) const SLICE_ASYNC: Tunable<Tunables> = tunable!(
        Tunables.slice_async,
        "slice_async",
        Jiffies(HZ / 25),
        1..=MAX,
        "2.6.13",
        "base time slice of an async queue (at level 4)",
        { clamps: true, tuning: Span::of(5, 320) }
    );

    pub(in super::super) const SLICE_ASYNC_RQ: Tunable<Tunables> = tunable!(
        Tunables.slice_async_rq,
        "slice_async_rq",
        Requests,
        1,
        2,
        1..=MAX,
        "2.6.13",
        "an async slice can dispatch 2 * (8 - level) times this number of requests",
        { clamps: true, tuning: Span::of(1, 32) }
    );

    pub(in super::super) const SLICE_IDLE: Tunable<Tunables> = tunable!(
        Tunables.slice_idle,
        "slice_idle",
        Jiffies(HZ / 125),
        0..=MAX,
        "2.6.13",
        "time to wait for the next request of a queue",
        { clamps: true, tuning: Span::or_zero(1, 32) }
    );
}
