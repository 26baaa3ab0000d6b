//! The search for a setting: candidates that follow from the goals, and steps from the best
//! candidates.

use std::collections::{BTreeMap, BTreeSet};

use iosched::Setting;
use iosched_advise::tune::{Selection, Space};
use iosched_lab::pool::Control;

use crate::candidate::{Candidate, Priority, UnitValues};
use crate::goal::{Bound, Goal, Metric, Statistic};
use crate::ground::{Ground, Job, LOADS};
use crate::measure::{Observed, distance, range, value};
use crate::planner::PlanError;

/// Factor by which a value should be better than its bound, in addition to the error of the
/// profile.
const MARGIN: f64 = 1.08;
/// Budget of the search: number of events in all its runs.
const EVENTS: u64 = 6_000_000;
/// Number of candidates from which a round takes steps, and largest number of rounds.
const STARTS: usize = 3;
const STEPS: usize = 4;
/// Number of candidates that run with further seeds.
const FINALISTS: usize = 3;
/// First seed numbers of the search and of its finalists: see [`Job::seed`].
const SEED_SEARCH: u64 = 1;
const SEED_FINAL: u64 = 100;
/// Number of runs of each finalist at the usual load.
const FINAL_RUNS: u64 = 3;
/// Weight of a goal that is missed under a higher or lower load.
const STRESS: f64 = 0.5;
/// Cost of one set value. It equals one per cent of a unit's throughput.
const COST_OF_CHANGE: f64 = 0.01;
/// Caps, as shares of the unit's rate without caps.
const CAP_SHARES: [f64; 4] = [0.7, 0.4, 0.2, 0.08];
/// Factor by which a cap must exceed the rate that a unit needs.
const FLOOR_ROOM: f64 = 1.12;
/// Largest mean size of I/Os for which a cap limits I/Os per second instead of bytes per second.
const SMALL_BYTES: u64 = 32 << 10;
/// Tried values of `nr_requests`. Small values reduce queueing in the device.
const REQUESTS: [u64; 3] = [4, 8, 32];
const NR_REQUESTS: &str = "nr_requests";

/// The score of a candidate. Lower is better. The first field in which two scores differ decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    /// Distance from hard goals, and distance from soft goals.
    hard: f64,
    soft: f64,
    /// Loss of throughput of the units compared with the default, and cost of the set values.
    cost: f64,
}

impl Score {
    fn key(self) -> (i64, i64, i64) {
        let steps = |value: f64, step: f64| (value / step).round() as i64;
        (steps(self.hard, 2e-3), steps(self.soft, 5e-3), steps(self.cost, 1e-3))
    }

    /// Returns whether all goals are met with their margins.
    fn meets_all(self) -> bool {
        self.key().0 == 0 && self.key().1 == 0
    }
}

/// A search.
pub(crate) struct Search<'g> {
    ground: &'g Ground<'g>,
    control: &'g Control,
    progress: &'g mut dyn FnMut(u64),
    default: Observed,
    space: Space,
    known: BTreeMap<Candidate, (i64, i64, i64)>,
    scores: Vec<(Score, Candidate)>,
    events: u64,
}

impl<'g> Search<'g> {
    /// Creates a search. `default` is a run under the default of Linux.
    ///
    /// # Errors
    /// If the space of tunables cannot be built.
    pub(crate) fn new(
        ground: &'g Ground<'g>,
        default: Observed,
        control: &'g Control,
        progress: &'g mut dyn FnMut(u64),
    ) -> Result<Self, PlanError> {
        let settings: Vec<Setting> = SCHEDULERS.iter().map(|name| Setting::defaults(name)).collect();
        let selection = Selection { also: vec![NR_REQUESTS.to_owned()], ..Selection::default() };
        let config = ground.block_layer.queue_config(&ground.profile, None);
        let space = Space::of(&settings, &selection, &config)?;
        Ok(Self { ground, control, progress, default, space, known: BTreeMap::new(), scores: Vec::new(), events: 0 })
    }

    /// Returns the best candidates, the best first.
    ///
    /// # Errors
    /// If a run fails or is interrupted.
    pub(crate) fn best(mut self) -> Result<Vec<Candidate>, PlanError> {
        let first = self.first();
        self.evaluate(first)?;
        for round in 0..STEPS {
            self.sort();
            if self.events >= EVENTS || self.scores[0].0.meets_all() && round > 0 {
                break;
            }
            let starts: Vec<Candidate> = self.starts();
            let steps = starts.iter().flat_map(|candidate| self.steps(candidate)).collect();
            let before = self.scores[0].0.key();
            self.evaluate(steps)?;
            self.sort();
            if self.scores[0].0.key() == before && round > 0 {
                break;
            }
        }
        self.sort();
        self.finalists()
    }

