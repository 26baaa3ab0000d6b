//! Runs units together: under one candidate, with one load, and with all or some of the units.

use iosched::{KernelVersion, Setting};
use iosched_advise::io_cost::IoCost;
use iosched_disk::{Fit, Profile};
use iosched_lab::pool::{Control, Event, in_order, settled};
use iosched_numbers::SplitMix64;
use iosched_sim::{BlockLayer, Limit, Plan as SimPlan, run};
use iosched_workload::{Part, Several, Workload};

use crate::candidate::{Candidate, Priority};
use crate::goal::{Goal, Metric, Statistic, WantedGoal};
use crate::intents::Intents;
use crate::load::{replay, scaled};
use crate::measure::{Context, Observed, Watch};
use crate::planner::PlanError;

/// Desired number of events of a run. It is enough for a 99th percentile, and takes a fraction of a
/// second.
const EVENTS_PER_RUN: f64 = 80_000.0;
/// Duration of a pilot run, ns.
const PILOT_NS: u64 = 1_000_000_000;
/// Shortest and longest time that counts, s.
const COUNTED_S_MIN: f64 = 2.0;
const COUNTED_S_MAX: f64 = 30.0;
/// Shortest warm-up, s. Controllers need several of their windows.
const WARM_UP_S_MIN: f64 = 1.0;
/// Runs with more events than this number are shorter. Fast devices have millions of events per
/// second.
const EVENTS_PER_RUN_MAX: f64 = 1_000_000.0;
/// Shortest duration of such a shorter run, s. It has several windows of each controller, and most
/// windows last 100 ms.
const FAST_RUN_S_MIN: f64 = 1.4;
/// Share of the warm-up in the duration of such a shorter run.
const FAST_WARM_UP_SHARE: f64 = 0.35;
/// Additional warm-up, as a share of the time that counts.
const WARM_UP_SHARE: f64 = 0.15;
/// Duration that is enough for the longest run at the highest load of [`LOADS`], s.
pub(crate) const LONGEST_RUN_S: f64 = (COUNTED_S_MAX * (1.0 + WARM_UP_SHARE) + WARM_UP_S_MIN) * LOADS[1];
/// Alignment of the regions of units, sectors.
const REGION_SECTORS: u64 = 2048;
/// Loads for which the plan is checked, as factors of the usual load.
pub(crate) const LOADS: [f64; 3] = [1.0, 1.3, 0.7];
/// Name of the additional unit in a run.
const NEWCOMER: &str = "newcomer";

/// Returns whether a pilot run shows that runs of the usual duration would have too many events.
pub(crate) fn is_fast(pilot_events: u64) -> bool {
    let usual_s = WARM_UP_S_MIN + COUNTED_S_MIN * (1.0 + WARM_UP_SHARE);
    pilot_events as f64 / (PILOT_NS as f64 / 1e9) * usual_s > EVENTS_PER_RUN_MAX
}

/// The units that take part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Present {
    All,
    Only(usize),
    Without(usize),
    /// All units, and an additional unit without limits that has the workload of this unit.
    Joined(usize),
}

/// A planned run.
#[derive(Clone, Debug)]
pub(crate) struct Job<'c> {
    pub(crate) candidate: &'c Candidate,
    /// Number of the load in [`LOADS`].
    pub(crate) load: usize,
    pub(crate) present: Present,
    /// Number of the seed.
    pub(crate) seed: u64,
    /// Whether the run is one of many of the search, which are shorter on a fast device.
    pub(crate) is_search: bool,
}

impl<'c> Job<'c> {
    /// Returns a run of all units at the usual load.
    pub(crate) fn new(candidate: &'c Candidate, seed: u64) -> Self {
        Self { candidate, load: 0, present: Present::All, seed, is_search: false }
    }
}

/// The data that all runs share.
pub(crate) struct Ground<'a> {
    pub(crate) intents: &'a Intents,
    pub(crate) profile: Profile,
    pub(crate) io_cost: IoCost,
    pub(crate) block_layer: BlockLayer,
    pub(crate) seed: u64,
    /// Parts of the workload, for each of [`LOADS`].
    parts: Vec<Vec<Part>>,
    /// Units with a share, and the pairs of units in goals `before`.
    pub(crate) shares: Vec<(usize, f64)>,
    pub(crate) pairs: Vec<(usize, usize)>,
    /// Rates of each unit alone, MB/s and IOPS.
    pub(crate) alone: Vec<(f64, f64)>,
    warm_up_ns: u64,
    end_ns: u64,
    /// Whether runs are shorter because they have many events.
    pub(crate) is_fast: bool,
}

