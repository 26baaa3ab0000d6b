//! A cgroup as io.cost knows it: its weights, its budget, what it owes, who waits.

use std::collections::VecDeque;

use super::clock::Virtual;
use super::share::{Shares, WHOLE};
use super::stat::Totals;
use crate::context::CgroupId;
use crate::controllers::bio_state::BioId;
use crate::request::Sector;

/// Weights are kept this many times as fine as io.weight.
pub(super) const WEIGHT_UNIT: u32 = WHOLE;
/// io.weight of a group that was never set.
pub(super) const WEIGHT_DEFAULT: u32 = 100;

/// A bio that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) bio_id: BioId,
    /// Its cost on the whole device.
    pub(super) absolute: u64,
}

/// A cgroup of one device. The root is one, but is never active.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The group it is in; none for the root.
    pub(super) parent: Option<CgroupId>,
    /// From the root's child down to the group itself.
    pub(super) path: Vec<CgroupId>,

    /// io.weight for all devices.
    pub(super) default_weight: u32,
    /// io.weight for this device alone.
    pub(super) device_weight: Option<u32>,
    /// The weight in force, in [`WEIGHT_UNIT`]s of io.weight.
    pub(super) weight: u32,
    /// The weight while it takes part, or a group in it does; else 0.
    pub(super) full_weight: u32,
    /// What is left of that after lending.
    pub(super) current_weight: u32,
    /// What `current_weight` was before it was last set.
    pub(super) last_current_weight: u32,
    /// Sums over the groups in it.
    pub(super) children_full: u64,
    pub(super) children_current: u64,
    /// Its shares as they were when they were last looked at, and the generation they are of.
    pub(super) shares: Shares,
    pub(super) shares_of: Option<u64>,

    /// Groups in it that are not freed.
    pub(super) children: u32,
    /// Whether it was removed and its last bio is done, and whether no group in it holds it since then.
    pub(super) left: bool,
    pub(super) freed: bool,

    /// Whether it takes part.
    pub(super) active: bool,
    /// Since when, in microseconds.
    pub(super) active_since_us: u64,
    /// The period in which its last bio came.
    pub(super) seen: u64,

    /// Where in virtual time its budget is spent up to: the budget is what there is from there to now.
    pub(super) spent: Virtual,
    /// Where `spent` would be without what is under way.
    pub(super) done: Virtual,
    /// Its budget when its weight was last changed.
    pub(super) saved_budget: i64,
    /// The sector behind its last bio; 0 if it had none.
    pub(super) cursor: Sector,
    /// Bios that wait, the first to go first.
    pub(super) waiting: VecDeque<Waiting>,

    /// What it owes, on the whole device.
    pub(super) debt: u64,
    /// The delay it was last given, in microseconds, and when. It halves each second.
    pub(super) delay_us: u64,
    pub(super) delay_since_us: u64,
    /// Whether its processes rest, and how long, in ns.
    pub(super) delayed: bool,
    pub(super) delay_reported_ns: u64,

    /// All it was charged or owed, on the whole device.
    pub(super) usage: u64,
    /// What that was when a period last ended.
    pub(super) usage_seen: u64,
    /// What it used in the period that last ended, in microseconds of the whole device.
    pub(super) used_us: u64,
    /// Statistics.
    pub(super) totals: Totals,
}

impl Group {
    /// A group that did nothing yet.
    pub(super) fn new(parent: Option<CgroupId>, path: Vec<CgroupId>) -> Self {
        Self {
            parent,
            path,
            default_weight: WEIGHT_DEFAULT,
            device_weight: None,
            weight: WEIGHT_DEFAULT * WEIGHT_UNIT,
            full_weight: 0,
            current_weight: 0,
            last_current_weight: 0,
            children_full: 0,
            children_current: 0,
            shares: Shares::ALL,
            shares_of: None,
            children: 0,
            left: false,
            freed: false,
            active: false,
            active_since_us: 0,
            seen: 0,
            spent: Virtual::default(),
            done: Virtual::default(),
            saved_budget: 0,
            cursor: 0,
            waiting: VecDeque::new(),
            debt: 0,
            delay_us: 0,
            delay_since_us: 0,
            delayed: false,
            delay_reported_ns: 0,
            usage: 0,
            usage_seen: 0,
            used_us: 0,
            totals: Totals::default(),
        }
    }

    /// What it may spend at `now`.
    pub(super) fn budget(&self, now: Virtual) -> i64 {
        now - self.spent
    }

    /// Cost of what is under way.
    pub(super) fn in_flight(&self) -> i64 {
        self.spent - self.done
    }

    /// Whether its budget covers `cost` at `now`.
    pub(super) fn affords(&self, cost: u64, now: Virtual) -> bool {
        self.budget(now) >= cost as i64
    }

    /// Whether it lends nothing.
    pub(super) fn is_whole(&self) -> bool {
        self.current_weight == self.full_weight
    }

    /// It owes, or its processes rest for what it owed.
    pub(super) fn is_debtor(&self) -> bool {
        self.debt > 0 || self.delay_us > 0
    }

    /// Spends `cost` for something that costs `absolute` on the whole device.
    pub(super) fn charge(&mut self, absolute: u64, cost: u64) {
        self.spent += cost;
        self.usage = self.usage.wrapping_add(absolute);
    }

    /// Moves its budget without anything being done for it.
    pub(super) fn shift(&mut self, by: i64) {
        self.spent += by;
        self.done += by;
    }

    /// What its delay has decayed to, in microseconds.
    pub(super) fn decayed_delay_us(&self, us: u64) -> u64 {
        let seconds = us.saturating_sub(self.delay_since_us) / 1_000_000;
        u32::try_from(seconds).ok().and_then(|seconds| self.delay_us.checked_shr(seconds)).unwrap_or(0)
    }
}
