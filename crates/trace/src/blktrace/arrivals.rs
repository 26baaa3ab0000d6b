//! Choice of the events of a block trace that count as requests. All readers of events use this
//! choice.
//!
//! Requests are submissions (Q). `blktrace -a issue` and `perf record -e block:block_rq_issue` make
//! traces without submissions. For such a trace, the choice is the first of these kinds that occurs
//! in the trace: insertions (I); allocations and merged bios (G, M, F); issue events (D). The first
//! [`AHEAD_MAX`] events determine the choice.

use super::{Action, BlkEvent};

/// Maximum number of events that are read ahead to find out whether the trace has submissions.
pub(crate) const AHEAD_MAX: usize = 4_096;

/// Kind of events that count as requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrivals {
    Submissions,
    Insertions,
    Allocations,
    Issues,
}

/// Rule for whether an event counts as a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    Always,
    /// The event is a request, unless its sectors belong to a known request that has not completed.
    IfNew,
    Never,
}

impl Arrivals {
    /// Returns the choice for a trace that begins with these events.
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

    /// Returns whether these events are the requests of processes. Otherwise they are the requests
    /// that the device received. Those include flushes that the kernel sent.
    pub(crate) const fn are_of_processes(self) -> bool {
        matches!(self, Self::Submissions | Self::Allocations)
    }

    /// Returns whether the event is a request. A submission (Q) is always a request, even if none
    /// of the first events was a submission.
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
