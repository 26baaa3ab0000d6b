//! What an elevator is: the trait, what only some elevators take part in, and an entry of the registry.

use std::fmt;

use crate::context::{CgroupId, ContextId, WeightRange};
use crate::env::Env;
use crate::layer::Layer;
use crate::request::{Bio, MergeSide, RequestId};
use crate::tunable::{Spec, TextSpec, TunableSet};

/// A policy: which request next, and whether to wait for a better one.
///
/// Three methods make an elevator: [`insert`](Self::insert), [`dispatch`](Self::dispatch) and
/// [`absorb`](Self::absorb). All others have a default, and are there for elevators that want to know more:
///
/// | what | methods |
/// |---|---|
/// | merging | `may_merge`, `find_front`, `former`, `latter`, `merged_front`, `merged_back` |
/// | a request on its way | `prepare`, `insert_at_head`, `add`, `drain`, `start`, `requeue`, `complete` |
/// | waiting for a better request | `timer`, `runs_after_timer`, with [`Env::set_timer`] |
/// | the multi-queue layer | `find_merge`, `limit_depth`, `resized`, `absorb_new` |
/// | tunables | `tunables`, `tunables_mut`, `tunable_changed` |
/// | processes and cgroups | `per_process`, `per_group` |
/// | looking | `recording`, `check` |
///
/// The request queue calls it in this order for every request: [`prepare`](Self::prepare), [`insert`](Self::insert),
/// [`dispatch`](Self::dispatch) until that gives it out, [`complete`](Self::complete). While it is drained,
/// [`drain`](Self::drain) gives requests out, and [`start`](Self::start) tells when the device takes each. A request
/// that is merged into another while queued is reported by [`absorb`](Self::absorb), its last; one that the device
/// cannot take yet by [`requeue`](Self::requeue), and by `start` when it does.
///
/// In the multi-queue layer `prepare` comes with the insertion, not with the allocation, and then the request is
/// offered to those queued: if one of them takes it, [`absorb_new`](Self::absorb_new) is called and nothing is
/// inserted.
///
/// The elevators of old release requests to the dispatch list, several at once perhaps, rather than give them out:
/// their `dispatch` then returns `None`, and `start` tells when the device takes each.
///
/// `noop` is the smallest elevator there is: read it first. `docs/elevator-howto.md` writes one outside of this crate.
pub trait Elevator: Send {
    /// Takes `id` in. It is queued until it is given out, released or absorbed; the queue counts.
    fn insert(&mut self, env: &mut Env, id: RequestId);

    /// Gives out the queued request to serve next, which the device takes at once, or `None` to let it wait.
    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId>;

