//! Generation of CFQ: the rules of one kernel, in one place.
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
    /// Clock of its times.
    type Clock: Clock;

    /// Returns the declarations of its tunables.
    fn declarations() -> &'static Declarations<Tunables>;

    /// Returns the default values of its tunables.
    fn tunables(env: &Env) -> Tuned<Tunables> {
        Tunables::new(env, Self::declarations())
    }

    /// Rules for the detection of command queueing.
    const NCQ: ncq::Rules;

    /// Whether cgroups are treated separately, if the host wants that.
    const GROUPS: bool = false;

    // ---- Requests of a queue

    /// Whether a queue holds only one request per sector. A new request at the sector of another
    /// request then releases the other request to the device early. All released requests then go
    /// to the dispatch list.
    const UNIQUE_SECTORS: bool = true;

    /// Returns whether a request has waited too long in its queue's FIFO.
    #[inline]
    fn is_overdue(cfq: &Cfq<Self>, env: &Env, id: RequestId) -> bool {
        let _ = cfq;
        env.requests[id].deadline <= env.now
    }

    /// Whether CFQ checks the FIFO before the limits of dispatching, so that the limits do not stop
    /// an overdue request. Otherwise CFQ checks the FIFO after the limits, when a request is
    /// dispatched in any case.
    const OVERDUE_PASSES_LIMITS: bool = false;

    /// Returns the next request of a queue that `id` is about to leave.
    #[inline(always)]
    fn next_without(cfq: &Cfq<Self>, env: &Env, queue: QueueId, id: RequestId) -> Option<RequestId> {
        cfq.next_after(env, queue, id, env.requests[id].sector)
    }

    /// Makes `survivor` replace `absorbed` as the next request and in the FIFO. `absorbed` is about
    /// to leave the queue of both.
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

    /// Whether, after a change of ioprio, the async queue of a process is looked up with the ioprio
    /// before the change. Otherwise it is looked up with the new ioprio. If no queue is registered
    /// for that ioprio, the present queue of the process is also registered for it.
    const ASYNC_FOLLOWS_LATE: bool = false;

    /// Handles a possible change of a queue's class.
    #[inline]
    fn class_changed(cfq: &mut Cfq<Self>, id: QueueId) {
        let _ = (cfq, id);
    }

    // ---- Position in service

    /// Whether all queues of a group are in one tree, sorted by class first, without kinds of work.
    const ONE_TREE: bool = false;

    /// Whether a queue leaves service with its last request. Otherwise the active queue stays until
    /// its turn ends, so that CFQ can idle for it.
    const EMPTY_LEAVES_SERVICE: bool = false;

    /// Returns the key of an idle-class queue: after the last of its tree.
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

    /// Returns the residual of the active queue if it times out before its slice has started.
    /// `None`: the residual does not change.
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

    /// Whether a seeky queue that became empty with most of its slice left no longer counts as
    /// deep, and CFQ no longer idles for it.
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

    /// Whether think times of service trees and groups are also measured, and async requests do not
    /// count. Otherwise only think times of processes are measured, and each request is a sample.
    const TREES_HAVE_THINK_TIMES: bool = false;

    /// Counts the distance of a new request from the previous one.
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

    /// Returns whether the last queue gets a longer turn, because the turn would end before the
    /// process' next request.
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

    /// Returns whether a request in flight may cause the next one, so that it is too early to idle.
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

    /// Whether a queue still counts as awaited after a request that ends the wait. After the
    /// requested run, the queue's next request must then also be dispatched.
    const GOES_ON_WAITING: bool = false;

    // ---- Preemption

    /// Whether, after the end of its slice, the active queue is preempted by a request of any other
    /// queue and class. Not even a real-time queue is protected then.
    const USED_SLICE_FALLS_TO_ANY: bool = false;

    /// Returns whether the active queue, which is empty, gives way to `new`.
    fn empty_gives_way(cfq: &Cfq<Self>, env: &Env, active: QueueId, new: QueueId) -> bool;

    // ---- Cooperation

    /// Returns the distance from the head within which a request is as
    /// good as one of the active queue, in sectors.
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

    /// Makes `active` give way to `cooperator`.
    fn cooperate(cfq: &mut Cfq<Self>, active: QueueId, cooperator: QueueId) {
        cfq.plan_merge(active, cooperator);
    }

    /// Whether a plan to share a queue can include a queue without processes.
    const PLANS_INCLUDE_THE_GONE: bool = false;

    /// Whether a process that leaves a shared queue stays counted in the queue
    /// that the shared one was planned to join.
    const SPLIT_FORGETS_PLAN: bool = false;
}
