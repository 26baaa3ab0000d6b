//! The warning that a simulated comparison will take long, with a remedy.

use std::time::Duration;

use indicatif::HumanDuration;
use iosched_lab::Record;

/// Shortest expected duration of a comparison that causes a warning.
const LONG: Duration = Duration::from_secs(120);
/// Expected duration of a comparison with the recommended `--run-for`.
const SHORT: Duration = Duration::from_secs(30);
/// Shortest recommended simulated time of a run, s.
const RUN_FOR_MIN_S: f64 = 1.0;

/// Estimates the duration of a comparison from its first runs, and warns once.
#[derive(Debug)]
pub struct DurationEstimate {
    /// Number of runs that execute at the same time. The estimate needs at least this number of
    /// finished runs.
    threads: usize,
    /// Longest simulated time of a run so far, s.
    simulated_s: f64,
    /// Latest start of a task in a run so far, s. Shorter runs would leave out the task.
    last_start_s: f64,
    /// Whether tasks also run alone.
    has_alone: bool,
    is_done: bool,
}

impl DurationEstimate {
    /// Creates an estimate for a comparison that makes `threads` runs at the same time.
    pub const fn new(threads: usize) -> Self {
        Self { threads, simulated_s: 0.0, last_start_s: 0.0, has_alone: false, is_done: false }
    }

    /// Notes the plan, or the times of a run.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Header(header) => self.has_alone = !header.alone.is_empty(),
            Record::Run(run) => {
                let starts_ns = run.result.tasks.iter().filter_map(|task| task.first_submit_ns);
                self.last_start_s = starts_ns.map(|ns| ns as f64 / 1e9).fold(self.last_start_s, f64::max);
                self.simulated_s = self.simulated_s.max(run.result.finished_ns as f64 / 1e9);
            }
            _ => {}
        }
    }

    /// Returns a warning if `total` runs will take long. `done` runs took `elapsed`.
    pub fn warning(&mut self, done: usize, total: usize, elapsed: Duration) -> Option<String> {
        if self.is_done || done < self.threads.max(1) || self.simulated_s == 0.0 {
            return None;
        }
        let expected = elapsed.mul_f64(total as f64 / done as f64);
        if expected < LONG {
            return None;
        }
        self.is_done = true;
        let run_for_s = (self.simulated_s * SHORT.as_secs_f64() / expected.as_secs_f64()).round().max(RUN_FOR_MIN_S);
        let run_for_s = run_for_s.max((2.0 * self.last_start_s).ceil());
        let remedy = if run_for_s * 2.0 <= self.simulated_s {
            format!("each run simulates {:.0} s; to simulate less, give --run-for {run_for_s}", self.simulated_s)
        } else {
            "to make fewer runs, give --runs 3".to_owned()
        };
        let alone = if self.has_alone { " or --no-fairness" } else { "" };
        Some(format!("this comparison takes about {}; {remedy}{alone}", HumanDuration(expected)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_run(simulated_s: f64) -> DurationEstimate {
        DurationEstimate { simulated_s, ..DurationEstimate::new(2) }
    }

    #[test]
    fn long_comparison_warns_once_and_suggests_shorter_runs() {
        let mut estimate = after_run(60.0);
        let warning = estimate.warning(2, 50, Duration::from_secs(24)).unwrap();
        assert_eq!(
            warning,
            "this comparison takes about 10 minutes; each run simulates 60 s; to simulate less, give --run-for 3"
        );
        assert_eq!(estimate.warning(3, 50, Duration::from_secs(36)), None, "iosched prints the warning once");
    }

    #[test]
    fn suggested_runs_include_the_start_of_every_task() {
        let mut estimate = DurationEstimate { last_start_s: 10.0, has_alone: true, ..after_run(60.0) };
        let warning = estimate.warning(2, 50, Duration::from_secs(24)).unwrap();
        assert!(warning.ends_with("give --run-for 20 or --no-fairness"), "{warning}");
    }

    #[test]
    fn short_comparison_has_no_warning() {
        assert_eq!(after_run(60.0).warning(2, 50, Duration::from_secs(2)), None);
        assert_eq!(DurationEstimate::new(2).warning(2, 50, Duration::from_secs(24)), None, "no run is complete");
        assert_eq!(
            after_run(60.0).warning(1, 50, Duration::from_secs(24)),
            None,
            "one of two threads has not completed a run"
        );
    }

    #[test]
    fn warning_for_short_runs_suggests_fewer_runs() {
        let warning = after_run(1.5).warning(2, 1000, Duration::from_secs(1)).unwrap();
        assert!(warning.ends_with("give --runs 3"), "{warning}");
    }
}
