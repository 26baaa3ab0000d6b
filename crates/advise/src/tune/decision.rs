//! Collects the evidence of a search for [`decide`], which writes the sentences.

use iosched_lab::{Criterion, Decision, DecisionKind, Evidence, Figure, StarvedTask, Starving, decide, marked};

use super::results::{Finding, Standing, TuneResults};

/// Largest number of settings that a decision mentions besides the baseline and the recommendation.
const OTHERS_MAX: usize = 3;

impl TuneResults<'_> {
    /// Returns which setting to use, and why.
    #[must_use]
    pub fn decision(&self) -> Decision {
        match self.evidence() {
            Some(evidence) => decide(&evidence),
            None => self.undecided(),
        }
    }

    /// Returns the evidence for the decision. `None` if
    /// no setting besides the baseline was confirmed.
    #[must_use]
    pub(crate) fn evidence(&self) -> Option<Evidence> {
        let shown = self.decided_between();
        if shown.len() < 2 || matches!(self.finding, Finding::Unconfirmed) {
            return None;
        }
        let header = self.header;
        let standing = |number: &usize| &self.standings[*number];
        let place = |number: usize| shown.iter().position(|candidate| *candidate == number);
        let is_served = |standing: &Standing| header.device.measured.is_none() && !standing.setting.is_in_linux();
        let criterion = |measure: usize| Criterion {
            figure: header.measures[measure].figure(),
            phrase: header.measures[measure].name.clone(),
            settings: shown
                .iter()
                .map(standing)
                .map(|standing| Some(standing.figures[measure].as_ref()?.mean_and_comparison()))
                .collect(),
            concludes: measure < header.goals,
        };
        let costs = (header.goals..header.measures.len()).filter(|&measure| is_cost(header.measures[measure].figure()));
        Some(Evidence {
            labels: shown.iter().map(standing).map(|standing| standing.label.clone()).collect(),
            served: (0..shown.len()).filter(|&position| is_served(standing(&shown[position]))).collect(),
            out_of_tree: (0..shown.len())
                .filter(|&position| {
                    let standing = standing(&shown[position]);
                    is_served(standing) && standing.setting.is_out_of_tree()
                })
                .collect(),
            better_served: self.served.and_then(place).into_iter().collect(),
            broken: shown.iter().map(standing).map(|standing| self.broken_by(standing)).collect(),
            starving: starving(shown.iter().map(standing)),
            recommended: self.best.and_then(place),
            criteria: (0..header.goals).chain(costs).map(criterion).collect(),
            runs: self.standings.first().map_or(0, |standing| standing.runs) as u32,
            run_word: "confirming runs",
            run_s: Some(self.simulated_ns as f64 / 1e9 / (self.search_runs + self.confirm_runs).max(1) as f64),
            task_word: header.workload.kind.task_word(1),
            equal_within_percent: header.equal_within_percent,
            idle_percent: self.idle_percent,
            ..Evidence::default()
        })
    }

    /// Returns indices into `standings`: the baseline, the recommendation, and the best setting
    /// that only served disks can use. Then follows a setting that may be better, if the runs do
    /// not decide. If the baseline stays, the nearest other settings follow.
    fn decided_between(&self) -> Vec<usize> {
        let mut shown = vec![0];
        let unsure = self.unsure.map(|(number, _)| number);
        shown.extend([self.best, self.served, unsure].into_iter().flatten());
        if !self.recommends() {
            // The judge has already chosen the undecided setting that the decision names, so other
            // undecided settings are left out.
            let nearest = (1..self.standings.len()).filter(|&number| Some(number) != unsure && !self.is_open(number));
            shown.extend(nearest.take(OTHERS_MAX));
        }
        let mut seen = Vec::new();
        shown.retain(|number| {
            *number < self.standings.len() && !seen.contains(number) && {
                seen.push(*number);
                true
            }
        });
        shown
    }

    /// Returns whether the comparison of a standing's first goal with the baseline is undecided.
    fn is_open(&self, number: usize) -> bool {
        let comparison = self.standings[number].figures[0].as_ref().and_then(|figure| figure.comparison);
        comparison.is_some_and(|comparison| comparison.verdict == iosched_lab::Verdict::CannotTell)
    }

    /// Returns the decision if there is no other setting to compare with the baseline.
    fn undecided(&self) -> Decision {
        let ahead = self
            .leading
            .as_ref()
            .filter(|setting| **setting != self.header.baseline)
            .map(|setting| marked(&setting.to_string()));
        let baseline = marked(&self.header.baseline.to_string());
        let sentence = match (self.finding, ahead) {
            (Finding::Unconfirmed, ahead) => {
                let ahead = ahead.map_or_else(String::new, |setting| format!(" {setting} was ahead."));
                format!("Keep {baseline} for now. The search stopped before it confirmed a setting.{ahead}")
            }
            (Finding::NothingAllowed, _) => {
                let bounds: Vec<&str> =
                    self.header.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
                format!("Keep {baseline} for now. None of the tried settings meets {}.", bounds.join(" and "))
            }
            _ if self.settings < 2 => format!("Keep {baseline}. This scheduler has no tunable that is worth trying."),
            _ => format!("Keep {baseline}. No other setting was good enough for a second test."),
        };
        let kind = match self.finding {
            Finding::NothingBetter => DecisionKind::Keep,
            Finding::Idle => DecisionKind::Idle,
            _ => DecisionKind::CannotTell,
        };
        Decision { kind, setting: Some(0), otherwise: None, metric: None, sentences: vec![sentence], judged: None }
    }
}

/// Returns the tasks that starve under some of the settings.
fn starving<'s>(settings: impl Iterator<Item = &'s Standing>) -> Vec<Starving> {
    let mut all: Vec<Starving> = Vec::new();
    for (number, StarvedTask { task, percent }) in settings
        .enumerate()
        .flat_map(|(number, standing)| standing.starved.iter().map(move |starved| (number, starved)))
    {
        match all.iter_mut().find(|known| known.task == *task) {
            Some(known) => {
                known.settings.push(number);
                known.percent = known.percent.max(*percent);
            }
            None => all.push(Starving { task: task.clone(), settings: vec![number], percent: *percent }),
        }
    }
    all
}

/// Returns whether a metric counts as a cost if it is not a goal.
const fn is_cost(figure: Figure) -> bool {
    matches!(figure, Figure::Throughput | Figure::SyncMean | Figure::SyncP99 | Figure::AsyncP99)
}