impl<'a> Ground<'a> {
    pub(crate) fn new(intents: &'a Intents, profile: Profile, kernel: Option<KernelVersion>, seed: u64) -> Self {
        let units = intents.units.len() as u64;
        let capacity = profile.card().capacity_sectors;
        let part = |(number, unit): (usize, &crate::intents::Unit), load: f64| {
            let mut part = Part::new(&unit.name, scaled(&unit.workload, load));
            part.cgroup = unit.cgroup_path();
            part.replay = replay(&unit.workload, unit.scale * load);
            // Each unit has its own region of the device, except traces, which have real positions.
            if !matches!(unit.workload, Workload::Trace(_)) {
                part.first_sector = capacity / units * number as u64 / REGION_SECTORS * REGION_SECTORS;
            }
            part
        };
        let parts = LOADS.map(|load| intents.units.iter().enumerate().map(|unit| part(unit, load)).collect()).to_vec();
        let number = |name: &str| intents.units.iter().position(|unit| unit.name == name);
        let goals = || {
            intents
                .units
                .iter()
                .enumerate()
                .flat_map(|(number, unit)| unit.goals.iter().map(move |goal| (number, goal)))
        };
        let share = |(unit, wanted): (usize, &WantedGoal)| match wanted.goal {
            Goal::Share(share) => Some((unit, share)),
            _ => None,
        };
        let pair = |(unit, wanted): (usize, &WantedGoal)| match &wanted.goal {
            Goal::Before(other) => Some((unit, number(other)?)),
            _ => None,
        };
        Self {
            intents,
            io_cost: IoCost::of_profile(&profile),
            block_layer: BlockLayer { kernel: kernel.or(intents.kernel), ..BlockLayer::default() },
            profile,
            seed,
            parts,
            shares: goals().filter_map(share).collect(),
            pairs: goals().filter_map(pair).collect(),
            alone: vec![(f64::INFINITY, f64::INFINITY); intents.units.len()],
            warm_up_ns: 0,
            end_ns: PILOT_NS,
            is_fast: false,
        }
    }

    /// Returns the name of each unit's cgroup, or `None` for a unit without a cgroup.
    pub(crate) fn names(&self) -> Vec<Option<&str>> {
        let name = |unit: &'a crate::intents::Unit| (!unit.cgroup_path().is_empty()).then_some(unit.name.as_str());
        self.intents.units.iter().map(name).collect()
    }

    /// Returns the default setting of Linux for the device.
    pub(crate) fn default(&self) -> Candidate {
        Candidate::plain(self.profile.card().default_scheduler(), self.intents.units.len())
    }

    /// Sets the duration of the runs from a pilot run.
    pub(crate) fn set_time(&mut self, pilot_events: u64) {
        let per_s = pilot_events as f64 / (PILOT_NS as f64 / 1e9);
        let counted_s = (EVENTS_PER_RUN / per_s.max(1.0)).clamp(COUNTED_S_MIN, COUNTED_S_MAX);
        let warm_up_s = WARM_UP_S_MIN + counted_s * WARM_UP_SHARE;
        let (mut warm_up_s, mut end_s) = (warm_up_s, warm_up_s + counted_s);
        self.is_fast = is_fast(pilot_events);
        if self.is_fast {
            end_s = (EVENTS_PER_RUN_MAX / per_s).max(FAST_RUN_S_MIN);
            warm_up_s = end_s * FAST_WARM_UP_SHARE;
        }
        // A trace ends with its last I/O, and sooner under a higher load.
        for unit in &self.intents.units {
            if let Workload::Trace(trace) = &unit.workload {
                let most_s = trace.span_ns() as f64 / 1e9 / unit.scale / LOADS[1];
                end_s = end_s.min(most_s);
            }
        }
        warm_up_s = warm_up_s.min(end_s * 0.3);
        (self.warm_up_ns, self.end_ns) = ((warm_up_s * 1e9) as u64, (end_s * 1e9) as u64);
    }

    /// Returns the measured time of a run without its warm-up, s.
    pub(crate) fn counted_s(&self) -> f64 {
        (self.end_ns - self.warm_up_ns) as f64 / 1e9
    }

    pub(crate) fn setting(&self, candidate: &Candidate) -> Result<Setting, PlanError> {
        Ok(candidate.setting(&self.names(), &self.io_cost)?)
    }

