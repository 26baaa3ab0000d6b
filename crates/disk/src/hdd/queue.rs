//! The commands that need the medium, and the choice of the next command. The head serves the
//! command that it reaches first, unless another command has waited too long.

use super::geometry::{Geometry, HeadPosition};
use super::spindle::{Angle, Spindle};

/// A command that needs the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) tag: u32,
    /// Number of the submission.
    pub(crate) sequence: u64,
    pub(crate) submitted_ns: u64,
    /// Earliest time at which the head can move to the command, ns.
    pub(crate) ready_ns: u64,
    /// First sector of the command.
    pub(crate) first: u64,
    /// First sector to read from or write to the medium. A read segment has the earlier sectors.
    pub(crate) start: u64,
    /// Sector after the end of the command.
    pub(crate) end: u64,
    pub(crate) write: bool,
    /// Read segment that the command continues.
    pub(crate) continues: Option<u32>,
    pub(crate) place: HeadPosition,
}

/// State of the head at the time of a choice.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) geometry: &'a Geometry,
    pub(crate) spindle: &'a Spindle,
    /// Settle time of a write after any move, ns.
    pub(crate) write_settle_ns: u64,
    /// Settle time of a read without a seek, ns.
    pub(crate) read_settle_ns: u64,
    pub(crate) cylinder: u32,
    pub(crate) head: u16,
    /// Angle under the heads now.
    pub(crate) angle: Angle,
}

impl Head<'_> {
    /// Returns the time until the head is at `place`, ready to read or write, ns.
    #[inline]
    pub(crate) fn positioning_ns(&self, place: &HeadPosition, write: bool) -> u64 {
        self.positioning_of_ns(&Key::new(place, write))
    }

    #[inline(always)]
    fn positioning_of_ns(&self, key: &Key) -> u64 {
        let (moved_ns, wait_ns) = self.reach_ns(key);
        moved_ns + wait_ns
    }

    /// Returns two times, ns: the time until the head is ready on the track of `place`, and the
    /// wait for the sector on this track.
    #[inline]
    pub(crate) fn moved_and_wait_ns(&self, place: &HeadPosition, write: bool) -> (u64, u64) {
        self.reach_ns(&Key::new(place, write))
    }

    #[inline(always)]
    fn reach_ns(&self, key: &Key) -> (u64, u64) {
        let mut move_ns = self.geometry.seeks.ns(key.cylinder.abs_diff(self.cylinder));
        // This condition comes first because it is predictable: most seeks take longer.
        if move_ns < self.geometry.head_switch_ns.max(self.read_settle_ns) {
            if key.head != self.head {
                move_ns = move_ns.max(self.geometry.head_switch_ns);
            }
            if !key.write {
                move_ns = move_ns.max(self.read_settle_ns);
            }
        }
        if key.write && move_ns > 0 {
            move_ns += self.write_settle_ns;
        }
        let arrival = self.angle.wrapping_add(self.spindle.turned(move_ns));
        (move_ns, self.spindle.wait_ns(arrival, key.angle))
    }
}

/// Queue of commands, in no particular order.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pending: Vec<Pending>,
    /// Fields of the commands that a choice needs, stored separately.
    keys: Vec<Key>,
    /// Lower half of each [`Pending::start`]. These halves are stored separately, so that a search
    /// over all commands needs few instructions.
    starts: Vec<u32>,
    starvation_ns: u64,
    /// Lower bound of the submission times in the queue, ns.
    oldest_ns: u64,
}

/// Start of a command, and its head and direction.
#[derive(Clone, Copy, Debug)]
struct Key {
    cylinder: u32,
    angle: Angle,
    head: u16,
    write: bool,
}

impl Key {
    #[inline]
    fn new(place: &HeadPosition, write: bool) -> Self {
        let &HeadPosition { cylinder, angle, head, .. } = place;
        Self { cylinder, angle, head, write }
    }
}

