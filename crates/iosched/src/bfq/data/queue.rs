//! Queue: the requests of one process (sync), or of all processes of one class and level in a group
//! (async). Also chooses the next request of a queue.

use std::ops::{Index, IndexMut};

use super::entity::EntityId;
use super::injection::Injection;
use super::raising::Raising;
use super::seek::SeekHistory;
use crate::collections::{Id, Kind, List, ListLinks};
use crate::context::{ContextId, LEVEL_MAX};
use crate::env::Env;
use crate::parts::mean::DecayingMean;
use crate::parts::position_tree::PositionNode;
use crate::parts::sorted::Sorted;
use crate::request::{Fifo, RequestId, Requests};

/// Time before every other time, in jiffies.
pub(in crate::bfq) const NEVER: i64 = i64::MIN / 4;

/// Weight of each level above the lowest.
const WEIGHT_PER_LEVEL: u32 = 10;

/// Returns the weight of a level.
pub(in crate::bfq) fn weight_of(level: u8) -> u32 {
    (u32::from(LEVEL_MAX) + 1 - u32::from(level)) * WEIGHT_PER_LEVEL
}

/// Id of a queue in the arena; it is also the index of its entity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::bfq) struct QueueId(u32);

impl QueueId {
    #[inline]
    pub(in crate::bfq) fn entity(self) -> EntityId {
        EntityId::new(self.0)
    }

