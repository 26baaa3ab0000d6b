//! CFQ, Completely Fair Queuing: one elevator in several generations of Linux.
//!
//! Every process has a queue for its sync requests; async requests share a queue per class and
//! level. Queues take turns and get time slices. More urgent levels get longer slices. While idling
//! is worthwhile, the disk waits a short time for the next request of the active queue instead of
//! seeking away. CFQ serves the queues for which idling is not worthwhile together, and also all
//! async queues together. These kinds of work also take turns. Groups of queues share the disk by
//! weight.
//!
//! A [`Generation`] contains the rules of one kernel's CFQ: `linux_4_19` (the last CFQ),
//! `linux_2_6_34`, `linux_2_6_30`. Shared rules are in files with one decision each, and call the
//! generation where the rules differ. 2.6.30 has one tree of queues, and neither kinds of work nor
//! shared queues. It uses the first tree of each group, and its keys contain the classes. It never
//! reaches the code for the parts that it lacks. `linux_2_6_16` is older still. It is a separate
//! elevator, because it shares few rules with the generations.
//!
//! The files:
//! - `generation`: the differences. `clock`: the unit of time.
//! - `choose`: the queue to serve. `dispatch`: the number of its requests. `queue`: the next
//!   request of a queue.
//! - `service_tree`: the order of queues. `slice`: the length of a turn.
//! - `idle`: when to idle. `preempt`: which queues may preempt. `yielding`: which queues give up
//!   their turns.
//! - `cooperator`: which processes share a queue. `group`: the shares of groups. `process`: the
//!   queues of processes.
//! - `ncq`: whether the device queues commands.
//!
//! The data structures are in `data`.

mod choose;
mod clock;
mod cooperator;
mod data;
mod dispatch;
mod generation;
mod group;
mod idle;
pub(crate) mod linux_2_6_16;
pub(crate) mod linux_2_6_30;
pub(crate) mod linux_2_6_34;
pub(crate) mod linux_4_19;
mod ncq;
mod preempt;
mod process;
mod queue;
mod service_tree;
mod slice;
mod tunables;
mod yielding;

use std::marker::PhantomData;

use clock::Clock as _;
use data::group::Groups;
use data::process::Process;
use data::queue::{QueueId, Queues};
use data::service_tree::{Class, TreeIndex};
use data::serving::Serving;
use data::turn::Turn;
use data::yields::Yield;
use generation::Generation;
use ncq::{Load, QueueDepth};
use tunables::Tunables;

use crate::collections::Id;
use crate::context::{ContextId, LEVEL_MAX};
use crate::decision::Decision;
use crate::elevator::{Elevator, PerProcess};
use crate::env::Env;
use crate::parts::position_tree::PositionTree;
use crate::parts::seek::ProcessSeeks;
use crate::request::{Bio, Flags, RequestId, SECTOR_BYTES, Sector};
use crate::time::{SECOND_NS, Time};
use crate::tunable::{TunableSet, Tuned};

/// Size, bytes. CFQ stops idling as soon as the awaited queue gets a larger request.
const PAGE_BYTES: u64 = 4096;

/// CFQ of one generation. Times are in ticks of its clock.
struct Cfq<G: Generation> {
    tunables: Tuned<Tunables>,
    queues: Queues,
    groups: Groups,
    /// Processes by [`ContextId::index`].
    processes: Vec<Option<Process>>,
    /// Distances between the requests of each process, by
    /// [`ContextId::index`]. Only some generations use them.
    process_seeks: Vec<ProcessSeeks>,
    cooperator_trees: [PositionTree<QueueId>; LEVEL_MAX as usize + 1],

    active: Option<QueueId>,
    /// Turn of the active queue.
    turn: Turn,
    /// Process of the active slice's first request, and whether it has exited.
    active_process: Option<(ContextId, bool)>,
    serving: Serving,
    busy_queues: u32,
    busy_sync_queues: u32,
    /// Number of busy real-time queues, in generations in which these queues end the turns of other
    /// queues. The number wraps when a queue changes its class in service.
    busy_real_time: u32,

