//! Runs an experiment on several threads.
//!
//! A round runs each setting once on every device. All runs of a round have the same seed. The next
//! round starts with another setting. After the rounds, tasks run alone. The observer receives the
//! records in the order of the plan, not in the order of completion. The records therefore do not
//! depend on the number of threads.

use iosched_kernel::settings::Change;
use iosched_sim::{Plan, RunResult, SimError, Timeline, run};

use crate::error::LabError;
use crate::experiment::{Alone, Experiment, check_plan};
use crate::goal::{Goal, Measure, MeasureRecord};
use crate::pool::{Control, Event, in_order, settled};
use crate::record::{AloneRecord, Record, Records, RunRecord, TimelineRecord};

/// Event while the runs of an experiment proceed.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A record, in the order of the plan. The header is the first one.
    Record(&'a Record),
    /// A run is complete.
    Done {
        /// Number of complete runs so far.
        done: usize,
        /// Number of planned runs.
        total: usize,
    },
    /// A run on a real device was discarded, because another program changed settings during the
    /// run. The run is repeated.
    Discarded {
        /// Label of the setting.
        setting: &'a str,
        /// Settings that were changed.
        changes: &'a [Change],
    },
    /// Some settings on a real device were not restored, because another program has changed them.
    Left {
        /// The changed settings. `from` is the other program's value, and `to` is the value before
        /// the comparison.
        changes: &'a [Change],
    },
}

impl Progress<'_> {
    /// Returns a sentence that the user must see at once, if the event needs one.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let listed =
            |changes: &[Change], words: fn(&Change) -> String| changes.iter().map(words).collect::<Vec<_>>().join(", ");
        match self {
            Self::Record(_) | Self::Done { .. } => None,
            Self::Discarded { setting, changes } => {
                let changed = listed(changes, Change::of_others);
                Some(format!(
                    "iosched repeats a run of {setting}, because another program changed \
                     {changed} during the run"
                ))
            }
            Self::Left { changes } => {
                let left = listed(changes, |change| {
                    format!("{} is {} (before: {})", change.name, change.from.as_deref().unwrap_or("gone"), change.to)
                });
                Some(format!("iosched did not restore these values, because another program changed them: {left}"))
            }
        }
    }
}

/// Records of an experiment, and whether it was interrupted.
#[derive(Clone, Debug)]
pub struct Finished {
    /// All records.
    pub records: Records,
    /// Whether the experiment was stopped before its end.
    pub interrupted: bool,
}

/// A planned run.
#[derive(Clone, Copy, Debug)]
enum Job<'a> {
    Run { run: u32, cell: Cell },
    Alone { cell: Cell, alone: &'a Alone },
}

/// A setting on a device, both by index.
#[derive(Clone, Copy, Debug)]
struct Cell {
    device: usize,
    setting: usize,
}

impl Job<'_> {
    const fn run_and_cell(self) -> (u32, Cell) {
        match self {
            Self::Run { run, cell } => (run, cell),
            Self::Alone { cell, .. } => (0, cell),
        }
    }
}

/// Runs all of `experiment` and passes events to `observe`. Stops early if `control` is
/// interrupted.
///
/// # Errors
/// The number of runs is 0, a plan is not possible, a run fails, or `observe` fails.
pub fn execute(
    experiment: &Experiment,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Finished, LabError> {
    if experiment.runs == 0 {
        return Err(LabError::NoRuns);
    }
    check_all(experiment)?;
    let header = experiment.header();
    let alone: Vec<Alone> = header.alone.iter().filter_map(|&task| experiment.alone(task)).collect();
    let jobs = jobs(experiment, &alone);
    let first = Record::Header(Box::new(header.clone()));
    observe(Progress::Record(&first))?;
    let mut records = Records::new(header);
    let finished = in_order(
        control,
        &jobs,
        |&job| carry_out(experiment, control, job),
        |event| match event {
            Event::Done { done } => observe(Progress::Done { done, total: jobs.len() }),
            Event::Taken(run) => run.into_iter().try_for_each(|record| {
                observe(Progress::Record(&record))?;
                records.add(record);
                Ok(())
            }),
        },
    )?;
    Ok(Finished { records, interrupted: !finished })
}

/// Returns every setting on every device.
fn cells(experiment: &Experiment) -> Vec<Cell> {
    let settings = experiment.settings().len();
    let devices = experiment.profiles().len();
    (0..devices).flat_map(|device| (0..settings).map(move |setting| Cell { device, setting })).collect()
}

/// Checks all plans, so that errors are reported before the first run.
fn check_all(experiment: &Experiment) -> Result<(), LabError> {
    for Cell { device, setting } in cells(experiment) {
        check_plan(&experiment.plan(device, setting, 0), || experiment.name(device, setting))?;
    }
    Ok(())
}

/// Returns all planned runs, in the order in which they start and are recorded.
fn jobs<'a>(experiment: &Experiment, alone: &'a [Alone]) -> Vec<Job<'a>> {
    let cells = &cells(experiment);
    let round = |run: u32| (0..cells.len()).map(move |turn| cells[(turn + run as usize) % cells.len()]);
    let runs = (0..experiment.runs).flat_map(|run| round(run).map(move |cell| Job::Run { run, cell }));
    let alone = cells.iter().flat_map(|&cell| alone.iter().map(move |alone| Job::Alone { cell, alone }));
    runs.chain(alone).collect()
}

