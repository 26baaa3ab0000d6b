//! Rounds: when held bios are checked, and where they go.
//!
//! Each group, and the level above the root, has a timer for its children that hold bios. A round
//! takes a few bios of each child that is due, and passes them to the group above. This group then
//! holds the bios.

use super::IoMax;
use super::slice::{Amount, Stage};
use super::waiting::Source;
use crate::context::CgroupId;
use crate::controllers::bio_state::{BioId, Direction};
use crate::controllers::event::IoMaxEvent;
use crate::controllers::site::Site;
use crate::controllers::wheel::TimerId;

/// Largest number of reads of a group that are released together.
const READS_AT_ONCE: u32 = 6;
/// Largest number of writes of a group that are released together.
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

    /// Inserts a group after the groups that are due at the same time.
    fn enter(&mut self, due: u64, group: CgroupId) {
        let at = self.pending.partition_point(|&(other, _)| other <= due);
        self.pending.insert(at, (due, group));
    }

    fn leave(&mut self, group: CgroupId) {
        self.pending.retain(|&(_, other)| other != group);
    }
}

impl IoMax {
    fn level(&mut self, cgroup: Option<CgroupId>) -> &mut Level {
        match cgroup {
            Some(group) => &mut self.groups[group.index()].level,
            None => &mut self.top,
        }
    }

    /// Holds a bio in the group `here`, at a stage.
    pub(super) fn queue(
        &mut self,
        site: &Site,
        id: BioId,
        here: CgroupId,
        bio_id: Direction,
        source: Source,
        stage: Stage,
    ) {
        let group = &mut self.groups[here.index()];
        let flow = &mut group.flows[bio_id as usize];
        // The new bio becomes the next bio if no bio waits, or if it is the first bio that waits
        // for the limit on bios. The group may then be due earlier.
        group.was_empty |= flow.holds_none() || stage == Stage::Ios && flow.held_for_ios.is_empty();
        let waiting = if stage == Stage::Ios { &mut flow.held_for_ios } else { &mut flow.held };
        waiting.push(source, id);
        if !std::mem::replace(&mut group.pending, true) {
            let due = group.due;
            self.level(site.groups.parent(here)).enter(due, here);
        }
    }

    /// Returns the next bio of a group, and its wait in jiffies. With two queues, a bio that need
    /// not wait for the limit on bytes moves to the queue for the limit on bios. Its bytes are then
    /// counted.
    fn head(&mut self, site: &mut Site, here: CgroupId, bio_id: Direction) -> Option<(BioId, u64)> {
        let flow = self.flow(here, bio_id);
        let Some(id) = flow.held_for_ios.head() else {
            let id = flow.held.head()?;
            let bio = Amount::of(&site.bios[id]);
            if !self.rules.has_two_queues {
                return Some((id, self.wait_jiffies(site, here, bio_id, bio, Stage::Both)));
            }
            let wait = self.wait_jiffies(site, here, bio_id, bio, Stage::Bytes);
            if wait > 0 {
                return Some((id, wait));
            }
            self.charge(here, bio_id, bio, Stage::Bytes);
            let flow = self.flow(here, bio_id);
            if let Some((source, id)) = flow.held.pop() {
                flow.held_for_ios.push(source, id);
            }
            return Some((id, self.wait_jiffies(site, here, bio_id, bio, Stage::Ios)));
        };
        let bio = Amount::of(&site.bios[id]);
        Some((id, self.wait_jiffies(site, here, bio_id, bio, Stage::Ios)))
    }

    /// Computes when `here`, which holds bios, is due.
    pub(super) fn update(&mut self, site: &mut Site, here: CgroupId) {
        let mut wait = u64::MAX;
        for bio_id in Direction::BOTH {
            if let Some((_, head_wait)) = self.head(site, here, bio_id) {
                wait = wait.min(head_wait);
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
    pub(super) fn schedule(&mut self, site: &mut Site, cgroup: Option<CgroupId>, forced: bool) -> bool {
        let (now, slice) = (site.jiffies(), self.rules.slice);
        let level = self.level(cgroup);
        let Some(&(first, _)) = level.pending.first() else { return true };
        if !forced && first <= now {
            return false;
        }
        let timer = level.timer;
        site.arm(timer, first.min(now + LOOK_SLICES * slice));
        true
    }

    /// Handles the timer of a level.
    pub fn fire(&mut self, site: &mut Site, mut cgroup: Option<CgroupId>) {
        loop {
            let mut moved = 0;
            loop {
                let held = cgroup.map_or([0; 2], |group| self.held_in(group));
                site.note(|| IoMaxEvent::Round { of: cgroup, held }.into());
                let more = self.select(site, cgroup);
                if more > 0 {
                    site.note(|| IoMaxEvent::Moved { of: cgroup, bios: more }.into());
                }
                moved += more;
                if self.schedule(site, cgroup, false) {
                    break;
                }
            }
            if moved == 0 {
                return;
            }
            let Some(group) = cgroup else {
                self.calls_worker = true;
                return;
            };
            if !self.groups[group.index()].was_empty {
                return;
            }
            self.update(site, group);
            cgroup = site.groups.parent(group);
            if self.schedule(site, cgroup, false) {
                return;
            }
        }
    }

    fn held_in(&self, group: CgroupId) -> [u32; 2] {
        [0, 1].map(|direction: usize| self.groups[group.index()].flows[direction].nr_held() as u32)
    }

    /// Releases due bios of a level, up to the limit of a round. Returns their number.
    fn select(&mut self, site: &mut Site, cgroup: Option<CgroupId>) -> u32 {
        let mut moved = 0;
        while let Some(&(due, here)) = self.level(cgroup).pending.first() {
            if site.jiffies() < due {
                break;
            }
            moved += self.dispatch(site, here);
            if self.held_in(here) == [0; 2] {
                self.level(cgroup).leave(here);
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
                let Some((id, 0)) = self.head(site, here, bio_id) else { break };
                self.move_up(site, id, here, bio_id);
                moved += 1;
            }
        }
        moved
    }

    /// Moves the first bio of a direction to the group above, or to the worker.
    fn move_up(&mut self, site: &mut Site, id: BioId, here: CgroupId, bio_id: Direction) {
        let stage = if self.rules.has_two_queues { Stage::Ios } else { Stage::Both };
        self.held_at(here, bio_id, stage).pop();
        let bio = Amount::of(&site.bios[id]);
        self.charge(here, bio_id, bio, stage);
        if let Some(parent) = site.groups.parent(here) {
            let next = match (stage, bio.is_counted()) {
                (Stage::Ios, false) => Stage::Bytes,
                (stage, _) => stage,
            };
            self.queue(site, id, parent, bio_id, Source::Child(here), next);
            let start = self.flow(here, bio_id).slice.start;
            self.credit(site, parent, bio_id, start);
        } else {
            site.bios[id].counted = true;
            self.released[bio_id as usize].push(Source::Child(here), id);
        }
        self.trim(site, here, bio_id);
    }
}
