//! Results of a reproduced experiment, together with the published results.

use std::collections::BTreeSet;

use serde::Serialize;

use super::catalogue::Experiment;
use super::goal::{FigureKey, Goal, GoalOutcome};
use super::judge::{Judgement, Known, direction_of, judge, judge_runs};
use super::published::Origin;
use super::record::{CaseRun, FigureRecord, SeriesRecord};
use crate::compare::{EQUAL_WITHIN_PERCENT, Outcomes};
use crate::doubt::SECONDS_PUBLISHED;
use crate::figure::Direction;

/// Largest relative difference at which a simulated figure counts as near the published figure, as
/// a share of the published figure.
pub const WITHIN_SHARE: f64 = 0.15;

/// Results of the reproduction of one experiment.
#[derive(Clone, Debug)]
pub struct ExperimentResults<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Runs with the usual assumptions, in the order of the plan.
    pub runs: Vec<&'a CaseRun>,
    /// Runs with another assumption.
    pub assumed_runs: Vec<&'a CaseRun>,
    /// Number of complete rounds of each case. The figures cover these rounds.
    pub rounds: Vec<usize>,
    /// Rows, one per case, test and unit.
    pub rows: Vec<Row>,
    /// Goals whose cases were selected, with their outcomes.
    pub goals: Vec<(&'a Goal, GoalOutcome)>,
}

/// One test of one case under all settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Index of the case in [`Experiment::cases`].
    pub case: usize,
    /// Name of the test.
    pub test: String,
    /// Unit of the figures.
    pub unit: String,
    /// Better direction.
    pub direction: Direction,
    /// Figures by setting.
    pub cells: Vec<Cell>,
    /// Time of the test in its shortest run, s, if known.
    pub seconds_min: Option<f64>,
}

/// One test of one case under one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Published figure.
    pub published: Option<Known>,
    /// Whether the published figure was held back while the models were made.
    pub held_out: bool,
    /// Simulated figure.
    pub simulated: Option<Simulated>,
    /// Judgement of the published figure against the baseline; `None` for the baseline, or if
    /// either figure is not known.
    pub verdict_published: Option<Judgement>,
    /// Judgement of the simulated figure against the baseline.
    pub verdict_simulated: Option<Judgement>,
    /// Simulated figures under other assumptions about unknowns.
    pub assumed: Vec<Assumed>,
}

/// Simulated figure under another assumption about an unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumed {
    /// The assumption, such as `size of the file system: 20 GB`.
    pub assumption: String,
    /// Mean and standard deviation.
    pub known: Known,
    /// Judgement against the baseline under the same assumption.
    pub verdict: Option<Judgement>,
}

/// Simulated value of a published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Mean and standard deviation.
    pub known: Known,
    /// Values by run. Only runs that every setting has are included.
    pub values: Vec<f64>,
}

