//! CFQ of Linux 2.6.30. All queues are in one tree, sorted by class first. There are no kinds of
//! work, no shared queues and no scaled slices. CFQ can serve a queue close to the head instead of
//! the active queue, but does not merge the two queues.
//!
//! The key of a queue contains its rank above its time, so that one comparison covers classes and
//! turns. The rank follows from the present class. A queue whose class rises in service does not
//! move, but new queues are compared with its new class.

use super::Cfq;
use super::clock::{Clock as _, Jiffies};
use super::data::queue::{QueueId, will_not_follow_up};
use super::data::service_tree::{Class, TreeIndex};
use super::data::serving::Verdict;
use super::generation::{CLOSE_SECTORS, Generation};
use super::ncq;
use super::tunables::{Tunables, in_jiffies as common};
use crate::context::{ContextId, WeightRange};
use crate::decision::Workload;
use crate::elevator::Registered;
use crate::env::Env;
use crate::layer::Layer;
use crate::parts::seek::ProcessSeeks;
use crate::request::{RequestId, Sector};
use crate::time::MILLISECOND_NS;
use crate::tunable::Declarations;

pub(crate) const REGISTERED: Registered = Registered {
    about: "CFQ of 2009: fair time slices; sync and async queues take turns, and quantum limits even a single process",
    since: "2.6.30",
    until: Some("2.6.30"),
    layer: Layer::SingleQueue,
    how: &[
        "Each process has a queue for its sync requests. Async requests share one queue for each \
         class and level.",
        "All queues take turns in one order: by class, then by arrival. Higher levels get longer \
         time slices.",
        "Within its slice, a queue is served in sector order, from the place of the last request. A request past its \
         deadline goes first.",
        "If a process will probably send more requests soon, the scheduler waits for the process (slice_idle). On a \
         device with command queueing, the scheduler does not wait for a process with many seeks.",
        "While other queues wait, a queue has at most quantum requests in the device. A queue that is alone has \
         up to four times as many.",
        "When a queue becomes empty, a queue whose next request is close to the head can go next. A request is close \
         if its distance from the head is at most the mean seek distance of the process.",
    ],
    when: "Experiments with a kernel of 2009, and with the effect of quantum on a single process.",
    tunables: || DECLARATIONS.specs().collect(),
    weights: WeightRange::CFQ,
    ..Registered::new("cfq-2.6.30", &|env| Box::new(Cfq::<Linux2_6_30>::new(env)))
};

/// Longest idle time for a seeky process, ns.
const SEEKY_WAIT_NS: u64 = 2 * MILLISECOND_NS;
/// Limit on requests in the device for a queue that is alone, as a multiple of quantum.
const ALONE: u32 = 4;
/// Position of the rank in a key, above the time.
const RANK_SHIFT: u32 = 60;
const TIME_MASK: i64 = (1 << RANK_SHIFT) - 1;

/// CFQ of Linux 2.6.30.
pub(super) enum Linux2_6_30 {}

fn ranked(class: Class, time: i64) -> i64 {
    let rank = match class {
        Class::RealTime => 0,
        Class::BestEffort => 1,
        Class::Idle => 2,
    };
    rank << RANK_SHIFT | time.clamp(0, TIME_MASK)
}

impl Cfq<Linux2_6_30> {
    /// Returns the seek statistics of a process.
    fn seeks_of(&self, process: ContextId) -> ProcessSeeks {
        self.process_seeks.get(process.index()).copied().unwrap_or_default()
    }
}

impl Generation for Linux2_6_30 {
    type Clock = Jiffies;

