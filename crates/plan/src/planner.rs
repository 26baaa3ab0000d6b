//! Makes a plan: runs each unit alone, searches a setting, confirms it with fresh seeds, and finds
//! the conditions under which it misses goals.

use iosched::{KernelVersion, SettingError};
use iosched_advise::tune::SpaceError;
use iosched_disk::{Profile, ProfileError};
use iosched_lab::LabError;
use iosched_lab::pool::Control;
use iosched_workload::Workload;

use crate::candidate::{Candidate, Priority};
use crate::goal::{Goal, Metric};
use crate::ground::{Ground, Job, LOADS, Present, is_fast};
use crate::intents::Intents;
use crate::measure::{Observed, range, value};
use crate::outcome::{interval, judged, relaxed};
use crate::plan::{GoalOutcome, Interval, Outcome, Plan, UnitPlan};
use crate::planned::{Condition, Effect, MissedGoal, Nearest, Planned, Rates};
use crate::search::Search;
use crate::shares::effective_shares;

/// Number of fresh runs that decide whether a goal is met.
const RUNS: u64 = 8;
/// Shortest duration of a trace, s. Controllers need several windows of 100 ms.
const SHORTEST_TRACE_S: f64 = 1.0;
/// Number of runs of each condition. Runs on a fast device have many I/Os, so one run is enough.
const RUNS_OF_CONDITION: u64 = 2;
const RUNS_OF_CONDITION_FAST: u64 = 1;
/// Numbers of seeds. Confirming runs and later runs use numbers that the search does not reach.
const SEED_ALONE: u64 = 10;
const SEED_DEFAULT: u64 = 1;
const SEED_CONFIRM: u64 = 1_000;
const SEED_CONDITION: u64 = 2_000;
const SEED_FRESH: u64 = 1_000_000;

/// Reason why there is no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The profile does not exist or is wrong.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A setting is not possible.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The tunables that the search varies are not known.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] LabError),
    /// A goal is about I/O that the unit does not make.
    #[error(
        "{file}: unit.{unit}: goal = \"{goal}\": the workload has no I/O of this kind; choose another operation, such \
         as {available}, or another workload"
    )]
    NoSuchIo {
        /// Name of the intents file.
        file: String,
        /// Name of the unit.
        unit: String,
        /// The goal.
        goal: String,
        /// Operations that the workload makes.
        available: String,
    },
    /// A unit does nothing in the simulated time.
    #[error(
        "{file}: unit.{unit}: the workload completes no I/O in {seconds:.1} s; give a workload that completes I/O \
        in this time"
    )]
    Idle {
        /// Name of the intents file.
        file: String,
        /// Name of the unit.
        unit: String,
        /// Simulated time, s.
        seconds: f64,
    },
    /// A trace is too short for runs.
    #[error(
        "{file}: unit.{unit}: the trace {trace} lasts {seconds:.3} s, but a plan needs {needed} s; record for longer, or \
         describe the workload as a fio job"
    )]
    Short {
        /// Name of the intents file.
        file: String,
        /// Name of the unit.
        unit: String,
        /// Name of the trace.
        trace: String,
        /// Length of the trace, s.
        seconds: f64,
        /// Shortest length, s.
        needed: f64,
    },
    /// No unit has a goal.
    #[error("{file}: no unit has a goal; add a goal, such as goal = \"p99(read) < 5 ms\"")]
    NoGoal {
        /// Name of the intents file.
        file: String,
    },
    /// The workload of a unit is not recorded yet.
    #[error(
        "{file}: unit.{unit}: workload = \"observed\": only the command iosched plan can record this workload; run \
         this command, or give a trace or a fio job file"
    )]
    NotRecorded {
        /// Name of the intents file.
        file: String,
        /// Name of the unit.
        unit: String,
    },
    /// The user ended the search.
    #[error("the command was interrupted before the plan was complete")]
    Interrupted,
}

/// Options of the search for a plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Version of Linux. It replaces the version of the intents.
    pub kernel: Option<KernelVersion>,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self { seed: 1, kernel: None }
    }
}

/// A step of the work, for the display of its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs made so far.
    pub runs: u64,
}

