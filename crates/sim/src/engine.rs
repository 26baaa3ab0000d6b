//! The engine.

use crate::observer::Observer;
use crate::plan::{Plan, SimError};
use crate::result::RunResult;

/// Runs a plan.
///
/// # Errors
/// The scheduler setting or another value of the plan is not possible, or the run was interrupted.
pub fn run(plan: &Plan<'_>, observer: impl Observer) -> Result<RunResult, SimError> {
    let _ = (plan, observer);
    Ok(RunResult::default())
}
