//! Data that controllers share: the present time, groups, timers, released bios, events.

use super::bio_state::{BioId, BioState, BioStates};
use super::event::{ControllerEvent, EventLog};
use super::wheel::{TimerId, Wheel};
use crate::context::{CgroupId, ContextId};
use crate::time::{SECOND_NS, Time};

/// Cgroup in the controllers.
#[derive(Clone, Debug)]
struct Group {
    parent: Option<CgroupId>,
    removed: bool,
    /// Number of its bios in flight.
    bios: u32,
}

impl Group {
    const fn new(parent: Option<CgroupId>) -> Self {
        Self { parent, removed: false, bios: 0 }
    }

    /// Returns whether the group was removed and has no bios in flight.
    const fn is_left(&self) -> bool {
        self.removed && self.bios == 0
    }
}

/// Tree of cgroups. A parent has a smaller index than its children.
#[derive(Clone, Debug)]
pub struct Groups(Vec<Group>);

impl Default for Groups {
    fn default() -> Self {
        Self(vec![Group::new(None)])
    }
}

impl Groups {
    /// Creates a group in `parent`.
    pub fn create(&mut self, parent: CgroupId) -> CgroupId {
        self.0.push(Group::new(Some(parent)));
        CgroupId((self.0.len() - 1) as u32)
    }

    /// Returns whether the group was removed.
    #[must_use]
    pub fn is_removed(&self, group: CgroupId) -> bool {
        self.0[group.index()].removed
    }

    /// Returns the parent of `group`; `None` for the root.
    #[must_use]
    pub fn parent(&self, group: CgroupId) -> Option<CgroupId> {
        self.0[group.index()].parent
    }

    /// Returns `group`, or its nearest ancestor that was not removed.
    #[must_use]
    pub fn living(&self, group: CgroupId) -> CgroupId {
        self.up(group).find(|&group| !self.is_removed(group)).unwrap_or(CgroupId::ROOT)
    }

    /// Returns `group` and all its ancestors, up to the root.
    pub fn up(&self, group: CgroupId) -> impl Iterator<Item = CgroupId> + '_ {
        std::iter::successors(Some(group), |&group| self.parent(group))
    }

    /// Returns all groups, the root first, parents before children, including removed groups.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = CgroupId> + use<> {
        (0..self.0.len() as u32).map(CgroupId)
    }

    /// Returns the number of groups, including removed ones.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Data that controllers share. The present time does not change during a call.
#[derive(Debug)]
pub struct Site {
    /// Present time.
    pub now: Time,
    /// Jiffies per second.
    pub hz: u32,
    /// Length of a jiffy, ns.
    pub jiffy_ns: u64,
    /// All bios in flight.
    pub bios: BioStates,
    /// All cgroups.
    pub groups: Groups,
    /// Timers of the controllers.
    pub wheel: Wheel,
    /// Recorded decisions.
    pub log: EventLog,
    /// Whether io.cost is on.
    pub(super) io_cost_is_on: bool,
    /// Bios whose wait has ended, in the order in which they continue.
    going_on: Vec<BioId>,
    /// Whether each process is marked by [`rests`](Site::rests), by the index of its context.
    resting: Vec<bool>,
}

impl Site {
    /// Creates the data without bios, and with the root group only.
    #[must_use]
    pub fn new(now: Time, hz: u32) -> Self {
        let jiffy_ns = SECOND_NS / u64::from(hz);
        Self {
            now,
            hz,
            jiffy_ns,
            bios: BioStates::default(),
            groups: Groups::default(),
            wheel: Wheel::new(now.as_ns() / jiffy_ns),
            log: EventLog::default(),
            io_cost_is_on: false,
            going_on: Vec::new(),
            resting: Vec::new(),
        }
    }

    /// Adds a bio, which counts for the group in its state.
    #[inline]
    pub fn begin(&mut self, state: BioState) -> BioId {
        self.groups.0[state.cgroup.index()].bios += 1;
        self.bios.begin(state)
    }

    /// Changes the group of a bio in flight.
    pub fn count_for(&mut self, bio_id: BioId, group: CgroupId) {
        let before = std::mem::replace(&mut self.bios[bio_id].cgroup, group);
        self.groups.0[before.index()].bios -= 1;
        self.groups.0[group.index()].bios += 1;
    }

    /// Removes a completed bio. Returns its group if the
    /// group was removed and this was its last bio.
    #[inline]
    pub fn end(&mut self, bio_id: BioId) -> Option<CgroupId> {
        let group = self.bios[bio_id].cgroup;
        self.bios.end(bio_id);
        let counts = &mut self.groups.0[group.index()];
        counts.bios -= 1;
        counts.is_left().then_some(group)
    }

    /// Removes a group. Further bios of its processes count for the nearest remaining ancestor.
    /// Returns the group if it has no bios in flight.
    pub fn remove_group(&mut self, group: CgroupId) -> Option<CgroupId> {
        let counts = &mut self.groups.0[group.index()];
        counts.removed = true;
        counts.is_left().then_some(group)
    }

    /// Returns the jiffies since the origin, rounded down.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now.as_ns() / self.jiffy_ns
    }

    /// Sets `timer` to `jiffy`, and replaces its old time.
    pub fn arm(&mut self, timer: TimerId, jiffy: u64) {
        let fires = self.wheel.arm(self.jiffies(), timer, jiffy);
        self.note(|| ControllerEvent::Arm { timer, jiffy, fires });
    }

    /// Records that `timer` fires.
    pub fn fired(&mut self, timer: TimerId) {
        self.note(|| ControllerEvent::Fire { timer });
    }

    /// Ends the wait of a bio.
    pub fn go_on(&mut self, bio_id: BioId) {
        self.going_on.push(bio_id);
    }

    /// Returns whether the wait of any bio has ended.
    #[must_use]
    pub fn anyone_goes_on(&self) -> bool {
        !self.going_on.is_empty()
    }

    /// Returns the bios whose wait has ended, and removes them.
    pub fn take_going_on(&mut self) -> std::vec::Drain<'_, BioId> {
        self.going_on.drain(..)
    }

    /// Marks the process of `context`, so that it pauses before it continues.
    pub fn rests(&mut self, context: ContextId) {
        if self.resting.len() <= context.index() {
            self.resting.resize(context.index() + 1, false);
        }
        self.resting[context.index()] = true;
    }

    /// Returns whether the process of `context` was marked, and clears the mark.
    pub fn take_rest(&mut self, context: ContextId) -> bool {
        self.resting.get_mut(context.index()).is_some_and(std::mem::take)
    }

    /// Records a decision if recording is on.
    #[inline]
    pub fn note(&mut self, event: impl FnOnce() -> ControllerEvent) {
        self.log.note(self.now, event);
    }
}
