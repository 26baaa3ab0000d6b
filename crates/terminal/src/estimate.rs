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
    is_done: bool,
}

impl DurationEstimate {
    /// Creates an estimate for a comparison that makes `threads` runs at the same time.
    pub const fn new(threads: usize) -> Self {
        Self { threads, simulated_s: 0.0, is_done: false }
    }

    /// Notes the simulated time of a run.
    pub fn record(&mut self, record: &Record) {
        if let Record::Run(run) = record {
            self.simulated_s = self.simulated_s.max(run.result.finished_ns as f64 / 1e9);
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
        let remedy = if run_for_s * 2.0 <= self.simulated_s {
            format!("each run simulates {:.0} s; to simulate less, give --run-for {run_for_s}", self.simulated_s)
        } else {
            "to make fewer runs, give --runs 3".to_owned()
        };
        Some(format!("this comparison takes about {}; {remedy}", HumanDuration(expected)))
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
