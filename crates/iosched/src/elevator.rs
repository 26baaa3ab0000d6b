//! What an elevator is, what it is given, and which ones there are.

use crate::context::{CgroupId, Cgroups, ContextId, Contexts, IoClass, IoPriority, WeightRange};
use crate::decision::{Decision, DecisionLog, MergeSide};
use crate::queue::{DispatchList, MergeCache};
use crate::request::{Bio, RequestId, Requests, Stage};
use crate::time::{SECOND_NS, Time};
use crate::tunable::{Spec, TunableError};

/// What a request queue shows its elevator. One moment lasts as long as one call.
#[derive(Debug)]
pub struct Env {
    /// The present moment.
    pub now: Time,
    /// All requests of the queue; elevators hold ids.
    pub requests: Requests,
    /// All io contexts of the queue.
    pub contexts: Contexts,
    /// All cgroups of the queue.
    pub cgroups: Cgroups,
    /// Where decisions go.
    pub log: DecisionLog,
    /// Jiffies in a second.
    pub hz: u32,
    /// Length of a jiffy in ns.
    pub jiffy_ns: u64,
    /// Whether seeking costs on the device.
    pub rotational: bool,
    /// Whether cgroups are told apart.
    pub groups: bool,
    /// Whether the device queues commands, if the host knows.
    pub command_queueing: Option<bool>,
    /// Hardware queues of the device; always 1 to an elevator of the single-queue layer.
    pub hw_queues: u16,
    /// The ioprio of the bio that is being submitted; only in the multi-queue layer.
    pub(crate) bio_ioprio: IoPriority,
    /// The hardware queue that is being run, for elevators that have a queue for each.
    pub(crate) hw_queue: u16,
    /// Where queued requests are found that a bio may join.
    pub(crate) merging: MergeCache,
    /// What has left the elevator and waits for the device.
    pub(crate) dispatch_list: DispatchList,
    /// The one deadline an elevator may ask for: it is called back then.
    pub(crate) timer: Option<Time>,
    /// The elevator wants the queue run before anything else happens.
    pub(crate) kick: bool,
}

impl Env {
    pub(crate) fn new(now: Time, hz: u32, rotational: bool, groups: bool) -> Self {
        Self {
            now,
            requests: Requests::default(),
            contexts: Contexts::default(),
            cgroups: Cgroups::default(),
            log: DecisionLog::default(),
            hz,
            jiffy_ns: SECOND_NS / u64::from(hz),
            rotational,
            groups,
            command_queueing: None,
            hw_queues: 1,
            bio_ioprio: IoPriority::default(),
            hw_queue: 0,
            merging: MergeCache::default(),
            dispatch_list: DispatchList::default(),
            timer: None,
            kick: false,
        }
    }

