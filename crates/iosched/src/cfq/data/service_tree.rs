//! Service trees: the busy queues of one class and kind of work, in the order of their turns.

use super::queue::{QueueId, Queues, Service};
use crate::collections::RbTree;
use crate::context::IoClass;
use crate::decision::Workload;
use crate::parts::think_time::ThinkTime;

/// Class of a busy queue, which selects its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cfq) enum Class {
    BestEffort,
    RealTime,
    Idle,
}

impl Class {
    pub(in crate::cfq) fn io_class(self) -> IoClass {
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

/// Kinds of work, in the order in which ties are resolved.
pub(in crate::cfq) const WORKLOADS: [Workload; 3] = [Workload::Async, Workload::SyncNoIdle, Workload::Sync];

/// Service tree of a group.
#[derive(Debug)]
pub(in crate::cfq) struct ServiceTree {
    pub(in crate::cfq) queues: RbTree<Service>,
    pub(in crate::cfq) count: u32,
    pub(in crate::cfq) think_time: ThinkTime,
}

impl ServiceTree {
    pub(in crate::cfq) fn new(now: u64) -> Self {
        Self { queues: RbTree::default(), count: 0, think_time: ThinkTime::new(now) }
    }

    pub(in crate::cfq) fn insert(&mut self, arena: &mut Queues, id: QueueId) {
        let key = arena.key(id);
        self.queues.insert(&mut arena.service, id, |at| key < at.key);
        self.count += 1;
    }

    pub(in crate::cfq) fn remove(&mut self, arena: &mut Queues, id: QueueId) {
        self.queues.remove(&mut arena.service, id);
        self.count -= 1;
    }

    pub(in crate::cfq) fn first_key(&self, arena: &Queues) -> Option<i64> {
        self.queues.first().map(|id| arena.key(id))
    }

    /// Returns the key of the last queue, unless the last queue is `id`.
    pub(in crate::cfq) fn last_key_but(&self, arena: &Queues, id: QueueId) -> Option<i64> {
        self.queues.last().filter(|&last| last != id).map(|last| arena.key(last))
    }
}

/// Index of a tree in its group, by class and kind. The idle class has one tree for all kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cfq) struct TreeIndex(u8);

impl TreeIndex {
    pub(in crate::cfq) const COUNT: usize = 7;
    pub(in crate::cfq) const IDLE: Self = Self(6);
    /// The only tree, in generations that distinguish classes and kinds by keys.
    pub(in crate::cfq) const ONE: Self = Self(0);

    #[inline]
    pub(in crate::cfq) fn of(class: Class, workload: Workload) -> Self {
        match class {
            Class::BestEffort => Self(workload as u8),
            Class::RealTime => Self(3 + workload as u8),
            Class::Idle => Self::IDLE,
        }
    }

    #[inline]
    pub(in crate::cfq) fn index(self) -> usize {
        usize::from(self.0)
    }
}
