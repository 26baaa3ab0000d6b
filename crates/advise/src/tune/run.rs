//! The runs of a search, several at a time, and their results.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_lab::goal::Measure;
use iosched_lab::pool::{Event, in_order, settled};
use iosched_lab::{Alone, Control, Experiment, Figure, LabError, counts, starved_tasks, stat};
use iosched_sim::{Plan, RunResult, SimError, run};

use super::history::History;
use super::record::{Phase, TuneRecord, TuneRun};

/// Number of the first confirming run, above all numbers of search runs.
const CONFIRM_FIRST: u32 = 1 << 20;

/// An event of a search.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A record, in the order of the search. The header is the first one.
    Record(&'a TuneRecord),
    /// The number of complete runs changed.
    Done {
        /// Number of complete runs.
        done: usize,
        /// Largest number of runs.
        total: usize,
    },
}

/// Reason for the end of a search before its completion.
pub(super) enum Halt {
    /// The user interrupted the search.
    Interrupted,
    /// A run or a record failed.
    Failed(LabError),
}

impl From<LabError> for Halt {
    fn from(error: LabError) -> Self {
        Self::Failed(error)
    }
}

/// The runner of a search.
pub(super) struct Runner<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) measures: &'a [Measure],
    pub(super) control: &'a Control,
    /// Tasks that are also run alone, for fairness. Empty if fairness is not measured.
    pub(super) alone: Vec<Alone>,
}

/// One planned run.
struct Job {
    setting: Setting,
    more_disks: Vec<(Profile, Setting)>,
    run: u32,
}

impl Runner<'_> {
    /// Makes the first runs of a setting, before the measures are known. `None` if the runs were
    /// interrupted.
    pub(super) fn probe(&self, setting: &Setting, runs: u32) -> Result<Option<Vec<RunResult>>, LabError> {
        let jobs: Vec<Job> = (0..runs).map(|number| self.job(setting, number)).collect();
        let mut results = Vec::new();
        let finished = in_order(
            self.control,
            &jobs,
            |job| {
                let plan = self.plan(job);
                settled(|| setting.to_string(), job.run, plan.seed, || run(&plan, ()))
            },
            |event| {
                if let Event::Taken(result) = event {
                    results.push(result);
                }
                Ok(())
            },
        )?;
        for result in &results {
            counts(result, self.experiment.warm_up_ns)?;
        }
        Ok(finished.then_some(results))
    }

    fn job(&self, setting: &Setting, run: u32) -> Job {
        Job { more_disks: self.experiment.more_disks(setting), setting: setting.clone(), run }
    }

    fn plan<'p>(&'p self, job: &'p Job) -> Plan<'p> {
        Plan {
            scheduler: job.setting.clone(),
            more_disks: &job.more_disks,
            interrupt: Some(self.control.aborted()),
            ..self.experiment.plan(0, 0, job.run)
        }
    }

    fn carry_out(&self, job: &Job, phase: Phase) -> Result<Option<TuneRun>, LabError> {
        let plan = self.plan(job);
        settled(
            || job.setting.to_string(),
            job.run,
            plan.seed,
            || {
                let result = run(&plan, ())?;
                let fairness = if self.alone.is_empty() { None } else { self.fairness(&plan, &result)? };
                let value = |measure: &Measure| match measure {
                    Measure::Figure(Figure::Fairness) => fairness,
                    measure => measure.of(&result),
                };
                Ok(TuneRun {
                    phase,
                    setting: job.setting.to_string(),
                    run: job.run,
                    seed: plan.seed,
                    simulated_ns: result.finished_ns,
                    utilisation_percent: Figure::Utilisation.of(&result),
                    values: self.measures.iter().map(value).collect(),
                    starved: if phase == Phase::Confirm {
                        starved_tasks(&result, self.experiment.workload_kind())
                    } else {
                        Vec::new()
                    },
                })
            },
        )
    }

    /// Returns Jain's index of the slowdowns of the tasks. The slowdown of a task is relative to a
    /// run of this task alone with the same seed.
    fn fairness(&self, plan: &Plan<'_>, company: &RunResult) -> Result<Option<f64>, SimError> {
        let mut slowdowns = Vec::new();
        for Alone { task, workload } in &self.alone {
            let alone = run(&Plan { workload, ..plan.clone() }, ())?;
            let mean = |result: &RunResult, task: usize| {
                result.tasks.get(task).map_or(0.0, |task_result| task_result.latency.mean_ns())
            };
            let (in_company, before) = (mean(company, *task), mean(&alone, 0));
            slowdowns.extend((before > 0.0 && in_company > 0.0).then(|| in_company / before));
        }
        Ok(stat::jain(&slowdowns))
    }

    /// Makes the runs of `wanted` that are missing in `phase`, and adds them to `history`. `wanted`
    /// contains pairs of a candidate and the index of a run.
    pub(super) fn evaluate(
        &self,
        history: &mut History<'_>,
        runs: &mut Vec<TuneRun>,
        phase: Phase,
        wanted: impl Iterator<Item = (usize, u32)>,
        observe: &mut impl FnMut(Progress<'_>) -> Result<(), LabError>,
    ) -> Result<(), Halt> {
        let first = if phase == Phase::Confirm { CONFIRM_FIRST } else { 0 };
        let numbered = wanted.map(|(candidate, run)| (candidate, first + run));
        let missing =
            numbered.filter(|&(candidate, run)| !history.candidates[candidate].runs(phase).contains_key(&run));
        let jobs: Vec<Job> =
            missing.map(|(candidate, run)| self.job(&history.candidates[candidate].setting, run)).collect();
        let before = runs.len();
        let total = (history.header.budget as usize).max(before + jobs.len());
        let finished = in_order(
            self.control,
            &jobs,
            |job| self.carry_out(job, phase),
            |event| match event {
                Event::Done { done } => observe(Progress::Done { done: before + done, total }),
                Event::Taken(trial) => {
                    history.add(&trial);
                    let record = TuneRecord::Trial(Box::new(trial));
                    observe(Progress::Record(&record))?;
                    if let TuneRecord::Trial(trial) = record {
                        runs.push(*trial);
                    }
                    Ok(())
                }
            },
        )?;
        if finished { Ok(()) } else { Err(Halt::Interrupted) }
    }
}
