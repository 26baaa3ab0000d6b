//! io.max: limits a group to a number of bytes and bios per second.
//!
//! Limits apply to slices of 0.1 s. In some versions of Linux, slices have 0.02 s. A bio that
//! exceeds the slice is held in its group. When the limit allows the bio, a timer moves it to the
//! group above, and from the topmost group to a worker that submits it. The process of the bio does
//! not sleep. It continues with its next bio.
//!
//! From Linux 6.16 on, a bio first waits for the limit on bytes and then for the limit on bios.
//! Each of these waits has its own queue. In earlier versions, a bio waits once, for the longer of
//! both times.
//!
//! | file | content |
//! |---|---|
//! | `slice.rs` | the allowance of a slice, and when a bio may continue |
//! | `waiting.rs` | the order of held bios: by source, in turn |
//! | `rounds.rs` | when held bios are checked, and where they go |

mod rounds;
mod slice;
mod waiting;

use self::rounds::Level;
use self::slice::{Amount, At, Slice, Stage};
use self::waiting::{Source, WaitingBios};
use super::bio_state::{BioId, BioState, Direction, Passage};
use super::event::IoMaxEvent;
use super::site::Site;
use super::wheel::TimerId;
use super::write_error::WriteError;
use crate::context::CgroupId;
use crate::kernel::KernelVersion;

/// Value of the limit on bytes per second if there is no limit.
const BPS_MAX: u64 = u64::MAX;
/// Value of the limit on bios per second if there is no limit.
const IOPS_MAX: u32 = u32::MAX;

/// Limits of a group in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Limits {
    /// Bytes per second.
    bps: u64,
    /// Bios per second.
    iops: u32,
}

impl Limits {
    const NONE: Self = Self { bps: BPS_MAX, iops: IOPS_MAX };
}

/// State of one direction of a group.
#[derive(Debug)]
struct Flow {
    limits: Limits,
    slice: Slice,
    /// Bios that wait for the limit on bytes. With one queue, they wait for both limits.
    held: WaitingBios,
    /// Bios whose bytes are counted, and that wait for the limit on bios. Unused with one queue.
    held_for_ios: WaitingBios,
}

impl Flow {
    fn nr_held(&self) -> usize {
        self.held.len() + self.held_for_ios.len()
    }

    fn holds_none(&self) -> bool {
        self.nr_held() == 0
    }

    /// Returns the bios that wait at a stage.
    #[inline]
    fn held_at(&mut self, stage: Stage) -> &mut WaitingBios {
        if stage == Stage::Ios { &mut self.held_for_ios } else { &mut self.held }
    }
}

/// Group with limits.
#[derive(Debug)]
struct Group {
    flows: [Flow; 2],
    /// Jiffy of the next check, if the group holds bios.
    due: u64,
    /// Whether the group is in its parent's list of pending groups.
    pending: bool,
    /// Whether the group's next bio of a direction has changed, because a bio was held.
    was_empty: bool,
    /// Children that hold bios.
    level: Level,
}

/// Controller io.max of a queue.
#[derive(Debug)]
pub struct IoMax {
    groups: Vec<Group>,
    /// Level above the root: bios that have passed all groups.
    top: Level,
    released: [WaitingBios; 2],
    /// Whether the worker must run.
    calls_worker: bool,
    rules: Rules,
}

/// Rules of a version of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rules {
    /// Length of a slice, in jiffies.
    slice: u64,
    /// Whether bios with metadata or swapped memory pass immediately, at the expense of other bios.
    urgent_passes: bool,
    /// Whether the unused or exceeded allowance of waiting bios remains valid when limits are
    /// written.
    carries: bool,
    /// Whether a wait for the limit on bios lasts at least as long as one bio takes at that limit.
    waits_for_one: bool,
    /// Whether the limit on bios counts each part of a long I/O.
    counts_parts: bool,
    /// Whether held bios of a group continue immediately when the group is removed.
    ends_at_removal: bool,
    /// Whether a limit of 1 is accepted.
    takes_one: bool,
    /// Whether the latest past slice remains when past slices are removed.
    keeps_a_slice: bool,
    /// Whether bios wait in two queues: first for the limit on bytes, then for the limit on bios.
    has_two_queues: bool,
    /// Whether the limit on bytes does not count a bio that is held behind another bio.
    misses_followers: bool,
}

impl Rules {
    fn of(site: &Site, kernel: KernelVersion, rotational: bool) -> Self {
        let has_short_slice = kernel.is_since(6, 10) && !kernel.has((6, 19), &[(6, 12, 63)]);
        let fraction = if has_short_slice && !rotational { 50 } else { 10 };
        Self {
            slice: u64::from(site.hz / fraction).max(1),
            urgent_passes: kernel.is_since(6, 12),
            carries: kernel.is_since(6, 1),
            waits_for_one: kernel.is_since(6, 11),
            counts_parts: kernel.is_since(5, 15),
            ends_at_removal: kernel.is_since(6, 13),
            takes_one: !kernel.is_since(5, 10) || kernel.is_since(6, 13),
            keeps_a_slice: kernel.is_since(6, 15),
            has_two_queues: kernel.is_since(6, 16),
            misses_followers: kernel.is_since(5, 18) && !kernel.has((6, 1), &[(6, 0, 3)]),
        }
    }
}