    /// `absorbed`, which was inserted, is now part of `survivor` and leaves the elevator; it is freed next.
    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId);

    // ---- merging

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
    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let _ = (env, id);
        None
    }

    /// The queued request behind `id` in that order.
    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let _ = (env, id);
        None
    }

    /// A bio joined `id` in front, so that it begins earlier now.
    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// A bio joined `id` behind, so that it ends later now.
    fn merged_back(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    // ---- a request on its way

    /// `id` was allocated for its process and will be inserted, or (multi-queue) offered for merging and then inserted.
    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// [`insert`](Self::insert), of a request that is to be served before those that wait:
    /// [`Issued::at_head`](crate::Issued::at_head).
    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        self.insert(env, id);
    }

    /// [`prepare`](Self::prepare) and [`insert`](Self::insert) in one.
    fn add(&mut self, env: &mut Env, id: RequestId) {
        self.prepare(env, id);
        self.insert(env, id);
    }

    /// Gives out something as long as anything is queued, whatever the policy says. The device takes it later. An
    /// elevator whose [`dispatch`](Self::dispatch) may give nothing while something is queued has one of its own.
    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.dispatch(env)
    }

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

    // ---- waiting for a better request

    /// The moment it [asked for](Env::set_timer) has come.
    fn timer(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Whether the queue is run after [`timer`](Self::timer), rather than when the next request comes or is done.
    fn runs_after_timer(&self) -> bool {
        true
    }

    // ---- the multi-queue layer

    /// The queued request that `bio` joins and on which side, of an elevator with
    /// [`Merging::Own`](crate::Merging::Own). One that the bio would make longer than `max_sectors` is marked for
    /// good and nothing joins it: whoever finds it stops there.
    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let _ = (env, bio);
        None
    }

    /// Of how many of the `nr_requests` tags a request for `bio` may have one; `None`: of all.
    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let _ = (env, bio, nr_requests);
        None
    }

    /// There are `nr_requests` tags from now on (`u32::MAX`: without limit).
    fn resized(&mut self, nr_requests: u32) {
        let _ = nr_requests;
    }

    /// `absorbed`, which was prepared and not inserted, is now part of `survivor`; it is freed next.
    fn absorb_new(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let _ = (env, survivor, absorbed);
    }

    // ---- tunables

    /// Its tunables, if it has any: a [`Tuned`](crate::Tuned) struct.
    fn tunables(&self) -> Option<&dyn TunableSet> {
        None
    }

    /// The same tunables, to be set.
    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        None
    }

    /// The tunable `name` was set: what hangs on it follows.
    fn tunable_changed(&mut self, env: &mut Env, name: &str) {
        let _ = (env, name);
    }

    // ---- processes and cgroups

    /// Itself, if it keeps something for each process.
    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        None
    }

    /// Itself, if it keeps something for each cgroup.
    fn per_group(&mut self) -> Option<&mut dyn PerGroup> {
        None
    }

    // ---- looking

    /// Decisions are recorded from now on: those that tell of changes begin with what is.
    fn recording(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Checks what must always hold between its counters and its contents, which are [`Env::queued`] requests.
    ///
    /// # Panics
    /// If something does not.
    fn check(&self, env: &Env) {
        let _ = env;
    }
}

/// An elevator that keeps something for each process hears of what becomes of them.
pub trait PerProcess {
    /// The process has exited; its requests under way complete as usual.
    fn exit(&mut self, env: &mut Env, context: ContextId);

    /// The ioprio of a process was changed. Most notice it at the process' next request.
    fn ioprio_changed(&mut self, env: &mut Env, context: ContextId) {
        let _ = (env, context);
    }

    /// The process `from` now waits for I/O of `to` and gives up its turn to it.
    fn yield_to(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        let _ = (env, from, to);
    }
}

/// An elevator that keeps something for each cgroup hears of what becomes of them.
pub trait PerGroup {
    /// The cgroup is gone: its processes now count for the nearest group above it that is not.
    fn remove_cgroup(&mut self, env: &mut Env, cgroup: CgroupId);

    /// The weights of a cgroup were set.
    fn weight_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        let _ = (env, cgroup);
    }
}

/// Makes an elevator with its defaults for the queue that `env` shows.
pub type Build = dyn Fn(&Env) -> Box<dyn Elevator> + Send + Sync;

/// One elevator of a registry.
#[derive(Clone, Copy)]
pub struct Registered {
    /// Its name, as written to `queue/scheduler`: letters, digits, `-`, `_` and `.`.
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
    /// Which weights of cgroups it takes.
    pub weights: WeightRange,
    /// Its tunables.
    pub tunables: fn() -> Vec<&'static Spec>,
    /// Its files beside the tunables, which do not hold one number.
    pub texts: &'static [TextSpec],
    /// Where it comes from, if it is not in Linux but in kernels that others build.
    pub out_of_tree: Option<&'static str>,
    /// Makes one.
    pub build: &'static Build,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Registered {
    /// An elevator of the single-queue layer without tunables, of which nothing is told. Whatever else there is to
    /// say is said by struct update: `Registered { about: "what it is for", ..Registered::new(name, build) }`.
    #[must_use]
    pub const fn new(name: &'static str, build: &'static Build) -> Self {
        Self {
            name,
            about: "",
            since: "",
            until: None,
            layer: Layer::SingleQueue,
            how: &[],
            when: "",
            weights: WeightRange::BFQ,
            tunables: Vec::new,
            texts: &[],
            out_of_tree: None,
            build,
        }
    }

    /// Whether Linux has it today (6.12 and later), so that a user can set it on a device. Any other is for simulation
    /// and for served disks.
    #[must_use]
    pub const fn is_in_linux(&self) -> bool {
        !self.since.is_empty() && self.until.is_none() && self.out_of_tree.is_none()
    }
}
