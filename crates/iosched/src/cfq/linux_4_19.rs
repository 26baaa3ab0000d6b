//! CFQ of Linux 4.19, the last version of CFQ. It counts in ns, supports cgroups, and has more
//! statistics of think times and seeks.

use super::Cfq;
use super::clock::Nanoseconds;
use super::data::queue::QueueId;
use super::generation::Generation;
use super::ncq;
use super::tunables::{MAX, Tunables, YIELD};
use crate::context::WeightRange;
use crate::elevator::Registered;
use crate::env::Env;
use crate::layer::Layer;
use crate::request::Flags;
use crate::time::{MICROSECOND_NS as US, MILLISECOND_NS as MS};
use crate::tunable::{Declarations, Span, Tuned, tunable};

pub(crate) const REGISTERED: Registered = Registered {
    about: "gives each process a fair time slice, and uses ionice and cgroup weights; for disks \
            that many processes share",
    since: "4.19",
    until: Some("4.19"),
    layer: Layer::SingleQueue,
    how: &[
        "Each process has a queue for its sync requests. Async requests share one queue for each \
         class and level.",
        "Queues take turns in time slices. Higher levels get longer slices. The real-time class \
         goes first, the idle class last.",
        "Within its slice, a queue is served in sector order, from the place of the last request. A request past its \
         deadline goes first.",
        "If a queue will probably send more requests soon, the scheduler waits for the queue (slice_idle) instead of \
         moving the head away.",
        "CFQ serves all queues with many seeks as one group, and all async queues as another group. These groups \
         take turns with the sequential queues.",
        "Processes that work at the same place of the disk share a queue while the shared queue saves seeks.",
        "cgroups share the disk by weight.",
        "With many queues, slices become shorter, so that each queue gets a turn within target_latency. If a sync \
         request took too long, CFQ allows only a few async requests in the device. Afterwards, CFQ slowly allows \
         more.",
    ],
    when: "Rotating disks that many processes share, desktops, ionice and cgroup weights.",
    tunables: || DECLARATIONS.specs().collect(),
    weights: WeightRange::CFQ,
    ..Registered::new("cfq", &|env| Box::new(Cfq::<Linux4_19>::new(env)))
};

/// CFQ of Linux 4.19.
pub(super) enum Linux4_19 {}

impl Generation for Linux4_19 {
    type Clock = Nanoseconds;