impl Cell {
    /// Returns the simulated mean divided by the published mean.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let published = self.published.filter(|published| published.mean != 0.0)?;
        Some(self.simulated.as_ref()?.known.mean / published.mean)
    }

    /// Returns the two outcomes of the simulated runs. Returns `None` if the runs have only one
    /// outcome.
    #[must_use]
    pub fn outcomes(&self) -> Option<Outcomes> {
        let Simulated { known, values } = self.simulated.as_ref()?;
        Outcomes::of(values, EQUAL_WITHIN_PERCENT / 100.0 * known.mean.abs())
    }

    /// Returns whether both judgements are the same. Returns `None` if one of the judgements is not
    /// known.
    #[must_use]
    pub fn same(&self) -> Option<bool> {
        Some(self.verdict_published? == self.verdict_simulated?)
    }

    /// Returns the smallest and largest mean over all assumptions; `None` if there is only the
    /// usual assumption.
    #[must_use]
    pub fn band(&self) -> Option<(f64, f64)> {
        let usual = self.simulated.as_ref()?.known.mean;
        let means = self.assumed.iter().map(|assumed| assumed.known.mean);
        (!self.assumed.is_empty())
            .then(|| means.fold((usual, usual), |(low, high), mean| (low.min(mean), high.max(mean))))
    }

    /// Returns the assumptions under which the simulated judgement differs from the usual one.
    pub fn otherwise(&self) -> impl Iterator<Item = &Assumed> {
        self.assumed.iter().filter(|assumed| assumed.verdict != self.verdict_simulated)
    }

    /// Returns whether the published mean is within [`WITHIN_SHARE`] of the [band](Self::band) of
    /// simulated means.
    #[must_use]
    pub fn is_reached(&self) -> Option<bool> {
        let near = self.is_near()?;
        let (low, high) = self.band().unwrap_or((f64::INFINITY, 0.0));
        let published = self.published?.mean;
        Some(near || (low <= published * (1.0 + WITHIN_SHARE) && high >= published * (1.0 - WITHIN_SHARE)))
    }

    /// Returns whether the simulated mean is within [`WITHIN_SHARE`] of the published mean.
    #[must_use]
    pub fn is_near(&self) -> Option<bool> {
        self.ratio().map(|ratio| (ratio - 1.0).abs() <= WITHIN_SHARE)
    }
}

impl Row {
    /// Returns whether the first document's method would leave the row out, because the test is
    /// shorter than [`SECONDS_PUBLISHED`] seconds.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.seconds_min.is_some_and(|seconds| seconds < SECONDS_PUBLISHED)
    }
}

impl<'a> ExperimentResults<'a> {
    /// Computes the results. `runs` can contain runs of other experiments.
    #[must_use]
    pub fn of(experiment: &'a Experiment, runs: &'a [CaseRun]) -> Self {
        let runs_of_experiment = runs.iter().filter(|run| run.experiment == experiment.name);
        let (runs, assumed_runs): (Vec<&CaseRun>, Vec<&CaseRun>) =
            runs_of_experiment.partition(|run| run.assumption.is_none());
        let cases = 0..experiment.cases.len();
        let rounds = cases.clone().map(|case| rounds(experiment, &runs, case).len()).collect();
        let rows: Vec<Row> = cases.flat_map(|case| rows(experiment, &runs, &assumed_runs, case)).collect();
        let mut results = Self { experiment, runs, assumed_runs, rounds, rows, goals: Vec::new() };
        let known = |name: &String| experiment.cases.iter().any(|case| case.name == *name);
        let goals = experiment.goals.iter().filter(|goal| goal.places().iter().all(|(case, _)| known(case)));
        results.goals = goals.map(|goal| (goal, results.outcome(goal))).collect();
        results
    }

    fn outcome(&self, goal: &Goal) -> GoalOutcome {
        goal.outcome(
            |place| self.cell(place)?.published,
            |place| self.cell(place)?.simulated.as_ref().map(|simulated| simulated.known),
        )
    }

    fn cell(&self, place: &FigureKey) -> Option<&Cell> {
        let case = self.experiment.cases.iter().position(|case| case.name == place.case)?;
        let setting = self.experiment.settings.iter().position(|setting| setting.label == place.setting)?;
        let row = self.rows.iter().find(|row| row.case == case && row.test == place.test && row.unit == place.unit)?;
        row.cells.get(setting)
    }

