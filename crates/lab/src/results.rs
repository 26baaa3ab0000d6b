//! Results: what records say of one device. Computed from records alone.

use std::fmt::Write as _;

use iosched_sim::{Note, Replay};
use serde::Serialize;

use crate::compare::{Comparison, SIGNIFICANCE, Verdict, compare};
use crate::doubt::{Doubt, RUNS_PUBLISHED, SECONDS_PUBLISHED, listed};
use crate::fairness::Fairness;
use crate::figure::Figure;
use crate::number::significant;
use crate::record::{Header, OnDevice, RunRecord, WorkloadKind};
use crate::stat;

/// I/Os that must lie above a quantile in a run for it to be more than the worst case.
const TAIL_IOS_MIN: u64 = 10;
/// Latencies of fewer I/Os in a run are shown but nothing is concluded from them.
const FEW_IOS: u64 = 30;
/// From here on a rise is told as so many times the baseline, per cent.
const FOLD_PERCENT: f64 = 900.0;
/// Below this share of the time a device's scheduler hardly matters, per cent.
const IDLE_PERCENT: f64 = 20.0;
/// The share of the time in which it is busy enough to matter, per cent.
const BUSY_PERCENT: f64 = 80.0;
/// From this utilisation on a device may be overloaded, per cent.
const OVERLOAD_PERCENT: f64 = 95.0;
/// It is if it also finishes later than the last arrival by this share of the time over which I/Os arrived,
const OVERLOAD_LATE_SHARE: f64 = 0.05;
/// or by this, s.
const OVERLOAD_LATE_S: f64 = 1.0;

/// A figure under one setting, over the complete rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingFigure {
    /// The mean of the runs, in the figure's unit.
    pub mean: f64,
    /// Their standard deviation; `None` of a single run.
    pub sd: Option<f64>,
    /// The runs, in their order.
    pub values: Vec<f64>,
    /// Against the baseline; `None` of the baseline itself, and where the baseline does not have the figure.
    pub comparison: Option<Comparison>,
}

/// A figure under all settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureResults {
    /// Which.
    pub figure: Figure,
    /// In the order of [`Header::settings`]; `None` for a setting that does not have it.
    pub settings: Vec<Option<SettingFigure>>,
    /// I/Os that it rests on in the run with the fewest; `None` of figures that are not latencies.
    pub ios: Option<u64>,
}

impl FigureResults {
    /// Whether closing sentences speak of it: a headline figure that does not rest on a handful of I/Os.
    #[must_use]
    pub fn concludes(&self) -> bool {
        self.figure.is_headline() && self.ios.is_none_or(|ios| ios >= FEW_IOS)
    }
}

/// Which settings are best for what, by the figures that closing sentences speak of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// Groups of settings (their numbers) between which there is no difference and than which no other is better, and
    /// the figures that this is so for.
    pub best: Vec<(Vec<usize>, Vec<Figure>)>,
    /// Figures in which no setting differs from the best.
    pub alike: Vec<Figure>,
}

/// What records say of one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// Complete rounds; all figures are of these.
    pub rounds: u32,
    /// Virtual time of all its runs together, those of processes alone included, ns.
    pub simulated_ns: u64,
    /// I/Os simulated in them.
    pub simulated_ios: u64,
    /// Figures that at least one setting has: those that the application reports, then in the order of [`Figure::ALL`].
    pub figures: Vec<FigureResults>,
    /// What makes them doubtful.
    pub doubts: Vec<Doubt>,
    /// The answer.
    pub answer: Answer,
}

impl Results {
    /// Computes them.
    #[must_use]
    pub fn of(records: OnDevice<'_>) -> Self {
        let fairness = Fairness::of(records);
        let mut figures = figures(records, &fairness);
        correct_for_many(&mut figures);
        let alone = records.alone_runs().iter().map(|alone| {
            let end_ns = alone.result.last_completion_ns.unwrap_or(0);
            (end_ns, alone.result.ios)
        });
        let runs = records.runs().map(|run| (run.result.finished_ns, run.result.ios));
        let (simulated_ns, simulated_ios) =
            runs.chain(alone).fold((0u64, 0u64), |(ns, ios), (n, i)| (ns.saturating_add(n), ios + i));
        let mut results = Self {
            rounds: records.all().rounds().len() as u32,
            simulated_ns,
            simulated_ios,
            answer: answer(&figures),
            figures,
            doubts: Vec::new(),
        };
        results.doubts = Doubts { records, results: &results, fairness: &fairness }.all();
        results
    }

