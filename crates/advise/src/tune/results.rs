//! Results of a search from its records: the recommendation,
//! its certainty, and the value of each tunable.

use iosched::Setting;
use iosched_lab::{Comparison, NOTHING_WAITS_PERCENT, SIGNIFICANCE, StarvedTask, starved_in_all, stat};
use serde::Serialize;

use super::history::History;
use super::judge::{Judge, Verdicts};
use super::record::{Phase, TuneHeader, TuneRun};
use super::shares::{Share, shares};
use super::space::{Dimension, NOT_SET};

/// The outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A setting is better than the baseline in a goal and worse in none.
    Better,
    /// The baseline breaks a constraint, and a setting keeps all of them.
    Allowed,
    /// No setting is better than the baseline by a relevant
    /// difference, so the baseline is recommended.
    NothingBetter,
    /// No setting is certainly better, but a setting may be better. The baseline stays until more
    /// runs decide.
    CannotTell,
    /// The device was idle nearly all the time, so no setting is recommended.
    Idle,
    /// No confirmed setting meets the constraints.
    NothingAllowed,
    /// The search was stopped before a setting was confirmed.
    Unconfirmed,
}

/// All results of a search.
#[derive(Clone, Debug, Serialize)]
pub struct TuneResults<'a> {
    /// The plan.
    pub header: &'a TuneHeader,
    /// The outcome.
    pub finding: Finding,
    /// The recommended setting, as a number in `standings`.
    pub best: Option<usize>,
    /// A setting that is better than `best`, but only works on served disks, as a number in
    /// `standings`.
    pub served: Option<usize>,
    /// The confirmed settings: the baseline first, then the others, best first.
    pub standings: Vec<Standing>,
    /// The setting that may be better, if the runs do not decide: its index in `standings`, and the
    /// index of the undecided goal.
    pub unsure: Option<(usize, usize)>,
    /// Highest utilisation of a confirming run, per cent. `None` unless the device was idle nearly
    /// all the time.
    pub idle_percent: Option<f64>,
    /// The settings that no other setting beats in all goals, as indices into `standings`. The best
    /// setting in the first goal comes first. Empty with one goal.
    pub front: Vec<usize>,
    /// The value of each change of the recommended setting.
    pub put_back: Vec<PutBack>,
    /// The importance of the tunables of the recommended elevator. Shares within the noise are left
    /// out.
    pub shares: Vec<Share>,
    /// The best setting of the search, if no setting was confirmed.
    pub leading: Option<Setting>,
    /// Number of settings that were tried.
    pub settings: usize,
    /// Number of runs of the search.
    pub search_runs: usize,
    /// Number of confirming runs.
    pub confirm_runs: usize,
    /// Virtual time of all runs, ns.
    pub simulated_ns: u64,
}

/// A confirmed setting with its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Label of the setting.
    pub label: String,
    /// The setting.
    pub setting: Setting,
    /// Number of changes from the defaults.
    pub changes: usize,
    /// Number of confirming runs.
    pub runs: usize,
    /// Metrics by [`TuneHeader::measures`]. `None` if the setting does not have the metric.
    #[serde(rename = "metrics")]
    pub figures: Vec<Option<StandingFigure>>,
    /// Constraints by [`TuneHeader::constraints`].
    pub constraints: Vec<StandingConstraint>,
    /// Tasks that starve in all confirming runs of the setting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<StarvedTask>,
}

/// A metric of a confirmed setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StandingFigure {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: Option<f64>,
    /// Comparison with the baseline. `None` for the baseline itself.
    pub comparison: Option<Comparison>,
}

impl StandingFigure {
    /// Returns the mean and the comparison with the baseline.
    pub(crate) const fn mean_and_comparison(&self) -> (f64, Option<Comparison>) {
        (self.mean, self.comparison)
    }
}

/// A constraint and the value of a confirmed setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StandingConstraint {
    /// Mean of the metric.
    pub value: f64,
    /// The bound, in the same unit.
    pub limit: f64,
    /// Whether the mean is within the bound.
    pub kept: bool,
    /// Whether the 95 % confidence interval lies on one side of the bound, so that `kept` is
    /// certain.
    pub sure: bool,
}

/// The effect on the goals if one change of the recommended setting is put back to its default.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PutBack {
    /// Name of the tunable.
    pub name: String,
    /// Recommended value. `None` if the tunable is not set.
    pub value: Option<u64>,
    /// Default value. `None` if the tunable is not set by default.
    pub default: Option<u64>,
    /// Unit of the values.
    pub unit: String,
    /// Comparisons of the default with the recommended
    /// setting, by goal. Empty if the budget did not suffice.
    pub comparisons: Vec<Comparison>,
}

