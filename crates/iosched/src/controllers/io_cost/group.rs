//! Cgroup in io.cost: its weights, its budget, its debt, and its waiting bios.

use std::collections::VecDeque;

use super::clock::Virtual;
use super::share::{Shares, WHOLE};
use super::stat::Totals;
use crate::context::CgroupId;
use crate::controllers::bio_state::BioId;
use crate::request::Sector;

/// Factor between stored weights and io.weight.
pub(super) const WEIGHT_UNIT: u32 = WHOLE;
/// Default of io.weight.
pub(super) const WEIGHT_DEFAULT: u32 = 100;

/// Bio that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) bio_id: BioId,
    /// Cost on the whole device.
    pub(super) absolute: u64,
}

/// Cgroup of one device. The root is also a group, but is never active.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Parent group; `None` for the root.
    pub(super) parent: Option<CgroupId>,
    /// Path from the root's child down to the group itself.
    pub(super) path: Vec<CgroupId>,

    /// io.weight for all devices.
    pub(super) default_weight: u32,
    /// io.weight for this device.
    pub(super) device_weight: Option<u32>,
    /// Effective weight: io.weight times [`WEIGHT_UNIT`].
    pub(super) weight: u32,
    /// Weight while the group or a descendant is active; otherwise 0.
    pub(super) full_weight: u32,
    /// Weight that is left after donations.
    pub(super) current_weight: u32,
    /// Previous value of `current_weight`.
    pub(super) last_current_weight: u32,
    /// Sums of the full and of the current weights of the child groups.
    pub(super) children_full: u64,
    pub(super) children_current: u64,
    /// Cached shares, and their generation.
    pub(super) shares: Shares,
    pub(super) shares_of: Option<u64>,

    /// Number of child groups that are not freed.
    pub(super) children: u32,
    /// Whether the group was removed and its last bio is complete. `freed`: whether the group has
    /// been freed since then.
    pub(super) left: bool,
    pub(super) freed: bool,

    /// Whether the group is active.
    pub(super) active: bool,
    /// Start of the active time, µs.
    pub(super) active_since_us: u64,
    /// Number of the period of the last bio.
    pub(super) seen: u64,

    /// Point in virtual time up to which the budget is spent. The budget is the virtual time from
    /// this point to the present.
    pub(super) spent: Virtual,
    /// Value of `spent` without the bios in flight.
    pub(super) done: Virtual,
    /// Budget at the last change of the weight.
    pub(super) saved_budget: i64,
    /// Sector after the last bio; 0 if there was none.
    pub(super) cursor: Sector,
    /// Waiting bios, in the order of arrival.
    pub(super) waiting: VecDeque<Waiting>,

    /// Debt, on the whole device.
    pub(super) debt: u64,
    /// Last delay, µs. It halves each second after `delay_since_us`.
    pub(super) delay_us: u64,
    pub(super) delay_since_us: u64,
    /// Whether processes of the group are delayed, and the reported delay, ns.
    pub(super) delayed: bool,
    pub(super) delay_reported_ns: u64,

    /// Sum of charges and debts, on the whole device.
    pub(super) usage: u64,
    /// Value of `usage` at the end of the last period.
    pub(super) usage_seen: u64,
    /// Use in the last period, in µs of the whole device.
    pub(super) used_us: u64,
    /// Statistics of the group.
    pub(super) totals: Totals,
}

impl Group {
    /// Creates a group in its initial state.
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

    /// Returns the budget at `now`.
    pub(super) fn budget(&self, now: Virtual) -> i64 {
        now - self.spent
    }

    /// Returns the cost of the bios in flight.
    pub(super) fn in_flight(&self) -> i64 {
        self.spent - self.done
    }

    /// Returns whether the budget covers `cost` at `now`.
    pub(super) fn affords(&self, cost: u64, now: Virtual) -> bool {
        self.budget(now) >= cost as i64
    }

    /// Returns whether the group donates nothing.
    pub(super) fn is_whole(&self) -> bool {
        self.current_weight == self.full_weight
    }

    /// Returns whether the group has a debt, or its processes are delayed because of a debt.
    pub(super) fn is_debtor(&self) -> bool {
        self.debt > 0 || self.delay_us > 0
    }

    /// Spends `cost` for a bio that costs `absolute` on the whole device.
    pub(super) fn charge(&mut self, absolute: u64, cost: u64) {
        self.spent += cost;
        self.usage = self.usage.wrapping_add(absolute);
    }

    /// Changes the budget without a bio.
    pub(super) fn shift(&mut self, by: i64) {
        self.spent += by;
        self.done += by;
    }

    /// Returns the delay after its decay, µs.
    pub(super) fn decayed_delay_us(&self, us: u64) -> u64 {
        let seconds = us.saturating_sub(self.delay_since_us) / 1_000_000;
        u32::try_from(seconds).ok().and_then(|seconds| self.delay_us.checked_shr(seconds)).unwrap_or(0)
    }
}
