//! Comparisons of the judged schedulers with the schedulers of Linux, on modelled devices.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_lab::goal::Goal;
use iosched_lab::{Comparison, Control, Experiment, LabError, Results, Verdict, execute};
use iosched_workload::Workload;
use serde::Serialize;

use crate::request::{JudgeError, JudgeRequest};
use crate::workloads::{DEVICES, JudgedWorkload, WORKLOADS};

/// Linux' schedulers. Every card compares the judged scheduler with them.
pub const LINUX: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

/// The difference of a scheduler from one of Linux' schedulers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Linux' scheduler.
    pub with: &'static str,
    /// Difference from that scheduler, per cent of its mean. `None` if its mean is 0.
    pub percent: Option<f64>,
    /// Verdict of the runs. It is about the model, without the error of the model.
    pub verdict: Verdict,
}

impl Difference {
    fn new(with: &'static str, comparison: &Comparison) -> Self {
        Self { with, percent: comparison.percent, verdict: comparison.seen.unwrap_or(comparison.verdict) }
    }
}

/// The metric of one scheduler in one workload on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The scheduler.
    pub scheduler: String,
    /// Mean of the runs, in the unit of the metric.
    pub mean: f64,
    /// Difference from Linux' default scheduler, per cent of the default's mean. `None` for the
    /// default itself.
    pub percent: Option<f64>,
    /// Verdict of the runs. It is about the model, without the error of the model.
    pub verdict: Option<Verdict>,
    /// Comparisons with each of Linux' schedulers, in the order of [`LINUX`]. A scheduler is not
    /// compared with itself.
    pub differences: Vec<Difference>,
}

impl Cell {
    /// Returns the comparison with one of Linux' schedulers. `None` for the scheduler itself.
    #[must_use]
    pub fn compared_with(&self, linux: &str) -> Option<&Difference> {
        self.differences.iter().find(|difference| difference.with == linux)
    }
}

/// The metric that matters in a workload, on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the workload.
    pub workload: &'static str,
    /// The metric, in the notation of goals.
    pub goal: &'static str,
    /// Name of the device's profile.
    pub device: &'static str,
    /// Linux' default scheduler for this device: the baseline.
    pub baseline: &'static str,
    /// Cells of the schedulers of Linux, then of the judged schedulers that Linux does not have.
    pub cells: Vec<Cell>,
}

impl Compared {
    /// Returns the cell of a scheduler.
    #[must_use]
    pub fn cell(&self, scheduler: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.scheduler == scheduler)
    }
}

/// Returns the names of all compared schedulers.
fn compared<'a>(judged: &[&'a str]) -> Vec<&'a str> {
    let others = judged.iter().copied().filter(|name| !LINUX.contains(name));
    LINUX.into_iter().chain(others).collect()
}

/// Compares the schedulers in `judged` with the schedulers of Linux, in one workload on one device.
/// Returns `None` if `control` was interrupted.
pub(crate) fn compare(
    request: &JudgeRequest,
    judged: &[&str],
    (workload, device): (&JudgedWorkload, &'static str),
    control: &Control,
) -> Result<Option<Compared>, JudgeError> {
    let names = compared(judged);
    let settings = names.iter().map(|name| Setting::parse(name, &request.registry)).collect::<Result<Vec<_>, _>>()?;
    let profile = Profile::named(device)?.without_error();
    let (baseline, time_ns) = (profile.card().default_scheduler(), request.run_ns(&profile));
    let mut experiment = Experiment::new(Workload::Tasks(Box::new(workload.tasks()?)), profile, settings)?;
    experiment.set_baseline(baseline)?;
    (experiment.runs, experiment.seed, experiment.fairness) = (request.runs, request.seed, false);
    experiment.limit.time_ns = Some(time_ns);
    experiment.goals = vec![workload.goal.parse::<Goal>()?];
    let finished = execute(&experiment, control, |_| Ok(()))?;
    if finished.interrupted {
        return Ok(None);
    }
    let records = finished.records;
    let on_device = records.devices().next().ok_or(JudgeError::Lab(LabError::NoRuns))?;
    let results = Results::of(on_device);
    let figure = results.figures.iter().find(|figure| figure.goal);
    let cells = names.iter().enumerate().filter_map(|(at, name)| {
        let figure = figure?;
        let found = figure.settings[at].as_ref()?;
        // The settings begin with Linux' schedulers, in the order of `LINUX`.
        let others = LINUX.iter().enumerate().filter(|&(other, _)| other != at);
        let differences = others.filter_map(|(other, with)| {
            figure.settings[other].as_ref()?;
            Some(Difference::new(with, &figure.between(on_device, at, other)))
        });
        let differences: Vec<_> = differences.collect();
        let with_default = differences.iter().find(|difference| difference.with == baseline);
        Some(Cell {
            scheduler: (*name).to_owned(),
            mean: found.mean,
            percent: with_default.and_then(|difference| difference.percent),
            verdict: with_default.map(|difference| difference.verdict),
            differences,
        })
    });
    let cells = cells.collect();
    Ok(Some(Compared { workload: workload.name, goal: workload.goal, device, baseline, cells }))
}

/// Returns all pairs of a workload and a device, in the order of the report card.
pub(crate) fn pairs() -> impl Iterator<Item = (&'static JudgedWorkload, &'static str)> {
    WORKLOADS.iter().flat_map(|workload| DEVICES.iter().map(move |&device| (workload, device)))
}
