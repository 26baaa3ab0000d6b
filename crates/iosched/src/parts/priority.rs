//! What an ioprio means to elevators with classes and levels.

use crate::context::{IoClass, IoPriority, LEVEL_DEFAULT, LEVEL_MAX};

/// The class and level that an ioprio means: none is the middle of best effort, and idle has one level.
#[inline]
pub(crate) fn effective(ioprio: IoPriority) -> IoPriority {
    match ioprio.class {
        IoClass::None => IoPriority { class: IoClass::BestEffort, level: LEVEL_DEFAULT },
        IoClass::BestEffort | IoClass::RealTime => ioprio,
        IoClass::Idle => IoPriority { class: IoClass::Idle, level: LEVEL_MAX },
    }
}
