//! Which events of a block trace are taken as requests, for all readers of events.
//!
//! Requests are submissions (Q). A trace without them, as `blktrace -a issue` or `perf record -e
//! block:block_rq_issue` makes it, gives its insertions (I) as requests, or else its allocations
//! with the bios merged (G, M, F), or else its issues (D). The first [`AHEAD_MAX`] events decide
//! which.

use super::{Action, BlkEvent};

/// Most events read ahead to see whether the trace has submissions.
pub(crate) const AHEAD_MAX: usize = 4_096;

/// The events that are taken as requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    Submissions,
    Insertions,
    Allocations,
    Issues,
}

/// Whether an event is a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    Always,
    /// Unless it is about sectors of a request that is known and not completed.
    IfNew,
    Never,
}

impl Arrivals {
    /// The choice for a trace that begins with these events.
    pub(crate) fn of<'e>(events: impl Iterator<Item = &'e BlkEvent> + Clone) -> Self {
        let has = |action| events.clone().any(|event| event.action == action);
        match () {
            () if has(Action::Queue) => Self::Submissions,
            () if has(Action::Insert) => Self::Insertions,
            () if has(Action::GetRequest) => Self::Allocations,
            () if has(Action::Issue) => Self::Issues,
            () => Self::Submissions,
        }
    }

    /// Whether requests are those of processes. Else they are those that the device gets, and
    /// flushes are its own.
    pub(crate) const fn are_of_processes(self) -> bool {
        matches!(self, Self::Submissions | Self::Allocations)
    }

    /// Whether the event is a request. Later submissions are requests in any trace.
    #[inline]
    pub(crate) fn take(self, event: &BlkEvent) -> Take {
        use Action::{BackMerge, FrontMerge, GetRequest, Insert, Issue, Queue};
        let has_data = event.bytes > 0;
        match (self, event.action) {
            (_, Queue) => Take::Always,
            (Self::Submissions, _) => Take::Never,
            (Self::Allocations, GetRequest) if !has_data => Take::Always,
            (Self::Allocations, GetRequest | BackMerge | FrontMerge | Insert | Issue) if has_data => Take::IfNew,
            (Self::Insertions, Insert) | (Self::Insertions | Self::Issues, Issue) if has_data => Take::IfNew,
            (Self::Insertions | Self::Issues, Issue) => Take::Always,
            _ => Take::Never,
        }
    }
}
