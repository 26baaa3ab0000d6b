//! The two request queues of Linux, and the tasks that an elevator of
//! the multi-queue layer leaves to its queue.

use crate::context::{IoClass, IoPriority};
use crate::env::Env;
use crate::request::{Bio, Flags, MergeSide, Op, RequestId};

/// One of the two request queues that Linux has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// Single queue with one limit for sync and one for async requests: up to Linux 4.20.
    SingleQueue,
    /// blk-mq: one or more hardware queues, each with its tags, since Linux 3.13.
    MultiQueue(MultiQueueRules),
}

impl Layer {
    /// Returns whether this is blk-mq.
    #[must_use]
    pub const fn is_multi_queue(self) -> bool {
        matches!(self, Self::MultiQueue(_))
    }
}

/// Rules of the request queue for an elevator of the multi-queue layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiQueueRules {
    /// Kind of tags, which sets the default number of tags.
    pub tags: Tags,
    /// Part of the code that searches for a queued request that a bio can join.
    pub merging: Merging,
    /// Order in which waiting contexts get tags.
    pub waking: Waking,
    /// Ioprio that replaces an unset ioprio when requests merge.
    pub unset_ioprio: IoPriority,
    /// Whether the elevator dispatches for each hardware queue, with separate queues and batches.
    /// Otherwise it dispatches for the whole device.
    pub per_hw_queue: bool,
    /// Whether every read is sync for the elevator. Otherwise, only a read with
    /// [`Flags::SYNC`](crate::Flags::SYNC) is sync.
    pub reads_are_sync: bool,
}

impl MultiQueueRules {
    /// Rules of most elevators: scheduler tags, merging by
    /// the queue, one order for the whole device.
    pub const USUAL: Self = Self {
        tags: Tags::Scheduler,
        merging: Merging::Queue,
        waking: Waking::OnePass,
        unset_ioprio: IoPriority { class: IoClass::None, level: 0 },
        per_hw_queue: false,
        reads_are_sync: true,
    };

    /// Returns whether an operation is sync for the elevator.
    #[must_use]
    pub const fn is_sync(&self, op: Op, flags: Flags) -> bool {
        if self.reads_are_sync { op.is_sync(flags) } else { flags.contains(Flags::SYNC) }
    }

    /// Returns whether the priorities of two processes allow their requests to merge.
    #[must_use]
    pub fn same_ioprio(&self, a: IoPriority, b: IoPriority) -> bool {
        let value = |ioprio: IoPriority| if ioprio.class == IoClass::None { self.unset_ioprio } else { ioprio };
        value(a) == value(b)
    }

    /// Returns the side on which `bio` can join `id`, if any. The bio must be adjacent, and must
    /// have the same operation, ioprio and cgroup.
    #[inline]
    pub(crate) fn joins(&self, env: &Env, bio: &Bio, id: RequestId) -> Option<MergeSide> {
        // Adjacency is checked first: it is rare and cheap to check.
        env.requests[id].adjacent(bio).filter(|_| self.may_join(env, bio, id))
    }

    /// Returns whether `bio` may join `id` if the two are adjacent.
    #[inline]
    pub(crate) fn may_join(&self, env: &Env, bio: &Bio, id: RequestId) -> bool {
        let request = &env.requests[id];
        request.mergeable
            && request.op == bio.op
            && self.same_ioprio(request.ioprio, env.bio_ioprio)
            && (request.cgroup == env.contexts.get(bio.context).cgroup || env.merges_cgroups)
    }
}

/// Kind of tags that queued requests use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tags {
    /// Scheduler tags: twice as many as the device has, but at most 256.
    Scheduler,
    /// Tags of the device.
    Device,
}

/// Part of the code that searches for a queued request that a bio can join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// The queue: it checks the request merged last, the hash of request ends, and
    /// [`Elevator::find_front`](crate::Elevator::find_front). New requests also merge.
    Queue,
    /// The elevator: it implements [`Elevator::find_merge`](crate::Elevator::find_merge). Requests
    /// do not merge with requests.
    Own,
}

/// Order in which waiting contexts get tags. Linux wakes them in batches from eight wait queues.
/// The recorded runs were made without these queues, in one of two simpler orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waking {
    /// After a tag is freed, each waiting context tries once, oldest first, with the present limit.
    OnePass,
    /// At completions, the oldest context tries first. After each success, the oldest remaining
    /// context tries again. A context keeps the limit from the start of its wait.
    Rescan,
}
