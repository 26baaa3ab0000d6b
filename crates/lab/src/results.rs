//! Results for one device, computed from records alone.

use iosched_disk::RecordedLoad;
use iosched_workload::outcome::{RunResult, TaskResult};
use serde::Serialize;

use crate::answer::Answer;
use crate::compare::{Bounds, Comparison, Pair, RUNS_FEW, RUNS_WORTH, Verdict, judge};
use crate::decide::{Decision, Evidence, decide};
use crate::doubt::{Doubt, Finder};
use crate::fairness::Fairness;
use crate::figure::{Figure, TASK_NAMES_SHOWN, TaskFigure};
use crate::goal::{Goal, Measure, MeasureRecord, Statistic, Whose};
use crate::number::significant;
use crate::record::{Header, OnDevice, RunRecord, WorkloadKind, WorkloadRecord};
use crate::stat;
use crate::words::{listed, runs_in_words};

/// Smallest number of I/Os in a run for a conclusion from their latency. With fewer I/Os, the
/// latency is only shown.
pub(crate) const FEW_IOS: u64 = 30;
/// Smallest rise that is printed as a multiple of the baseline, per cent.
const FOLD_PERCENT: f64 = 100.0;

/// Values of a metric under one setting, over the complete rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingFigure {
    /// Mean of the runs, in the metric's unit.
    pub mean: f64,
    /// Standard deviation of the runs; `None` for a single run.
    pub sd: Option<f64>,
    /// Values of the runs, in order.
    pub values: Vec<f64>,
    /// Comparison with the baseline; `None` for the baseline itself, and if the baseline does not
    /// have the metric.
    pub comparison: Option<Comparison>,
}

/// Results of a metric under all settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureResults {
    /// The metric.
    pub figure: Figure,
    /// Name of the metric for display, see [`Figure::label`].
    #[serde(skip)]
    pub label: String,
    /// Values by setting, in the order of [`Header::settings`]; `None` for a setting without the
    /// metric.
    pub settings: Vec<Option<SettingFigure>>,
    /// For a latency: smallest number of I/Os in any run. `None` for other metrics.
    pub ios: Option<u64>,
    /// Whether the sentence about a setting mentions the metric: the metric is a goal or, if there
    /// are no goals, a usual headline.
    pub headline: bool,
    /// Whether the metric is a goal.
    #[serde(skip)]
    pub goal: bool,
    /// Whether the metric always has a row in tables.
    #[serde(skip)]
    pub shown: bool,
    /// Level for comparisons of two settings that are both not the baseline.
    #[serde(skip)]
    pub level: f64,
}

impl FigureResults {
    /// Returns whether conclusions use the metric. The metric must be a goal, or a headline that is
    /// based on enough I/Os.
    #[must_use]
    pub fn concludes(&self) -> bool {
        self.goal || self.headline && self.ios.is_none_or(|ios| ios >= FEW_IOS)
    }

    /// Compares a setting with another one. Both are indices into [`Header::settings`]. If one of
    /// them lacks the metric, the comparison has no runs. If one of them is the baseline, returns
    /// the stored comparison, so that all outputs show the same verdict.
    #[must_use]
    pub fn between(&self, records: OnDevice<'_>, setting: usize, other: usize) -> Comparison {
        let known = |setting: usize| self.settings[setting].as_ref()?.comparison;
        let values = |setting: usize| self.settings[setting].as_ref().map_or(&[] as &[f64], |figure| &figure.values);
        let baseline = records.header().baseline;
        match (known(setting), known(other)) {
            (Some(found), _) if other == baseline => found,
            (_, Some(found)) if setting == baseline => found.turned(stat::mean(values(other))),
            _ => {
                let (figure, bounds) = (self.figure, bounds(records, self.figure));
                let (values, base) = (values(setting), values(other));
                Pair { figure, values, base, bounds, concludes: self.concludes() }.compare(self.level)
            }
        }
    }
}

/// Results of an experiment for one of its devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Number of complete rounds. All metrics cover these rounds.
    pub rounds: u32,
    /// Simulated time of all runs, including runs of tasks alone, ns.
    pub simulated_ns: u64,
    /// Number of I/Os in these runs.
    pub simulated_ios: u64,
    /// Metrics that at least one setting has: goals, application metrics, task metrics, then the
    /// metrics of [`Figure::ALL`] in their order.
    pub figures: Vec<FigureResults>,
    /// Number of task names with metrics, and number of all task names.
    #[serde(skip)]
    pub task_names: (usize, usize),
    /// Doubts about the results.
    pub doubts: Vec<Doubt>,
    /// Answer: the best settings for each metric.
    pub answer: Answer,
    /// Decision: the setting to use, in sentences.
    pub decision: Decision,
}