impl IoMax {
    /// Creates the controller with the existing groups, without limits.
    pub fn new(site: &mut Site) -> Self {
        let groups = site.groups.all().map(|_| Group::new(site)).collect();
        let rules = Rules::of(site, KernelVersion::default(), true);
        Self { groups, top: Level::new(site), released: Default::default(), calls_worker: false, rules }
    }

    /// Sets the rules to those of a version of Linux.
    #[must_use]
    pub fn of_kernel(self, site: &Site, kernel: KernelVersion, rotational: bool) -> Self {
        Self { rules: Rules::of(site, kernel, rotational), ..self }
    }

    /// Adds a new group, which must have the highest index.
    pub fn group_created(&mut self, site: &mut Site, group: CgroupId) {
        self.groups.push(Group::new(site));
        debug_assert_eq!(self.groups.len(), group.index() + 1);
    }

    /// Handles the removal of a group: in some versions its limits end.
    pub(super) fn group_removed(&mut self, site: &mut Site, group: CgroupId) {
        if !self.rules.ends_at_removal {
            return;
        }
        for direction in Direction::BOTH {
            self.flow(group, direction).limits = Limits::NONE;
        }
        if self.groups[group.index()].pending {
            self.update(site, group);
            self.schedule(site, site.groups.parent(group), true);
        }
    }

    fn flow(&mut self, group: CgroupId, direction: Direction) -> &mut Flow {
        &mut self.groups[group.index()].flows[direction as usize]
    }

    /// Returns the timers, each with its group. A timer serves the children of its group. The timer
    /// for the root has no group.
    pub fn timers(&self, site: &Site) -> impl Iterator<Item = (Option<CgroupId>, TimerId)> {
        let groups = site.groups.all().zip(&self.groups).map(|(group, state)| (Some(group), state.level.timer));
        groups.chain([(None, self.top.timer)])
    }

    /// Returns the number of held bios, including those released and not taken yet.
    #[must_use]
    pub fn held(&self) -> usize {
        let flows = self.groups.iter().flat_map(|group| &group.flows).map(Flow::nr_held);
        flows.sum::<usize>() + self.released.iter().map(WaitingBios::len).sum::<usize>()
    }

    // ---- a bio

    /// Handles a new bio. [`released`](Self::released) returns the bio after a wait; the bio is not
    /// passed to [`Site::go_on`].
    pub fn enter(&mut self, site: &mut Site, id: BioId) -> Passage {
        let state = &site.bios[id];
        let direction = Direction::of(state);
        if !self.applies(site, state, direction) {
            return Passage::Pass;
        }
        let (bio, is_urgent) = (Amount::of(state), state.is_urgent() && self.rules.urgent_passes);
        let mut source = Source::Own;
        let (mut group, now) = (state.cgroup, site.jiffies());
        loop {
            if let Err(stage) = self.pass(site, &At { group, direction, now }, &bio) {
                if !is_urgent {
                    self.hold(site, id, group, direction, source, stage);
                    return Passage::Wait;
                }
                self.charge(group, direction, bio, stage);
                if stage == Stage::Bytes {
                    self.charge(group, direction, bio, Stage::Ios);
                }
            }
            source = Source::Child(group);
            let Some(parent) = site.groups.parent(group) else { break };
            group = parent;
        }
        site.bios[id].counted = true;
        Passage::Pass
    }

    /// Returns whether any limit applies to the bio.
    fn applies(&self, site: &Site, state: &BioState, direction: Direction) -> bool {
        site.groups.up(state.cgroup).any(|group| {
            let limits = self.groups[group.index()].flows[direction as usize].limits;
            limits.iops != IOPS_MAX && (self.rules.counts_parts || !state.counted)
                || limits.bps != BPS_MAX && !state.counted
        })
    }

    /// Counts a bio in a group if the group's limits let the bio pass. Otherwise returns the stage
    /// at which the bio must wait. The bio is then counted at the earlier stages only.
    #[inline(always)]
    fn pass(&mut self, site: &mut Site, at: &At, bio: &Amount) -> Result<(), Stage> {
        let Self { groups, rules, .. } = self;
        let flow = &mut groups[at.group.index()].flows[at.direction as usize];
        if rules.has_two_queues {
            if !bio.is_counted() {
                flow.pass(site, rules, at, bio, Stage::Bytes)?;
            }
            flow.pass(site, rules, at, bio, Stage::Ios)?;
        } else {
            flow.pass(site, rules, at, bio, Stage::Both)?;
        }
        flow.trim(site, rules, at);
        Ok(())
    }

    /// Returns the bios of a group that wait at a stage.
    fn held_at(&mut self, group: CgroupId, direction: Direction, stage: Stage) -> &mut WaitingBios {
        self.flow(group, direction).held_at(stage)
    }

