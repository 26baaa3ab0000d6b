//! Slices: the allowance of a group in a slice, and when a bio may continue.
//!
//! The first bio of a slice can use the allowance of the whole slice.

use super::{BPS_MAX, Flow, IOPS_MAX, IoMax, Limits, Rules};
use crate::context::CgroupId;
use crate::controllers::bio_state::{BioState, Direction};
use crate::controllers::event::{IoMaxEvent, SliceChange};
use crate::controllers::site::Site;
use crate::request::{Op, SECTOR_BYTES};

/// Time span, with the bios that it served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Slice {
    /// Start, in jiffies.
    pub(super) start: u64,
    /// Last jiffy of the slice.
    pub(super) end: u64,
    pub(super) bytes: u64,
    pub(super) ios: u32,
    /// Carried allowance from before a change of limits, in bytes; negative: reduced allowance.
    carried_bytes: i64,
    /// Carried allowance in bios.
    carried_ios: i32,
}

impl Slice {
    /// Returns whether `now` is outside of the slice.
    pub(super) const fn is_over(&self, now: u64) -> bool {
        now < self.start || self.end < now
    }
}

/// Returns the end of the slice that contains `jiffy`, or `jiffy` itself if a slice ends there.
/// Slices of `length` jiffies begin at jiffy 0.
fn slice_end(length: u64, jiffy: u64) -> u64 {
    jiffy.checked_next_multiple_of(length).unwrap_or(u64::MAX)
}

/// Returns the number of bytes that `bps` allows in a number of jiffies.
#[inline]
fn bytes_in(site: &Site, bps: u64, jiffies: u64) -> u64 {
    let bits = |value: u64| value.checked_ilog2().map_or(-1, i64::from);
    if bits(bps) + bits(jiffies) - bits(site.hz.into()) > 62 {
        return u64::MAX;
    }
    match bps.checked_mul(jiffies) {
        Some(product) => product / u64::from(site.hz),
        None => (u128::from(bps) * u128::from(jiffies) / u128::from(site.hz)) as u64,
    }
}

/// Returns the number of bios that `iops` allows in a number of jiffies.
fn ios_in(site: &Site, iops: u32, jiffies: u64) -> u32 {
    let ios = u64::from(iops).saturating_mul(jiffies) / u64::from(site.hz);
    u32::try_from(ios).unwrap_or(u32::MAX)
}

/// Limits that a bio waits for, or is counted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Both limits together.
    Both,
    /// The limit on bytes.
    Bytes,
    /// The limit on bios.
    Ios,
}

/// Amount that a bio counts for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    bytes: u64,
    /// Whether its bytes were counted before.
    counted: bool,
}

impl Amount {
    pub(super) const fn of(state: &BioState) -> Self {
        let bytes = match state.op {
            _ if state.counted => 0,
            Op::Discard => SECTOR_BYTES,
            _ => state.bytes(),
        };
        Self { bytes, counted: state.counted }
    }

    /// Returns whether the bytes of the bio were counted before.
    pub(super) const fn is_counted(self) -> bool {
        self.counted
    }
}

/// A group, a direction, and the present jiffy.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) group: CgroupId,
    pub(super) direction: Direction,
    pub(super) now: u64,
}

impl Flow {
    /// Counts a bio at a stage if no other bio waits there and the limits allow the bio. Otherwise
    /// returns the stage.
    #[inline(always)]
    pub(super) fn pass(
        &mut self,
        site: &mut Site,
        rules: &Rules,
        at: &At,
        bio: &Amount,
        stage: Stage,
    ) -> Result<(), Stage> {
        if !self.held_at(stage).is_empty() || self.wait_jiffies(site, rules, at, bio, stage) > 0 {
            return Err(stage);
        }
        self.charge(bio, stage);
        Ok(())
    }

    /// Returns the time until the limits of a stage allow a bio, in jiffies; 0: now.
    #[inline(always)]
    fn wait_jiffies(&mut self, site: &mut Site, rules: &Rules, at: &At, bio: &Amount, stage: Stage) -> u64 {
        if self.limits_of(stage) == Limits::NONE {
            return 0;
        }
        self.wait_for(site, rules, at, bio, stage)
    }

