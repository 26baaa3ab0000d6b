//! The request for a judgement, errors of a judgement, and one simulated run.

use iosched::{Registry, SettingError, UnknownElevator};
use iosched_disk::{Profile, ProfileError};
use iosched_lab::goal::GoalError;
use iosched_lab::{Control, LabError};
use iosched_sim::{Plan, RunResult, SimError, run};
use iosched_workload::WorkloadError;

use crate::comparisons::pairs;
use crate::cost::{CostError, Counter};
use crate::workloads::run_ns;

/// A request for a judgement: the schedulers, and the extent of each part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JudgeRequest {
    /// The schedulers of Linux, and schedulers of the user.
    pub registry: Registry,
    /// Names of the schedulers to judge.
    pub schedulers: Vec<String>,
    /// Seed of all parts.
    pub seed: u64,
    /// Whether workloads are compared on all devices. This part takes longest.
    pub compare: bool,
    /// Runs of each comparison, at least 2.
    pub runs: u32,
    /// Length of the runs of comparisons and shares, per cent of the usual length, at least 1.
    pub time_percent: u32,
    /// Number of workloads in each of the four generations of the search for long waits.
    pub tries: u32,
    /// Number of random operations on the request queue, for each scheduler.
    pub operations: u64,
    /// Counter of instructions. If `None`, the cost is left out.
    pub counter: Option<Counter>,
}

impl JudgeRequest {
    /// Returns a request with seed 1, 5 runs, 16 tries and 200,000 operations, without the cost.
    #[must_use]
    pub fn new(registry: Registry, schedulers: &[&str]) -> Self {
        let schedulers = schedulers.iter().map(|&name| name.to_owned()).collect();
        Self {
            registry,
            schedulers,
            seed: 1,
            compare: true,
            runs: 5,
            time_percent: 100,
            tries: 16,
            operations: 200_000,
            counter: None,
        }
    }
}

impl JudgeRequest {
    /// Returns the number of parts that [`judge`](crate::judge()) reports if no scheduler breaks a
    /// rule.
    #[must_use]
    pub fn parts(&self) -> usize {
        let compared = if self.compare && !self.schedulers.is_empty() { pairs().count() } else { 0 };
        // The parts are rules, shares, longest waits and, with a counter, the cost.
        compared + self.schedulers.len() * if self.counter.is_some() { 4 } else { 3 }
    }

    /// Returns the length of a run on a device, ns.
    pub(crate) fn run_ns(&self, profile: &Profile) -> u64 {
        run_ns(profile) / 100 * u64::from(self.time_percent.max(1))
    }
}

/// Reason why a scheduler cannot be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// No scheduler was given.
    #[error("no scheduler is given; give at least one scheduler")]
    Nothing,
    /// There are fewer than 2 runs, so a verdict is not possible.
    #[error("runs: {0} is too few; give at least 2 runs, because a verdict needs 2 runs")]
    Runs(u32),
    /// The registry has no scheduler of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownElevator),
    /// A scheduler cannot run on a device.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A device of the report card has no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A workload of the report card cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A metric of the report card cannot be read.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A comparison failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Instructions cannot be counted.
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// Makes a run. Returns `None` if `control` was interrupted.
pub(crate) fn simulate(plan: &Plan<'_>, control: &Control) -> Result<Option<RunResult>, LabError> {
    let plan = Plan { interrupt: Some(control.stopping()), ..plan.clone() };
    match run(&plan, &mut ()) {
        Ok(result) => Ok(Some(result)),
        Err(SimError::Interrupted { .. }) => Ok(None),
        Err(source) => {
            let name = plan.scheduler.to_string();
            Err(LabError::Run { name, run: 0, seed: plan.seed, source: Box::new(source) })
        }
    }
}
