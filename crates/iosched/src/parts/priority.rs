//! Meaning of an ioprio for elevators with classes and levels.

use crate::context::{IoClass, IoPriority, LEVEL_DEFAULT, LEVEL_MAX};

/// Returns the effective class and level of an ioprio. An unset ioprio is the middle of best
/// effort; the idle class has one level.
#[inline]
pub(crate) fn effective(ioprio: IoPriority) -> IoPriority {
    match ioprio.class {
        IoClass::None => IoPriority { class: IoClass::BestEffort, level: LEVEL_DEFAULT },
        IoClass::BestEffort | IoClass::RealTime => ioprio,
        IoClass::Idle => IoPriority { class: IoClass::Idle, level: LEVEL_MAX },
    }
}