    /// Jiffies since the origin, rounded down.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now.as_ns() / self.jiffy_ns
    }

    /// When a timer set now for jiffy number `jiffy` fires: as that begins, but not within the present one.
    pub(crate) fn tick(&self, jiffy: u64) -> Time {
        Time::from_ns(jiffy.max(self.jiffies() + 1).saturating_mul(self.jiffy_ns))
    }

    /// Asks to be called back at the [`tick`](Self::tick) of `jiffy`, to wait for a process' next request until then.
    pub(crate) fn idle_until(&mut self, jiffy: u64) {
        let at = self.tick(jiffy);
        self.timer = Some(at);
        let wait_ns = at.since(self.now);
        self.note(|| Decision::IdleArm { wait_ns });
    }

    /// The callback is no longer asked for: whoever waited need not any more.
    #[inline]
    pub(crate) fn cancel_idle(&mut self) {
        if self.timer.take().is_some() {
            self.note(|| Decision::IdleCancel);
        }
    }

    /// `id` is not queued any more: nothing may merge with it.
    #[inline(always)]
    pub(crate) fn unqueue(&mut self, id: RequestId) {
        let request = &mut self.requests[id];
        debug_assert_eq!(request.stage, Stage::Queued);
        request.stage = Stage::Released;
        if request.hashed {
            let end = request.end();
            self.merging.hash.remove(&mut self.requests, id, end);
        }
        if self.merging.last == Some(id) {
            self.merging.last = None;
        }
    }

    /// The elevator, which has taken `id` out of its own lists, releases it to the dispatch list ahead of the device: in
    /// sector order from where the device is, and with `keep_directions` past no request of the other direction.
    pub(crate) fn release_sorted(&mut self, id: RequestId, keep_directions: bool) {
        self.unqueue(id);
        self.dispatch_list.insert_sorted(&mut self.requests, id, keep_directions);
    }

    /// Records a decision, if decisions are recorded.
    #[inline]
    pub fn note(&mut self, decision: impl FnOnce() -> Decision) {
        self.log.note(self.now, decision);
    }

    /// The process id behind a context.
    #[must_use]
    pub fn pid(&self, context: ContextId) -> u32 {
        self.contexts.get(context).pid
    }

    /// The hardware queue that requests of `context` go to.
    #[inline]
    #[must_use]
    pub fn hw_queue_of(&self, context: ContextId) -> u16 {
        if self.hw_queues == 1 { 0 } else { (context.index() % usize::from(self.hw_queues)) as u16 }
    }

    /// Asks for the queue to be run before anything else is submitted, as a matter of course and not as a decision.
    pub(crate) fn run_queue(&mut self) {
        self.kick = true;
    }

    /// Asks for the queue to be run at once, in the middle of a submission.
    pub fn kick(&mut self) {
        self.kick = true;
        self.note(|| Decision::Kick);
    }
}