    fn sort(&mut self) {
        self.scores.sort_by(|(a, first), (b, second)| a.key().cmp(&b.key()).then_with(|| first.cmp(second)));
    }

    /// Returns the best candidates. If possible, they have different schedulers.
    fn starts(&self) -> Vec<Candidate> {
        let mut kinds = BTreeSet::new();
        let is_new = |candidate: &Candidate| kinds.insert((candidate.scheduler, candidate.cost_us.is_some()));
        let mut is_new = is_new;
        let different = self.scores.iter().map(|(_, candidate)| candidate).filter(|candidate| is_new(candidate));
        different.take(STARTS).cloned().collect()
    }

    /// Runs the new candidates among `candidates` at the usual load and at the highest load.
    fn evaluate(&mut self, candidates: Vec<Candidate>) -> Result<(), PlanError> {
        let mut new: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            let is_valid = self.ground.setting(&candidate).is_ok_and(|setting| {
                setting
                    .build(iosched::Time::ZERO, &self.ground.block_layer.queue_config(&self.ground.profile, None))
                    .is_ok()
            });
            if is_valid && !self.known.contains_key(&candidate) && !new.contains(&candidate) {
                new.push(candidate);
            }
        }
        // Batches are small, so that the search ends soon after its budget is used up.
        for batch in new.chunks(8) {
            if self.events >= EVENTS && !self.scores.is_empty() {
                break;
            }
            let job = |candidate, load| Job { load, is_search: true, ..Job::new(candidate, SEED_SEARCH) };
            let jobs: Vec<Job<'_>> =
                batch.iter().flat_map(|candidate| [job(candidate, 0), job(candidate, 1)]).collect();
            let (observed, events) = self.ground.runs(&jobs, self.control, self.progress)?;
            self.events += events;
            for (candidate, runs) in batch.iter().zip(observed.chunks(2)) {
                let score = self.score(candidate, &runs[..1], &runs[1..]);
                self.known.insert(candidate.clone(), score.key());
                self.scores.push((score, candidate.clone()));
            }
        }
        Ok(())
    }

    /// Runs the best candidates with new seeds and under all loads, and orders them again.
    fn finalists(mut self) -> Result<Vec<Candidate>, PlanError> {
        let finalists: Vec<Candidate> =
            self.scores.iter().take(FINALISTS).map(|(_, candidate)| candidate.clone()).collect();
        let jobs_of = |candidate: &'_ Candidate| {
            let usual = (0..FINAL_RUNS).map(|run| (0, SEED_FINAL + run));
            let stressed = (1..LOADS.len()).map(|load| (load, SEED_FINAL));
            let all: Vec<(usize, u64)> = usual.chain(stressed).collect();
            all.into_iter().map(|(load, seed)| (candidate.clone(), load, seed)).collect::<Vec<_>>()
        };
        let wanted: Vec<(Candidate, usize, u64)> = finalists.iter().flat_map(jobs_of).collect();
        let job = |(candidate, load, seed): &'_ (Candidate, usize, u64)| (candidate.clone(), *load, *seed);
        let owned: Vec<_> = wanted.iter().map(job).collect();
        let jobs: Vec<Job<'_>> =
            owned.iter().map(|(candidate, load, seed)| Job { load: *load, ..Job::new(candidate, *seed) }).collect();
        let (observed, _) = self.ground.runs(&jobs, self.control, self.progress)?;
        let each = FINAL_RUNS as usize + LOADS.len() - 1;
        let mut scored: Vec<(Score, Candidate)> = finalists
            .into_iter()
            .zip(observed.chunks(each))
            .map(|(candidate, runs)| {
                let (usual, stressed) = runs.split_at(FINAL_RUNS as usize);
                (self.score(&candidate, usual, stressed), candidate)
            })
            .collect();
        std::mem::swap(&mut self.scores, &mut scored);
        self.sort();
        Ok(self.scores.into_iter().map(|(_, candidate)| candidate).collect())
    }

    /// Returns the score of a candidate from its runs. For each goal, the worst run counts.
    fn score(&self, candidate: &Candidate, usual: &[Observed], stressed: &[Observed]) -> Score {
        let mut score = Score { hard: 0.0, soft: 0.0, cost: candidate.changes() as f64 * COST_OF_CHANGE };
        for (unit, wanted) in self.ground.goals() {
            let context = self.ground.context(unit, &wanted.goal);
            let range = range(&wanted.goal, &context);
            let margin = MARGIN + self.ground.error_percent(&wanted.goal).unwrap_or(0.0) / 100.0;
            let worst = |runs: &[Observed]| {
                let distances = runs.iter().map(|run| distance(value(&wanted.goal, run, &context), range, margin));
                distances.fold(0.0, f64::max)
            };
            let far = worst(usual) + STRESS * worst(stressed);
            *(if wanted.hard { &mut score.hard } else { &mut score.soft }) += far;
        }
        for (unit, run) in usual[0].units.iter().enumerate() {
            let (now, before) = (run.rates(usual[0].seconds).0, self.default.units[unit].rates(self.default.seconds).0);
            if before > 0.0 {
                score.cost += (before / now.max(before * 1e-3)).ln().max(0.0);
            }
        }
        score
    }

    /// Returns, for each unit, whether it has a latency goal. Other units give way to such a unit.
    fn protected(&self) -> Vec<bool> {
        let is_latency = |goal: &Goal| matches!(goal, Goal::Bound(Metric::Latency(..), _) | Goal::Before(_));
        let protects = |hard_only: bool| {
            let has_latency_goal = |unit: &crate::intents::Unit| {
                unit.goals.iter().any(|wanted| is_latency(&wanted.goal) && (wanted.hard || !hard_only))
            };
            self.ground.intents.units.iter().map(has_latency_goal).collect::<Vec<bool>>()
        };
        let hard = protects(true);
        if hard.contains(&true) { hard } else { protects(false) }
    }

    /// Returns the smallest rate that the goals of a unit require, as a share of the rate of the
    /// unit under the default.
    fn floor(&self, unit: usize) -> f64 {
        let (mb, iops) = self.default.units[unit].rates(self.default.seconds);
        let needed_rate = |goal: &Goal| match goal {
            Goal::Bound(metric, Bound::AtLeast(least)) | Goal::Reservation(metric, least) => {
                Some(least / if *metric == Metric::Throughput { mb } else { iops }.max(1e-9))
            }
            _ => None,
        };
        let floors = self.ground.intents.units[unit].goals.iter().filter_map(|wanted| needed_rate(&wanted.goal));
        floors.fold(0.0, f64::max)
    }

    /// Returns caps at a share of the unit's rates under the default.
    fn caps(&self, unit: usize, share: f64) -> [Option<u64>; 4] {
        let run = &self.default.units[unit];
        let seconds = self.default.seconds;
        let is_small = run.bytes() / run.ios.max(1) < SMALL_BYTES;
        let cap = |bytes: u64, ios: u64| {
            if bytes * 100 < run.bytes() || ios == 0 {
                return (None, None);
            }
            let rounded = |value: f64| Some(two_digits(value * share / seconds).max(2));
            if is_small { (None, rounded(ios as f64)) } else { (rounded(bytes as f64), None) }
        };
        let (rbps, riops) = cap(run.bytes_read, run.reads_count);
        let (wbps, wiops) = cap(run.bytes_written, run.ios - run.reads_count);
        [rbps, wbps, riops, wiops]
    }

    /// Returns the candidate with the caps that the goals require.
    fn limited(&self, mut candidate: Candidate) -> Candidate {
        for (unit, wanted) in self.ground.goals() {
            let (metric, most) = match wanted.goal {
                Goal::Limit(metric, most)
                | Goal::Bound(metric @ (Metric::Throughput | Metric::Iops), Bound::AtMost(most)) => (metric, most),
                _ => continue,
            };
            let run = &self.default.units[unit];
            let read = match metric {
                Metric::Iops => run.reads_count as f64 / run.ios.max(1) as f64,
                _ => run.bytes_read as f64 / run.bytes().max(1) as f64,
            };
            let (scale, places) = if metric == Metric::Iops { (1.0, [2, 3]) } else { (1e6, [0, 1]) };
            for (place, part) in places.into_iter().zip([read, 1.0 - read]) {
                if part > 0.01 {
                    let cap = Some((most * scale * part).floor().max(2.0) as u64);
                    let known = &mut candidate.units[unit].caps[place];
                    *known = if known.is_some_and(|known| Some(known) < cap) { *known } else { cap };
                }
            }
        }
        candidate
    }

    /// Returns the candidates that follow from the goals.
    fn first(&self) -> Vec<Candidate> {
        let units = self.ground.intents.units.len();
        let plain = |scheduler| Candidate::plain(scheduler, units);
        let mut all: Vec<Candidate> = SCHEDULERS.iter().map(|scheduler| plain(scheduler)).collect();
        all.push(with(plain("bfq"), "low_latency", 0));
        let protected = self.protected();
        let mut weightings: Vec<Vec<u32>> = Vec::new();
        let shares = &self.ground.shares;
        if let Some(least) = shares.iter().map(|(_, share)| *share).reduce(f64::min) {
            let weight = |unit: usize| {
                let share = shares.iter().find(|(other, _)| *other == unit).map(|(_, share)| *share);
                share.map_or(if protected[unit] { 1000 } else { 100 }, |share| (share / least * 100.0).round() as u32)
            };
            weightings.push((0..units).map(weight).collect());
        }
        for (high, low) in [(1000, 100), (1000, 10), (300, 100)] {
            if protected.contains(&true) && protected.contains(&false) {
                weightings.push(protected.iter().map(|&is| if is { high } else { low }).collect());
            }
        }
        let floors: Vec<f64> = (0..units).map(|unit| self.wanted_rate(unit)).collect();
        if let Some(most) = floors.iter().copied().reduce(f64::max).filter(|most| *most > 0.0) {
            weightings.push(floors.iter().map(|floor| ((floor / most * 1000.0) as u32).clamp(10, 1000)).collect());
        }
        let us = self.ground.io_cost.qos.rlat_us.max(100);
        for weights in &weightings {
            let weighted = |mut candidate: Candidate| {
                candidate.units.iter_mut().zip(weights).for_each(|(unit, weight)| unit.weight = Some(*weight));
                candidate
            };
            all.push(weighted(plain("bfq")));
            all.push(weighted(with(plain("bfq"), "low_latency", 0)));
            all.push(weighted(with(with(plain("bfq"), "low_latency", 0), "slice_idle", 0)));
            for (scheduler, times) in [("none", 1), ("none", 3), ("mq-deadline", 1)] {
                all.push(weighted(Candidate { cost_us: Some(two_digits((us * times) as f64)), ..plain(scheduler) }));
            }
            if let Some(target) = self.target_us(&protected) {
                all.push(weighted(Candidate { cost_us: Some(two_digits(target as f64)), ..plain("none") }));
            }
        }
        let victims: Vec<usize> = (0..units).filter(|&unit| !protected[unit]).collect();
        if !victims.is_empty() && protected.contains(&true) || floors.iter().any(|floor| *floor > 0.0) {
            for scheduler in ["none", "mq-deadline"] {
                for share in CAP_SHARES {
                    let mut candidate = plain(scheduler);
                    for &unit in &victims {
                        let share = share.max(self.floor(unit) * FLOOR_ROOM);
                        if share < 1.0 {
                            candidate.units[unit].caps = self.caps(unit, share);
                        }
                    }
                    all.push(candidate);
                }
                // Cap only units without a required rate.
                let mut candidate = plain(scheduler);
                for unit in (0..units).filter(|&unit| self.floor(unit) == 0.0 && !protected[unit]) {
                    candidate.units[unit].caps = self.caps(unit, 0.3);
                }
                all.push(candidate);
            }
        }
        if protected.contains(&true) {
            all.extend(self.of_latency(&protected));
        }
        all.into_iter().map(|candidate| self.limited(candidate)).collect()
    }

    /// Returns the rate that the goals of a unit require, MB/s; 0 if they require no rate.
    fn wanted_rate(&self, unit: usize) -> f64 {
        self.floor(unit) * self.default.units[unit].rates(self.default.seconds).0
    }

    /// Returns the lowest bound of the protected units' latencies, us.
    fn target_us(&self, protected: &[bool]) -> Option<u64> {
        let bound = |(unit, wanted): (usize, &crate::goal::WantedGoal)| match wanted.goal {
            Goal::Bound(Metric::Latency(Statistic::Quantile(_) | Statistic::Mean, _), Bound::AtMost(ms))
                if protected[unit] =>
            {
                Some((ms * 1e3) as u64)
            }
            _ => None,
        };
        self.ground.goals().filter_map(bound).min().map(|us| us.max(100))
    }

    /// Returns candidates that serve the protected units first.
    fn of_latency(&self, protected: &[bool]) -> Vec<Candidate> {
        let units = protected.len();
        let each = |mut candidate: Candidate, change: &dyn Fn(&mut UnitValues, bool)| {
            candidate.units.iter_mut().zip(protected).for_each(|(unit, is)| change(unit, *is));
            candidate
        };
        let mut all = Vec::new();
        for requests in REQUESTS {
            for scheduler in ["none", "mq-deadline"] {
                all.push(with(Candidate::plain(scheduler, units), NR_REQUESTS, requests));
            }
        }
        let base = self.target_us(protected).unwrap_or(5_000);
        for scheduler in ["none", "mq-deadline"] {
            for part in [1, 3] {
                let target = Some(two_digits((base / part) as f64).max(100));
                all.push(each(Candidate::plain(scheduler, units), &|unit, is| {
                    unit.target_us = target.filter(|_| is);
                }));
            }
        }
        let deadline = Candidate::plain("mq-deadline", units);
        all.push(each(deadline.clone(), &|unit, is| unit.class = (!is).then_some("idle")));
        all.push(each(deadline.clone(), &|unit, is| {
            unit.class = Some(if is { "promote-to-rt" } else { "restrict-to-be" })
        }));
        all.push(each(with(deadline.clone(), NR_REQUESTS, 8), &|unit, is| {
            unit.class = Some(if is { "promote-to-rt" } else { "idle" });
        }));
        for scheduler in ["bfq", "mq-deadline"] {
            let plain = Candidate::plain(scheduler, units);
            all.push(each(plain.clone(), &|unit, is| unit.priority = (!is).then_some(Priority::Idle)));
            all.push(each(plain, &|unit, is| unit.priority = is.then_some(Priority::RealTime)));
        }
        if self.default.units.iter().any(|unit| unit.async_writes > 0) {
            for us in [500, 10_000] {
                all.push(with(Candidate::plain("mq-deadline", units), "wbt_lat_usec", us));
                all.push(with(Candidate::plain("none", units), "wbt_lat_usec", us));
            }
        }
        all
    }

    /// Returns the candidates that differ from `candidate` in one value.
    fn steps(&self, candidate: &Candidate) -> Vec<Candidate> {
        let mut all = Vec::new();
        let mut step = |change: &dyn Fn(&mut Candidate)| {
            let mut new = candidate.clone();
            change(&mut new);
            all.push(self.limited(new));
        };
        let protected = self.protected();
        for (unit, (values, is_protected)) in candidate.units.iter().zip(protected).enumerate() {
            if values.caps.iter().any(Option::is_some) {
                for factor in [0.6, 0.85, 1.2, 1.6] {
                    step(&|new| {
                        for cap in new.units[unit].caps.iter_mut().flatten() {
                            *cap = two_digits(*cap as f64 * factor).max(2);
                        }
                    });
                }
                step(&|new| new.units[unit].caps = [None; 4]);
            } else if !is_protected || candidate.units.len() > 2 {
                for share in [0.8, 0.45] {
                    let share = f64::max(share, self.floor(unit) * FLOOR_ROOM);
                    if share < 1.0 {
                        step(&|new| new.units[unit].caps = self.caps(unit, share));
                    }
                }
            }
            if candidate.uses_weights() {
                let weight = values.weight.unwrap_or(100);
                for (times, by) in [(1, 2), (3, 4), (5, 4), (2, 1)] {
                    step(&|new| new.units[unit].weight = Some((weight * times / by).clamp(1, 10_000)));
                }
            }
            if let Some(us) = values.target_us {
                step(&|new| new.units[unit].target_us = Some((us / 2).max(50)));
                step(&|new| new.units[unit].target_us = Some(us * 2));
                step(&|new| new.units[unit].target_us = None);
            }
            if values.class.is_some() {
                step(&|new| new.units[unit].class = None);
            }
            if values.priority.is_some() {
                step(&|new| new.units[unit].priority = None);
            }
        }
        if let Some(us) = candidate.cost_us {
            step(&|new| new.cost_us = Some(two_digits(us as f64 / 2.0).max(20)));
            step(&|new| new.cost_us = Some(two_digits(us as f64 * 2.0)));
        }
        let dimensions = self.space.elevators.iter().filter(|space| space.defaults.name() == candidate.scheduler);
        for dimension in dimensions.flat_map(|space| &space.dimensions) {
            let name = &dimension.name;
            let present = candidate.values.get(name).and_then(|value| dimension.values.iter().position(|v| v == value));
            let level = present.unwrap_or(dimension.default);
            let near = [level.checked_sub(1), Some(level + 1)];
            for value in near.into_iter().flatten().filter_map(|level| dimension.values.get(level)) {
                step(&|new| {
                    if *value == dimension.values[dimension.default] {
                        new.values.remove(name);
                    } else {
                        new.values.insert(name.clone(), *value);
                    }
                });
            }
        }
        all
    }
}

/// Schedulers of today's Linux.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

fn with(mut candidate: Candidate, name: &str, value: u64) -> Candidate {
    candidate.values.insert(name.to_owned(), value);
    candidate
}

/// Rounds to two significant digits, which are easy to read.
fn two_digits(value: f64) -> u64 {
    let step = 10f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    ((value / step).round() * step) as u64
}
