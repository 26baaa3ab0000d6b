//! BFQ, Budget Fair Queueing, as in Linux 6.12.
//!
//! Every process has a queue for its sync requests; async requests share a queue per class and
//! level. Queues take turns and get budgets of sectors, not of time, in the order of virtual finish
//! times (B-WF2Q+). Each queue therefore gets its share of the served sectors, and none lags behind
//! by more than a budget. While idling is worthwhile, the disk waits a short time for the next
//! request of the active queue instead of seeking away. In the meantime, the disk serves requests
//! of other queues, as far as they do not delay the active queue. BFQ raises the weights of queues
//! for which an interactive user seems to wait. Groups of queues share by weight in the same way,
//! level by level.
//!
//! Each file contains the code of one decision.
//! - `schedule`: the queue to serve. `dispatch`: the length of its turn. `budget`: its budget.
//!   `expire`: the charge for a turn.
//! - `queue`: the next request of a queue. `insert`: whether a new request preempts.
//! - `idle`: when to idle. `inject`: other requests to serve while idling. `waker`: the queues that
//!   wake each other.
//! - `weights`: whether shares must be enforced. `raising`: the queues whose weights are raised.
//!   `burst`: the new queues whose weights are not raised.
//! - `think`: the behaviour of a process. `merge`: which processes share a queue. `position`: the
//!   candidates for sharing. `split`: the end of sharing.
//! - `process`: the queues of processes. `group`: the groups of queues. `peak_rate`: the rate of
//!   the device. `tags`: limits on tags.
//!
//! The state of `budget`, `burst`, `peak_rate` and `weights` is in these files. The other data
//! structures are in `data`.

mod budget;
mod burst;
mod check;
mod complete;
mod data;
mod dispatch;
mod expire;
mod group;
mod idle;
mod inject;
mod insert;
mod merge;
mod peak_rate;
mod position;
mod process;
mod queue;
mod raising;
mod rules;
mod schedule;
mod split;
mod state;
mod tags;
mod think;
mod tunables;
mod waker;
mod weights;

use std::cell::Cell;

use budget::Budgets;
use burst::Burst;
use data::depth::QueueDepth;
use data::entity::Entities;
use data::group::Groups;
use data::injection::Sample;
use data::process::Process;
use data::queue::{QueueId, Queues, Waiting};
use data::reported::ReportedStates;
use data::turn::Turn;
use peak_rate::PeakRate;
use tunables::{DECLARATIONS, Tunables};
use weights::Weights;

use crate::collections::{Id, List};
use crate::context::{CgroupId, ContextId, IoClass, IoPriority, LEVEL_DEFAULT};
use crate::elevator::{Elevator, PerGroup, PerProcess, Registered};
use crate::env::Env;
use crate::layer::{Layer, MultiQueueRules, Waking};
use crate::parts::sorted::inherit_fifo_place;
use crate::request::{Bio, RequestId, Sector};
use crate::time::{MILLISECOND_NS, SECOND_NS, Time};
use crate::tunable::{TunableSet, Tuned};

