//! From when a run counts, and what the device and the queue had done by then, which does not.

use iosched::controllers::ControllerWaits;
use iosched_workload::outcome::QueueStat;

/// The beginning of the time that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// What is done in this time does not count, ns.
    pub(super) warm_up_ns: u64,
    /// Whether it waits for the first job that has ramped up, besides.
    pub(super) waits: bool,
    /// When that was, ns.
    ramped_up_at_ns: u64,
    /// When it began, ns.
    since_ns: Option<u64>,
    /// Requests that the device had been given by then.
    pub(super) dispatched: u64,
    /// Time that it had been busy for by then, ns.
    pub(super) busy_ns: u64,
    /// The queue's statistics by then.
    pub(super) stat: QueueStat,
    /// Who had waited at which controller by then.
    controlled: Vec<ControllerWaits>,
}

impl Tally {
    /// When counting begins, if it has not and does so by `now_ns`.
    #[inline]
    pub(super) fn begins(&self, now_ns: u64) -> Option<u64> {
        let is_due = self.since_ns.is_none() && !self.waits && self.warm_up_ns <= now_ns;
        is_due.then(|| self.warm_up_ns.max(self.ramped_up_at_ns))
    }

    /// The first job has ramped up.
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

    /// What counts of waits at a controller; `None` if nobody waited since.
    pub(super) fn counted_waits(&self, all: ControllerWaits) -> Option<ControllerWaits> {
        let is_same = |waits: &&ControllerWaits| (waits.controller, waits.cgroup) == (all.controller, all.cgroup);
        let (bios, wait_ns) = self.controlled.iter().find(is_same).map_or((0, 0), |waits| (waits.bios, waits.wait_ns));
        let counted = ControllerWaits { bios: all.bios - bios, wait_ns: all.wait_ns - wait_ns, ..all };
        (counted.bios > 0).then_some(counted)
    }

    /// From when everything counts, ns.
    pub(super) fn counted_from_ns(&self) -> u64 {
        self.since_ns.unwrap_or(self.warm_up_ns)
    }
}

#[cfg(test)]
mod tests {
    use iosched::CgroupId;

    use super::*;

    #[test]
    fn waits_before_counting_began_do_not_count() {
        let waits = |controller, bios, wait_ns| ControllerWaits { controller, cgroup: CgroupId::ROOT, bios, wait_ns };
        let mut tally = Tally::default();
        tally.begin(0, 0, 0, QueueStat::default(), &[waits("wbt", 2, 20), waits("io.max", 5, 50)]);
        let counted = |waits| tally.counted_waits(waits);
        assert_eq!(counted(waits("wbt", 3, 27)), Some(waits("wbt", 1, 7)));
        assert_eq!(counted(waits("io.max", 5, 50)), None);
        assert_eq!(counted(waits("io.cost", 1, 4)), Some(waits("io.cost", 1, 4)));
    }
}
