//! What confirming runs say: which settings are as good as the best, and which of them is worth recommending.
//!
//! A setting is recommended over the baseline only if the house's verdict says that it is better in a goal and worse in
//! none, also among all settings that were confirmed (Holm). Of settings that are as good as the best, the one that
//! changes least is taken: so what makes no difference is left at its default.

use std::collections::BTreeMap;

use iosched_lab::{Bounds, Comparison, Direction, SIGNIFICANCE, Verdict, compare, stat};

use super::history::History;
use super::record::Phase;

/// A setting that loses no more than this, per cent, and not for sure, is as good as another: or what is relevant, or
/// the standard error of the loss, if that is more (Breiman's rule: the simplest within an error of the best),
const AS_GOOD_PERCENT: f64 = 1.0;
/// but no more than this, however little is known.
const ERROR_PERCENT_MAX: f64 = 4.0;

/// Confirming runs, looked at together.
pub(super) struct Judge<'h, 'a> {
    history: &'h History<'a>,
    /// Candidates with at least two confirming runs, by number.
    pub(super) confirmed: Vec<usize>,
    /// By confirmed candidate and goal, against the baseline.
    comparisons: Vec<Vec<Comparison>>,
    /// By confirmed candidate: whether it is worse in a goal, looked at by itself.
    worse: Vec<bool>,
}

impl<'h, 'a> Judge<'h, 'a> {
    pub(super) fn of(history: &'h History<'a>) -> Self {
        let enough = |number: &usize| history.paired(Phase::Confirm, *number, 0).0.len() >= 2;
        let confirmed: Vec<usize> = (0..history.candidates.len()).filter(enough).collect();
        let mut comparisons: Vec<Vec<Comparison>> = confirmed
            .iter()
            .map(|&number| (0..history.header.goals).map(|goal| against_baseline(history, number, goal)).collect())
            .collect();
        let is_worse = |own: &Vec<Comparison>| own.iter().any(|own| own.verdict == Verdict::Worse);
        let worse = comparisons.iter().map(is_worse).collect();
        correct(&mut comparisons, history, &confirmed);
        Self { history, confirmed, comparisons, worse }
    }

    /// Whether all constraints hold on average.
    pub(super) fn allowed(&self, number: usize) -> bool {
        self.history.excess(Phase::Confirm, number) <= 0.0
    }

    fn place(&self, number: usize) -> Option<usize> {
        self.confirmed.iter().position(|&own| own == number)
    }

    /// A confirmed candidate's goals against the baseline's.
    pub(super) fn comparisons(&self, number: usize) -> Option<&[Comparison]> {
        Some(&self.comparisons[self.place(number)?])
    }

    /// For sure better than the baseline in a goal.
    pub(super) fn is_better(&self, number: usize) -> bool {
        self.comparisons(number).is_some_and(|own| own.iter().any(|own| own.verdict == Verdict::Better))
    }

    /// Worse than the baseline in a goal, or so it seems: what may be worse is not recommended.
    pub(super) fn is_worse(&self, number: usize) -> bool {
        self.place(number).is_some_and(|at| self.worse[at])
    }

    /// The first goal in which it cannot be told whether the candidate is better than the baseline by more than what
    /// matters.
    fn may_be_better(&self, number: usize) -> Option<usize> {
        let may = |(goal, own): (usize, &Comparison)| {
            let measure = &self.history.header.measures[goal];
            // What cannot be told without an interval may be anything.
            let reach = |(low, high): (f64, f64)| {
                let good = if measure.direction == Direction::Higher { high } else { -low };
                good + own.model_error_percent > own.equal_within_percent
            };
            own.verdict == Verdict::CannotTell && own.interval_percent.is_none_or(reach)
        };
        self.comparisons(number)?.iter().enumerate().position(may)
    }

    /// Of what keeps the constraints and is worse in no goal, the candidate that looks best of those that may be
    /// better: with the first goal in which it may.
    pub(super) fn unsure(&self) -> Option<(usize, usize)> {
        let worth_it = |&number: &usize| number != 0 && self.allowed(number) && !self.is_worse(number);
        let may = self.confirmed.iter().copied().filter(worth_it);
        let goals: BTreeMap<usize, usize> = may.filter_map(|own| Some((own, self.may_be_better(own)?))).collect();
        let number = self.least(goals.keys().copied())?;
        Some((number, goals[&number]))
    }

    /// Whether `number` is as good in all goals as `other`.
    pub(super) fn is_as_good(&self, number: usize, other: usize) -> bool {
        let header = self.history.header;
        (0..header.goals).all(|goal| {
            let found = between(self.history, number, other, goal);
            let direction = header.measures[goal].direction;
            let loss_percent = found.percent.unwrap_or(0.0) * if direction == Direction::Higher { -1.0 } else { 1.0 };
            // The interval reaches about two standard errors to each side.
            let error = found.interval_percent.map_or(0.0, |(low, high)| (high - low) / 4.0).min(ERROR_PERCENT_MAX);
            let tolerated = AS_GOOD_PERCENT.max(header.measures[goal].relevant_percent).max(error);
            found.verdict != Verdict::Worse && loss_percent <= tolerated
        })
    }