impl Results {
    /// Computes the results of one device.
    #[must_use]
    pub fn of(records: OnDevice<'_>) -> Self {
        let fairness = Fairness::of(records);
        let (figures, task_names) = figures(records, &fairness);
        let alone = records.alone_runs().iter().map(|alone| (alone.end_ns(), alone.result.ios));
        let runs = records.runs().map(|run| (run.result.finished_ns, run.result.ios));
        let (simulated_ns, simulated_ios) =
            runs.chain(alone).fold((0u64, 0u64), |(ns, ios), (n, i)| (ns.saturating_add(n), ios + i));
        let mut results = Self {
            rounds: records.all().rounds().len() as u32,
            simulated_ns,
            simulated_ios,
            answer: Answer::of(&figures, records),
            figures,
            task_names,
            doubts: Vec::new(),
            decision: decide(&Evidence::default()),
        };
        results.doubts = Finder { records, results: &results, fairness: &fairness }.all();
        results.decision = decide(&Evidence::of(records, &results));
        results
    }

    /// Returns the results of one metric.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<&FigureResults> {
        self.figures.iter().find(|results| results.figure == figure)
    }

    /// Returns the displayed name of a metric in these results.
    #[must_use]
    pub fn label(&self, figure: Figure) -> String {
        self.figure(figure).map_or_else(|| figure.name().to_owned(), |results| results.label.clone())
    }

    /// Returns the results of the metric that a goal names, in the notation of goals.
    #[must_use]
    pub fn named(&self, measure: &str) -> Option<&FigureResults> {
        self.figures.iter().find(|results| Measure::of_figure(results.figure).to_string() == measure)
    }

    /// Returns a sentence that compares a setting with the baseline, without the setting's name.
    /// The sentence first names the headline metrics with a difference, the largest difference
    /// first. Then it names the headline metrics without a difference. Returns `None` for the
    /// baseline.
    #[must_use]
    pub fn sentence(&self, header: &Header, setting: usize) -> Option<String> {
        if setting == header.baseline {
            return None;
        }
        let compared = self.figures.iter().filter(|results| results.concludes()).filter_map(|results| {
            let comparison = results.settings.get(setting)?.as_ref()?.comparison.as_ref()?;
            Some((results, comparison))
        });
        let (mut differ, same): (Vec<_>, Vec<_>) = compared.partition(|(_, c)| c.verdict.differs());
        differ.sort_by(|a, b| b.1.magnitude().total_cmp(&a.1.magnitude()).then(a.0.figure.cmp(&b.0.figure)));
        let mut parts: Vec<String> = differ
            .iter()
            .map(|(results, c)| format!("{} {}", results.label, c.describe(results.figure.unit())))
            .collect();
        let results_with = |verdict: Verdict| same.iter().filter(move |(_, c)| c.verdict == verdict);
        let equal: Vec<String> = results_with(Verdict::Equal).map(|(results, _)| results.label.clone()).collect();
        if !equal.is_empty() {
            parts.push(format!("{} equal within {} %", listed(&equal, "and"), header.equal_within_percent));
        }
        parts.extend(
            results_with(Verdict::CannotTell).map(|(results, c)| format!("{}: {}", results.label, c.describe(""))),
        );
        Some(if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join("; ") })
    }
}

