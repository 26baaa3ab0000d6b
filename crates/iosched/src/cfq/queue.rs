//! A CFQ queue: the requests of one process (sync), or of all processes of one class and level (async).

use std::ops::{Index, IndexMut};

use super::Cfq;
use super::generation::Generation;
use super::group::GroupId;
use super::service_tree::{Class, TreeIndex};
use crate::collections::{Id, Kind, List, NIL, RbLinks, RbNode};
use crate::decision::{QueueName, Workload};
use crate::env::Env;
use crate::parts::head::{BackSeek, Head};
use crate::parts::position_tree::PositionNode;
use crate::parts::seek::SeekHistory;
use crate::parts::sorted::Sorted;
use crate::request::{Fifo, Flags, Op, Request, RequestId, Requests, Sector};

/// A queue in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueueId(u32);

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
    /// Queued requests with the priority hint.
    pub(super) hinted: u32,
    /// Given out and not completed.
    pub(super) in_flight: u32,

    // Whose it is.
    pub(super) pid: u32,
    pub(super) sync: bool,
    pub(super) class: Class,
    pub(super) level: u8,
    pub(super) original_class: Class,
    pub(super) original_level: u8,
    /// Its process has a new priority, to be taken over at the next insert.
    pub(super) priority_changed: bool,
    pub(super) group: GroupId,
    /// Processes that use it, or will by a merge plan.
    pub(super) processes: u32,
    /// Of these, such as left their plan and were not subtracted.
    pub(super) forgotten: u32,
    /// Requests allocated for it and not finished.
    pub(super) requests: u32,
    /// An async queue of its group, which stays.
    pub(super) registered: bool,

    // Its place in service.
    pub(super) busy: bool,
    pub(super) tree: Option<TreeIndex>,
    /// What it was owed, or owes if negative, of its last slice: ticks.
    pub(super) residual: i64,

    // What is known of its habits.
    pub(super) seek: SeekHistory,
    pub(super) deep: bool,
    pub(super) idle_window: bool,

    // Cooperation.
    pub(super) coop: bool,
    pub(super) split: bool,
    pub(super) merge_into: Option<QueueId>,
    /// The level of the cooperator tree it is in.
    pub(super) cooperator_level: Option<u8>,
}

impl Queue {
    fn new(pid: u32, sync: bool, group: GroupId) -> Self {
        Self {
            sorted: Sorted::default(),
            fifo: List::default(),
            next: None,
            queued: 0,
            hinted: 0,
            in_flight: 0,
            pid,
            sync,
            class: Class::BestEffort,
            level: 0,
            original_class: Class::BestEffort,
            original_level: 0,
            priority_changed: true,
            group,
            processes: 0,
            forgotten: 0,
            requests: 0,
            registered: false,
            busy: false,
            tree: None,
            residual: 0,
            seek: SeekHistory::default(),
            deep: false,
            idle_window: sync,
            coop: false,
            split: false,
            merge_into: None,
            cooperator_level: None,
        }
    }

    pub(super) fn name(&self) -> QueueName {
        QueueName { pid: self.pid, sync: self.sync }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// The kind of work it is.
    #[inline]
    pub(super) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::SyncNoIdle,
            (true, true) => Workload::Sync,
        }
    }
}

/// Trees of queues by their turns.
#[derive(Debug)]
pub(super) enum Service {}

impl Kind for Service {
    type Id = QueueId;
}

/// A queue's place in a service tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServiceNode {
    pub(super) key: i64,
    links: RbLinks,
}

/// All queues. Their places in trees stand apart, so that a descent touches little memory.
#[derive(Debug, Default)]
pub(super) struct Queues {
    slots: Vec<Queue>,
    pub(super) service: Vec<ServiceNode>,
    pub(super) positions: Vec<PositionNode>,
    free: Vec<QueueId>,
}

impl Queues {
    pub(super) fn create(&mut self, pid: u32, sync: bool, group: GroupId) -> QueueId {
        let queue = Queue::new(pid, sync, group);
        if let Some(id) = self.free.pop() {
            self[id] = queue;
            return id;
        }
        let id = QueueId(u32::try_from(self.slots.len()).ok().filter(|&n| n != NIL).expect("fewer than 2^32 queues"));
        self.slots.push(queue);
        self.service.push(ServiceNode::default());
        self.positions.push(PositionNode::default());
        id
    }

    pub(super) fn free(&mut self, id: QueueId) {
        self.free.push(id);
    }

    /// The key of a queue on a service tree.
    #[inline]
    pub(super) fn key(&self, id: QueueId) -> i64 {
        self.service[id.0 as usize].key
    }

    pub(super) fn set_key(&mut self, id: QueueId, key: i64) {
        self.service[id.0 as usize].key = key;
    }

