//! The definition of a search, and the whole search from the first to the last run.

use std::collections::BTreeMap;

use iosched::Setting;
use iosched_lab::goal::{Bound, Constraint, Goal, Measure, MeasureRecord};
use iosched_lab::pool::settled;
use iosched_lab::{Control, Experiment, Figure, LabError};
use iosched_numbers::SplitMix64;
use iosched_sim::{Plan, RunResult, run};

use super::controllers::{self, Controller};
use super::history::History;
use super::record::{ConstraintRecord, TuneHeader, TuneRecord, TuneRun};
use super::run::{Halt, Progress, Runner};
use super::search::{Allotment, Search};
use super::space::{Dimension, Selection, Space, SpaceError};

/// Least budget. With fewer runs, a setting cannot be both found and confirmed.
pub const BUDGET_MIN: u32 = 30;
/// Random stream of the search. No run has this number.
const SEARCH_STREAM: u64 = u64::MAX;
/// Number of runs of the baseline that show which measures exist and whether seeds matter.
const PROBES: u32 = 2;

/// The definition of a search: what is tuned, the goals and the budget.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Workload, device, machine, replay and seed. The settings,
    /// runs and baseline of the experiment are not used.
    pub experiment: Experiment,
    /// The space that is searched.
    pub space: Space,
    /// The metrics to optimise. Several goals give a front of best compromises.
    pub goals: Vec<Goal>,
    /// Conditions that a setting must meet.
    pub constraints: Vec<Constraint>,
    /// The setting that others are compared with. It can lie outside
    /// the space, for example the present setting of a device.
    pub baseline: Setting,
    /// Largest number of runs of the workload, at least [`BUDGET_MIN`].
    pub budget: u32,
    /// Controllers that are not searched because the workload has no cgroups.
    pub left_out: Vec<Controller>,
}

/// An error of a search.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The space is invalid.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// There is no goal.
    #[error("no goal is given; give a goal, such as --goal \"p99(sync)\"")]
    NoGoal,
    /// The unit of a bound is wrong.
    #[error("{constraint}: {problem}")]
    Bound {
        /// Text of the constraint.
        constraint: String,
        /// Error of the constraint.
        problem: String,
    },
    /// The budget is too small.
    #[error("a budget of {budget} runs is too small; give at least {BUDGET_MIN}")]
    Budget {
        /// The given budget, in runs.
        budget: u32,
    },
    /// The controllers need cgroups, but the workload has none.
    #[error(
        "{controllers}: these controllers need cgroups, but {workload} has none; add cgroup= to its fio jobs or \
         tasks, or use --controller wbt, which needs no cgroups"
    )]
    NoCgroups {
        /// Names of the controllers.
        controllers: String,
        /// Name of the workload.
        workload: String,
    },
    /// There is not exactly one device.
    #[error("tune takes only one device, but {devices} devices are given")]
    Devices {
        /// Number of devices.
        devices: usize,
    },
    /// A run or the writing of records failed.
    #[error(transparent)]
    Lab(#[from] LabError),
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The plan of the search.
    pub header: TuneHeader,
    /// All runs, in the order of the search.
    pub runs: Vec<TuneRun>,
    /// Whether the search was interrupted.
    pub interrupted: bool,
}

impl Tuning {
    /// Creates a search with a budget of 200 runs. The settings of `experiment` are the elevators,
    /// with their fixed values. The first setting is the baseline.
    ///
    /// # Errors
    /// There is not exactly one device, or a name in `selection` cannot be varied.
    pub fn new(experiment: Experiment, selection: &Selection, goals: Vec<Goal>) -> Result<Self, TuneError> {
        let devices = experiment.profiles().len();
        let config = experiment.profiles().next().map(|profile| experiment.queue_config(profile, &Setting::default()));
        let config = config.filter(|_| devices == 1).ok_or(TuneError::Devices { devices })?;
        let schedulers: Vec<Setting> = experiment.settings().iter().map(|setting| setting.setting.clone()).collect();
        let mut space = Space::of(&schedulers, selection, &config)?;
        let baseline = space.elevators[0].defaults.clone();
        let mut left_out = Vec::new();
        schedulers.iter().try_for_each(|setting| experiment.check(setting))?;
        if !selection.beside.is_empty() {
            let (dimensions, without) = beside(&experiment, &baseline, selection)?;
            space.add(&dimensions, &selection.beside_elevators, &config);
            left_out = without;
        }
        Ok(Self { left_out, space, goals, constraints: Vec::new(), baseline, budget: 200, experiment })
    }