pub(crate) const REGISTERED: Registered = Registered {
    about: "gives each process a fair share of sectors, and favours interactive programs; for \
            desktops and shared disks",
    since: "4.12",
    until: None,
    layer: Layer::MultiQueue(MultiQueueRules {
        waking: Waking::Rescan,
        unset_ioprio: IoPriority { class: IoClass::BestEffort, level: LEVEL_DEFAULT },
        ..MultiQueueRules::USUAL
    }),
    how: &[
        "Each process has a queue for its sync requests. Async requests share one queue for each \
         class and level.",
        "In its turn, a queue has a budget of sectors. The order of the turns follows virtual finish times (B-WF2Q+), \
         so shares by weight are exact.",
        "The real-time class goes first, the idle class last. bfq also shares the disk between cgroups by weight, at \
         each level of the tree.",
        "A queue that uses its budget quickly gets a larger budget next time. A queue that idles gets a smaller \
         budget.",
        "For a slow queue, bfq counts time instead of sectors. Therefore random I/O cannot take the whole disk.",
        "A queue that looks interactive (new, or with small and regular requests) gets a higher \
         weight for some time.",
        "If a queue will soon send more requests, bfq can wait for this queue (slice_idle). bfq waits only if the \
         wait makes the disk faster, or if the queue would otherwise miss its share.",
        "While bfq waits, it serves a few requests of other queues. bfq learns how many such requests do no harm.",
        "Processes that work at the same place of the disk, or that started together, can share a queue. bfq ends \
         the sharing as soon as the shared queue saves no more seeks.",
        "Async requests and sync writes can use only a part of the tags. This part is smaller while any queue has a \
         raised weight.",
    ],
    when: "Rotating disks and slow flash, on a desktop or where processes share the disk by ionice or cgroup weight. \
        Do not use bfq for fast SSDs.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("bfq", &|env| Box::new(Bfq::new(env)))
};

struct Bfq {
    tunables: Tuned<Tunables>,
    rules: rules::Rules,
    /// Present time, and the jiffy that contains it.
    clock: Cell<(Time, i64)>,
    entities: Entities,
    queues: Queues,
    groups: Groups,
    /// Processes by [`ContextId::index`].
    processes: Vec<Option<Process>>,
    /// Waiting queues. The queue that entered its tree last is first.
    waiting: List<Waiting>,

    /// Queue in service.
    active: Option<QueueId>,
    turn: Turn,
    sample: Sample,
    /// Number of queues that wait or are in service.
    busy: u32,
    /// Number of busy queues by class. A queue that changes its class while it is busy is added to
    /// one counter and subtracted from another, as in Linux.
    busy_of_class: [u32; 3],
    /// Number of busy queues that are raised. It can be negative after low_latency was turned off,
    /// as in Linux.
    raised_busy: i32,
    weights: Weights,
    pending_groups: u32,
    burst: Burst,

    /// Number of queued requests.
    queued: u32,
    /// Number of requests in the device.
    in_driver: u32,
    /// End of the last dispatched request.
    position: Sector,
    /// Queue of the last completed request, if it belongs to one process.
    last_completed: Option<QueueId>,
    /// Time of the last completion, ns; 0: never.
    last_completion_ns: u64,
    peak_rate: PeakRate,
    budgets: Budgets,
    depth: QueueDepth,
    reported: ReportedStates,
}

impl Bfq {
    fn new(env: &Env) -> Self {
        Self {
            tunables: Tunables::new(env),
            rules: rules::Rules::of(env.kernel),
            clock: Cell::new((Time::ZERO, 0)),
            entities: Entities::default(),
            queues: Queues::default(),
            groups: Groups::new((env.now.as_ns() / env.jiffy_ns) as i64),
            processes: Vec::new(),
            waiting: List::default(),
            active: None,
            turn: Turn::default(),
            sample: Sample::default(),
            busy: 0,
            busy_of_class: [0; 3],
            raised_busy: 0,
            weights: Weights::default(),
            pending_groups: 0,
            burst: Burst::default(),
            queued: 0,
            in_driver: 0,
            position: 0,
            last_completed: None,
            last_completion_ns: 0,
            peak_rate: PeakRate::new(env),
            budgets: Budgets::default(),
            depth: QueueDepth::default(),
            reported: ReportedStates::default(),
        }
    }

    /// Returns the present time in jiffies. It is signed, so that
    /// [`NEVER`](data::queue::NEVER) is before all other times.
    #[inline]
    fn jiffies(&self, env: &Env) -> i64 {
        // Cached: this is called a dozen times per request, and a division each time would be slow.
        let (now, jiffies) = self.clock.get();
        if now == env.now {
            return jiffies;
        }
        let jiffies = (env.now.as_ns() / env.jiffy_ns) as i64;
        self.clock.set((env.now, jiffies));
        jiffies
    }

