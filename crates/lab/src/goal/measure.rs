//! Measures: the metrics of a run that goals and constraints name, in the user's notation.

use std::fmt;

use iosched_sim::{Histogram, RunResult, TaskResult};
use iosched_trace::is_one_of_name;
use iosched_workload::fio::SyncKind;
use serde::{Deserialize, Serialize};

use super::Goal;
use crate::figure::{Direction, Figure, TAIL, latency_of_syncs, metric_name, tasks_called};

const MS: f64 = 1e6;
/// Classes of I/O that a measure can name, besides the names of tasks.
pub(super) const WHOSE: &str = "sync, async, reads, writes, all";

/// Statistic of a distribution of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Quantile: the latency that a given share of the I/Os does not exceed. The share is above 0
    /// and below 1.
    Quantile(f64),
    /// Mean latency.
    Mean,
    /// Longest latency.
    Worst,
}

/// I/Os that a measure covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Reads and sync writes, which a process waits for.
    Sync,
    /// Async writes.
    Async,
    /// All reads.
    Reads,
    /// All writes.
    Writes,
    /// All I/Os.
    All,
    /// I/Os of all tasks with that name, or of all copies of a fio job with that name. If there are
    /// no such tasks, the I/Os of the cgroup with that name and of the cgroups below it.
    Task(String),
    /// Sync system calls, from call to return. With a name, these are the calls of the fio jobs
    /// with this name. Without a name, they are the calls of all jobs and of an application. If no
    /// job with this name makes such calls, the name means a task.
    Calls(SyncKind, Option<String>),
}

impl Whose {
    /// Parses `fdatasync`, or `NAME fdatasync` for the calls of fio jobs. Returns `None` if the
    /// text does not end in such a call.
    pub(super) fn calls(text: &str) -> Option<Self> {
        let words = text.rsplit_once(char::is_whitespace);
        let (job, name) = words.map_or((None, text), |(job, name)| (Some(job.trim_end().to_owned()), name));
        let call = SyncKind::ALL.into_iter().find(|call| call.name().eq_ignore_ascii_case(name))?;
        Some(Self::Calls(call, job))
    }
}

/// A metric of a run in the notation of goals: `p99(sync)`, `throughput`, `mean(backup)`, `tps`.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A metric that every run can have.
    Figure(Figure),
    /// A latency, ms.
    Latency(Statistic, Whose),
    /// Throughput of a task or cgroup over its active time, MB/s.
    Throughput(String),
    /// I/Os per second of a task or cgroup over its active time.
    Iops(String),
    /// Metric that the application reports under that name. If several metrics have this name, this
    /// is the first of them.
    Reported(String),
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // Rounded, because 0.999 * 100 is not exactly 99.9.
            Self::Quantile(q) => write!(f, "p{}", (q * 1e8).round() / 1e6),
            Self::Mean => f.write_str("mean"),
            Self::Worst => f.write_str("worst"),
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::All => "all",
            Self::Task(name) => name,
            Self::Calls(call, None) => call.name(),
            Self::Calls(call, Some(job)) => return write!(f, "{job} {}", call.name()),
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(figure) => f.write_str(figure.id()),
            Self::Latency(statistic, whose) => write!(f, "{statistic}({whose})"),
            Self::Throughput(task) => write!(f, "throughput({task})"),
            Self::Iops(task) => write!(f, "iops({task})"),
            Self::Reported(name) => f.write_str(name),
        }
    }
}

/// A measure that the workload has, with its properties.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureRecord {
    /// The measure in the notation of goals.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
    /// Better direction.
    pub direction: Direction,
    /// Smallest relevant difference, per cent of the baseline.
    pub relevant_percent: f64,
}

impl MeasureRecord {
    /// Returns the metric that comparisons use.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let measure =
            self.name.parse().map_or_else(|_| Measure::Reported(self.name.clone()), |goal: Goal| goal.measure);
        measure.usual_figure().unwrap_or_else(|| Figure::of_goal(measure, self))
    }

    /// Returns whether a difference from the baseline is an improvement.
    #[must_use]
    pub fn is_better(&self, difference: f64) -> bool {
        if self.direction == Direction::Higher { difference > 0.0 } else { difference < 0.0 }
    }
}

impl From<(&Measure, Figure)> for MeasureRecord {
    fn from((measure, figure): (&Measure, Figure)) -> Self {
        Self {
            name: measure.to_string(),
            unit: figure.unit().to_owned(),
            direction: figure.direction(),
            relevant_percent: figure.relevant_percent(),
        }
    }
}

impl Measure {
    /// Returns the measures that are reported for every run that has them.
    pub fn usual() -> impl Iterator<Item = Self> {
        let named = Figure::ALL.iter().filter(|figure| !matches!(figure, Figure::Fairness | Figure::Utilisation));
        named.map(|&figure| Self::of_figure(figure))
    }