    /// Number of queued requests.
    queued: u32,
    /// Number of requests in the device.
    in_driver: u32,
    /// Numbers of requests that are dispatched and not complete: async, sync.
    in_flight: [u32; 2],
    /// End of the last request that the device took.
    position: Sector,
    queue_depth: QueueDepth,
    /// Last completion of a sync request that had waited too long.
    last_delayed_sync: u64,
    draining: bool,
    /// Queues that yield: few, and none while yielding is off.
    yields: Vec<Yield>,
    /// Queues without processes that are still planned to join another queue.
    plans_of_the_gone: Vec<QueueId>,
    /// Queue whose next request must be dispatched after the requested run, even beyond the limits.
    owed_after_run: Option<QueueId>,
    /// Time at which the active queue reached its limit. CFQ dispatches nothing before time passes
    /// or the state changes.
    full_at: Option<Time>,
    generation: PhantomData<G>,
}

impl<G: Generation> Cfq<G> {
    fn new(env: &Env) -> Self {
        let now = G::Clock::now(env);
        Self {
            tunables: G::tunables(env),
            queues: Queues::default(),
            groups: Groups::new(env, now),
            processes: Vec::new(),
            process_seeks: Vec::new(),
            cooperator_trees: Default::default(),
            active: None,
            turn: Turn::default(),
            active_process: None,
            serving: Serving::default(),
            busy_queues: 0,
            busy_sync_queues: 0,
            busy_real_time: 0,
            queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            position: 0,
            queue_depth: QueueDepth::new(G::NCQ, env.command_queueing),
            last_delayed_sync: now.saturating_sub(G::Clock::ticks(env, SECOND_NS)),
            draining: false,
            yields: Vec::new(),
            plans_of_the_gone: Vec::new(),
            owed_after_run: None,
            full_at: None,
            generation: PhantomData,
        }
    }

    fn queue_of_request(env: &Env, id: RequestId) -> QueueId {
        QueueId::new(env.requests[id].elevator)
    }

    /// Reacts to a new request. A request of another queue may preempt the active queue. A request
    /// of the awaited queue may end the wait.
    fn react_to_insert(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        if self.active == Some(queue) {
            if self.turn.waiting {
                let bytes = u64::from(env.requests[id].nr_sectors) * SECTOR_BYTES;
                if bytes > PAGE_BYTES || self.busy_queues > 1 {
                    env.cancel_idle();
                    env.kick();
                    if G::GOES_ON_WAITING {
                        self.owed_after_run = Some(queue);
                    } else {
                        self.turn.waiting = false;
                    }
                } else {
                    self.turn.must_dispatch = true;
                }
            }
        } else if self.should_preempt(env, queue, id) {
            self.preempt(env, queue);
            env.kick();
        }
    }

    /// Handles an event that ends a run, and after which CFQ may dispatch again.
    #[inline]
    fn begin_event(&mut self) {
        self.full_at = None;
        self.after_run();
    }

    /// Handles the end of a run that an insertion requested.
    #[inline]
    fn after_run(&mut self) {
        if G::GOES_ON_WAITING
            && let Some(queue) = self.owed_after_run.take()
        {
            self.turn.must_dispatch |= self.active == Some(queue);
            self.full_at = None;
        }
    }

    /// Counts the think times before a new request: of its process, and of its tree and group.
    #[inline]
    fn observe_think_time(&mut self, env: &Env, queue: QueueId, context: ContextId) {
        let (now, slice_idle) = (G::Clock::now(env), self.tunables.slice_idle);
        let entry = &self.queues[queue];
        if G::TREES_HAVE_THINK_TIMES {
            let group = &mut self.groups[entry.group];
            if env.groups {
                group.think_time.sample(now, self.tunables.group_idle);
            }
            if let Some(index) = entry.tree.filter(|_| entry.sync) {
                group.trees[index.index()].think_time.sample(now, slice_idle);
            }
        }
        if (entry.sync || !G::TREES_HAVE_THINK_TIMES)
            && let Some(Some(process)) = self.processes.get_mut(context.index())
        {
            process.think_time.sample(now, slice_idle);
        }
    }