    /// Returns the workload of a run.
    fn workload(&self, job: &Job<'_>) -> Several {
        let mut parts = self.parts[job.load].clone();
        let empty = || Workload::Tasks(Box::default());
        for (number, (part, values)) in parts.iter_mut().zip(&job.candidate.units).enumerate() {
            part.priority = values.priority.map(Priority::ioprio);
            let is_there = match job.present {
                Present::All | Present::Joined(_) => true,
                Present::Only(only) => number == only,
                Present::Without(left) => number != left,
            };
            if !is_there {
                part.workload = empty();
            }
        }
        if let Present::Joined(like) = job.present {
            let mut part = self.parts[job.load][like].clone();
            (part.name, part.cgroup) = (NEWCOMER.to_owned(), format!("{NEWCOMER}.slice"));
            part.first_sector += self.profile.card().capacity_sectors / 3 / REGION_SECTORS * REGION_SECTORS;
            parts.push(part);
        }
        Several { name: self.intents.name.clone(), parts }
    }

    /// Makes one run. Returns the results of the units, and the number of events. Returns `None` if
    /// `control` ended the run.
    fn run(&self, job: &Job<'_>, control: &Control) -> Result<Option<(Observed, u64)>, iosched_lab::LabError> {
        let several = self.workload(job);
        let units = several.parts.len();
        let unit_of_task =
            several.tasks().into_iter().enumerate().flat_map(|(unit, tasks)| tasks.map(move |_| unit)).collect();
        let workload = Workload::Several(Box::new(several));
        let setting = job.candidate.setting(&self.names(), &self.io_cost);
        let seed = SplitMix64::entity(self.seed, job.seed).next_u64();
        let sharing = self.shares.iter().map(|&(unit, _)| unit).collect();
        let part = if job.is_search && self.is_fast { 2 } else { 1 };
        let (warm_up_ns, end_ns) = (self.warm_up_ns / part, self.end_ns / part);
        let mut watch = Watch::new(unit_of_task, units, sharing, self.pairs.clone(), warm_up_ns);
        let name = || format!("{:?}", job.candidate);
        settled(name, 0, seed, || {
            let plan = SimPlan {
                seed,
                block_layer: self.block_layer,
                warm_up_ns,
                limit: Limit { time_ns: Some(end_ns), ios: None },
                interrupt: Some(control.aborted()),
                ..SimPlan::new(&workload, &self.profile, setting?)
            };
            run(&plan, &mut watch)
        })
        .map(|result| result.map(|result| (watch.into_observed(result.finished_ns), result.events)))
    }

    /// Makes runs on all processors. Returns their results in the order of the jobs, and the number
    /// of events.
    ///
    /// # Errors
    /// If a run fails, or `control` ends the runs.
    pub(crate) fn runs(
        &self,
        jobs: &[Job<'_>],
        control: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Vec<Observed>, u64), PlanError> {
        let mut all = Vec::with_capacity(jobs.len());
        let mut events = 0;
        let complete = in_order(
            control,
            jobs,
            |job| self.run(job, control),
            |event| {
                match event {
                    Event::Taken((observed, its_events)) => {
                        events += its_events;
                        all.push(observed);
                    }
                    Event::Done { .. } => progress(1),
                }
                Ok(())
            },
        )?;
        if complete && all.len() == jobs.len() { Ok((all, events)) } else { Err(PlanError::Interrupted) }
    }

    /// Returns the data that the value of a goal depends on, apart from the run.
    pub(crate) fn context(&self, unit: usize, goal: &Goal) -> Context<'_> {
        let other = match goal {
            Goal::Before(other) => self.intents.units.iter().position(|unit| unit.name == *other),
            _ => None,
        };
        Context { unit, shares: &self.shares, pairs: &self.pairs, other, alone: self.alone[unit] }
    }

    /// Returns all goals with the numbers of their units.
    pub(crate) fn goals(&self) -> impl Iterator<Item = (usize, &'a WantedGoal)> {
        let units = self.intents.units.iter().enumerate();
        units.flat_map(|(number, unit)| unit.goals.iter().map(move |goal| (number, goal)))
    }

    /// Returns the recorded error of the profile for a goal, per cent. `None` if the error was
    /// never measured.
    pub(crate) fn error_percent(&self, goal: &Goal) -> Option<f64> {
        let fit: Fit = self.profile.fit()?;
        match goal {
            Goal::Bound(Metric::Latency(Statistic::Quantile(_) | Statistic::Worst, _), _) => {
                Some(fit.tail_error_percent)
            }
            // The two units of `before` have different I/Os, so the errors of their latencies do
            // not cancel out.
            Goal::Bound(..) | Goal::Reservation(..) | Goal::Before(_) => Some(fit.rate_error_percent),
            // A share of units on one device, and a limit that a controller enforces, do not depend
            // on the speed of the device.
            Goal::Share(_) | Goal::Limit(..) => Some(0.0),
        }
    }
}