impl PutBack {
    /// Returns the text of the default value.
    #[must_use]
    pub fn default_text(&self) -> String {
        self.default.map_or_else(|| NOT_SET.to_owned(), |value| value.to_string())
    }
}

impl<'a> TuneResults<'a> {
    /// Computes the results of all runs.
    #[must_use]
    pub fn of(header: &'a TuneHeader, runs: &[TuneRun]) -> Self {
        Self::judged(header, runs, |history| Judge::of(history))
    }

    /// Computes the results of runs on a device. The verdicts come from a comparison of the same
    /// records.
    #[must_use]
    pub(crate) fn confirmed(header: &'a TuneHeader, runs: &[TuneRun], verdicts: &Verdicts) -> Self {
        Self::judged(header, runs, |history| Judge::by(history, verdicts))
    }

    fn judged(
        header: &'a TuneHeader,
        runs: &[TuneRun],
        judge: impl for<'h> FnOnce(&'h History<'a>) -> Judge<'h, 'a>,
    ) -> Self {
        let history = History::of(header, runs);
        let judge = judge(&history);
        let idle_percent = idle_percent(runs).filter(|_| !judge.differ());
        // If the device is idle, no setting is recommended, even if one looks better.
        let best = match idle_percent {
            Some(_) => judge.allowed(0).then_some(0),
            None => judge.best_to_recommend(),
        };
        let best_of_all = judge.best(|_| true).filter(|_| idle_percent.is_none());
        let served = best_of_all.filter(|&candidate| Some(candidate) != best && !judge.can_be_set(candidate));
        let unsure = judge.unsure();
        let order = order(&history, &judge, best);
        let place = |number: usize| order.iter().position(|&candidate| candidate == number);
        let finding = match best {
            _ if judge.confirmed.is_empty() => Finding::Unconfirmed,
            _ if idle_percent.is_some() => Finding::Idle,
            Some(0) if unsure.is_some() => Finding::CannotTell,
            Some(0) => Finding::NothingBetter,
            Some(_) if judge.allowed(0) => Finding::Better,
            Some(_) => Finding::Allowed,
            None => Finding::NothingAllowed,
        };
        let elevator = |number: usize| history.candidates[number].point.as_ref().map(|point| point.elevator);
        let leading = leading(&history);
        let chosen_elevator = best.or(leading).and_then(elevator).unwrap_or(0);
        let front = if header.goals > 1 { judge.front() } else { Vec::new() };
        let tried = history.candidates.iter().filter(|candidate| !candidate.runs(Phase::Search).is_empty());
        let of_phase = |phase| runs.iter().filter(|run| run.phase == phase).count();
        Self {
            header,
            finding,
            best: best.and_then(place),
            served: served.and_then(place),
            standings: order.iter().map(|&number| Standing::of(&history, &judge, number, runs)).collect(),
            unsure: unsure.and_then(|(number, goal)| Some((place(number)?, goal))),
            idle_percent,
            front: front.into_iter().filter_map(place).collect(),
            put_back: best.map_or_else(Vec::new, |best| put_back(&history, &judge, best)),
            shares: shares(&history, chosen_elevator),
            leading: leading
                .filter(|_| judge.confirmed.is_empty())
                .map(|candidate| history.candidates[candidate].setting.clone()),
            settings: tried.count(),
            search_runs: of_phase(Phase::Search),
            confirm_runs: of_phase(Phase::Confirm),
            simulated_ns: runs.iter().map(|run| run.simulated_ns).fold(0, u64::saturating_add),
        }
    }

    /// Returns the recommended setting, which is the baseline if no
    /// setting is better. `None` if no setting can be recommended.
    #[must_use]
    pub fn recommended(&self) -> Option<&Standing> {
        Some(&self.standings[self.best?])
    }

    /// Returns the baseline, if it was confirmed.
    #[must_use]
    pub fn baseline(&self) -> Option<&Standing> {
        self.standings.first()
    }
}

/// Returns the highest utilisation of the confirming runs. `None` if in a run the device was so
/// busy that requests may have waited, or if a utilisation is unknown.
fn idle_percent(runs: &[TuneRun]) -> Option<f64> {
    let confirming = runs.iter().filter(|run| run.phase == Phase::Confirm);
    let all: Option<Vec<f64>> = confirming.map(|run| run.utilisation_percent).collect();
    all?.into_iter().reduce(f64::max).filter(|&percent| percent < NOTHING_WAITS_PERCENT)
}

