//! Metrics of a run: names, units and better directions. Each metric has one declaration.
//!
//! Some metrics are declared only when they first appear: those that applications report
//! ([`Figure::Application`]), those of single tasks ([`Figure::Task`]), and other metrics that
//! goals name ([`Figure::Goal`]).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use iosched_sim::{Histogram, JobResult, RunResult, TaskResult};
use iosched_workload::app;
use iosched_workload::fio::SyncKind;
use serde::{Deserialize, Serialize, Serializer};

use crate::goal::{Measure, MeasureRecord, Statistic};
use crate::record::WorkloadKind;

/// Better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
    /// Neither direction is better: the metric describes the device, not the service to the
    /// workload.
    Neither,
}

impl Direction {
    /// Returns the better direction in data, `higher` or `lower`; `None` for a metric without a
    /// better direction.
    #[must_use]
    pub const fn better(self) -> Option<&'static str> {
        match self {
            Self::Higher => Some("higher"),
            Self::Lower => Some("lower"),
            Self::Neither => None,
        }
    }
}

impl From<app::Better> for Direction {
    fn from(better: app::Better) -> Self {
        match better {
            app::Better::Higher => Self::Higher,
            app::Better::Lower => Self::Lower,
        }
    }
}

/// A metric of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Metric that an application reports.
    Application(Reported),
    /// Metric that a goal names, if no other variant covers it.
    Goal(Reported),
    /// Metric of all tasks with one name.
    Task(Reported, TaskFigure),
    /// Bytes read and written per second of the run.
    Throughput,
    /// I/Os per second of the run. I/Os are counted as tasks submit them, before merges.
    Iops,
    /// Time to the last completion, without the warm-up.
    Finish,
    /// Mean latency of reads and sync writes.
    SyncMean,
    /// Median latency of reads and sync writes.
    SyncP50,
    /// 99th percentile of the latency of reads and sync writes.
    SyncP99,
    /// 99.9th percentile of the latency of reads and sync writes.
    SyncP999,
    /// Longest latency of a read or sync write.
    SyncWorst,
    /// Mean latency of async writes, which no process waits for.
    AsyncMean,
    /// Median latency of async writes.
    AsyncP50,
    /// 99th percentile of the latency of async writes.
    AsyncP99,
    /// 99.9th percentile of the latency of async writes.
    AsyncP999,
    /// Longest latency of an async write.
    AsyncWorst,
    /// Percentage of the run in which the device had work.
    Utilisation,
    /// Jain's index of the tasks' slowdowns, compared with runs of each task alone.
    Fairness,
}

/// Kind of a metric of all tasks with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskFigure {
    /// I/Os per second of all tasks of that name together, over the time in which they ran.
    Iops,
    /// 99th percentile of the latency of the tasks' I/Os.
    P99,
    /// 99th percentile of the time of one sync system call, such as fsync, of fio jobs or an
    /// application.
    SyncP99(SyncKind),
}

/// Metric that is declared when it first appears. Two such metrics are equal if their identifiers
/// and units are equal.
#[derive(Clone, Copy, Debug)]
pub struct Reported(&'static Spec);

impl PartialEq for Reported {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Reported {}

impl PartialOrd for Reported {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Reported {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.id, self.0.unit).cmp(&(other.0.id, other.0.unit))
    }
}

/// Declaration of a metric.
#[derive(Debug)]
struct Spec {
    id: &'static str,
    name: &'static str,
    unit: &'static str,
    direction: Direction,
    /// Smallest difference worth a verdict, per cent of the baseline.
    relevant_percent: f64,
    headline: bool,
    doc: &'static str,
    /// For a metric of a goal: the goal's measure.
    measure: Option<Measure>,
    /// For a metric of single tasks: their name.
    task: Option<&'static str>,
}

/// Smallest relevant difference, per cent. Smaller differences are no reason to change a setting,
/// because the error of a model is larger.
const RELEVANT_PERCENT: f64 = 0.5;
/// Smallest quantile that counts as a metric of the slowest I/Os.
pub const TAIL: f64 = 0.9;
/// Largest number of task names with metrics. A table with more names would be too long to read.
const TASK_NAMES_MAX: usize = 6;
/// Prefix of a task metric's name, if another metric has the same name.
const TASK: &str = "task ";
/// Largest number of task names for which all tables have rows for every name. Up to this number,
/// the sentence about a setting also mentions every name.
pub(crate) const TASK_NAMES_SHOWN: usize = 3;
/// Smallest relevant difference of a quantile, per cent. The histogram's buckets are 1.6 % wide, so
/// two neighbouring buckets can differ by this much without a real difference.
const RELEVANT_QUANTILE_PERCENT: f64 = 2.0;

/// Returns the name of the job, if the task is a copy of it (`numjobs`): `db` for `db.3`.
pub(crate) fn job_of_copy(task: &str) -> Option<&str> {
    let (job, number) = task.rsplit_once('.')?;
    number.parse::<u32>().ok().map(|_| job)
}

/// Returns the name under which a task has metrics. All copies of a fio job have the job's name.
pub(crate) fn metric_name<'t>(task: &'t str, jobs: &[JobResult]) -> &'t str {
    let is_copied = |job: &&str| jobs.iter().filter(|result| result.name == *job).nth(1).is_some();
    job_of_copy(task).filter(is_copied).unwrap_or(task)
}