    /// The results of one figure.
    #[must_use]
    pub fn figure(&self, figure: Figure) -> Option<&FigureResults> {
        self.figures.iter().find(|results| results.figure == figure)
    }

    /// What is to be said of a setting against the baseline, without its name: differences in the headline figures,
    /// largest first, then those without. `None` for the baseline.
    #[must_use]
    pub fn sentence(&self, header: &Header, setting: usize) -> Option<String> {
        if setting == header.baseline {
            return None;
        }
        let compared = self.figures.iter().filter(|results| results.concludes()).filter_map(|results| {
            let comparison = results.settings.get(setting)?.as_ref()?.comparison.as_ref()?;
            Some((results.figure, comparison))
        });
        let (mut differ, same): (Vec<_>, Vec<_>) = compared.partition(|(_, c)| c.verdict.differs());
        let size = |c: &Comparison| c.percent.map_or(f64::INFINITY, f64::abs);
        differ.sort_by(|a, b| size(b.1).total_cmp(&size(a.1)).then(a.0.cmp(&b.0)));
        let mut parts: Vec<String> =
            differ.iter().map(|(figure, c)| format!("{} {}", figure.name(), c.describe(figure.unit()))).collect();
        for verdict in [Verdict::NoDifference, Verdict::Undecided] {
            let names: Vec<String> =
                same.iter().filter(|(_, c)| c.verdict == verdict).map(|(figure, _)| figure.name().to_owned()).collect();
            if !names.is_empty() {
                let what = if verdict == Verdict::NoDifference { "no difference" } else { "undecided, too few runs" };
                parts.push(format!("{}: {what}", listed(&names)));
            }
        }
        Some(if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join("; ") })
    }

    /// The answer in a sentence.
    #[must_use]
    pub fn answer_sentence(&self, header: &Header) -> String {
        let names = |figures: &[Figure]| listed(&figures.iter().map(|f| f.name().to_owned()).collect::<Vec<_>>());
        if header.settings.len() < 2 {
            return "one setting, nothing to compare it with: name another with --scheduler".to_owned();
        }
        if self.rounds < 2 {
            return "too few runs to say which is best".to_owned();
        }
        let mut parts: Vec<String> = Vec::new();
        for (settings, figures) in &self.answer.best {
            let labels: Vec<String> = settings.iter().map(|&s| header.settings[s].label.clone()).collect();
            parts.push(format!("{} for {}", listed(&labels), names(figures)));
        }
        let mut text = if parts.is_empty() { String::new() } else { format!("best: {}", parts.join("; ")) };
        if !self.answer.alike.is_empty() {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}no difference between settings in {}", names(&self.answer.alike));
        }
        text
    }
}

impl Comparison {
    /// "better by 18 % (15 to 21 %)", "worse 12-fold (9.0 to 15)", "no difference"; `unit` for differences that have no percentage.
    #[must_use]
    pub fn describe(&self, unit: &str) -> String {
        let word = match self.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::NoDifference => return "no difference".to_owned(),
            Verdict::Undecided => return "undecided".to_owned(),
        };
        let (size, interval, unit) = match (self.percent, self.interval_percent) {
            (Some(percent), Some((low, high))) if percent >= FOLD_PERCENT => {
                let [size, low, high] = [percent, low, high].map(|percent| significant(percent / 100.0 + 1.0, 2));
                let interval = if low == high { String::new() } else { format!(" ({low} to {high})") };
                return format!("{word} {size}-fold{interval}");
            }
            (Some(percent), interval) => (percent, interval, "%"),
            (None, _) => (self.difference, self.interval, unit),
        };
        let Some((low, high)) = interval else { return format!("{word} by {} {unit}", significant(size.abs(), 2)) };
        // Both ends have the sign of the difference: the interval does not hold 0.
        let (near, far) = if low.abs() <= high.abs() { (low.abs(), high.abs()) } else { (high.abs(), low.abs()) };
        let shown = [size.abs(), near, far].map(|value| significant(value, 2));
        if shown[1] == shown[2] {
            return format!("{word} by {} {unit}", shown[0]);
        }
        format!("{word} by {} {unit} ({} to {} {unit})", shown[0], shown[1], shown[2])
    }
}

