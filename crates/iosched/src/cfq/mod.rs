//! CFQ, Completely Fair Queuing, as in Linux 4.19.
//!
//! Every process has a queue for its sync requests; async ones share a queue per class and level. Queues get time
//! slices in turn, longer ones at higher levels; while a queue is worth it, the disk waits a little for its next
//! request rather than seek away. Queues not worth waiting for are served together, and so are async ones; kinds of
//! work take turns as queues do. Groups of queues share the disk by weight.
//!
//! Each file decides one thing: `choose` which queue is served, `dispatch` how much of it at once, `queue` which
//! of its requests, `service_tree` in what order queues take turns, `slice` for how long, `idle` when to wait,
//! `preempt` who may cut in, `cooperator` who shares a queue, `group` how groups share, `process` whose queue is
//! which, `yielding` who gives up its turn.

mod choose;
mod cooperator;
mod dispatch;
mod group;
mod idle;
mod ncq;
mod preempt;
mod process;
mod queue;
mod service_tree;
mod slice;
mod tunables;
mod yielding;

use choose::Serving;
use group::Groups;
use ncq::{Load, QueueDepth};
use process::Process;
use queue::{Cooperating, QueueId, Queues};
use service_tree::Class;
use slice::Turn;
use tunables::{DECLARATIONS, Tunables};
use yielding::Yield;

use crate::collections::{Id, RbTree};
use crate::context::{ContextId, LEVEL_MAX, WeightRange};
use crate::decision::Decision;
use crate::elevator::{Elevator, Env, Layer, Registered};
use crate::parts::sorted::inherit_fifo_place;
use crate::request::{Bio, Flags, RequestId, SECTOR_BYTES, Sector};
use crate::time::{SECOND_NS, Time};
use crate::tunable::TunableError;

pub(crate) const REGISTERED: Registered = Registered {
    name: "cfq",
    about: "fair time slices per process, with classes, levels and groups: for disks that many share",
    since: "2.6.38",
    until: Some("5.0"),
    layer: Layer::SingleQueue,
    how: &[
        "Each process has a queue for sync requests; async ones share a queue per class and level.",
        "Queues take turns in time slices: longer at higher levels, real time first, idle class last.",
        "Within its slice a queue goes on in sector order from the head, the oldest first if past its deadline.",
        "A queue that is likely to send more soon is waited for (slice_idle), rather than to seek away.",
        "Seeky queues are served together, and so are async ones; the kinds of work take turns.",
        "Processes that work on the same place share a queue while it pays.",
        "cgroups take turns by weight in virtual time.",
        "Slices shrink so that all get a turn within target_latency; async depth grows slowly after late sync requests.",
    ],
    when: "Rotating disks that many share, desktops, ionice and cgroup weights.",
    tunables: || DECLARATIONS.specs().collect(),
    build: |env| Box::new(Cfq::new(env)),
};

/// A request larger than this ends the wait for it at once.
const PAGE_BYTES: u64 = 4096;

struct Cfq {
    tunables: Tunables,
    queues: Queues,
    groups: Groups,
    /// By [`ContextId::index`].
    processes: Vec<Option<Process>>,
    cooperator_trees: [RbTree<Cooperating>; LEVEL_MAX as usize + 1],

    active: Option<QueueId>,
    /// The active queue's turn.
    turn: Turn,
    /// The process of the active slice's first request, and whether it has exited.
    active_process: Option<(ContextId, bool)>,
    serving: Serving,
    busy_queues: u32,
    busy_sync_queues: u32,

    /// Requests queued.
    queued: u32,
    /// Requests in the device.
    in_driver: u32,
    /// Requests given out and not completed: async, sync.
    in_flight: [u32; 2],
    /// End of the last request that the device took.
    position: Sector,
    queue_depth: QueueDepth,
    /// When a sync request last completed that had waited too long.
    last_delayed_sync: Time,
    draining: bool,
    /// Queues that yield; few, and none unless yielding is on.
    yields: Vec<Yield>,
}

impl Cfq {
    fn new(env: &Env) -> Self {
        Self {
            tunables: Tunables::new(env.rotational, env.groups),
            queues: Queues::default(),
            groups: Groups::new(env),
            processes: Vec::new(),
            cooperator_trees: Default::default(),
            active: None,
            turn: Turn::default(),
            active_process: None,
            serving: Serving::default(),
            busy_queues: 0,
            busy_sync_queues: 0,
            queued: 0,
            in_driver: 0,
            in_flight: [0; 2],
            position: 0,
            queue_depth: QueueDepth::default(),
            last_delayed_sync: env.now - SECOND_NS,
            draining: false,
            yields: Vec::new(),
        }
    }