/// Returns the tasks with a name. The name of a fio job with copies means all copies.
pub(crate) fn tasks_called<'r>(run: &'r RunResult, name: &str) -> Vec<&'r TaskResult> {
    let is_copied = run.jobs.iter().filter(|job| job.name == name).nth(1).is_some();
    let is_called = |task: &&TaskResult| task.name == name || is_copied && job_of_copy(&task.name) == Some(name);
    run.tasks.iter().filter(is_called).collect()
}

macro_rules! figures {
    ($($figure:ident $id:literal $name:literal $unit:literal $direction:ident $relevant:ident $headline:ident $doc:literal;)*) => {
        impl Figure {
            /// All metrics that do not depend on the workload, in the order of tables.
            pub const ALL: &[Self] = &[$(Self::$figure),*];

            fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$figure => &Spec {
                        id: $id,
                        name: $name,
                        unit: $unit,
                        direction: Direction::$direction,
                        relevant_percent: $relevant,
                        headline: $headline,
                        doc: $doc,
                        measure: None,
                        task: None,
                    },)*
                    Self::Application(Reported(spec)) | Self::Goal(Reported(spec)) | Self::Task(Reported(spec), _) => spec,
                }
            }
        }
    };
}

figures! {
    Throughput "throughput" "throughput" "MB/s" Higher RELEVANT_PERCENT false "bytes that the tasks read and wrote, \
     per second of the run";
    Iops "iops" "IOPS" "1/s" Higher RELEVANT_PERCENT false "I/Os of the tasks, per second of the run; a merged or \
     split I/O counts once";
    Finish "finish" "finish" "s" Lower RELEVANT_PERCENT true "time from the start to the last completion, \
     without the warm-up";
    SyncMean "sync_mean" "sync mean" "ms" Lower RELEVANT_PERCENT true "mean latency of reads and sync writes (I/O \
     that a process waits for)";
    SyncP50 "sync_p50" "sync p50" "ms" Lower RELEVANT_QUANTILE_PERCENT false "median latency of reads and sync writes";
    SyncP99 "sync_p99" "sync p99" "ms" Lower RELEVANT_QUANTILE_PERCENT true "99 % of reads and sync writes complete \
     within this latency";
    SyncP999 "sync_p999" "sync p99.9" "ms" Lower RELEVANT_QUANTILE_PERCENT false "99.9 % of reads and sync writes \
     complete within this latency";
    SyncWorst "sync_worst" "sync worst" "ms" Lower RELEVANT_PERCENT false "longest latency of a read or sync write";
    AsyncMean "async_mean" "async mean" "ms" Lower RELEVANT_PERCENT false "mean latency of async writes (that no \
     process waits for)";
    AsyncP50 "async_p50" "async p50" "ms" Lower RELEVANT_QUANTILE_PERCENT false "median latency of async writes";
    AsyncP99 "async_p99" "async p99" "ms" Lower RELEVANT_QUANTILE_PERCENT true "99 % of async writes complete \
     within this latency";
    AsyncP999 "async_p999" "async p99.9" "ms" Lower RELEVANT_QUANTILE_PERCENT false "99.9 % of async writes complete \
     within this latency";
    AsyncWorst "async_worst" "async worst" "ms" Lower RELEVANT_PERCENT false "longest latency of an async write";
    Utilisation "utilisation" "utilisation" "%" Neither RELEVANT_PERCENT false "share of the run during which the \
     device was busy";
    Fairness "fairness" "fairness" "0..1" Higher RELEVANT_PERCENT true "how equally tasks slow each other down, \
        from 0 (unequally) to 1 (equally); Jain's index of their slowdowns";
}