    /// Returns the limits of a stage.
    #[inline(always)]
    fn limits_of(&self, stage: Stage) -> Limits {
        match stage {
            Stage::Both => self.limits,
            Stage::Bytes => Limits { iops: IOPS_MAX, ..self.limits },
            Stage::Ios => Limits { bps: BPS_MAX, ..self.limits },
        }
    }

    /// Returns the same as [`wait_jiffies`](Self::wait_jiffies), for a stage that has a limit.
    fn wait_for(&mut self, site: &mut Site, rules: &Rules, at: &At, bio: &Amount, stage: Stage) -> u64 {
        let (now, length, limits) = (at.now, rules.slice, self.limits_of(stage));
        if self.slice.is_over(now) && self.holds_none() {
            self.slice = Slice { start: now, end: now + length, ..Slice::default() };
            note(site, SliceChange::New, at.group, at.direction, self.slice);
        } else if self.slice.end < now + length {
            extend(site, at, &mut self.slice, slice_end(length, now + length));
        }
        let slice = &mut self.slice;
        let elapsed = now.wrapping_sub(slice.start);
        let for_bytes = if limits.bps == BPS_MAX || bio.counted {
            0
        } else {
            let granted = if elapsed == 0 { length } else { slice_end(length, elapsed) };
            let allowed = (bytes_in(site, limits.bps, granted) as i64).wrapping_add(slice.carried_bytes);
            let wanted = slice.bytes.wrapping_add(bio.bytes);
            if allowed > 0 && wanted <= allowed as u64 {
                0
            } else {
                let beyond = wanted.wrapping_sub(allowed as u64);
                (beyond.wrapping_mul(site.hz.into()) / limits.bps).max(1) + (granted - elapsed)
            }
        };
        let for_ios = if limits.iops == IOPS_MAX {
            0
        } else {
            let granted = slice_end(length, elapsed + 1);
            let allowed = (ios_in(site, limits.iops, granted) as i32).wrapping_add(slice.carried_ios);
            if allowed > 0 && slice.ios.wrapping_add(1) <= allowed as u32 {
                0
            } else {
                let of_one = if rules.waits_for_one { u64::from(site.hz / limits.iops) + 1 } else { 0 };
                (granted - elapsed).max(of_one)
            }
        };
        let wait = for_bytes.max(for_ios);
        if wait > 0 && slice.end < now.saturating_add(wait) {
            extend(site, at, slice, slice_end(length, now.saturating_add(wait)));
        }
        wait
    }

    /// Counts a bio that passes a stage.
    #[inline]
    fn charge(&mut self, bio: &Amount, stage: Stage) {
        let slice = &mut self.slice;
        if stage != Stage::Ios {
            slice.bytes = slice.bytes.wrapping_add(bio.bytes);
        }
        if stage != Stage::Bytes {
            slice.ios = slice.ios.wrapping_add(1);
        }
    }

    /// Removes whole past slices, with the amounts that they allowed.
    #[inline(always)]
    pub(super) fn trim(&mut self, site: &mut Site, rules: &Rules, at: &At) {
        if self.slice.is_over(at.now) {
            return;
        }
        let length = rules.slice;
        self.slice.end = slice_end(length, at.now + length);
        let over = (at.now - self.slice.start) / length;
        let slices = if rules.keeps_a_slice { over.saturating_sub(1) } else { over };
        if slices > 0 {
            self.remove(site, at, slices, length);
        }
    }

    /// Removes a number of slices from the start, with the amounts that they allowed.
    #[inline(never)]
    fn remove(&mut self, site: &mut Site, at: &At, slices: u64, length: u64) {
        let (limits, slice) = (self.limits, &mut self.slice);
        let elapsed = slices * length;
        let bytes = (bytes_in(site, limits.bps, elapsed) as i64).wrapping_add(slice.carried_bytes);
        let ios = (ios_in(site, limits.iops, elapsed) as i32).wrapping_add(slice.carried_ios);
        if bytes <= 0 && ios <= 0 {
            return;
        }
        (slice.carried_bytes, slice.carried_ios) = (0, 0);
        // An unlimited allowance is used as a number here, and may be negative.
        slice.bytes = if slice.bytes as i64 >= bytes { slice.bytes.wrapping_sub(bytes as u64) } else { 0 };
        slice.ios = if slice.ios as i32 >= ios { slice.ios.wrapping_sub(ios as u32) } else { 0 };
        slice.start += elapsed;
        note(site, SliceChange::Trim { slices, bytes, ios }, at.group, at.direction, *slice);
    }
}