    /// Returns the series of the first run of a case under a setting, both given by index.
    pub fn series(&self, case: usize, setting: usize) -> impl Iterator<Item = &'a SeriesRecord> {
        let (case, setting) = (&self.experiment.cases[case].name, &self.experiment.settings[setting].label);
        let first = self.runs.iter().find(|run| run.case == *case && run.setting == *setting);
        first.into_iter().flat_map(|run| &run.series)
    }

    /// Returns the simulated time of all runs, ns.
    #[must_use]
    pub fn simulated_ns(&self) -> u64 {
        self.runs.iter().chain(&self.assumed_runs).map(|run| run.simulated_ns).sum()
    }

    /// Returns whether any case has a complete round.
    #[must_use]
    pub fn was_run(&self) -> bool {
        self.rounds.iter().any(|&rounds| rounds > 0)
    }

    /// Returns the number of runs in words: "3 runs each". If some runs are missing: "2 of 3 runs
    /// each of write; not run: copy".
    #[must_use]
    pub fn runs_in_words(&self, planned: u32) -> String {
        let times = |rounds: usize| match rounds {
            n if (n as u64) < u64::from(planned) => format!("{n} of {planned} runs each"),
            1 => "1 run each".to_owned(),
            n => format!("{n} runs each"),
        };
        let mut counts = self.rounds.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        let cases_with = |count: usize| {
            let cases = self.experiment.cases.iter().zip(&self.rounds).filter(|(_, rounds)| **rounds == count);
            cases.map(|(case, _)| case.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let in_words = |&count: &usize| match count {
            0 if counts.len() == 1 => "not run".to_owned(),
            0 => format!("not run: {}", cases_with(0)),
            _ if counts.len() == 1 => times(count),
            _ => format!("{} of {}", times(count), cases_with(count)),
        };
        counts.iter().map(in_words).collect::<Vec<_>>().join("; ")
    }

    /// Returns one line per row and setting.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let baseline = self.experiment.baseline();
        self.rows.iter().flat_map(move |row| {
            row.cells.iter().enumerate().map(move |(setting, cell)| {
                let simulated = cell.simulated.as_ref().map(|simulated| simulated.known);
                let verdict = |verdict: Option<Judgement>, known: Option<Known>| match verdict {
                    None if setting == baseline => known.map(|_| "baseline"),
                    verdict => verdict.map(Judgement::id),
                };
                Line {
                    experiment: &self.experiment.name,
                    case: format!("{}/{}", self.experiment.cases[row.case].name, row.test),
                    setting: &self.experiment.settings[setting].label,
                    unit: &row.unit,
                    runs: self.rounds[row.case],
                    published_mean: cell.published.map(|known| known.mean),
                    published_sd: cell.published.and_then(|known| known.sd),
                    simulated_mean: simulated.map(|known| known.mean),
                    simulated_sd: simulated.and_then(|known| known.sd),
                    verdict_published: verdict(cell.verdict_published, cell.published),
                    verdict_simulated: verdict(cell.verdict_simulated, simulated),
                    outcomes: cell.outcomes().map(|outcomes| outcomes.describe("")),
                    band_low: cell.band().map(|(low, _)| low),
                    band_high: cell.band().map(|(_, high)| high),
                    otherwise: cell.otherwise().map(Otherwise::of).collect(),
                }
            })
        })
    }
}

/// A figure in machine-readable output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Names of the case and the test: `iozone 1M/random_write`.
    pub case: String,
    /// Label of the setting.
    pub setting: &'a str,
    /// Unit of the means and deviations.
    pub unit: &'a str,
    /// Number of complete runs of the case under each setting. It is 0 if the reproduction was
    /// stopped before the first complete round of the case.
    pub runs: usize,
    /// Published mean, if there is one.
    pub published_mean: Option<f64>,
    /// Published standard deviation, if there is one.
    pub published_sd: Option<f64>,
    /// Mean of the simulated runs.
    pub simulated_mean: Option<f64>,
    /// Standard deviation of the simulated runs; `None` for a single run.
    pub simulated_sd: Option<f64>,
    /// Judgement of the published figure: `baseline` for the baseline, otherwise `better`, `worse`,
    /// `more`, `less` or `no_difference`.
    pub verdict_published: Option<&'static str>,
    /// Judgement of the simulated figure, with the same values, or `two_outcomes`.
    pub verdict_simulated: Option<&'static str>,
    /// Two outcomes of the simulated runs, in words, if the runs have two.
    pub outcomes: Option<String>,
    /// Smallest mean over all assumptions; `None` if there are no other assumptions.
    pub band_low: Option<f64>,
    /// Largest mean over all assumptions.
    pub band_high: Option<f64>,
    /// Assumptions under which the simulated judgement differs.
    pub otherwise: Vec<Otherwise<'a>>,
}

