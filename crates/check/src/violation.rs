//! What must hold.

use std::fmt;

/// A property of every run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// Every accepted bio is completed once, with its own cookie, context, submission time and result.
    CompletedOnce,
    /// A request holds exactly its bios' sectors, in order, and its bios have one op.
    WholeBios,
    /// Every request is given to the device once, and nothing that was not submitted.
    DispatchedOnce,
    /// No request was larger than the limit in force when it last grew.
    SizeLimit,
    /// Under CFQ nothing sync joined something async.
    SyncJoinsSync,
    /// Flush, PREFLUSH and FUA keep their promises.
    NothingCrossesAFlush,
    /// What was submitted before a barrier is complete before it is issued; what was submitted after it is not issued
    /// before it is complete.
    NothingCrossesABarrier,
    /// In the single-queue layer never more than one and a half times `nr_requests` of a kind, and full only when it
    /// is; in both nobody waits for ever.
    Allocation,
    /// The statistics are the sums of what happened.
    Statistics,
    /// No two requests of a hardware queue have the same tag.
    TagsOnce,
    /// What the device gave back goes to it before everything else but a flush.
    GivenBackFirst,
    /// noop gives out requests in the order they were given to it.
    FirstComeFirstServed,
    /// deadline passes an expired request over only so often.
    BoundedWait,
    /// As long as anything waits, something is under way: in the device, or a timer.
    Progress,
    /// Switching elevators loses nothing and ends.
    Switching,
    /// A value out of range is refused and changes nothing; one in range is what is read back.
    Control,
    /// Contexts and requests are used again: the tables grow no larger than what is in use at once.
    BoundedMemory,
    /// The same operations give the same events, whether decisions are recorded or not.
    Determinism,
    /// The library did not panic: its own checks held.
    NoPanic,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CompletedOnce => "every bio is completed exactly once",
            Self::WholeBios => "a request is its bios in order",
            Self::DispatchedOnce => "every request is dispatched exactly once",
            Self::SizeLimit => "no request outgrows max_sectors",
            Self::SyncJoinsSync => "nothing sync joins something async under CFQ",
            Self::NothingCrossesAFlush => "nothing crosses a flush",
            Self::NothingCrossesABarrier => "nothing crosses a barrier",
            Self::Allocation => "allocation keeps to nr_requests",
            Self::Statistics => "statistics are sums of what happened",
            Self::TagsOnce => "a tag is given to one request at a time",
            Self::GivenBackFirst => "what was given back goes first",
            Self::FirstComeFirstServed => "noop serves in order",
            Self::BoundedWait => "deadline bounds waiting",
            Self::Progress => "what waits makes progress",
            Self::Switching => "switching loses nothing",
            Self::Control => "what is out of range is refused",
            Self::BoundedMemory => "tables are bounded by what is in use",
            Self::Determinism => "the same operations give the same events",
            Self::NoPanic => "no panic",
        })
    }
}

/// A property that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {detail}")]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// What was seen instead.
    pub detail: String,
}

/// Nothing, or what did not hold.
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
