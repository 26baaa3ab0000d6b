//! Tasks that starve.

use iosched_sim::{RunResult, TaskResult};
use iosched_workload::outcome::{BUSY_NS, BUSY_SHARE};
use serde::{Deserialize, Serialize};

use crate::record::WorkloadKind;

/// Limit for the work of a busy task, as a share of the work of the busiest task. A task starves if
/// it is below the limit in both I/Os and bytes.
const STARVED_SHARE: f64 = 0.05;
/// Limit for the same share per I/O in flight. A starving task is below this limit too. A task with
/// few I/Os in flight gets less work than a task with many, although the disk serves both alike.
const STARVED_SHARE_IN_FLIGHT: f64 = 0.25;

/// A task that starves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StarvedTask {
    /// Name of the task; `NAME (PID)` or `process PID` for a process of a trace.
    pub task: String,
    /// Work of the task, per cent of the work of the busiest task. This is the larger of the two
    /// ratios, by I/Os and by bytes.
    pub percent: f64,
}

/// Returns the tasks that starve in every run, each with its largest percentage in any run.
pub fn starved_in_all(runs: impl IntoIterator<Item = Vec<StarvedTask>>) -> Vec<StarvedTask> {
    let both = |before: Vec<StarvedTask>, found: Vec<StarvedTask>| {
        let still = before.into_iter().filter_map(|StarvedTask { task, percent }| {
            let now = found.iter().find(|other| other.task == task)?.percent;
            Some(StarvedTask { task, percent: percent.max(now) })
        });
        still.collect()
    };
    runs.into_iter().reduce(both).unwrap_or_default()
}

/// Returns the tasks that starve in one run. The result covers the whole run, or only the time
/// until the first busy task ended. Tasks with the same name become one entry, with the largest
/// percentage among them. With the kind `Trace`, the name in the entry also has the pid.
#[must_use]
pub fn starved_tasks(run: &RunResult, kind: WorkloadKind) -> Vec<StarvedTask> {
    let first_ns = |task: &TaskResult| task.first_submit_ns.unwrap_or(run.finished_ns).max(run.counted_from_ns);
    let is_busy = |task: &&TaskResult| {
        let present_ns = run.finished_ns.saturating_sub(first_ns(task));
        present_ns >= BUSY_NS && task.latency.sum_ns() as f64 >= BUSY_SHARE * present_ns as f64
    };
    let bytes = |task: &TaskResult| task.bytes_read + task.bytes_written;
    let whole = run.tasks.iter().filter(is_busy).map(|task| (task, task.ios as f64, bytes(task) as f64));
    let contended = run.tasks.iter().filter_map(|task| {
        let contended =
            task.contended.filter(|contended| contended.until_ns.saturating_sub(first_ns(task)) >= BUSY_NS)?;
        let share = contended.ios as f64 / task.ios.max(1) as f64;
        Some((task, contended.ios as f64, bytes(task) as f64 * share))
    });
    let mut found: Vec<StarvedTask> = Vec::new();
    for (task, percent) in starved(whole.collect()).into_iter().chain(starved(contended.collect())) {
        let name = match (task.name.as_str(), kind) {
            ("", _) => format!("process {}", task.pid),
            (name, WorkloadKind::Trace) if task.pid > 0 => format!("{name} ({})", task.pid),
            (name, _) => name.to_owned(),
        };
        match found.iter_mut().find(|known| known.task == name) {
            Some(known) => known.percent = known.percent.max(percent),
            None => found.push(StarvedTask { task: name, percent }),
        }
    }
    found
}

/// Returns the tasks in `busy` that starve, each with its work in per cent of the work of the
/// busiest task. `busy` contains each busy task with its I/Os and bytes.
fn starved(busy: Vec<(&TaskResult, f64, f64)>) -> Vec<(&TaskResult, f64)> {
    // The mean number of I/Os in flight while the task ran.
    let depth = |task: &TaskResult| {
        let ran_ns = task.last_completion_ns.zip(task.first_submit_ns).map(|(last, first)| last.saturating_sub(first));
        task.latency.sum_ns().max(1) as f64 / ran_ns.unwrap_or(0).max(1) as f64
    };
    let most = |work: fn(&(&TaskResult, f64, f64)) -> f64| {
        let busiest = busy.iter().max_by(|a, b| work(a).total_cmp(&work(b)));
        busiest.map_or((1.0, 1.0), |busiest| (work(busiest).max(1.0), depth(busiest.0)))
    };
    let (most_ios, most_bytes) = (most(|busy| busy.1), most(|busy| busy.2));
    let shares = |(task, ios, bytes): (_, f64, f64)| {
        // A task with large requests has few I/Os. A task with small requests has few bytes.
        let share = (ios / most_ios.0).max(bytes / most_bytes.0);
        let in_flight = |work: f64, most: (f64, f64)| work / most.0 * most.1 / depth(task);
        let share_in_flight = in_flight(ios, most_ios).max(in_flight(bytes, most_bytes));
        (task, share, share_in_flight)
    };
    let starves = |&(_, share, in_flight): &(_, f64, f64)| share < STARVED_SHARE && in_flight < STARVED_SHARE_IN_FLIGHT;
    busy.into_iter().map(shares).filter(starves).map(|(task, share, _)| (task, share * 100.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_numbers::Histogram;

    /// Returns the names of the tasks that starve. Each task has a name, its I/Os, and the mean
    /// latency of its I/Os in µs.
    fn starving(tasks: &[(&str, u64, u64)]) -> Vec<String> {
        let tasks: Vec<TaskResult> = tasks
            .iter()
            .map(|&(name, ios, latency_us)| {
                let mut latency = Histogram::default();
                (0..ios).for_each(|_| latency.record(latency_us * 1_000));
                TaskResult {
                    name: name.to_owned(),
                    ios,
                    latency,
                    first_submit_ns: Some(0),
                    last_completion_ns: Some(1_000_000_000),
                    ..TaskResult::default()
                }
            })
            .collect();
        let busy = tasks.iter().map(|task| (task, task.ios as f64, task.ios as f64 * 4096.0)).collect();
        starved(busy).into_iter().map(|(task, _)| task.name.clone()).collect()
    }

    #[test]
    fn task_with_fewer_ios_in_flight_does_not_starve_if_its_ios_are_as_fast() {
        // 32 I/Os in flight against one.
        assert_eq!(starving(&[("batch", 32_000, 1_000), ("log", 900, 1_100)]), [""; 0]);
        // One in flight each, or one whose I/Os take 30 times as long.
        assert_eq!(starving(&[("batch", 10_000, 100), ("log", 400, 2_500)]), ["log"]);
        assert_eq!(starving(&[("batch", 32_000, 1_000), ("log", 33, 30_000)]), ["log"]);
    }
}
