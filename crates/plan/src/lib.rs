//! Plans: settings of one device that meet the goals of several units.
//!
//! A *unit* is a part of a machine that shares the device with other parts: a systemd unit, a
//! cgroup, a container, a virtual machine, an export of a served disk. Each unit has a workload and
//! goals. A [`Plan`] has the setting of the device and the predicted results of each unit.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `target.rs` | what a unit is on the machine, and its name in an intents file |
//! | `goal.rs` | goals of a unit: their notation, and whether a value meets them |
//! | `plan.rs` | the plan: the setting, and the predicted results of each unit |
//! | `output/` | output formats of a plan, and the code that sets a plan on a machine |
//! | `intents/` | the intents file |
//! | `recorded.rs` | records the workloads of units on the machine |
//! | `load.rs` | workloads that repeat, and that have more or less load |
//! | `planner.rs` | all steps from intents to a plan, and the check with fresh runs |
//! | `planned.rs` | the answer: the plan, its costs, the conditions under which it fails, the nearest goals |
//! | `ground.rs`, `measure.rs` | runs of all units together, and the results of each unit |
//! | `candidate.rs`, `search.rs` | settings, and the search for the best setting |
//! | `outcome.rs`, `shares.rs` | intervals and outcomes; the shares that result from weights |
//! | `check/` | checks whether a plan holds on a running machine |
#![forbid(unsafe_code)]

mod candidate;
pub mod check;
mod goal;
mod ground;
mod intents;
mod load;
mod measure;
mod outcome;
pub mod output;
mod plan;
mod planned;
mod planner;
mod recorded;
mod search;
mod shares;
mod target;

pub use goal::{Bound, Goal, GoalError, Metric, Operation, Statistic, WantedGoal};
pub use intents::{Intents, IntentsError, Unit};
pub use plan::{GoalOutcome, Interval, Outcome, Plan, UnitPlan};
pub use planned::{Condition, Effect, Fleet, MissedGoal, Nearest, Planned, Rates};
pub use planner::{PlanError, PlanOptions, Step, plan, verify};
pub use recorded::{ObserveError, RecordRequest, record};
pub use shares::EffectiveShare;
pub use target::{QosClass, Target, TargetError};
