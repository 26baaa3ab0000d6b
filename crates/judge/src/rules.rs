//! Rules that every scheduler must keep, checked with random operations on the request queue.

use iosched::Registry;
use iosched_check::{Config, Coverage, Watch, operations, run};
use iosched_lab::{Control, pool};
use serde::Serialize;

use crate::request::JudgeError;

/// Number of operations in a run.
const OPERATIONS: u64 = 10_000;

/// Result of the random operations on one scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RulesOutcome {
    /// Number of operations.
    pub operations: u64,
    /// Number of requests that the device received.
    pub requests: u64,
    /// The first broken rule, with the seed of its run. `None` if no rule was broken.
    pub violation: Option<String>,
}

/// Does at least `operations_min` operations on a scheduler, and checks all decisions and counters.
/// Returns `None` if `control` was interrupted.
pub(crate) fn check(
    registry: &Registry,
    scheduler: &str,
    (operations_min, first_seed): (u64, u64),
    control: &Control,
) -> Result<Option<RulesOutcome>, JudgeError> {
    let name = registry.get(scheduler)?.name;
    let home = registry.elevators().iter().take_while(|elevator| elevator.name != name).count();
    let seeds: Vec<u64> = (0..operations_min.div_ceil(OPERATIONS)).map(|run| first_seed.wrapping_add(run)).collect();
    let watch = Watch { record: true, check_every: 16 };
    let mut outcome = RulesOutcome::default();
    let done = |&seed: &u64| {
        let config = Config::of(registry.clone(), home, seed);
        Ok(Some((seed, run(&config, operations(seed, Config::swarm(seed), OPERATIONS), watch))))
    };
    let all = pool::in_order(control, &seeds, done, |event| {
        match event {
            pool::Event::Taken((_, Ok(run))) => {
                let Coverage { operations, requests, .. } = run.coverage;
                outcome.operations += operations;
                outcome.requests += requests;
            }
            pool::Event::Taken((seed, Err(violation))) => {
                outcome.violation.get_or_insert_with(|| format!("seed {seed}: {violation}"));
            }
            pool::Event::Done { .. } => {}
        }
        Ok(())
    })?;
    Ok(all.then_some(outcome))
}
