//! The answer: the plan, with its costs, its limits and the nearest goals that can be met.

use serde::{Deserialize, Serialize};

use crate::candidate::{CAPS, Candidate, Priority};
use crate::goal::{Goal, WantedGoal};
use crate::ground::Ground;
use crate::plan::{Outcome, Plan};
use crate::shares::EffectiveShare;

/// A plan with all results of the search. Its JSON is also the JSON of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// Name of the intents file.
    pub intents: String,
    /// The default setting of Linux for the device.
    pub default: String,
    /// Rates of each unit: alone, under the default, and under the plan.
    pub effects: Vec<Effect>,
    /// The goals that are not met, each with the nearest goal that the plan meets.
    pub nearest: Vec<Nearest>,
    /// Conditions that were tried, and the goals that the plan misses under each condition.
    pub conditions: Vec<Condition>,
    /// Shares that result from the weights. Empty if the plan has no weights.
    pub effective_shares: Vec<EffectiveShare>,
    /// Recorded errors of the profile, per cent: for rates, and for 99th percentiles. `None` if
    /// they were never measured.
    pub model_error_percent: Option<(f64, f64)>,
    /// Measured time of each simulated run, s.
    pub simulated_s: f64,
    /// Number of runs.
    pub runs: u64,
    /// Seed of the search.
    pub seed: u64,
    /// Notes for readers.
    pub notes: Vec<String>,
}

/// Plans of several devices, from one intents file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet<T = Planned> {
    /// The plan of each device, in the order of the intents file.
    pub devices: Vec<T>,
}

/// Rates of the I/O of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Throughput, MB/s.
    pub mb_per_s: f64,
    /// I/Os per second.
    pub iops: f64,
}

/// The changes of a unit's rates by the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Name of the unit.
    pub unit: String,
    /// Rates of the unit if it runs alone, under the default.
    pub alone: Rates,
    /// Rates if all units run, under the default.
    pub default: Rates,
    /// Rates if all units run, under the plan.
    pub planned: Rates,
}

/// A goal that is not met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Name of the unit.
    pub unit: String,
    /// The goal.
    pub goal: WantedGoal,
    /// Distance of the predicted value from the bound, per cent of the bound. It is 0 if the value
    /// meets the bound and only its interval crosses the bound.
    pub by_percent: f64,
    /// Rate of the unit alone, if even this rate misses the goal. In this case, no setting can meet
    /// the goal.
    pub alone: Option<f64>,
    /// The nearest goal that the plan meets; `None` if the goal has no bound.
    pub achievable: Option<Goal>,
}

/// A condition that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The condition, such as "backup is idle".
    pub when: String,
    /// The goals that the plan misses under the condition. Empty if the plan holds.
    pub missed: Vec<MissedGoal>,
}

/// A goal that is missed under a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedGoal {
    /// Name of the unit.
    pub unit: String,
    /// The goal.
    pub goal: WantedGoal,
    /// The value, in the unit of the goal. `None` if the unit completed no I/O of this kind.
    pub value: Option<f64>,
}

impl Planned {
    /// Returns whether all hard goals are met.
    #[must_use]
    pub fn meets_hard_goals(&self) -> bool {
        self.goals().all(|(_, wanted, outcome)| !wanted.hard || outcome == Outcome::Met)
    }

    /// Returns all goals with the name of their unit and their outcome.
    pub fn goals(&self) -> impl Iterator<Item = (&str, &WantedGoal, Outcome)> {
        let units = self.plan.units.iter();
        units.flat_map(|unit| unit.goals.iter().map(|goal| (unit.name.as_str(), &goal.wanted, goal.outcome)))
    }

    /// Returns the conditions under which the plan misses hard goals that it usually meets.
    pub fn breaks(&self) -> impl Iterator<Item = &Condition> {
        let is_met = |missed: &MissedGoal| {
            let mut same = self.goals().filter(|(unit, wanted, _)| *unit == missed.unit && **wanted == missed.goal);
            missed.goal.hard && same.any(|(.., outcome)| outcome == Outcome::Met)
        };
        self.conditions.iter().filter(move |condition| condition.missed.iter().any(is_met))
    }

    /// Returns the candidate that has the plan's setting.
    pub(crate) fn candidate(&self, ground: &Ground<'_>) -> Candidate {
        let mut candidate = ground.default();
        candidate.scheduler = match self.plan.setting.name() {
            "none" => "none",
            "kyber" => "kyber",
            "bfq" => "bfq",
            _ => "mq-deadline",
        };
        let parts = |text: &str| -> Vec<(String, String)> {
            let split = |part: &str| part.split_once(':').map(|(name, words)| (name.to_owned(), words.to_owned()));
            text.split('+').filter_map(split).collect()
        };
        let place = |name: &str| ground.intents.units.iter().position(|unit| unit.name == name);
        for assignment in self.plan.setting.assignments() {
            let text = assignment.text();
            match assignment.name() {
                "io.max" => {
                    for (name, words) in parts(&text) {
                        let Some(unit) = place(&name) else { continue };
                        for (word, cap) in words.split(['/', ' ']).filter_map(|word| word.split_once('=')) {
                            if let Some(number) = CAPS.iter().position(|known| *known == word) {
                                candidate.units[unit].caps[number] = cap.parse().ok();
                            }
                        }
                    }
                }
                "io.latency" => {
                    for (name, words) in parts(&text) {
                        let Some(unit) = place(&name) else { continue };
                        candidate.units[unit].target_us = words.trim_start_matches("target=").parse().ok();
                    }
                }
                "io.weight" | "io.bfq.weight" => {
                    for (name, weight) in parts(&text) {
                        let Some(unit) = place(&name) else { continue };
                        candidate.units[unit].weight = weight.parse().ok();
                    }
                }
                "io.prio.class" => {
                    for (name, class) in parts(&text) {
                        let Some(unit) = place(&name) else { continue };
                        let known = ["idle", "promote-to-rt", "restrict-to-be"];
                        candidate.units[unit].class = known.into_iter().find(|known| *known == class);
                    }
                }
                "io.cost.qos" => {
                    let us = text.split(['/', ' ']).find_map(|word| word.strip_prefix("rlat=")?.parse().ok());
                    candidate.cost_us = us;
                }
                "io.cost.model" => {}
                name => {
                    if let Some(number) = assignment.number().or_else(|| text.parse().ok()) {
                        candidate.values.insert(name.to_owned(), number);
                    }
                }
            }
        }
        for (unit, planned) in candidate.units.iter_mut().zip(&self.plan.units) {
            unit.priority = planned.priority.and_then(Priority::of);
        }
        candidate
    }
}