/// Makes a plan. The same intents and seed give the same plan, whatever the number of threads.
///
/// # Errors
/// If the profile or a workload does not fit, or `control` ends the runs.
pub fn plan(
    intents: &Intents,
    options: &PlanOptions,
    control: &Control,
    mut progress: impl FnMut(Step),
) -> Result<Planned, PlanError> {
    if intents.units.iter().all(|unit| unit.goals.is_empty()) {
        return Err(PlanError::NoGoal { file: intents.name.clone() });
    }
    if let Some(unit) = intents.units.iter().find(|unit| unit.needs_recording) {
        return Err(PlanError::NotRecorded { file: intents.name.clone(), unit: unit.name.clone() });
    }
    let mut runs = 0;
    let mut count = |more| {
        runs += more;
        progress(Step { runs });
    };
    let (ground, default) = prepare(intents, options, control, &mut count)?;
    let best = Search::new(&ground, default.clone(), control, &mut count)?.best()?;
    let Some(candidate) = best.into_iter().next() else { return Err(PlanError::Interrupted) };
    let confirmed = confirm(&ground, &candidate, SEED_CONFIRM, RUNS, control, &mut count)?;
    let units = outcomes(&ground, &candidate, &confirmed);
    let conditions = conditions(&ground, &candidate, control, &mut count)?;
    let setting = ground.setting(&candidate)?;
    let default_setting = ground.setting(&ground.default())?.to_string();
    let effects = effects(&ground, &default, &confirmed);
    let mut notes = intents.notes.clone();
    if ground.profile.fit().is_none() {
        notes.push(format!(
            "The profile {} was never compared with a device, so the intervals of predicted values include only the \
             differences between runs.",
            ground.profile.name()
        ));
    }
    let shares = effective_shares(&ground, &candidate, &confirmed);
    let nearest = nearest(&ground, &units);
    Ok(Planned {
        plan: Plan {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: intents.device.clone(),
            profile: ground.profile.name().to_owned(),
            setting,
            units,
        },
        intents: intents.name.clone(),
        default: default_setting,
        effects,
        nearest,
        conditions,
        effective_shares: shares,
        model_error_percent: ground.profile.fit().map(|fit| (fit.rate_error_percent, fit.tail_error_percent)),
        simulated_s: ground.counted_s(),
        runs,
        seed: options.seed,
        notes,
    })
}

/// Makes fresh runs under a plan. Returns, for each run, whether each goal of each unit holds, in
/// the order of [`Plan::units`]. `first` selects seeds that no plan uses.
///
/// # Errors
/// The errors of [`plan`].
pub fn verify(
    intents: &Intents,
    planned: &Planned,
    options: &PlanOptions,
    runs: u64,
    control: &Control,
) -> Result<Vec<Vec<Vec<bool>>>, PlanError> {
    let (ground, _) = prepare(intents, options, control, &mut |_| ())?;
    let candidate = planned.candidate(&ground);
    let observed = confirm(&ground, &candidate, SEED_FRESH, runs, control, &mut |_| ())?;
    let holds = |run: &Observed| {
        let of = |(number, unit): (usize, &crate::intents::Unit)| {
            let holds = |wanted: &crate::goal::WantedGoal| {
                let context = ground.context(number, &wanted.goal);
                let (low, high) = range(&wanted.goal, &context);
                value(&wanted.goal, run, &context).is_some_and(|value| (low..=high).contains(&value))
            };
            unit.goals.iter().map(holds).collect()
        };
        intents.units.iter().enumerate().map(of).collect()
    };
    Ok(observed.iter().map(holds).collect())
}

/// Loads the profile, runs each unit alone, and runs all units under the default.
fn prepare<'a>(
    intents: &'a Intents,
    options: &PlanOptions,
    control: &Control,
    count: &mut dyn FnMut(u64),
) -> Result<(Ground<'a>, Observed), PlanError> {
    check_length(intents)?;
    let profile = Profile::load(&intents.profile)?;
    let mut ground = Ground::new(intents, profile, options.kernel, options.seed);
    let default = ground.default();
    let job = |present| Job { present, ..Job::new(&default, SEED_ALONE) };
    let alone: Vec<Job<'_>> = (0..intents.units.len()).map(|unit| job(Present::Only(unit))).collect();
    // Under some settings, the unit with most I/Os makes nearly as many I/Os as it makes alone.
    let mut most = ground.runs(&[job(Present::All)], control, count)?.1;
    for alone in &alone {
        // If the device is fast, further pilots cannot change the duration of the runs.
        if is_fast(most) {
            break;
        }
        most = most.max(ground.runs(std::slice::from_ref(alone), control, count)?.1);
    }
    ground.set_time(most);
    let (alone, _) = ground.runs(&alone, control, count)?;
    for (number, run) in alone.iter().enumerate() {
        let (unit, its) = (&intents.units[number], &run.units[number]);
        if its.ios == 0 {
            let (file, unit) = (intents.name.clone(), unit.name.clone());
            return Err(PlanError::Idle { file, unit, seconds: run.seconds });
        }
        for wanted in &unit.goals {
            check_io(intents, number, &wanted.goal, run)?;
        }
        ground.alone[number] = its.rates(run.seconds);
    }
    let run = Job::new(&default, SEED_DEFAULT);
    let (mut observed, _) = ground.runs(&[run], control, count)?;
    let Some(observed) = observed.pop() else { return Err(PlanError::Interrupted) };
    Ok((ground, observed))
}

