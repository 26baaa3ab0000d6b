//! Runs an experiment on several threads.
//!
//! Settings take turns: every round runs each of them once on every device, with one seed, and the next round begins with
//! another. Then the tasks run alone. Records are handed on in the order of the plan, whoever finishes first, so they do
//! not depend on the number of threads.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use iosched_sim::{Plan, RunResult, SimError, Timeline, check, run};

use crate::error::LabError;
use crate::experiment::{Alone, Experiment};
use crate::record::{AloneRecord, Record, Records, RunRecord, TimelineRecord};

/// How an experiment is run, and how it is stopped; may be shared with another thread.
#[derive(Debug)]
pub struct Control {
    /// Runs at a time, at least 1.
    jobs: usize,
    stop: AtomicBool,
    abort: AtomicBool,
}

impl Control {
    /// So many runs at a time; 0 counts as 1.
    #[must_use]
    pub fn new(jobs: usize) -> Self {
        Self { jobs: jobs.max(1), stop: AtomicBool::new(false), abort: AtomicBool::new(false) }
    }

    /// The first time: starts nothing more, what runs is finished and kept. The second time: ends what runs, too.
    pub fn interrupt(&self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            self.abort.store(true, Ordering::Relaxed);
        }
    }

    fn fail(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.abort.store(true, Ordering::Relaxed);
    }
}

/// What happens while an experiment runs.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A record, in the order of the plan; the header is the first.
    Record(&'a Record),
    /// So many of so many runs are done, in the order they finish.
    Done {
        /// Runs done.
        done: usize,
        /// Runs planned.
        of: usize,
    },
}

/// What an experiment gave.
#[derive(Clone, Debug)]
pub struct Finished {
    /// All records.
    pub records: Records,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// One run to be made.
#[derive(Clone, Copy, Debug)]
enum Job<'a> {
    Run { run: u32, cell: Cell },
    Alone { cell: Cell, alone: &'a Alone },
}

/// A setting on a device, each by its number.
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

/// Runs all of `experiment`, handing `observe` what happens. Stops early if `control` is interrupted.
///
/// # Errors
/// A run fails, or `observe` does.
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
    let mut gathered = Gathered { records: Records::new(header), waiting: BTreeMap::new(), next: 0 };
    // Bounded: whoever is slow to take records holds up the runs.
    let (sender, receiver) = mpsc::sync_channel(control.jobs);
    let next = AtomicUsize::new(0);
    let mut failure = None;
    let mut done = 0;
    std::thread::scope(|scope| {
        for _ in 0..control.jobs.min(jobs.len()) {
            let (sender, next, jobs) = (sender.clone(), &next, &jobs);
            scope.spawn(move || {
                while !control.stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&job) = jobs.get(number) else { break };
                    if sender.send((number, carry_out(experiment, control, job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (number, outcome) in receiver {
            let taken = match outcome {
                Ok(Some(records)) => {
                    done += 1;
                    observe(Progress::Done { done, of: jobs.len() })
                        .and_then(|()| gathered.take(number, records, &mut observe))
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                control.fail();
                // The first is the cause.
                failure.get_or_insert(error);
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    gathered.flush(&mut observe)?;
    Ok(Finished { records: gathered.records, interrupted: done < jobs.len() })
}

/// Every setting on every device.
fn cells(experiment: &Experiment) -> Vec<Cell> {
    let settings = experiment.settings().len();
    let devices = experiment.profiles().len();
    (0..devices).flat_map(|device| (0..settings).map(move |setting| Cell { device, setting })).collect()
}

/// Whatever is wrong with a plan is said before anything runs.
fn check_all(experiment: &Experiment) -> Result<(), LabError> {
    for Cell { device, setting } in cells(experiment) {
        let plan = experiment.plan(device, setting, 0);
        let seed = plan.seed;
        check(&plan).map_err(|source| LabError::Run {
            name: experiment.name(device, setting),
            run: 0,
            seed,
            source: Box::new(source),
        })?;
    }
    Ok(())
}

/// Everything to be run, in the order it is begun and recorded.
fn jobs<'a>(experiment: &Experiment, alone: &'a [Alone]) -> Vec<Job<'a>> {
    let cells = &cells(experiment);
    let round = |run: u32| (0..cells.len()).map(move |turn| cells[(turn + run as usize) % cells.len()]);
    let runs = (0..experiment.runs).flat_map(|run| round(run).map(move |cell| Job::Run { run, cell }));
    let alone = cells.iter().flat_map(|&cell| alone.iter().map(move |alone| Job::Alone { cell, alone }));
    runs.chain(alone).collect()
}

/// Makes one run; `None` if it was ended by `control`.
fn carry_out(experiment: &Experiment, control: &Control, job: Job<'_>) -> Result<Option<Vec<Record>>, LabError> {
    let (number, cell) = job.run_and_cell();
    let mut plan = Plan { interrupt: Some(&control.abort), ..experiment.plan(cell.device, cell.setting, number) };
    if let Job::Alone { alone, .. } = job {
        plan.workload = &alone.workload;
    }
    let seed = plan.seed;
    let name = || experiment.name(cell.device, cell.setting);
    let outcome = catch_unwind(AssertUnwindSafe(|| records_of(&plan, job)));
    match outcome {
        Ok(Ok(records)) => Ok(Some(records)),
        Ok(Err(SimError::Interrupted { .. })) => Ok(None),
        Ok(Err(source)) => Err(LabError::Run { name: name(), run: number, seed, source: Box::new(source) }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(LabError::Bug { name: name(), run: number, seed, message: text.to_owned() })
        }
    }
}

fn records_of(plan: &Plan<'_>, job: Job<'_>) -> Result<Vec<Record>, SimError> {
    let seed = plan.seed;
    let (run_number, Cell { device, setting }) = job.run_and_cell();
    let record = |result| Record::Run(Box::new(RunRecord { device, setting, run: run_number, seed, result }));
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

/// Brings records into the order of the plan.
struct Gathered {
    records: Records,
    waiting: BTreeMap<usize, Vec<Record>>,
    next: usize,
}

impl Gathered {
    fn take(
        &mut self,
        number: usize,
        records: Vec<Record>,
        observe: &mut impl FnMut(Progress<'_>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        self.waiting.insert(number, records);
        while let Some(records) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.hand_on(records, observe)?;
        }
        Ok(())
    }

    /// What is left behind a run that will not come.
    fn flush(&mut self, observe: &mut impl FnMut(Progress<'_>) -> Result<(), LabError>) -> Result<(), LabError> {
        for (_, records) in std::mem::take(&mut self.waiting) {
            self.hand_on(records, observe)?;
        }
        Ok(())
    }

    fn hand_on(
        &mut self,
        records: Vec<Record>,
        observe: &mut impl FnMut(Progress<'_>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        for record in records {
            observe(Progress::Record(&record))?;
            self.records.add(record);
        }
        Ok(())
    }
}
