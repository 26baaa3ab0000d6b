//! Checks whether a plan holds on a running machine: compares the setting in force and the observed
//! values of each unit with the plan.
//!
//! | file | content |
//! |---|---|
//! | `in_force.rs` | compares the setting of the device with the plan |
//! | `unit.rs` | finds the requests of a unit |
//! | `goal.rs` | compares observed values with goals |
//! | `reason.rs` | says why a goal is missed |

mod goal;
mod in_force;
mod reason;
mod unit;

use iosched_kernel::BlockDevice;
use iosched_kernel::observe::{ObserveOptions, Sample};
use serde::Serialize;

use crate::goal::WantedGoal;
use crate::plan::{Interval, Outcome, Plan};
use crate::target::Target;

pub use in_force::{Deviation, deviations};
pub(crate) use unit::{is_of, unknown};

/// The state of a plan's device, and the observed requests.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Requests and load of the device, observed with [`options`].
    pub sample: Sample,
    /// Values of the plan that are not in force, from [`deviations`].
    pub deviations: Vec<Deviation>,
    /// Controllers of cgroups that are in force for the device. Each has the name of the attribute,
    /// such as `cgroup/backup.slice/io.max`, and its value.
    pub controls: Vec<(String, String)>,
    /// Target of writeback throttling, µs. 0 or `None` if it is off.
    pub wbt_lat_usec: Option<u64>,
    /// Whether calls of `fsync` were observed.
    pub observes_fsync: bool,
    /// Why latencies were not observed. `None` if they were observed.
    pub without_latencies: Option<String>,
}

/// Result of checking whether a plan holds on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckReport {
    /// The device file.
    pub device: Option<String>,
    /// Length of the observation, s.
    pub seconds: f64,
    /// Share of the observed time in which iosched could observe the start of requests, 0 to 1.
    pub sampled: f64,
    /// Number of trace events that were lost.
    pub lost: u64,
    /// Values of the plan that are not in force.
    pub deviations: Vec<Deviation>,
    /// All goals, in the order of the plan.
    pub goals: Vec<CheckedGoal>,
}

/// A goal with its predicted and observed value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedGoal {
    /// Name of the unit.
    pub unit: String,
    /// The goal.
    pub wanted: WantedGoal,
    /// The value that the plan predicts.
    pub predicted: Interval,
    /// The observed value, in the unit of the goal. `None` if no value was observed.
    pub observed: Option<Interval>,
    /// Whether the goal is met.
    pub outcome: Outcome,
    /// Why the goal is missed, or why iosched cannot tell.
    pub reason: Option<String>,
}

impl CheckReport {
    /// Returns whether the setting is in force and no hard goal is missed.
    #[must_use]
    pub fn holds(&self) -> bool {
        let is_missed = |goal: &CheckedGoal| goal.wanted.hard && goal.outcome == Outcome::Missed;
        self.deviations.is_empty() && !self.goals.iter().any(is_missed)
    }
}

/// Returns the options of the observation of a plan.
#[must_use]
pub fn options(plan: &Plan) -> ObserveOptions {
    let tells_processes = plan.units.iter().any(|unit| matches!(unit.target, Target::Process(_)));
    ObserveOptions { depth_max: 16, groups_max: 1_000, tells_processes, ..ObserveOptions::default() }
}

/// Observes the state of the device, apart from its requests.
#[must_use]
pub fn state(plan: &Plan, device: &BlockDevice) -> Observed {
    let wbt = device.attribute("wbt_lat_usec").ok().and_then(|attribute| attribute.value.parse().ok());
    Observed {
        deviations: deviations(plan, device),
        controls: iosched_kernel::cgroup::Controls::of(device.roots()).on(device.disk().number()),
        wbt_lat_usec: wbt,
        ..Observed::default()
    }
}

/// Compares the observed values with the goals of the plan.
#[must_use]
pub fn check(plan: &Plan, observed: &Observed) -> CheckReport {
    let units: Vec<unit::Unit> = plan.units.iter().map(|unit| unit::Unit::of(unit, &observed.sample)).collect();
    let mut goals = Vec::new();
    for (number, planned) in plan.units.iter().enumerate() {
        for goal in &planned.goals {
            let judged = goal::judge(&goal.wanted.goal, number, plan, &units, observed);
            let reason = judged.reason.or_else(|| {
                let is_missed = judged.outcome == Outcome::Missed;
                is_missed.then(|| reason::of(&goal.wanted.goal, number, plan, &units, observed))
            });
            goals.push(CheckedGoal {
                unit: planned.name.clone(),
                wanted: goal.wanted.clone(),
                predicted: goal.predicted,
                observed: judged.observed,
                outcome: judged.outcome,
                reason,
            });
        }
    }
    let Sample { seconds, sampled, lost, .. } = observed.sample;
    let mut deviations = observed.deviations.clone();
    deviations.extend(plan.units.iter().filter_map(|unit| in_force::priority(unit, &observed.sample)));
    CheckReport { device: plan.device.clone(), seconds, sampled, lost, deviations, goals }
}

#[cfg(test)]
mod tests;