/// A judgement that depends on an assumption.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Otherwise<'a> {
    /// The assumption.
    pub assumption: &'a str,
    /// Judgement under this assumption.
    pub verdict: Option<&'static str>,
}

impl<'a> Otherwise<'a> {
    fn of(assumed: &'a Assumed) -> Self {
        Self { assumption: &assumed.assumption, verdict: assumed.verdict.map(Judgement::id) }
    }
}

/// Returns the numbers of the complete rounds of a case. In a complete round, every setting has a
/// run.
fn rounds(experiment: &Experiment, runs: &[&CaseRun], case: usize) -> Vec<u32> {
    let runs_of_case = runs.iter().filter(|run| run.case == experiment.cases[case].name);
    let mut rounds: Vec<u32> = runs_of_case.map(|run| run.run).collect();
    rounds.sort_unstable();
    let settings = experiment.settings.len();
    rounds.chunk_by(|a, b| a == b).filter(|round| round.len() == settings).map(|round| round[0]).collect()
}

/// Returns all rows of a case. The metrics that the runs report come before the metrics that are
/// only published.
fn rows(experiment: &Experiment, runs: &[&CaseRun], assumed_runs: &[&CaseRun], case: usize) -> Vec<Row> {
    let name = &experiment.cases[case].name;
    let by_setting = by_setting(experiment, runs, case);
    let mut assumptions: Vec<&String> = Vec::new();
    for assumption in assumed_runs.iter().filter(|run| run.case == *name).filter_map(|run| run.assumption.as_ref()) {
        if !assumptions.contains(&assumption) {
            assumptions.push(assumption);
        }
    }
    let assumed: Vec<(&str, Vec<Vec<&CaseRun>>)> = assumptions
        .into_iter()
        .map(|assumption| {
            let runs_of_assumption = assumed_runs.iter().filter(|run| run.assumption.as_ref() == Some(assumption));
            let runs_of_assumption: Vec<&CaseRun> = runs_of_assumption.copied().collect();
            (assumption.as_str(), self::by_setting(experiment, &runs_of_assumption, case))
        })
        .collect();
    let reported = by_setting.iter().flatten().flat_map(|run| &run.figures);
    let reported = reported.map(|figure| (figure.test.as_str(), figure.unit.as_str(), figure.better));
    let published = experiment.published.iter().filter(|published| published.case == *name);
    let published =
        published.map(|published| (published.test.as_str(), published.unit.as_str(), direction_of(&published.unit)));
    let mut known: Vec<(&str, &str, Direction)> = Vec::new();
    for metric in reported.chain(published) {
        if !known.iter().any(|other| (other.0, other.1) == (metric.0, metric.1)) {
            known.push(metric);
        }
    }
    known.into_iter().map(|figure| row(experiment, case, figure, &by_setting, &assumed)).collect()
}

/// Returns the runs in complete rounds of a case, by setting.
fn by_setting<'a>(experiment: &Experiment, runs: &[&'a CaseRun], case: usize) -> Vec<Vec<&'a CaseRun>> {
    let name = &experiment.cases[case].name;
    let complete: BTreeSet<u32> = rounds(experiment, runs, case).into_iter().collect();
    let of_setting = |label: &String| {
        let is_of_setting = |run: &&&CaseRun| run.case == *name && run.setting == *label && complete.contains(&run.run);
        runs.iter().filter(is_of_setting).copied().collect()
    };
    experiment.settings.iter().map(|setting| of_setting(&setting.label)).collect()
}

