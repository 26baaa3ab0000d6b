//! CFQ's tunables. Times are kept in ns.

use crate::tunable::{Declarations, tunable};

/// Upper end of CFQ's ranges, as in Linux.
const MAX: u64 = u32::MAX as u64;
const MS: u64 = crate::time::MILLISECOND_NS;
const US: u64 = crate::time::MICROSECOND_NS;

/// Values of the tunables.
#[derive(Clone, Debug, Default)]
pub(super) struct Tunables {
    pub(super) quantum: u32,
    pub(super) fifo_expire_sync_ns: u64,
    pub(super) fifo_expire_async_ns: u64,
    pub(super) back_seek_max_kb: u64,
    pub(super) back_seek_penalty: u64,
    pub(super) slice_sync_ns: u64,
    pub(super) slice_async_ns: u64,
    pub(super) slice_async_rq: u32,
    pub(super) slice_idle_ns: u64,
    pub(super) group_idle_ns: u64,
    pub(super) low_latency: bool,
    pub(super) target_latency_ns: u64,
    pub(super) yielding: bool,
}

pub(super) static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "cfq",
    what: "tunable",
    tunables: &[
        tunable!(
            Tunables.quantum,
            "quantum",
            Requests,
            1,
            8,
            1..=MAX,
            "2.6.6",
            "requests one queue may have in the device while others wait; half of it late in a slice"
        ),
        tunable!(
            Tunables.fifo_expire_sync_ns,
            "fifo_expire_sync",
            Milliseconds,
            MS,
            125,
            1..=MAX,
            "2.6.10",
            "after this age a sync request is served first in its queue's turn"
        ),
        tunable!(
            Tunables.fifo_expire_async_ns,
            "fifo_expire_async",
            Milliseconds,
            MS,
            250,
            1..=MAX,
            "2.6.10",
            "after this age an async request is served first in its queue's turn"
        ),
        tunable!(
            Tunables.back_seek_max_kb,
            "back_seek_max",
            Kibibytes,
            1,
            16384,
            0..=MAX,
            "2.6.10",
            "how far behind the head a backward seek may reach"
        ),
        tunable!(
            Tunables.back_seek_penalty,
            "back_seek_penalty",
            Factor,
            1,
            2,
            1..=MAX,
            "2.6.10",
            "how many times dearer a backward seek counts than one forward"
        ),
        tunable!(
            Tunables.slice_sync_ns,
            "slice_sync",
            Milliseconds,
            MS,
            100,
            1..=MAX,
            "2.6.13",
            "base time slice of a sync queue (of level 4)"
        ),
        tunable!(
            Tunables.slice_async_ns,
            "slice_async",
            Milliseconds,
            MS,
            40,
            1..=MAX,
            "2.6.13",
            "base time slice of an async queue (of level 4)"
        ),
        tunable!(
            Tunables.slice_async_rq,
            "slice_async_rq",
            Requests,
            1,
            2,
            1..=MAX,
            "2.6.13",
            "requests an async slice may dispatch, times twice (8 - level)"
        ),
        tunable!(
            Tunables.slice_idle_ns,
            "slice_idle",
            Milliseconds,
            MS,
            8,
            0..=MAX,
            "2.6.13",
            "how long to wait for the next request of a queue worth it; 0 at first on a device without seek cost"
        ),
        tunable!(
            Tunables.group_idle_ns,
            "group_idle",
            Milliseconds,
            MS,
            8,
            0..=MAX,
            "2.6.36",
            "how long to wait on the last queue of a group; 0 at first without groups"
        ),
        tunable!(
            Tunables.low_latency,
            "low_latency",
            Switch,
            1,
            1,
            0..=1,
            "2.6.32",
            "scale slices to target_latency, and hold async requests back after delayed sync ones"
        ),
        tunable!(
            Tunables.target_latency_ns,
            "target_latency",
            Milliseconds,
            MS,
            300,
            1..=MAX,
            "3.4",
            "within which every queue of a class should get its turn"
        ),
        tunable!(
            Tunables.yielding,
            "yield",
            Switch,
            1,
            0,
            0..=1,
            "patches of 2010",
            "queue yielding: a task that waits for another's I/O gives up its turn to it"
        ),
        tunable!(Tunables.slice_idle_ns, "slice_idle_us", Microseconds, US, 8000, 0..=MAX, "4.8",
            "slice_idle in us", { alias_of: Some("slice_idle") }),
        tunable!(Tunables.group_idle_ns, "group_idle_us", Microseconds, US, 8000, 0..=MAX, "4.8",
            "group_idle in us", { alias_of: Some("group_idle") }),
        tunable!(Tunables.slice_sync_ns, "slice_sync_us", Microseconds, US, 100_000, 1..=MAX, "4.8",
            "slice_sync in us", { alias_of: Some("slice_sync") }),
        tunable!(Tunables.slice_async_ns, "slice_async_us", Microseconds, US, 40_000, 1..=MAX, "4.8",
            "slice_async in us", { alias_of: Some("slice_async") }),
        tunable!(Tunables.target_latency_ns, "target_latency_us", Microseconds, US, 300_000, 1..=MAX, "4.8",
            "target_latency in us", { alias_of: Some("target_latency") }),
    ],
};

impl Tunables {
    /// The defaults on a device of that kind.
    pub(super) fn new(rotational: bool, groups: bool) -> Self {
        let mut tunables = Self::default();
        DECLARATIONS.set_defaults(&mut tunables);
        if !rotational {
            tunables.slice_idle_ns = 0;
        }
        if !groups {
            tunables.group_idle_ns = 0;
        }
        tunables
    }

    pub(super) fn slice_ns(&self, sync: bool) -> u64 {
        if sync { self.slice_sync_ns } else { self.slice_async_ns }
    }

    pub(super) fn fifo_expire_ns(&self, sync: bool) -> u64 {
        if sync { self.fifo_expire_sync_ns } else { self.fifo_expire_async_ns }
    }
}
