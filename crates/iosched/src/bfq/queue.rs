//! A queue: the requests of one process (sync), or of all processes of one class and level in a group (async). Which of them
//! is served next, and when the queue itself is no more.

use std::ops::{Index, IndexMut};

use super::Bfq;
use super::entity::{Class, Entity, EntityId};
use super::group::GroupId;
use super::inject::Injection;
use super::raising::Raising;
use super::seek::SeekHistory;
use crate::collections::{Id, Kind, List, ListLinks};
use crate::context::{ContextId, LEVEL_MAX};
use crate::decision::BfqEvent;
use crate::env::Env;
use crate::parts::head::Head;
use crate::parts::mean::DecayingMean;
use crate::parts::position_tree::PositionNode;
use crate::parts::sorted::Sorted;
use crate::request::{Fifo, RequestId, Requests, Sector};

/// Long past, in jiffies: before anything that is compared with it.
pub(super) const NEVER: i64 = i64::MIN / 4;
/// Weight of each level that a queue is above the eighth.
const WEIGHT_PER_LEVEL: u32 = 10;

/// The weight of a level.
pub(super) fn weight_of(level: u8) -> u32 {
    (u32::from(LEVEL_MAX) + 1 - u32::from(level)) * WEIGHT_PER_LEVEL
}

/// A queue in the arena: the number of its entity too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueId(u32);

impl QueueId {
    #[inline]
    pub(super) fn entity(self) -> EntityId {
        EntityId::new(self.0)
    }

    /// The queue of an entity that stands for no group.
    #[inline]
    pub(super) fn of(entity: EntityId) -> Self {
        Self(entity.number())
    }
}

impl Id for QueueId {
    #[inline]
    fn new(number: u32) -> Self {
        Self(number)
    }

    #[inline]
    fn number(self) -> u32 {
        self.0
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    // What it holds.
    pub(super) sorted: Sorted,
    pub(super) fifo: List<Fifo>,
    /// The request to serve next, if any.
    pub(super) next: Option<RequestId>,
    pub(super) queued: u32,
    /// Given out and not completed.
    pub(super) in_flight: u32,
    /// Requests that belong to it: queued, in flight, or about to be inserted.
    pub(super) requests: u32,

    // Its service.
    pub(super) sync: bool,
    pub(super) busy: bool,
    /// The timer runs for it, or ran when its next request came.
    pub(super) waiting: bool,
    /// It gave way of itself: what is left of its budget may be used when it comes back soon.
    pub(super) non_blocking: bool,
    /// The FIFO was looked at in this turn.
    pub(super) fifo_looked: bool,
    /// It is there to be seen as a weight in use.
    pub(super) counted: bool,
    /// Its group is counted as one with requests because of it.
    pub(super) pending: bool,
    /// It is in its group's tree by next sector.
    pub(super) positioned: bool,
    pub(super) max_budget: i64,
    /// While in service, when its turn is over; otherwise when it was last left with nothing. In jiffies.
    pub(super) budget_timeout: i64,
    pub(super) backlogged_at: i64,
    pub(super) served_since_backlogged: i64,
    /// When it was first served since it became busy, in jiffies.
    pub(super) first_io: i64,

    // Its habits.
    pub(super) seek: SeekHistory,
    pub(super) think: DecayingMean,
    /// When its last request completed, ns.
    pub(super) last_completion_ns: u64,
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) just_created: bool,
    /// Start of the window in which it is judged to be bound by I/O, and how long it idled therein; ns.
    pub(super) io_start_ns: u64,
    pub(super) idle_ns: u64,

    // How it is treated.
    pub(super) raising: Raising,
    pub(super) injection: Injection,
    pub(super) in_large_burst: bool,
    pub(super) in_burst_list: bool,

    // Whose it is.
    /// Unique among all queues there ever were, from 1.
    pub(super) serial: u32,
    pub(super) pid: u32,
    /// Counts down from 7: follows the weight.
    pub(super) level: u8,
    /// The one process that uses it.
    pub(super) owner: Option<ContextId>,
    /// Processes that use it or will by a merge plan, and one for ever if it is async.
    pub(super) processes: u32,
    /// Processes that may be merged with it later.
    pub(super) candidates: u32,
    pub(super) created_at: i64,
    pub(super) split_at: i64,

