//! The order of groups by their tags.
//!
//! Every group with requests is either *ready*, sorted by its reservation tag and by its weight
//! tag, or *limited* until its limit tag. Times are in ns.

use std::collections::BTreeSet;

use crate::context::CgroupId;

/// Tags of a group: the earliest values for its next request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tags {
    /// When the reservation is due, on the clock of reservations.
    pub(super) reservation: u64,
    /// When the limit permits the next request.
    pub(super) limit: u64,
    /// Service divided by weight.
    pub(super) weight: u128,
}

/// Position of a group.
#[derive(Clone, Copy, Default, Debug)]
pub(super) enum Place {
    /// The group has no requests.
    #[default]
    Idle,
    /// The group may be served.
    Ready {
        /// Position by reservation, if the group has a reservation.
        due: Option<u64>,
        /// Position by weight.
        weight: u128,
    },
    /// The group has reached its limit.
    Limited {
        /// Position by limit.
        until: u64,
    },
}

/// Groups with requests, and two clocks.
///
/// The clock of weights is the smallest weight tag that a ready group had: a group that becomes
/// active starts there, so that its pause gives it neither an advantage nor a disadvantage. The
/// clock of reservations is the real time without the time that was [dropped](Order::drop_missed).
#[derive(Debug, Default)]
pub(super) struct Order {
    by_reservation: BTreeSet<(u64, CgroupId)>,
    by_weight: BTreeSet<(u128, CgroupId)>,
    limited: BTreeSet<(u64, CgroupId)>,
    weight_now: u128,
    dropped_ns: u64,
}

impl Order {
    /// Returns the present value of the clock of weights.
    pub(super) fn weight_now(&self) -> u128 {
        self.weight_now
    }

    /// Returns the reservation tag with which a group becomes active now. It is the clock of
    /// reservations, or the earliest waiting reservation if that is late. In an overload, a new
    /// group therefore has neither an advantage nor a disadvantage against the waiting groups.
    pub(super) fn reservation_start(&self, now: u64) -> u64 {
        let clock = now.saturating_sub(self.dropped_ns);
        self.by_reservation.first().map_or(clock, |&(due, _)| due.min(clock))
    }

    /// Puts a group without a place into the order. `due` is the reservation tag of its first
    /// request, if it has a reservation.
    pub(super) fn put(&mut self, now: u64, group: CgroupId, tags: &Tags, due: Option<u64>) -> Place {
        if tags.limit > now {
            self.limited.insert((tags.limit, group));
            return Place::Limited { until: tags.limit };
        }
        if let Some(due) = due {
            self.by_reservation.insert((due, group));
        }
        self.by_weight.insert((tags.weight, group));
        Place::Ready { due, weight: tags.weight }
    }

    /// Takes a group out of the order.
    pub(super) fn take(&mut self, group: CgroupId, place: &mut Place) {
        match std::mem::take(place) {
            Place::Idle => {}
            Place::Ready { due, weight } => {
                if let Some(due) = due {
                    self.by_reservation.remove(&(due, group));
                }
                self.by_weight.remove(&(weight, group));
            }
            Place::Limited { until } => {
                self.limited.remove(&(until, group));
            }
        }
    }

    /// Returns a limited group whose limit permits a request now.
    pub(super) fn permitted(&self, now: u64) -> Option<CgroupId> {
        self.limited.first().filter(|&&(until, _)| until <= now).map(|&(_, group)| group)
    }

    /// Returns the limited group that may continue first, and the time.
    pub(super) fn first_limited(&self) -> Option<(u64, CgroupId)> {
        self.limited.first().copied()
    }

    /// Sets back the clock of reservations if the earliest reservation is more than `longest_ns`
    /// late. The order of reservations stays the same. Returns the time that the clock lost.
    pub(super) fn drop_missed(&mut self, now: u64, longest_ns: u64) -> u64 {
        let Some(&(due, _)) = self.by_reservation.first() else { return 0 };
        let late_ns = now.saturating_sub(self.dropped_ns).saturating_sub(due);
        let lost_ns = late_ns.saturating_sub(longest_ns);
        self.dropped_ns += lost_ns;
        lost_ns
    }

    /// Returns the group with the earliest reservation tag, if this reservation is due.
    pub(super) fn due(&self, now: u64) -> Option<CgroupId> {
        let clock = now.saturating_sub(self.dropped_ns);
        self.by_reservation.first().filter(|&&(due, _)| due <= clock).map(|&(_, group)| group)
    }

    /// Returns the ready group with the smallest weight tag, and advances the clock of weights to
    /// this tag.
    pub(super) fn next_by_weight(&mut self) -> Option<CgroupId> {
        let &(weight, group) = self.by_weight.first()?;
        self.weight_now = self.weight_now.max(weight);
        Some(group)
    }

    /// Returns the number of groups in the order.
    pub(super) fn len(&self) -> usize {
        self.by_weight.len() + self.limited.len()
    }
}
