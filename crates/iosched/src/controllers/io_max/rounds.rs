//! Rounds: when held bios are checked, and where they go.
//!
//! Each group, and the level above the root, has a timer for its children that
//! hold bios. A round takes a few bios of each child that is due, and passes them
//! to the group above, which holds them in turn.

use super::IoMax;
use super::held::Source;
use super::slice::Amount;
use crate::context::CgroupId;
use crate::controllers::bio_state::{BioId, Direction};
use crate::controllers::event::IoMaxEvent;
use crate::controllers::site::Site;
use crate::controllers::wheel::TimerId;

/// Number of reads of a group that continue at once.
const READS_AT_ONCE: u32 = 6;
/// Number of writes of a group that continue at once.
const WRITES_AT_ONCE: u32 = 2;
/// Number of bios after which a round ends.
const ROUND: u32 = 32;
/// Number of slices after which a level is checked again at the latest.
const LOOK_SLICES: u64 = 8;

/// Children of a group that hold bios.
#[derive(Debug)]
pub(super) struct Level {
    /// Due times in jiffies with the groups, in the order of time.
    pending: Vec<(u64, CgroupId)>,
    pub(super) timer: TimerId,
}

impl Level {
    pub(super) fn new(site: &mut Site) -> Self {
        Self { pending: Vec::new(), timer: site.wheel.create() }
    }

    /// Inserts a group after those that are due at the same time.
    fn enter(&mut self, due: u64, group: CgroupId) {
        let at = self.pending.partition_point(|&(other, _)| other <= due);
        self.pending.insert(at, (due, group));
    }

    fn leave(&mut self, group: CgroupId) {
        self.pending.retain(|&(_, other)| other != group);
    }
}

impl IoMax {
    fn level(&mut self, of: Option<CgroupId>) -> &mut Level {
        match of {
            Some(group) => &mut self.groups[group.index()].level,
            None => &mut self.top,
        }
    }

    /// Holds a bio in `group`.
    pub(super) fn queue(&mut self, site: &Site, id: BioId, here: CgroupId, bio_id: Direction, source: Source) {
        let group = &mut self.groups[here.index()];
        let held = &mut group.flows[bio_id as usize].held;
        group.was_empty |= held.is_empty();
        held.push(source, id);
        if !std::mem::replace(&mut group.pending, true) {
            let due = group.due;
            self.level(site.groups.parent(here)).enter(due, here);
        }
    }

    /// Computes when `here`, which holds bios, is due.
    pub(super) fn update(&mut self, site: &mut Site, here: CgroupId) {
        let mut wait = u64::MAX;
        for bio_id in Direction::BOTH {
            if let Some(head) = self.flow(here, bio_id).held.head() {
                let head = Amount::of(&site.bios[head]);
                wait = wait.min(self.wait_jiffies(site, here, bio_id, head));
            }
        }
        let due = site.jiffies().saturating_add(wait);
        let group = &mut self.groups[here.index()];
        group.due = due;
        group.was_empty = false;
        let level = self.level(site.groups.parent(here));
        level.leave(here);
        level.enter(due, here);
    }

    /// Sets the timer of a level if its first group is not due yet, or if `forced`. Returns `false`
    /// if the level must be checked now.
    pub(super) fn schedule(&mut self, site: &mut Site, of: Option<CgroupId>, forced: bool) -> bool {
        let (now, slice) = (site.jiffies(), self.rules.slice);
        let level = self.level(of);
        let Some(&(first, _)) = level.pending.first() else { return true };
        if !forced && first <= now {
            return false;
        }
        let timer = level.timer;
        site.arm(timer, first.min(now + LOOK_SLICES * slice));
        true
    }

    /// Handles the timer of a level.
    pub fn fire(&mut self, site: &mut Site, mut of: Option<CgroupId>) {
        loop {
            let mut moved = 0;
            loop {
                let held = of.map_or([0; 2], |group| self.held_in(group));
                site.note(|| IoMaxEvent::Round { of, held }.into());
                let more = self.select(site, of);
                if more > 0 {
                    site.note(|| IoMaxEvent::Moved { of, bios: more }.into());
                }
                moved += more;
                if self.schedule(site, of, false) {
                    break;
                }
            }
            if moved == 0 {
                return;
            }
            let Some(group) = of else {
                self.calls_worker = true;
                return;
            };
            if !self.groups[group.index()].was_empty {
                return;
            }
            self.update(site, group);
            of = site.groups.parent(group);
            if self.schedule(site, of, false) {
                return;
            }
        }
    }

    fn held_in(&self, group: CgroupId) -> [u32; 2] {
        [0, 1].map(|direction: usize| self.groups[group.index()].flows[direction].held.len() as u32)
    }

    /// Releases due bios of a level, up to the limit of a round. Returns their number.
    fn select(&mut self, site: &mut Site, of: Option<CgroupId>) -> u32 {
        let mut moved = 0;
        while let Some(&(due, here)) = self.level(of).pending.first() {
            if site.jiffies() < due {
                break;
            }
            moved += self.dispatch(site, here);
            if self.held_in(here) == [0; 2] {
                self.level(of).leave(here);
                self.groups[here.index()].pending = false;
            } else {
                self.update(site, here);
            }
            if moved >= ROUND {
                break;
            }
        }
        moved
    }

    /// Releases a few bios of a group. Returns their number.
    fn dispatch(&mut self, site: &mut Site, here: CgroupId) -> u32 {
        let mut moved = 0;
        for (bio_id, most) in [(Direction::Read, READS_AT_ONCE), (Direction::Write, WRITES_AT_ONCE)] {
            for _ in 0..most {
                let Some(id) = self.flow(here, bio_id).held.head() else { break };
                let bio = Amount::of(&site.bios[id]);
                if self.wait_jiffies(site, here, bio_id, bio) > 0 {
                    break;
                }
                self.move_up(site, id, here, bio_id);
                moved += 1;
            }
        }
        moved
    }

    /// Moves the first bio of a direction to the group above, or to the worker.
    fn move_up(&mut self, site: &mut Site, id: BioId, here: CgroupId, bio_id: Direction) {
        self.flow(here, bio_id).held.pop();
        self.charge(here, bio_id, Amount::of(&site.bios[id]));
        if let Some(parent) = site.groups.parent(here) {
            self.queue(site, id, parent, bio_id, Source::Child(here));
            let start = self.flow(here, bio_id).slice.start;
            self.credit(site, parent, bio_id, start);
        } else {
            site.bios[id].counted = true;
            self.released[bio_id as usize].push(Source::Child(here), id);
        }
        self.trim(site, here, bio_id);
    }
}
