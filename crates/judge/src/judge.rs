//! The whole judgement: all parts for all judged schedulers.

use iosched::{Registry, SettingError, UnknownElevator};
use iosched_disk::{Profile, ProfileError};
use iosched_lab::goal::GoalError;
use iosched_lab::{Control, LabError};
use iosched_sim::{Plan, RunResult, SimError, run};
use iosched_workload::WorkloadError;

use crate::card::{Judgement, ReportCard};
use crate::comparisons::{self, Compared};
use crate::cost::{CostError, Counter};
use crate::workloads::run_ns;
use crate::{rules, shares, waits};

/// What is judged, and how thoroughly.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JudgeRequest {
    /// The schedulers of Linux, and those of one's own.
    pub registry: Registry,
    /// Names of the schedulers to judge.
    pub schedulers: Vec<String>,
    /// Seed of all parts.
    pub seed: u64,
    /// Whether workloads are compared on all devices. This takes longest.
    pub compare: bool,
    /// Runs of each comparison, at least 2.
    pub runs: u32,
    /// Length of the runs of comparisons and shares, per cent of the usual length, at least 1.
    pub time_percent: u32,
    /// Workloads that the search for long waits tries in each of its four generations.
    pub tries: u32,
    /// Random operations on the request queue for each scheduler.
    pub operations: u64,
    /// Counter of instructions; `None`: the cost is left out.
    pub counter: Option<Counter>,
}

impl JudgeRequest {
    /// Returns a request with seed 1, 5 runs, 16 tries and 200,000 operations, without the cost.
    #[must_use]
    pub fn new(registry: Registry, schedulers: &[&str]) -> Self {
        let schedulers = schedulers.iter().map(|&name| name.to_owned()).collect();
        Self {
            registry,
            schedulers,
            seed: 1,
            compare: true,
            runs: 5,
            time_percent: 100,
            tries: 16,
            operations: 200_000,
            counter: None,
        }
    }
}

/// Part of a judgement that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A workload on a device, for all schedulers.
    Comparison {
        /// Number of this comparison, from 1.
        number: usize,
        /// Number of all comparisons.
        of: usize,
    },
    /// Shares under a scheduler.
    Shares(&'a str),
    /// Longest waits under a scheduler.
    Waits(&'a str),
    /// Rules that a scheduler must keep.
    Rules(&'a str),
    /// Cost of a scheduler.
    Cost(&'a str),
}

impl Part<'_> {
    /// Returns a line about the part for people who wait.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Comparison { number, of } => format!("comparison {number} of {of}"),
            Self::Shares(name) => format!("{name}: shares"),
            Self::Waits(name) => format!("{name}: search for the longest waits"),
            Self::Rules(name) => format!("{name}: random operations"),
            Self::Cost(name) => format!("{name}: instructions"),
        }
    }
}

/// Reason why a scheduler cannot be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JudgeError {
    /// No scheduler was given.
    #[error("there is nothing to judge; give at least one scheduler")]
    Nothing,
    /// Fewer than 2 runs have no spread.
    #[error("runs: {0} is too few; verdicts need at least 2 runs")]
    Runs(u32),
    /// The registry has no scheduler of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownElevator),
    /// A scheduler cannot run on a device.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A device of the report card has no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A workload of the report card cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A metric of the report card cannot be read.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A comparison failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Instructions cannot be counted.
    #[error(transparent)]
    Cost(#[from] CostError),
}

/// Judges schedulers. A scheduler that breaks a rule gets no other part, because its runs could not
/// end. `observe` is called before each part. If `control` is interrupted, the judgement has the
/// complete parts only.
///
/// # Errors
/// A scheduler is not in the registry or cannot run on a device of the report card, a run fails, or
/// instructions cannot be counted.
pub fn judge(
    request: &JudgeRequest,
    control: &Control,
    mut observe: impl FnMut(Part<'_>),
) -> Result<Judgement, JudgeError> {
    let registry = &request.registry;
    if request.schedulers.is_empty() {
        return Err(JudgeError::Nothing);
    }
    if request.runs < 2 {
        return Err(JudgeError::Runs(request.runs));
    }
    let mut cards = Vec::new();
    for name in &request.schedulers {
        let elevator = registry.get(name)?;
        cards.push(ReportCard::new(elevator.name, elevator.about));
    }
    let mut judgement = Judgement { compared: Vec::new(), cards, complete: false };
    for card in &mut judgement.cards {
        observe(Part::Rules(card.scheduler));
        let operations = (request.operations, request.seed);
        let Some(kept) = rules::check(registry, card.scheduler, operations, control)? else { return Ok(judgement) };
        card.rules = Some(kept);
    }
    let sound = judgement.cards.iter().filter(|card| !card.is_broken()).map(|card| card.scheduler);
    let sound: Vec<&str> = sound.collect();
    judgement.compared = compare_all(request, &sound, control, &mut observe)?;
    for card in judgement.cards.iter_mut().filter(|card| !card.is_broken()) {
        let name = card.scheduler;
        observe(Part::Shares(name));
        let Some(shares) = shares::measure(request, name, control)? else { return Ok(judgement) };
        card.shares = shares;
        observe(Part::Waits(name));
        let tries = (request.tries, request.seed);
        let Some(waits) = waits::search(registry, name, tries, control)? else { return Ok(judgement) };
        card.waits = waits;
        if let Some(counter) = &request.counter {
            observe(Part::Cost(name));
            let Some(cost) = counter.count_all(registry, name, control)? else { return Ok(judgement) };
            card.cost = cost;
        }
    }
    judgement.complete = true;
    Ok(judgement)
}

fn compare_all(
    request: &JudgeRequest,
    judged: &[&str],
    control: &Control,
    observe: &mut impl FnMut(Part<'_>),
) -> Result<Vec<Compared>, JudgeError> {
    let mut all = Vec::new();
    let pairs: Vec<_> = comparisons::pairs().filter(|_| request.compare && !judged.is_empty()).collect();
    for (number, &pair) in pairs.iter().enumerate() {
        observe(Part::Comparison { number: number + 1, of: pairs.len() });
        let Some(compared) = comparisons::compare(request, judged, pair, control)? else { break };
        all.push(compared);
    }
    Ok(all)
}

impl JudgeRequest {
    /// Returns the length of a run on a device, ns.
    pub(crate) fn run_ns(&self, profile: &Profile) -> u64 {
        run_ns(profile) / 100 * u64::from(self.time_percent.max(1))
    }
}

/// Makes a run. Returns `None` if `control` was interrupted.
pub(crate) fn simulate(plan: &Plan<'_>, control: &Control) -> Result<Option<RunResult>, LabError> {
    let plan = Plan { interrupt: Some(control.stopping()), ..plan.clone() };
    match run(&plan, &mut ()) {
        Ok(result) => Ok(Some(result)),
        Err(SimError::Interrupted { .. }) => Ok(None),
        Err(source) => {
            let name = plan.scheduler.to_string();
            Err(LabError::Run { name, run: 0, seed: plan.seed, source: Box::new(source) })
        }
    }
}
