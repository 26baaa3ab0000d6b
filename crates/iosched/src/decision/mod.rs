//! Decisions of a queue and its elevator, as typed events.
//!
//! Recording is off by default. While it is off, a decision costs one predictable branch. Tests,
//! traces and reports read these events; no code parses log text.

mod adios;
mod anticipatory;
mod bfq;
mod cfq;
mod controlled;
mod io_cost;
mod kyber;
mod log;
mod mclock;
mod mq_deadline;
mod wbt;

pub use adios::{AdiosEvent, AdiosList};
pub use anticipatory::{Anticipation, AnticipatoryEvent};
pub use bfq::{BfqEvent, BfqReason, BfqState};
pub use cfq::{ActiveQueue, Cfq2616Event, QueueName, Workload};
pub use controlled::ControlledEvent;
pub use io_cost::{Admission, IoCostEvent, WeightReason};
pub use kyber::{KyberEvent, LatencyKind};
pub use log::Log;
pub use mclock::{MClockEvent, Phase};
pub use mq_deadline::MqDeadlineChoice;
pub use wbt::{Step, Verdict, WbtEvent};

use crate::context::{CgroupId, IoClass};
use crate::request::{MergeSide, Op, RequestId, Sector};
use crate::time::Time;

/// Decision of a queue, its elevator or a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Decision {
    /// A request is inserted into the elevator.
    Insert {
        /// Id of the request.
        request: RequestId,
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// Process of the request.
        pid: u32,
        /// First sector.
        sector: Sector,
        /// Length in sectors.
        nr_sectors: u32,
        /// Operation of the request.
        op: Op,
        /// Whether a process waits for the request.
        sync: bool,
        /// Tag of the request, if tags are limited.
        tag: Option<u32>,
    },
    /// A bio found no free tag that it may use, and its process waits.
    Wait {
        /// Host's name for the bio.
        cookie: u64,
        /// Process of the bio.
        pid: u32,
        /// First sector of the bio.
        sector: Sector,
        /// Length of the bio in sectors.
        nr_sectors: u32,
        /// Operation of the bio.
        op: Op,
        /// Whether a process waits for the bio.
        sync: bool,
        /// Number of tags that the bio may use; `None`: all.
        limit: Option<u32>,
    },
    /// A bio joined a queued request.
    Merge {
        /// Host's name for the bio.
        cookie: u64,
        /// Process of the bio.
        pid: u32,
        /// First sector of the bio.
        sector: Sector,
        /// Length of the bio in sectors.
        nr_sectors: u32,
        /// Operation of the bio.
        op: Op,
        /// Whether a process waits for the bio.
        sync: bool,
        /// Host's name for the first bio of the request that the bio joined.
        into: u64,
        /// Side on which the bio joined.
        side: MergeSide,
    },
    /// Two queued requests merged.
    RequestMerge {
        /// Host's name for the first bio of the absorbed request.
        cookie: u64,
        /// Host's name for the first bio of the remaining request.
        into: u64,
    },
    /// A request is given to the device.
    Dispatch {
        /// Id of the request.
        request: RequestId,
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// First sector.
        sector: Sector,
        /// Length in sectors.
        nr_sectors: u32,
    },
    /// The device returned a request unserved.
    Requeue {
        /// Host's name for the first bio of the request.
        cookie: u64,
    },
    /// The device has finished a request.
    Complete {
        /// Host's name for the first bio of the request.
        cookie: u64,
    },
    /// The elevator requires a run of the queue immediately, in the middle of a submission.
    Kick,
    /// A process exited.
    Exit {
        /// Process id.
        pid: u32,
    },
    /// Result of the elevator's detection of command queueing: -1 not known, 0 no, 1 yes.
    HwTag {
        /// The result.
        value: i8,
    },
    /// The elevator began to idle for a process' next request.
    IdleArm {
        /// Longest wait, ns.
        wait_ns: u64,
    },
    /// The elevator stopped idling because there is no more need.
    IdleCancel,
    /// The idle time ended without a request.
    IdleFire,
    /// A queue became active.
    Active {
        /// The queue.
        queue: QueueName,
        /// Class of the queue.
        class: IoClass,
        /// Kind of work that is served. For the idle class: the kind that was served before.
        workload: Workload,
        /// Cgroup of the queue.
        cgroup: CgroupId,
    },
    /// The turn of the active queue ended.
    Expire {
        /// The queue.
        queue: QueueName,
        /// Whether the rest of its slice counts for its next turn.
        timed_out: bool,
    },
    /// A queue preempted the active queue.
    Preempt {
        /// The preempting queue.
        queue: QueueName,
    },
    /// The time of a slice began.
    Slice {
        /// Queue of the slice.
        queue: QueueName,
        /// Length of the slice, ns.
        slice_ns: u64,
    },
    /// A new slice began for a kind of work.
    WorkloadSlice {
        /// Length of the slice, ns.
        slice_ns: u64,
    },
    /// CFQ changed its opinion on whether idling for a queue is worthwhile.
    IdleWindow {
        /// The queue.
        queue: QueueName,
        /// Whether idling is worthwhile.
        worth: bool,
    },
    /// The slice is over, but CFQ waits once more for the last queue of the group.
    WaitBusy {
        /// The queue.
        queue: QueueName,
    },
    /// A process moves to the queue of another process that accesses the same area.
    CooperatorMerge {
        /// Queue that the process leaves.
        queue: QueueName,
        /// Process that created the joined queue.
        into_pid: u32,
    },
    /// A process leaves a shared queue.
    CooperatorSplit {
        /// Queue that the process leaves.
        queue: QueueName,
    },
    /// A group was charged for its turn.
    Served {
        /// The group.
        cgroup: CgroupId,
        /// Virtual time of the group after the charge.
        vtime: u64,
    },
    /// A process gave up the rest of its turn to another (queue yielding).
    Yield {
        /// Process that gives up its turn.
        pid: u32,
        /// Process that gets the turn.
        to_pid: u32,
    },
    /// Decision of CFQ of Linux 2.6.16.
    Cfq2616(Cfq2616Event),
    /// The state of the anticipatory elevator changed.
    Anticipatory(AnticipatoryEvent),
    /// Decision of BFQ.
    Bfq(BfqEvent),
    /// Result of a call of mq-deadline for a request.
    MqDeadline(MqDeadlineChoice),
    /// Decision of kyber.
    Kyber(KyberEvent),
    /// Decision of ADIOS.
    Adios(AdiosEvent),
    /// Decision of mclock.
    MClock(MClockEvent),
    /// Decision of a controller.
    Controlled(ControlledEvent),
    /// Decision of an elevator outside of this crate: see [`Decision::noted`].
    Noted {
        /// Name of the event.
        what: &'static str,
        /// Names and values; unused entries are `None`.
        values: [Option<(&'static str, i64)>; 4],
    },
    /// The queue switched to another elevator.
    Switch {
        /// Name of the new elevator.
        elevator: &'static str,
    },
}

impl Decision {
    /// Creates a decision for an elevator outside of this crate: the name of the event, and up to
    /// four values with their names.
    #[must_use]
    pub fn noted<const N: usize>(what: &'static str, values: [(&'static str, i64); N]) -> Self {
        const { assert!(N <= 4, "a decision has up to four values") };
        Self::Noted { what, values: std::array::from_fn(|place| values.get(place).copied()) }
    }

    /// Returns the decision with other names and times. `renamed` gives the new name of a bio.
    /// Times become relative to `beginning`.
    #[must_use]
    pub fn rebased(mut self, beginning: Time, renamed: impl Fn(u64) -> u64) -> Self {
        match &mut self {
            Self::Adios(event) => event.tell(beginning, renamed),
            Self::MClock(event) => event.tell(beginning, renamed),
            Self::Kyber(KyberEvent::TimerArm { at }) => *at = Time::from_ns(at.since(beginning)),
            Self::Insert { cookie, .. }
            | Self::Wait { cookie, .. }
            | Self::Dispatch { cookie, .. }
            | Self::Requeue { cookie }
            | Self::Complete { cookie } => *cookie = renamed(*cookie),
            Self::Merge { cookie, into, .. } | Self::RequestMerge { cookie, into } => {
                *cookie = renamed(*cookie);
                *into = renamed(*into);
            }
            Self::Controlled(event) => event.tell(beginning, renamed),
            _ => {}
        }
        self
    }
}

impl From<BfqEvent> for Decision {
    fn from(event: BfqEvent) -> Self {
        Self::Bfq(event)
    }
}

/// Decisions of a queue since the host last took them.
pub type DecisionLog = Log<Decision>;
