//! Records of reproduced experiments: the plan, and the raw metrics that applications reported.
//!
//! A file of records is JSON lines. The [`ReproductionHeader`] comes first, then one line per run,
//! in the order of the plan.

use std::io::BufRead;

use iosched_workload::app::{Better, Figure, Report};
use iosched_workload::outcome::{JobResult, RunResult};
use serde::{Deserialize, Serialize};

use super::catalogue::Experiment;
use crate::error::LabError;
use crate::figure::Direction;
use crate::file::{Line, read_lines};

/// One line of a file of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum ReproductionRecord {
    /// The plan. It is always the first line.
    Reproduction(Box<ReproductionHeader>),
    /// One run of one case under one setting.
    Case(Box<CaseRun>),
}

/// Plan of a reproduction: the first record of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReproductionHeader {
    /// Version of iosched that made the runs.
    pub version: String,
    /// Command line that produces the same records again.
    pub command: String,
    /// Names of the experiments.
    pub experiments: Vec<String>,
    /// Text that selected cases, see [`Experiment::with_cases`]; `None` for all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Seed of the reproduction. The seeds of the runs follow from it.
    pub seed: u64,
    /// Number of planned runs of each case under each setting.
    pub runs: u32,
}

/// Record of one simulated run of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRun {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the case.
    pub case: String,
    /// Label of the setting.
    pub setting: String,
    /// The assumption about an unknown that is not the usual one; `None` if all assumptions are the
    /// usual ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumption: Option<String>,
    /// Number of the run, from 0. Runs with the same number share a seed.
    pub run: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Simulated time of the run, ns.
    pub simulated_ns: u64,
    /// Metrics that the application reported.
    pub figures: Vec<FigureRecord>,
    /// Series that the application reported, over time or process by process.
    pub series: Vec<SeriesRecord>,
}

/// A metric of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Name of the test.
    pub test: String,
    /// Unit of the value.
    pub unit: String,
    /// Value, in `unit`.
    pub value: f64,
    /// Better direction.
    pub better: Direction,
}

/// Record of a series of values over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// Name of the series.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Values in order.
    pub values: Vec<f64>,
    /// Time from one value to the next, s; `None` if each value belongs to one process.
    pub step_s: Option<f64>,
}

impl ReproductionHeader {
    /// Returns the planned experiments, with the selected cases.
    ///
    /// # Errors
    /// This version does not have these experiments or cases.
    pub fn planned(&self) -> Result<Vec<Experiment>, LabError> {
        let all = self.experiments.iter().map(|name| Experiment::named(name)).collect::<Result<Vec<_>, _>>()?;
        match &self.case {
            Some(text) => Experiment::with_cases(all, text),
            None => Ok(all),
        }
    }
}

/// Reads a file of records. An incomplete last line is left out.
///
/// # Errors
/// The file cannot be read, or is not a file of these records.
pub fn read(reader: impl BufRead, file: &str) -> Result<(ReproductionHeader, Vec<CaseRun>), LabError> {
    read_lines(reader, file, |record| match record {
        ReproductionRecord::Reproduction(header) => Line::Plan(*header),
        ReproductionRecord::Case(run) => Line::Run(*run),
    })
}

impl CaseRun {
    /// Creates the record of a run of `case` under `setting` from the application's report. `run`
    /// contains both the number and the seed of the run. `simulated_ns` is the length of the run.
    #[must_use]
    pub fn new(
        experiment: &str,
        case: &str,
        setting: &str,
        run: (u32, u64),
        simulated_ns: u64,
        report: &Report,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            case: case.to_owned(),
            setting: setting.to_owned(),
            assumption: None,
            run: run.0,
            seed: run.1,
            simulated_ns,
            figures: figures(report),
            series: series(report),
        }
    }
}

/// Name of the metrics over all jobs.
const ALL_JOBS: &str = "all";

/// Returns the metrics of a run. For an application, this is its report. For fio, these are the
/// results of all jobs together and of the jobs with each name.
pub(super) fn report(result: &RunResult) -> Report {
    if let Some(report) = &result.app {
        return report.clone();
    }
    let mut groups: Vec<JobResult> = Vec::new();
    let all = result.jobs.iter().map(|job| JobResult { name: ALL_JOBS.to_owned(), ..job.clone() });
    for job in result.jobs.iter().cloned().chain(all) {
        match groups.iter_mut().find(|group| group.name == job.name) {
            Some(group) => group.merge(&job),
            None => groups.push(job),
        }
    }
    Report { figures: groups.iter().flat_map(job_figures).collect(), series: Vec::new() }
}

fn job_figures(job: &JobResult) -> Vec<Figure> {
    let begun_ns = job.counted_from_ns.max(job.started_ns.unwrap_or(0));
    let took_s = job.ended_ns.saturating_sub(begun_ns) as f64 / 1e9;
    let mut latency = job.read.latency.clone();
    latency.merge(&job.write.latency);
    let (ios, bytes) = (job.read.ios + job.write.ios, job.read.bytes + job.write.bytes);
    let figure =
        |unit: &'static str, value: f64, better| Figure { name: job.name.clone(), unit: unit.into(), value, better };
    vec![
        figure("IOPS", ios as f64 / took_s, Better::Higher),
        figure("MB/s", bytes as f64 / took_s / 1e6, Better::Higher),
        figure("ms mean", latency.mean_ns() / 1e6, Better::Lower),
        figure("ms p99", latency.quantile_ns(0.99) as f64 / 1e6, Better::Lower),
        figure("s", took_s, Better::Lower),
    ]
}

/// Returns the metrics of a report. If a series has one time for each process, adds a metric
/// `NAME_spread`: the difference between the largest and the smallest time.
fn figures(report: &Report) -> Vec<FigureRecord> {
    let reported = report.figures.iter().map(|figure| FigureRecord {
        test: figure.name.clone(),
        unit: figure.unit.to_string(),
        value: figure.value,
        better: figure.better.into(),
    });
    let by_process = report.series.iter().filter(|series| series.step_s.is_none() && series.unit == "s");
    let spreads = by_process.filter_map(|series| {
        let first = series.values.iter().copied().reduce(f64::min)?;
        let last = series.values.iter().copied().reduce(f64::max)?;
        let test = format!("{}_spread", series.name);
        Some(FigureRecord { test, unit: "s".to_owned(), value: last - first, better: Direction::Lower })
    });
    reported.chain(spreads).collect()
}

fn series(report: &Report) -> Vec<SeriesRecord> {
    let record = |series: &iosched_workload::app::Series| SeriesRecord {
        name: series.name.clone(),
        unit: series.unit.to_string(),
        values: series.values.clone(),
        step_s: series.step_s,
    };
    report.series.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_workload::app::{Better, Figure, Series};

    #[test]
    fn times_of_processes_have_a_spread() {
        let report = Report {
            figures: vec![Figure {
                name: "write".to_owned(),
                unit: "MB/s".into(),
                value: 90.0,
                better: Better::Higher,
            }],
            series: vec![
                Series { name: "write".to_owned(), unit: "s".into(), values: vec![3.0, 1.0, 2.5], step_s: None },
                Series { name: "tps".to_owned(), unit: "1/s".into(), values: vec![50.0], step_s: Some(1.0) },
            ],
        };
        let found: Vec<_> =
            figures(&report).into_iter().map(|figure| (figure.test, figure.value, figure.better)).collect();
        assert_eq!(
            found,
            [("write".to_owned(), 90.0, Direction::Higher), ("write_spread".to_owned(), 2.0, Direction::Lower)]
        );
        assert_eq!(series(&report).len(), 2);
    }
}