    fn queue_of_request(env: &Env, id: RequestId) -> QueueId {
        QueueId::new(env.requests[id].elevator)
    }

    /// A request of a queue other than the active one may preempt it; one that was waited for ends the wait.
    fn react_to_insert(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        if self.active == Some(queue) {
            if self.turn.waiting {
                let bytes = u64::from(env.requests[id].nr_sectors) * SECTOR_BYTES;
                if bytes > PAGE_BYTES || self.busy_queues > 1 {
                    self.cancel_idle(env);
                    self.turn.waiting = false;
                    env.kick();
                } else {
                    self.turn.must_dispatch = true;
                }
            }
        } else if self.should_preempt(env, queue, id) {
            self.preempt(env, queue);
            env.kick();
        }
    }

    fn observe_queue_depth(&mut self, env: &mut Env) {
        let active = self.active.map(|id| &self.queues[id]).filter(|queue| queue.idle_window);
        let load = Load {
            in_driver: self.in_driver,
            queued: self.queued,
            active_idler_requests: active.map(|queue| queue.in_flight + queue.queued),
        };
        if let Some(value) = self.queue_depth.observe(&load) {
            env.note(|| Decision::HwTag { value });
        }
    }
}

impl Elevator for Cfq {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn may_merge(&mut self, env: &mut Env, bio: &Bio, into: RequestId) -> bool {
        // Nothing sync has to wait for something async, and only the queue the bio would go to is its own.
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
        let queue = Self::queue_of_request(env, id);
        let entry = &mut self.queues[queue];
        entry.sorted.remove(&mut env.requests, id);
        entry.queued -= 1;
        let next = entry.next;
        self.queues.set_next(&env.requests, queue, next);
        self.add_sorted(env, queue, id);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let queue = Self::queue_of_request(env, absorbed);
        if self.queues[queue].next == Some(absorbed) {
            self.queues.set_next(&env.requests, queue, Some(survivor));
        }
        let entry = &mut self.queues[queue];
        inherit_fifo_place(&mut entry.fifo, &mut env.requests, survivor, absorbed);
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
        let queue = Self::queue_of_request(env, id);
        let request = &mut env.requests[id];
        let (context, sync, hinted) = (request.context, request.is_sync(), request.flags.contains(Flags::PRIO));
        let (sector, nr_sectors) = (request.sector, request.nr_sectors);
        request.deadline = env.now + self.tunables.fifo_expire_ns(sync);
        if self.queues[queue].priority_changed {
            self.refresh_priority(context, queue);
        }
        self.queues[queue].fifo.push_back(env.requests.list_nodes(), id);
        self.add_sorted(env, queue, id);

        self.queued += 1;
        let slice_idle_ns = self.tunables.slice_idle_ns;
        let entry = &mut self.queues[queue];
        entry.hinted += u32::from(hinted);
        entry.seek.record(sector, nr_sectors, env.rotational);
        let group = &mut self.groups[entry.group];
        if env.groups {
            group.think_time.sample(env.now.as_ns(), self.tunables.group_idle_ns);
        }
        if entry.sync {
            if let Some(index) = entry.tree {
                group.trees[index.index()].think_time.sample(env.now.as_ns(), slice_idle_ns);
            }
            if let Some(Some(process)) = self.processes.get_mut(context.index()) {
                process.think_time.sample(env.now.as_ns(), slice_idle_ns);
                if entry.class != Class::Idle {
                    let think_time = process.think_time;
                    self.update_idle_window(env, queue, context, &think_time);
                }
            }
        }
        self.end_yield(queue);
        self.react_to_insert(env, queue, id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let id = self.try_dispatch(env)?;
        self.start(env, id);
        Some(id)
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.force_dispatch(env)
    }

    #[inline]
    fn start(&mut self, env: &mut Env, id: RequestId) {
        self.in_driver += 1;
        self.position = env.requests[id].end();
    }

