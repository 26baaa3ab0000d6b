//! The runs so far, by setting, and the loss of each setting.

use std::collections::BTreeMap;

use iosched::Setting;
use iosched_lab::{Direction, stat};

use super::record::{ConstraintRecord, Phase, TuneHeader, TuneRun};
use super::space::Point;

/// Loss that is added if a constraint is broken. It exceeds any ratio of metrics.
const BROKEN: f64 = 1e3;
/// Limit for the logarithm of a ratio. It replaces the logarithm if one of the two values is zero.
const BOUNDLESS: f64 = 20.0;

/// Values of the measures of a run.
pub(super) type Values = Vec<Option<f64>>;

/// A setting that was run.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) setting: Setting,
    /// The point of the setting in the space. `None` for a baseline outside the space.
    pub(super) point: Option<Point>,
    /// Number of tunables that are not at their default.
    pub(super) changes: usize,
    search: BTreeMap<u32, Values>,
    confirm: BTreeMap<u32, Values>,
}

/// All runs of a search.
#[derive(Clone, Debug)]
pub(super) struct History<'a> {
    pub(super) header: &'a TuneHeader,
    /// The candidates. The baseline is the first.
    pub(super) candidates: Vec<Candidate>,
    /// Numbers of the candidates by their labels.
    known: BTreeMap<String, usize>,
}

impl Candidate {
    pub(super) fn runs(&self, phase: Phase) -> &BTreeMap<u32, Values> {
        match phase {
            Phase::Search => &self.search,
            Phase::Confirm => &self.confirm,
        }
    }
}

impl<'a> History<'a> {
    /// Creates a history without runs.
    pub(super) fn new(header: &'a TuneHeader) -> Self {
        let mut history = Self { header, candidates: Vec::new(), known: BTreeMap::new() };
        history.number(&header.baseline);
        history
    }

    /// Creates the history of `runs`. Runs of invalid settings are left out.
    pub(super) fn of(header: &'a TuneHeader, runs: &[TuneRun]) -> Self {
        let mut history = Self::new(header);
        runs.iter().for_each(|run| history.add(run));
        history
    }

    pub(super) fn add(&mut self, run: &TuneRun) {
        let known = self.known.get(&run.setting).copied();
        let number = known.or_else(|| Some(self.number(&run.setting.parse().ok()?)));
        let Some(number) = number else { return };
        let candidate = &mut self.candidates[number];
        let runs = match run.phase {
            Phase::Search => &mut candidate.search,
            Phase::Confirm => &mut candidate.confirm,
        };
        runs.insert(run.run, run.values.clone());
    }

    /// Returns the number of a setting. Adds the setting if it is new.
    pub(super) fn number(&mut self, setting: &Setting) -> usize {
        let label = setting.to_string();
        if let Some(&number) = self.known.get(&label) {
            return number;
        }
        let point = self.header.space.point(setting);
        let fixed = setting.assignments().count();
        let changes = point.as_ref().map_or(fixed, |point| self.header.space.changes(point));
        let setting = setting.clone();
        let (search, confirm) = (BTreeMap::new(), BTreeMap::new());
        self.candidates.push(Candidate { setting, point, changes, search, confirm });
        self.known.insert(label, self.candidates.len() - 1);
        self.candidates.len() - 1
    }

    /// Returns whether the history contains a setting, with or without runs.
    pub(super) fn knows(&self, setting: &Setting) -> bool {
        self.known.contains_key(&setting.to_string())
    }

    /// Returns the values of `candidate` and of the baseline for the runs that both have.
    pub(super) fn paired(&self, phase: Phase, candidate: usize, measure: usize) -> (Vec<f64>, Vec<f64>) {
        let runs = self.candidates[candidate].runs(phase);
        let base = self.candidates[0].runs(phase);
        let pairs = runs.iter().filter_map(|(run, values)| Some((values[measure]?, base.get(run)?[measure]?)));
        pairs.unzip()
    }

    /// Returns, for each goal, the mean logarithm of the ratio of the candidate's value to the
    /// baseline's value. A result below 0 is better. `None` if the two have no runs with the same
    /// number.
    pub(super) fn ratios(&self, phase: Phase, candidate: usize) -> Option<Vec<f64>> {
        let runs = self.candidates[candidate].runs(phase);
        let base = self.candidates[0].runs(phase);
        let pairs: Vec<(&Values, &Values)> =
            runs.iter().filter_map(|(run, values)| Some((values, base.get(run)?))).collect();
        if pairs.is_empty() {
            return None;
        }
        let of_goal = |goal: usize| {
            let direction = self.header.measures[goal].direction;
            let ratios = pairs.iter().map(|(values, base)| log_ratio(values[goal], base[goal], direction));
            ratios.sum::<f64>() / pairs.len() as f64
        };
        Some((0..self.header.goals).map(of_goal).collect())
    }

    /// Returns the sum of the amounts by which the candidate breaks the constraints. 0 if the
    /// candidate keeps all constraints.
    pub(super) fn excess(&self, phase: Phase, candidate: usize) -> f64 {
        let excess = |constraint: &ConstraintRecord| {
            let (values, base) = self.paired(phase, candidate, constraint.measure);
            if values.is_empty() { 0.0 } else { constraint.excess(stat::mean(&values), stat::mean(&base)).max(0.0) }
        };
        self.header.constraints.iter().map(excess).sum()
    }

    /// Returns the loss, with a weight for each goal. A baseline that keeps the constraints has
    /// loss 0.
    pub(super) fn loss(&self, phase: Phase, candidate: usize, weights: &[f64]) -> Option<f64> {
        let ratios = self.ratios(phase, candidate)?;
        let excess = self.excess(phase, candidate);
        let sum: f64 = ratios.iter().zip(weights).map(|(ratio, weight)| ratio * weight).sum();
        Some(if excess > 0.0 { BROKEN + excess } else { sum })
    }

    /// Returns the mean by which the loss of a candidate exceeds the loss of another candidate, and
    /// the standard error of this mean. Only search runs that both have count.
    pub(super) fn behind(&self, candidate: usize, other: usize, weights: &[f64]) -> (f64, f64) {
        let [runs, theirs] = [candidate, other].map(|number| self.candidates[number].runs(Phase::Search));
        let pairs = runs.iter().filter_map(|(run, values)| Some((values, theirs.get(run)?)));
        let of_goal = |ours: &Values, theirs: &Values, goal: usize| {
            log_ratio(ours[goal], theirs[goal], self.header.measures[goal].direction) * weights[goal]
        };
        let behind: Vec<f64> =
            pairs.map(|(ours, theirs)| (0..self.header.goals).map(|goal| of_goal(ours, theirs, goal)).sum()).collect();
        let excess = self.excess(Phase::Search, candidate);
        if behind.is_empty() || excess > self.excess(Phase::Search, other) {
            return (BROKEN, 0.0);
        }
        let error = stat::standard_deviation(&behind).map_or(0.0, |sd| sd / (behind.len() as f64).sqrt());
        (stat::mean(&behind), error)
    }
}

fn log_ratio(value: Option<f64>, base: Option<f64>, direction: Direction) -> f64 {
    let ratio = match (value, base) {
        (Some(value), Some(base)) if value == base => 0.0,
        (Some(value), Some(base)) => (value.max(0.0) / base.max(0.0)).ln().clamp(-BOUNDLESS, BOUNDLESS),
        // The candidate completed no I/O of this kind, which is the worst result.
        (None, Some(_)) => return BOUNDLESS,
        (_, None) => 0.0,
    };
    if direction == Direction::Higher { -ratio } else { ratio }
}