impl Figure {
    /// Returns the metrics of an application, in the order of its report. If several metrics have
    /// the same name, they are one value in different units, and only the first metric is a
    /// headline.
    #[must_use]
    pub fn reported(report: &app::Report) -> Vec<Self> {
        let figures = &report.figures;
        let is_first = |number: usize| figures[..number].iter().all(|before| before.name != figures[number].name);
        let figure = |(number, reported): (usize, &app::Figure)| {
            let (id, name) = (reported.name.clone(), reported.name.replace('_', " "));
            Self::Application(declared(Declaration {
                id,
                name,
                unit: reported.unit.to_string(),
                direction: reported.better.into(),
                relevant_percent: RELEVANT_PERCENT,
                headline: is_first(number),
                doc: "value that the application reports",
                measure: None,
                task: None,
            }))
        };
        figures.iter().enumerate().map(figure).collect()
    }

    /// Returns the latencies of an application's sync system calls. Calls that are too rare for a
    /// 99th percentile are left out.
    #[must_use]
    pub fn of_syncs(run: &RunResult) -> Vec<Self> {
        const CALLS_MIN: u64 = 100;
        let often = |call: &SyncKind| run.sync_calls.of(*call).count() >= CALLS_MIN;
        let what = SyncKind::ALL.into_iter().filter(often).map(TaskFigure::SyncP99);
        what.map(|what| Self::Task(declared(what.declaration(None, true)), what)).collect()
    }

    /// Returns the metric that a goal names, with the properties from `record`.
    #[must_use]
    pub(crate) fn of_goal(measure: Measure, record: &MeasureRecord) -> Self {
        let MeasureRecord { name, unit, direction, relevant_percent } = record;
        Self::Goal(declared(Declaration {
            id: name.clone(),
            name: name.clone(),
            unit: unit.clone(),
            direction: *direction,
            relevant_percent: *relevant_percent,
            headline: true,
            doc: "metric that the goal names",
            measure: Some(measure),
            task: None,
        }))
    }

    /// Returns the metrics of single tasks, grouped by name, and the number of all names.
    ///
    /// If there are many names, the names with the most I/Os come first, and only `TASK_NAMES_MAX`
    /// names have metrics. The copies of a fio job have one name: that of the job.
    ///
    /// If there is only one name, it has metrics in two cases: the name is the name of a job, or a
    /// page cache separates the tasks from the device (`is_cached`). fio's `jobs` also have
    /// latencies of sync calls. If several tasks have the same name, the name of the metric
    /// contains their count, such as `8 processes`. The word for the tasks depends on the `kind` of
    /// the workload.
    #[must_use]
    pub fn of_tasks(
        tasks: &[TaskResult],
        jobs: &[JobResult],
        is_cached: bool,
        kind: WorkloadKind,
    ) -> (Vec<Vec<Self>>, usize) {
        // Name, I/Os and number of tasks.
        let mut names: Vec<(&str, u64, u64)> = Vec::new();
        for task in tasks.iter().filter(|task| !task.name.is_empty()) {
            let named = metric_name(&task.name, jobs);
            match names.iter_mut().find(|(name, ..)| *name == named) {
                Some((_, ios, count)) => {
                    *ios += task.latency.count();
                    *count += 1;
                }
                None => names.push((named, task.latency.count(), 1)),
            }
        }
        let all = names.len();
        let few = all <= TASK_NAMES_SHOWN;
        if !few {
            names.sort_by_key(|(_, ios, _)| std::cmp::Reverse(*ios));
            names.truncate(TASK_NAMES_MAX);
        }
        let figures = |(name, _, count): &(&str, u64, u64)| {
            let word = (*count > 1).then(|| format!("{count} {}", kind.task_word(*count)));
            let named = Some((*name, word.as_deref()));
            let syncs =
                |call: &SyncKind| jobs.iter().any(|job| job.name == *name && !job.sync_calls.of(*call).is_empty());
            let calls = SyncKind::ALL.into_iter().filter(syncs).map(TaskFigure::SyncP99);
            let usual = TaskFigure::USUAL.into_iter().filter(|_| all > 1 || is_cached || !jobs.is_empty());
            let all = usual.chain(calls).map(|what| Self::Task(declared(what.declaration(named, few)), what));
            all.collect::<Vec<_>>()
        };
        (names.iter().map(figures).filter(|figures| !figures.is_empty()).collect(), all)
    }