    // Merging.
    pub(super) planned: Option<QueueId>,
    /// Processes share it or did.
    pub(super) coop: bool,
    /// A process that shares it is to get a queue of its own again.
    pub(super) split: bool,

    // Waking.
    /// The queue whose completions make this one's process go on.
    pub(super) waker: Option<QueueId>,
    /// Serial number of the one that may be.
    pub(super) tentative_waker: u32,
    pub(super) detections: u32,
    pub(super) detection_started_ns: u64,
    /// Queues that this one wakes.
    pub(super) woken: List<Woken>,
}

impl Queue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.seek.is_seeky()
    }

    /// Nothing queued and nothing in flight.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }

    /// The request to serve after `id`, by age: the oldest, if that is overdue. Looked at once in a turn.
    #[inline]
    fn overdue(&mut self, env: &Env, id: RequestId) -> Option<RequestId> {
        if std::mem::replace(&mut self.fifo_looked, true) {
            return None;
        }
        self.fifo.first().filter(|&oldest| oldest != id && env.now >= env.requests[oldest].deadline)
    }
}

/// Queues woken by one other.
#[derive(Debug)]
pub(super) enum Woken {}

impl Kind for Woken {
    type Id = QueueId;
}

/// Waiting queues, the newest in the tree first.
#[derive(Debug)]
pub(super) enum Waiting {}

impl Kind for Waiting {
    type Id = QueueId;
}

/// All queues. The places of entities that are groups are vacant here.
#[derive(Debug, Default)]
pub(super) struct Queues {
    slots: Vec<Queue>,
    pub(super) positions: Vec<PositionNode>,
    pub(super) woken: Vec<ListLinks>,
    pub(super) waiting: Vec<ListLinks>,
    created: u32,
}

impl Queues {
    /// Makes room for as many entities.
    pub(super) fn grow(&mut self, entities: usize) {
        while self.slots.len() < entities {
            self.slots.push(Queue::vacant());
            self.positions.push(PositionNode::default());
            self.woken.push(ListLinks::default());
            self.waiting.push(ListLinks::default());
        }
    }

    /// `next` is to be served next of queue `id`.
    #[inline]
    pub(super) fn set_next(&mut self, requests: &Requests, id: QueueId, next: Option<RequestId>) {
        self[id].next = next;
        if let Some(next) = next {
            self.positions[id.0 as usize].next_sector = requests[next].sector;
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = QueueId> + '_ {
        (0..self.slots.len() as u32).map(QueueId).filter(|&id| self[id].is_alive())
    }
}

impl Index<QueueId> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.slots[id.0 as usize]
    }
}

impl IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.slots[id.0 as usize]
    }
}

impl Queue {
    /// No queue.
    fn vacant() -> Self {
        Self {
            sorted: Sorted::default(),
            fifo: List::default(),
            next: None,
            queued: 0,
            in_flight: 0,
            requests: 0,
            sync: false,
            busy: false,
            waiting: false,
            non_blocking: false,
            fifo_looked: false,
            counted: false,
            pending: false,
            positioned: false,
            max_budget: 0,
            budget_timeout: NEVER,
            backlogged_at: 0,
            served_since_backlogged: 0,
            first_io: 0,
            seek: SeekHistory::default(),
            think: DecayingMean::default(),
            last_completion_ns: 0,
            short_think: false,
            io_bound: true,
            just_created: false,
            io_start_ns: 0,
            idle_ns: 0,
            raising: Raising::default(),
            injection: Injection::default(),
            in_large_burst: false,
            in_burst_list: false,
            serial: 0,
            pid: 0,
            level: 0,
            owner: None,
            processes: 0,
            candidates: 0,
            created_at: 0,
            split_at: NEVER,
            planned: None,
            coop: false,
            split: false,
            waker: None,
            tentative_waker: 0,
            detections: 0,
            detection_started_ns: 0,
            woken: List::default(),
        }
    }

    /// Whether there is a queue.
    pub(super) fn is_alive(&self) -> bool {
        self.serial != 0
    }
}