    fn declarations() -> &'static Declarations<Tunables> {
        &DECLARATIONS
    }

    const NCQ: ncq::Rules = ncq::Rules { first: 1, yes_is_final: false, spares_idlers: false };
    const ONE_TREE: bool = true;
    const EMPTY_LEAVES_SERVICE: bool = true;
    const REAL_TIME_CUTS_IN: bool = true;
    const USED_SLICE_FALLS_TO_ANY: bool = true;
    const LONG_THINKER_IS_NOT_AWAITED: bool = false;
    const GOES_ON_WAITING: bool = true;

    // ---- Requests of a queue

    /// Uses the present expiry time and the age of the oldest merged request.
    fn is_overdue(cfq: &Cfq<Self>, env: &Env, id: RequestId) -> bool {
        let request = &env.requests[id];
        let expire = cfq.tunables.fifo_expire(request.is_sync());
        Jiffies::at(env, request.allocated).saturating_add(expire) <= Jiffies::now(env)
    }

    /// Chooses again, from the head position, only if the leaving request was next.
    fn next_without(cfq: &Cfq<Self>, env: &Env, queue: QueueId, id: RequestId) -> Option<RequestId> {
        let next = cfq.queues[queue].next;
        if next == Some(id) { cfq.next_after(env, queue, id, cfq.position) } else { next }
    }

    /// Keeps the places in the FIFO.
    fn succeed(cfq: &mut Cfq<Self>, env: &mut Env, queue: QueueId, _: RequestId, absorbed: RequestId) {
        let next = Self::next_without(cfq, env, queue, absorbed);
        cfq.queues.set_next(&env.requests, queue, next);
    }

    // ---- Place in service

    fn class_changed(cfq: &mut Cfq<Self>, id: QueueId) {
        let key = ranked(cfq.queues[id].class, cfq.queues.key(id) & TIME_MASK);
        cfq.queues.set_key(id, key);
    }

    fn idle_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        let tree = &cfq.groups[cfq.queues[id].group].trees[TreeIndex::ONE.index()];
        let last = tree.last_key_but(&cfq.queues, id).map(|key| (key & TIME_MASK) as u64);
        ranked(Class::Idle, Cfq::<Self>::key_with_idle_delay(last.unwrap_or_else(|| Jiffies::now(env)), env))
    }

    fn front_key(cfq: &Cfq<Self>, _: &Env, id: QueueId) -> i64 {
        ranked(cfq.queues[id].class, 0)
    }

    /// Returns the present time, plus an offset that is larger for lower priorities, plus the
    /// residual of the last slice. The offset has 32 bits: a negative offset becomes very large.
    fn turn_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        let queue = &cfq.queues[id];
        let offset = i64::from(cfq.slice_offset(id, cfq.busy_queues) as u32);
        ranked(queue.class, Jiffies::now(env) as i64 + offset + queue.residual)
    }

    // ---- Choosing a queue

    fn judge_active(cfq: &mut Cfq<Self>, env: &mut Env, active: QueueId) -> Verdict {
        let queue = &cfq.queues[active];
        if cfq.turn.slice_used(Jiffies::now(env)) && !cfq.turn.must_dispatch {
            return Verdict::Expire(None);
        }
        if queue.class != Class::RealTime && cfq.busy_real_time != 0 {
            return Verdict::TimeOut;
        }
        if !queue.is_empty() {
            return Verdict::Stay;
        }
        if let Some(cooperator) = Self::close_cooperator(cfq, active) {
            cfq.queues[cooperator].coop = true;
            return Verdict::Expire(Some(cooperator));
        }
        if env.timer.is_some() || (queue.in_flight > 0 && queue.idle_window) {
            return Verdict::Wait;
        }
        Verdict::Expire(None)
    }

    /// Returns the first queue of the tree and clears its mark as a cooperator, so that CFQ may
    /// switch from it to others.
    fn choose(cfq: &mut Cfq<Self>, _: &mut Env) -> Option<QueueId> {
        let first = cfq.groups[super::data::group::GroupId::ROOT].trees[TreeIndex::ONE.index()].queues.first()?;
        cfq.queues[first].coop = false;
        Some(first)
    }

    fn served_with(cfq: &Cfq<Self>, id: QueueId) -> (Class, Workload) {
        let queue = &cfq.queues[id];
        (queue.class, queue.workload())
    }

    // ---- Dispatching

    fn may_dispatch(cfq: &Cfq<Self>, _: &Env, id: QueueId) -> bool {
        let queue = &cfq.queues[id];
        let [_, sync_in_flight] = cfq.in_flight;
        if sync_in_flight > 0 && !queue.sync {
            return false;
        }
        let idle_class = queue.class == Class::Idle;
        let max = if idle_class { 1 } else { cfq.tunables.quantum };
        queue.in_flight < max || (!idle_class && cfq.busy_queues == 1 && queue.in_flight < max.saturating_mul(ALONE))
    }

    // ---- Behaviour

    fn observe_seek(cfq: &mut Cfq<Self>, _: &Env, _: QueueId, context: ContextId, sector: Sector, nr_sectors: u32) {
        if cfq.process_seeks.len() <= context.index() {
            cfq.process_seeks.resize_with(context.index() + 1, ProcessSeeks::default);
        }
        cfq.process_seeks[context.index()].record(sector, nr_sectors);
    }

    fn is_scattered(cfq: &Cfq<Self>, _: QueueId, context: ContextId) -> bool {
        cfq.queue_depth.queues_commands() && cfq.seeks_of(context).is_seeky()
    }

    // ---- Idling

    fn should_idle(cfq: &Cfq<Self>, _: &Env, id: QueueId) -> bool {
        cfq.queues[id].idle_window
    }

    fn should_wait_busy(_: &Cfq<Self>, _: &Env, _: QueueId) -> bool {
        false
    }

    fn waits_after(_: &mut Cfq<Self>, env: &Env, completed: RequestId) -> bool {
        !will_not_follow_up(&env.requests[completed])
    }

    fn has_answer_to_come(cfq: &Cfq<Self>, _: QueueId) -> bool {
        cfq.in_driver > 0
    }

    fn wait_for(cfq: &Cfq<Self>, env: &Env, process: ContextId) -> u64 {
        let seeks = cfq.seeks_of(process);
        if seeks.trusted_mean().is_some() && seeks.is_seeky() {
            cfq.tunables.slice_idle.min(SEEKY_WAIT_NS.div_ceil(env.jiffy_ns))
        } else {
            cfq.tunables.slice_idle
        }
    }

    // ---- Preemption

    fn empty_gives_way(_: &Cfq<Self>, _: &Env, _: QueueId, _: QueueId) -> bool {
        false
    }

    // ---- Cooperation

    /// Returns the mean seek distance of the active queue's process.
    fn close_sectors(cfq: &Cfq<Self>) -> Sector {
        let process = cfq.active_process.map(|(process, _)| cfq.seeks_of(process));
        process.and_then(|seeks| seeks.trusted_mean()).unwrap_or(CLOSE_SECTORS)
    }

    /// Returns a cooperator of any kind, but no queue that was itself chosen as a cooperator.
    fn close_cooperator(cfq: &Cfq<Self>, id: QueueId) -> Option<QueueId> {
        cfq.active_process?;
        cfq.closest(cfq.queues[id].original_level).filter(|&other| !cfq.queues[other].coop)
    }
}

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "cfq-2.6.30",
    what: "tunable",
    tunables: &[
        common::quantum(4),
        common::FIFO_EXPIRE_SYNC,
        common::FIFO_EXPIRE_ASYNC,
        common::BACK_SEEK_MAX,
        common::BACK_SEEK_PENALTY,
        common::SLICE_SYNC,
        common::SLICE_ASYNC,
        common::SLICE_ASYNC_RQ,
        common::SLICE_IDLE,
    ],
};
