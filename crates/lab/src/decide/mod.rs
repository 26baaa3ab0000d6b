//! Decision: the setting to use, in a few sentences. Every answer begins with these sentences.
//!
//! Only [`decide`] makes these sentences. It derives a [`Decision`] from verdicts, metrics, the
//! baseline and facts about the device. It reads no records, because [`Evidence`] contains all its
//! input. The terminal, the report, JSON and Python print the same sentences.
//!
//! | file | content |
//! |---|---|
//! | `rules` | choice of the setting, with reasons |
//! | `words` | a difference in a metric, in words |
//! | `several` | decision for several devices |
//! | `evidence` | conversion of results to [`Evidence`] |

mod evidence;
mod rules;
mod several;
mod words;

use std::fmt;

use serde::Serialize;

use crate::compare::Comparison;
use crate::figure::Figure;

pub use rules::decide;
pub(crate) use several::several;

/// Kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Keep the baseline: nothing is better.
    Keep,
    /// Change to another setting.
    Change,
    /// Another setting is better in one metric and worse in others, so the user must choose.
    Trade,
    /// Keep the baseline for now: more runs, or a better model, may show that another setting is
    /// better.
    CannotTell,
    /// Keep the baseline for now: there are too few runs.
    TooFewRuns,
    /// Keep the baseline: all settings are equal in all metrics.
    Equal,
    /// Keep the baseline: the device was idle nearly all the time.
    Idle,
    /// There is only one setting, or no metric to compare.
    Nothing,
}

/// Setting to use, with reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Kind of the decision.
    pub kind: DecisionKind,
    /// Index of the setting to use. For a trade, this is the setting to use if `metric` matters
    /// most.
    pub setting: Option<usize>,
    /// For a trade: index of the setting to use if `metric` does not matter most; `None` means the
    /// baseline.
    pub otherwise: Option<usize>,
    /// Metric that decided.
    pub metric: Option<Figure>,
    /// Decision in sentences: what to do, why, and what it costs.
    pub sentences: Vec<String>,
    /// Deciding metric and number of runs, in sentences.
    pub judged: Option<String>,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self.sentences.iter().chain(&self.judged).map(String::as_str).collect();
        f.write_str(&all.join(" "))
    }
}

/// A metric under every setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The metric.
    pub figure: Figure,
    /// The metric as a phrase, such as "the time to finish".
    pub phrase: String,
    /// Mean and comparison with the baseline, by setting. The baseline has no comparison.
    pub settings: Vec<Option<(f64, Option<Comparison>)>>,
    /// Whether a better value is a reason to change. Other metrics are only reported as a cost.
    pub concludes: bool,
}

/// A task that gets almost no service.
#[derive(Clone, Debug, PartialEq)]
pub struct Starving {
    /// Name of the task; `NAME (PID)` or `process PID` for a process of a trace.
    pub task: String,
    /// Indices of the settings under which it starves.
    pub settings: Vec<usize>,
    /// Work of the task, per cent of the work of the busiest task. This is the larger of the two
    /// ratios, by I/Os and by bytes.
    pub percent: f64,
}

/// A constraint that a setting breaks. `Display` writes both parts: "p99(db) <= 1 ms (28.9 ms)".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenConstraint {
    /// The constraint, as the user wrote it.
    pub constraint: String,
    /// The value of the setting, with its unit.
    pub value: String,
}

impl fmt::Display for BrokenConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.constraint, self.value)
    }
}

/// Evidence that a decision is based on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Labels of the settings, as users write them.
    pub labels: Vec<String>,
    /// Index of the baseline.
    pub baseline: usize,
    /// Indices of the settings whose scheduler is not part of Linux. Only a served disk can use
    /// them, or a kernel that has the schedulers of [`Evidence::out_of_tree`].
    pub served: Vec<usize>,
    /// Indices of the settings in `served` whose scheduler (ADIOS) some kernels have, although it
    /// is not part of Linux.
    pub out_of_tree: Vec<usize>,
    /// Indices of settings in `served` that are better than every other setting in the metric that
    /// decides.
    pub better_served: Vec<usize>,
    /// Whether settings name different versions of Linux. A user cannot set a version.
    pub kernels_differ: bool,
    /// Constraints that each setting breaks. Empty if there are no constraints.
    pub broken: Vec<Vec<BrokenConstraint>>,
    /// Index of the best setting that a search has found; it is the baseline if the search found
    /// nothing better. `None` if there was no search.
    pub recommended: Option<usize>,
    /// Metrics. The first one decides.
    pub criteria: Vec<Criterion>,
    /// Reason why the first metric decides, as the words after "because". `None` if the metric
    /// decides because the user named it as a goal.
    pub reason: Option<&'static str>,
    /// Goal that the user could give for one of several tasks, quoted for a shell.
    pub goal: Option<String>,
    /// Word for a task, such as "job" or "process".
    pub task_word: &'static str,
    /// Number of runs of each setting.
    pub runs: u32,
    /// Largest difference from the baseline that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Highest utilisation, per cent, if the device was idle nearly all the time.
    pub idle_percent: Option<f64>,
    /// Whether no request reached the device under any setting.
    pub nothing_reached: bool,
    /// Length of the shortest run, s, if known.
    pub run_s: Option<f64>,
    /// Tasks that starve under some settings.
    pub starving: Vec<Starving>,
    /// Sentence about a layer below the scheduler that orders requests, if there is one.
    pub below: Option<String>,
    /// Serious doubt that may change the decision, in a few words: "the recording is incomplete".
    pub spoiled: Option<&'static str>,
    /// Word for runs, such as "simulated runs".
    pub run_word: &'static str,
    /// Option that sets the number of runs of each setting, if there is one.
    pub runs_option: Option<&'static str>,
}

#[cfg(test)]
mod tests;
