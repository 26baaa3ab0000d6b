//! Service trees: the busy queues of one class and kind of work, in the order of their turns.

use super::Cfq;
use super::queue::{QueueId, Queues, Service};
use crate::collections::RbTree;
use crate::context::IoClass;
use crate::decision::Workload;
use crate::elevator::Env;
use crate::parts::think_time::ThinkTime;
use crate::time::{MILLISECOND_NS, SECOND_NS, Time};

/// How far behind an idle-class queue is put.
const IDLE_DELAY_NS: i64 = 200 * MILLISECOND_NS as i64;

/// The class of a busy queue, as trees are kept by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

impl Class {
    pub(super) fn io_class(self) -> IoClass {
        match self {
            Self::BestEffort => IoClass::BestEffort,
            Self::RealTime => IoClass::RealTime,
            Self::Idle => IoClass::Idle,
        }
    }
}

impl From<IoClass> for Class {
    fn from(class: IoClass) -> Self {
        match class {
            IoClass::None | IoClass::BestEffort => Self::BestEffort,
            IoClass::RealTime => Self::RealTime,
            IoClass::Idle => Self::Idle,
        }
    }
}

/// The kinds of work, in the order ties are broken.
pub(super) const WORKLOADS: [Workload; 3] = [Workload::Async, Workload::SyncNoIdle, Workload::Sync];

/// One tree of a group.
#[derive(Debug)]
pub(super) struct ServiceTree {
    pub(super) queues: RbTree<Service>,
    pub(super) count: u32,
    pub(super) think_time: ThinkTime,
}

impl ServiceTree {
    pub(super) fn new(now: Time) -> Self {
        Self { queues: RbTree::default(), count: 0, think_time: ThinkTime::new(now.as_ns()) }
    }

    fn insert(&mut self, arena: &mut Queues, id: QueueId) {
        let key = arena.key(id);
        self.queues.insert(&mut arena.service, id, |at| key < at.key);
        self.count += 1;
    }

    fn remove(&mut self, arena: &mut Queues, id: QueueId) {
        self.queues.remove(&mut arena.service, id);
        self.count -= 1;
    }

    pub(super) fn first_key(&self, arena: &Queues) -> Option<i64> {
        self.queues.first().map(|id| arena.key(id))
    }
}

/// Which tree of its group: a place for class and kind; the idle class has one for all kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TreeIndex(u8);

impl TreeIndex {
    pub(super) const COUNT: usize = 7;
    pub(super) const IDLE: Self = Self(6);

    #[inline]
    pub(super) fn of(class: Class, workload: Workload) -> Self {
        match class {
            Class::BestEffort => Self(workload as u8),
            Class::RealTime => Self(3 + workload as u8),
            Class::Idle => Self::IDLE,
        }
    }

    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl Cfq {
    /// Puts a queue on the tree it belongs to, or to its new place there; `front`: before all others.
    pub(super) fn service_tree_add(&mut self, env: &Env, id: QueueId, front: bool) {
        let now = env.now.as_ns() as i64;
        let queue = &self.queues[id];
        let (group, index, on_tree) = (queue.group, queue.tree_index(), queue.tree);
        let tree = &self.groups[group].trees[index.index()];
        let key = if queue.class == Class::Idle {
            now + IDLE_DELAY_NS
        } else if front {
            tree.first_key(&self.queues).unwrap_or(now) - SECOND_NS as i64
        } else {
            let key = now + self.slice_offset(id) - queue.residual_ns;
            self.queues[id].residual_ns = 0;
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

    /// How far behind its turn a queue of lesser priority is put: further, the more queues there are.
    fn slice_offset(&self, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let longest_ns = self.prio_slice_ns(true, 0) as i64;
        let own_ns = self.prio_slice_ns(queue.sync, queue.level) as i64;
        (i64::from(self.groups[queue.group].busy_queues) - 1) * (longest_ns - own_ns)
    }

    /// A queue enters service.
    pub(super) fn enter_service(&mut self, env: &Env, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.busy = true;
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(queue.sync);
        self.resort(env, id);
    }

    /// A busy queue is put where it belongs now.
    pub(super) fn resort(&mut self, env: &Env, id: QueueId) {
        if self.queues[id].busy {
            self.service_tree_add(env, id, false);
            self.cooperator_tree_add(id);
        }
    }

    /// A queue leaves service.
    pub(super) fn leave_service(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        debug_assert!(queue.busy);
        queue.busy = false;
        let (group, sync) = (queue.group, queue.sync);
        if let Some(index) = queue.tree.take() {
            self.groups[group].trees[index.index()].remove(&mut self.queues, id);
        }
        self.cooperator_tree_remove(id);
        self.group_queue_removed(group);
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(sync);
    }
}