/// A policy: which request next, and whether to wait for a better one.
///
/// The request queue calls it in this order for every request: [`prepare`](Self::prepare),
/// [`insert`](Self::insert), [`dispatch`](Self::dispatch) until that gives it out, [`complete`](Self::complete). While it
/// is drained, [`drain`](Self::drain) gives requests out, and [`start`](Self::start) tells when the device takes each. A
/// request that is merged into another while queued is reported by [`absorb`](Self::absorb), its last; one that the
/// device cannot take yet by [`requeue`](Self::requeue), and by `start` when it does.
///
/// In the multi-queue layer `prepare` comes with the insertion, not with the allocation, and then the request is offered
/// to those queued: if one of them takes it, [`absorb_new`](Self::absorb_new) is called and nothing is inserted.
///
/// The elevators of old release requests to the dispatch list, several at once perhaps, rather than give them out: their
/// `dispatch` then returns `None`, and `start` tells when the device takes each.
///
/// `noop` is the smallest elevator there is: read it first.
pub trait Elevator: Send {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Whether `bio` may join the queued request `into`; the queue has checked op and mergeability.
    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        let _ = (env, bio, into);
        true
    }

    /// The queued request that begins where `bio` ends, if this elevator looks for one.
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        let _ = (env, bio);
        None
    }

    /// The queued request before `id` in the order that neighbours are looked for in.
    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId>;

    /// The queued request behind `id` in that order.
    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId>;

    /// A bio joined `id` in front, so that it begins earlier now.
    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// `absorbed` is now part of `survivor` and leaves the elevator; it is freed next.
    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId);

    /// The queued request that `bio` joins and on which side, of an elevator with [`Merging::Own`]. One that the bio would
    /// make longer than `max_sectors` is marked for good and nothing joins it: whoever finds it stops there.
    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let _ = (env, bio);
        None
    }

    /// Of how many of the `nr_requests` tags a request for `bio` may have one; `None`: of all. Only in the multi-queue
    /// layer.
    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let _ = (env, bio, nr_requests);
        None
    }

    /// There are `nr_requests` tags from now on (`u32::MAX`: without limit). Only in the multi-queue layer.
    fn resized(&mut self, nr_requests: u32) {
        let _ = nr_requests;
    }

    /// `id` was allocated for its process and will be inserted, or (multi-queue) offered for merging and then inserted.
    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// `absorbed`, which was prepared and not inserted, is now part of `survivor`; it is freed next.
    fn absorb_new(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let _ = (env, survivor, absorbed);
    }

    /// Takes `id` in.
    fn insert(&mut self, env: &mut Env, id: RequestId);

    /// [`prepare`](Self::prepare) and [`insert`](Self::insert) in one.
    fn add(&mut self, env: &mut Env, id: RequestId) {
        self.prepare(env, id);
        self.insert(env, id);
    }

    /// Gives out the request to serve next, which the device takes at once, or `None` to let it wait.
    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId>;

    /// Gives out something as long as anything is queued, whatever the policy says. The device takes it later.
    fn drain(&mut self, env: &mut Env) -> Option<RequestId>;

    /// The device takes `id`, which was drained, released or requeued.
    fn start(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// The device, which had taken `id`, gives it back undone. It is served before everything else.
    fn requeue(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// The device is done with `id`; it is freed next.
    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// The deadline it asked for has come.
    fn timer(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Whether the queue is run after [`timer`](Self::timer), rather than when the next request comes or is done.
    fn runs_after_timer(&self) -> bool {
        true
    }

    /// The process has exited; its requests under way complete as usual.
    fn exit(&mut self, env: &mut Env, context: ContextId) {
        let _ = (env, context);
    }

    /// The ioprio of a process was changed. Most notice it at the process' next request.
    fn ioprio_changed(&mut self, env: &mut Env, context: ContextId) {
        let _ = (env, context);
    }

    /// The process `from` now waits for I/O of `to` and gives up its turn to it.
    fn yield_to(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        let _ = (env, from, to);
    }

    /// The cgroup is gone: its processes now count for the nearest group above it that is not.
    fn remove_cgroup(&mut self, env: &mut Env, cgroup: CgroupId) {
        let _ = (env, cgroup);
    }

    /// The weights of a cgroup were set.
    fn weight_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        let _ = (env, cgroup);
    }

    /// Which weights of cgroups it takes.
    fn weights(&self) -> WeightRange {
        WeightRange::BFQ
    }

    /// Decisions are recorded from now on: those that tell of changes begin with what is.
    fn recording(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Requests queued: inserted, not given out, not absorbed.
    fn queued(&self) -> usize;

    /// Checks what must always hold between its counters and its contents.
    ///
    /// # Panics
    /// If something does not.
    fn check(&self, env: &Env) {
        let _ = env;
    }

    /// The value of a tunable, in the unit of its declaration.
    ///
    /// # Errors
    /// If there is none of that name.
    fn tunable(&self, name: &str) -> Result<u64, TunableError>;

    /// Sets a tunable. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
    fn set_tunable(&mut self, name: &str, value: &str) -> Result<(), TunableError>;

    /// The tunable `name` was set: what hangs on it follows.
    fn tunable_changed(&mut self, env: &mut Env, name: &str) {
        let _ = (env, name);
    }
}

/// The two request queues that Linux has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// One queue with a limit for each direction of allocation, sync and async: up to Linux 4.20.
    SingleQueue,
    /// blk-mq: one or several hardware queues, each with its tags, from Linux 3.13 on.
    MultiQueue(MultiQueueRules),
}

impl Layer {
    /// Whether this is blk-mq.
    #[must_use]
    pub const fn is_multi_queue(self) -> bool {
        matches!(self, Self::MultiQueue(_))
    }
}

/// What an elevator of the multi-queue layer leaves to the request queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiQueueRules {
    /// How many tags there are unless told otherwise.
    pub tags: Tags,
    /// Who looks for the queued request that a bio may join.
    pub merging: Merging,
    /// How those who wait for a tag are served.
    pub waking: Waking,
    /// The ioprio that one that was never set equals when requests merge.
    pub unset_ioprio: IoPriority,
    /// Whether it is asked for each hardware queue, with queues and batches for each, or once for the device.
    pub per_hw_queue: bool,
}