impl Bfq {
    /// A new queue of that kind.
    pub(super) fn new_queue(
        &mut self,
        env: &mut Env,
        pid: u32,
        sync: bool,
        group: GroupId,
        class: Class,
        level: u8,
    ) -> QueueId {
        let now = self.jiffies(env);
        let now_ns = env.now.as_ns();
        let entity = self.entities.create(Entity::new(group, None, class, weight_of(level)));
        self.queues.grow(self.entities.len());
        let id = QueueId::of(entity);
        self.queues.created += 1;
        let serial = self.queues.created;
        self.queues[id] = Queue {
            sync,
            max_budget: 2 * self.default_budget() / 3,
            last_completion_ns: now_ns + 1,
            short_think: sync,
            just_created: sync,
            io_start_ns: now_ns,
            raising: Raising::new(now),
            injection: Injection::new(now),
            serial,
            pid,
            level,
            created_at: now,
            ..Queue::vacant()
        };
        let cgroup = self.groups[group].cgroup;
        env.note(|| BfqEvent::Created { queue: serial, pid, sync, cgroup }.into());
        id
    }

    /// A queue that nobody needs any more is no more.
    pub(super) fn reap(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        let used = queue.processes > 0 || queue.requests > 0 || queue.candidates > 0 || queue.counted;
        if used || self.is_on_tree_or_in_service(id.entity()) || self.active == Some(id) {
            return;
        }
        debug_assert!(!queue.busy && queue.is_empty() && !queue.positioned);
        let serial = queue.serial;
        env.note(|| BfqEvent::Freed { queue: serial }.into());
        self.leave_burst_list(id);
        self.lose_waker(id);
        while let Some(woken) = self.queues[id].woken.first() {
            self.lose_waker(woken);
        }
        if self.last_completed == Some(id) {
            self.last_completed = None;
        }
        let group = self.queues[id].sync.then(|| self.entities[id.entity()].group);
        if let Some(group) = group
            && self.groups[group].last_created == Some(id)
        {
            self.groups[group].last_created = None;
        }
        self.queues[id] = Queue::vacant();
        self.entities.free(id.entity());
    }

    /// A head at `position`.
    #[inline]
    fn head(&self, position: Sector) -> Head {
        Head { position, back_seek: self.tunables.back_seek() }
    }

    /// Sorts a request into its queue. Returns whether another one is next by that.
    #[inline]
    pub(super) fn add_sorted(&mut self, env: &mut Env, id: QueueId, request: RequestId) -> bool {
        let head = self.head(self.position);
        let queue = &mut self.queues[id];
        queue.sorted.insert(&mut env.requests, request);
        let before = queue.next;
        let next = head.better(&env.requests, before, Some(request));
        if next == before {
            return false;
        }
        self.queues.set_next(&env.requests, id, next);
        true
    }

    /// The request to serve after `request`, which is still there.
    #[inline]
    fn next_after(&mut self, env: &Env, id: QueueId, request: RequestId) -> Option<RequestId> {
        let head = self.head(env.requests[request].sector);
        let queue = &mut self.queues[id];
        if let Some(overdue) = queue.overdue(env, request) {
            return Some(overdue);
        }
        let (successor, predecessor) = queue.sorted.neighbours(&env.requests, request);
        head.better(&env.requests, successor, predecessor)
    }

    /// Takes a queued request out of its queue. A queue that is not in service and empty by that leaves.
    #[inline]
    pub(super) fn remove_request(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        if self.queues[id].next == Some(request) {
            let next = self.next_after(env, id, request);
            self.queues.set_next(&env.requests, id, next);
            self.next_changed(env, id);
        }
        let queue = &mut self.queues[id];
        queue.fifo.remove(env.requests.list_nodes(), request);
        queue.sorted.remove(&mut env.requests, request);
        queue.queued -= 1;
        self.queued -= 1;
        if self.queues[id].is_empty() {
            debug_assert!(self.queues[id].next.is_none());
            if self.queues[id].busy && self.active != Some(id) {
                self.leave_busy(env, id, false);
                let entity = &mut self.entities[id.entity()];
                (entity.budget, entity.service) = (0, 0);
            }
            self.leave_position(id);
        } else {
            self.refresh_position(env, id);
        }
    }

    /// A request is no more.
    #[inline]
    pub(super) fn forget_request(&mut self, env: &mut Env, id: QueueId, request: RequestId) {
        let context = env.requests[request].context;
        self.count_request(id, -1);
        self.process_mut(context).requests -= 1;
        self.put_request(env, id);
    }

    /// A request does not belong to its queue any more.
    #[inline]
    pub(super) fn put_request(&mut self, env: &mut Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.requests -= 1;
        if queue.processes == 0 && queue.requests == 0 {
            self.reap(env, id);
        }
    }
}