    /// Returns the measure that names a metric in goals.
    pub(crate) fn of_figure(figure: Figure) -> Self {
        let Some(sync) = figure.is_latency_of_sync() else { return Self::Figure(figure) };
        let statistic = match figure {
            Figure::SyncMean | Figure::AsyncMean => Statistic::Mean,
            Figure::SyncWorst | Figure::AsyncWorst => Statistic::Worst,
            _ => Statistic::Quantile(figure.quantile().map_or(0.5, |(q, _)| q)),
        };
        Self::Latency(statistic, if sync { Whose::Sync } else { Whose::Async })
    }

    /// Returns the task or cgroup of the measure.
    pub(crate) fn task(&self) -> Option<&str> {
        match self {
            Self::Latency(_, Whose::Task(name)) | Self::Throughput(name) | Self::Iops(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the metric of [`Figure::ALL`] that the measure names.
    fn usual_figure(&self) -> Option<Figure> {
        Figure::ALL.iter().copied().find(|&figure| Self::of_figure(figure) == *self)
    }

    /// Returns the metric that the measure names; `None` if `run` does not have it.
    #[must_use]
    pub fn figure(&self, run: &RunResult) -> Option<Figure> {
        let record = self.resolve(run)?;
        let reported = || run.app.as_ref().map(Figure::reported).unwrap_or_default();
        match self {
            Self::Reported(name) => reported().into_iter().find(|figure| figure.id() == name),
            _ => self.usual_figure().or_else(|| Some(Figure::of_goal(self.clone(), &record))),
        }
    }

    /// Returns whether the measure covers only the slowest I/Os, see [`Figure::is_tail`].
    pub(crate) fn is_tail(&self) -> bool {
        match self {
            Self::Latency(Statistic::Worst, _) => true,
            Self::Latency(Statistic::Quantile(q), _) => *q >= TAIL,
            _ => false,
        }
    }

    /// Returns the number of I/Os in a run from which a latency was computed; `None` for other
    /// measures.
    pub(crate) fn ios(&self, run: &RunResult) -> Option<u64> {
        match self {
            Self::Latency(_, whose) => Some(latencies(run, whose).map_or(0, |histogram| histogram.count())),
            _ => None,
        }
    }

    /// Returns unit, direction and smallest relevant difference of the measure in `run`. `None` if
    /// the run does not have the measure.
    #[must_use]
    pub fn resolve(&self, run: &RunResult) -> Option<MeasureRecord> {
        let like = match self {
            Self::Figure(figure) => *figure,
            Self::Latency(Statistic::Quantile(_), _) => Figure::SyncP99,
            Self::Latency(..) => Figure::SyncMean,
            Self::Throughput(_) => Figure::Throughput,
            Self::Iops(_) => Figure::Iops,
            Self::Reported(name) => {
                let figures = run.app.as_ref().map(Figure::reported).unwrap_or_default();
                figures.into_iter().find(|figure| figure.id() == name)?
            }
        };
        // Fairness also needs runs of tasks alone, so this run cannot show it.
        let has = matches!(self, Self::Figure(Figure::Fairness)) || self.of(run).is_some();
        has.then(|| (self, like).into())
    }

    /// Returns the value in a run. Returns `None` if the run has no matching I/O or task. Also
    /// returns `None` for fairness.
    #[must_use]
    pub fn of(&self, run: &RunResult) -> Option<f64> {
        match self {
            Self::Figure(figure) => figure.of(run),
            Self::Latency(statistic, whose) => statistic.of(&latencies(run, whose)?),
            Self::Throughput(task) => rate(run, task, |result| (result.bytes_read + result.bytes_written) as f64 / 1e6),
            Self::Iops(task) => rate(run, task, |result| result.ios as f64),
            Self::Reported(name) => {
                let mut figures = run.app.iter().flat_map(|report| &report.figures);
                figures.find(|reported| reported.name == *name).map(|reported| reported.value)
            }
        }
    }

    /// Returns the measures that the workload has. An error message about a missing measure lists
    /// them.
    #[must_use]
    pub fn there_is(&self, run: &RunResult) -> String {
        let mut known: Vec<&str> = match self {
            Self::Reported(_) => {
                run.app.iter().flat_map(|app| app.figures.iter().map(|reported| reported.name.as_str())).collect()
            }
            _ => named(run).filter(|task| task.ios > 0).map(|task| metric_name(&task.name, &run.jobs)).collect(),
        };
        let joined = |known: &mut Vec<&str>| {
            known.sort_unstable();
            known.dedup();
            known.truncate(12);
            known.join(", ")
        };
        let known = joined(&mut known);
        let mut cgroups: Vec<&str> = run.tasks.iter().map(|task| task.cgroup.as_str()).collect();
        cgroups.retain(|name| !name.is_empty());
        let cgroups = joined(&mut cgroups);
        let has = |call: &SyncKind| !latency_of_syncs(run, *call, None).is_empty();
        let calls: Vec<&str> = SyncKind::ALL.into_iter().filter(has).map(SyncKind::name).collect();
        let calls = if calls.is_empty() { String::new() } else { format!("the calls {}, ", calls.join(", ")) };
        let cgroups = if cgroups.is_empty() { cgroups } else { format!("the cgroups {cgroups}, ") };
        match (self, known.is_empty()) {
            (Self::Reported(_), true) => {
                "available: p99(sync) and other latencies, throughput, iops, finish and fairness".to_owned()
            }
            (Self::Reported(_), false) => format!("the application reports {known}"),
            (_, true) => {
                format!(
                    "the tasks of the workload have no names. You can use {cgroups}{calls}{WHOSE}, if the workload \
                     has such I/Os"
                )
            }
            (_, false) => {
                format!("you can use the tasks {known}, {cgroups}{calls}and {WHOSE}, if the workload has such I/Os")
            }
        }
    }
}

impl Statistic {
    fn of(self, latency: &Histogram) -> Option<f64> {
        if latency.is_empty() {
            return None;
        }
        Some(
            match self {
                Self::Quantile(q) => latency.quantile_ns(q) as f64,
                Self::Mean => latency.mean_ns(),
                Self::Worst => latency.max_ns() as f64,
            } / MS,
        )
    }
}

fn named(run: &RunResult) -> impl Iterator<Item = &TaskResult> {
    run.tasks.iter().filter(|task| !task.name.is_empty())
}

/// Returns the tasks with a name, all copies of a fio job with that name, or the task with a name
/// and id, as in `dd (1234)`. If there is no such task, returns the tasks of the cgroup with that
/// name. A name with a leading slash always means a cgroup.
fn called<'r>(run: &'r RunResult, name: &str) -> Vec<&'r TaskResult> {
    let mut tasks = tasks_called(run, name);
    if tasks.is_empty() {
        tasks = named(run).filter(|task| is_one_of_name(name, task.pid, &task.name)).collect();
    }
    if !tasks.is_empty() {
        return tasks;
    }
    let cgroup = name.trim_matches('/');
    let within = |path: &str| path.strip_prefix(cgroup).is_some_and(|below| below.is_empty() || below.starts_with('/'));
    run.tasks.iter().filter(|task| !task.cgroup.is_empty() && !cgroup.is_empty() && within(&task.cgroup)).collect()
}

fn latencies(run: &RunResult, whose: &Whose) -> Option<Histogram> {
    Some(match whose {
        Whose::Sync => run.latency.sync(),
        Whose::Async => run.latency.writes_async.clone(),
        Whose::Reads => run.latency.reads.clone(),
        Whose::Writes => run.latency.writes(),
        Whose::All => run.latency.all(),
        Whose::Calls(call, job) => {
            let all = latency_of_syncs(run, *call, job.as_deref());
            if all.is_empty() {
                return latencies(run, &Whose::Task(whose.to_string()));
            }
            all
        }
        Whose::Task(name) => {
            let mut results = called(run, name).into_iter();
            let mut all = results.next()?.latency.clone();
            results.for_each(|task| all.merge(&task.latency));
            all
        }
    })
}

/// Returns an amount per second of the active time of the tasks or cgroup with the name `name`.
fn rate(run: &RunResult, name: &str, amount: impl Fn(&TaskResult) -> f64) -> Option<f64> {
    let tasks = called(run, name);
    let active_ns = run.active_ns(&tasks).or_else(|| (!tasks.is_empty()).then(|| run.counted_ns()))?;
    (active_ns > 0).then(|| tasks.iter().map(|task| amount(task)).sum::<f64>() * 1e9 / active_ns as f64)
}

#[cfg(test)]
mod tests {
    use iosched_sim::JobResult;

