//! What decides who has how much of a disk: weights of groups, or classes and levels; and which schedulers go by it.

use crate::LiveDisk;

/// What has been declared of clients or their groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shares {
    /// Groups have weights.
    Weights,
    /// Clients have classes and levels.
    Priorities,
}

impl Shares {
    /// Whether a scheduler takes no notice of it; `tunable` reads its tunables. bfq shares by idling, and by nothing
    /// else. The older CFQs have no groups here.
    #[must_use]
    pub fn are_ignored_by(self, scheduler: &str, tunable: impl FnOnce(&str) -> Option<u64>) -> bool {
        match (self, scheduler) {
            (_, "noop" | "none" | "deadline" | "kyber" | "anticipatory" | "adios") => true,
            (Self::Weights, "mq-deadline" | "cfq-2.6.34" | "cfq-2.6.30" | "cfq-2.6.16") => true,
            (Self::Weights, "bfq") => tunable("slice_idle") == Some(0),
            // Of others' schedulers it is not known.
            _ => false,
        }
    }

    /// What is declared, for people.
    #[must_use]
    pub const fn declared(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::Priorities => "classes and levels",
        }
    }

    /// Options of a server that keep it. CFQ shares by weight among clients that always want more most exactly without
    /// idling, if few commands are in the device; classes and levels need its idling.
    #[must_use]
    pub const fn options(self) -> &'static str {
        match self {
            Self::Weights => "--for shared",
            Self::Priorities => "--scheduler cfq",
        }
    }

    /// What has the same effect on a disk that is served, written to its control tree.
    #[must_use]
    pub const fn written(self) -> &'static str {
        match self {
            Self::Weights => "scheduler=cfq slice_idle=0 device/queue_depth=8",
            Self::Priorities => "scheduler=cfq",
        }
    }
}

impl LiveDisk {
    /// Whether the disk's scheduler, as it is set, takes no notice of what is declared.
    #[must_use]
    pub fn ignores(&self, shares: Shares) -> bool {
        shares.are_ignored_by(self.queue().scheduler(), |name| self.queue().tunable(name).ok())
    }
}
