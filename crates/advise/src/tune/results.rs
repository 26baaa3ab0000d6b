//! What the records of a search say: what is recommended, how sure that is, and what each tunable is worth.

use iosched::Setting;
use iosched_lab::{Comparison, NOTHING_WAITS_PERCENT, SIGNIFICANCE, StarvedTask, starved_in_all, stat};
use serde::Serialize;

use super::history::History;
use super::judge::{Judge, Verdicts};
use super::record::{Phase, TuneHeader, TuneRun};
use super::shares::{Share, shares};
use super::space::{Dimension, NOT_SET};

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A setting is better than the baseline in a goal and worse in none.
    Better,
    /// The baseline breaks a constraint, and a setting keeps all of them.
    Allowed,
    /// Nothing is better than the baseline by what matters: that is what is recommended.
    NothingBetter,
    /// Nothing is better for sure, but something may be: the baseline stays until that is known.
    CannotTell,
    /// The device was idle nearly all the time, so that nothing is named.
    Idle,
    /// Nothing that was confirmed keeps the constraints.
    NothingAllowed,
    /// The search was stopped before anything was confirmed.
    Unconfirmed,
}

/// Everything that is told.
#[derive(Clone, Debug, Serialize)]
pub struct TuneResults<'a> {
    /// The plan.
    pub header: &'a TuneHeader,
    /// What came of it.
    pub finding: Finding,
    /// The number in `standings` of what is recommended.
    pub best: Option<usize>,
    /// The number in `standings` of what is better still, and for served disks only.
    pub served: Option<usize>,
    /// What was confirmed: the baseline first, then what is better, best first.
    pub standings: Vec<Standing>,
    /// What may be better, where that cannot be told: its number in `standings`, and the number of the goal.
    pub unsure: Option<(usize, usize)>,
    /// The highest utilisation of a confirming run, per cent, where the device was idle nearly all the time.
    pub idle_percent: Option<f64>,
    /// The front between several goals, numbers in `standings`, by the first goal; of one goal empty.
    pub front: Vec<usize>,
    /// What each change of the recommended setting is worth.
    pub put_back: Vec<PutBack>,
    /// How much tunables of the recommended elevator matter; what is within noise is not in it.
    pub shares: Vec<Share>,
    /// The best of the search if nothing was confirmed.
    pub leading: Option<Setting>,
    /// Settings that were tried.
    pub settings: usize,
    /// Runs to search.
    pub search_runs: usize,
    /// Runs to confirm.
    pub confirm_runs: usize,
    /// Virtual time of all of them, ns.
    pub simulated_ns: u64,
}

/// A setting with its confirming runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// How it is written.
    pub label: String,
    /// The setting.
    pub setting: Setting,
    /// What of it is not at its default.
    pub changes: usize,
    /// Confirming runs.
    pub runs: usize,
    /// By [`TuneHeader::measures`]; `None` if it does not have it.
    #[serde(rename = "metrics")]
    pub figures: Vec<Option<StandingFigure>>,
    /// By [`TuneHeader::constraints`].
    pub constraints: Vec<StandingConstraint>,
    /// Tasks that starve in all its confirming runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<StarvedTask>,
}

/// A figure of a confirmed setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StandingFigure {
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub sd: Option<f64>,
    /// Against the baseline, of which it is `None`.
    pub comparison: Option<Comparison>,
}

impl StandingFigure {
    /// The mean, and what it is against the baseline's.
    pub(crate) const fn told(&self) -> (f64, Option<Comparison>) {
        (self.mean, self.comparison)
    }
}

/// Whether a confirmed setting keeps a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StandingConstraint {
    /// The mean of the figure.
    pub value: f64,
    /// The bound, in the same unit.
    pub limit: f64,
    /// Whether the mean keeps it.
    pub kept: bool,
    /// Whether the 95 % confidence interval leaves no doubt of that.
    pub sure: bool,
}

/// What becomes of the goals if one change of the recommended setting is put back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PutBack {
    /// The tunable.
    pub name: String,
    /// Its recommended value; `None` if that is not to set it.
    pub value: Option<u64>,
    /// Its default; `None` if that is not to set it.
    pub default: Option<u64>,
    /// The unit.
    pub unit: String,
    /// By goal: with the default, against the recommended setting; empty if there was no budget for it.
    pub comparisons: Vec<Comparison>,
}

impl PutBack {
    /// The default in words.
    #[must_use]
    pub fn default_text(&self) -> String {
        self.default.map_or_else(|| NOT_SET.to_owned(), |own| own.to_string())
    }
}

impl<'a> TuneResults<'a> {
    /// Of everything that was run.
    #[must_use]
    pub fn of(header: &'a TuneHeader, runs: &[TuneRun]) -> Self {
        Self::judged(header, runs, |history| Judge::of(history))
    }