    use super::*;

    fn task(name: &str, ns: u64) -> TaskResult {
        let mut task = TaskResult {
            name: name.to_owned(),
            ios: 1,
            bytes_read: 4_000_000,
            first_submit_ns: Some(1_000_000_000),
            last_completion_ns: Some(3_000_000_000),
            ..TaskResult::default()
        };
        task.latency.record(ns);
        task
    }

    #[test]
    fn tasks_with_one_name_are_measured_over_their_active_time() {
        let run = RunResult {
            tasks: vec![task("reader", 1_000_000), task("reader", 3_000_000), task("backup", 9_000_000)],
            finished_ns: 100_000_000_000,
            ..RunResult::default()
        };
        let of = |measure: Measure| measure.of(&run);
        let reader = || Whose::Task("reader".to_owned());
        assert_eq!(of(Measure::Latency(Statistic::Mean, reader())), Some(2.0));
        assert_eq!(of(Measure::Latency(Statistic::Worst, reader())), Some(3.0));
        assert_eq!(of(Measure::Throughput("reader".to_owned())), Some(4.0));
        // A task with only one I/O has no active time, so the time of the run is used.
        assert_eq!(of(Measure::Iops("reader".to_owned())), Some(1.0));
        assert_eq!(of(Measure::Iops("backup".to_owned())), Some(0.01));
        assert_eq!(of(Measure::Iops("writer".to_owned())), None);
        let one = |pid, ns| TaskResult { pid, ..task("dd", ns) };
        let run_of_two = RunResult { tasks: vec![one(12, 1_000_000), one(34, 3_000_000)], ..RunResult::default() };
        for (goal, expected) in [("mean(dd)", 2.0), ("mean(dd (12))", 1.0), ("worst( dd (34) )", 3.0)] {
            let goal: Goal = goal.parse().unwrap();
            assert_eq!(goal.measure.of(&run_of_two), Some(expected), "{goal}");
            assert_eq!(goal.to_string().parse::<Goal>().unwrap(), goal);
        }
        let other: Goal = "iops(dd (56))".parse().unwrap();
        assert_eq!(other.measure.of(&run_of_two), None);
        let missing = Measure::Iops("writer".to_owned());
        assert_eq!(missing.resolve(&run), None);
        assert!(missing.there_is(&run).contains("backup, reader"));
    }

