//! Judgement of the confirming runs: which settings are
//! as good as the best, and which of them to recommend.
//!
//! A setting is recommended instead of the baseline only if its verdicts ([`judge`]) show that it
//! is better in a goal and worse in none. All confirmed settings are judged together. Among
//! settings that are as good as the best, the one with the fewest changes is recommended. Tunables
//! without effect therefore stay at their default.

use std::collections::BTreeMap;

use iosched_disk::RecordedLoad;
use iosched_lab::{Bounds, Comparison, Direction, Pair, SIGNIFICANCE, Verdict, judge, stat};

use super::history::History;
use super::record::Phase;

/// Least tolerance for a loss, per cent. A setting counts as good as another if its loss is within
/// the tolerance. The tolerance is the largest of this value, the relevant difference and the
/// standard error of the loss (Breiman's rule: the simplest setting within one standard error of
/// the best). A setting that is certainly worse never counts as good.
const AS_GOOD_PERCENT: f64 = 1.0;
/// Upper limit of that standard error, per cent.
const ERROR_PERCENT_MAX: f64 = 4.0;

/// Verdicts of settings against the baseline, from a comparison on the device instead of the
/// search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    /// Comparisons by label of the setting and by measure.
    pub(crate) by_label: BTreeMap<String, Vec<Option<Comparison>>>,
    /// Significance level of comparisons between two settings that are not the baseline.
    pub(crate) level: f64,
}

/// Judge of all confirming runs together.
pub(super) struct Judge<'h, 'a> {
    history: &'h History<'a>,
    /// Numbers of the candidates with at least two confirming runs.
    pub(super) confirmed: Vec<usize>,
    /// Comparisons with the baseline, by confirmed candidate and measure. The baseline has none.
    comparisons: Vec<Vec<Option<Comparison>>>,
    /// Whether each confirmed candidate is worse in a goal, if only this candidate is judged.
    worse: Vec<bool>,
    /// Significance level of comparisons between two settings that are not the baseline.
    level: f64,
}

impl<'h, 'a> Judge<'h, 'a> {
    /// Creates a judge from the runs alone.
    pub(super) fn of(history: &'h History<'a>) -> Self {
        let confirmed = confirmed(history);
        let measures = history.header.measures.len();
        let values: Vec<_> = confirmed
            .iter()
            .flat_map(|&number| (0..measures).map(move |measure| (number, measure)))
            .filter(|(number, _)| *number != 0)
            .map(|(number, measure)| (measure, pairs(history, number, 0, measure)))
            .collect();
        let compared: Vec<Pair<'_>> = values.iter().map(|(measure, values)| pair(history, *measure, values)).collect();
        let judged = judge(&compared);
        let mut found = judged.comparisons.iter().copied();
        let comparisons_of = |&number: &usize| match number {
            0 => vec![None; measures],
            _ => found.by_ref().take(measures).map(Some).collect(),
        };
        let comparisons = confirmed.iter().map(comparisons_of).collect();
        Self::with(history, confirmed, comparisons, judged.level(true))
    }

    /// Creates a judge from known verdicts.
    pub(super) fn by(history: &'h History<'a>, verdicts: &Verdicts) -> Self {
        let confirmed = confirmed(history);
        let label = |number: usize| history.candidates[number].setting.to_string();
        let none = || vec![None; history.header.measures.len()];
        let comparisons_of = |&number: &usize| verdicts.by_label.get(&label(number)).cloned().unwrap_or_else(none);
        let comparisons = confirmed.iter().map(comparisons_of).collect();
        Self::with(history, confirmed, comparisons, verdicts.level)
    }

    fn with(
        history: &'h History<'a>,
        confirmed: Vec<usize>,
        comparisons: Vec<Vec<Option<Comparison>>>,
        level: f64,
    ) -> Self {
        let is_worse = |&number: &usize| {
            let alone = |goal| at_level(history, (number, 0), goal, SIGNIFICANCE).verdict;
            (0..history.header.goals).any(|goal| alone(goal) == Verdict::Worse)
        };
        let worse = confirmed.iter().map(is_worse).collect();
        Self { history, confirmed, comparisons, worse, level }
    }

    /// Returns whether all constraints hold on average.
    pub(super) fn allowed(&self, number: usize) -> bool {
        self.history.excess(Phase::Confirm, number) <= 0.0
    }

    fn place(&self, number: usize) -> Option<usize> {
        self.confirmed.iter().position(|&confirmed| confirmed == number)
    }

    /// Returns the comparisons of a confirmed candidate with the baseline, by measure.
    pub(super) fn comparisons(&self, number: usize) -> Option<&[Option<Comparison>]> {
        Some(&self.comparisons[self.place(number)?])
    }

