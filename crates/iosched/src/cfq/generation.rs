//! Generations of CFQ: the rules of CFQ in one kernel, in one place.
//!
//! A rule that most generations share is a default here, and its code is in the file of the
//! decision. A generation overrides the rules that differ. The compiler knows the generation, so a
//! rule that a generation lacks costs nothing.

use super::Cfq;
use super::clock::Clock;
use super::data::queue::QueueId;
use super::data::service_tree::Class;
use super::data::serving::Verdict;
use super::ncq;
use super::tunables::Tunables;
use crate::context::ContextId;
use crate::decision::Workload;
use crate::env::Env;
use crate::parts::sorted::inherit_fifo_place;
use crate::request::{Flags, RequestId, Sector};
use crate::tunable::{Declarations, Tuned};

/// Largest distance of close requests, in sectors.
pub(super) const CLOSE_SECTORS: Sector = 8192;

/// Rules of the CFQ of one kernel.
pub(super) trait Generation: Sized + Send + 'static {
    /// Clock in whose ticks this CFQ counts all times.
    type Clock: Clock;

    /// Returns the declarations of the tunables.
    fn declarations() -> &'static Declarations<Tunables>;

    /// Returns the tunables with their default values.
    fn tunables(env: &Env) -> Tuned<Tunables> {
        Tunables::new(env, Self::declarations())
    }

    /// Rules for the detection of command queueing.
    const NCQ: ncq::Rules;

    /// Whether CFQ treats each cgroup separately, if the host enables cgroups.
    const GROUPS: bool = false;

    // ---- Requests of a queue

    /// Whether a queue holds only one request per sector. If a new request begins at the sector of
    /// a queued request, CFQ releases the queued request to the device early. With this rule, CFQ
    /// gives every request to the device by the dispatch list.
    const UNIQUE_SECTORS: bool = true;

    /// Returns whether a request has waited too long in its queue's FIFO.
    #[inline]
    fn is_overdue(cfq: &Cfq<Self>, env: &Env, id: RequestId) -> bool {
        let _ = cfq;
        env.requests[id].deadline <= env.now
    }

    /// Whether CFQ checks the FIFO before the limits of dispatching, so that the limits do not stop
    /// an overdue request. Otherwise CFQ checks the FIFO after the limits, when it has already
    /// decided to dispatch a request.
    const OVERDUE_PASSES_LIMITS: bool = false;

    /// Returns the request that the queue serves next when `id` leaves the queue.
    #[inline(always)]
    fn next_without(cfq: &Cfq<Self>, env: &Env, queue: QueueId, id: RequestId) -> Option<RequestId> {
        cfq.next_after(env, queue, id, env.requests[id].sector)
    }

    /// Makes `survivor` replace `absorbed` as the next request and in the FIFO. Both are in
    /// `queue`, and `absorbed` leaves this queue afterwards.
    fn succeed(cfq: &mut Cfq<Self>, env: &mut Env, queue: QueueId, survivor: RequestId, absorbed: RequestId) {
        if cfq.queues[queue].next == Some(absorbed) {
            cfq.queues.set_next(&env.requests, queue, Some(survivor));
        }
        inherit_fifo_place(&mut cfq.queues[queue].fifo, &mut env.requests, survivor, absorbed);
    }

    // ---- Processes and their queues

    /// Requests with one of these flags lift their queue
    /// out of the idle class and the lower levels.
    const LIFTED_BY: Flags = Flags::FS_EXCL;

    /// Whether a process whose ioprio changed keeps using the async queue of its old ioprio.
    /// Otherwise it uses the async queue of its new ioprio. If there is no queue for the new
    /// ioprio, the present queue of the process becomes the queue of the new ioprio.
    const ASYNC_FOLLOWS_LATE: bool = false;

    /// Handles a possible change of a queue's class.
    #[inline]
    fn class_changed(cfq: &mut Cfq<Self>, id: QueueId) {
        let _ = (cfq, id);
    }

    // ---- Position in service

    /// Whether each group has only one tree for all its queues, sorted by class first. There are
    /// then no kinds of work.
    const ONE_TREE: bool = false;

    /// Whether a queue leaves service with its last request. Otherwise the active queue stays until
    /// its turn ends, so that CFQ can idle for it.
    const EMPTY_LEAVES_SERVICE: bool = false;

    /// Returns the key of an idle-class queue. The key puts the queue at the end of its tree.
    #[inline]
    fn idle_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        let tree = &cfq.groups[cfq.queues[id].group].trees[cfq.tree_index(id).index()];
        let last = tree.last_key_but(&cfq.queues, id);
        Cfq::<Self>::key_with_idle_delay(last.map_or_else(|| Self::Clock::now(env), |key| key as u64), env)
    }

    /// Returns the key of a queue that preempts.
    #[inline]
    fn front_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        cfq.key_before_all(env, id)
    }

    /// Returns the key of a queue that enters service, or stays in service after its turn.
    #[inline]
    fn turn_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        cfq.key_in_turn(env, id)
    }

    /// Returns the residual of the active queue if it times out before its slice has started. The
    /// residual is the time that counts for the next turn. `None`: the residual does not change.
    #[inline]
    fn residual_of_unstarted(cfq: &mut Cfq<Self>, id: QueueId) -> Option<i64> {
        let _ = (cfq, id);
        None
    }

    // ---- Choosing a queue

    /// Decides about the active queue.
    #[inline]
    fn judge_active(cfq: &mut Cfq<Self>, env: &mut Env, active: QueueId) -> Verdict {
        cfq.judge_active(env, active)
    }

    /// Returns the queue to serve next.
    #[inline]
    fn choose(cfq: &mut Cfq<Self>, env: &mut Env) -> Option<QueueId> {
        cfq.choose_by_workload(env)
    }

    /// Returns the class and kind of work of a queue that becomes active.
    #[inline]
    fn served_with(cfq: &Cfq<Self>, id: QueueId) -> (Class, Workload) {
        let _ = id;
        (cfq.serving.class, cfq.serving.workload)
    }

    /// Whether a busy real-time queue ends the turn of any other queue.
    const REAL_TIME_CUTS_IN: bool = false;

    /// Whether a kind of work continues only if the class stays the same.
    const CLASS_CHANGE_ENDS_WORKLOAD: bool = false;

    /// Whether a preempting queue of another kind ends the turn of the present kind.
    const PREEMPTION_ENDS_WORKLOAD: bool = false;

    /// Whether CFQ stops idling for a seeky queue that became empty with most of its slice left.
    /// The queue then no longer counts as deep.
    const SEEKY_LOSES_DEPTH_EARLY: bool = false;

    // ---- Dispatching

    /// Returns whether the active queue may have one more request in the device.
    #[inline]
    fn may_dispatch(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.may_dispatch(env, id)
    }

    /// Whether quantum does not limit a queue that is the only busy sync queue. The number of async
    /// queues does not matter.
    const ONLY_SYNC_QUEUE_IS_FREE: bool = false;

    // ---- Behaviour

    /// Whether CFQ also measures think times of service trees and groups, and ignores async
    /// requests in all think times. Otherwise, CFQ measures only think times of processes, and each
    /// request is a sample.
    const TREES_HAVE_THINK_TIMES: bool = false;

    /// Counts the distance of a new request from the previous request.
    #[inline]
    fn observe_seek(
        cfq: &mut Cfq<Self>,
        env: &Env,
        queue: QueueId,
        context: ContextId,
        sector: Sector,
        nr_sectors: u32,
    ) {
        let _ = context;
        cfq.queues[queue].seek.record(sector, nr_sectors, env.rotational);
    }

    /// Returns whether the requests of a queue are too far apart for idling. `context` has just
    /// sent a request to the queue.
    #[inline]
    fn is_scattered(cfq: &Cfq<Self>, queue: QueueId, context: ContextId) -> bool {
        let _ = context;
        let queue = &cfq.queues[queue];
        !queue.deep && queue.seek.is_seeky()
    }

    // ---- Idling

    /// Whether CFQ does not idle for a queue if the hint of its next request says that no other
    /// request follows.
    const HINT_JUDGES_QUEUE: bool = false;

    /// Returns whether idling for the next request of a busy queue is worthwhile.
    #[inline]
    fn should_idle(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.should_idle(env, id)
    }

    /// Returns whether the last queue of a group gets a longer turn, because the turn would end
    /// before the next request of the queue's process.
    #[inline]
    fn should_wait_busy(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.is_last_at_its_end(env, id)
    }

    /// Returns whether to idle for the active queue, which became empty, after `completed`.
    #[inline]
    fn waits_after(cfq: &mut Cfq<Self>, env: &Env, completed: RequestId) -> bool {
        let _ = (cfq, env, completed);
        true
    }

    /// Returns whether a request in flight may cause the next request, so that it is too early to
    /// idle.
    #[inline]
    fn has_answer_to_come(cfq: &Cfq<Self>, id: QueueId) -> bool {
        cfq.queues[id].in_flight > 0
    }

    /// Whether CFQ does not idle for a process with a mean think
    /// time that exceeds the rest of its slice.
    const LONG_THINKER_IS_NOT_AWAITED: bool = true;

    /// Returns how long to idle for the next request of `process`, in ticks.
    #[inline]
    fn wait_for(cfq: &Cfq<Self>, env: &Env, process: ContextId) -> u64 {
        let _ = (env, process);
        cfq.tunables.slice_idle
    }

    /// Whether CFQ still counts as waiting for a queue after the request that ends the wait. After
    /// the run that this request requires, CFQ must then dispatch the queue's next request.
    const GOES_ON_WAITING: bool = false;

    // ---- Preemption

    /// Whether a request of any queue and class preempts the active queue after the end of the
    /// active queue's slice. Even an active real-time queue is preempted then.
    const USED_SLICE_FALLS_TO_ANY: bool = false;

    /// Returns whether `new` preempts the active queue, which is empty.
    fn empty_gives_way(cfq: &Cfq<Self>, env: &Env, active: QueueId, new: QueueId) -> bool;

    // ---- Cooperation

    /// Returns the largest distance from the head, in sectors, at which a request counts as close
    /// to the head.
    #[inline]
    fn close_sectors(cfq: &Cfq<Self>) -> Sector {
        let _ = cfq;
        CLOSE_SECTORS
    }

    /// Returns a queue that accesses the same area as `id` and may be served instead.
    #[inline]
    fn close_cooperator(cfq: &Cfq<Self>, id: QueueId) -> Option<QueueId> {
        cfq.close_cooperator(id)
    }

    /// Lets `cooperator` be served instead of `active`.
    fn cooperate(cfq: &mut Cfq<Self>, active: QueueId, cooperator: QueueId) {
        cfq.plan_merge(active, cooperator);
    }

    /// Whether a plan to share a queue can include a queue without processes.
    const PLANS_INCLUDE_THE_GONE: bool = false;

    /// Whether a process that leaves a shared queue is still counted in the queue that the shared
    /// queue was planned to join.
    const SPLIT_FORGETS_PLAN: bool = false;
}
