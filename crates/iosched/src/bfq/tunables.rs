//! Tunables of bfq.

use crate::env::Env;
use crate::parts::head::BackSeek;
use crate::time::SECOND_NS;
use crate::tunable::{Declarations, Reads, Span, Tuned, tunable};

const MAX: u64 = i32::MAX as u64;
const MS: u64 = crate::time::MILLISECOND_NS;
const US: u64 = crate::time::MICROSECOND_NS;

/// Values of the tunables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    pub(super) hz: u32,
    pub(super) slice_idle_ns: u64,
    pub(super) fifo_expire_sync_ns: u64,
    pub(super) fifo_expire_async_ns: u64,
    pub(super) back_seek_max_kb: u64,
    pub(super) back_seek_penalty: u64,
    /// In sectors; 0: the value follows the device's peak rate.
    pub(super) max_budget: u64,
    pub(super) timeout_jiffies: u64,
    pub(super) strict_guarantees: bool,
    pub(super) low_latency: bool,
}

pub(super) static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "bfq",
    what: "tunable",
    tunables: &[
        tunable!(
            Tunables.fifo_expire_sync_ns,
            "fifo_expire_sync",
            Milliseconds,
            MS,
            125,
            1..=MAX,
            "4.12",
            "a sync request that is older than this time goes first in its queue, at most once per turn",
            { clamps: true, reads: Reads::U64, tuning: Span::of(8, 1_000) }
        ),
        tunable!(
            Tunables.fifo_expire_async_ns,
            "fifo_expire_async",
            Milliseconds,
            MS,
            250,
            1..=MAX,
            "4.12",
            "an async request that is older than this time goes first in its queue, at most once per turn",
            { clamps: true, reads: Reads::U64, tuning: Span::of(16, 4_000) }
        ),
        tunable!(
            Tunables.back_seek_max_kb,
            "back_seek_max",
            Kibibytes,
            1,
            16384,
            0..=MAX,
            "4.12",
            "longest distance of a backward seek from the head",
            { clamps: true, reads: Reads::U64, tuning: Span::or_zero(256, 1_048_576) }
        ),
        tunable!(
            Tunables.back_seek_penalty,
            "back_seek_penalty",
            Factor,
            1,
            2,
            1..=MAX,
            "4.12",
            "cost of a backward seek, as a multiple of a forward seek",
            { clamps: true, reads: Reads::U64, tuning: Span::of(1, 16) }
        ),
        tunable!(
            Tunables.slice_idle_ns,
            "slice_idle",
            Milliseconds,
            MS,
            8,
            0..=MAX,
            "4.12",
            "time to wait for the next request of a queue; 0: do not wait",
            { clamps: true, reads: Reads::U64, wraps: Some(MS), tuning: Span::or_zero(1, 32) }
        ),
        tunable!(
            Tunables.slice_idle_ns,
            "slice_idle_us",
            Microseconds,
            US,
            8000,
            0..=u32::MAX as u64,
            "4.12",
            "the value of slice_idle in us",
            { clamps: true, reads: Reads::U64, wraps: Some(US), alias_of: Some("slice_idle") }
        ),
        tunable!(
            Tunables.max_budget,
            "max_budget",
            Sectors,
            1,
            0,
            0..=MAX,
            "4.12",
            "largest budget of a queue for one turn; 0: as many sectors as the device reads \
             in sequence within timeout_sync",
            { clamps: true, reads: Reads::U64, tuning: Span::or_zero(512, 32_768) }
        ),
        tunable!(
            Tunables.timeout_jiffies,
            "timeout_sync",
            Jiffies(HZ / 8),
            1..=MAX,
            "4.12",
            "longest turn of a queue that has no raised weight",
            { clamps: true, reads: Reads::U64, tuning: Span::of(15, 1_000) }
        ),
        tunable!(
            Tunables.strict_guarantees,
            "strict_guarantees",
            Switch,
            1,
            0,
            0..=1,
            "4.12",
            "1: bfq sends one request at a time and idles for every queue, so shares are exact and throughput is lower",
            { clamps: true, reads: Reads::U64, tuning: Span::SWITCH }
        ),
        tunable!(
            Tunables.low_latency,
            "low_latency",
            Switch,
            1,
            1,
            0..=1,
            "4.12",
            "1: raise the weight of queues that look interactive or soft real-time",
            { clamps: true, reads: Reads::U64, tuning: Span::SWITCH }
        ),
    ],
};

impl Tunables {
    /// Returns the default values.
    pub(super) fn new(env: &Env) -> Tuned<Self> {
        DECLARATIONS.tuned(Self { hz: (SECOND_NS / env.jiffy_ns) as u32, ..Self::default() })
    }

    #[inline]
    pub(super) fn back_seek(&self) -> BackSeek {
        BackSeek { max_sectors: self.back_seek_max_kb * 2, penalty: self.back_seek_penalty }
    }

    #[inline]
    pub(super) fn fifo_expire_ns(&self, sync: bool) -> u64 {
        if sync { self.fifo_expire_sync_ns } else { self.fifo_expire_async_ns }
    }
}
