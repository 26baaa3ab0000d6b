//! The two request queues of Linux, and what an elevator of the second leaves to its queue.

use crate::context::{IoClass, IoPriority};
use crate::env::Env;
use crate::request::{Bio, Flags, MergeSide, Op, RequestId};

/// The two request queues that Linux has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// One queue with a limit for each direction of allocation, sync and async: up to Linux 4.20.
    SingleQueue,
    /// blk-mq: one or several hardware queues, each with its tags, from Linux 3.13 on.
    MultiQueue(MultiQueueRules),
}

impl Layer {
    /// Whether this is blk-mq.
    #[must_use]
    pub const fn is_multi_queue(self) -> bool {
        matches!(self, Self::MultiQueue(_))
    }
}

/// What an elevator of the multi-queue layer leaves to the request queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiQueueRules {
    /// How many tags there are unless told otherwise.
    pub tags: Tags,
    /// Who looks for the queued request that a bio may join.
    pub merging: Merging,
    /// How those who wait for a tag are served.
    pub waking: Waking,
    /// The ioprio that one that was never set equals when requests merge.
    pub unset_ioprio: IoPriority,
    /// Whether it is asked for each hardware queue, with queues and batches for each, or once for the device.
    pub per_hw_queue: bool,
    /// Whether every read is sync to it, or only one that carries [`Flags::SYNC`](crate::Flags::SYNC).
    pub reads_are_sync: bool,
}

impl MultiQueueRules {
    /// Most elevators': scheduler tags, the queue's merging, one order for the whole device.
    pub const USUAL: Self = Self {
        tags: Tags::Scheduler,
        merging: Merging::Queue,
        waking: Waking::OnePass,
        unset_ioprio: IoPriority { class: IoClass::None, level: 0 },
        per_hw_queue: false,
        reads_are_sync: true,
    };

    /// Whether an operation is sync to the elevator.
    #[must_use]
    pub const fn is_sync(&self, op: Op, flags: Flags) -> bool {
        if self.reads_are_sync { op.is_sync(flags) } else { flags.contains(Flags::SYNC) }
    }

    /// Whether requests of two processes may be one.
    #[must_use]
    pub fn same_ioprio(&self, a: IoPriority, b: IoPriority) -> bool {
        let value = |ioprio: IoPriority| if ioprio.class == IoClass::None { self.unset_ioprio } else { ioprio };
        value(a) == value(b)
    }

    /// Where `bio` goes on from `id`, if the two may be one: same op, ioprio and cgroup, one behind the other.
    #[inline]
    pub(crate) fn joins(&self, env: &Env, bio: &Bio, id: RequestId) -> Option<MergeSide> {
        // Nearness first: it is seldom, and costs less to find out.
        env.requests[id].adjacent(bio).filter(|_| self.may_join(env, bio, id))
    }

    /// Whether `bio` may join `id` if it is next to it.
    #[inline]
    pub(crate) fn may_join(&self, env: &Env, bio: &Bio, id: RequestId) -> bool {
        let request = &env.requests[id];
        request.mergeable
            && request.op == bio.op
            && self.same_ioprio(request.ioprio, env.bio_ioprio)
            && (request.cgroup == env.contexts.get(bio.context).cgroup || env.merges_cgroups)
    }
}

/// The tags that requests have while they are queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tags {
    /// Their own, twice as many as the device has, but at most 256.
    Scheduler,
    /// The device's.
    Device,
}

/// Who looks for the queued request that a bio may join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merging {
    /// The queue: the request merged last, the hash of ends, and
    /// [`Elevator::find_front`](crate::Elevator::find_front); new requests merge, too.
    Queue,
    /// The elevator, with [`Elevator::find_merge`](crate::Elevator::find_merge); requests do not merge with requests.
    Own,
}

/// How those who wait for a tag are served. Linux wakes them in batches from eight wait queues; the recorded runs
/// were made without that, in two ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waking {
    /// Whenever a tag was freed everybody tries once, oldest first, with the limit that holds then.
    OnePass,
    /// At completions, oldest first and from the oldest again after each success, with the limit that held when the
    /// wait began.
    Rescan,
}
