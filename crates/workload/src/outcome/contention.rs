//! The work of tasks while they compete.
//!
//! Tasks with a fixed amount of work, such as the processes of a trace, all finish their work. If a
//! task gets no service while other tasks run, it catches up after these tasks have finished. The
//! totals of a run therefore do not show that the task starved. The work that the task did before
//! the first busy task ended shows the starvation.

use serde::{Deserialize, Serialize};

use super::{RunResult, TaskResult};

/// Smallest fraction of its time that a task must have I/O in flight to count as busy.
pub const BUSY_SHARE: f64 = 0.9;
/// Shortest time that a task must run to count as busy, ns.
pub const BUSY_NS: u64 = 2_000_000_000;

/// Work of a busy task until the first busy task of the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contended {
    /// Time at which the first busy task ended, ns.
    pub until_ns: u64,
    /// Number of I/Os that this task had completed at this time. The number can be too high, by at
    /// most a sixteenth.
    pub ios: u64,
}

/// Times at which a task had completed certain numbers of I/Os, ns. Each number is about a
/// sixteenth larger than the previous one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    completed: u64,
    /// Number of I/Os at which the next time is stored.
    next: u64,
    times_ns: Vec<u64>,
}

impl Progress {
    /// Counts an I/O that completes now.
    #[inline]
    pub fn completed(&mut self, now_ns: u64) {
        self.completed += 1;
        if self.completed > self.next {
            self.times_ns.push(now_ns);
            self.next = after(self.next);
        }
    }

    /// Returns the number of I/Os that were complete at this time. The number can be too high, by
    /// at most a sixteenth.
    fn until(&self, at_ns: u64) -> u64 {
        let reached = self.times_ns.partition_point(|&time_ns| time_ns <= at_ns);
        (0..reached).fold(0, |marked, _| after(marked)).min(self.completed)
    }
}

/// Returns the index of the next I/O whose completion time is stored, after the I/O with index
/// `marked`.
const fn after(marked: u64) -> u64 {
    marked + 1 + marked / 16
}

impl RunResult {
    /// Finds the work of busy tasks until the first busy task ended. Clears the progress of the
    /// tasks.
    pub fn find_contention(&mut self) {
        let counted_from_ns = self.counted_from_ns;
        let end_ns = |task: &TaskResult| {
            let first_ns = task.first_submit_ns?.max(counted_from_ns);
            let end_ns = task.last_completion_ns?;
            let present_ns = end_ns.saturating_sub(first_ns);
            let is_busy = present_ns >= BUSY_NS && task.latency.sum_ns() as f64 >= BUSY_SHARE * present_ns as f64;
            is_busy.then_some(end_ns)
        };
        let until_ns = self.tasks.iter().filter_map(end_ns).min();
        for task in &mut self.tasks {
            let progress = std::mem::take(&mut task.progress);
            let is_early = |&until_ns: &u64| until_ns < self.finished_ns && end_ns(task).is_some();
            task.contended =
                until_ns.filter(is_early).map(|until_ns| Contended { until_ns, ios: progress.until(until_ns) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a task that completes an I/O every `every_ns` between the two times.
    fn task((from_ns, to_ns): (u64, u64), every_ns: u64, waited_ns: u64) -> TaskResult {
        let mut task = TaskResult { first_submit_ns: Some(0), last_completion_ns: Some(to_ns), ..Default::default() };
        for now_ns in (from_ns..=to_ns).step_by(every_ns as usize) {
            task.progress.completed(now_ns);
            task.latency.record(waited_ns);
        }
        task
    }

    #[test]
    fn counts_are_at_most_a_sixteenth_too_high() {
        let progress = task((1, 10_000), 1, 1).progress;
        for at in (0..=12_000).step_by(7) {
            let (exact, found) = (at.min(10_000), progress.until(at));
            assert!(found >= exact && found * 16 <= exact * 17 + 16, "{found} for {exact}");
        }
        assert!(progress.times_ns.len() < 160);
    }

    #[test]
    fn work_counts_until_the_first_busy_task_ends() {
        const SECOND: u64 = 1_000_000_000;
        let busy = task((1, 4 * SECOND), SECOND / 100, SECOND / 100);
        // This task waits until the busy task has ended, then runs alone.
        let mut late = task((4 * SECOND, 6 * SECOND), SECOND / 1_000, SECOND / 1_000);
        late.latency.record(4 * SECOND);
        let idle = task((1, 5 * SECOND), SECOND, 1);
        let mut run = RunResult { finished_ns: 6 * SECOND, tasks: vec![busy, late, idle], ..RunResult::default() };
        run.find_contention();
        let found: Vec<Option<u64>> = run.tasks.iter().map(|task| Some(task.contended?.ios)).collect();
        assert!(matches!(found[..], [Some(400..=425), Some(1), None]), "{found:?}");
    }
}
