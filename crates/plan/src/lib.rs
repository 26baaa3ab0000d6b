//! Plans: settings of one device that meet the goals of several units.
//!
//! A *unit* is a part of a machine that shares the device with others: a systemd unit, a cgroup, a
//! container, a virtual machine, an export of a served disk. Each unit has a workload and goals. A
//! [`Plan`] names the setting of the device and says what each unit gets under this setting.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `target.rs` | what a unit is on the machine, and its name in an intents file |
//! | `goal.rs` | goals of a unit: their notation, and whether a value meets them |
//! | `plan.rs` | the plan: the setting, and what each unit gets |
//! | `output/` | forms in which a plan is written, and how it is set on a machine |
#![forbid(unsafe_code)]

mod goal;
pub mod output;
mod plan;
mod target;

pub use goal::{Bound, Goal, GoalError, Metric, Operation, Statistic, WantedGoal};
pub use plan::{GoalOutcome, Interval, Outcome, Plan, UnitPlan};
pub use target::{QosClass, Target, TargetError};