/// Returns the order of the confirmed settings: the baseline, the recommendation, then the others
/// by their loss over all goals.
fn order(history: &History<'_>, judge: &Judge<'_, '_>, best: Option<usize>) -> Vec<usize> {
    let weights = vec![1.0; history.header.goals];
    let loss = |number: usize| history.loss(Phase::Confirm, number, &weights).unwrap_or(f64::INFINITY);
    let mut order = judge.confirmed.clone();
    let key = |number: usize| (number != 0, Some(number) != best);
    order.sort_by(|&a, &b| key(a).cmp(&key(b)).then(loss(a).total_cmp(&loss(b))).then(a.cmp(&b)));
    order
}

/// Returns the best setting of the search.
fn leading(history: &History<'_>) -> Option<usize> {
    let weights = vec![1.0; history.header.goals];
    let runs = |number: usize| history.candidates[number].runs(Phase::Search).len();
    let most = (0..history.candidates.len()).map(runs).max().unwrap_or(0);
    let certain = (0..history.candidates.len()).filter(|&number| runs(number) > 0 && runs(number) == most);
    let losses = certain.filter_map(|number| Some((number, history.loss(Phase::Search, number, &weights)?)));
    losses.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0))).map(|(number, _)| number)
}

impl Standing {
    fn of(history: &History<'_>, judge: &Judge<'_, '_>, number: usize, runs: &[TuneRun]) -> Self {
        let candidate = &history.candidates[number];
        let header = history.header;
        let figure = |measure: usize| {
            let runs = candidate.runs(Phase::Confirm).values();
            let values: Vec<f64> = runs.filter_map(|values| values[measure]).collect();
            let comparison = judge.comparisons(number).and_then(|comparisons| comparisons[measure]);
            let (mean, sd) = (stat::mean(&values), stat::standard_deviation(&values));
            (!values.is_empty()).then_some(StandingFigure { mean, sd, comparison })
        };
        let label = candidate.setting.to_string();
        let confirming = runs.iter().filter(|run| run.phase == Phase::Confirm && run.setting == label);
        Self {
            starved: starved_in_all(confirming.map(|run| run.starved.clone())),
            label,
            setting: candidate.setting.clone(),
            changes: candidate.changes,
            runs: candidate.runs(Phase::Confirm).len(),
            figures: (0..header.measures.len()).map(figure).collect(),
            constraints: (0..header.constraints.len()).map(|index| constraint(history, number, index)).collect(),
        }
    }
}

fn constraint(history: &History<'_>, number: usize, constraint: usize) -> StandingConstraint {
    let constraint = &history.header.constraints[constraint];
    let (values, base) = history.paired(Phase::Confirm, number, constraint.measure);
    let limits: Vec<f64> = base.iter().map(|base| constraint.limit(*base)).collect();
    let (value, limit) = (stat::mean(&values), stat::mean(&limits));
    let interval = stat::paired(&values, &limits).map(|found| found.interval(SIGNIFICANCE));
    let sure = interval.is_some_and(|(low, high)| if constraint.at_least { low >= 0.0 } else { high <= 0.0 });
    let kept = if constraint.at_least { value >= limit } else { value <= limit };
    StandingConstraint { value, limit, kept, sure }
}

/// Returns the changes of the recommended setting, the most valuable first.
fn put_back(history: &History<'_>, judge: &Judge<'_, '_>, best: usize) -> Vec<PutBack> {
    let space = &history.header.space;
    let Some(point) = &history.candidates[best].point else { return Vec::new() };
    let put_back = |number: usize| {
        let dimension = &space.elevators[point.elevator].dimensions[number];
        let setting = space.setting(&space.put_back(point, &[number]));
        let without = judge.confirmed.iter().find(|&&candidate| history.candidates[candidate].setting == setting);
        let comparisons = without.map_or_else(Vec::new, |&without| {
            (0..history.header.goals).map(|goal| judge.between(without, best, goal)).collect()
        });
        let set = |level: usize| Some(dimension.values[level]).filter(|value| *value != Dimension::UNSET);
        PutBack {
            name: dimension.name.clone(),
            value: set(point.levels[number]),
            default: set(dimension.default),
            unit: dimension.unit.clone(),
            comparisons,
        }
    };
    let mut all: Vec<PutBack> = space.changed(point).map(put_back).collect();
    let worth =
        |removed: &PutBack| removed.comparisons.first().and_then(|comparison| comparison.percent).unwrap_or(0.0).abs();
    all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    all
}
