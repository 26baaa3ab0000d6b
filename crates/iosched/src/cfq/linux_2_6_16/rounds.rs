//! Order of queues: queues with requests are in lists, and
//! the current list is served from its head.
//!
//! Best-effort queues are in the list of their level. When the current list is empty, the
//! list of the next level becomes the current one: level 0, then 0 and 1, then 0, 1 and
//! 2, and so on to 7. Levels without queues are skipped. Real-time queues join the
//! current list; idle queues have a separate list.

use super::queue::{ByTurn, QueueId, Queues};
use crate::collections::{Id, List};
use crate::context::{IoClass, LEVEL_MAX};

const LEVELS: usize = LEVEL_MAX as usize + 1;
/// List of best-effort queues with requests in flight. These queues wait for their requests, so
/// that a queue with many requests does not get more turns.
const BUSY: usize = LEVELS;
/// Current list, which is served.
const CURRENT: usize = LEVELS + 1;
const IDLE: usize = LEVELS + 2;

/// Lists of queues. An index below [`LEVELS`] is the list of that level.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    lists: [List<ByTurn>; LEVELS + 3],
    /// Next level to check, and last level of this round.
    level: usize,
    level_end: usize,
    /// Number of queues with requests.
    count: u32,
}

impl Rounds {
    /// Returns whether no queue has requests.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds `id`, which now has requests.
    pub(super) fn enter(&mut self, queues: &mut Queues, id: QueueId) {
        self.count += 1;
        self.place(queues, id, false);
    }

    /// Removes `id`, which has no requests any more.
    pub(super) fn leave(&mut self, queues: &mut Queues, id: QueueId) {
        self.count -= 1;
        self.take(queues, id);
    }

    /// Moves `id`, if it has requests, to its present list; to the front if it was preempted.
    pub(super) fn file(&mut self, queues: &mut Queues, id: QueueId, preempted: bool) {
        if queues[id].list.is_some() {
            self.take(queues, id);
            self.place(queues, id, preempted);
        }
    }

    fn take(&mut self, queues: &mut Queues, id: QueueId) {
        if let Some(list) = queues[id].list.take() {
            self.lists[list].remove(&mut queues.links, id);
        }
    }

    fn place(&mut self, queues: &mut Queues, id: QueueId, preempted: bool) {
        let queue = &queues[id];
        let (list, last_service) = match queue.priority.class {
            IoClass::RealTime => (CURRENT, queue.last_service),
            IoClass::Idle => (IDLE, queue.last_service),
            _ if queue.in_flight() > 0 => (BUSY, queue.last_service),
            _ => (usize::from(queue.priority.level), queue.last_service),
        };
        queues[id].list = Some(list);
        let list_of = &mut self.lists[list];
        let mut at = None;
        if !preempted && list != BUSY {
            // The queue goes after the queues that were never served, or were served longer ago.
            at = list_of.last();
            while let Some(other) = at {
                let served = queues[other].last_service;
                if served == 0 || served < last_service {
                    break;
                }
                at = queues.links[other.number() as usize].prev();
            }
        }
        match at {
            Some(other) => list_of.insert_after(&mut queues.links, other, id),
            None => list_of.push_front(&mut queues.links, id),
        }
    }

    /// Returns the next queue that is not of the idle class.
    pub(super) fn current(&mut self, queues: &mut Queues) -> Option<QueueId> {
        if self.lists[CURRENT].is_empty() {
            self.turn_level(queues);
        }
        self.lists[CURRENT].first()
    }

    /// Returns the first queue of the idle class.
    pub(super) fn idle(&self) -> Option<QueueId> {
        self.lists[IDLE].first()
    }

    /// Makes the list of the next level with queues the current one.
    fn turn_level(&mut self, queues: &mut Queues) {
        let mut ends = 0;
        let level = loop {
            if let Some(level) = (self.level..=self.level_end).find(|&level| !self.lists[level].is_empty()) {
                break level;
            }
            self.level = 0;
            self.level_end += 1;
            if self.level_end == LEVELS {
                self.level_end = 0;
                ends += 1;
                if ends == 2 {
                    return;
                }
            }
        };
        self.lists[CURRENT] = std::mem::take(&mut self.lists[level]);
        let mut at = self.lists[CURRENT].first();
        while let Some(id) = at {
            queues[id].list = Some(CURRENT);
            at = queues.links[id.number() as usize].next();
        }
        self.level = level + 1;
        if self.level > self.level_end {
            self.level_end = self.level;
            self.level = 0;
        }
        if self.level_end == LEVELS {
            (self.level, self.level_end) = (0, 0);
        }
    }

    /// Moves all queues of the current list back to the front of
    /// their lists, because another queue is first.
    pub(super) fn preempt(&mut self, queues: &mut Queues) {
        let mut served = Vec::new();
        let mut at = self.lists[CURRENT].first();
        while let Some(id) = at {
            served.push(id);
            at = queues.links[id.number() as usize].next();
        }
        for id in served {
            self.file(queues, id, true);
        }
    }

    /// Returns a queue with requests, in the order for draining.
    pub(super) fn any(&self) -> Option<QueueId> {
        let order = std::iter::once(CURRENT).chain(0..LEVELS).chain([BUSY, IDLE]);
        order.filter_map(|list| self.lists[list].first()).next()
    }

    /// Checks that every queue with requests is in its list, and that other queues are in no list.
    pub(super) fn check(&self, queues: &Queues) {
        let mut count = 0;
        for (number, list) in self.lists.iter().enumerate() {
            let mut at = list.first();
            while let Some(id) = at {
                assert_eq!(queues[id].list, Some(number));
                count += 1;
                at = queues.links[id.number() as usize].next();
            }
        }
        assert_eq!(count, self.count);
        assert!(queues.ids().all(|id| queues[id].list.is_some() == queues[id].has_requests()));
    }
}