    /// Returns the name of the metric in data, such as `sync_p99`.
    #[must_use]
    pub fn id(self) -> &'static str {
        self.spec().id
    }

    /// Returns the name of the metric for display, such as "sync p99".
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Returns whether the metric covers all requests of the device, from any source.
    #[must_use]
    pub const fn is_of_device(self) -> bool {
        !matches!(
            self,
            Self::Application(_) | Self::Goal(_) | Self::Task(..) | Self::Finish | Self::Utilisation | Self::Fairness
        )
    }

    /// Returns whether the metric covers only a part of the workload: a program, a job, or the
    /// processes of one name.
    #[must_use]
    pub fn is_of_part(self) -> bool {
        matches!(self, Self::Application(_) | Self::Task(..)) || self.task().is_some()
    }

    /// Returns the name of the metric for display. If the output also has metrics of parts of the
    /// workload (`beside_parts`), metrics of the device get a prefix: "device sync p99". No other
    /// function adds the prefix.
    #[must_use]
    pub fn label(self, beside_parts: bool) -> String {
        let device = if beside_parts && self.is_of_device() { "device " } else { "" };
        format!("{device}{}", self.name())
    }

    /// Returns the metric as a phrase for sentences: "the p99 of sync I/O", "the IOPS of db". If
    /// the output also has metrics of parts of the workload (`beside_parts`), the phrase of a
    /// device latency says that the latency covers all I/O. For a metric without a phrase, returns
    /// the label.
    #[must_use]
    pub fn phrase(self, beside_parts: bool) -> String {
        let all = if beside_parts { "all " } else { "" };
        match self {
            Self::Finish => "the time to finish".to_owned(),
            Self::Task(_, what) => {
                let suffix = what.suffix();
                match self.name().strip_suffix(&suffix) {
                    Some(tasks) if !tasks.is_empty() => format!("the{suffix} of {tasks}"),
                    _ => format!("the {}", self.name()),
                }
            }
            _ => match (self.is_latency_of_sync(), self.name().split_once(' ')) {
                (Some(_), Some((class, statistic))) => {
                    let statistic = match statistic {
                        "mean" => "mean latency",
                        "p50" => "median latency",
                        "worst" => "longest latency",
                        quantile => quantile,
                    };
                    format!("the {statistic} of {all}{class} I/O")
                }
                _ => self.label(beside_parts),
            },
        }
    }

    /// Returns the unit of the values that [`Figure::of`] returns.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.spec().unit
    }

    /// Returns the better direction.
    #[must_use]
    pub fn direction(self) -> Direction {
        self.spec().direction
    }

    /// Returns the smallest relevant difference from the baseline, per cent: 2 for quantiles,
    /// because this is the resolution of histograms, and 0.5 for all other metrics.
    #[must_use]
    pub fn relevant_percent(self) -> f64 {
        self.spec().relevant_percent
    }

    /// Returns whether the metric is one of the few that the sentence about a setting mentions.
    #[must_use]
    pub fn is_headline(self) -> bool {
        self.spec().headline
    }

    /// Returns a description of the metric in one line.
    #[must_use]
    pub fn doc(self) -> &'static str {
        self.spec().doc
    }

    /// Returns the name of the tasks that the metric covers, if the metric is about single tasks.
    /// For a metric of a goal, the goal names the tasks.
    #[must_use]
    pub fn task(self) -> Option<&'static str> {
        match self {
            Self::Task(Reported(spec), _) => spec.task,
            _ => self.measure()?.task(),
        }
    }

    /// Returns the goal's measure, if the metric comes from a goal.
    pub(crate) fn measure(self) -> Option<&'static Measure> {
        match self {
            Self::Goal(Reported(spec)) => spec.measure.as_ref(),
            _ => None,
        }
    }

    /// Returns the quantile, if the metric comes from a goal for a latency quantile.
    pub(crate) fn quantile_of_goal(self) -> Option<f64> {
        match self.measure()? {
            Measure::Latency(Statistic::Quantile(q), _) => Some(*q),
            _ => None,
        }
    }

    /// Returns the quantile, and whether it covers sync I/Os; `None` for other metrics.
    #[must_use]
    pub fn quantile(self) -> Option<(f64, bool)> {
        Some(match self {
            Self::SyncP50 => (0.5, true),
            Self::SyncP99 => (0.99, true),
            Self::SyncP999 => (0.999, true),
            Self::AsyncP50 => (0.5, false),
            Self::AsyncP99 => (0.99, false),
            Self::AsyncP999 => (0.999, false),
            _ => return None,
        })
    }

    /// Returns whether a latency covers sync I/Os; `None` for other metrics.
    #[must_use]
    pub fn is_latency_of_sync(self) -> Option<bool> {
        match self {
            Self::SyncMean | Self::SyncP50 | Self::SyncP99 | Self::SyncP999 | Self::SyncWorst => Some(true),
            Self::AsyncMean | Self::AsyncP50 | Self::AsyncP99 | Self::AsyncP999 | Self::AsyncWorst => Some(false),
            _ => None,
        }
    }

    /// Returns whether the metric covers only the slowest I/Os. Models are less accurate for the
    /// slowest I/Os than for rates and means.
    #[must_use]
    pub fn is_tail(self) -> bool {
        let worst = matches!(
            self,
            Self::SyncWorst | Self::AsyncWorst | Self::Task(_, TaskFigure::P99 | TaskFigure::SyncP99(_))
        );
        worst || self.quantile().is_some_and(|(q, _)| q >= TAIL) || self.measure().is_some_and(Measure::is_tail)
    }

    /// Returns the value in a run after the warm-up, in the metric's unit. Returns `None` if the
    /// value was not measured, for example if the run has no matching I/O. [`Figure::Fairness`]
    /// needs more than one run, so its value is `None` here.
    #[must_use]
    pub fn of(self, run: &RunResult) -> Option<f64> {
        const MS: f64 = 1e6;
        let counted_s = run.counted_ns() as f64 / 1e9;
        let per_second = |count: f64| (counted_s > 0.0 && run.knows_ios()).then(|| count / counted_s);
        let sync = || some(run.latency.sync());
        let nobody_waits = || some(run.latency.writes_async.clone());
        match self {
            Self::Throughput => per_second((run.bytes_read + run.bytes_written) as f64 / 1e6),
            Self::Iops => per_second(run.ios as f64),
            Self::Finish => (counted_s > 0.0).then_some(counted_s),
            Self::SyncMean => sync().map(|h| h.mean_ns() / MS),
            Self::SyncP50 | Self::SyncP99 | Self::SyncP999 | Self::AsyncP50 | Self::AsyncP99 | Self::AsyncP999 => {
                let (q, is_sync) = self.quantile()?;
                let histogram = if is_sync { sync() } else { nobody_waits() };
                histogram.map(|h| h.quantile_ns(q) as f64 / MS)
            }
            Self::SyncWorst => sync().map(|h| h.max_ns() as f64 / MS),
            Self::AsyncMean => nobody_waits().map(|h| h.mean_ns() / MS),
            Self::AsyncWorst => nobody_waits().map(|h| h.max_ns() as f64 / MS),
            Self::Utilisation => run.utilisation().map(|share| share * 100.0),
            Self::Fairness => None,
            Self::Task(_, TaskFigure::SyncP99(call)) => {
                some(latency_of_syncs(run, call, self.task())).map(|h| h.quantile_ns(0.99) as f64 / MS)
            }
            Self::Task(_, what) => {
                let mut latency = Histogram::default();
                let tasks = tasks_called(run, self.task()?);
                tasks.iter().for_each(|task| latency.merge(&task.latency));
                match what {
                    TaskFigure::Iops => {
                        let ios = latency.count() as f64;
                        run.active_ns(&tasks).map(|ns| ios * 1e9 / ns as f64).or_else(|| per_second(ios))
                    }
                    TaskFigure::P99 | TaskFigure::SyncP99(_) => some(latency).map(|h| h.quantile_ns(0.99) as f64 / MS),
                }
            }
            Self::Goal(Reported(spec)) => spec.measure.as_ref()?.of(run),
            Self::Application(Reported(spec)) => {
                let mut figures = run.app.iter().flat_map(|report| &report.figures);
                figures
                    .find(|reported| reported.name == spec.id && reported.unit == spec.unit)
                    .map(|reported| reported.value)
            }
        }
    }
}