impl IoMax {
    /// Returns the time until the limits of a stage allow a bio of a group, in jiffies; 0: now.
    pub(super) fn wait_jiffies(
        &mut self,
        site: &mut Site,
        group: CgroupId,
        direction: Direction,
        bio: Amount,
        stage: Stage,
    ) -> u64 {
        let at = At { group, direction, now: site.jiffies() };
        self.groups[group.index()].flows[direction as usize].wait_jiffies(site, &self.rules, &at, &bio, stage)
    }

    /// Counts a bio that passes a stage.
    pub(super) fn charge(&mut self, group: CgroupId, direction: Direction, bio: Amount, stage: Stage) {
        self.flow(group, direction).charge(&bio, stage);
    }

    /// Removes whole past slices of a group, with the amounts that they allowed.
    pub(super) fn trim(&mut self, site: &mut Site, group: CgroupId, direction: Direction) {
        let at = At { group, direction, now: site.jiffies() };
        self.groups[group.index()].flows[direction as usize].trim(site, &self.rules, &at);
    }

    /// Begins the slice of an inactive group that gets a bio of a child. The slice has the same
    /// start as the child's slice.
    pub(super) fn credit(&mut self, site: &mut Site, group: CgroupId, bio_id: Direction, child_start: u64) {
        let (now, length) = (site.jiffies(), self.rules.slice);
        let slice = &mut self.flow(group, bio_id).slice;
        if slice.is_over(now) {
            *slice = Slice { start: child_start.max(slice.start), end: now + length, ..Slice::default() };
            note(site, SliceChange::Credit, group, bio_id, *slice);
        }
    }

    /// Saves the unused or exceeded allowance of waiting bios before limits change.
    pub(super) fn carry(&mut self, site: &mut Site, group: CgroupId) {
        let now = site.jiffies();
        for bio_id in Direction::BOTH {
            let flow = self.flow(group, bio_id);
            if flow.holds_none() {
                continue;
            }
            let (limits, slice) = (flow.limits, &mut flow.slice);
            let elapsed = now.wrapping_sub(slice.start);
            if limits.bps != BPS_MAX {
                let owed = bytes_in(site, limits.bps, elapsed).wrapping_sub(slice.bytes) as i64;
                slice.carried_bytes = slice.carried_bytes.wrapping_add(owed);
            }
            if limits.iops != IOPS_MAX {
                let owed = ios_in(site, limits.iops, elapsed).wrapping_sub(slice.ios) as i32;
                slice.carried_ios = slice.carried_ios.wrapping_add(owed);
            }
        }
        let slices = Direction::BOTH.map(|bio_id| self.flow(group, bio_id).slice);
        let bytes = slices.map(|slice| slice.carried_bytes);
        let ios = slices.map(|slice| slice.carried_ios);
        site.note(|| IoMaxEvent::Carry { group, bytes, ios }.into());
    }

    /// Begins a new slice after limits have changed, with the carried allowance.
    pub(super) fn begin_after_write(&mut self, site: &mut Site, group: CgroupId, bio_id: Direction) {
        let (now, length) = (site.jiffies(), self.rules.slice);
        let slice = &mut self.flow(group, bio_id).slice;
        *slice = Slice { start: now, end: now + length, bytes: 0, ios: 0, ..*slice };
        note(site, SliceChange::New, group, bio_id, *slice);
    }
}

#[cold]
fn extend(site: &mut Site, at: &At, slice: &mut Slice, to: u64) {
    slice.end = to;
    note(site, SliceChange::Extend, at.group, at.direction, *slice);
}

fn note(site: &mut Site, change: SliceChange, group: CgroupId, direction: Direction, slice: Slice) {
    let Slice { start, end, .. } = slice;
    site.note(|| IoMaxEvent::Slice { change, group, direction, start, end }.into());
}
