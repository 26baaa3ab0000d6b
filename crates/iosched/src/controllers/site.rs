//! What controllers share: the moment, groups, timers, who goes on, what is recorded.

use super::bio_state::{BioId, BioState, BioStates};
use super::event::{ControllerEvent, EventLog};
use super::wheel::{TimerId, Wheel};
use crate::context::{CgroupId, ContextId};
use crate::time::{SECOND_NS, Time};

/// A cgroup as controllers know it.
#[derive(Clone, Debug)]
struct Group {
    parent: Option<CgroupId>,
    removed: bool,
    /// Bios on their way that count for it.
    bios: u32,
}

impl Group {
    const fn new(parent: Option<CgroupId>) -> Self {
        Self { parent, removed: false, bios: 0 }
    }

    /// Whether it was removed and no bio of it is on its way.
    const fn is_left(&self) -> bool {
        self.removed && self.bios == 0
    }
}

/// The tree of cgroups. A parent has a smaller number than its children.
#[derive(Clone, Debug)]
pub struct Groups(Vec<Group>);

impl Default for Groups {
    fn default() -> Self {
        Self(vec![Group::new(None)])
    }
}

impl Groups {
    /// A new group in `parent`.
    pub fn create(&mut self, parent: CgroupId) -> CgroupId {
        self.0.push(Group::new(Some(parent)));
        CgroupId((self.0.len() - 1) as u32)
    }

    /// Whether it was removed.
    #[must_use]
    pub fn is_removed(&self, group: CgroupId) -> bool {
        self.0[group.index()].removed
    }

    /// The group that `group` is in; `None` for the root.
    #[must_use]
    pub fn parent(&self, group: CgroupId) -> Option<CgroupId> {
        self.0[group.index()].parent
    }

    /// `group` or the nearest above it that was not removed.
    #[must_use]
    pub fn living(&self, group: CgroupId) -> CgroupId {
        self.up(group).find(|&group| !self.is_removed(group)).unwrap_or(CgroupId::ROOT)
    }

    /// `group` and all above it, up to the root.
    pub fn up(&self, group: CgroupId) -> impl Iterator<Item = CgroupId> + '_ {
        std::iter::successors(Some(group), |&group| self.parent(group))
    }

    /// All groups, the root first, parents before children, removed ones included.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = CgroupId> + use<> {
        (0..self.0.len() as u32).map(CgroupId)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// What controllers share. One moment lasts as long as one call.
#[derive(Debug)]
pub struct Site {
    /// The present moment.
    pub now: Time,
    /// Jiffies in a second.
    pub hz: u32,
    /// Length of a jiffy in ns.
    pub jiffy_ns: u64,
    /// All bios on their way.
    pub bios: BioStates,
    /// All cgroups.
    pub groups: Groups,
    /// Timers.
    pub wheel: Wheel,
    /// Where decisions go.
    pub log: EventLog,
    /// Bios whose wait has ended, in the order in which they go on.
    going_on: Vec<BioId>,
    /// Processes that will be asked to [rest](Site::rests), by number.
    resting: Vec<bool>,
}

impl Site {
    /// Nothing on its way, and no group but the root.
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
            going_on: Vec::new(),
            resting: Vec::new(),
        }
    }

    /// A bio comes, and counts for the group that it says.
    #[inline]
    pub fn begin(&mut self, state: BioState) -> BioId {
        self.groups.0[state.cgroup.index()].bios += 1;
        self.bios.begin(state)
    }

    /// A bio on its way counts for another group than it did.
    pub fn count_for(&mut self, bio_id: BioId, group: CgroupId) {
        let before = std::mem::replace(&mut self.bios[bio_id].cgroup, group);
        self.groups.0[before.index()].bios -= 1;
        self.groups.0[group.index()].bios += 1;
    }

    /// A bio is done. The group that it was of, if that was removed and this was its last.
    pub fn end(&mut self, bio_id: BioId) -> Option<CgroupId> {
        let group = self.bios[bio_id].cgroup;
        self.bios.end(bio_id);
        let of = &mut self.groups.0[group.index()];
        of.bios -= 1;
        of.is_left().then_some(group)
    }

    /// A group is no more: what its processes ask for from now on counts for the nearest that is. The group, if no bio
    /// of it is on its way.
    pub fn remove_group(&mut self, group: CgroupId) -> Option<CgroupId> {
        let of = &mut self.groups.0[group.index()];
        of.removed = true;
        of.is_left().then_some(group)
    }

    /// Jiffies since the origin, rounded down.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now.as_ns() / self.jiffy_ns
    }

    /// Sets `timer` for `jiffy`, instead of what it was set to.
    pub fn arm(&mut self, timer: TimerId, jiffy: u64) {
        let fires = self.wheel.arm(self.jiffies(), timer, jiffy);
        self.note(|| ControllerEvent::Arm { timer, jiffy, fires });
    }

    /// `timer` fires.
    pub fn fired(&mut self, timer: TimerId) {
        self.note(|| ControllerEvent::Fire { timer });
    }

    /// The wait of a bio has ended.
    pub fn go_on(&mut self, bio_id: BioId) {
        self.going_on.push(bio_id);
    }

    /// Whether the wait of any bio has ended.
    #[must_use]
    pub fn anyone_goes_on(&self) -> bool {
        !self.going_on.is_empty()
    }

    /// Takes the bios whose wait has ended.
    pub fn take_going_on(&mut self) -> std::vec::Drain<'_, BioId> {
        self.going_on.drain(..)
    }

    /// The process of `context` pays for what it did by a rest, before it does anything else.
    pub fn rests(&mut self, context: ContextId) {
        if self.resting.len() <= context.index() {
            self.resting.resize(context.index() + 1, false);
        }
        self.resting[context.index()] = true;
    }

    /// Whether the process of `context` was to rest: asked once.
    pub fn take_rest(&mut self, context: ContextId) -> bool {
        self.resting.get_mut(context.index()).is_some_and(std::mem::take)
    }

    /// Records a decision, if decisions are recorded.
    #[inline]
    pub fn note(&mut self, event: impl FnOnce() -> ControllerEvent) {
        self.log.note(self.now, event);
    }
}
