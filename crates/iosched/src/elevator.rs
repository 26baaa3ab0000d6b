//! The trait of an elevator, the optional parts that only some elevators
//! implement, and an entry of the registry.

use std::fmt;

use crate::context::{CgroupId, ContextId, WeightRange};
use crate::env::Env;
use crate::layer::Layer;
use crate::mclock::Progress;
use crate::request::{Bio, MergeSide, RequestId};
use crate::tunable::{Spec, TextSpec, TunableSet};

/// Scheduling policy: chooses the next request, and decides whether to wait for a better one.
///
/// An elevator needs three methods: [`insert`](Self::insert), [`dispatch`](Self::dispatch) and
/// [`absorb`](Self::absorb). All others have a default:
///
/// | purpose | methods |
/// |---|---|
/// | merging | `may_merge`, `find_front`, `former`, `latter`, `merged_front`, `merged_back` |
/// | the life of a request | `prepare`, `insert_at_head`, `add`, `drain`, `start`, `requeue`, `complete` |
/// | waiting for a better request | `timer`, `runs_after_timer`, with [`Env::set_timer`] |
/// | the multi-queue layer | `find_merge`, `limit_depth`, `resized`, `absorb_new` |
/// | tunables | `tunables`, `tunables_mut`, `tunable_changed` |
/// | processes and cgroups | `per_process`, `per_group` |
/// | observation | `recording`, `check` |
///
/// For every request, the queue calls in this order: [`prepare`](Self::prepare),
/// [`insert`](Self::insert), [`dispatch`](Self::dispatch) until it returns the request,
/// [`complete`](Self::complete). While the elevator is drained, [`drain`](Self::drain) returns
/// requests, and [`start`](Self::start) reports when the device takes each.
/// [`absorb`](Self::absorb) reports that a queued request was merged into another request; it is
/// the last call for the merged request. [`requeue`](Self::requeue) reports that the device cannot
/// serve a request yet. `start` then reports when the device takes the request again.
///
/// In the multi-queue layer, `prepare` is called at insertion, not at allocation. The queue then
/// tries to merge the new request with a queued one. If that succeeds, the queue calls
/// [`absorb_new`](Self::absorb_new) and inserts nothing.
///
/// Some elevators of the single-queue layer release requests to the dispatch list, sometimes
/// several together. Their `dispatch` then returns `None`, and `start` reports when the device
/// takes each request.
///
/// `noop` is the smallest elevator: read it first. `docs/elevator-howto.md` shows how to write an
/// elevator outside of this crate.
pub trait Elevator: Send {
    /// Inserts `id`. The request is queued until it is dispatched, released or
    /// absorbed. The queue counts queued requests.
    fn insert(&mut self, env: &mut Env, id: RequestId);

    /// Returns the queued request to serve next, or `None` to wait. The device takes the request
    /// immediately.
    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId>;