impl Comparison {
    /// Returns the comparison in words: "better by 18 % (15 to 21 %)", "worse 12-fold (9.0 to 15)",
    /// "equal (-0.3 to +1.2 %)", "cannot tell (-12 to +30 %), needs 34 runs". `unit` is printed
    /// with differences that have no percentage.
    #[must_use]
    pub fn describe(&self, unit: &str) -> String {
        let word = match self.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::Equal => return format!("equal{}", self.both_ends(unit)),
            Verdict::CannotTell => return self.cannot_tell(unit),
        };
        if let Some((times, between)) = self.fold() {
            let between = between.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
            return format!("{word} {times}-fold{between}");
        }
        match self.size(unit) {
            (size, None) => format!("{word} by {size}"),
            (size, Some((near, far, unit))) => format!("{word} by {size} ({near} to {far}{unit})"),
        }
    }

    /// Returns the size of a difference for sorting. A fall to a tenth has the same size as a
    /// tenfold rise.
    pub(crate) fn magnitude(&self) -> f64 {
        self.percent.map_or(f64::INFINITY, |percent| (percent / 100.0).ln_1p().abs())
    }

    /// For a large rise, returns the multiple of the baseline, and the ends of the interval if both
    /// ends look different when printed.
    pub(crate) fn fold(&self) -> Option<(String, Option<(String, String)>)> {
        let percent = self.percent.filter(|percent| *percent >= FOLD_PERCENT)?;
        let times = |percent: f64| significant(percent / 100.0 + 1.0, 2);
        let ends = self.interval_percent.map(|(low, high)| (times(low), times(high)));
        Some((times(percent), ends.filter(|(low, high)| low != high)))
    }

    /// Returns the size of a difference, and the ends of the interval. The end nearer to 0 comes
    /// first. The result also has the unit, such as " %".
    pub(crate) fn size(&self, unit: &str) -> (String, Option<(String, String, String)>) {
        let (size, interval, unit) = match self.percent {
            Some(percent) => (percent, self.interval_percent, "%"),
            None => (self.difference, self.interval, unit),
        };
        let is_percent = self.percent.is_some();
        let shown = |value: f64| {
            if is_percent && value < 0.0 { fall(value.abs()) } else { significant(value.abs(), 2) }
        };
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        // Both ends have the sign of the difference, because the interval does not contain 0.
        let ends = interval.map(|(low, high)| {
            let (near, far) = if low.abs() <= high.abs() { (low, high) } else { (high, low) };
            (shown(near), shown(far), unit.clone())
        });
        (format!("{}{unit}", shown(size)), ends.filter(|(near, far, _)| near != far))
    }
}

/// Returns the size of a fall, per cent. The text is "100" only if nothing is left. A fall to
/// almost nothing has more digits, such as "99.98".
fn fall(percent: f64) -> String {
    let left = 100.0 - percent;
    let rounds_to_all = percent > 0.0 && significant(percent, 2) == "100" && left > 0.0;
    // Four decimals are enough for a fall to a millionth.
    let shown = (1..=4).map(|decimals| format!("{percent:.decimals$}")).find(|shown| !shown.starts_with("100"));
    shown.filter(|_| rounds_to_all).unwrap_or_else(|| significant(percent, 2))
}

impl Comparison {
    /// Returns the interval in parentheses, " (-12 to +30 %)", even if it contains 0. The text is
    /// empty for a single run, and if all values are equal.
    pub(crate) fn both_ends(&self, unit: &str) -> String {
        let (ends, unit) = match self.interval_percent {
            Some(interval) => (Some(interval), "%"),
            None => (self.interval, unit),
        };
        let signed = |value: f64| {
            let shown = significant(value.abs(), 2);
            if value == 0.0 { "0".to_owned() } else { format!("{}{shown}", if value < 0.0 { "-" } else { "+" }) }
        };
        match ends {
            None | Some((0.0, 0.0)) => String::new(),
            Some((low, high)) if signed(low) == signed(high) => format!(" ({} {unit})", signed(low)),
            Some((low, high)) => format!(" ({} to {} {unit})", signed(low), signed(high)),
        }
    }

    fn cannot_tell(&self, unit: &str) -> String {
        if self.runs < RUNS_FEW && self.seen.is_none() {
            let would = self.runs_needed.map_or_else(String::new, |runs| format!(", needs {}", runs_short(runs)));
            return format!("too few runs ({}){would}", self.runs);
        }
        let ends = self.both_ends(unit);
        if let Some(outcomes) = self.outcomes.or(self.base_outcomes) {
            let whose = if self.outcomes.is_some() { "" } else { " of the baseline" };
            return format!("cannot tell: two outcomes{whose}, {}", outcomes.describe(unit));
        }
        match (self.runs_needed, self.seen) {
            (None, Some(_)) => format!("cannot tell: {} in simulation, {}", self.seen_size(unit), self.model_is_off()),
            (Some(runs), _) => format!("cannot tell{ends}, needs {}", runs_in_words(runs)),
            (None, None) if self.model_error_percent > 0.0 => format!("cannot tell{ends}: {}", self.model_is_off()),
            (None, None) => format!("cannot tell{ends}"),
        }
    }

    /// Returns the size of the difference that the runs show, such as "-34 %" or "7.1-fold".
    fn seen_size(&self, unit: &str) -> String {
        match (self.fold(), self.size(unit).0) {
            (Some((times, _)), _) => format!("{times}-fold"),
            (None, size) => format!("{}{size}", if self.difference < 0.0 { "-" } else { "+" }),
        }
    }

