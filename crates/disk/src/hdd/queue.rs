//! The commands that need the medium, and which goes next: the one the head reaches first, unless one has
//! waited too long.

use super::geometry::{Geometry, Place};
use super::seek::SeekTable;
use super::spindle::{Angle, Spindle};

/// A command that needs the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) tag: u32,
    /// Its number in order of submission.
    pub(crate) sequence: u64,
    pub(crate) submitted_ns: u64,
    /// First sector the medium has to give or take.
    pub(crate) start: u64,
    /// The sector behind its last.
    pub(crate) end: u64,
    pub(crate) write: bool,
    /// The read segment it continues.
    pub(crate) continues: Option<u32>,
    pub(crate) place: Place,
}

/// The head at the moment of a choice.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) seeks: &'a SeekTable,
    pub(crate) spindle: &'a Spindle,
    pub(crate) write_settle_ns: u64,
    pub(crate) cylinder: u32,
    pub(crate) head: u16,
    /// The angle under the heads now.
    pub(crate) angle: Angle,
}

impl Head<'_> {
    /// How long until the head is at `place`, ready to read or write, in ns.
    #[inline]
    pub(crate) fn positioning_ns(&self, place: &Place, write: bool) -> u64 {
        self.reach_ns(place.cylinder, place.angle, place.head, write)
    }

    #[inline(always)]
    fn reach_ns(&self, cylinder: u32, angle: Angle, head: u16, write: bool) -> u64 {
        let distance = cylinder.abs_diff(self.cylinder);
        let mut move_ns = self.seeks.ns(distance);
        if head != self.head {
            move_ns = move_ns.max(self.geometry.head_switch_ns);
        }
        if write && move_ns != 0 {
            move_ns += self.write_settle_ns;
        }
        let arrival = self.angle.wrapping_add(self.spindle.turned(move_ns));
        move_ns + self.spindle.wait_ns(arrival, angle)
    }
}

/// The queue. Order inside means nothing.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pending: Vec<Pending>,
    /// What a choice looks at, apart from the rest: cylinder, angle, head and direction of each.
    keys: Vec<Key>,
    starvation_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Key {
    cylinder: u32,
    angle: Angle,
    head: u16,
    write: bool,
}

impl Queue {
    pub(crate) fn new(depth: u32, starvation_ns: u64) -> Self {
        Self { pending: Vec::with_capacity(depth as usize), keys: Vec::with_capacity(depth as usize), starvation_ns }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, pending: Pending) {
        let Place { cylinder, angle, head, .. } = pending.place;
        self.keys.push(Key { cylinder, angle, head, write: pending.write });
        self.pending.push(pending);
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: usize) -> Pending {
        self.keys.swap_remove(index);
        self.pending.swap_remove(index)
    }

    /// The command that has waited too long at `now_ns`, the oldest if there are several.
    #[inline]
    pub(crate) fn starved(&self, now_ns: u64) -> Option<usize> {
        let limit_ns = now_ns.checked_sub(self.starvation_ns)?;
        let (mut oldest, mut at) = (u64::MAX, None);
        for (index, pending) in self.pending.iter().enumerate() {
            if pending.submitted_ns <= limit_ns && pending.sequence < oldest {
                (oldest, at) = (pending.sequence, Some(index));
            }
        }
        at
    }

    /// The command the head reaches first, the oldest if several at once, and in how many ns.
    #[inline]
    pub(crate) fn nearest(&self, head: &Head<'_>) -> Option<(usize, u64)> {
        if let [key] = &self.keys[..] {
            return Some((0, head.reach_ns(key.cylinder, key.angle, key.head, key.write)));
        }
        let (mut nearest_ns, mut nearest) = (u64::MAX, None);
        for (index, key) in self.keys.iter().enumerate() {
            let reach_ns = head.reach_ns(key.cylinder, key.angle, key.head, key.write);
            let older = |other: usize| self.pending[index].sequence < self.pending[other].sequence;
            if reach_ns < nearest_ns || (reach_ns == nearest_ns && nearest.is_some_and(older)) {
                (nearest_ns, nearest) = (reach_ns, Some(index));
            }
        }
        nearest.map(|index| (index, nearest_ns))
    }
}
