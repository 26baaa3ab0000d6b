//! Decisions of io.cost, with their reasons.

use crate::context::CgroupId;
use crate::time::Time;

/// How io.cost admitted a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Immediately: the group had the budget.
    Now,
    /// After a wait until the group had the budget.
    Woken,
    /// Immediately, because the bio must not wait: the cost is a debt of the group.
    Debt,
    /// At no cost: the controller is off, the group is the root,
    /// or the bio is neither a read nor a write.
    Free,
}

/// Reason for a change of a group's current weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightReason {
    /// A donor's budget ran low, so the group takes a part of its donation back.
    Adjust {
        /// Current share at that time, out of 65536.
        share: u32,
    },
    /// The group takes its whole donation back, because it needs its full share.
    Short,
    /// The group donates the share that it does not use.
    Transfer {
        /// Share that the group keeps, out of 65536.
        after: u32,
    },
}

/// Decision of io.cost. Budgets and costs are in virtual
/// time: 2^37 per second of the device at 100 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoCostEvent {
    /// A group becomes active.
    Activate {
        /// The group.
        group: CgroupId,
        /// Weight of the group, 1 to 10000.
        weight: u32,
    },
    /// A group was idle for a period and is no longer active.
    Idle {
        /// The group.
        group: CgroupId,
        /// Unspent budget of the group.
        budget: i64,
    },
    /// The current weight of a group changed.
    Weight {
        /// The group.
        group: CgroupId,
        /// Reason for the change.
        why: WeightReason,
        /// Weight before, 65536 for each unit of io.weight.
        from: u32,
        /// Weight after. A weight above the group's full weight counts as the full weight.
        to: u32,
    },
    /// The timer of a group was set to the time when its first waiting bio has its budget.
    Arm {
        /// The group.
        group: CgroupId,
        /// Earliest time.
        soft: Time,
        /// Latest time.
        hard: Time,
    },
    /// The timer of a group fired.
    Timer {
        /// The group.
        group: CgroupId,
    },
    /// The delay for processes of a group in debt changed.
    Delay {
        /// The group.
        group: CgroupId,
        /// Delay, ns; 0: no delay.
        ns: u64,
    },
    /// A bio is admitted.
    Admit {
        /// Host's name for the bio.
        cookie: u64,
        /// How the bio was admitted.
        how: Admission,
        /// Cost on the whole device; 0 if the bio is free.
        absolute: u64,
        /// Cost that the group is charged immediately. A smaller share means a higher cost.
        cost: u64,
    },
    /// A bio merged into a request.
    Merge {
        /// Host's name for the bio.
        cookie: u64,
        /// How the bio was admitted; a merged bio never waits.
        how: Admission,
        /// Cost on the whole device; 0 if the bio is free.
        absolute: u64,
        /// Cost that the group is charged immediately.
        cost: u64,
    },
    /// A period ends.
    Tick {
        /// Number of the period, from 0.
        period: u64,
    },
    /// The rate of virtual time was checked.
    Rate {
        /// Virtual time per µs before; 137438 is 100 %.
        from: u64,
        /// Virtual time per µs after.
        to: u64,
        /// Number of successive periods with an overloaded device: -1000 to 1000. A negative number
        /// counts periods with spare capacity.
        busy: i32,
        /// Reads and writes that missed their latency targets, parts per million.
        missed_ppm: [u32; 2],
        /// Time that requests waited for tags, in percent of the period.
        waited_percent: u64,
        /// Number of groups with bios in flight for more than a period.
        lagging: u32,
        /// Number of groups that need their full share.
        short: u32,
    },
    /// A part of a group's debt was forgiven, because the device is little used.
    Forgive {
        /// The group.
        group: CgroupId,
        /// Used part of the device's capacity, percent.
        used_percent: u64,
        /// Debt before and after.
        debt: [u64; 2],
        /// Delay before and after, µs.
        delay_us: [u64; 2],
    },
    /// A period ended.
    Period {
        /// Whether another period began, because a group is active.
        runs: bool,
        /// Virtual time per µs in the long run.
        base: u64,
        /// Virtual time per µs in the new period.
        rate: u64,
        /// Virtual time that must still be compensated.
        error: i64,
        /// See [`Rate`](Self::Rate).
        busy: i32,
        /// Length of a period, µs.
        period_us: u64,
    },
    /// State of an active group at the start of a period.
    Standing {
        /// The group.
        group: CgroupId,
        /// Weight of the group, 65536 for each unit of io.weight.
        full_weight: u32,
        /// Weight that is left after donations.
        current_weight: u32,
        /// Share by full weights, out of 65536.
        full_share: u32,
        /// Share by current weights, out of 65536.
        current_share: u32,
        /// Budget that the group may spend.
        budget: i64,
        /// Cost of the bios in flight.
        in_flight: i64,
        /// Debt of the group, on the whole device.
        debt: u64,
        /// Delay of the group, µs.
        delay_us: u64,
        /// Use in the period that ended, in µs of the whole device.
        used_us: u64,
        /// Number of waiting bios.
        waiting: usize,
    },
    /// A removed group has no bios in flight any more, and its state is freed.
    Free {
        /// The group.
        group: CgroupId,
    },
}