    /// Merges the inserted request `absorbed` into `survivor`. The queue frees `absorbed` next.
    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId);

    // ---- merging

    /// Returns whether `bio` may join the queued request `into`. The queue has checked the
    /// operation and whether the request can be merged.
    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        let _ = (env, bio, into);
        true
    }

    /// Returns the queued request that begins where `bio` ends. Elevators that do not search for
    /// such a request return `None`.
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        let _ = (env, bio);
        None
    }

    /// Returns the queued request before `id`, in the order
    /// in which the elevator searches neighbours.
    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let _ = (env, id);
        None
    }

    /// Returns the queued request after `id`, in the order of [`former`](Self::former).
    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let _ = (env, id);
        None
    }

    /// Reports that a bio joined `id` at the front, so `id` begins earlier.
    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// Reports that a bio joined `id` at the back, so `id` ends later.
    fn merged_back(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    // ---- the life of a request

    /// Reports that `id` was allocated for its process. The queue will insert `id`; in the
    /// multi-queue layer it first tries to merge `id`.
    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// Inserts a request that must be served before all queued requests: see
    /// [`Issued::at_head`](crate::Issued::at_head).
    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        self.insert(env, id);
    }

    /// Calls [`prepare`](Self::prepare) and [`insert`](Self::insert).
    fn add(&mut self, env: &mut Env, id: RequestId) {
        self.prepare(env, id);
        self.insert(env, id);
    }

    /// Returns a request as long as any request is queued, even if the policy would wait. The
    /// device takes the request later. An elevator whose [`dispatch`](Self::dispatch) may return
    /// `None` with queued requests must override this method.
    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.dispatch(env)
    }

    /// Reports that the device takes `id`, which was drained, released or requeued.
    fn start(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// Reports that the device returns `id` unserved. The queue serves `id` before everything else.
    fn requeue(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    /// Reports that the device has finished `id`. The queue frees `id` next.
    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let _ = (env, id);
    }

    // ---- waiting for a better request

    /// Reports that the time set with [`Env::set_timer`] has come.
    fn timer(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Returns whether the queue runs after [`timer`](Self::timer). If not, the queue runs at the
    /// next submission or completion.
    fn runs_after_timer(&self) -> bool {
        true
    }

    // ---- the multi-queue layer

    /// Returns the queued request that `bio` can join, and the side. The queue calls this method
    /// only if the elevator has [`Merging::Own`](crate::Merging::Own). If the bio would make the
    /// request longer than `max_sectors`, the elevator marks the request as permanently not
    /// mergeable, and ends the search.
    fn find_merge(&mut self, env: &mut Env, bio: &Bio) -> Option<(RequestId, MergeSide)> {
        let _ = (env, bio);
        None
    }

    /// Returns the number of tags, out of `nr_requests`, that requests like `bio` may use. `None`:
    /// all.
    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let _ = (env, bio, nr_requests);
        None
    }

    /// Reports that there are now `nr_requests` tags (`u32::MAX`: no limit).
    fn resized(&mut self, nr_requests: u32) {
        let _ = nr_requests;
    }

    /// Merges `absorbed`, which was prepared but not inserted, into
    /// `survivor`. The queue frees `absorbed` next.
    fn absorb_new(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let _ = (env, survivor, absorbed);
    }

    // ---- tunables

    /// Returns the tunables, if the elevator has any: a [`Tuned`](crate::Tuned) struct.
    fn tunables(&self) -> Option<&dyn TunableSet> {
        None
    }

    /// Returns the tunables for writing.
    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        None
    }

    /// Reports that the tunable `name` was set, so that the elevator can update dependent state.
    fn tunable_changed(&mut self, env: &mut Env, name: &str) {
        let _ = (env, name);
    }

    // ---- processes and cgroups

    /// Returns the elevator itself if it keeps state for each process.
    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        None
    }

    /// Returns the elevator itself if it keeps state for each cgroup.
    fn per_group(&mut self) -> Option<&mut dyn PerGroup> {
        None
    }

    // ---- observation

    /// Reports that decisions are recorded from now on. An elevator whose events report changes
    /// must now report its present state.
    fn recording(&mut self, env: &mut Env) {
        let _ = env;
    }

    /// Checks the invariants between counters and contents. For example, the elevator must contain
    /// [`Env::queued`] requests.
    ///
    /// # Panics
    /// If an invariant does not hold.
    fn check(&self, env: &Env) {
        let _ = env;
    }
}

/// Events of processes, for an elevator that keeps state for each process.
pub trait PerProcess {
    /// Reports that the process has exited. Its requests in flight complete as usual.
    fn exit(&mut self, env: &mut Env, context: ContextId);

    /// Reports that the ioprio of a process changed. Most elevators use
    /// the new value at the process' next request.
    fn ioprio_changed(&mut self, env: &mut Env, context: ContextId) {
        let _ = (env, context);
    }

    /// Reports that the process `from` now waits for I/O of `to` and gives its turn to `to`.
    fn yield_to(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        let _ = (env, from, to);
    }
}