impl Serialize for Figure {
    /// Serializes the metric as its [`Figure::id`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl TaskFigure {
    /// Kinds of metrics that every task has.
    pub const USUAL: [Self; 2] = [Self::Iops, Self::P99];

    /// Returns the text after the task's name.
    fn suffix(self) -> String {
        match self {
            Self::Iops => " IOPS".to_owned(),
            Self::P99 => " p99".to_owned(),
            Self::SyncP99(call) => format!(" {} p99", call.name()),
        }
    }

    /// Returns the declaration for the tasks with one name. If several tasks have this name, the
    /// second text in `task` is their count in words, such as `8 processes`. The displayed name
    /// contains this count, but the name in data does not.
    fn declaration(self, task: Option<(&str, Option<&str>)>, headline: bool) -> Declaration {
        let (task, count) = task.map_or((None, None), |(task, count)| (Some(task), count));
        let plain = format!("{}{}", task.unwrap_or_default(), self.suffix());
        let plain = plain.trim_start();
        // A process may have the name "sync". Without a prefix, its metric would have the name
        // "sync p99" of another metric.
        let taken = Figure::ALL.iter().any(|figure| figure.name() == plain);
        let prefix = if taken { TASK } else { "" };
        let name = match (task, count) {
            (Some(task), Some(count)) => format!("{prefix}{task} ({count}){}", self.suffix()),
            _ => format!("{prefix}{plain}"),
        };
        let id = format!("{prefix}{plain}").to_lowercase().replace(|c: char| !c.is_alphanumeric(), "_");
        let (unit, direction, relevant_percent, doc) = match self {
            Self::Iops => (
                "1/s",
                Direction::Higher,
                RELEVANT_PERCENT,
                "I/Os of the tasks with this name, per second of their run time",
            ),
            Self::P99 => (
                "ms",
                Direction::Lower,
                RELEVANT_QUANTILE_PERCENT,
                "99 % of the I/Os of these tasks complete within this latency",
            ),
            Self::SyncP99(_) => {
                ("ms", Direction::Lower, RELEVANT_QUANTILE_PERCENT, "99 % of these calls take at most this time")
            }
        };
        let headline = headline && self != Self::P99;
        let (unit, task) = (unit.to_owned(), task.map(str::to_owned));
        Declaration { id, name, unit, direction, relevant_percent, headline, doc, measure: None, task }
    }
}