/// The figures that any of several devices has: what applications report, then in the order of [`Figure::ALL`].
pub fn figures_of<'a>(devices: impl IntoIterator<Item = &'a Results>) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    for own in devices.into_iter().flat_map(|results| &results.figures) {
        if !all.contains(&own.figure) {
            all.push(own.figure);
        }
    }
    all.sort_by_key(|figure| Figure::ALL.iter().position(|known| known == figure));
    all
}

fn figures(records: OnDevice<'_>, fairness: &Fairness) -> Vec<FigureResults> {
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
    for figure in reported(&runs).into_iter().chain(Figure::ALL.iter().copied()) {
        let values: Vec<Option<Vec<f64>>> = (0..runs.len()).map(|setting| values(figure, setting)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let base = values.get(header.baseline).cloned().flatten();
        let settings = values.into_iter().enumerate().map(|(setting, values)| {
            let values = values?;
            let base = base.as_deref().filter(|_| setting != header.baseline);
            Some(SettingFigure {
                mean: stat::mean(&values),
                sd: stat::standard_deviation(&values),
                comparison: base.map(|base| compare(figure, &values, base)),
                values,
            })
        });
        all.push(FigureResults { figure, settings: settings.collect(), ios: fewest_ios(records, figure) });
    }
    all
}

/// What the application reports under any setting.
fn reported(runs: &[Vec<&RunRecord>]) -> Vec<Figure> {
    let mut all = Vec::new();
    for run in runs.iter().filter_map(|runs| runs.first()) {
        let own = run.result.app.as_ref().map(Figure::reported).unwrap_or_default();
        own.into_iter().for_each(|figure| {
            if !all.contains(&figure) {
                all.push(figure);
            }
        });
    }
    all
}

/// I/Os that a latency rests on in the run with the fewest.
fn fewest_ios(records: OnDevice<'_>, figure: Figure) -> Option<u64> {
    let is_sync = figure.is_latency_of_sync()?;
    let ios = records.runs().map(|run| {
        let latency = &run.result.latency;
        if is_sync { latency.reads.count() + latency.writes_sync.count() } else { latency.writes_async.count() }
    });
    ios.min()
}

/// Marks the comparisons that stay significant among all of them.
fn correct_for_many(figures: &mut [FigureResults]) {
    let comparisons = || {
        let settings = figures.iter().flat_map(|results| &results.settings);
        settings.filter_map(|setting| setting.as_ref()?.comparison.as_ref())
    };
    let p: Vec<f64> = comparisons().filter_map(|comparison| comparison.p).collect();
    let mut survives = stat::holm(&p, SIGNIFICANCE).into_iter();
    for setting in figures.iter_mut().flat_map(|results| &mut results.settings) {
        if let Some(comparison) = setting.as_mut().and_then(|setting| setting.comparison.as_mut())
            && comparison.p.is_some()
        {
            comparison.survives_all = survives.next().unwrap_or(false);
        }
    }
}

/// For every headline figure, the setting of the best mean and those that do not differ from it.
fn answer(figures: &[FigureResults]) -> Answer {
    let mut answer = Answer::default();
    for results in figures.iter().filter(|results| results.concludes()) {
        let having: Vec<(usize, &SettingFigure)> =
            results.settings.iter().enumerate().filter_map(|(number, own)| Some((number, own.as_ref()?))).collect();
        let better = |a: f64, b: f64| match results.figure.direction() {
            crate::Direction::Higher => b.total_cmp(&a),
            _ => a.total_cmp(&b),
        };
        let Some((_, best)) = having.iter().min_by(|a, b| better(a.1.mean, b.1.mean)) else { continue };
        let equals = |own: &SettingFigure| !compare(results.figure, &own.values, &best.values).verdict.differs();
        let group: Vec<usize> = having.iter().filter(|(_, own)| equals(own)).map(|(number, _)| *number).collect();
        if group.len() == having.len() {
            answer.alike.push(results.figure);
        } else if let Some((_, of)) = answer.best.iter_mut().find(|(settings, _)| *settings == group) {
            of.push(results.figure);
        } else {
            answer.best.push((group, vec![results.figure]));
        }
    }
    answer.best.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.len()));
    answer
}