    fn hold(
        &mut self,
        site: &mut Site,
        id: BioId,
        group: CgroupId,
        direction: Direction,
        source: Source,
        stage: Stage,
    ) {
        let flows = &self.groups[group.index()].flows;
        let Flow { slice: Slice { bytes, ios, .. }, .. } = flows[direction as usize];
        let follows = !flows[direction as usize].holds_none();
        let waiting = [0, 1].map(|direction: usize| flows[direction].nr_held() as u32);
        site.note(|| IoMaxEvent::Hold { bio_id: id, group, direction, bytes, ios, held: waiting }.into());
        self.queue(site, id, group, direction, source, stage);
        if follows && self.rules.misses_followers {
            site.bios[id].counted = true;
        }
        if self.groups[group.index()].was_empty {
            self.update(site, group);
            self.schedule(site, site.groups.parent(group), true);
        }
    }

    /// Returns whether the worker must run, and clears the flag.
    pub fn take_worker_call(&mut self) -> bool {
        std::mem::take(&mut self.calls_worker)
    }

    /// Returns the bios that may continue, in their order,
    /// and removes them. The worker submits them.
    pub fn released(&mut self) -> Vec<BioId> {
        let mut all = Vec::new();
        for released_bios in &mut self.released {
            all.extend(std::iter::from_fn(|| released_bios.pop().map(|(_, id)| id)));
        }
        all
    }

    // ---- limits

    /// Writes a group's `io.max`: any of `rbps=`, `wbps=`, `riops=` and `wiops=`, each with a
    /// number of at least 2 (in some versions: 1) or `max`.
    ///
    /// # Errors
    /// Fails if a word has another form; no limit changes then.
    pub fn write(&mut self, site: &mut Site, group: CgroupId, text: &str) -> Result<(), WriteError> {
        if self.rules.carries {
            self.carry(site, group);
        }
        let limits = self.parse(group, text)?;
        for (direction, limits) in Direction::BOTH.into_iter().zip(limits) {
            self.flow(group, direction).limits = limits;
            self.begin_after_write(site, group, direction);
        }
        if self.groups[group.index()].pending {
            self.update(site, group);
            self.schedule(site, site.groups.parent(group), true);
        }
        Ok(())
    }

    fn parse(&self, group: CgroupId, text: &str) -> Result<[Limits; 2], WriteError> {
        let mut limits = Direction::BOTH.map(|direction| self.groups[group.index()].flows[direction as usize].limits);
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or(WriteError::Invalid)?;
            let value = match value {
                "max" => u64::MAX,
                value => value.parse().map_err(|_| WriteError::Invalid)?,
            };
            if value == 0 {
                return Err(WriteError::Range);
            }
            let [read, write] = &mut limits;
            let iops = u32::try_from(value).unwrap_or(IOPS_MAX);
            match name {
                _ if value == 1 && !self.rules.takes_one => return Err(WriteError::Invalid),
                "rbps" => read.bps = value,
                "wbps" => write.bps = value,
                "riops" => read.iops = iops,
                "wiops" => write.iops = iops,
                _ => return Err(WriteError::Invalid),
            }
        }
        Ok(limits)
    }

    /// Returns the content of a group's `io.max`.
    #[must_use]
    pub fn read(&self, group: CgroupId) -> String {
        let [read, write] = Direction::BOTH.map(|bio_id| self.groups[group.index()].flows[bio_id as usize].limits);
        let limit = |value: u64, most: u64| if value == most { "max".to_owned() } else { value.to_string() };
        let iops = |limits: Limits| limit(limits.iops.into(), IOPS_MAX.into());
        let (rbps, wbps) = (limit(read.bps, BPS_MAX), limit(write.bps, BPS_MAX));
        format!("rbps={rbps} wbps={wbps} riops={} wiops={}", iops(read), iops(write))
    }
}

impl Group {
    fn new(site: &mut Site) -> Self {
        let flow = || Flow {
            limits: Limits::NONE,
            slice: Slice::default(),
            held: WaitingBios::default(),
            held_for_ios: WaitingBios::default(),
        };
        let flows = [flow(), flow()];
        Self { flows, due: 0, pending: false, was_empty: false, level: Level::new(site) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn io_max_trim_keeps_one_elapsed_slice_from_6_15() {
        let left = |kernel: &str| {
            let mut site = Site::new(Time::BEGINNING, 1000);
            let group = site.groups.create(CgroupId::ROOT);
            let mut io_max = IoMax::new(&mut site).of_kernel(&site, kernel.parse().unwrap(), true);
            io_max.write(&mut site, group, "wbps=1000").unwrap();
            let begun = io_max.flow(group, Direction::Write).slice.start;
            site.now = site.now + 250_000_000;
            io_max.flow(group, Direction::Write).slice.end = site.jiffies() + 1;
            io_max.trim(&mut site, group, Direction::Write);
            io_max.flow(group, Direction::Write).slice.start - begun
        };
        assert_eq!(["6.14", "6.15"].map(left), [200, 100], "2.5 slices have elapsed");
    }
}
