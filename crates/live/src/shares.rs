//! Rules that divide a disk between clients: weights of groups, classes and levels, or reservations
//! and limits. This module also knows which schedulers follow these rules.

use iosched::Rates;

use crate::LiveDisk;

/// Property that exports declare for clients or their groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shares {
    /// Groups have reservations or limits. They may also have weights.
    Rates,
    /// Groups have weights.
    Weights,
    /// Clients have classes and levels.
    Priorities,
}

impl Shares {
    /// Returns whether a scheduler ignores the property. `tunable` reads a tunable of the
    /// scheduler. bfq divides the disk only if it idles (`slice_idle` above 0). The CFQ versions in
    /// this list have no groups.
    #[must_use]
    pub fn are_ignored_by(self, scheduler: &str, tunable: impl FnOnce(&str) -> Option<u64>) -> bool {
        match (self, scheduler) {
            (Self::Rates, scheduler) => scheduler != "mclock",
            (Self::Priorities, "mclock") => true,
            (_, "noop" | "none" | "deadline" | "kyber" | "anticipatory" | "adios") => true,
            (Self::Weights, "mq-deadline" | "cfq-2.6.34" | "cfq-2.6.30" | "cfq-2.6.16") => true,
            (Self::Weights, "bfq") => tunable("slice_idle") == Some(0),
            // The behaviour of other schedulers is not known.
            _ => false,
        }
    }

    /// Returns the name of the property for the user.
    #[must_use]
    pub const fn declared(self) -> &'static str {
        match self {
            Self::Rates => "reservations and limits",
            Self::Weights => "weights",
            Self::Priorities => "classes and levels",
        }
    }

    /// Returns options of a server that enforce the property. For weights, CFQ is most exact
    /// without idling and with few commands in the device, if all clients always have requests. For
    /// classes and levels, CFQ must idle.
    #[must_use]
    pub const fn options(self) -> &'static str {
        match self {
            Self::Rates => "--scheduler mclock",
            Self::Weights => "--for shared",
            Self::Priorities => "--scheduler cfq",
        }
    }

    /// Returns a text with the writes to a disk's control tree that have the same effect as
    /// [`Self::options`].
    #[must_use]
    pub const fn written(self) -> &'static str {
        match self {
            Self::Rates => "scheduler=mclock",
            Self::Weights => "scheduler=cfq slice_idle=0 device/queue_depth=8",
            Self::Priorities => "scheduler=cfq",
        }
    }
}

/// Part of a disk that an export declares for its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Portion {
    /// Weight relative to other groups. `None` is the scheduler's default.
    pub weight: Option<u32>,
    /// Reservation and limit. Only mclock uses them.
    pub rates: Rates,
}

impl LiveDisk {
    /// Returns whether the disk's scheduler, with its current tunables, ignores the property.
    #[must_use]
    pub fn ignores(&self, shares: Shares) -> bool {
        shares.are_ignored_by(self.queue().scheduler(), |name| self.queue().tunable(name).ok())
    }
}