    /// Makes one run to check that the workload has the metrics of the goals and constraints. It
    /// does not search.
    ///
    /// # Errors
    /// The errors of [`tune`].
    pub fn check(&self, control: &Control) -> Result<(), TuneError> {
        self.is_enough()?;
        let runner = Runner { experiment: &self.experiment, control, measures: &[], alone: Vec::new() };
        let Some(first) = runner.probe(&self.baseline, 1)? else { return Ok(()) };
        self.constraints(&self.resolved(self.measures(), &first[0])?)?;
        Ok(())
    }

    fn is_enough(&self) -> Result<(), TuneError> {
        if self.goals.is_empty() {
            return Err(TuneError::NoGoal);
        }
        if self.budget < BUDGET_MIN {
            return Err(TuneError::Budget { budget: self.budget });
        }
        Ok(())
    }

    /// Returns all measures, each once: the measures of goals, the measures of constraints, and the
    /// usual measures.
    fn measures(&self) -> Vec<Measure> {
        let required = self.goals.iter().map(|goal| &goal.measure);
        let required = required.chain(self.constraints.iter().map(|constraint| &constraint.measure)).cloned();
        let mut all: Vec<Measure> = Vec::new();
        for measure in required.chain(Measure::usual()) {
            if !all.contains(&measure) {
                all.push(measure);
            }
        }
        all
    }

    /// Returns the number of measures that the goals and constraints require.
    fn required_count(&self) -> usize {
        let mut required: Vec<&Measure> = Vec::new();
        let all = self.goals.iter().map(|goal| &goal.measure);
        for measure in all.chain(self.constraints.iter().map(|constraint| &constraint.measure)) {
            if !required.contains(&measure) {
                required.push(measure);
            }
        }
        required.len()
    }