/// Declaration of a metric that may be new.
struct Declaration {
    id: String,
    name: String,
    unit: String,
    direction: Direction,
    relevant_percent: f64,
    headline: bool,
    doc: &'static str,
    measure: Option<Measure>,
    task: Option<String>,
}

/// Returns the declaration with this name, unit and headline flag. Creates the declaration at the
/// first call. Declarations are never freed, because there are only a few: one for each metric of
/// an application and each name of tasks.
fn declared(new: Declaration) -> Reported {
    static DECLARED: Mutex<BTreeMap<(String, String, bool), Reported>> = Mutex::new(BTreeMap::new());
    let mut all = DECLARED.lock().unwrap_or_else(PoisonError::into_inner);
    let Declaration { id, name, unit, direction, relevant_percent, headline, doc, measure, task } = new;
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    *all.entry((name.clone(), unit.clone(), headline)).or_insert_with(|| {
        let (id, name, unit, task) = (leaked(id), leaked(name), leaked(unit), task.map(leaked));
        let spec = Spec { id, name, unit, direction, relevant_percent, headline, doc, measure, task };
        Reported(Box::leak(Box::new(spec)))
    })
}

/// Returns the latencies of one kind of sync call. If `job` is given, only the calls of the fio
/// jobs with this name count. Otherwise, the calls of all jobs and of the application count.
pub(crate) fn latency_of_syncs(run: &RunResult, call: SyncKind, job: Option<&str>) -> Histogram {
    let mut all = Histogram::default();
    if job.is_none() {
        all.merge(run.sync_calls.of(call));
    }
    let jobs = run.jobs.iter().filter(|job_result| job.is_none_or(|job| job_result.name == job));
    jobs.for_each(|job_result| all.merge(job_result.sync_calls.of(call)));
    all
}

