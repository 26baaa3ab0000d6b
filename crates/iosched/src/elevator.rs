//! What an elevator is, what it is given, and which ones there are.

use crate::context::{CgroupId, Cgroups, ContextId, Contexts, WeightRange};
use crate::decision::{Decision, DecisionLog};
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
    #[inline]
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

    /// Asks for the queue to be run at once, in the middle of a submission.
    pub fn kick(&mut self) {
        self.kick = true;
        self.note(|| Decision::Kick);
    }
}

/// A policy: which request next, and whether to wait for a better one.
///
/// The request queue calls it in this order for every request: [`allocate`](Self::allocate),
/// [`insert`](Self::insert), [`dispatch`](Self::dispatch) until that gives it out, [`complete`](Self::complete). While it
/// is drained, [`drain`](Self::drain) gives requests out, and [`start`](Self::start) tells when the device takes each. A
/// request that is merged into another while queued is reported by [`absorb`](Self::absorb), its last.
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

    /// `id` was allocated for its process and will be inserted.
    fn allocate(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// Takes `id` in.
    fn insert(&mut self, env: &mut Env, id: RequestId);

    /// [`allocate`](Self::allocate) and [`insert`](Self::insert) in one.
    fn add(&mut self, env: &mut Env, id: RequestId) {
        self.allocate(env, id);
        self.insert(env, id);
    }

    /// Gives out the request to serve next, which the device takes at once, or `None` to let it wait.
    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId>;

    /// Gives out something as long as anything is queued, whatever the policy says. The device takes it later.
    fn drain(&mut self, env: &mut Env) -> Option<RequestId>;

    /// The device takes `id`, which was drained.
    fn start(&mut self, env: &mut Env, id: RequestId) {
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

    /// The process has exited; its requests under way complete as usual.
    fn exit(&mut self, env: &mut Env, context: ContextId) {
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
    MultiQueue,
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
pub static ELEVATORS: &[Registered] =
    &[crate::noop::REGISTERED, crate::anticipatory::REGISTERED, crate::deadline::REGISTERED, crate::cfq::REGISTERED];

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