    fn observe_queue_depth(&mut self, env: &mut Env) {
        let active = self.active.map(|id| &self.queues[id]).filter(|queue| queue.idle_window);
        let load = Load {
            in_driver: self.in_driver,
            queued: self.queued,
            active_idler_requests: active.map(|queue| queue.in_flight + queue.queued),
        };
        if let Some(value) = self.queue_depth.observe(G::NCQ, &load) {
            env.note(|| Decision::HwTag { value });
        }
    }
}

impl<G: Generation> Elevator for Cfq<G> {
    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        // A sync bio must not wait for an async request, and a bio
        // may only join requests of its own queue.
        let sync = bio.is_sync();
        (!sync || env.requests[into].is_sync())
            && self.queue_of(bio.context, sync) == Some(Self::queue_of_request(env, into))
    }

    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        let queue = self.queue_of(bio.context, bio.is_sync())?;
        self.queues[queue].sorted.find(&env.requests, bio.end())
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of_request(env, id)].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of_request(env, id)].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        self.full_at = None;
        let queue = Self::queue_of_request(env, id);
        let entry = &mut self.queues[queue];
        entry.sorted.remove(&mut env.requests, id);
        entry.queued -= 1;
        let next = entry.next;
        self.queues.set_next(&env.requests, queue, next);
        self.add_sorted(env, queue, id);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        self.full_at = None;
        let queue = Self::queue_of_request(env, absorbed);
        G::succeed(self, env, queue, survivor, absorbed);
        self.remove(env, queue, absorbed);
        let entry = &self.queues[queue];
        if entry.busy && entry.is_empty() && self.active != Some(queue) {
            self.leave_service(queue);
        }
        self.put_request(env, queue);
    }

    #[inline]
    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        let queue = self.queue_for(env, id);
        self.queues[queue].requests += 1;
        env.requests[id].elevator = queue.number();
    }

    #[inline]
    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.begin_event();
        let queue = Self::queue_of_request(env, id);
        let deadline = G::Clock::now(env).saturating_add(self.tunables.fifo_expire(env.requests[id].is_sync()));
        let deadline = G::Clock::instant(env, deadline);
        let request = &mut env.requests[id];
        let (context, hinted) = (request.context, request.flags.contains(Flags::PRIO));
        let (sector, nr_sectors) = (request.sector, request.nr_sectors);
        request.deadline = deadline;
        if self.queues[queue].priority_changed {
            self.refresh_priority(context, queue);
        }
        self.queues[queue].fifo.push_back(env.requests.list_nodes(), id);
        self.add_sorted(env, queue, id);

        self.queued += 1;
        self.queues[queue].hinted += u32::from(hinted);
        self.observe_think_time(env, queue, context);
        G::observe_seek(self, env, queue, context, sector, nr_sectors);
        let entry = &self.queues[queue];
        if entry.sync && entry.class != Class::Idle {
            self.update_idle_window(env, queue, context);
        }
        self.end_yield(queue);
        self.react_to_insert(env, queue, id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let is_full = self.full_at == Some(env.now);
        let given_out = if is_full { None } else { self.try_dispatch(env) };
        if G::UNIQUE_SECTORS {
            match given_out {
                Some(id) => env.release_sorted(id, true),
                None => self.after_run(),
            }
            return None;
        }
        let id = given_out?;
        self.start(env, id);
        Some(id)
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.begin_event();
        self.force_dispatch(env)
    }

    #[inline]
    fn start(&mut self, env: &mut Env, id: RequestId) {
        self.in_driver += 1;
        self.position = env.requests[id].end();
    }

    fn requeue(&mut self, _env: &mut Env, _id: RequestId) {
        self.full_at = None;
        self.in_driver -= 1;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        self.begin_event();
        self.observe_queue_depth(env);
        let now = G::Clock::now(env);
        let request = &env.requests[id];
        let (context, sync, allocated) = (request.context, request.is_sync(), request.allocated);
        let queue = Self::queue_of_request(env, id);
        self.in_driver -= 1;
        let entry = &mut self.queues[queue];
        entry.in_flight -= 1;
        let served = entry.is_empty() && entry.in_flight == 0;
        self.in_flight[usize::from(entry.sync)] -= 1;
        let group = &mut self.groups[entry.group];
        group.in_flight -= 1;
        if G::TREES_HAVE_THINK_TIMES {
            group.think_time.completed(now);
            if sync {
                let tree = entry.tree.unwrap_or(TreeIndex::of(entry.class, entry.workload()));
                group.trees[tree.index()].think_time.completed(now);
            }
        }
        if sync {
            if let Some(Some(process)) = self.processes.get_mut(context.index()) {
                process.think_time.completed(now);
            }
            if G::Clock::at(env, allocated).saturating_add(self.tunables.fifo_expire_sync) <= now {
                self.last_delayed_sync = now;
            }
        }
        if self.active == Some(queue) {
            self.completed_active(env, queue, id, sync);
        }
        if served && !self.yields.is_empty() {
            self.end_yields_to(context);
        }
        self.put_request(env, queue);
    }

    fn timer(&mut self, env: &mut Env) {
        self.begin_event();
        self.idle_timer_fired(env);
    }

    fn check(&self, env: &Env) {
        let mut queued = 0;
        let mut busy = 0;
        for id in self.queues.ids() {
            let queue = &self.queues[id];
            assert_eq!(queue.sorted.check(&env.requests), queue.queued as usize);
            assert_eq!(queue.next.is_some(), queue.queued > 0, "a queue with requests knows its next request");
            assert_eq!(queue.tree.is_some(), queue.busy);
            assert!(queue.busy || queue.is_empty(), "a queue with requests is in service");
            let may_be_empty = self.active == Some(id) && !G::EMPTY_LEAVES_SERVICE;
            assert!(!queue.busy || !queue.is_empty() || may_be_empty, "only the active queue is empty");
            assert!(queue.cooperator_level.is_none() || !queue.is_empty());
            queued += queue.queued;
            busy += u32::from(queue.busy);
        }
        assert_eq!(queued, self.queued);
        assert_eq!(queued as usize, env.queued());
        assert_eq!(busy, self.busy_queues);
        let mut on_trees = 0;
        for group in self.groups.ids() {
            let group = &self.groups[group];
            let count: u32 = group.trees.iter().map(|tree| tree.count).sum();
            assert_eq!(count, group.busy_queues);
            for tree in &group.trees {
                let count = tree.queues.check(&self.queues.service, |a, b| G::ONE_TREE || a.key <= b.key);
                assert_eq!(count, tree.count as usize);
            }
            on_trees += count;
        }
        assert_eq!(on_trees, self.busy_queues);
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        self.full_at = None;
        Some(&mut self.tunables)
    }

    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        Some(self)
    }
}