    /// Of runs on a device, whose verdicts are those of the comparison that its records are of.
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
        // Of a device that is idle nothing is recommended, whatever looks better.
        let best = match idle_percent {
            Some(_) => judge.allowed(0).then_some(0),
            None => judge.best_to_recommend(),
        };
        let best_of_all = judge.best(|_| true).filter(|_| idle_percent.is_none());
        let served = best_of_all.filter(|&own| Some(own) != best && !judge.can_be_set(own));
        let unsure = judge.unsure();
        let order = order(&history, &judge, best);
        let place = |number: usize| order.iter().position(|&own| own == number);
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
        let told_of = best.or(leading).and_then(elevator).unwrap_or(0);
        let front = if header.goals > 1 { judge.front() } else { Vec::new() };
        let tried = history.candidates.iter().filter(|own| !own.runs(Phase::Search).is_empty());
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
            shares: shares(&history, told_of),
            leading: leading.filter(|_| judge.confirmed.is_empty()).map(|own| history.candidates[own].setting.clone()),
            settings: tried.count(),
            search_runs: of_phase(Phase::Search),
            confirm_runs: of_phase(Phase::Confirm),
            simulated_ns: runs.iter().map(|run| run.simulated_ns).fold(0, u64::saturating_add),
        }
    }

    /// What is recommended: the baseline if nothing is better; `None` if nothing can be.
    #[must_use]
    pub fn recommended(&self) -> Option<&Standing> {
        Some(&self.standings[self.best?])
    }

    /// The baseline, if it was confirmed.
    #[must_use]
    pub fn baseline(&self) -> Option<&Standing> {
        self.standings.first()
    }
}

/// The highest utilisation of confirming runs, if none was busy enough for anything to wait.
fn idle_percent(runs: &[TuneRun]) -> Option<f64> {
    let confirming = runs.iter().filter(|run| run.phase == Phase::Confirm);
    let all: Option<Vec<f64>> = confirming.map(|run| run.utilisation_percent).collect();
    all?.into_iter().reduce(f64::max).filter(|&percent| percent < NOTHING_WAITS_PERCENT)
}

/// The baseline, what is recommended, then the others by the sum of their goals.
fn order(history: &History<'_>, judge: &Judge<'_, '_>, best: Option<usize>) -> Vec<usize> {
    let weights = vec![1.0; history.header.goals];
    let loss = |number: usize| history.loss(Phase::Confirm, number, &weights).unwrap_or(f64::INFINITY);
    let mut order = judge.confirmed.clone();
    let key = |number: usize| (number != 0, Some(number) != best);
    order.sort_by(|&a, &b| key(a).cmp(&key(b)).then(loss(a).total_cmp(&loss(b))).then(a.cmp(&b)));
    order
}

/// The best of the search.
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
            let comparison = judge.comparisons(number).and_then(|own| own[measure]);
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
            constraints: (0..header.constraints.len()).map(|own| constraint(history, number, own)).collect(),
        }
    }
}

fn constraint(history: &History<'_>, number: usize, constraint: usize) -> StandingConstraint {
    let constraint = &history.header.constraints[constraint];
    let (own, base) = history.paired(Phase::Confirm, number, constraint.measure);
    let limits: Vec<f64> = base.iter().map(|base| constraint.limit(*base)).collect();
    let (value, limit) = (stat::mean(&own), stat::mean(&limits));
    let interval = stat::paired(&own, &limits).map(|found| found.interval(SIGNIFICANCE));
    let sure = interval.is_some_and(|(low, high)| if constraint.at_least { low >= 0.0 } else { high <= 0.0 });
    let kept = if constraint.at_least { value >= limit } else { value <= limit };
    StandingConstraint { value, limit, kept, sure }
}

/// The changes of the recommended setting, those of most worth first.
fn put_back(history: &History<'_>, judge: &Judge<'_, '_>, best: usize) -> Vec<PutBack> {
    let space = &history.header.space;
    let Some(point) = &history.candidates[best].point else { return Vec::new() };
    let of = |number: usize| {
        let dimension = &space.elevators[point.elevator].dimensions[number];
        let setting = space.setting(&space.put_back(point, &[number]));
        let without = judge.confirmed.iter().find(|&&own| history.candidates[own].setting == setting);
        let comparisons = without.map_or_else(Vec::new, |&without| {
            (0..history.header.goals).map(|goal| judge.between(without, best, goal)).collect()
        });
        let set = |level: usize| Some(dimension.values[level]).filter(|own| *own != Dimension::UNSET);
        PutBack {
            name: dimension.name.clone(),
            value: set(point.levels[number]),
            default: set(dimension.default),
            unit: dimension.unit.clone(),
            comparisons,
        }
    };
    let mut all: Vec<PutBack> = space.changed(point).map(of).collect();
    let worth = |own: &PutBack| own.comparisons.first().and_then(|own| own.percent).unwrap_or(0.0).abs();
    all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    all
}