    fn goals(&self, number: usize) -> impl Iterator<Item = (usize, &Comparison)> {
        let goals = self.comparisons(number).into_iter().flatten().take(self.history.header.goals);
        goals.enumerate().filter_map(|(goal, comparison)| Some((goal, comparison.as_ref()?)))
    }

    /// Compares a confirmed candidate with another one in a goal.
    pub(super) fn between(&self, number: usize, other: usize, goal: usize) -> Comparison {
        let known = |number: usize| self.comparisons(number)?[goal];
        let mean = || stat::mean(&pairs(self.history, number, other, goal).1);
        match (known(number), known(other)) {
            (Some(found), _) if other == 0 => found,
            (_, Some(found)) if number == 0 => found.turned(mean()),
            _ => at_level(self.history, (number, other), goal, self.level),
        }
    }

    /// Returns whether a goal shows a difference between settings.
    pub(super) fn differ(&self) -> bool {
        self.confirmed.iter().any(|&number| self.goals(number).any(|(_, comparison)| comparison.verdict.differs()))
    }

    /// Returns whether the candidate is certainly better than the baseline in a goal.
    pub(super) fn is_better(&self, number: usize) -> bool {
        self.goals(number).any(|(_, comparison)| comparison.verdict == Verdict::Better)
    }

    /// Returns whether the candidate is or may be worse than the baseline in a goal. The judge does
    /// not recommend such a candidate.
    pub(super) fn is_worse(&self, number: usize) -> bool {
        self.place(number).is_some_and(|at| self.worse[at])
    }

    /// Returns the first goal with an undecided comparison in which the candidate may be better
    /// than the baseline by a relevant difference.
    fn may_be_better(&self, number: usize) -> Option<usize> {
        let may = |(goal, comparison): &(usize, &Comparison)| {
            let measure = &self.history.header.measures[*goal];
            // Without an interval, any difference is possible.
            let reach = |(low, high): (f64, f64)| {
                let good = if measure.direction == Direction::Higher { high } else { -low };
                good > comparison.equal_within_percent
            };
            comparison.verdict == Verdict::CannotTell && comparison.interval_percent.is_none_or(reach)
        };
        self.goals(number).find(may).map(|(goal, _)| goal)
    }

    /// Returns the candidate that looks best among those that may be better than the baseline, and
    /// the first goal with an undecided comparison. The candidate meets the constraints and is
    /// worse in no goal.
    pub(super) fn unsure(&self) -> Option<(usize, usize)> {
        let worth_it = |&number: &usize| number != 0 && self.allowed(number) && !self.is_worse(number);
        let may = self.confirmed.iter().copied().filter(worth_it);
        let goals: BTreeMap<usize, usize> =
            may.filter_map(|number| Some((number, self.may_be_better(number)?))).collect();
        let number = self.least(goals.keys().copied())?;
        Some((number, goals[&number]))
    }

    /// Returns whether `number` is as good as `other` in all goals.
    pub(super) fn is_as_good(&self, number: usize, other: usize) -> bool {
        let header = self.history.header;
        (0..header.goals).all(|goal| {
            let found = at_level(self.history, (number, other), goal, SIGNIFICANCE);
            let direction = header.measures[goal].direction;
            let loss_percent = found.percent.unwrap_or(0.0) * if direction == Direction::Higher { -1.0 } else { 1.0 };
            let values = pairs(self.history, number, other, goal);
            let measured = pair(self.history, goal, &values);
            let exact = Pair { bounds: measured.bounds.of_exact_model(), ..measured }.compare(SIGNIFICANCE);
            // The interval extends about two standard errors to each side.
            let reach = |(low, high): (f64, f64)| (high - low) / 2.0;
            let error = (exact.interval_percent.map_or(0.0, reach) / 2.0).min(ERROR_PERCENT_MAX);
            let tolerated = AS_GOOD_PERCENT.max(header.measures[goal].relevant_percent).max(error);
            found.verdict != Verdict::Worse && loss_percent <= tolerated
        })
    }

    /// Returns the loss with equal weights for all goals.
    fn loss(&self, number: usize) -> f64 {
        let weights = vec![1.0; self.history.header.goals];
        self.history.loss(Phase::Confirm, number, &weights).unwrap_or(f64::INFINITY)
    }

    fn least(&self, numbers: impl Iterator<Item = usize>) -> Option<usize> {
        numbers.min_by(|&a, &b| self.loss(a).total_cmp(&self.loss(b)).then(a.cmp(&b)))
    }

    /// Returns the candidate that looks best. `None` if no candidate looks better than the
    /// baseline. The difference from the baseline need not be certain.
    pub(super) fn hopeful(&self) -> Option<usize> {
        let worth_it = |&number: &usize| number != 0 && self.allowed(number) && !self.is_worse(number);
        let best = self.least(self.confirmed.iter().copied().filter(worth_it))?;
        (self.loss(best) < 0.0).then_some(best)
    }