impl<G: Generation> PerProcess for Cfq<G> {
    fn exit(&mut self, env: &mut Env, context: ContextId) {
        self.begin_event();
        self.exit_process(env, context);
    }

    fn yield_to(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        self.full_at = None;
        self.begin_yield(env, from, to);
    }
}

impl<G: Generation> Cfq<G> {
    /// Handles a completion of the active queue: its slice
    /// starts, its turn ends, or CFQ idles for it.
    fn completed_active(&mut self, env: &mut Env, id: QueueId, request: RequestId, sync: bool) {
        if self.turn.slice_new {
            self.start_slice(env, id);
        }
        let now = G::Clock::now(env);
        if G::should_wait_busy(self, env, id) {
            let idle = self.tunables.slice_idle;
            let extra = if idle == 0 { self.tunables.group_idle } else { idle };
            self.turn.slice_end = now.saturating_add(extra);
            self.turn.wait_busy = true;
            let queue = self.queues[id].name();
            env.note(|| Decision::WaitBusy { queue });
        }
        let queue = &self.queues[id];
        if self.turn.slice_used(now) || queue.class == Class::Idle {
            self.expire(env, id, true);
        } else if sync
            && queue.is_empty()
            && G::close_cooperator(self, id).is_none()
            && G::waits_after(self, env, request)
        {
            self.arm_idle_timer(env, id);
        }
    }
}
