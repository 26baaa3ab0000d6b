//! Timers of groups. Each fires at its latest time, together
//! with other timers that may already fire.

use std::collections::BTreeSet;

use crate::context::CgroupId;
use crate::time::Time;

/// Timer that is set.
#[derive(Clone, Copy, Debug)]
struct Armed {
    /// Earliest time.
    soft: Time,
    /// Latest time.
    hard: Time,
    /// Sequence number: each timer gets a higher number than the timers set before. Timers with the
    /// same latest time fire in the order of these numbers.
    entered: u64,
}

/// Timers, one per group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupTimers {
    armed: Vec<Option<Armed>>,
    queue: BTreeSet<(Time, u64, CgroupId)>,
    entered: u64,
}

impl GroupTimers {
    /// Returns the earliest time of the group's timer, if it is set.
    pub(super) fn soft(&self, group: CgroupId) -> Option<Time> {
        self.armed.get(group.index()).copied().flatten().map(|armed| armed.soft)
    }

    /// Sets the group's timer, and replaces its old time.
    pub(super) fn arm(&mut self, group: CgroupId, soft: Time, hard: Time) {
        self.cancel(group);
        self.entered += 1;
        if self.armed.len() <= group.index() {
            self.armed.resize(group.index() + 1, None);
        }
        self.armed[group.index()] = Some(Armed { soft, hard, entered: self.entered });
        self.queue.insert((hard, self.entered, group));
    }

    /// Cancels the group's timer.
    pub(super) fn cancel(&mut self, group: CgroupId) {
        if let Some(armed) = self.armed.get_mut(group.index()).and_then(Option::take) {
            self.queue.remove(&(armed.hard, armed.entered, group));
        }
    }

    /// Returns when the next timer fires.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first().map(|&(hard, ..)| hard)
    }

    /// Returns the next group whose timer fires at `now`, if any, and cancels the timer.
    pub(super) fn fire(&mut self, now: Time) -> Option<CgroupId> {
        let &(.., group) = self.queue.first()?;
        self.soft(group).filter(|&soft| soft <= now)?;
        self.cancel(group);
        Some(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::Groups;

    #[test]
    fn consecutive_timers_within_their_slack_fire_together() {
        let mut groups = Groups::default();
        let [a, b, c, d] = [(); 4].map(|()| groups.create(CgroupId::ROOT));
        let at = Time::from_ns;
        let mut timers = GroupTimers::default();
        timers.arm(a, at(10), at(20));
        timers.arm(b, at(15), at(25));
        timers.arm(c, at(21), at(26));
        timers.arm(d, at(1), at(27));
        assert_eq!(timers.next(), Some(at(20)));
        assert_eq!([(); 3].map(|()| timers.fire(at(20))), [Some(a), Some(b), None]);
        assert_eq!(timers.next(), Some(at(26)));
        timers.arm(d, at(1), at(26));
        timers.arm(c, at(2), at(26));
        assert_eq!(
            [(); 3].map(|()| timers.fire(at(26))),
            [Some(d), Some(c), None],
            "a timer that is armed again fires last among equal timers"
        );
        assert_eq!(timers.next(), None);
    }
}