    /// Returns the measures that the workload has, each with its record.
    fn resolved(&self, measures: Vec<Measure>, run: &RunResult) -> Result<Vec<(Measure, MeasureRecord)>, TuneError> {
        let required = self.required_count();
        let mut all = Vec::new();
        for (number, measure) in measures.into_iter().enumerate() {
            let no_company = measure == Measure::Figure(Figure::Fairness) && self.experiment.alone_tasks().is_empty();
            let workload = self.experiment.header().workload.name;
            let known = if no_company {
                let there_is =
                    "fairness needs at least two tasks that can run alone; each of them needs 30 I/Os".to_owned();
                Err(LabError::NoSuchFigure { measure: measure.to_string(), workload, there_is })
            } else {
                measure.known(run, &workload)
            };
            match known {
                Ok(record) => all.push((measure, record)),
                Err(error) if number < required => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(all)
    }

    fn constraints(&self, measures: &[(Measure, MeasureRecord)]) -> Result<Vec<ConstraintRecord>, TuneError> {
        let record = |constraint: &Constraint| {
            let number = measures.iter().position(|(measure, _)| *measure == constraint.measure).unwrap_or(0);
            let bound: Result<Bound, String> = constraint.bound.in_unit(&measures[number].1.unit);
            let bound = bound.map_err(|problem| TuneError::Bound { constraint: constraint.to_string(), problem })?;
            Ok(ConstraintRecord::new(constraint, bound, number))
        };
        self.constraints.iter().map(record).collect()
    }

    fn header(&self, measures: &[(Measure, MeasureRecord)], seeds_matter: bool) -> Result<TuneHeader, TuneError> {
        let mut plan = self.experiment.header();
        let mut device = plan.devices.swap_remove(0);
        // The space also contains these values, as defaults.
        device.values.clear();
        let goals: Vec<&Measure> = self.goals.iter().map(|goal| &goal.measure).collect();
        Ok(TuneHeader {
            version: plan.version,
            command: plan.command,
            workload: plan.workload,
            device,
            replay: plan.replay,
            block_layer: plan.block_layer,
            machine: plan.machine,
            baseline: self.baseline.clone(),
            space: self.space.clone(),
            measures: measures.iter().map(|(_, record)| record.clone()).collect(),
            goals: measures.iter().take_while(|(measure, _)| goals.contains(&measure)).count(),
            constraints: self.constraints(measures)?,
            budget: self.budget,
            seed: self.experiment.seed,
            left_out: self.left_out.iter().map(|controller| controller.name().to_owned()).collect(),
            seeds_matter,
            equal_within_percent: self.experiment.equal_within_percent,
        })
    }
}

/// Returns the dimensions of the controllers in `selection`, and the controllers that are left out.
/// The values of the dimensions follow from a run under the baseline.
fn beside(
    experiment: &Experiment,
    baseline: &Setting,
    selection: &Selection,
) -> Result<(Vec<Dimension>, Vec<Controller>), TuneError> {
    let more_disks = experiment.more_disks(baseline);
    let plan = Plan { scheduler: baseline.clone(), more_disks: &more_disks, ..experiment.plan(0, 0, 0) };
    let run = settled(|| baseline.to_string(), 0, plan.seed, || run(&plan, ()))?.ok_or(LabError::NothingRun)?;
    let is_possible = |controller: &Controller| *controller == Controller::Wbt || controllers::has_cgroups(&run);
    let (combined, left_out): (Vec<Controller>, Vec<Controller>) =
        selection.beside.iter().copied().partition(is_possible);
    if !left_out.is_empty() && !selection.beside_if_possible {
        let controllers: Vec<&str> = left_out.iter().map(|controller| controller.name()).collect();
        let workload = experiment.header().workload.name;
        return Err(TuneError::NoCgroups { controllers: controllers.join(", "), workload });
    }
    let profile = experiment.profiles().next();
    let dimensions = profile.map_or_else(Vec::new, |profile| controllers::dimensions(&combined, &run, profile));
    Ok((dimensions, left_out))
}

/// Searches, and passes each event to `observe`. An interruption by `control` ends the search
/// early. The results then have the runs made so far, in the order of the search, but settings may
/// be unconfirmed.
///
/// # Errors
/// The definition of the search is invalid, a run fails, or `observe` fails.
pub fn tune(
    tuning: &Tuning,
    control: &Control,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
) -> Result<Tuned, TuneError> {
    tuning.is_enough()?;
    let experiment = &tuning.experiment;
    experiment.check(&tuning.baseline)?;
    let mut runner = Runner { experiment, control, measures: &[], alone: Vec::new() };
    let first = runner.probe(&tuning.baseline, PROBES)?.ok_or(LabError::NothingRun)?;
    let measures = tuning.resolved(tuning.measures(), &first[0])?;
    let values = |run: &RunResult| measures.iter().map(|(measure, _)| measure.of(run)).collect::<Vec<_>>();
    let mut seeds_matter = values(&first[0]) != values(&first[1]);
    // Even if the runs of the baseline use no random values, another elevator may use them.
    for point in tuning.space.defaults() {
        let setting = tuning.space.setting(&point);
        if !seeds_matter && setting != tuning.baseline {
            let runs = runner.probe(&setting, PROBES)?.ok_or(LabError::NothingRun)?;
            seeds_matter = values(&runs[0]) != values(&runs[1]);
        }
    }
    let header = tuning.header(&measures, seeds_matter)?;
    observe(Progress::Record(&TuneRecord::Tune(Box::new(header.clone()))))?;
    let measures: Vec<Measure> = measures.into_iter().map(|(measure, _)| measure).collect();
    runner.measures = &measures;
    if measures.contains(&Measure::Figure(Figure::Fairness)) {
        runner.alone = experiment.alone_tasks().into_iter().filter_map(|task| experiment.alone(task)).collect();
    }
    let mut search = Search {
        runner: &runner,
        history: History::new(&header),
        runs: Vec::new(),
        observe,
        random: SplitMix64::entity(header.seed, SEARCH_STREAM),
        allotment: Allotment::of(
            header.budget,
            header.goals,
            (header.space.elevators.len(), header.space.controllers().len()),
            header.seeds_matter,
        ),
        first: BTreeMap::new(),
    };
    let interrupted = match search.go() {
        Ok(()) => false,
        Err(Halt::Interrupted) => true,
        Err(Halt::Failed(error)) => return Err(error.into()),
    };
    let runs = search.runs;
    Ok(Tuned { header, runs, interrupted })
}
