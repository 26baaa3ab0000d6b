//! What io.cost decides, and why.

use crate::context::CgroupId;
use crate::time::Time;

/// How a bio passed io.cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Its group had the budget.
    Now,
    /// It waited until its group had the budget.
    Woken,
    /// It must not wait: its group owes for it.
    Debt,
    /// It costs nothing: the controller is off, the group is the root, or the bio is neither read nor write.
    Free,
}

/// Why a group's current weight changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WeightReason {
    /// A donor's budget ran low, so it takes a part back.
    Adjust {
        /// Its current share then, of 65536.
        share: u32,
    },
    /// It takes back all it lent: it needs its full share.
    Short,
    /// It lends what it does not use.
    Transfer {
        /// The share that it keeps, of 65536.
        after: u32,
    },
}

/// A decision of io.cost. Budgets and costs are in virtual time, 2^37 a second of the device at 100 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoCostEvent {
    /// A group takes part from now on.
    Activate {
        /// Which.
        group: CgroupId,
        /// Its weight, 1 to 10000.
        weight: u32,
    },
    /// A group did nothing for a period and takes part no more.
    Idle {
        /// Which.
        group: CgroupId,
        /// What it had not spent.
        budget: i64,
    },
    /// A group's current weight changed.
    Weight {
        /// Whose.
        group: CgroupId,
        /// Why.
        why: WeightReason,
        /// What it was, 65536 for each unit of io.weight.
        from: u32,
        /// What it was set to; at most the full weight of it counts.
        to: u32,
    },
    /// A group's timer was set for when its first waiting bio has its budget.
    Arm {
        /// Whose.
        group: CgroupId,
        /// The earliest moment.
        soft: Time,
        /// The latest.
        hard: Time,
    },
    /// A group's timer fired.
    Timer {
        /// Whose.
        group: CgroupId,
    },
    /// The delay that processes of a debtor are to rest for changed.
    Delay {
        /// Whose.
        group: CgroupId,
        /// How long, in ns; 0: not at all.
        ns: u64,
    },
    /// A bio passes.
    Admit {
        /// The host's name for it.
        cookie: u64,
        /// How.
        how: Admission,
        /// Its cost on the whole device; 0 if it is free.
        absolute: u64,
        /// What its group was charged at once: more, the smaller its share.
        cost: u64,
    },
    /// A bio became a part of a request.
    Merge {
        /// The host's name for it.
        cookie: u64,
        /// How; it never waits.
        how: Admission,
        /// Its cost on the whole device; 0 if it is free.
        absolute: u64,
        /// What its group was charged at once.
        cost: u64,
    },
    /// A period ends.
    Tick {
        /// Its number, from 0.
        period: u64,
    },
    /// How fast virtual time goes was looked at.
    Rate {
        /// Virtual time in a microsecond before; 137438 is 100 %.
        from: u64,
        /// And after.
        to: u64,
        /// For how many periods the device was overloaded, or, negative, could have done more: -1000 to 1000.
        busy: i32,
        /// Reads and writes that missed their latency targets, parts per million.
        missed_ppm: [u32; 2],
        /// Time that requests waited for tags, in percent of the period.
        waited_percent: u64,
        /// Groups whose bios are under way for more than a period.
        lagging: u32,
        /// Groups that need their full share.
        short: u32,
    },
    /// A part of a group's debt was forgiven, because the device has little to do.
    Forgive {
        /// Whose.
        group: CgroupId,
        /// How much of the device was in use, percent.
        used_percent: u64,
        /// Debt before and after.
        debt: [u64; 2],
        /// Delay before and after, in microseconds.
        delay_us: [u64; 2],
    },
    /// A period ended.
    Period {
        /// Whether another began: some group takes part.
        runs: bool,
        /// Virtual time in a microsecond in the long run.
        base: u64,
        /// Virtual time in a microsecond in the period that begins.
        rate: u64,
        /// Virtual time that is still to be made up for.
        error: i64,
        /// See [`Rate`](Self::Rate).
        busy: i32,
        /// Length of a period, in microseconds.
        period_us: u64,
    },
    /// How a group that takes part stands when a period begins.
    Standing {
        /// Which.
        group: CgroupId,
        /// Its weight, 65536 for each unit of io.weight.
        full_weight: u32,
        /// What is left of that after lending.
        current_weight: u32,
        /// Its share by full weights, of 65536.
        full_share: u32,
        /// Its share by current weights, of 65536.
        current_share: u32,
        /// What it may spend.
        budget: i64,
        /// Cost of what is under way.
        in_flight: i64,
        /// What it owes, on the whole device.
        debt: u64,
        /// Its delay, in microseconds.
        delay_us: u64,
        /// What it used in the period that ended, in microseconds of the whole device.
        used_us: u64,
        /// Bios of it that wait.
        waiting: usize,
    },
    /// A group that was removed has nothing under way any more, and is forgotten.
    Free {
        /// Which.
        group: CgroupId,
    },
}
