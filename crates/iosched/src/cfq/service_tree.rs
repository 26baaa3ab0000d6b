//! Service trees: the busy queues of one class and kind of work, in the order of their turns.

use super::Cfq;
use super::clock::Clock as _;
use super::data::queue::QueueId;
use super::data::service_tree::{Class, TreeIndex};
use super::generation::Generation;
use crate::env::Env;
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// Delay in the key of an idle-class queue, ns.
const IDLE_DELAY_NS: u64 = 200 * MILLISECOND_NS;

/// Difference between two keys, ns. A preempting queue gets a key that is smaller than the first
/// key of its tree by this difference.
const FRONT_NS: u64 = SECOND_NS;

impl<G: Generation> Cfq<G> {
    /// Returns the tree for a queue. The queue may be on another tree until it is next sorted.
    #[inline]
    pub(super) fn tree_index(&self, id: QueueId) -> TreeIndex {
        let queue = &self.queues[id];
        if G::ONE_TREE { TreeIndex::ONE } else { TreeIndex::of(queue.class, queue.workload()) }
    }

    /// Inserts a queue into its tree, or moves it to its new position; `front`: before all others.
    pub(super) fn service_tree_add(&mut self, env: &Env, id: QueueId, front: bool) {
        let index = self.tree_index(id);
        let queue = &self.queues[id];
        let (group, on_tree) = (queue.group, queue.tree);
        let key = if queue.class == Class::Idle {
            G::idle_key(self, env, id)
        } else if front {
            G::front_key(self, env, id)
        } else {
            let key = G::turn_key(self, env, id);
            self.queues[id].residual = 0;
            key
        };
        if let Some(old) = on_tree {
            if old == index && self.queues.key(id) == key {
                return;
            }
            self.groups[group].trees[old.index()].remove(&mut self.queues, id);
        }
        let queue = &mut self.queues[id];
        queue.tree = Some(index);
        self.queues.set_key(id, key);
        self.groups[group].trees[index.index()].insert(&mut self.queues, id);
        if on_tree.is_none() && !front {
            self.group_queue_added(env, group);
        }
    }

    /// Returns a key after the turns of all other queues in the near future.
    pub(super) fn key_with_idle_delay(from: u64, env: &Env) -> i64 {
        (from + G::Clock::ticks(env, IDLE_DELAY_NS)) as i64
    }

    /// Returns a key before all others in the tree for the queue.
    pub(super) fn key_before_all(&self, env: &Env, id: QueueId) -> i64 {
        let tree = &self.groups[self.queues[id].group].trees[self.tree_index(id).index()];
        tree.first_key(&self.queues).unwrap_or(G::Clock::now(env) as i64) - G::Clock::ticks(env, FRONT_NS) as i64
    }

    /// Returns the key of the queue's normal turn: now, later for a lower priority, and earlier by
    /// the residual of its last slice.
    pub(super) fn key_in_turn(&self, env: &Env, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let queues = self.groups[queue.group].busy_queues;
        G::Clock::now(env) as i64 + self.slice_offset(id, queues) - queue.residual
    }

    /// Returns the delay of a queue's turn, in ticks. The delay grows with the number of queues. It
    /// is longer for a lower priority.
    pub(super) fn slice_offset(&self, id: QueueId, queues: u32) -> i64 {
        let queue = &self.queues[id];
        let longest = self.prio_slice(true, 0) as i64;
        let slice = self.prio_slice(queue.sync, queue.level) as i64;
        (i64::from(queues) - 1).wrapping_mul(longest - slice)
    }

    /// Handles a queue that enters service.
    pub(super) fn enter_service(&mut self, env: &Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.busy = true;
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(queue.sync);
        if G::REAL_TIME_CUTS_IN && queue.class == Class::RealTime {
            self.busy_real_time = self.busy_real_time.wrapping_add(1);
        }
        self.resort(env, id);
    }

    /// Moves a busy queue to its present position.
    pub(super) fn resort(&mut self, env: &Env, id: QueueId) {
        if self.queues[id].busy {
            self.service_tree_add(env, id, false);
            self.cooperator_tree_add(id);
        }
    }

    /// Handles a queue that leaves service.
    pub(super) fn leave_service(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        debug_assert!(queue.busy);
        queue.busy = false;
        let (group, sync) = (queue.group, queue.sync);
        if G::REAL_TIME_CUTS_IN && queue.class == Class::RealTime {
            self.busy_real_time = self.busy_real_time.wrapping_sub(1);
        }
        if let Some(index) = queue.tree.take() {
            self.groups[group].trees[index.index()].remove(&mut self.queues, id);
        }
        self.cooperator_tree_remove(id);
        self.group_queue_removed(group);
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(sync);
    }
}
