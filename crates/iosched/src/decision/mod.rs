//! What a queue and its elevator decide, as typed events.
//!
//! Off by default; when off, a decision costs one predictable branch. Tests, traces and reports read these;
//! nothing parses log text.

mod adios;
mod anticipatory;
mod bfq;
mod cfq;
mod controlled;
mod io_cost;
mod kyber;
mod log;
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
pub use mq_deadline::MqDeadlineChoice;
pub use wbt::{Step, Verdict, WbtEvent};

use crate::context::{CgroupId, IoClass};
use crate::request::{MergeSide, Op, RequestId, Sector};
use crate::time::Time;

/// One decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Decision {
    /// A request is given to the elevator.
    Insert {
        /// The request.
        request: RequestId,
        /// The host's name for its founding bio.
        cookie: u64,
        /// Its process.
        pid: u32,
        /// First sector.
        sector: Sector,
        /// Length in sectors.
        nr_sectors: u32,
        /// What it does.
        op: Op,
        /// Whether somebody waits for it.
        sync: bool,
        /// Its tag, if there is a limited number.
        tag: Option<u32>,
    },
    /// A bio found no tag free that it may have, and its process waits.
    Wait {
        /// The host's name for the bio.
        cookie: u64,
        /// The process.
        pid: u32,
        /// The bio's first sector.
        sector: Sector,
        /// Its length in sectors.
        nr_sectors: u32,
        /// What it does.
        op: Op,
        /// Whether somebody waits for it.
        sync: bool,
        /// Of how many of the tags it may have one; `None`: of all.
        limit: Option<u32>,
    },
    /// A bio joined a queued request.
    Merge {
        /// The host's name for the bio.
        cookie: u64,
        /// The bio's process.
        pid: u32,
        /// The bio's first sector.
        sector: Sector,
        /// The bio's length in sectors.
        nr_sectors: u32,
        /// What it does.
        op: Op,
        /// Whether somebody waits for it.
        sync: bool,
        /// The host's name for the founding bio of the request it joined.
        into: u64,
        /// Where.
        side: MergeSide,
    },
    /// Two queued requests became one.
    RequestMerge {
        /// The founding bio of the request that is no more.
        cookie: u64,
        /// The founding bio of the one that holds both.
        into: u64,
    },
    /// A request is handed to the device.
    Dispatch {
        /// The request.
        request: RequestId,
        /// The host's name for its founding bio.
        cookie: u64,
        /// First sector.
        sector: Sector,
        /// Length in sectors.
        nr_sectors: u32,
    },
    /// The device gave a request back undone.
    Requeue {
        /// The host's name for its founding bio.
        cookie: u64,
    },
    /// The device is done with a request.
    Complete {
        /// The host's name for its founding bio.
        cookie: u64,
    },
    /// The elevator wants the queue run at once, in the middle of a submission.
    Kick,
    /// A process exited.
    Exit {
        /// Which.
        pid: u32,
    },
    /// The verdict on whether the device queues commands: -1 not known, 0 no, 1 yes.
    HwTag {
        /// The verdict.
        value: i8,
    },
    /// The elevator began to wait for a process' next request.
    IdleArm {
        /// For how long at most, in ns.
        wait_ns: u64,
    },
    /// It stopped waiting because it need not any more.
    IdleCancel,
    /// The wait ended in vain.
    IdleFire,
    /// A queue became active.
    Active {
        /// Which.
        queue: QueueName,
        /// Its class.
        class: IoClass,
        /// The kind of work being served; of the idle class, what was served before it.
        workload: Workload,
        /// Its cgroup.
        cgroup: CgroupId,
    },
    /// The active queue's turn ended.
    Expire {
        /// Which.
        queue: QueueName,
        /// Whether what was left of its slice counts for next time.
        timed_out: bool,
    },
    /// A queue took the active one's place.
    Preempt {
        /// The newcomer.
        queue: QueueName,
    },
    /// A slice's clock started.
    Slice {
        /// Whose.
        queue: QueueName,
        /// Its length in ns.
        slice_ns: u64,
    },
    /// A new slice for a kind of work.
    WorkloadSlice {
        /// Its length in ns.
        slice_ns: u64,
    },
    /// Whether a queue is worth idling for changed.
    IdleWindow {
        /// Which queue.
        queue: QueueName,
        /// Whether it is.
        worth: bool,
    },
    /// The slice is over, but the group's last queue is given one more wait before it gives way.
    WaitBusy {
        /// Which queue.
        queue: QueueName,
    },
    /// A process moves to the queue of another that works on the same place.
    CooperatorMerge {
        /// The queue it leaves.
        queue: QueueName,
        /// The founder of the queue it joins.
        into_pid: u32,
    },
    /// A process leaves a shared queue.
    CooperatorSplit {
        /// The queue it leaves.
        queue: QueueName,
    },
    /// A group was charged for its turn.
    Served {
        /// The group.
        cgroup: CgroupId,
        /// Its virtual time after the charge.
        vtime: u64,
    },
    /// A process gave up the rest of its turn to another (queue yielding).
    Yield {
        /// Who.
        pid: u32,
        /// To whom.
        to_pid: u32,
    },
    /// What only CFQ of Linux 2.6.16 decides.
    Cfq2616(Cfq2616Event),
    /// The state of the anticipatory elevator changed.
    Anticipatory(AnticipatoryEvent),
    /// What only BFQ decides.
    Bfq(BfqEvent),
    /// What mq-deadline says when asked for a request.
    MqDeadline(MqDeadlineChoice),
    /// What only kyber decides.
    Kyber(KyberEvent),
    /// What only ADIOS decides.
    Adios(AdiosEvent),
    /// What a controller beside the elevator decides.
    Controlled(ControlledEvent),
    /// What an elevator from outside of this crate decides: see [`Decision::noted`].
    Noted {
        /// What happened.
        what: &'static str,
        /// Names and values; places that are not needed are `None`.
        values: [Option<(&'static str, i64)>; 4],
    },
    /// The elevator was switched.
    Switch {
        /// Its name.
        elevator: &'static str,
    },
}

impl Decision {
    /// A decision of an elevator of your own: what happened, and up to four values with their names.
    #[must_use]
    pub fn noted<const N: usize>(what: &'static str, values: [(&'static str, i64); N]) -> Self {
        const { assert!(N <= 4, "a decision has up to four values") };
        Self::Noted { what, values: std::array::from_fn(|place| values.get(place).copied()) }
    }

    /// Returns the decision with names of bios replaced by `renamed`, and with moments counted from `beginning`.
    #[must_use]
    pub fn rebased(mut self, beginning: Time, renamed: impl Fn(u64) -> u64) -> Self {
        match &mut self {
            Self::Adios(event) => event.tell(beginning, renamed),
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