/// Checks that no trace is too short for a run.
fn check_length(intents: &Intents) -> Result<(), PlanError> {
    for unit in &intents.units {
        let Workload::Trace(trace) = &unit.workload else { continue };
        let seconds = trace.span_ns() as f64 / 1e9;
        let needed = SHORTEST_TRACE_S * unit.scale.max(1.0);
        if seconds < needed {
            let (file, unit) = (intents.name.clone(), unit.name.clone());
            return Err(PlanError::Short { file, unit, trace: trace.name().to_owned(), seconds, needed });
        }
    }
    Ok(())
}

/// Checks that the unit makes I/O of the kind that a goal concerns.
fn check_io(intents: &Intents, number: usize, goal: &Goal, alone: &Observed) -> Result<(), PlanError> {
    use crate::goal::Operation;
    let Goal::Bound(Metric::Latency(_, operation), _) = goal else { return Ok(()) };
    let run = &alone.units[number];
    if run.has(*operation) {
        return Ok(());
    }
    let all = [("read", Operation::Read), ("write", Operation::Write), ("fsync", Operation::Fsync)];
    let available: Vec<&str> = all.iter().filter(|(_, other)| run.has(*other)).map(|(name, _)| *name).collect();
    Err(PlanError::NoSuchIo {
        file: intents.name.clone(),
        unit: intents.units[number].name.clone(),
        goal: goal.to_string(),
        available: available.join(", "),
    })
}

fn confirm(
    ground: &Ground<'_>,
    candidate: &Candidate,
    first_seed: u64,
    runs: u64,
    control: &Control,
    count: &mut dyn FnMut(u64),
) -> Result<Vec<Observed>, PlanError> {
    let job = |run| Job::new(candidate, first_seed + run);
    let jobs: Vec<Job<'_>> = (0..runs).map(job).collect();
    Ok(ground.runs(&jobs, control, count)?.0)
}

/// Judges every goal of every unit by runs with fresh seeds.
fn outcomes(ground: &Ground<'_>, candidate: &Candidate, runs: &[Observed]) -> Vec<UnitPlan> {
    let of = |(number, unit): (usize, &crate::intents::Unit)| {
        let goal = |wanted: &crate::goal::WantedGoal| {
            let context = ground.context(number, &wanted.goal);
            let values: Vec<Option<f64>> = runs.iter().map(|run| value(&wanted.goal, run, &context)).collect();
            let error = ground.error_percent(&wanted.goal).unwrap_or(0.0);
            let (predicted, outcome) = match interval(&values, error) {
                Some(predicted) => (predicted, judged(predicted, range(&wanted.goal, &context))),
                // The unit completed no I/O of this kind, although it completes such I/Os alone.
                None if matches!(wanted.goal, Goal::Bound(..)) => {
                    let ms = ground.counted_s() * 1e3;
                    (Interval { value: ms, from: ms, to: ms }, Outcome::Missed)
                }
                None => (Interval { value: 0.0, from: 0.0, to: 0.0 }, Outcome::CannotTell),
            };
            GoalOutcome { wanted: wanted.clone(), predicted, outcome }
        };
        UnitPlan {
            name: unit.name.clone(),
            target: unit.target.clone(),
            cgroup: unit.name.clone(),
            priority: candidate.units[number].priority.map(Priority::ioprio),
            goals: unit.goals.iter().map(goal).collect(),
        }
    };
    ground.intents.units.iter().enumerate().map(of).collect()
}