impl Queue {
    pub(crate) fn new(depth: u32, starvation_ns: u64) -> Self {
        Self {
            pending: Vec::with_capacity(depth as usize),
            keys: Vec::with_capacity(depth as usize),
            starts: Vec::with_capacity(depth as usize),
            starvation_ns,
            oldest_ns: u64::MAX,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, pending: Pending) {
        self.keys.push(Key::new(&pending.place, pending.write));
        self.starts.push(pending.start as u32);
        self.oldest_ns = self.oldest_ns.min(pending.submitted_ns);
        self.pending.push(pending);
    }

    #[inline]
    pub(crate) fn remove(&mut self, index: usize) -> Pending {
        self.keys.swap_remove(index);
        self.starts.swap_remove(index);
        self.pending.swap_remove(index)
    }

    /// Returns whether a command may need the medium from a sector in `from..=to`. False positives
    /// are rare.
    #[inline]
    pub(crate) fn may_start_within(&self, from: u64, to: u64) -> bool {
        let (from, length) = (from as u32, (to - from).min(u64::from(u32::MAX)) as u32);
        // The loop has no branch, so that the compiler can vectorise it.
        self.starts.iter().fold(false, |any, start| any | (start.wrapping_sub(from) <= length))
    }

    /// Returns the first command at or after `index` that needs the medium from a sector in
    /// `from..=to`.
    pub(crate) fn starts_within(&self, index: usize, from: u64, to: u64) -> Option<usize> {
        let within = |pending: &Pending| pending.start.wrapping_sub(from) <= to - from;
        self.pending[index..].iter().position(within).map(|found| index + found)
    }

    /// Returns the write that needs the medium from sector `start` and is ready at `at_ns`.
    #[inline]
    pub(crate) fn next_write(&self, at_ns: u64, start: u64) -> Option<usize> {
        if !self.may_start_within(start, start) {
            return None;
        }
        self.pending.iter().position(|pending| pending.write && pending.start == start && pending.ready_ns <= at_ns)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> &Pending {
        &self.pending[index]
    }

    /// Lets the read at `index` continue `segment` from sector `start`, which is at `place`.
    pub(crate) fn attach(&mut self, index: usize, segment: usize, start: u64, place: HeadPosition) {
        let pending = &mut self.pending[index];
        (pending.start, pending.place, pending.continues) = (start, place, Some(segment as u32));
        self.starts[index] = start as u32;
        self.keys[index] = Key::new(&place, false);
    }

    /// Returns the oldest command that has waited too long at `now_ns`, and its submission time.
    #[inline]
    pub(crate) fn starved(&mut self, now_ns: u64) -> Option<(usize, u64)> {
        let limit_ns = now_ns.checked_sub(self.starvation_ns)?;
        if self.oldest_ns > limit_ns {
            return None;
        }
        let oldest = self.pending.iter().enumerate().min_by_key(|(_, pending)| pending.sequence);
        self.oldest_ns = oldest.map_or(u64::MAX, |(_, pending)| pending.submitted_ns);
        oldest.map(|(index, pending)| (index, pending.submitted_ns)).filter(|&(_, oldest_ns)| oldest_ns <= limit_ns)
    }

    /// Returns the command that the head reaches first, and the time until then, ns.
    #[inline]
    pub(crate) fn nearest(&self, head: &Head<'_>) -> Option<(usize, u64)> {
        match &self.keys[..] {
            [] => None,
            [key] => Some((0, head.positioning_of_ns(key))),
            keys => Some(nearest_of(keys, head)),
        }
    }
}

/// Returns the index and the time of the nearest command. This is a separate function, so that its
/// loop can use all registers.
#[inline(never)]
fn nearest_of(keys: &[Key], head: &Head<'_>) -> (usize, u64) {
    // Time and index are one number, so that no branch depends on the comparison.
    let mut nearest = u64::MAX;
    for (index, key) in keys.iter().enumerate() {
        nearest = nearest.min((head.positioning_of_ns(key) << 16) | index as u64);
    }
    ((nearest & 0xFFFF) as usize, nearest >> 16)
}