/// Events of cgroups, for an elevator that keeps state for each cgroup.
pub trait PerGroup {
    /// Reports that the cgroup was removed. Its processes now
    /// belong to the nearest remaining ancestor.
    fn remove_cgroup(&mut self, env: &mut Env, cgroup: CgroupId);

    /// Reports that the weights of a cgroup were set.
    fn weight_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        let _ = (env, cgroup);
    }

    /// Reports that the reservation or the limit of a cgroup was set: see
    /// [`Cgroups::rates`](crate::Cgroups::rates).
    fn rates_changed(&mut self, env: &mut Env, cgroup: CgroupId) {
        let _ = (env, cgroup);
    }

    /// Reports service that a cgroup got from other servers: see
    /// [`RequestQueue::served_elsewhere`](crate::RequestQueue::served_elsewhere).
    fn served_elsewhere(&mut self, env: &mut Env, cgroup: CgroupId, progress: &Progress) {
        let _ = (env, cgroup, progress);
    }
}

/// Function that creates an elevator with its defaults for the queue of `env`.
pub type Build = dyn Fn(&Env) -> Box<dyn Elevator> + Send + Sync;

/// Entry of an elevator in a registry.
#[derive(Clone, Copy)]
pub struct Registered {
    /// Name, as written to `queue/scheduler`: letters, digits, `-`, `_` and `.`.
    pub name: &'static str,
    /// Purpose, in one line.
    pub about: &'static str,
    /// First Linux version with this elevator; empty if no kernel has it. For an elevator that
    /// present Linux lacks, it is the first version that is known to have exactly these rules.
    pub since: &'static str,
    /// Last Linux version that is known to have these rules. `None` if present Linux has the
    /// elevator.
    pub until: Option<&'static str>,
    /// Layer of the request queue that the elevator runs in.
    pub layer: Layer,
    /// How the elevator decides, one idea per line.
    pub how: &'static [&'static str],
    /// When to use the elevator.
    pub when: &'static str,
    /// Accepted weights of cgroups.
    pub weights: WeightRange,
    /// Returns the declarations of the tunables.
    pub tunables: fn() -> Vec<&'static Spec>,
    /// Files other than the tunables, which do not hold one number.
    pub texts: &'static [TextSpec],
    /// Origin of an elevator that Linux does not include, but that some modified kernels have.
    pub out_of_tree: Option<&'static str>,
    /// Creates the elevator.
    pub build: &'static Build,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Registered {
    /// Creates an entry for an elevator of the single-queue layer, without tunables and
    /// descriptions. Set other fields with struct update syntax: `Registered { about: "what it is
    /// for", ..Registered::new(name, build) }`.
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

    /// Returns the versions of Linux with this elevator, or the versions that are known to have its
    /// rules. Examples: `4.11 to today`, `as of 4.19`, `out of tree 3.3.0`. Returns `iosched` for
    /// an elevator that no kernel has.
    #[must_use]
    pub fn kernels(&self) -> String {
        let since = self.since;
        if self.is_in_no_kernel() {
            return "iosched".to_owned();
        }
        match self.until {
            Some(until) if until == since => format!("as of {since}"),
            Some(until) => format!("as of {since} to {until}"),
            None if self.out_of_tree.is_some() => format!("out of tree {since}"),
            None => format!("{since} to today"),
        }
    }

    /// Returns whether no kernel has the elevator: it is only for simulation and for served disks.
    #[must_use]
    pub const fn is_in_no_kernel(&self) -> bool {
        self.since.is_empty()
    }

    /// Returns whether present Linux (6.12 and later) has the elevator, so that a user can set it
    /// on a device. Other elevators are for simulation and for served disks.
    #[must_use]
    pub const fn is_in_linux(&self) -> bool {
        !self.since.is_empty() && self.until.is_none() && self.out_of_tree.is_none()
    }
}