fn some(histogram: Histogram) -> Option<Histogram> {
    (!histogram.is_empty()).then_some(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_of_metrics_are_unique() {
        for name in [Figure::id, Figure::name] {
            let mut names: Vec<&str> = Figure::ALL.iter().map(|&figure| name(figure)).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), Figure::ALL.len());
        }
        assert_eq!(serde_json::to_value(Figure::SyncP99).unwrap(), "sync_p99");
    }

    #[test]
    fn device_metrics_are_labelled_next_to_metrics_of_tasks() {
        assert_eq!(
            (Figure::SyncP99.label(true), Figure::SyncP99.label(false)),
            ("device sync p99".into(), "sync p99".into())
        );
        assert_eq!((Figure::Finish.label(true), Figure::Fairness.label(true)), ("finish".into(), "fairness".into()));
        let task = TaskResult { name: "db".to_owned(), ..TaskResult::default() };
        let (figures, _) = Figure::of_tasks(
            &[task],
            &[JobResult { name: "db".to_owned(), ..JobResult::default() }],
            false,
            WorkloadKind::Jobs,
        );
        assert!(
            figures
                .concat()
                .iter()
                .all(|figure| figure.is_of_part() && !figure.is_of_device() && figure.label(true) == figure.name())
        );
    }

    #[test]
    fn metrics_of_a_process_named_sync_have_separate_ids() {
        let task = |name: &str| TaskResult { name: name.to_owned(), ..TaskResult::default() };
        let (figures, names) = Figure::of_tasks(&[task("sync"), task("db")], &[], false, WorkloadKind::Trace);
        let figures = figures.concat();
        assert_eq!(names, 2);
        assert_eq!(
            figures.iter().map(|figure| figure.id()).collect::<Vec<_>>(),
            ["sync_iops", "task_sync_p99", "db_iops", "db_p99"]
        );
        assert_eq!(
            figures.iter().map(|figure| figure.task().unwrap()).collect::<Vec<_>>(),
            ["sync", "sync", "db", "db"]
        );
    }

    #[test]
    fn metrics_of_tasks_with_one_name_state_their_number() {
        let task = |name: &str, pid, ns| {
            let mut task = TaskResult { name: name.to_owned(), pid, ..TaskResult::default() };
            task.latency.record(ns);
            task
        };
        let mut tasks: Vec<TaskResult> = (1..=8).map(|pid| task("postgres", pid, 4_000_000)).collect();
        tasks.extend([task("sync", 9, 1_000_000), task("sync", 10, 2_000_000), task("dd", 11, 1_000_000)]);
        let figures = |kind| Figure::of_tasks(&tasks, &[], false, kind).0.concat();
        let names = |kind| figures(kind).iter().map(|figure| figure.name()).collect::<Vec<_>>();
        let of_processes = [
            "postgres (8 processes) IOPS",
            "postgres (8 processes) p99",
            "sync (2 processes) IOPS",
            "task sync (2 processes) p99",
            "dd IOPS",
            "dd p99",
        ];
        assert_eq!(names(WorkloadKind::Trace), of_processes);
        assert_eq!(names(WorkloadKind::Jobs)[0], "postgres (8 jobs) IOPS");
        // Names in data and in goals do not contain the number of tasks.
        let all = figures(WorkloadKind::Trace);
        let ids = ["postgres_iops", "postgres_p99", "sync_iops", "task_sync_p99", "dd_iops", "dd_p99"];
        assert_eq!(all.iter().map(|figure| figure.id()).collect::<Vec<_>>(), ids);
        assert_eq!([all[0], all[3], all[5]].map(Figure::task), [Some("postgres"), Some("sync"), Some("dd")]);
        let run = RunResult { tasks: tasks.clone(), finished_ns: 2_000_000_000, ios: 11, ..RunResult::default() };
        assert_eq!((all[0].of(&run), all[4].of(&run)), (Some(4.0), Some(0.5)));
    }

    #[test]
    fn copies_of_a_job_have_common_metrics() {
        let task = |name: String, ios: u64| {
            let mut task = TaskResult { name, ..TaskResult::default() };
            (0..ios).for_each(|_| task.latency.record(1_000_000));
            task
        };
        let job = |name: &str| JobResult { name: name.to_owned(), ..JobResult::default() };
        let mut tasks: Vec<_> = (0..16).map(|copy| task(format!("bg.{copy}"), 100)).collect();
        tasks.push(task("fg".to_owned(), 1));
        let mut jobs = vec![job("bg"); 16];
        jobs.push(job("fg"));
        let names = |jobs: &[JobResult]| {
            let (figures, all) = Figure::of_tasks(&tasks, jobs, false, WorkloadKind::Jobs);
            (figures.iter().map(|figures| figures[0].name()).collect::<Vec<_>>(), all)
        };
        assert_eq!(names(&jobs), (vec!["bg (16 jobs) IOPS", "fg IOPS"], 2));
        // A job with a dot in its name is not a copy.
        let sections: Vec<_> = tasks.iter().map(|task| job(&task.name)).collect();
        assert_eq!(names(&sections).1, 17);
        let figure = Figure::of_tasks(&tasks, &jobs, false, WorkloadKind::Jobs).0[0][0];
        let run = RunResult { tasks, jobs, finished_ns: 2_000_000_000, ios: 1601, ..RunResult::default() };
        assert_eq!((figure.task(), figure.of(&run)), (Some("bg"), Some(800.0)));
    }

    #[test]
    fn single_job_with_syncs_has_a_sync_latency_metric() {
        let task = |name: &str| TaskResult { name: name.to_owned(), ..TaskResult::default() };
        let mut job = JobResult { name: "wal".to_owned(), ..JobResult::default() };
        assert!(Figure::of_tasks(&[task("wal")], &[], false, WorkloadKind::Jobs).0.is_empty());
        job.sync_calls.fdatasync.record(4_000_000);
        let names = |is_cached: bool| {
            let jobs = std::slice::from_ref(&job);
            let (figures, names) = Figure::of_tasks(&[task("wal")], jobs, is_cached, WorkloadKind::Jobs);
            assert_eq!(names, 1);
            figures.concat().iter().map(|figure| figure.name()).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["wal IOPS", "wal p99", "wal fdatasync p99"]);
        assert_eq!(names(true), ["wal IOPS", "wal p99", "wal fdatasync p99"]);
        let (figures, _) = Figure::of_tasks(&[task("wal")], std::slice::from_ref(&job), false, WorkloadKind::Jobs);
        let figure = figures[0][2];
        let run = RunResult { jobs: vec![job], ..RunResult::default() };
        assert!((figure.of(&run).unwrap() - 4.0).abs() < 0.08);
        assert_eq!((figure.task(), figure.is_tail(), figure.of(&RunResult::default())), (Some("wal"), true, None));
    }

    #[test]
    fn application_with_100_syncs_has_a_sync_latency_metric() {
        let mut run = RunResult::default();
        (0..99).for_each(|_| run.sync_calls.record(SyncKind::Fsync, 2_000_000));
        assert!(Figure::of_syncs(&run).is_empty());
        run.sync_calls.record(SyncKind::Fsync, 2_000_000);
        let [figure] = Figure::of_syncs(&run)[..] else { panic!("one call") };
        assert_eq!((figure.id(), figure.name(), figure.unit(), figure.task()), ("fsync_p99", "fsync p99", "ms", None));
        assert!((figure.of(&run).unwrap() - 2.0).abs() < 0.04 && figure.is_tail() && figure.is_headline());
    }

    #[test]
    fn reported_values_of_an_application_are_metrics() {
        let reported = |name: &str, unit: &'static str, value: f64, better| app::Figure {
            name: name.to_owned(),
            unit: unit.into(),
            value,
            better,
        };
        let report = app::Report {
            figures: vec![
                reported("file_create", "s", 4.0, app::Better::Lower),
                reported("file_create", "files/s", 250.0, app::Better::Higher),
            ],
            series: Vec::new(),
        };
        let figures = Figure::reported(&report);
        let run = RunResult { app: Some(report.clone()), ..RunResult::default() };
        assert_eq!(figures.iter().map(|figure| figure.of(&run)).collect::<Vec<_>>(), [Some(4.0), Some(250.0)]);
        assert_eq!((figures[0].name(), figures[0].unit()), ("file create", "s"));
        assert_eq!((figures[0].direction(), figures[1].direction()), (Direction::Lower, Direction::Higher));
        assert_eq!((figures[0].is_headline(), figures[1].is_headline()), (true, false));
        assert_eq!(figures, Figure::reported(&report));
        assert_ne!(figures[0], figures[1]);
        assert_eq!(figures[0].of(&RunResult::default()), None);
    }

    #[test]
    fn a_run_without_async_writes_has_no_async_latency() {
        let mut run = RunResult { finished_ns: 2_000_000_000, ios: 4, bytes_read: 8_000_000, ..RunResult::default() };
        run.latency.reads.record(1_000_000);
        run.latency.writes_sync.record(3_000_000);
        run.device_busy_ns = 500_000_000;
        let of = |figure: Figure| figure.of(&run);
        assert_eq!(of(Figure::Throughput), Some(4.0));
        assert_eq!(of(Figure::Iops), Some(2.0));
        assert_eq!(of(Figure::Finish), Some(2.0));
        assert_eq!(of(Figure::SyncMean), Some(2.0));
        assert_eq!(of(Figure::SyncWorst), Some(3.0));
        assert_eq!(of(Figure::Utilisation), Some(25.0));
        assert_eq!(of(Figure::AsyncMean), None);
        assert_eq!(of(Figure::AsyncP99), None);
    }

    #[test]
    fn unmeasured_metrics_have_no_values() {
        let of =
            |run: &RunResult| Figure::ALL.iter().copied().filter(|figure| figure.of(run).is_some()).collect::<Vec<_>>();
        // An external command that was timed; the kernel's statistics of its disk are known.
        let mut run = RunResult { finished_ns: 2_000_000_000, ..RunResult::default() };
        assert_eq!(of(&run), [Figure::Finish, Figure::Utilisation]);
        run.device_unwatched = true;
        assert_eq!(of(&run), [Figure::Finish]);
        // A run that ended within the warm-up.
        let mut run = RunResult { finished_ns: 1_000_000, counted_from_ns: 2_000_000, ..RunResult::default() };
        run.tasks.push(TaskResult::default());
        assert_eq!(of(&run), []);
        // A run whose tasks completed no I/O.
        run.finished_ns = 3_000_000;
        assert_eq!(Figure::Iops.of(&run), Some(0.0));
    }

    #[test]
    fn metrics_exclude_the_warm_up() {
        let mut run = RunResult { finished_ns: 5_000_000_000, counted_from_ns: 3_000_000_000, ..RunResult::default() };
        (run.ios, run.bytes_read, run.device_busy_ns) = (240, 2_000_000, 1_000_000_000);
        let of = |figure: Figure| figure.of(&run);
        assert_eq!(of(Figure::Iops), Some(120.0));
        assert_eq!(of(Figure::Throughput), Some(1.0));
        assert_eq!((of(Figure::Finish), of(Figure::Utilisation)), (Some(2.0), Some(50.0)));
    }
}
