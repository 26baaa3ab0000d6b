//! What was run so far, by setting; and how good a setting looks.

use std::collections::BTreeMap;

use iosched::Setting;
use iosched_lab::{Direction, stat};

use super::record::{ConstraintRecord, Phase, TuneHeader, TuneRun};
use super::space::Point;

/// Added to a loss where a constraint is broken: more than any ratio of figures.
const BROKEN: f64 = 1e3;
/// What stands for the logarithm of a ratio to or from nothing.
const BOUNDLESS: f64 = 20.0;

/// Values of a run, by measure.
pub(super) type Values = Vec<Option<f64>>;

/// A setting that was run.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) setting: Setting,
    /// Where it is in the space; `None` of a baseline that is not in it.
    pub(super) point: Option<Point>,
    /// How many tunables are not at their default.
    pub(super) changes: usize,
    search: BTreeMap<u32, Values>,
    confirm: BTreeMap<u32, Values>,
}

/// Everything that was run.
#[derive(Clone, Debug)]
pub(super) struct History<'a> {
    pub(super) header: &'a TuneHeader,
    /// The baseline is the first.
    pub(super) candidates: Vec<Candidate>,
    /// By what settings are called.
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
    /// Of no runs.
    pub(super) fn new(header: &'a TuneHeader) -> Self {
        let mut history = Self { header, candidates: Vec::new(), known: BTreeMap::new() };
        history.number(&header.baseline);
        history
    }

    /// Of `runs`; those of settings that cannot be are left out.
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

    /// The number of a setting, which may be new.
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

    /// Whether a setting was run, or is to be.
    pub(super) fn knows(&self, setting: &Setting) -> bool {
        self.known.contains_key(&setting.to_string())
    }

    /// Values of `candidate` and of the baseline in the runs that both have, run by run.
    pub(super) fn paired(&self, phase: Phase, candidate: usize, measure: usize) -> (Vec<f64>, Vec<f64>) {
        let own = self.candidates[candidate].runs(phase);
        let base = self.candidates[0].runs(phase);
        let pairs = own.iter().filter_map(|(run, values)| Some((values[measure]?, base.get(run)?[measure]?)));
        pairs.unzip()
    }

    /// By goal: the mean logarithm of the ratio to the baseline, below 0 if better. `None` before there is a run to
    /// compare.
    pub(super) fn ratios(&self, phase: Phase, candidate: usize) -> Option<Vec<f64>> {
        let own = self.candidates[candidate].runs(phase);
        let base = self.candidates[0].runs(phase);
        let pairs: Vec<(&Values, &Values)> =
            own.iter().filter_map(|(run, values)| Some((values, base.get(run)?))).collect();
        if pairs.is_empty() {
            return None;
        }
        let of_goal = |goal: usize| {
            let direction = self.header.measures[goal].direction;
            let ratios = pairs.iter().map(|(own, base)| log_ratio(own[goal], base[goal], direction));
            ratios.sum::<f64>() / pairs.len() as f64
        };
        Some((0..self.header.goals).map(of_goal).collect())
    }

    /// By how much constraints are broken, together; 0 if all hold.
    pub(super) fn excess(&self, phase: Phase, candidate: usize) -> f64 {
        let of = |constraint: &ConstraintRecord| {
            let (own, base) = self.paired(phase, candidate, constraint.measure);
            if own.is_empty() { 0.0 } else { constraint.excess(stat::mean(&own), stat::mean(&base)).max(0.0) }
        };
        self.header.constraints.iter().map(of).sum()
    }

    /// What is to be small, with so much weight on each goal: 0 is the baseline's.
    pub(super) fn loss(&self, phase: Phase, candidate: usize, weights: &[f64]) -> Option<f64> {
        let ratios = self.ratios(phase, candidate)?;
        let excess = self.excess(phase, candidate);
        let sum: f64 = ratios.iter().zip(weights).map(|(ratio, weight)| ratio * weight).sum();
        Some(if excess > 0.0 { BROKEN + excess } else { sum })
    }

    /// By how much a candidate's loss is above another's in the runs of the search that both have, and the standard
    /// error of that.
    pub(super) fn behind(&self, candidate: usize, other: usize, weights: &[f64]) -> (f64, f64) {
        let [own, theirs] = [candidate, other].map(|number| self.candidates[number].runs(Phase::Search));
        let pairs = own.iter().filter_map(|(run, values)| Some((values, theirs.get(run)?)));
        let of_goal = |own: &Values, theirs: &Values, goal: usize| {
            log_ratio(own[goal], theirs[goal], self.header.measures[goal].direction) * weights[goal]
        };
        let behind: Vec<f64> =
            pairs.map(|(own, theirs)| (0..self.header.goals).map(|goal| of_goal(own, theirs, goal)).sum()).collect();
        let excess = self.excess(Phase::Search, candidate);
        if behind.is_empty() || excess > self.excess(Phase::Search, other) {
            return (BROKEN, 0.0);
        }
        let error = stat::standard_deviation(&behind).map_or(0.0, |sd| sd / (behind.len() as f64).sqrt());
        (stat::mean(&behind), error)
    }
}

fn log_ratio(own: Option<f64>, base: Option<f64>, direction: Direction) -> f64 {
    let ratio = match (own, base) {
        (Some(own), Some(base)) if own == base => 0.0,
        (Some(own), Some(base)) => (own.max(0.0) / base.max(0.0)).ln().clamp(-BOUNDLESS, BOUNDLESS),
        // No such I/O came to its end: as bad as can be.
        (None, Some(_)) => return BOUNDLESS,
        (_, None) => 0.0,
    };
    if direction == Direction::Higher { -ratio } else { ratio }
}