    fn model_is_off(&self) -> String {
        format!("the model may be wrong by {} %", significant(self.model_error_percent, 2))
    }
}

impl MeasureRecord {
    /// Returns a comparison in words, such as "better by 12 % (8 to 15 %)".
    #[must_use]
    pub fn describe(&self, comparison: &Comparison) -> String {
        comparison.describe(&self.unit)
    }
}

/// Returns the number of runs as text, without the word "runs".
fn runs_short(runs: u32) -> String {
    if runs > RUNS_WORTH { format!("more than {RUNS_WORTH}") } else { runs.to_string() }
}

/// Returns the metrics of any of several devices: application and task metrics first, then in the
/// order of [`Figure::ALL`].
pub fn figures_of<'a>(devices: impl IntoIterator<Item = &'a Results>) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    for results in devices.into_iter().flat_map(|results| &results.figures) {
        if !all.contains(&results.figure) {
            all.push(results.figure);
        }
    }
    all.sort_by_key(|figure| Figure::ALL.iter().position(|known| known == figure));
    all
}

/// Returns all metrics, the number of task names with metrics, and the number of all task names.
fn figures(records: OnDevice<'_>, fairness: &Fairness) -> (Vec<FigureResults>, (usize, usize)) {
    let header = records.header();
    let runs: Vec<_> = (0..header.settings.len()).map(|setting| records.complete_runs(setting)).collect();
    let values = |figure: Figure, setting: usize| -> Option<Vec<f64>> {
        let values: Vec<f64> = match figure {
            Figure::Fairness => fairness.indices(setting),
            _ => runs[setting].iter().filter_map(|run| figure.of(&run.result)).collect(),
        };
        (!values.is_empty() && values.len() == runs[setting].len()).then_some(values)
    };
    let mut all = Vec::new();
    let goals = goals(header, &runs);
    let (of_tasks, names) = of_tasks(header, &runs);
    let of_shown_tasks = of_tasks[..of_tasks.len().min(TASK_NAMES_SHOWN)].concat();
    let figures = [goals.as_slice(), &reported(&runs), &of_tasks.concat(), Figure::ALL].concat();
    let beside_parts = figures.iter().any(|figure| figure.is_of_part());
    let is_new =
        |(at, figure): &(usize, &Figure)| !figures[..*at].contains(figure) && !is_goal_of_task(**figure, &goals);
    for (_, &figure) in figures.iter().enumerate().filter(is_new) {
        let values: Vec<Option<Vec<f64>>> = (0..runs.len()).map(|setting| values(figure, setting)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let settings = values.into_iter().map(|values| {
            let values = values?;
            let (mean, sd) = (stat::mean(&values), stat::standard_deviation(&values));
            Some(SettingFigure { mean, sd, comparison: None, values })
        });
        let (settings, ios) = (settings.collect(), fewest_ios(records, figure));
        let usual = is_headline(figure, &header.workload);
        let goal = goals.contains(&figure);
        let headline = if goals.is_empty() { usual } else { goal };
        // IOPS of tasks have a row only if they are a headline.
        let of_shown_task = of_shown_tasks.contains(&figure) && !matches!(figure, Figure::Task(_, TaskFigure::Iops));
        let is_reported = matches!(figure, Figure::Application(_));
        let shown = headline || usual || figure == Figure::Throughput || of_shown_task || is_reported;
        let label = figure.label(beside_parts);
        all.push(FigureResults { figure, label, settings, ios, headline, goal, shown, level: 0.0 });
    }
    compare_with_baseline(&mut all, records);
    (all, (of_tasks.len(), names))
}

/// Returns the metrics of the goals that at least one run has, without duplicates.
fn goals(header: &Header, runs: &[Vec<&RunRecord>]) -> Vec<Figure> {
    let mut all = Vec::new();
    for measure in header.goals.iter().filter_map(|text| Some(text.parse::<Goal>().ok()?.measure)) {
        let found = runs.iter().flatten().find_map(|run| measure.figure(&run.result));
        all.extend(found.filter(|figure| !all.contains(figure)));
    }
    all
}

/// Returns whether a goal names the same metric of the same task as `figure`.
fn is_goal_of_task(figure: Figure, goals: &[Figure]) -> bool {
    let name = figure.task().map(str::to_owned);
    let whose = match figure {
        Figure::Task(_, TaskFigure::P99) => Whose::Task(name.unwrap_or_default()),
        Figure::Task(_, TaskFigure::SyncP99(call)) => Whose::Calls(call, name),
        _ => return false,
    };
    let same = Measure::Latency(Statistic::Quantile(0.99), whose);
    goals.iter().any(|goal| goal.measure() == Some(&same))
}

/// Compares every setting with the baseline in every metric, all at once.
fn compare_with_baseline(figures: &mut [FigureResults], records: OnDevice<'_>) {
    let baseline = records.header().baseline;
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    for (number, results) in figures.iter().enumerate() {
        let Some(base) = results.settings.get(baseline).and_then(Option::as_ref) else { continue };
        let others = results.settings.iter().enumerate().filter(|(setting, _)| *setting != baseline);
        for (setting, figure) in others.filter_map(|(setting, figure)| Some((setting, figure.as_ref()?))) {
            pairs.push(Pair {
                figure: results.figure,
                values: &figure.values,
                base: &base.values,
                bounds: bounds(records, results.figure),
                concludes: results.concludes(),
            });
            places.push((number, setting));
        }
    }
    let judged = judge(&pairs);
    for ((number, setting), comparison) in places.into_iter().zip(&judged.comparisons) {
        if let Some(figure) = &mut figures[number].settings[setting] {
            figure.comparison = Some(*comparison);
        }
    }
    for results in figures {
        results.level = judged.level(results.concludes());
    }
}

/// Returns the metrics that the application reports under any setting, and the latencies of the
/// application's sync calls.
fn reported(runs: &[Vec<&RunRecord>]) -> Vec<Figure> {
    let mut all = Vec::new();
    for run in runs.iter().filter_map(|runs| runs.first()) {
        let reported = run.result.app.as_ref().map(Figure::reported).unwrap_or_default();
        reported.into_iter().chain(Figure::of_syncs(&run.result)).for_each(|figure| {
            if !all.contains(&figure) {
                all.push(figure);
            }
        });
    }
    all
}

/// Returns the metrics of single tasks, jobs or processes, and the number of their names. Tasks of
/// an application have no such metrics, because they depend on each other.
fn of_tasks(header: &Header, runs: &[Vec<&RunRecord>]) -> (Vec<Vec<Figure>>, usize) {
    let named = matches!(header.workload.kind, WorkloadKind::Tasks | WorkloadKind::Jobs | WorkloadKind::Trace);
    let first = runs.iter().find_map(|runs| runs.first()).filter(|_| named);
    let figures = |run: &&RunRecord| {
        let (tasks, jobs) = (of_workload(&run.result), &run.result.jobs);
        Figure::of_tasks(tasks, jobs, tasks.len() < run.result.tasks.len(), header.workload.kind)
    };
    first.map(figures).unwrap_or_default()
}

/// Returns the tasks of a run that belong to the workload. On a machine, kernel threads precede
/// fio's jobs.
fn of_workload(result: &RunResult) -> &[TaskResult] {
    let threads = if result.jobs.is_empty() { 0 } else { result.tasks.len().saturating_sub(result.jobs.len()) };
    &result.tasks[threads..]
}

/// Returns whether a metric is a usual headline. Throughput is a headline only if the workload ends
/// at a given time; otherwise the finish time is. In a trace, the rate of a process is not a
/// headline, because the recording determines it.
fn is_headline(figure: Figure, workload: &WorkloadRecord) -> bool {
    match figure {
        Figure::Finish => !workload.timed,
        Figure::Throughput => workload.timed,
        Figure::Task(..) if workload.kind == WorkloadKind::Trace => false,
        _ => figure.is_headline(),
    }
}

/// For a latency, returns the smallest number of I/Os in any run.
fn fewest_ios(records: OnDevice<'_>, figure: Figure) -> Option<u64> {
    if let Some(measure) = figure.measure() {
        return records.runs().filter_map(|run| measure.ios(&run.result)).min();
    }
    let is_sync = figure.is_latency_of_sync()?;
    let ios = records.runs().map(|run| {
        let latency = &run.result.latency;
        if is_sync { latency.reads.count() + latency.writes_sync.count() } else { latency.writes_async.count() }
    });
    ios.min()
}

/// Returns the bounds of a metric's verdicts on the records' device.
fn bounds(records: OnDevice<'_>, figure: Figure) -> Bounds {
    Bounds::on(records.device(), records.header().equal_within_percent, figure.is_tail(), load(records))
}

/// Returns the kind of the workload. It selects the model error from the records of measurements.
fn load(records: OnDevice<'_>) -> RecordedLoad {
    let writes = records.runs().any(|run| run.result.bytes_written > 0);
    RecordedLoad::of(writes, records.header().workload.several_disks.unwrap_or(1))
}