    /// Returns the queue of an entity that does not represent a group.
    #[inline]
    pub(in crate::bfq) fn of(entity: EntityId) -> Self {
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

/// Queue of requests.
#[derive(Debug)]
pub(in crate::bfq) struct Queue {
    // Contents.
    pub(in crate::bfq) sorted: Sorted,
    pub(in crate::bfq) fifo: List<Fifo>,
    /// Request to serve next, if any.
    pub(in crate::bfq) next: Option<RequestId>,
    pub(in crate::bfq) queued: u32,
    /// Number of requests that are dispatched and not complete.
    pub(in crate::bfq) in_flight: u32,
    /// Number of requests that belong to the queue: queued, in flight, or about to be inserted.
    pub(in crate::bfq) requests: u32,

    // Service.
    pub(in crate::bfq) sync: bool,
    pub(in crate::bfq) busy: bool,
    /// Whether BFQ idles for the queue, or idled when the queue's next request came.
    pub(in crate::bfq) waiting: bool,
    /// Whether the last turn of the queue ended because the queue had no more requests. The queue
    /// may use the rest of its budget if its next request comes soon.
    pub(in crate::bfq) non_blocking: bool,
    /// Whether the FIFO was checked in this turn.
    pub(in crate::bfq) fifo_looked: bool,
    /// Whether the queue is counted among the weights in use.
    pub(in crate::bfq) counted: bool,
    /// Whether the queue makes its group count as a group with requests.
    pub(in crate::bfq) pending: bool,
    /// Whether the queue is in its group's tree by next sector.
    pub(in crate::bfq) positioned: bool,
    pub(in crate::bfq) max_budget: i64,
    /// End of the turn while the queue is in service, otherwise the time when the queue last became
    /// empty; in jiffies.
    pub(in crate::bfq) budget_timeout: i64,
    pub(in crate::bfq) backlogged_at: i64,
    pub(in crate::bfq) served_since_backlogged: i64,
    /// First service since the queue became busy, in jiffies.
    pub(in crate::bfq) first_io: i64,

    // Behaviour.
    pub(in crate::bfq) seek: SeekHistory,
    pub(in crate::bfq) think: DecayingMean,
    /// Last completion, ns.
    pub(in crate::bfq) last_completion_ns: u64,
    pub(in crate::bfq) short_think: bool,
    pub(in crate::bfq) io_bound: bool,
    pub(in crate::bfq) just_created: bool,
    /// Start of the window in which BFQ judges whether the queue is I/O bound, ns. `idle_ns` is the
    /// idle time in this window.
    pub(in crate::bfq) io_start_ns: u64,
    pub(in crate::bfq) idle_ns: u64,

    // Treatment.
    pub(in crate::bfq) raising: Raising,
    pub(in crate::bfq) injection: Injection,
    pub(in crate::bfq) in_large_burst: bool,
    pub(in crate::bfq) in_burst_list: bool,

    // Identity and use.
    /// Unique number among all queues so far, from 1.
    pub(in crate::bfq) serial: u32,
    pub(in crate::bfq) pid: u32,
    /// Level that follows from the weight. It counts down from 7.
    pub(in crate::bfq) level: u8,
    /// Process that uses the queue alone, if there is only one.
    pub(in crate::bfq) owner: Option<ContextId>,
    /// Number of processes that use the queue or will use it by a planned merge. For an async
    /// queue, the number is larger by one.
    pub(in crate::bfq) processes: u32,
    /// Number of processes that may be merged with the queue later.
    pub(in crate::bfq) candidates: u32,
    pub(in crate::bfq) created_at: i64,
    pub(in crate::bfq) split_at: i64,

    // Merging.
    pub(in crate::bfq) planned: Option<QueueId>,
    /// Whether processes share the queue now, or have shared it before.
    pub(in crate::bfq) coop: bool,
    /// Whether a process that shares the queue must get its own queue again.
    pub(in crate::bfq) split: bool,

    // Waking.
    /// Queue whose completions let this queue's process continue.
    pub(in crate::bfq) waker: Option<QueueId>,
    /// Serial number of the possible waker.
    pub(in crate::bfq) tentative_waker: u32,
    pub(in crate::bfq) detections: u32,
    pub(in crate::bfq) detection_started_ns: u64,
    /// Queues that this queue wakes.
    pub(in crate::bfq) woken: List<Woken>,
}

impl Queue {
    #[inline]
    pub(in crate::bfq) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    #[inline]
    pub(in crate::bfq) fn is_seeky(&self) -> bool {
        self.seek.is_seeky()
    }

    /// Returns whether the queue has no queued request and none in flight.
    #[inline]
    pub(in crate::bfq) fn is_idle(&self) -> bool {
        self.queued == 0 && self.in_flight == 0
    }

    /// Returns the oldest request if it is overdue and not `id`. Checked once per turn.
    #[inline]
    pub(in crate::bfq) fn overdue(&mut self, env: &Env, id: RequestId) -> Option<RequestId> {
        if std::mem::replace(&mut self.fifo_looked, true) {
            return None;
        }
        self.fifo.first().filter(|&oldest| oldest != id && env.now >= env.requests[oldest].deadline)
    }
}

/// Marker for lists of the queues that one queue wakes.
#[derive(Debug)]
pub(in crate::bfq) enum Woken {}

impl Kind for Woken {
    type Id = QueueId;
}

/// Marker for lists of waiting queues. The queue that entered its tree last is first.
#[derive(Debug)]
pub(in crate::bfq) enum Waiting {}

impl Kind for Waiting {
    type Id = QueueId;
}

/// All queues. Slots of entities that are groups are vacant.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Queues {
    slots: Vec<Queue>,
    pub(in crate::bfq) positions: Vec<PositionNode>,
    pub(in crate::bfq) woken: Vec<ListLinks>,
    pub(in crate::bfq) waiting: Vec<ListLinks>,
    pub(in crate::bfq) created: u32,
}

impl Queues {
    /// Grows the tables to `entities` slots.
    pub(in crate::bfq) fn grow(&mut self, entities: usize) {
        while self.slots.len() < entities {
            self.slots.push(Queue::vacant());
            self.positions.push(PositionNode::default());
            self.woken.push(ListLinks::default());
            self.waiting.push(ListLinks::default());
        }
    }

    /// Sets the request of queue `id` to serve next.
    #[inline]
    pub(in crate::bfq) fn set_next(&mut self, requests: &Requests, id: QueueId, next: Option<RequestId>) {
        self[id].next = next;
        if let Some(next) = next {
            self.positions[id.0 as usize].next_sector = requests[next].sector;
        }
    }

    pub(in crate::bfq) fn ids(&self) -> impl Iterator<Item = QueueId> + '_ {
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
    /// Returns the content of a vacant slot.
    pub(in crate::bfq) fn vacant() -> Self {
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

    /// Returns whether the slot contains a queue.
    pub(in crate::bfq) fn is_alive(&self) -> bool {
        self.serial != 0
    }
}