    /// `next` is to be served next of queue `id`.
    #[inline]
    pub(super) fn set_next(&mut self, requests: &Requests, id: QueueId, next: Option<RequestId>) {
        self.slots[id.0 as usize].next = next;
        if let Some(next) = next {
            self.positions[id.0 as usize].next_sector = requests[next].sector;
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = QueueId> + '_ {
        let free: std::collections::BTreeSet<u32> = self.free.iter().map(|id| id.0).collect();
        (0..self.slots.len() as u32).filter(move |id| !free.contains(id)).map(QueueId)
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

impl RbNode<Service> for ServiceNode {
    #[inline]
    fn links(&self) -> &RbLinks {
        &self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut RbLinks {
        &mut self.links
    }
}

/// A sync write after which its process will not send more of the kind at once.
#[inline]
pub(super) fn will_not_follow_up(request: &Request) -> bool {
    request.op == Op::Write && request.flags & (Flags::SYNC | Flags::IDLE) == Flags::SYNC
}

impl Queue {
    #[inline]
    fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        self.fifo.remove(requests.list_nodes(), id);
        self.sorted.remove(requests, id);
        self.queued -= 1;
        self.hinted -= u32::from(requests[id].flags.contains(Flags::PRIO));
    }
}

impl<G: Generation> Cfq<G> {
    #[inline]
    fn back_seek(&self) -> BackSeek {
        BackSeek { max_sectors: self.tunables.back_seek_max_kb * 2, penalty: self.tunables.back_seek_penalty }
    }

    /// Sorts a request into its queue, which enters service with its first one.
    #[inline]
    pub(super) fn add_sorted(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let head = Head { position: self.position, back_seek: self.back_seek() };
        if G::UNIQUE_SECTORS {
            while let Err(alias) = self.queues[queue].sorted.insert_alone(&mut env.requests, id) {
                self.give_out(env, queue, alias);
                env.release_sorted(alias, true);
            }
        } else {
            self.queues[queue].sorted.insert(&mut env.requests, id);
        }
        if !self.queues[queue].busy {
            self.enter_service(env, queue);
        }
        let entry = &mut self.queues[queue];
        entry.queued += 1;
        let before = entry.next;
        let next = head.better(&env.requests, before, Some(id));
        if next != before {
            self.queues.set_next(&env.requests, queue, next);
            self.cooperator_tree_add(queue);
        }
    }

    /// The request to serve after `id`, with the head at `position`: its successor, or the first of all; or its predecessor.
    #[inline(always)]
    pub(super) fn next_after(&self, env: &Env, queue: QueueId, id: RequestId, position: Sector) -> Option<RequestId> {
        let (successor, predecessor) = self.queues[queue].sorted.neighbours(&env.requests, id);
        Head { position, back_seek: self.back_seek() }.better(&env.requests, successor, predecessor)
    }

    /// Takes a request out of its queue to give it out; another one is next.
    #[inline]
    pub(super) fn take_out(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let next = G::next_without(self, env, queue, id);
        self.queues.set_next(&env.requests, queue, next);
        self.remove(env, queue, id);
    }

    /// Takes a request that is not to be served next out of its queue.
    #[inline]
    pub(super) fn remove(&mut self, env: &mut Env, queue: QueueId, id: RequestId) {
        let entry = &mut self.queues[queue];
        debug_assert_ne!(entry.next, Some(id));
        entry.remove(&mut env.requests, id);
        self.queued -= 1;
        if entry.queued > 0 {
            return;
        }
        if G::EMPTY_LEAVES_SERVICE {
            self.leave_service(queue);
        } else if entry.cooperator_level.is_some() {
            // It stays in service until it expires, but nobody can cooperate with it.
            self.cooperator_tree_remove(queue);
        }
    }

    /// One request less is allocated for the queue.
    #[inline]
    pub(super) fn put_request(&mut self, env: &mut Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.requests -= 1;
        if queue.requests == 0 && !self.is_used(id) {
            self.put_queue(env, id);
        }
    }

    /// Whether a process uses the queue or will.
    #[inline]
    pub(super) fn is_used(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        if G::SPLIT_FORGETS_PLAN { queue.processes > queue.forgotten } else { queue.processes > 0 }
    }

    /// A process or a request let go of the queue: it dies with the last.
    pub(super) fn put_queue(&mut self, env: &mut Env, id: QueueId) {
        let queue = &self.queues[id];
        if self.is_used(id) || queue.requests > 0 || queue.registered {
            return;
        }
        if self.active == Some(id) {
            self.expire(env, id, false);
        }
        debug_assert!(!self.queues[id].busy);
        self.end_yield(id);
        if G::PLANS_INCLUDE_THE_GONE {
            self.forget_queue_in_plans(id);
        }
        self.queues.free(id);
    }
}