impl MultiQueueRules {
    /// Most elevators': scheduler tags, the queue's merging, one order for the whole device.
    pub const USUAL: Self = Self {
        tags: Tags::Scheduler,
        merging: Merging::Queue,
        waking: Waking::OnePass,
        unset_ioprio: IoPriority { class: IoClass::None, level: 0 },
        per_hw_queue: false,
    };

    /// Whether requests of two processes may be one.
    #[must_use]
    pub fn same_ioprio(&self, a: IoPriority, b: IoPriority) -> bool {
        let value = |ioprio: IoPriority| if ioprio.class == IoClass::None { self.unset_ioprio } else { ioprio };
        value(a) == value(b)
    }

    /// Where `bio` goes on from `id`, if the two may be one: same op, ioprio and cgroup, one behind the other.
    #[inline]
    pub(crate) fn joins(&self, env: &Env, bio: &Bio, id: RequestId) -> Option<MergeSide> {
        self.may_join(env, bio, id).then(|| env.requests[id].adjacent(bio)).flatten()
    }

    /// Whether `bio` may join `id` if it is next to it.
    #[inline]
    pub(crate) fn may_join(&self, env: &Env, bio: &Bio, id: RequestId) -> bool {
        let request = &env.requests[id];
        request.mergeable
            && request.op == bio.op
            && self.same_ioprio(request.ioprio, env.bio_ioprio)
            && request.cgroup == env.contexts.get(bio.context).cgroup
    }
}

/// The tags that requests have while they are queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tags {
    /// Their own, twice as many as the device has, but at most 256.
    Scheduler,
    /// The device's.
    Device,
}

/// Who looks for the queued request that a bio may join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// The queue: the request merged last, the hash of ends, and [`Elevator::find_front`]; new requests merge, too.
    Queue,
    /// The elevator, with [`Elevator::find_merge`]; requests do not merge with requests.
    Own,
}

/// How those who wait for a tag are served. Linux wakes them in batches from eight wait queues; the recorded runs were made
/// without that, in two ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waking {
    /// Whenever a tag was freed everybody tries once, oldest first, with the limit that holds then.
    OnePass,
    /// At completions, oldest first and from the oldest again after each success, with the limit that held when the wait
    /// began.
    Rescan,
}

/// One elevator of the registry.
pub struct Registered {
    /// Its name, as written to `queue/scheduler`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// The Linux version it came with, or whose rules it has.
    pub since: &'static str,
    /// The Linux version that no longer had it, or had other rules; `None`: it is there today.
    pub until: Option<&'static str>,
    /// The request queue it stands in.
    pub layer: Layer,
    /// How it decides, one thought a line.
    pub how: &'static [&'static str],
    /// When to use it.
    pub when: &'static str,
    /// Its tunables.
    pub tunables: fn() -> Vec<&'static Spec>,
    /// Makes one with its defaults for the queue that `env` shows.
    pub build: fn(&Env) -> Box<dyn Elevator>,
}

/// Every elevator there is, in the order `queue/scheduler` lists them.
pub static ELEVATORS: &[Registered] = &[
    crate::noop::REGISTERED,
    crate::anticipatory::REGISTERED,
    crate::deadline::REGISTERED,
    crate::cfq::REGISTERED,
    crate::cfq::REGISTERED_2_6_34,
    crate::cfq::REGISTERED_2_6_30,
    crate::cfq::linux_2_6_16::REGISTERED,
    crate::mq_deadline::REGISTERED,
    crate::kyber::REGISTERED,
    crate::none::REGISTERED,
    crate::bfq::REGISTERED,
];

/// No elevator of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not an elevator; there are {}", elevator_names().join(", "))]
pub struct UnknownElevator {
    /// The name given.
    pub name: String,
}

/// The names in the registry.
#[must_use]
pub fn elevator_names() -> Vec<&'static str> {
    ELEVATORS.iter().map(|e| e.name).collect()
}

/// The elevator called `name`.
///
/// # Errors
/// If there is none.
pub fn elevator(name: &str) -> Result<&'static Registered, UnknownElevator> {
    ELEVATORS.iter().find(|e| e.name == name).ok_or_else(|| UnknownElevator { name: name.to_owned() })
}