/// Rounded down to one significant digit, at least 2.
fn one_digit(value: f64) -> f64 {
    let unit = 10f64.powf(value.max(1.0).log10().floor());
    ((value / unit).floor() * unit).max(2.0)
}

/// Looks for what is doubtful.
struct Doubts<'a> {
    records: OnDevice<'a>,
    results: &'a Results,
    fairness: &'a Fairness,
}

impl Doubts<'_> {
    fn all(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let warnings = self.records.all().warnings.iter();
        doubts.extend(warnings.map(|problem| Doubt::RecordsDamaged { problem: problem.clone() }));
        let workload = &self.records.header().workload;
        if let Some(first) = workload.warnings.first() {
            doubts.push(Doubt::WorkloadDamaged { first: first.clone(), total: workload.warnings_total });
        }
        self.runs(&mut doubts);
        self.load(&mut doubts);
        self.tails(&mut doubts);
        self.sameness(&mut doubts);
        self.company(&mut doubts);
        self.many(&mut doubts);
        self.notes(&mut doubts);
        doubts
    }

    fn labels(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let settings = self.records.header().settings.iter().enumerate();
        settings.filter(|(number, _)| wanted(*number)).map(|(_, setting)| setting.label.clone()).collect()
    }

    fn of(&self, figure: Figure, setting: usize) -> Option<&SettingFigure> {
        self.results.figure(figure)?.settings.get(setting)?.as_ref()
    }

    fn runs(&self, doubts: &mut Vec<Doubt>) {
        let header = self.records.header();
        let rounds = self.results.rounds;
        let alone_missing = self.records.alone_missing() as u64;
        if rounds < header.runs || alone_missing > 0 {
            doubts.push(Doubt::Incomplete { rounds, planned: header.runs, alone_missing });
        }
        if rounds < RUNS_PUBLISHED && rounds > 0 {
            doubts.push(Doubt::FewRuns { rounds });
        }
        let finish = self.results.figure(Figure::Finish);
        let seconds = finish.iter().flat_map(|results| results.settings.iter().flatten().flat_map(|own| &own.values));
        let seconds = seconds.copied().fold(f64::INFINITY, f64::min);
        if seconds < SECONDS_PUBLISHED {
            doubts.push(Doubt::Short { seconds, kind: header.workload.kind });
        }
    }

    fn load(&self, doubts: &mut Vec<Doubt>) {
        let header = self.records.header();
        let utilisation = |setting| self.of(Figure::Utilisation, setting).map_or(100.0, |own| own.mean);
        let idle = self.labels(|setting| utilisation(setting) < IDLE_PERCENT);
        let is_trace = header.workload.kind == WorkloadKind::Trace;
        let speed = match header.replay {
            Replay::Open { speed } if is_trace => Some(speed),
            _ => None,
        };
        if !idle.is_empty() {
            let highest = (0..header.settings.len()).map(utilisation).filter(|&u| u < IDLE_PERCENT).fold(0.0, f64::max);
            let now = speed.unwrap_or(1.0);
            let speed = (is_trace && highest > 0.0).then(|| now * one_digit(BUSY_PERCENT / highest));
            doubts.push(Doubt::Idle { settings: idle, utilisation_percent: highest, speed });
        }
        let (Some(speed), Some(span_ns)) = (speed, header.workload.span_ns) else { return };
        let arrivals_s = span_ns as f64 / 1e9 / speed;
        let finish = |setting| self.of(Figure::Finish, setting).map_or(0.0, |own| own.mean);
        let overloaded = |setting: usize| {
            let late_s = finish(setting) - arrivals_s;
            let is_late = late_s > arrivals_s * OVERLOAD_LATE_SHARE || late_s > OVERLOAD_LATE_S;
            utilisation(setting) >= OVERLOAD_PERCENT && is_late
        };
        let settings = self.labels(overloaded);
        if !settings.is_empty() {
            let finish_s = (0..header.settings.len()).map(finish).fold(0.0, f64::max);
            doubts.push(Doubt::Overload { settings, arrivals_s, finish_s });
        }
    }

    fn tails(&self, doubts: &mut Vec<Doubt>) {
        for (mean, sync) in [(Figure::SyncMean, true), (Figure::AsyncMean, false)] {
            let Some(ios) = self.results.figure(mean).and_then(|results| results.ios) else { continue };
            if ios < FEW_IOS {
                doubts.push(Doubt::FewIos { sync, ios });
                continue;
            }
            for figure in self.results.figures.iter().map(|results| results.figure) {
                let Some((q, _)) = figure.quantile().filter(|&(_, is_sync)| is_sync == sync) else { continue };
                let above = ios - (q * ios as f64).ceil() as u64;
                if above < TAIL_IOS_MIN {
                    doubts.push(Doubt::ThinTail { figure, ios, above });
                }
            }
        }
    }

    /// All values of a setting, figure after figure.
    fn values(&self, setting: usize) -> Vec<Option<&[f64]>> {
        let figures = self.results.figures.iter();
        figures.map(|results| results.settings[setting].as_ref().map(|own| own.values.as_slice())).collect()
    }

    fn sameness(&self, doubts: &mut Vec<Doubt>) {
        let rounds = self.results.rounds;
        let constant = |setting: usize| {
            let values = self.values(setting);
            values.iter().flatten().all(|values| values.iter().all(|value| *value == values[0]))
        };
        let settings = if rounds > 1 { self.labels(constant) } else { Vec::new() };
        if !settings.is_empty() {
            doubts.push(Doubt::NoVariance { settings, runs: rounds });
        }
        let labels = self.labels(|_| true);
        for setting in 1..labels.len() {
            let own = self.values(setting);
            if rounds > 0
                && let Some(other) = (0..setting).find(|&other| self.values(other) == own)
            {
                let (setting, same_as) = (labels[setting].clone(), labels[other].clone());
                doubts.push(Doubt::ChangedNothing { setting, same_as });
            }
        }
    }

    fn company(&self, doubts: &mut Vec<Doubt>) {
        let counted = self.fairness.tasks.len() as u64;
        // The tasks of an application belong together: none of them is run alone.
        let together = self.records.header().workload.kind == WorkloadKind::Application;
        if self.results.rounds == 0 || self.records.alone_missing() > 0 || together {
            return;
        }
        if counted < 2 {
            let first = self.records.runs().next().map(|run| run.result.tasks.as_slice()).unwrap_or_default();
            let busy = first.iter().filter(|task| task.ios >= crate::fairness::ALONE_IOS_MIN).count();
            doubts.push(Doubt::NoFairness { tasks: busy as u64 });
        } else if self.fairness.excluded > 0 {
            let excluded_percent = self.fairness.excluded_share * 100.0;
            doubts.push(Doubt::FairnessPartial { counted, excluded: self.fairness.excluded as u64, excluded_percent });
        }
    }

    fn many(&self, doubts: &mut Vec<Doubt>) {
        let mut comparisons = 0;
        let mut fragile = Vec::new();
        for results in &self.results.figures {
            for (setting, own) in results.settings.iter().enumerate() {
                let Some(comparison) = own.as_ref().and_then(|own| own.comparison.as_ref()) else { continue };
                comparisons += 1;
                if comparison.verdict.differs() && !comparison.survives_all {
                    fragile.push((self.records.header().settings[setting].label.clone(), results.figure));
                }
            }
        }
        if !fragile.is_empty() {
            doubts.push(Doubt::ManyComparisons { comparisons, fragile });
        }
    }

    /// What the simulator noted in the first run of each setting, each note once.
    fn notes(&self, doubts: &mut Vec<Doubt>) {
        let settings = self.records.header().settings.len();
        let mut found: Vec<(&Note, Vec<usize>)> = Vec::new();
        for setting in 0..settings {
            let Some(run) = self.records.runs().find(|run| run.setting == setting) else { continue };
            for note in &run.result.notes {
                match found.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, of)) => of.push(setting),
                    None => found.push((note, vec![setting])),
                }
            }
        }
        for (note, of) in found {
            let everywhere = of.len() == settings;
            let labels = if everywhere { Vec::new() } else { self.labels(|setting| of.contains(&setting)) };
            doubts.push(Doubt::Simulated { settings: labels, note: note.clone() });
        }
    }
}