    /// Converts milliseconds to jiffies, rounded up.
    #[inline]
    fn milliseconds(&self, ms: u64) -> i64 {
        let hz = u64::from(self.tunables.hz);
        (ms * hz).div_ceil(SECOND_NS / MILLISECOND_NS) as i64
    }

    /// Returns a fraction of a second in jiffies, rounded down.
    #[inline]
    fn second_fraction(&self, fraction: u64) -> i64 {
        (u64::from(self.tunables.hz) / fraction) as i64
    }

    #[inline]
    fn queue_of_request(env: &Env, id: RequestId) -> QueueId {
        QueueId::new(env.requests[id].elevator)
    }

    /// Returns the cgroup that a request counts for.
    fn cgroup_of_request(&self, env: &Env, id: RequestId) -> CgroupId {
        env.cgroups.living(env.requests[id].cgroup)
    }

    /// Returns the queue that `bio` would go to, if its process has one.
    fn queue_of_bio(&mut self, env: &mut Env, bio: &Bio) -> Option<QueueId> {
        self.process(bio.context)?;
        let cgroup = env.cgroups.living(env.contexts.get(bio.context).cgroup);
        self.notice_cgroup(env, bio.context, cgroup);
        self.queue_of(bio.context, bio.is_sync())
    }
}

impl Elevator for Bfq {
    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        // A sync bio must not wait for an async request, and a bio
        // may only join requests of its own queue.
        if bio.is_sync() && !env.requests[into].is_sync() {
            return false;
        }
        let Some(queue) = self.queue_of_bio(env, bio) else { return false };
        let queue = self.merge_if_close(env, bio.context, queue, bio.sector);
        queue == Self::queue_of_request(env, into)
    }

    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        let queue = self.queue_of_bio(env, bio)?;
        self.queues[queue].sorted.find(&env.requests, bio.end())
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of_request(env, id)].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of_request(env, id)].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        let queue = Self::queue_of_request(env, id);
        let slot = &mut self.queues[queue];
        slot.sorted.moved_forward(&mut env.requests, id);
        let next = slot.next;
        self.queues.set_next(&env.requests, queue, next);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let [queue, other] = [survivor, absorbed].map(|id| Self::queue_of_request(env, id));
        if queue == other {
            inherit_fifo_place(&mut self.queues[queue].fifo, &mut env.requests, survivor, absorbed);
        }
        if self.queues[queue].next == Some(absorbed) {
            self.queues.set_next(&env.requests, queue, Some(survivor));
        }
        self.remove_request(env, other, absorbed);
        self.forget_request(env, other, absorbed);
    }

    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        self.tags_for(env, bio, nr_requests)
    }

    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        self.prepare_request(env, id);
    }

    fn absorb_new(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.forget_request(env, Self::queue_of_request(env, absorbed), absorbed);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.insert_request(env, id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        self.try_dispatch(env)
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.force_dispatch(env)
    }

    fn start(&mut self, env: &mut Env, id: RequestId) {
        self.enter_device(Self::queue_of_request(env, id));
    }

    fn requeue(&mut self, env: &mut Env, id: RequestId) {
        self.leave_device(env, Self::queue_of_request(env, id));
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        self.complete_request(env, id);
    }

    fn timer(&mut self, env: &mut Env) {
        self.wait_over(env);
    }

    fn check(&self, env: &Env) {
        self.check_all(env);
    }

    fn tunable_changed(&mut self, env: &mut Env, name: &str) {
        self.follow_tunable(env, name);
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }

    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        Some(self)
    }

    fn per_group(&mut self) -> Option<&mut dyn PerGroup> {
        Some(self)
    }
}

impl PerProcess for Bfq {
    fn exit(&mut self, env: &mut Env, context: ContextId) {
        self.exit_process(env, context);
    }
}

impl PerGroup for Bfq {
    fn remove_cgroup(&mut self, env: &mut Env, cgroup: CgroupId) {
        self.remove_group(env, cgroup);
    }

    fn weight_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        self.note_weight(env, cgroup);
    }
}