/// Runs the plan under other loads, with each unit left out in turn, and with an additional unit.
fn conditions(
    ground: &Ground<'_>,
    candidate: &Candidate,
    control: &Control,
    count: &mut dyn FnMut(u64),
) -> Result<Vec<Condition>, PlanError> {
    let units = &ground.intents.units;
    let mut wanted: Vec<(String, usize, Present)> = vec![
        ("all units have 30 % more load".to_owned(), 1, Present::All),
        ("all units have 30 % less load".to_owned(), 2, Present::All),
    ];
    if units.len() > 1 {
        let without = |(number, unit): (usize, &crate::intents::Unit)| {
            (format!("{} is idle", unit.name), 0, Present::Without(number))
        };
        wanted.extend(units.iter().enumerate().map(without));
    }
    // The unit with the highest throughput alone disturbs other units most.
    let busiest = (0..units.len()).max_by(|&a, &b| ground.alone[a].0.total_cmp(&ground.alone[b].0)).unwrap_or(0);
    let joined = format!("one more unit like {} uses the disk without limits", units[busiest].name);
    wanted.push((joined, 0, Present::Joined(busiest)));
    let each = if ground.is_fast { RUNS_OF_CONDITION_FAST } else { RUNS_OF_CONDITION };
    let jobs: Vec<Job<'_>> = wanted
        .iter()
        .flat_map(|&(_, load, present)| {
            (0..each).map(move |run| Job { load, present, ..Job::new(candidate, SEED_CONDITION + run) })
        })
        .collect();
    debug_assert!(wanted.iter().all(|(_, load, _)| *load < LOADS.len()));
    let (observed, _) = ground.runs(&jobs, control, count)?;
    let condition = |((when, _, present), runs): ((String, usize, Present), &[Observed])| {
        let is_gone = |unit: usize| present == Present::Without(unit);
        let mut missed = Vec::new();
        for (unit, wanted) in ground.goals() {
            let context = ground.context(unit, &wanted.goal);
            let needs_gone = match &wanted.goal {
                Goal::Share(_) => ground.shares.iter().any(|&(other, _)| is_gone(other)),
                Goal::Before(_) => context.other.is_some_and(is_gone),
                _ => false,
            };
            if is_gone(unit) || needs_gone {
                continue;
            }
            let (low, high) = range(&wanted.goal, &context);
            let values: Vec<f64> = runs.iter().filter_map(|run| value(&wanted.goal, run, &context)).collect();
            let worst = values.iter().copied().find(|value| !(low..=high).contains(value));
            // A unit with more load requests at least as much I/O, so a missing value means a
            // missed goal.
            if worst.is_some() || values.is_empty() {
                let (unit, goal) = (ground.intents.units[unit].name.clone(), wanted.clone());
                missed.push(MissedGoal { unit, goal, value: worst });
            }
        }
        Condition { when, missed }
    };
    Ok(wanted.into_iter().zip(observed.chunks(each as usize)).map(condition).collect())
}

/// Returns the rates of each unit under the default, alone, and under the plan.
fn effects(ground: &Ground<'_>, default: &Observed, planned: &[Observed]) -> Vec<Effect> {
    let of = |(number, unit): (usize, &crate::intents::Unit)| {
        let mean =
            |value_of: &dyn Fn(&Observed) -> f64| planned.iter().map(value_of).sum::<f64>() / planned.len() as f64;
        let rates = |(mb_per_s, iops)| Rates { mb_per_s, iops };
        Effect {
            unit: unit.name.clone(),
            alone: rates(ground.alone[number]),
            default: rates(default.units[number].rates(default.seconds)),
            planned: Rates {
                mb_per_s: mean(&|run| run.units[number].rates(run.seconds).0),
                iops: mean(&|run| run.units[number].rates(run.seconds).1),
            },
        }
    };
    ground.intents.units.iter().enumerate().map(of).collect()
}

/// Returns, for each goal that is not met, the nearest goal that this plan meets.
fn nearest(ground: &Ground<'_>, units: &[UnitPlan]) -> Vec<Nearest> {
    let mut all = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        for outcome in unit.goals.iter().filter(|outcome| outcome.outcome != Outcome::Met) {
            let goal = &outcome.wanted.goal;
            let (mb, iops) = ground.alone[number];
            let alone = match goal {
                Goal::Bound(Metric::Throughput, crate::goal::Bound::AtLeast(least)) => (mb < *least).then_some(mb),
                Goal::Bound(Metric::Iops, crate::goal::Bound::AtLeast(least)) => (iops < *least).then_some(iops),
                _ => None,
            };
            let bound = range(goal, &ground.context(number, goal));
            let value = outcome.predicted.value;
            let by_percent = if value > bound.1 {
                (value / bound.1 - 1.0) * 100.0
            } else if value < bound.0 {
                (1.0 - value / bound.0) * 100.0
            } else {
                0.0
            };
            all.push(Nearest {
                unit: unit.name.clone(),
                goal: outcome.wanted.clone(),
                by_percent,
                alone,
                achievable: relaxed(goal, outcome.predicted),
            });
        }
    }
    all
}