/// Makes one run; `None` if `control` ended the run.
fn carry_out(experiment: &Experiment, control: &Control, job: Job<'_>) -> Result<Option<Vec<Record>>, LabError> {
    let (number, cell) = job.run_and_cell();
    let mut plan = Plan { interrupt: Some(control.aborted()), ..experiment.plan(cell.device, cell.setting, number) };
    if let Job::Alone { alone, .. } = job {
        plan.workload = &alone.workload;
    }
    let records = settled(|| experiment.name(cell.device, cell.setting), number, plan.seed, || records_of(&plan, job))?;
    for record in records.iter().flatten() {
        if let Record::Run(run) = record {
            counts(&run.result, plan.warm_up_ns)?;
            if (run.device, run.setting, run.run) == (0, 0, 0) {
                knows(&experiment.goals, &run.result, &experiment.header().workload.name)?;
            }
        }
    }
    Ok(records)
}

/// Checks that a run is longer than its warm-up.
///
/// # Errors
/// The run ended within the warm-up.
pub const fn counts(result: &RunResult, warm_up_ns: u64) -> Result<(), LabError> {
    if warm_up_ns > 0 && result.counted_ns() == 0 {
        return Err(LabError::OnlyWarmUp { warm_up_ns, finished_ns: result.finished_ns });
    }
    Ok(())
}

impl Measure {
    /// Checks in the results of one run that the workload has this measure.
    ///
    /// # Errors
    /// The run does not have the measure. The message lists the available ones.
    pub fn known(&self, run: &RunResult, workload: &str) -> Result<MeasureRecord, LabError> {
        self.resolve(run).ok_or_else(|| LabError::NoSuchFigure {
            measure: self.to_string(),
            workload: workload.to_owned(),
            there_is: self.there_is(run),
        })
    }
}

/// Checks in the results of the first run that the workload has the measures of all goals.
pub(crate) fn knows(goals: &[Goal], first: &RunResult, workload: &str) -> Result<(), LabError> {
    goals.iter().try_for_each(|goal| goal.measure.known(first, workload).map(|_| ()))
}

fn records_of(plan: &Plan<'_>, job: Job<'_>) -> Result<Vec<Record>, SimError> {
    let seed = plan.seed;
    let (run_number, Cell { device, setting }) = job.run_and_cell();
    let record =
        |result| Record::Run(Box::new(RunRecord { device, setting, run: run_number, seed, turn: None, result }));
    Ok(match job {
        Job::Run { run: 0, .. } => {
            let mut timeline = Timeline::default();
            let result = run(plan, &mut timeline)?;
            vec![record(result), Record::Timeline(Box::new(TimelineRecord { device, setting, timeline }))]
        }
        Job::Run { .. } => vec![record(run(plan, ())?)],
        Job::Alone { alone, .. } => {
            let RunResult { tasks, .. } = run(plan, ())?;
            let of_task = |result| AloneRecord { device, setting, task: alone.task, seed, result };
            tasks.into_iter().take(1).map(|task| Record::Alone(Box::new(of_task(task)))).collect()
        }
    })
}
