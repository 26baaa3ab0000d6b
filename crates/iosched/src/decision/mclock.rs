//! Decisions that only mclock takes: the phase of each request, and waits for limits.

use crate::context::CgroupId;
use crate::rates::Work;
use crate::time::Time;

/// Phase of mclock in which a request is served.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Its group was due by its reservation.
    Reservation,
    /// No group was due by its reservation, and the request's group was next by weight.
    Weight,
    /// The request was inserted at the head, and is served before all others.
    Head,
}

impl Phase {
    /// Returns the name of the phase for the user.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reservation => "reservation",
            Self::Weight => "weight",
            Self::Head => "head",
        }
    }
}

/// Decision of mclock about the requests of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MClockEvent {
    /// A request is dispatched.
    Choice {
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// Group of the request.
        cgroup: CgroupId,
        /// Phase in which the request is served.
        phase: Phase,
        /// Work that the group is charged for.
        work: Work,
    },
    /// All groups with requests have reached their limits.
    Limited {
        /// Time at which the first of these groups may continue.
        until: Time,
    },
    /// Missed reservations of the past are dropped, because the device is too slow for all of them.
    Dropped {
        /// Time that the reservations lose, ns.
        ns: u64,
    },
}

impl MClockEvent {
    /// Rebases times and renames cookies: see [`Decision::rebased`](super::Decision::rebased).
    pub(super) fn tell(&mut self, beginning: Time, renamed: impl Fn(u64) -> u64) {
        match self {
            Self::Choice { cookie, .. } => *cookie = renamed(*cookie),
            Self::Limited { until } => *until = Time::from_ns(until.since(beginning)),
            Self::Dropped { .. } => {}
        }
    }
}
