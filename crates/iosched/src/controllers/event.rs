//! What controllers decide, and why.

use super::bio_state::{BioId, Direction};
use super::wheel::TimerId;
use crate::context::CgroupId;
use crate::decision::{ControlledEvent, IoCostEvent, Log, WbtEvent};

/// One decision of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ControllerEvent {
    /// A timer was set, perhaps to what it was set to already.
    Arm {
        /// Which.
        timer: TimerId,
        /// The jiffy that was asked for.
        jiffy: u64,
        /// The jiffy it fires at: never before the one after that, later the further off it is.
        fires: u64,
    },
    /// A timer fired.
    Fire {
        /// Which.
        timer: TimerId,
    },
    /// Of wbt.
    Wbt(WbtEvent),
    /// Of io.max.
    IoMax(IoMaxEvent),
    /// Of io.cost.
    IoCost(IoCostEvent),
}

impl ControllerEvent {
    /// What a controller says of itself, as a decision of the queue; `None`: of its timers and slices, which waits tell
    /// of.
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

/// What happens to a slice of io.max.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceChange {
    /// It begins.
    New,
    /// It begins with that of a child whose bio comes up.
    Credit,
    /// It ends later.
    Extend,
    /// Whole slices that are over are taken off.
    Trim {
        /// How many.
        slices: u64,
        /// Bytes that they allowed.
        bytes: i64,
        /// Bios that they allowed.
        ios: i32,
    },
}

/// A decision of io.max.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoMaxEvent {
    /// A bio is held.
    Hold {
        /// Which.
        bio_id: BioId,
        /// In which group.
        group: CgroupId,
        /// In which direction.
        direction: Direction,
        /// Bytes of that group's slice until now.
        bytes: u64,
        /// Bios of it.
        ios: u32,
        /// Bios that the group held before: reads, and others.
        held: [u32; 2],
    },
    /// A slice changed.
    Slice {
        /// How.
        change: SliceChange,
        /// Whose.
        group: CgroupId,
        /// In which direction.
        direction: Direction,
        /// The jiffy in which it begins now.
        start: u64,
        /// The jiffy behind which it ends now.
        end: u64,
    },
    /// Limits are written: what is carried over, of reads and of others.
    Carry {
        /// Of which group.
        group: CgroupId,
        /// In bytes.
        bytes: [i64; 2],
        /// In bios.
        ios: [i32; 2],
    },
    /// The children of a group are looked at.
    Round {
        /// Of which; `None`: of what is above the root.
        of: Option<CgroupId>,
        /// Bios that it holds itself: reads, and others.
        held: [u32; 2],
    },
    /// Bios of children went up.
    Moved {
        /// To which group; `None`: to the worker.
        of: Option<CgroupId>,
        /// How many.
        bios: u32,
    },
}

/// Decisions of controllers since the host last took them.
pub type EventLog = Log<ControllerEvent>;
