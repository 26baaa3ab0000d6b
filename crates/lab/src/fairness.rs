//! Fairness: how equally the tasks slow each other down.
//!
//! The slowdown of a task is the ratio of two mean latencies, in the whole workload and alone, on
//! the same device under the same setting. The metric is Jain's index of the slowdowns. Tasks with
//! few I/Os have no stable mean, and runs alone take time. Therefore only tasks with at least
//! [`ALONE_IOS_MIN`] I/Os count. If there are more than [`ALONE_TASKS_MAX`] such tasks, only the
//! busiest of them count.

use crate::record::OnDevice;
use crate::stat;

/// Largest number of tasks that run alone. The busiest tasks are chosen.
pub const ALONE_TASKS_MAX: usize = 16;
/// Smallest number of I/Os of a task that counts.
pub const ALONE_IOS_MIN: u64 = 30;

/// Slowdowns of the tasks that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fairness {
    /// Indices of the tasks that count, in ascending order.
    pub tasks: Vec<usize>,
    /// Number of tasks that have I/Os but do not count.
    pub excluded: usize,
    /// I/Os of the excluded tasks, as a share of all I/Os, 0 to 1.
    pub excluded_share: f64,
    /// Slowdowns by setting, then by complete round, then by task in the order of `tasks`.
    pub slowdowns: Vec<Vec<Vec<f64>>>,
}

impl Fairness {
    /// Computes the slowdowns in all complete rounds.
    #[must_use]
    pub fn of(records: OnDevice<'_>) -> Self {
        let settings = records.header().settings.len();
        let runs: Vec<_> = (0..settings).map(|setting| records.complete_runs(setting)).collect();
        let counts = |task: usize| {
            let alone = |setting| records.alone(setting, task).is_some_and(|a| a.result.latency.sum_ns() > 0);
            let busy = |run: &crate::RunRecord| run.result.tasks.get(task).is_some_and(|t| t.ios >= ALONE_IOS_MIN);
            (0..settings).all(alone) && runs.iter().flatten().all(|run| busy(run))
        };
        let tasks: Vec<usize> = records.header().alone.iter().copied().filter(|&task| counts(task)).collect();
        let slowdown = |setting: usize, run: &crate::RunRecord, task: usize| {
            let alone = records.alone(setting, task).map_or(0.0, |a| a.result.latency.mean_ns());
            run.result.tasks[task].latency.mean_ns() / alone
        };
        let slowdowns = runs.iter().enumerate().map(|(setting, runs)| {
            runs.iter().map(|run| tasks.iter().map(|&task| slowdown(setting, run, task)).collect()).collect()
        });
        let (mut excluded, mut excluded_ios) = (0, 0);
        let first = runs.first().and_then(|runs| runs.first());
        if let Some(run) = first {
            let others = run.result.tasks.iter().enumerate().filter(|(number, _)| tasks.binary_search(number).is_err());
            for (_, task) in others.filter(|(_, task)| task.ios > 0) {
                excluded += 1;
                excluded_ios += task.ios;
            }
        }
        let all_ios = first.map_or(0, |run| run.result.ios).max(1);
        Self { excluded, excluded_share: excluded_ios as f64 / all_ios as f64, slowdowns: slowdowns.collect(), tasks }
    }

    /// Returns Jain's index of a setting in every complete round; empty if it is not defined.
    #[must_use]
    pub fn indices(&self, setting: usize) -> Vec<f64> {
        let Some(rounds) = self.slowdowns.get(setting) else { return Vec::new() };
        rounds.iter().filter_map(|slowdowns| stat::jain(slowdowns)).collect()
    }
}