    fn requeue(&mut self, _env: &mut Env, _id: RequestId) {
        self.in_driver -= 1;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        self.observe_queue_depth(env);
        let request = &env.requests[id];
        let (context, sync, allocated) = (request.context, request.is_sync(), request.allocated);
        let queue = Self::queue_of_request(env, id);
        self.in_driver -= 1;
        let entry = &mut self.queues[queue];
        entry.in_flight -= 1;
        let served = entry.is_empty() && entry.in_flight == 0;
        let tree = entry.tree.unwrap_or(entry.tree_index());
        self.in_flight[usize::from(entry.sync)] -= 1;
        let group = &mut self.groups[entry.group];
        group.in_flight -= 1;
        group.think_time.completed(env.now.as_ns());
        if sync {
            group.trees[tree.index()].think_time.completed(env.now.as_ns());
            if let Some(Some(process)) = self.processes.get_mut(context.index()) {
                process.think_time.completed(env.now.as_ns());
            }
            if allocated + self.tunables.fifo_expire_sync_ns <= env.now {
                self.last_delayed_sync = env.now;
            }
        }
        if self.active == Some(queue) {
            self.completed_active(env, queue, sync);
        }
        if served && !self.yields.is_empty() {
            self.end_yields_to(context);
        }
        self.put_request(env, queue);
    }

    fn timer(&mut self, env: &mut Env) {
        self.idle_timer_fired(env);
    }

    fn exit(&mut self, env: &mut Env, context: ContextId) {
        self.exit_process(env, context);
    }

    fn yield_to(&mut self, env: &mut Env, from: ContextId, to: ContextId) {
        self.begin_yield(env, from, to);
    }

    fn weights(&self) -> WeightRange {
        WeightRange::CFQ
    }

    fn queued(&self) -> usize {
        self.queued as usize
    }

    fn check(&self, env: &Env) {
        let mut queued = 0;
        let mut busy = 0;
        for id in self.queues.ids() {
            let queue = &self.queues[id];
            assert_eq!(queue.sorted.check(&env.requests), queue.queued as usize);
            assert_eq!(queue.next.is_some(), queue.queued > 0, "a queue with requests knows the next");
            assert_eq!(queue.tree.is_some(), queue.busy);
            assert!(queue.busy || queue.is_empty(), "a queue with requests is in service");
            assert!(!queue.busy || !queue.is_empty() || self.active == Some(id), "only the active queue is empty");
            assert!(queue.cooperator_level.is_none() || !queue.is_empty());
            queued += queue.queued;
            busy += u32::from(queue.busy);
        }
        assert_eq!(queued, self.queued);
        assert_eq!(busy, self.busy_queues);
        let mut on_trees = 0;
        for group in self.groups.ids() {
            let group = &self.groups[group];
            let count: u32 = group.trees.iter().map(|tree| tree.count).sum();
            assert_eq!(count, group.busy_queues);
            for tree in &group.trees {
                let count = tree.queues.check(&self.queues.service, |a, b| a.key <= b.key);
                assert_eq!(count, tree.count as usize);
            }
            on_trees += count;
        }
        assert_eq!(on_trees, self.busy_queues);
    }

    fn tunable(&self, name: &str) -> Result<u64, TunableError> {
        DECLARATIONS.get(&self.tunables, name)
    }

    fn set_tunable(&mut self, name: &str, value: &str) -> Result<(), TunableError> {
        DECLARATIONS.set(&mut self.tunables, name, value)
    }
}

impl Cfq {
    /// A request of the active queue completed: its slice's clock starts, ends its turn, or it is waited for.
    fn completed_active(&mut self, env: &mut Env, id: QueueId, sync: bool) {
        if self.turn.slice_new {
            self.start_slice(env, id);
        }
        if self.should_wait_busy(env, id) {
            let idle_ns = self.tunables.slice_idle_ns;
            let extra_ns = if idle_ns == 0 { self.tunables.group_idle_ns } else { idle_ns };
            self.turn.slice_end = env.now + extra_ns;
            self.turn.wait_busy = true;
            let queue = self.queues[id].name();
            env.note(|| Decision::WaitBusy { queue });
        }
        let queue = &self.queues[id];
        if self.turn.slice_used(env.now) || queue.class == Class::Idle {
            self.expire(env, id, true);
        } else if sync && queue.is_empty() && self.close_cooperator(id).is_none() {
            self.arm_idle_timer(env, id);
        }
    }
}