fn row(
    experiment: &Experiment,
    case: usize,
    (test, unit, direction): (&str, &str, Direction),
    by_setting: &[Vec<&CaseRun>],
    by_assumption: &[(&str, Vec<Vec<&CaseRun>>)],
) -> Row {
    let is_own = |figure: &&FigureRecord| figure.test == test && figure.unit == unit;
    let values = |runs: &[&CaseRun]| -> Vec<f64> {
        runs.iter().filter_map(|run| run.figures.iter().find(is_own)).map(|figure| figure.value).collect()
    };
    let name = &experiment.cases[case].name;
    let mut cells: Vec<Cell> = experiment
        .settings
        .iter()
        .zip(by_setting)
        .map(|(setting, runs)| {
            let published = experiment.published.iter().find(|published| {
                (&published.case, published.test.as_str(), published.unit.as_str(), &published.setting)
                    == (name, test, unit, &setting.label)
            });
            let values = values(runs);
            let known = Known::of(&values);
            Cell {
                published: published.map(|published| published.known),
                held_out: published.is_some_and(|published| published.origin == Origin::HeldOut),
                simulated: (!values.is_empty()).then_some(Simulated { known, values }),
                verdict_published: None,
                verdict_simulated: None,
                assumed: Vec::new(),
            }
        })
        .collect();
    let baseline = experiment.baseline();
    // If published deviations are missing, the published judgement uses a coarse limit. The
    // simulated judgement then uses the same limit.
    let single = cells.iter().any(|cell| cell.published.is_some_and(|known| known.sd.is_none()));
    let base = cells[baseline].clone();
    for (_, cell) in cells.iter_mut().enumerate().filter(|(setting, _)| *setting != baseline) {
        cell.verdict_published =
            cell.published.zip(base.published).map(|(setting, base)| judge(direction, setting, base, single));
        let pair = cell.simulated.as_ref().zip(base.simulated.as_ref());
        cell.verdict_simulated =
            pair.map(|(setting, base)| judge_runs(direction, &setting.values, &base.values, single));
    }
    for (assumption, by_setting) in by_assumption {
        let of_setting: Vec<Vec<f64>> = by_setting.iter().map(|runs| values(runs)).collect();
        if of_setting.iter().any(Vec::is_empty) {
            continue;
        }
        // A single run has no deviation. It is judged with the deviation of the runs under the
        // usual assumptions.
        let knowns: Vec<Known> = of_setting
            .iter()
            .zip(&cells)
            .map(|(values, cell)| {
                let known = Known::of(values);
                Known { sd: known.sd.or_else(|| cell.simulated.as_ref()?.known.sd), ..known }
            })
            .collect();
        for (setting, (cell, known)) in cells.iter_mut().zip(&knowns).enumerate() {
            let verdict = (setting != baseline).then(|| judge(direction, *known, knowns[baseline], single));
            cell.assumed.push(Assumed { assumption: (*assumption).to_owned(), known: *known, verdict });
        }
    }
    let seconds_min = seconds_min(experiment.cases[case].test_kib, test, unit, by_setting);
    Row { case, test: test.to_owned(), unit: unit.to_owned(), direction, cells, seconds_min }
}

/// Returns the time of the test in its shortest run, s. This is the reported time. If no time is
/// reported, the time follows from the rate and the amount of data. If neither is known, returns
/// the time of the whole run, which is an upper bound.
fn seconds_min(test_kib: Option<u64>, test: &str, unit: &str, by_setting: &[Vec<&CaseRun>]) -> Option<f64> {
    let shortest = by_setting.iter().flatten().map(|run| {
        let figure_in = |unit: &str| run.figures.iter().find(|figure| figure.test == test && figure.unit == unit);
        let by_rate = || {
            let rate = figure_in(unit).filter(|figure| figure.unit == "KB/s" && figure.value > 0.0)?;
            Some(test_kib? as f64 / rate.value)
        };
        figure_in("s").map(|figure| figure.value).or_else(by_rate).unwrap_or(run.simulated_ns as f64 / 1e9)
    });
    shortest.reduce(f64::min)
}