    fn declarations() -> &'static Declarations<Tunables> {
        &DECLARATIONS
    }

    /// Returns the defaults. On devices that are not rotational, CFQ does not idle for queues.
    /// Without groups, it does not idle for a group's last queue.
    fn tunables(env: &Env) -> Tuned<Tunables> {
        let mut tunables = Tunables::new(env, &DECLARATIONS);
        if !env.rotational {
            tunables.slice_idle = 0;
        }
        if !env.groups {
            tunables.group_idle = 0;
        }
        tunables
    }

    const NCQ: ncq::Rules = ncq::Rules { first: -1, yes_is_final: true, spares_idlers: true };
    const GROUPS: bool = true;
    const UNIQUE_SECTORS: bool = false;
    const OVERDUE_PASSES_LIMITS: bool = true;
    const LIFTED_BY: Flags = Flags::PRIO;
    const ASYNC_FOLLOWS_LATE: bool = true;
    const CLASS_CHANGE_ENDS_WORKLOAD: bool = true;
    const PREEMPTION_ENDS_WORKLOAD: bool = true;
    const SEEKY_LOSES_DEPTH_EARLY: bool = true;
    const ONLY_SYNC_QUEUE_IS_FREE: bool = true;
    const TREES_HAVE_THINK_TIMES: bool = true;
    const HINT_JUDGES_QUEUE: bool = true;

    /// Returns a fixed time after now, independent of other queues.
    #[inline]
    fn idle_key(_: &Cfq<Self>, env: &Env, _: QueueId) -> i64 {
        Cfq::<Self>::key_with_idle_delay(env.now.as_ns(), env)
    }

    /// Returns the whole slice of the queue.
    #[inline]
    fn residual_of_unstarted(cfq: &mut Cfq<Self>, id: QueueId) -> Option<i64> {
        Some(cfq.scaled_slice(id) as i64)
    }

    #[inline]
    fn should_idle(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.tunables.slice_idle > 0 && cfq.should_idle(env, id)
    }

    /// Extends the turn so that the group does not lose its share because it has no request.
    #[inline]
    fn should_wait_busy(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        let queue = &cfq.queues[id];
        queue.is_empty()
            && cfq.is_last_at_its_end(env, id)
            && !cfq.groups[queue.group].think_time.is_longer_than(cfq.tunables.group_idle)
    }

    #[inline]
    fn empty_gives_way(cfq: &Cfq<Self>, env: &Env, active: QueueId, new: QueueId) -> bool {
        cfq.joins_no_idle(new) || !Self::should_idle(cfq, env, active)
    }
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
            "requests that one queue can have in the device while other queues wait; half of this number near the end of a slice",
            { tuning: Span::of(1, 64) }
        ),
        tunable!(
            Tunables.fifo_expire_sync,
            "fifo_expire_sync",
            Milliseconds,
            MS,
            125,
            1..=MAX,
            "2.6.10",
            "a sync request that is older than this time is served first when its queue has its turn",
            { tuning: Span::of(8, 1_000) }
        ),
        tunable!(
            Tunables.fifo_expire_async,
            "fifo_expire_async",
            Milliseconds,
            MS,
            250,
            1..=MAX,
            "2.6.10",
            "an async request that is older than this time is served first when its queue has its turn",
            { tuning: Span::of(16, 4_000) }
        ),
        tunable!(
            Tunables.back_seek_max_kb,
            "back_seek_max",
            Kibibytes,
            1,
            16384,
            0..=MAX,
            "2.6.10",
            "longest distance of a backward seek from the head",
            { tuning: Span::or_zero(256, 1_048_576) }
        ),
        tunable!(
            Tunables.back_seek_penalty,
            "back_seek_penalty",
            Factor,
            1,
            2,
            1..=MAX,
            "2.6.10",
            "cost of a backward seek, as a multiple of a forward seek",
            { tuning: Span::of(1, 16) }
        ),
        tunable!(
            Tunables.slice_sync,
            "slice_sync",
            Milliseconds,
            MS,
            100,
            1..=MAX,
            "2.6.13",
            "base time slice of a sync queue (at level 4)",
            { tuning: Span::of(12, 800) }
        ),
        tunable!(
            Tunables.slice_async,
            "slice_async",
            Milliseconds,
            MS,
            40,
            1..=MAX,
            "2.6.13",
            "base time slice of an async queue (at level 4)",
            { tuning: Span::of(5, 320) }
        ),
        tunable!(
            Tunables.slice_async_rq,
            "slice_async_rq",
            Requests,
            1,
            2,
            1..=MAX,
            "2.6.13",
            "an async slice can dispatch 2 * (8 - level) times this number of requests",
            { tuning: Span::of(1, 32) }
        ),
        tunable!(
            Tunables.slice_idle,
            "slice_idle",
            Milliseconds,
            MS,
            8,
            0..=MAX,
            "2.6.13",
            "time to wait for the next request of a queue; the default is 0 on a device without seek times",
            { tuning: Span::or_zero(1, 32) }
        ),
        tunable!(
            Tunables.group_idle,
            "group_idle",
            Milliseconds,
            MS,
            8,
            0..=MAX,
            "2.6.36",
            "time to wait for the next request if a group has only one queue left; the default is 0 without groups",
            { tuning: Span::or_zero(1, 32) }
        ),
        tunable!(
            Tunables.low_latency,
            "low_latency",
            Switch,
            1,
            1,
            0..=1,
            "2.6.32",
            "1: shorten slices to meet target_latency; allow fewer async requests while sync requests are slow",
            { tuning: Span::SWITCH }
        ),
        tunable!(
            Tunables.target_latency,
            "target_latency",
            Milliseconds,
            MS,
            300,
            1..=MAX,
            "3.4",
            "time in which every queue of a class should get a turn",
            { tuning: Span::of(38, 2_400) }
        ),
        YIELD,
        tunable!(Tunables.slice_idle, "slice_idle_us", Microseconds, US, 8000, 0..=MAX, "4.8",
            "the value of slice_idle in us", { alias_of: Some("slice_idle") }),
        tunable!(Tunables.group_idle, "group_idle_us", Microseconds, US, 8000, 0..=MAX, "4.8",
            "the value of group_idle in us", { alias_of: Some("group_idle") }),
        tunable!(Tunables.slice_sync, "slice_sync_us", Microseconds, US, 100_000, 1..=MAX, "4.8",
            "the value of slice_sync in us", { alias_of: Some("slice_sync") }),
        tunable!(Tunables.slice_async, "slice_async_us", Microseconds, US, 40_000, 1..=MAX, "4.8",
            "the value of slice_async in us", { alias_of: Some("slice_async") }),
        tunable!(Tunables.target_latency, "target_latency_us", Microseconds, US, 300_000, 1..=MAX, "4.8",
            "the value of target_latency in us", { alias_of: Some("target_latency") }),
    ],
};
