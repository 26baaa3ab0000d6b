//! Queue of CFQ: the requests of one process (sync), or of all
//! processes of one class and level (async).

use std::ops::{Index, IndexMut};

use super::group::GroupId;
use super::service_tree::{Class, TreeIndex};
use crate::collections::{Id, Kind, List, NIL, RbLinks, RbNode};
use crate::decision::{QueueName, Workload};
use crate::parts::position_tree::PositionNode;
use crate::parts::seek::SeekHistory;
use crate::parts::sorted::Sorted;
use crate::request::{Fifo, Flags, Op, Request, RequestId, Requests};

/// Id of a queue in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cfq) struct QueueId(u32);

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

/// Queue of requests.
#[derive(Debug)]
pub(in crate::cfq) struct Queue {
    // Contents.
    pub(in crate::cfq) sorted: Sorted,
    pub(in crate::cfq) fifo: List<Fifo>,
    /// Request to serve next, if any.
    pub(in crate::cfq) next: Option<RequestId>,
    pub(in crate::cfq) queued: u32,
    /// Number of queued requests with the priority hint.
    pub(in crate::cfq) hinted: u32,
    /// Number of requests that are dispatched and not complete.
    pub(in crate::cfq) in_flight: u32,

    // Identity and use.
    pub(in crate::cfq) pid: u32,
    pub(in crate::cfq) sync: bool,
    pub(in crate::cfq) class: Class,
    pub(in crate::cfq) level: u8,
    pub(in crate::cfq) original_class: Class,
    pub(in crate::cfq) original_level: u8,
    /// Whether the process has a new priority, which applies from the next insertion.
    pub(in crate::cfq) priority_changed: bool,
    pub(in crate::cfq) group: GroupId,
    /// Number of processes that use the queue, or will use it by a merge plan.
    pub(in crate::cfq) processes: u32,
    /// Number of processes in `processes` that have left their merge plan but were not subtracted.
    pub(in crate::cfq) forgotten: u32,
    /// Number of requests that are allocated for the queue and not finished.
    pub(in crate::cfq) requests: u32,
    /// Whether the queue is an async queue of its group. Such a queue is not freed.
    pub(in crate::cfq) registered: bool,

    // Position in service.
    pub(in crate::cfq) busy: bool,
    pub(in crate::cfq) tree: Option<TreeIndex>,
    /// Rest of its last slice, or debt if negative, in ticks.
    pub(in crate::cfq) residual: i64,

    // Behaviour.
    pub(in crate::cfq) seek: SeekHistory,
    pub(in crate::cfq) deep: bool,
    pub(in crate::cfq) idle_window: bool,

    // Cooperation.
    pub(in crate::cfq) coop: bool,
    pub(in crate::cfq) split: bool,
    pub(in crate::cfq) merge_into: Option<QueueId>,
    /// Level of the cooperator tree that contains the queue.
    pub(in crate::cfq) cooperator_level: Option<u8>,
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

    pub(in crate::cfq) fn name(&self) -> QueueName {
        QueueName { pid: self.pid, sync: self.sync }
    }

    #[inline]
    pub(in crate::cfq) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Returns the kind of work of the queue.
    #[inline]
    pub(in crate::cfq) fn workload(&self) -> Workload {
        match (self.sync, self.idle_window) {
            (false, _) => Workload::Async,
            (true, false) => Workload::SyncNoIdle,
            (true, true) => Workload::Sync,
        }
    }
}

/// Marker for trees of queues in the order of their turns.
#[derive(Debug)]
pub(in crate::cfq) enum Service {}

impl Kind for Service {
    type Id = QueueId;
}

/// Position of a queue in a service tree.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cfq) struct ServiceNode {
    pub(in crate::cfq) key: i64,
    links: RbLinks,
}

/// All queues. Their positions in trees are stored apart, so that a search reads little memory.
#[derive(Debug, Default)]
pub(in crate::cfq) struct Queues {
    slots: Vec<Queue>,
    pub(in crate::cfq) service: Vec<ServiceNode>,
    pub(in crate::cfq) positions: Vec<PositionNode>,
    free: Vec<QueueId>,
}

impl Queues {
    pub(in crate::cfq) fn create(&mut self, pid: u32, sync: bool, group: GroupId) -> QueueId {
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

    pub(in crate::cfq) fn free(&mut self, id: QueueId) {
        self.free.push(id);
    }

    /// Returns the key of a queue on a service tree.
    #[inline]
    pub(in crate::cfq) fn key(&self, id: QueueId) -> i64 {
        self.service[id.0 as usize].key
    }

    pub(in crate::cfq) fn set_key(&mut self, id: QueueId, key: i64) {
        self.service[id.0 as usize].key = key;
    }

    /// Sets the request of queue `id` to serve next.
    #[inline]
    pub(in crate::cfq) fn set_next(&mut self, requests: &Requests, id: QueueId, next: Option<RequestId>) {
        self.slots[id.0 as usize].next = next;
        if let Some(next) = next {
            self.positions[id.0 as usize].next_sector = requests[next].sector;
        }
    }

    pub(in crate::cfq) fn ids(&self) -> impl Iterator<Item = QueueId> + '_ {
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

/// Returns whether the request is a sync write after which its process will not send more sync
/// writes immediately.
#[inline]
pub(in crate::cfq) fn will_not_follow_up(request: &Request) -> bool {
    request.op == Op::Write && request.flags & (Flags::SYNC | Flags::IDLE) == Flags::SYNC
}

impl Queue {
    #[inline]
    pub(in crate::cfq) fn remove(&mut self, requests: &mut Requests, id: RequestId) {
        self.fifo.remove(requests.list_nodes(), id);
        self.sorted.remove(requests, id);
        self.queued -= 1;
        self.hinted -= u32::from(requests[id].flags.contains(Flags::PRIO));
    }
}