    #[test]
    fn syncs_of_jobs_are_measured_by_their_call() {
        let job = |name: &str, ns: u64| {
            let mut job = JobResult { name: name.to_owned(), ..JobResult::default() };
            job.sync_calls.fdatasync.record(ns);
            job
        };
        let jobs = vec![job("wal", 1_000_000), job("snapshot", 3_000_000)];
        let run = RunResult { jobs, tasks: vec![task("fsync", 7_000_000)], ..RunResult::default() };
        let of = |text: &str| text.parse::<Goal>().unwrap().measure.of(&run);
        assert_eq!((of("mean(fdatasync)"), of("mean(wal fdatasync)")), (Some(2.0), Some(1.0)));
        // No job calls fsync, but a task has that name.
        assert_eq!((of("mean(fsync)"), of("mean(sync_file_range)")), (Some(7.0), None));
        let missing = "p99(sync_file_range)".parse::<Goal>().unwrap().measure;
        assert!(missing.there_is(&run).contains("the calls fdatasync, "), "{}", missing.there_is(&run));
    }

    #[test]
    fn syncs_of_an_application_are_measured_by_their_call() {
        let mut run = RunResult::default();
        run.sync_calls.record(SyncKind::Fdatasync, 2_000_000);
        let of = |text: &str| text.parse::<Goal>().unwrap().measure.of(&run);
        assert_eq!((of("p99(fdatasync)").map(f64::round), of("mean(fsync)")), (Some(2.0), None));
        let old = serde_json::to_value(RunResult::default()).unwrap();
        assert!(old.get("sync_calls").is_none(), "records without sync calls do not change");
    }

    #[test]
    fn results_without_sync_calls_are_read() {
        let mut old = serde_json::to_value(JobResult::default()).unwrap();
        assert!(old.as_object_mut().unwrap().remove("sync_calls").is_none());
        assert_eq!(serde_json::from_value::<JobResult>(old).unwrap(), JobResult::default());
    }

    #[test]
    fn name_of_no_task_selects_a_cgroup_and_its_children() {
        let within = |name: &str, cgroup: &str, ns| TaskResult { cgroup: cgroup.to_owned(), ..task(name, ns) };
        let tasks =
            vec![within("a", "web/front", 1_000_000), within("b", "web", 3_000_000), within("web", "x", 9_000_000)];
        let run = RunResult { tasks, ..RunResult::default() };
        let mean = |name: &str| Measure::Latency(Statistic::Mean, Whose::Task(name.to_owned())).of(&run);
        // The name `web` means the task before the cgroup. A leading slash selects the cgroup.
        assert_eq!((mean("web"), mean("/web"), mean("web/front")), (Some(9.0), Some(2.0), Some(1.0)));
        assert_eq!((mean("we"), mean("/")), (None, None));
        assert_eq!(Measure::Throughput("/web".to_owned()).of(&run), Some(4.0));
        assert!(Measure::Iops("y".to_owned()).there_is(&run).contains("the cgroups web, web/front, x, and sync"));
    }

    #[test]
    fn usual_metrics_have_names_that_goals_accept() {
        let names: Vec<String> = Measure::usual().map(|measure| measure.to_string()).collect();
        assert!(["throughput", "p99.9(sync)", "worst(async)"].iter().all(|name| names.contains(&(*name).to_owned())));
        for name in names {
            assert_eq!(name.parse::<Goal>().unwrap().measure.to_string(), name);
        }
    }
}