    /// With the same weight on every goal.
    fn loss(&self, number: usize) -> f64 {
        let weights = vec![1.0; self.history.header.goals];
        self.history.loss(Phase::Confirm, number, &weights).unwrap_or(f64::INFINITY)
    }

    fn least(&self, numbers: impl Iterator<Item = usize>) -> Option<usize> {
        numbers.min_by(|&a, &b| self.loss(a).total_cmp(&self.loss(b)).then(a.cmp(&b)))
    }

    /// What looks better than the baseline, and most so, whether for sure or not.
    pub(super) fn hopeful(&self) -> Option<usize> {
        let worth_it = |&number: &usize| number != 0 && self.allowed(number) && !self.is_worse(number);
        let best = self.least(self.confirmed.iter().copied().filter(worth_it))?;
        (self.loss(best) < 0.0).then_some(best)
    }

    /// What is recommended; the baseline (0) if nothing is better. `None` if nothing was confirmed, or nothing that was
    /// keeps the constraints.
    pub(super) fn best(&self) -> Option<usize> {
        let allowed = || self.confirmed.iter().copied().filter(|&number| self.allowed(number));
        let baseline_allowed = self.confirmed.contains(&0) && self.allowed(0);
        // Where the baseline breaks a constraint, keeping it is what counts.
        let eligible = |&number: &usize| !baseline_allowed || (self.is_better(number) && !self.is_worse(number));
        let top = self.least(allowed().filter(|&number| number != 0).filter(eligible));
        let Some(top) = top else { return baseline_allowed.then_some(0) };
        let as_good = allowed().filter(|&number| number != 0).filter(eligible).filter(|&own| self.is_as_good(own, top));
        let changes = |number: usize| self.history.candidates[number].changes;
        as_good.min_by(|&a, &b| changes(a).cmp(&changes(b)).then(self.loss(a).total_cmp(&self.loss(b))).then(a.cmp(&b)))
    }

    /// Settings of which none is better than another in all goals, the constraints kept; one of several that do not
    /// differ. In the order of the first goal, best first.
    pub(super) fn front(&self) -> Vec<usize> {
        let ratios = |number: usize| self.history.ratios(Phase::Confirm, number).unwrap_or_default();
        let allowed: Vec<usize> = self.confirmed.iter().copied().filter(|&number| self.allowed(number)).collect();
        let dominated = |number: usize| {
            let own = ratios(number);
            allowed.iter().any(|&other| {
                let theirs = ratios(other);
                theirs.iter().zip(&own).all(|(a, b)| a <= b) && theirs.iter().zip(&own).any(|(a, b)| a < b)
            })
        };
        let mut front: Vec<usize> = allowed.iter().copied().filter(|&number| !dominated(number)).collect();
        // Those that change least stand for those that are as good.
        front.sort_by_key(|&number| (self.history.candidates[number].changes, number));
        let mut kept: Vec<usize> = Vec::new();
        for number in front {
            if kept.iter().all(|&other| !self.is_as_good(other, number)) {
                kept.push(number);
            }
        }
        kept.sort_by(|&a, &b| ratios(a)[0].total_cmp(&ratios(b)[0]).then(a.cmp(&b)));
        kept
    }
}

fn against_baseline(history: &History<'_>, number: usize, measure: usize) -> Comparison {
    between(history, number, 0, measure)
}

/// The confirming runs that two candidates share.
fn pairs(history: &History<'_>, number: usize, other: usize, measure: usize) -> (Vec<f64>, Vec<f64>) {
    let [own, theirs] = [number, other].map(|number| history.candidates[number].runs(Phase::Confirm));
    own.iter().filter_map(|(run, values)| Some((values[measure]?, theirs.get(run)?[measure]?))).unzip()
}

/// A candidate's confirming runs against another's.
pub(super) fn between(history: &History<'_>, number: usize, other: usize, measure: usize) -> Comparison {
    let (own, theirs) = pairs(history, number, other, measure);
    let (header, measure) = (history.header, &history.header.measures[measure]);
    let bounds = Bounds::on(&header.device, header.equal_within_percent, measure.is_tail());
    compare(measure.figure(), &own, &theirs, &bounds)
}

/// Leaves the differences that stand among all comparisons with the baseline; of others it cannot be told.
fn correct(comparisons: &mut [Vec<Comparison>], history: &History<'_>, confirmed: &[usize]) {
    let family = || confirmed.iter().copied().enumerate().filter(|(_, number)| *number != 0);
    let p: Vec<f64> = family().flat_map(|(at, _)| comparisons[at].iter().map(|own| own.p.unwrap_or(1.0))).collect();
    let mut survives = stat::holm(&p, SIGNIFICANCE).into_iter();
    // What the hardest of them asks for: so many runs are enough wherever it stands among the others.
    let significance = SIGNIFICANCE / p.len().max(1) as f64;
    for (at, number) in family() {
        for (goal, own) in comparisons[at].iter_mut().enumerate() {
            own.survives_all = survives.next().unwrap_or(false);
            let (values, base) = pairs(history, number, 0, goal);
            own.settle(own.survives_all, &values, &base, significance);
        }
    }
}
