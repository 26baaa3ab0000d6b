//! The properties that must hold.

use std::fmt;

/// A property of every run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// Every accepted bio is completed once, with its own cookie, context,
    /// submission time and result.
    CompletedOnce,
    /// A request holds exactly its bios' sectors, in order, and its bios have one operation.
    WholeBios,
    /// Every submitted request is given to the device exactly once. No other request is given to
    /// the device.
    DispatchedOnce,
    /// No request exceeds the size limit that applied when the request last grew.
    SizeLimit,
    /// Under CFQ, no sync bio joined an async request.
    SyncJoinsSync,
    /// Flush, PREFLUSH and FUA keep their guarantees.
    NothingCrossesAFlush,
    /// A barrier starts only when all bios that were submitted before it are complete. Bios that
    /// were submitted after the barrier start only when the barrier is complete.
    NothingCrossesABarrier,
    /// In the single-queue layer, at most 1.5 times `nr_requests` requests of a kind (sync or
    /// async) are allocated. The queue refuses a bio only if at least `nr_requests` requests are
    /// allocated. In both layers, no task waits forever.
    Allocation,
    /// The statistics are the sums of the events.
    Statistics,
    /// No two requests of a hardware queue have the same tag.
    TagsOnce,
    /// A request that the device gave back is dispatched before all other requests except flushes.
    GivenBackFirst,
    /// noop dispatches requests in the order in which it received them.
    FirstComeFirstServed,
    /// deadline dispatches only a limited number of other requests before an expired request.
    BoundedWait,
    /// Under mclock, a group exceeds its limit by at most one request.
    Limits,
    /// As long as a request waits, a request is in the device or a timer is set.
    Progress,
    /// Switching elevators loses no request and ends.
    Switching,
    /// A value out of range is refused and changes nothing. A valid value can be read back
    /// unchanged.
    Control,
    /// Contexts and requests are reused. The tables are never larger than the largest number of
    /// entries in use at the same time.
    BoundedMemory,
    /// The same operations give the same events, whether decisions are recorded or not.
    Determinism,
    /// The library did not panic, so all its own checks passed.
    NoPanic,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CompletedOnce => "every bio is completed exactly once",
            Self::WholeBios => "a request consists of its bios, in order",
            Self::DispatchedOnce => "every request is dispatched exactly once",
            Self::SizeLimit => "no request is longer than max_sectors",
            Self::SyncJoinsSync => "under CFQ, no sync bio joins an async request",
            Self::NothingCrossesAFlush => "no request passes a flush",
            Self::NothingCrossesABarrier => "no bio passes a barrier",
            Self::Allocation => "at most nr_requests requests are allocated",
            Self::Statistics => "statistics are the sums of the events",
            Self::TagsOnce => "a tag belongs to one request at a time",
            Self::GivenBackFirst => "a requeued request goes first",
            Self::FirstComeFirstServed => "noop serves requests in the order of arrival",
            Self::BoundedWait => "deadline limits the waiting time",
            Self::Limits => "mclock keeps the limits of groups",
            Self::Progress => "waiting requests make progress",
            Self::Switching => "a switch of the scheduler loses no request",
            Self::Control => "the queue refuses values out of range",
            Self::BoundedMemory => "the size of tables depends only on used entries",
            Self::Determinism => "the same operations give the same events",
            Self::NoPanic => "no panic",
        })
    }
}

/// Property of the request queue that was violated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {detail}")]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// The observed behaviour.
    pub detail: String,
}

/// Result of a check: success or a violation.
pub type Checked = Result<(), Violation>;

/// Returns a [`Violation`] unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $property:ident, $($detail:tt)+) => {
        if !$holds {
            return Err($crate::violation::violation($crate::violation::Property::$property, format!($($detail)+)));
        }
    };
}
pub(crate) use ensure;

#[cold]
pub(crate) fn violation(property: Property, detail: String) -> Violation {
    Violation { property, detail }
}