    /// Returns whether a user can apply the setting. A setting that ran on a real device can be
    /// applied. In simulation, the elevator must be in Linux.
    pub(super) fn can_be_set(&self, number: usize) -> bool {
        self.history.header.device.measured.is_some() || self.history.candidates[number].setting.is_in_linux()
    }

    /// Returns the setting to recommend. Settings that a user can apply come first.
    pub(super) fn best_to_recommend(&self) -> Option<usize> {
        let any_can_be_set = self.confirmed.iter().any(|&number| self.can_be_set(number));
        self.best(|number| !any_can_be_set || self.can_be_set(number))
    }

    /// Returns the best of the `wanted` settings, or the baseline (0) if none is
    /// better. `None` if no setting was confirmed, or if none meets the constraints.
    pub(super) fn best(&self, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        let wanted = |number: &usize| *number == 0 || wanted(*number);
        let allowed = || self.confirmed.iter().copied().filter(wanted).filter(|&number| self.allowed(number));
        let baseline_allowed = self.confirmed.contains(&0) && self.allowed(0);
        // If the baseline breaks a constraint, a setting is eligible if it keeps all constraints.
        let eligible = |&number: &usize| !baseline_allowed || (self.is_better(number) && !self.is_worse(number));
        let top = self.least(allowed().filter(|&number| number != 0).filter(eligible));
        let Some(top) = top else { return baseline_allowed.then_some(0) };
        let as_good =
            allowed().filter(|&number| number != 0).filter(eligible).filter(|&number| self.is_as_good(number, top));
        let changes = |number: usize| self.history.candidates[number].changes;
        as_good.min_by(|&a, &b| changes(a).cmp(&changes(b)).then(self.loss(a).total_cmp(&self.loss(b))).then(a.cmp(&b)))
    }

    /// Returns the settings that keep the constraints and that no other setting beats in all goals.
    /// Of equal settings, the list has only one. The best setting in the first goal comes first.
    pub(super) fn front(&self) -> Vec<usize> {
        let ratios = |number: usize| self.history.ratios(Phase::Confirm, number).unwrap_or_default();
        let allowed: Vec<usize> = self.confirmed.iter().copied().filter(|&number| self.allowed(number)).collect();
        let dominated = |number: usize| {
            let ours = ratios(number);
            allowed.iter().any(|&other| {
                let theirs = ratios(other);
                theirs.iter().zip(&ours).all(|(a, b)| a <= b) && theirs.iter().zip(&ours).any(|(a, b)| a < b)
            })
        };
        let mut front: Vec<usize> = allowed.iter().copied().filter(|&number| !dominated(number)).collect();
        // Among equally good settings, the one with the fewest changes is kept.
        front.sort_by_key(|&number| (self.history.candidates[number].changes, number));
        let mut survivors: Vec<usize> = Vec::new();
        for number in front {
            if survivors.iter().all(|&other| !self.is_as_good(other, number)) {
                survivors.push(number);
            }
        }
        survivors.sort_by(|&a, &b| ratios(a)[0].total_cmp(&ratios(b)[0]).then(a.cmp(&b)));
        survivors
    }
}

/// Returns the candidates that share at least two confirming runs with the baseline.
fn confirmed(history: &History<'_>) -> Vec<usize> {
    let enough = |number: &usize| history.paired(Phase::Confirm, *number, 0).0.len() >= 2;
    (0..history.candidates.len()).filter(enough).collect()
}

/// Returns the values of the confirming runs that two candidates share.
fn pairs(history: &History<'_>, number: usize, other: usize, measure: usize) -> (Vec<f64>, Vec<f64>) {
    let [runs, theirs] = [number, other].map(|number| history.candidates[number].runs(Phase::Confirm));
    runs.iter().filter_map(|(run, values)| Some((values[measure]?, theirs.get(run)?[measure]?))).unzip()
}

fn pair<'v>(history: &History<'_>, measure: usize, (values, base): &'v (Vec<f64>, Vec<f64>)) -> Pair<'v> {
    let header = history.header;
    let figure = header.measures[measure].figure();
    // The history of a search does not record whether the workload writes. The errors of a model
    // are largest for writes, so assume writes.
    let bounds = Bounds::on(&header.device, header.equal_within_percent, figure.is_tail(), RecordedLoad::Writes);
    Pair { figure, values, base, bounds, concludes: measure < header.goals }
}

/// Compares the confirming runs of two candidates separately, at a significance level.
fn at_level(history: &History<'_>, (number, other): (usize, usize), measure: usize, level: f64) -> Comparison {
    pair(history, measure, &pairs(history, number, other, measure)).compare(level)
}
