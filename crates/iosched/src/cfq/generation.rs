//! What a generation of CFQ is: the rules of one kernel's, in one place.
//!
//! A rule that most generations share is the default here and stands in the file of what it decides; a generation
//! overrides what it does in its own way. All of it is known when the elevator is compiled: a rule that a generation
//! does not have costs nothing.

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

/// Requests no further than this from the head are close.
pub(super) const CLOSE_SECTORS: Sector = 8192;

/// The rules of one kernel's CFQ.
pub(super) trait Generation: Sized + Send + 'static {
    /// What its times are counted in.
    type Clock: Clock;

    /// Its tunables.
    fn declarations() -> &'static Declarations<Tunables>;

    /// The values of its tunables at first.
    fn tunables(env: &Env) -> Tuned<Tunables> {
        Tunables::new(env, Self::declarations())
    }

    /// How it judges whether the device queues commands.
    const NCQ: ncq::Rules;

    /// Whether cgroups are told apart, if the host wants that.
    const GROUPS: bool = false;

    // ---- Requests of a queue

    /// A queue holds one request a sector; a newcomer to the sector has the other released to the device. What is
    /// released, then or in its turn, goes to the dispatch list.
    const UNIQUE_SECTORS: bool = true;

    /// Whether a request has waited too long in its queue's FIFO.
    #[inline]
    fn is_overdue(cfq: &Cfq<Self>, env: &Env, id: RequestId) -> bool {
        let _ = cfq;
        env.requests[id].deadline <= env.now
    }

    /// The FIFO is looked at before the limits of dispatching, and an overdue request passes them all. Otherwise it is
    /// looked at once a request will be given out for sure.
    const OVERDUE_PASSES_LIMITS: bool = false;

    /// The request to serve next of a queue that `id` is about to leave.
    #[inline(always)]
    fn next_without(cfq: &Cfq<Self>, env: &Env, queue: QueueId, id: RequestId) -> Option<RequestId> {
        cfq.next_after(env, queue, id, env.requests[id].sector)
    }

    /// `survivor` takes the place of `absorbed`, which is about to leave the queue they are both in.
    fn succeed(cfq: &mut Cfq<Self>, env: &mut Env, queue: QueueId, survivor: RequestId, absorbed: RequestId) {
        if cfq.queues[queue].next == Some(absorbed) {
            cfq.queues.set_next(&env.requests, queue, Some(survivor));
        }
        inherit_fifo_place(&mut cfq.queues[queue].fifo, &mut env.requests, survivor, absorbed);
    }

    // ---- Processes and their queues

    /// Requests flagged so lift their queue out of the idle class and the lower levels.
    const LIFTED_BY: Flags = Flags::FS_EXCL;

    /// After a change of ioprio a process' async queue is looked up with the one before that. Otherwise with the new
    /// one, for which, if none is registered there, the process' present one is registered too.
    const ASYNC_FOLLOWS_LATE: bool = false;

    /// The class of a queue may have changed.
    #[inline]
    fn class_changed(cfq: &mut Cfq<Self>, id: QueueId) {
        let _ = (cfq, id);
    }

    // ---- Place in service

    /// All queues of a group stand in one tree, by class first, and there are no kinds of work.
    const ONE_TREE: bool = false;

    /// A queue leaves service with its last request. Otherwise the active one stays, to be waited for, until its turn
    /// ends.
    const EMPTY_LEAVES_SERVICE: bool = false;

    /// The key of an idle-class queue: behind the last of its tree.
    #[inline]
    fn idle_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        let tree = &cfq.groups[cfq.queues[id].group].trees[cfq.tree_index(id).index()];
        let last = tree.last_key_but(&cfq.queues, id);
        Cfq::<Self>::key_with_idle_delay(last.map_or_else(|| Self::Clock::now(env), |key| key as u64), env)
    }

    /// The key of a queue that preempts.
    #[inline]
    fn front_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        cfq.key_before_all(env, id)
    }

    /// The key of a queue that enters service, or goes on in it after its turn.
    #[inline]
    fn turn_key(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> i64 {
        cfq.key_in_turn(env, id)
    }

    /// What the active queue is owed if it times out before the clock of its slice has started; `None`: what it was
    /// owed before.
    #[inline]
    fn residual_of_unstarted(cfq: &mut Cfq<Self>, id: QueueId) -> Option<i64> {
        let _ = (cfq, id);
        None
    }

    // ---- Choosing a queue

    /// What to do about the active queue.
    #[inline]
    fn judge_active(cfq: &mut Cfq<Self>, env: &mut Env, active: QueueId) -> Verdict {
        cfq.judge_active(env, active)
    }

    /// The queue whose turn it is.
    #[inline]
    fn choose(cfq: &mut Cfq<Self>, env: &mut Env) -> Option<QueueId> {
        cfq.choose_by_workload(env)
    }

    /// The class and kind of work that a queue is served with when it becomes active.
    #[inline]
    fn served_with(cfq: &Cfq<Self>, id: QueueId) -> (Class, Workload) {
        let _ = id;
        (cfq.serving.class, cfq.serving.workload)
    }

    /// A busy real-time queue ends the turn of any other.
    const REAL_TIME_CUTS_IN: bool = false;

    /// A kind of work is gone on with only if the class is the same as before.
    const CLASS_CHANGE_ENDS_WORKLOAD: bool = false;

    /// A queue of another kind that preempts ends the turn of the kind.
    const PREEMPTION_ENDS_WORKLOAD: bool = false;

    /// A seeky queue that has run empty with most of its slice left counts as deep no more, nor as worth waiting for.
    const SEEKY_LOSES_DEPTH_EARLY: bool = false;

    // ---- Dispatching

    /// Whether the active queue may have one more request in the device.
    #[inline]
    fn may_dispatch(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.may_dispatch(env, id)
    }

    /// The only busy sync queue is held back by no quantum, however many async ones there are.
    const ONLY_SYNC_QUEUE_IS_FREE: bool = false;

    // ---- Habits

    /// Think times are kept of service trees and groups too, and async requests do not count. Otherwise they are kept
    /// of processes alone, and each request is a sample.
    const TREES_HAVE_THINK_TIMES: bool = false;

    /// A request came: how far from the one before.
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

    /// Whether the requests of a queue, to which `context` has just sent one, are too far apart to be worth waiting
    /// for.
    #[inline]
    fn is_scattered(cfq: &Cfq<Self>, queue: QueueId, context: ContextId) -> bool {
        let _ = context;
        let queue = &cfq.queues[queue];
        !queue.deep && queue.seek.is_seeky()
    }

    // ---- Idling

    /// A queue whose next request will have no follower, by its hint, is not worth waiting for.
    const HINT_JUDGES_QUEUE: bool = false;

    /// Whether it is worth waiting for the next request of a busy queue.
    #[inline]
    fn should_idle(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.should_idle(env, id)
    }

    /// The last queue, whose turn ends before its process' next request will come, is given a longer one.
    #[inline]
    fn should_wait_busy(cfq: &Cfq<Self>, env: &Env, id: QueueId) -> bool {
        cfq.is_last_at_its_end(env, id)
    }

    /// Whether the active queue, which has run empty, is to be waited for after `completed`.
    #[inline]
    fn waits_after(cfq: &mut Cfq<Self>, env: &Env, completed: RequestId) -> bool {
        let _ = (cfq, env, completed);
        true
    }

    /// Whether a request has yet to complete that the next one may follow: it is too early to wait.
    #[inline]
    fn has_answer_to_come(cfq: &Cfq<Self>, id: QueueId) -> bool {
        cfq.queues[id].in_flight > 0
    }

    /// A process that is expected to think for longer than the rest of its slice is not waited for.
    const LONG_THINKER_IS_NOT_AWAITED: bool = true;

    /// For how long the next request of `process` is waited for.
    #[inline]
    fn wait_for(cfq: &Cfq<Self>, env: &Env, process: ContextId) -> u64 {
        let _ = (env, process);
        cfq.tunables.slice_idle
    }

    /// After a request that ends the wait the queue still counts as waited for, and once what was asked for then is
    /// done, its next request is owed to it too.
    const GOES_ON_WAITING: bool = false;

    // ---- Preemption

    /// Once the slice of the active queue is over, a request of any other queue preempts it, whatever their classes;
    /// and a real-time queue has no more protection than that.
    const USED_SLICE_FALLS_TO_ANY: bool = false;

    /// Whether the active queue, which is empty, gives way to `new`.
    fn empty_gives_way(cfq: &Cfq<Self>, env: &Env, active: QueueId, new: QueueId) -> bool;

    // ---- Cooperation

    /// How close to the head is as good as what the active queue would send.
    #[inline]
    fn close_sectors(cfq: &Cfq<Self>) -> Sector {
        let _ = cfq;
        CLOSE_SECTORS
    }

    /// A queue that works where `id` does, and may be served in its stead.
    #[inline]
    fn close_cooperator(cfq: &Cfq<Self>, id: QueueId) -> Option<QueueId> {
        cfq.close_cooperator(id)
    }

    /// `active` gives way to `cooperator`.
    fn cooperate(cfq: &mut Cfq<Self>, active: QueueId, cooperator: QueueId) {
        cfq.plan_merge(active, cooperator);
    }

    /// A plan to share a queue is made also with a queue that no process uses any more.
    const PLANS_INCLUDE_THE_GONE: bool = false;

    /// A process that leaves a shared queue, which is planned to join another, goes on being counted there.
    const SPLIT_FORGETS_PLAN: bool = false;
}
