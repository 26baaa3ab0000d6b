//! Queues, and the tables that find them.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use crate::collections::{Id, Kind, List, ListLinks};
use crate::context::{IoClass, IoPriority, LEVEL_MAX};
use crate::decision::QueueName;
use crate::env::Env;
use crate::parts::sorted::Sorted;
use crate::request::{Fifo, RequestId};

/// Id of a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct QueueId(u32);

impl Id for QueueId {
    fn new(number: u32) -> Self {
        Self(number)
    }

    fn number(self) -> u32 {
        self.0
    }
}

/// Marker for lists of queues in the order of their turns.
#[derive(Debug)]
pub(super) enum ByTurn {}

impl Kind for ByTurn {
    type Id = QueueId;
}

/// Queue of one process, or of async requests of several processes. Times are in jiffies.
#[derive(Debug)]
pub(super) struct Queue {
    /// Id of the process that created the queue.
    pub(super) pid: u32,
    /// Whether the queue belongs to one process alone. Otherwise an async request created it.
    pub(super) sync: bool,
    /// Present priority in service.
    pub(super) priority: IoPriority,
    /// Priority of its process.
    pub(super) original: IoPriority,
    pub(super) sorted: Sorted,
    pub(super) fifo: List<Fifo>,
    /// Request to serve next, if the oldest is not overdue.
    pub(super) next: Option<RequestId>,
    /// Numbers of async and sync requests that are released and not complete.
    pub(super) in_flight: [u32; 2],
    /// Number of requests that are allocated for the queue.
    pub(super) requests: u32,
    /// Number of processes that use the queue.
    pub(super) processes: u32,
    /// Whether idling for its next request is worthwhile.
    pub(super) idle_window: bool,
    /// Time of the last service; 0: never.
    pub(super) last_service: u64,
    /// End of its slice; 0 before the first release.
    pub(super) slice_end: u64,
    /// Whether the queue may not lose its turn before it has dispatched.
    pub(super) must_dispatch: bool,
    /// Whether the turn continues without requests, until the timer fires.
    pub(super) waiting: bool,
    /// Whether an overdue request was served first in this turn.
    pub(super) found_overdue: bool,
    /// List that contains the queue while it has requests.
    pub(super) list: Option<usize>,
    /// Number of the queue in decisions, once it was reported.
    pub(super) number: Option<u32>,
    /// Order of creation; larger for younger queues.
    birth: u64,
}

impl Queue {
    /// Returns the name of the queue in decisions.
    pub(super) fn name(&self) -> QueueName {
        QueueName { pid: self.pid, sync: self.sync }
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.sorted.is_empty()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight[0] + self.in_flight[1]
    }

    /// Returns whether the queue gets the slice of a sync queue.
    pub(super) fn acts_sync(&self) -> bool {
        self.sync || self.in_flight[1] > 0
    }

    pub(super) fn is_idle_class(&self) -> bool {
        self.priority.class == IoClass::Idle
    }

    /// Returns the better of two requests, or the only one: a sync request before
    /// an async one, otherwise the lower sector. The head position does not
    /// count, because these kernels do not store it.
    pub(super) fn better(env: &Env, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        let rank = |id: RequestId| (!env.requests[id].is_sync(), env.requests[id].sector);
        match (a, b) {
            (Some(x), Some(y)) => Some(if rank(y) < rank(x) { y } else { x }),
            _ => a.or(b),
        }
    }

    /// Returns the request to serve after `id`.
    pub(super) fn after(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let (successor, predecessor) = self.sorted.neighbours(&env.requests, id);
        Self::better(env, successor, predecessor)
    }
}

/// Numbers of classes and levels of a queue.
const CLASSES: usize = 3;
const LEVELS: usize = LEVEL_MAX as usize + 1;

/// All queues.
#[derive(Debug, Default)]
pub(super) struct Queues {
    table: Vec<Queue>,
    pub(super) links: Vec<ListLinks>,
    free: Vec<QueueId>,
    /// Async queues by priority, then by age.
    shared: [BTreeMap<u64, QueueId>; CLASSES * LEVELS],
    births: u64,
}

impl Index<QueueId> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.table[id.0 as usize]
    }
}

impl IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.table[id.0 as usize]
    }
}

fn bucket(priority: IoPriority) -> Option<usize> {
    let class = match priority.class {
        IoClass::None => return None,
        IoClass::RealTime => 0,
        IoClass::BestEffort => 1,
        IoClass::Idle => 2,
    };
    Some(class * LEVELS + usize::from(priority.level))
}

impl Queues {
    /// Creates a queue with this priority.
    pub(super) fn create(&mut self, pid: u32, sync: bool, priority: IoPriority) -> QueueId {
        self.births += 1;
        let birth = self.births;
        let queue = Queue {
            pid,
            sync,
            priority,
            original: priority,
            sorted: Sorted::default(),
            fifo: List::default(),
            next: None,
            in_flight: [0; 2],
            requests: 0,
            processes: 0,
            idle_window: priority.class != IoClass::Idle,
            last_service: 0,
            slice_end: 0,
            must_dispatch: false,
            waiting: false,
            found_overdue: false,
            list: None,
            number: None,
            birth,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self[id] = queue;
                id
            }
            None => {
                // There are no more queues than io contexts
                // and requests, whose numbers have 32 bits.
                let id = QueueId(self.table.len() as u32);
                self.table.push(queue);
                self.links.push(ListLinks::default());
                id
            }
        };
        if let (false, Some(bucket)) = (sync, bucket(priority)) {
            self.shared[bucket].insert(birth, id);
        }
        id
    }

    /// Returns the youngest async queue with exactly the ioprio of a process.
    pub(super) fn shared(&self, ioprio: IoPriority) -> Option<QueueId> {
        self.shared[bucket(ioprio)?].last_key_value().map(|(_, &id)| id)
    }

    /// Sets the present priority of `id`.
    pub(super) fn show(&mut self, id: QueueId, priority: IoPriority) {
        let queue = &mut self[id];
        let (before, birth, sync) = (std::mem::replace(&mut queue.priority, priority), queue.birth, queue.sync);
        if sync {
            return;
        }
        if let Some(bucket) = bucket(before) {
            self.shared[bucket].remove(&birth);
        }
        if let Some(bucket) = bucket(priority) {
            self.shared[bucket].insert(birth, id);
        }
    }

    /// Frees the unused queue `id`.
    pub(super) fn remove(&mut self, id: QueueId) {
        let (priority, birth) = (self[id].priority, self[id].birth);
        if let Some(bucket) = bucket(priority) {
            self.shared[bucket].remove(&birth);
        }
        self.free.push(id);
    }

    /// Returns all existing queues.
    pub(super) fn ids(&self) -> impl Iterator<Item = QueueId> {
        let mut free = vec![false; self.table.len()];
        for id in &self.free {
            free[id.0 as usize] = true;
        }
        (0..self.table.len()).filter(move |&number| !free[number]).map(|number| QueueId(number as u32))
    }
}
