//! Decisions of controllers, with their reasons.

use super::bio_state::{BioId, Direction};
use super::wheel::TimerId;
use crate::context::CgroupId;
use crate::decision::{ControlledEvent, IoCostEvent, Log, WbtEvent};

/// Decision of one of the controllers, with its data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ControllerEvent {
    /// A timer was set, possibly to the same time as before.
    Arm {
        /// The timer.
        timer: TimerId,
        /// The requested jiffy.
        jiffy: u64,
        /// Jiffy at which the timer fires, at least one jiffy after the requested jiffy. With a
        /// longer delay, the difference can be larger.
        fires: u64,
    },
    /// A timer fired.
    Fire {
        /// The timer.
        timer: TimerId,
    },
    /// Decision of wbt.
    Wbt(WbtEvent),
    /// Decision of io.max about the bios of a cgroup.
    IoMax(IoMaxEvent),
    /// Decision of io.cost.
    IoCost(IoCostEvent),
}

impl ControllerEvent {
    /// Returns the event as a decision of the queue. Returns `None` for timers and slices, whose
    /// effects appear in the events of waits.
    pub(crate) fn decision(self) -> Option<ControlledEvent> {
        match self {
            Self::Wbt(event) => Some(ControlledEvent::Wbt(event)),
            Self::IoCost(event) => Some(ControlledEvent::IoCost(event)),
            Self::Arm { .. } | Self::Fire { .. } | Self::IoMax(_) => None,
        }
    }
}

impl From<WbtEvent> for ControllerEvent {
    fn from(event: WbtEvent) -> Self {
        Self::Wbt(event)
    }
}

impl From<IoCostEvent> for ControllerEvent {
    fn from(event: IoCostEvent) -> Self {
        Self::IoCost(event)
    }
}

impl From<IoMaxEvent> for ControllerEvent {
    fn from(event: IoMaxEvent) -> Self {
        Self::IoMax(event)
    }
}

/// Change of a slice of io.max.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceChange {
    /// A slice begins.
    New,
    /// A slice begins, with the same start as the slice of the child whose bio moves up.
    Credit,
    /// The slice gets a later end.
    Extend,
    /// Whole slices in the past are removed.
    Trim {
        /// Number of removed slices.
        slices: u64,
        /// Bytes that the removed slices allowed.
        bytes: i64,
        /// Bios that the removed slices allowed.
        ios: i32,
    },
}

/// Decision of io.max.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoMaxEvent {
    /// A bio is held.
    Hold {
        /// The bio.
        bio_id: BioId,
        /// Group that holds the bio.
        group: CgroupId,
        /// Direction of the bio.
        direction: Direction,
        /// Bytes in the group's slice so far.
        bytes: u64,
        /// Bios in the group's slice so far.
        ios: u32,
        /// Bios that the group held before: reads, and other bios.
        held: [u32; 2],
    },
    /// A slice changed.
    Slice {
        /// The change.
        change: SliceChange,
        /// Group of the slice.
        group: CgroupId,
        /// Direction of the slice.
        direction: Direction,
        /// Jiffy at which the slice begins now.
        start: u64,
        /// Jiffy after which the slice ends now.
        end: u64,
    },
    /// Limits were written. The unused allowances of reads and of other bios are carried over.
    Carry {
        /// The group.
        group: CgroupId,
        /// Carried bytes.
        bytes: [i64; 2],
        /// Carried bios.
        ios: [i32; 2],
    },
    /// The children of a group are checked.
    Round {
        /// The group; `None`: the level above the root.
        of: Option<CgroupId>,
        /// Bios that the group itself holds: reads, and other bios.
        held: [u32; 2],
    },
    /// Bios of children moved up.
    Moved {
        /// Group that got the bios; `None`: the worker.
        of: Option<CgroupId>,
        /// Number of bios.
        bios: u32,
    },
}

/// Decisions of controllers since the host last took them.
pub type EventLog = Log<ControllerEvent>;
