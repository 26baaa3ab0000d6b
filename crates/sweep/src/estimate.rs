//! Estimates the resources of a plan by trying some units with one run.

use std::time::Instant;

use iosched_lab::Control;
use iosched_system::rows::MEMORY_MIB;
use iosched_workload::Workload;

use crate::error::SweepError;
use crate::unit::Unit;

/// Number of units that are tried.
const TRIED: usize = 3;
/// Memory for a request of a trace, with the data about it that a run keeps, bytes.
const REQUEST_BYTES: u64 = 64;
/// Memory of a run without its workload, bytes.
const RUN_BYTES: u64 = 8 << 20;

/// Estimated resources of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Number of units to make.
    pub units: usize,
    /// Number of their runs, without the runs of single tasks.
    pub runs: u64,
    /// Number of workloads.
    pub workloads: usize,
    /// Size of the workloads, each counted once, bytes.
    pub bytes: u64,
    /// Time on one core, seconds; `None` if no unit could be tried.
    pub core_s: Option<f64>,
    /// Largest memory of one unit, bytes.
    pub memory_bytes: u64,
    /// Number of tried workloads that cannot be read.
    pub unreadable: usize,
}

/// Duration of a run of a single task, as a share of a run of all tasks.
const ALONE: f64 = 0.5;

/// Measurements of a unit that was tried.
struct Tried {
    bytes: u64,
    /// Number of its runs. A run of a single task counts as [`ALONE`] runs.
    runs: f64,
    /// Part of `runs` that counts the runs of single tasks. A unit runs each single task once per
    /// setting, even if the unit has several runs of each setting.
    alone: f64,
    read_s: f64,
    run_s: f64,
    requests: u64,
}

/// Estimates the resources of `units` by trying some of them: units with the smallest and the
/// largest workload, and some units between. `open` opens workloads. The estimate leaves out units
/// that fail.
pub fn estimate(units: &[Unit], open: impl Fn(&Unit) -> Result<Workload, SweepError>) -> Estimate {
    let mut by_size: Vec<&Unit> = units.iter().collect();
    by_size.sort_by_key(|unit| (unit.bytes(), unit.id()));
    let picked = |part: usize| by_size.get((by_size.len().saturating_sub(1)) * part / (TRIED - 1));
    let mut chosen: Vec<&Unit> = (0..TRIED).filter_map(picked).copied().collect();
    chosen.dedup_by_key(|unit| unit.id().to_owned());
    let mut unreadable = 0;
    let mut tried = Vec::new();
    for unit in chosen {
        match probe(unit, &open) {
            Ok(trial) => tried.push(trial),
            Err(_) => unreadable += 1,
        }
    }
    let mut workloads: Vec<(&str, u64)> = units.iter().map(|unit| (unit.place(), unit.bytes())).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let largest = units.iter().map(Unit::bytes).max().unwrap_or(0);
    let requests_a_byte =
        tried.iter().map(|trial| trial.requests as f64 / trial.bytes.max(1) as f64).fold(0.0, f64::max);
    let memory_bytes = memory_bytes(largest, requests_a_byte);
    Estimate {
        units: units.len(),
        runs: units.iter().map(Unit::runs).sum(),
        workloads: workloads.len(),
        bytes: workloads.iter().map(|(_, bytes)| bytes).sum(),
        core_s: (!tried.is_empty()).then(|| units.iter().map(|unit| core_s(unit, &tried)).sum()),
        memory_bytes,
        unreadable,
    }
}

/// Returns the memory of a unit with a workload of this size, bytes.
fn memory_bytes(bytes: u64, requests_a_byte: f64) -> u64 {
    let total_bytes = bytes.saturating_add((bytes as f64 * requests_a_byte) as u64 * REQUEST_BYTES);
    RUN_BYTES + total_bytes.min(MEMORY_MIB << 20)
}

/// Returns the time of a unit, s. It scales the time of the tried unit whose workload has the
/// nearest size.
fn core_s(unit: &Unit, tried: &[Tried]) -> f64 {
    let distance = |trial: &&Tried| trial.bytes.abs_diff(unit.bytes());
    let Some(near) = tried.iter().min_by_key(distance) else { return 0.0 };
    let larger = unit.bytes().max(1) as f64 / near.bytes.max(1) as f64;
    (near.read_s + near.run_s * (unit.runs() as f64 + near.alone) / near.runs) * larger
}

/// Tries a unit with one run of each setting.
fn probe(unit: &Unit, open: impl Fn(&Unit) -> Result<Workload, SweepError>) -> Result<Tried, SweepError> {
    let began = Instant::now();
    let workload = open(unit)?;
    let read_s = began.elapsed().as_secs_f64();
    let requests = match &workload {
        Workload::Trace(trace) => trace.len() as u64,
        _ => 0,
    };
    let single_run = unit.with_runs(1);
    let experiment = single_run.experiment(workload.clone())?;
    let alone = ALONE * (experiment.alone_tasks().len() * experiment.settings().len()) as f64;
    let began = Instant::now();
    single_run.make(workload, &Control::new(1))?;
    let run_s = began.elapsed().as_secs_f64();
    Ok(Tried { bytes: unit.bytes(), runs: single_run.runs() as f64 + alone, alone, read_s, run_s, requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimated_memory_does_not_grow_with_long_traces() {
        assert_eq!(memory_bytes(1000, 0.1), RUN_BYTES + 1000 + 100 * REQUEST_BYTES);
        assert_eq!(memory_bytes(1 << 30, 0.02), memory_bytes(1 << 40, 0.02));
    }
}
