//! The decision: which setting to use, in a few sentences, as the first lines of every answer say it.
//!
//! [`decide`] is the one place for these sentences. It turns verdicts, metrics, the baseline and what is known of the
//! device into a [`Decision`]. It reads no records: [`Evidence`] holds all that it needs. The terminal, the report,
//! JSON and Python print the same sentences.
//!
//! | file | has |
//! |---|---|
//! | `rules` | which setting, and why |
//! | `words` | how a difference is told of a metric |
//! | `several` | the same of several devices |
//! | `evidence` | what the results of a comparison say, as [`Evidence`] |

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

/// What kind of decision it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Keep the baseline: nothing is better.
    Keep,
    /// Use another setting.
    Change,
    /// Another setting is better in one metric and worse in others: the user must weigh them.
    Trade,
    /// Keep the baseline for now: more runs, or a better model, may show that another setting is better.
    CannotTell,
    /// Keep the baseline for now: there are too few runs.
    TooFewRuns,
    /// Keep the baseline: all settings are equal in all metrics.
    Equal,
    /// Keep the baseline: the device was idle nearly all the time.
    Idle,
    /// There is nothing to decide between.
    Nothing,
}

/// Which setting to use, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Its kind.
    pub kind: DecisionKind,
    /// The number of the setting to use; of a trade, the one to use if `metric` matters most.
    pub setting: Option<usize>,
    /// The metric that decided.
    pub metric: Option<Figure>,
    /// The decision in sentences: what to do, why, and what it costs.
    pub sentences: Vec<String>,
    /// By which metric and how many runs it was judged, in sentences.
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
    /// What the tables beside the decision call it.
    pub name: String,
    /// By setting: the mean and the comparison with the baseline, which the baseline does not have.
    pub settings: Vec<Option<(f64, Option<Comparison>)>>,
    /// Whether a better value is a reason to change. Other metrics are only told as a cost.
    pub concludes: bool,
}

/// A task that gets next to nothing done.
#[derive(Clone, Debug, PartialEq)]
pub struct Starving {
    /// The task.
    pub task: String,
    /// Numbers of the settings under which it starves.
    pub settings: Vec<usize>,
    /// Its I/Os, per cent of those of the task that gets most.
    pub percent: f64,
}

/// All that a decision rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The settings, as users write them.
    pub labels: Vec<String>,
    /// The number of the setting that others are compared with.
    pub baseline: usize,
    /// Numbers of the settings that Linux does not have: only a disk that iosched serves can use them.
    pub served: Vec<usize>,
    /// Numbers of settings that only served disks have and that beat every other one in the metric that decides.
    pub better_served: Vec<usize>,
    /// By setting: the bound that it breaks, with the value that it has; empty if there are no bounds.
    pub broken: Vec<Option<String>>,
    /// The setting that a search has found best already: the baseline if that is to stay. `None` if nobody has judged.
    pub recommended: Option<usize>,
    /// The metrics. The first decides.
    pub criteria: Vec<Criterion>,
    /// Why the first metric decides, behind "because"; `None` if the user named it as a goal.
    pub reason: Option<&'static str>,
    /// A goal that the user could give for one of several tasks, as the shell takes it.
    pub goal: Option<String>,
    /// How tasks are called: "job", "process".
    pub task_word: &'static str,
    /// Runs of each setting.
    pub runs: u32,
    /// Differences within so many per cent of the baseline do not matter.
    pub equal_within_percent: f64,
    /// The highest utilisation, per cent, where the device was idle nearly all the time.
    pub idle_percent: Option<f64>,
    /// Whether not one request reached the device under any setting.
    pub nothing_reached: bool,
    /// How long a run takes, s, if that is known.
    pub run_s: Option<f64>,
    /// Tasks that starve.
    pub starving: Vec<Starving>,
    /// That something below the scheduler orders requests, in a sentence.
    pub below: Option<String>,
    /// Whether a doubt is so grave that the decision may be another one, as if a part of the trace is missing.
    pub spoiled: bool,
    /// How runs are called: "runs".
    pub run_word: &'static str,
    /// The option that sets how many runs are made of each setting, if there is one.
    pub runs_option: Option<&'static str>,
}

#[cfg(test)]
mod tests;
