//! The start of the time that counts. Work of the device and the queue before this time does not
//! count.

use iosched::controllers::ControllerWaits;
use iosched_workload::outcome::QueueStat;

/// The start of the time that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Time after the start in which results do not count, ns.
    pub(super) warm_up_ns: u64,
    /// Whether counting also waits until the ramp time of the first job is over.
    pub(super) waits: bool,
    /// Time at which the ramp time of the first job was over, ns.
    ramped_up_at_ns: u64,
    /// Time at which counting began, ns.
    since_ns: Option<u64>,
    /// Number of requests that were dispatched before counting began.
    pub(super) dispatched: u64,
    /// Busy time of the device before counting began, ns.
    pub(super) busy_ns: u64,
    /// The queue's statistics at the start of counting.
    pub(super) stat: QueueStat,
    /// Waits at each controller before counting began.
    controlled: Vec<ControllerWaits>,
}

impl Tally {
    /// Returns the time at which counting begins, if it has not begun and begins at or before
    /// `now_ns`.
    #[inline]
    pub(super) fn begins(&self, now_ns: u64) -> Option<u64> {
        let is_due = self.since_ns.is_none() && !self.waits && self.warm_up_ns <= now_ns;
        is_due.then(|| self.warm_up_ns.max(self.ramped_up_at_ns))
    }

    /// Records that the ramp time of the first job is over.
    pub(super) const fn ramped_up(&mut self, now_ns: u64) {
        if self.waits {
            (self.waits, self.ramped_up_at_ns) = (false, now_ns);
        }
    }

    #[inline]
    pub(super) const fn has_begun(&self) -> bool {
        self.since_ns.is_some()
    }

    pub(super) fn begin(
        &mut self,
        from_ns: u64,
        dispatched: u64,
        busy_ns: u64,
        stat: QueueStat,
        controlled: &[ControllerWaits],
    ) {
        (self.since_ns, self.dispatched, self.busy_ns, self.stat) = (Some(from_ns), dispatched, busy_ns, stat);
        self.controlled = controlled.to_vec();
    }

    /// Returns the waits at a controller since counting began, or `None` if no bio has waited since
    /// then.
    pub(super) fn counted_waits(&self, all: ControllerWaits) -> Option<ControllerWaits> {
        let is_same = |waits: &&ControllerWaits| (waits.controller, waits.cgroup) == (all.controller, all.cgroup);
        let (bios, wait_ns) = self.controlled.iter().find(is_same).map_or((0, 0), |waits| (waits.bios, waits.wait_ns));
        let counted = ControllerWaits { bios: all.bios - bios, wait_ns: all.wait_ns - wait_ns, ..all };
        (counted.bios > 0).then_some(counted)
    }

    /// Returns the start of the time that counts, ns.
    pub(super) fn counted_from_ns(&self) -> u64 {
        self.since_ns.unwrap_or(self.warm_up_ns)
    }
}

#[cfg(test)]
mod tests {
    use iosched::CgroupId;

    use super::*;

    #[test]
    fn controller_waits_before_the_counted_part_are_left_out() {
        let waits = |controller, bios, wait_ns| ControllerWaits { controller, cgroup: CgroupId::ROOT, bios, wait_ns };
        let mut tally = Tally::default();
        tally.begin(0, 0, 0, QueueStat::default(), &[waits("wbt", 2, 20), waits("io.max", 5, 50)]);
        let counted = |waits| tally.counted_waits(waits);
        assert_eq!(counted(waits("wbt", 3, 27)), Some(waits("wbt", 1, 7)));
        assert_eq!(counted(waits("io.max", 5, 50)), None);
        assert_eq!(counted(waits("io.cost", 1, 4)), Some(waits("io.cost", 1, 4)));
    }
}