/// Counts of reproduced verdicts, figures and goals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Number of judgements that agree.
    pub verdicts_same: usize,
    /// Number of judgements that are known for both published and simulated figures.
    pub verdicts: usize,
    /// Number of simulated figures within [`WITHIN_SHARE`] of the published ones.
    pub figures_near: usize,
    /// Number of figures that are both published and simulated.
    pub figures: usize,
    /// Number of held-out figures within [`WITHIN_SHARE`].
    pub held_out_near: usize,
    /// Number of held-out figures.
    pub held_out: usize,
    /// Number of figures within [`WITHIN_SHARE`] under at least one assumption about unknowns.
    pub figures_reached: usize,
    /// Number of goals that are met.
    pub goals_met: usize,
    /// Number of goals whose outcome is known.
    pub goals: usize,
    /// Number of experiments with at least one complete round of a case.
    pub experiments_run: usize,
    /// Number of runs that were made.
    pub runs: usize,
    /// Number of planned runs.
    pub runs_planned: usize,
    /// Simulated time of all runs, ns.
    pub simulated_ns: u64,
}

impl Summary {
    /// Summarizes experiments. `runs_planned` is the planned number of runs of each case under each
    /// setting.
    #[must_use]
    pub fn of(results: &[ExperimentResults<'_>], runs_planned: u32) -> Self {
        let mut summary = Self::default();
        for results in results {
            summary.simulated_ns += results.simulated_ns();
            summary.experiments_run += usize::from(results.was_run());
            summary.runs += results.runs.len() + results.assumed_runs.len();
            summary.runs_planned += results.experiment.runs_planned(runs_planned);
            for cell in results.rows.iter().flat_map(|row| &row.cells) {
                count(cell.same(), &mut summary.verdicts_same, &mut summary.verdicts);
                count(cell.is_near(), &mut summary.figures_near, &mut summary.figures);
                summary.figures_reached += usize::from(cell.is_reached() == Some(true));
                count(cell.is_near().filter(|_| cell.held_out), &mut summary.held_out_near, &mut summary.held_out);
            }
            for (_, outcome) in &results.goals {
                count(outcome.met, &mut summary.goals_met, &mut summary.goals);
            }
        }
        summary
    }

    /// Returns whether fewer runs were made than planned.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.runs < self.runs_planned
    }

    /// Returns the summary in a sentence: "verdicts the same: 5 of 6; values within 15 %: 9 of 12;
    /// of the results that were not used to make the models: 2 of 3; goals met: 3 of 4". If the
    /// runs were stopped early, the sentence begins with the number of runs that were made.
    #[must_use]
    pub fn sentence(&self) -> String {
        let stopped = format!("stopped after {} of {} runs", self.runs, self.runs_planned);
        let parts = [
            ("verdicts the same", self.verdicts_same, self.verdicts),
            ("values within 15 %", self.figures_near, self.figures),
            ("values that were not used to make the models, within 15 %", self.held_out_near, self.held_out),
            ("values within 15 % under at least one assumption", self.figures_reached, self.figures),
            ("goals met", self.goals_met, self.goals),
        ];
        let known = parts.iter().filter(|(.., of)| *of > 0).map(|(what, some, of)| format!("{what}: {some} of {of}"));
        let mut parts_in_words: Vec<String> = self.is_stopped().then_some(stopped).into_iter().chain(known).collect();
        if parts.iter().all(|(.., of)| *of == 0) {
            parts_in_words.push(match (self.is_stopped(), self.experiments_run) {
                (true, 0) => "no case ran under all settings of its experiment".to_owned(),
                (true, _) => "there are no published results for these runs".to_owned(),
                (false, _) => "there are no published values for these results".to_owned(),
            });
        }
        parts_in_words.join("; ")
    }
}

fn count(is: Option<bool>, some: &mut usize, total: &mut usize) {
    if let Some(is) = is {
        *some += usize::from(is);
        *total += 1;
    }
}
