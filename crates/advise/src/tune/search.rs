//! The search: what is run next, and when it is enough.
//!
//! First each tunable by itself, at both ends. Then *brackets* of successive halving: some new settings are run once,
//! the better third of them three times, the best of those as often as the budget lets; all with seeds that the
//! baseline was run with, so that what chance does to both drops out. New settings are half the optimiser's proposals
//! and half neighbours of the best known. Then what of the best can be put back to its default without loss is put
//! back, and the best few are confirmed with seeds that nothing was chosen by, beside the baseline.

use std::collections::BTreeMap;

use iosched::Setting;
use iosched_lab::LabError;
use iosched_numbers::SplitMix64;

use super::adapter;
use super::controllers::Controller;
use super::history::History;
use super::judge::Judge;
use super::record::{Phase, TuneRun};
use super::run::{Halt, Progress, Runner};
use super::space::{Dimension, Point, Space};

/// How often a new setting is looked for before the space counts as searched.
const TRIES: usize = 30;
/// Put back on a single run's word if the figure grows by no more than this share: what counts is confirmed later.
const PUT_BACK_SHARE: f64 = 0.005;
/// What the best of a search has changed, or more.
const CHANGES_USUAL: usize = 3;
/// Simpler settings that are as good as the best, of which so many get all runs.
const SIMPLER: usize = 2;
/// At most so many settings are confirmed for one goal; two more for each goal beyond, and one for each elevator and
/// controller.
const FINALISTS: usize = 3;
/// What is put back of the best, so many times.
const PUT_BACK: usize = 3;

/// Steps from a controller's middle, at most, and the share of a search's runs up to which they are made.
const CLIMB_STEPS: usize = 5;
const CLIMB_SHARE: (usize, usize) = (9, 10);

/// How a budget is spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allotment {
    /// Runs of a setting that gets so far, by rung.
    rungs: Vec<u32>,
    /// New settings of a bracket.
    bracket: usize,
    /// Runs that confirm a setting.
    confirm: u32,
    /// Settings that are confirmed.
    finalists: usize,
    /// Runs to search with.
    search: usize,
}

impl Allotment {
    pub(super) fn of(budget: u32, goals: usize, (elevators, controllers): (usize, usize), seeds_matter: bool) -> Self {
        let small = budget < 100;
        let finalists =
            (if small { FINALISTS - 1 } else { FINALISTS }) + 2 * (goals - 1) + (elevators - 1) + controllers;
        let bracket = if small { 6 } else { 9 };
        let (rungs, confirm) = if seeds_matter {
            let top = (budget / 20).clamp(4, 9);
            (vec![1, 3, top], (budget / 20).clamp(4, 10))
        } else {
            (vec![1], 2)
        };
        // With the baseline, and what is put back; at most half of all.
        let confirming = (confirm as usize * (1 + finalists + PUT_BACK)).min(budget as usize / 2);
        Self { rungs, bracket, confirm, finalists, search: budget as usize - confirming }
    }

    /// Runs from which on a setting is known with some certainty.
    fn certain(&self) -> u32 {
        self.rungs.get(1).copied().unwrap_or(1)
    }

    fn top(&self) -> u32 {
        self.rungs.last().copied().unwrap_or(1)
    }
}

/// A search under way.
pub(super) struct Search<'s, 'a, F> {
    pub(super) runner: &'s Runner<'s>,
    pub(super) history: History<'a>,
    pub(super) runs: Vec<TuneRun>,
    pub(super) observe: F,
    pub(super) random: SplitMix64,
    pub(super) allotment: Allotment,
    /// The number of each candidate's first run of the search, if that is not 0: luck of one seed is not that of all.
    pub(super) first: BTreeMap<usize, u32>,
}

impl<'a, F: FnMut(Progress<'_>) -> Result<(), LabError>> Search<'_, 'a, F> {
    /// All of it.
    pub(super) fn go(&mut self) -> Result<(), Halt> {
        self.begin()?;
        self.screen()?;
        for weights in self.all_weights() {
            self.climb(&weights)?;
        }
        let mut number = 0;
        // What tidying up leaves over is searched with, once.
        for changes_usual in [CHANGES_USUAL, 0] {
            while self.bracket(number, changes_usual)? {
                number += 1;
            }
            for weights in self.all_weights() {
                self.tidy(&weights)?;
            }
        }
        self.confirm()
    }

    fn space(&self) -> &'a Space {
        &self.history.header.space
    }

    fn evaluate(&mut self, phase: Phase, wanted: impl Iterator<Item = (usize, u32)>) -> Result<(), Halt> {
        self.runner.evaluate(&mut self.history, &mut self.runs, phase, wanted, &mut self.observe)
    }

    /// So many runs of each.
    fn bring_to(&mut self, phase: Phase, candidates: &[usize], runs: u32) -> Result<(), Halt> {
        let (top, first) = (self.allotment.top(), self.first.clone());
        let number = |candidate: usize, run: u32| match phase {
            Phase::Search => (first.get(&candidate).copied().unwrap_or(0) + run) % top,
            Phase::Confirm => run,
        };
        // Turn by turn, so that what is there when somebody stops it is comparable.
        let wanted =
            (0..runs).flat_map(|run| candidates.iter().map(move |&candidate| (candidate, number(candidate, run))));
        self.evaluate(phase, wanted)
    }

    /// Baseline and defaults as often as anything: whatever is found is compared with them.
    fn begin(&mut self) -> Result<(), Halt> {
        let space = self.space();
        let defaults: Vec<usize> = space.defaults().map(|point| self.history.number(&space.setting(&point))).collect();
        let mut all = vec![0];
        all.extend(defaults.into_iter().filter(|&number| number != 0));
        // Where controllers are searched, they need the runs more.
        let few = !space.controllers().is_empty();
        self.bring_to(Phase::Search, &all, if few { self.allotment.certain() } else { self.allotment.top() })?;
        self.bring_to(Phase::Search, &all[..1], self.allotment.top())
    }

    /// Weights of the goals, one set for each direction in which the front is looked for.
    fn all_weights(&self) -> Vec<Vec<f64>> {
        let goals = self.history.header.goals;
        let only = |goal: usize| (0..goals).map(|own| if own == goal { 1.0 } else { 0.05 }).collect();
        let mut all: Vec<Vec<f64>> = if goals > 1 { (0..goals).map(only).collect() } else { Vec::new() };
        all.push(vec![1.0; goals]);
        all
    }

    /// Candidates with at least `runs` runs, best first; of those that are the same in every run, the one that changes
    /// least.
    fn ranked(&self, weights: &[f64], runs: usize) -> Vec<usize> {
        let loss = |number: usize| self.history.loss(Phase::Search, number, weights);
        let enough = |number: &usize| self.history.candidates[*number].runs(Phase::Search).len() >= runs.max(1);
        let mut all: Vec<(f64, usize)> = (0..self.history.candidates.len())
            .filter(enough)
            .filter_map(|number| Some((loss(number)?, number)))
            .collect();
        let changes = |number: usize| self.history.candidates[number].changes;
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(changes(a.1).cmp(&changes(b.1))).then(a.1.cmp(&b.1)));
        let runs = |number: usize| self.history.candidates[number].runs(Phase::Search);
        all.dedup_by(|later, kept| later.0 == kept.0 && runs(later.1) == runs(kept.1));
        all.into_iter().map(|(_, number)| number).collect()
    }

    /// The best that is known with some certainty.
    fn incumbent(&self, weights: &[f64]) -> usize {
        let certain = self.allotment.certain() as usize;
        let in_space = |number: &usize| self.history.candidates[*number].point.is_some();
        self.ranked(weights, certain).into_iter().find(in_space).unwrap_or(0)
    }

    /// One bracket; `false` once there is no budget for another beside tidying up (of at least so many changes), or
    /// nothing new to try.
    fn bracket(&mut self, number: usize, changes_usual: usize) -> Result<bool, Halt> {
        let all_weights = self.all_weights();
        let weights = &all_weights[number % all_weights.len()];
        let changes = self.history.candidates[self.incumbent(weights)].changes.max(changes_usual);
        let reserved = self.to_tidy(changes) * all_weights.len();
        let left = self.allotment.search.saturating_sub(self.runs.len()).saturating_sub(reserved);
        let new = self.proposals(weights, self.allotment.bracket.min(left));
        if new.is_empty() {
            return Ok(false);
        }
        self.begin_with(&new, number as u32);
        self.halve(new, weights, usize::MAX)?;
        Ok(true)
    }

    /// Says which run of each is its first.
    fn begin_with(&mut self, candidates: &[usize], run: u32) {
        let first = run % self.allotment.top();
        self.first.extend(candidates.iter().map(|&candidate| (candidate, first)));
    }

    /// Runs settings once, the better third more often, and so on, at most so many rungs.
    fn halve(&mut self, mut alive: Vec<usize>, weights: &[f64], rungs: usize) -> Result<(), Halt> {
        for runs in self.allotment.rungs.clone().into_iter().take(rungs) {
            self.bring_to(Phase::Search, &alive, runs)?;
            let order = self.ranked(weights, runs as usize);
            let rank = |number: &usize| order.iter().position(|own| own == number);
            // One that is the same as a simpler one has no rank.
            alive.retain(|number| rank(number).is_some());
            alive.sort_by_key(rank);
            alive.truncate(alive.len().div_ceil(3));
        }
        Ok(())
    }

    /// What each tunable does by itself: from every elevator's defaults to both ends, as far as a third of the runs
    /// reach, else to the end that is farther away; of a controller, beside the first elevator, to its middle.
    fn screen(&mut self) -> Result<(), Halt> {
        let space = self.space();
        let left = self.allotment.search.saturating_sub(self.runs.len());
        let defaults: Vec<Point> = space.defaults().collect();
        let ends = |only_farther: bool| -> Vec<Point> {
            let of = |default: &Point| -> Vec<Point> {
                let own = space.elevators[default.elevator].dimensions.iter().enumerate();
                // What a controller does is much the same beside every elevator.
                let is_first = |dimension: &Dimension| {
                    let mut before = space.elevators[..default.elevator].iter().flat_map(|own| &own.dimensions);
                    !dimension.is_of_controller() || before.all(|known| known.name != dimension.name)
                };
                own.filter(move |(_, dimension)| is_first(dimension))
                    .flat_map(move |(number, dimension)| {
                        let last = dimension.values.len() - 1;
                        // Nobody wants the strictest cap there is.
                        let farther = if dimension.is_of_controller() { last / 2 } else { dimension.farther_end() };
                        let nearer =
                            if dimension.is_of_controller() { dimension.farther_end() } else { last - farther };
                        let wanted =
                            if only_farther { vec![farther] } else { vec![farther.min(nearer), farther.max(nearer)] };
                        let new = wanted.into_iter().filter(|&level| level != dimension.default);
                        new.map(move |level| {
                            let mut point = default.clone();
                            point.levels[number] = level;
                            point
                        })
                    })
                    .collect()
            };
            defaults.iter().flat_map(of).collect()
        };
        let mut points = ends(false);
        if points.len() > left / 3 {
            points = ends(true);
        }
        points.truncate(left / 2);
        let numbers: Vec<usize> = points.iter().map(|point| self.history.number(&space.setting(point))).collect();
        // So that both ends of a tunable do not share the luck of one seed.
        for (turn, number) in numbers.iter().enumerate() {
            self.begin_with(&[*number], turn as u32 % 2);
        }
        let all_weights = self.all_weights();
        // Several goals have several bests: none goes all the way yet.
        let rungs = match all_weights.len() {
            _ if !space.controllers().is_empty() => 1,
            1 => usize::MAX,
            _ => 2,
        };
        for weights in &all_weights {
            self.halve(numbers.clone(), weights, rungs)?;
        }
        Ok(())
    }

    /// With every controller, from the best that is known: a step up and a step down in each value that is set of it, one
    /// run each, for as long as one is better. Caps and targets are good up to where they break something, and that is
    /// found step by step.
    fn climb(&mut self, weights: &[f64]) -> Result<(), Halt> {
        let space = self.space();
        let most = self.allotment.search * CLIMB_SHARE.0 / CLIMB_SHARE.1;
        let mut tops = Vec::new();
        for controller in space.controllers() {
            let uses = |own: &usize| Controller::used_by(&self.history.candidates[*own].setting).contains(&controller);
            let Some(mut best) = self.ranked(weights, 1).into_iter().find(uses) else { continue };
            for _ in 0..CLIMB_STEPS {
                let Some(point) = self.history.candidates[best].point.clone() else { break };
                let near = steps(space, &point).into_iter().map(|point| self.history.number(&space.setting(&point)));
                let near: Vec<usize> = near.collect();
                if near.is_empty() || self.runs.len() + near.len() > most {
                    break;
                }
                let first = self.first.get(&best).copied().unwrap_or(0);
                let unknown = |own: &&usize| self.history.candidates[**own].runs(Phase::Search).is_empty();
                let new: Vec<usize> = near.iter().filter(unknown).copied().collect();
                self.begin_with(&new, first);
                self.bring_to(Phase::Search, &new, 1)?;
                let loss = |own: usize| self.history.loss(Phase::Search, own, weights).unwrap_or(f64::INFINITY);
                let top = near.into_iter().min_by(|&a, &b| loss(a).total_cmp(&loss(b)));
                match top.filter(|&top| loss(top) < loss(best)) {
                    Some(top) => best = top,
                    None => break,
                }
            }
            tops.push(best);
        }
        self.bring_to(Phase::Search, &tops, self.allotment.certain())
    }

    /// Runs that tidying up takes.
    fn to_tidy(&self, changes: usize) -> usize {
        let (certain, top) = (self.allotment.certain() as usize, self.allotment.top() as usize);
        if changes < 2 { 0 } else { changes + (sizes(changes).count() + 1) * certain + SIMPLER * (top - certain) }
    }

    /// New settings, at most `count`.
    fn proposals(&mut self, weights: &[f64], count: usize) -> Vec<usize> {
        let space = self.space();
        let starts = self.starts(weights);
        let mut found = Vec::new();
        for turn in 0..count {
            for _ in 0..TRIES {
                let number = turn / 2 % starts.len().max(1);
                let point = match starts.get(number) {
                    Some(point) if turn % 2 == 0 && number > 0 => Some(nearby(space, point, &mut self.random)),
                    Some(point) if turn % 2 == 0 => Some(neighbour(space, point, &mut self.random)),
                    _ => self.proposal(weights),
                };
                let Some(setting) = point.map(|point| space.setting(&point)) else { break };
                if !self.history.knows(&setting) {
                    found.push(self.history.number(&setting));
                    break;
                }
            }
        }
        found
    }

    /// Whose neighbours are tried: the best known, and the best known with every controller.
    fn starts(&self, weights: &[f64]) -> Vec<Point> {
        let incumbent = self.incumbent(weights);
        let ranked = self.ranked(weights, 1);
        let uses = |number: usize, controller| {
            Controller::used_by(&self.history.candidates[number].setting).contains(&controller)
        };
        let with = |controller: Controller| ranked.iter().copied().find(|&number| uses(number, controller));
        let mut numbers = vec![incumbent];
        numbers.extend(self.space().controllers().into_iter().filter_map(with).filter(|&own| own != incumbent));
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.history.candidates[number].point.clone()).collect()
    }

    fn proposal(&mut self, weights: &[f64]) -> Option<Point> {
        let history = &self.history;
        let told: Vec<(&Point, f64)> = history
            .candidates
            .iter()
            .enumerate()
            .filter_map(|(number, own)| Some((own.point.as_ref()?, history.loss(Phase::Search, number, weights)?)))
            .collect();
        adapter::propose(&history.header.space, &told, &mut self.random)
    }

    /// Looks what of the best setting can go. Each change is put back in one run; then the half that seems to matter is
    /// kept, a quarter of it, and so on, and what is as good with less goes the whole way.
    fn tidy(&mut self, weights: &[f64]) -> Result<(), Halt> {
        let space = self.space();
        let best = self.incumbent(weights);
        let Some(point) = self.history.candidates[best].point.clone() else { return Ok(()) };
        let mut changed: Vec<usize> = space.changed(&point).collect();
        if changed.len() < 2 {
            return Ok(());
        }
        let without = |dimensions: &[usize]| space.setting(&space.put_back(&point, dimensions));
        let numbers: Vec<usize> = changed.iter().map(|&own| self.history.number(&without(&[own]))).collect();
        let first = self.first.get(&best).copied().unwrap_or(0);
        self.begin_with(&numbers, first);
        self.bring_to(Phase::Search, &numbers, 1)?;
        let losses: Vec<f64> = numbers.iter().map(|&number| self.history.behind(number, best, weights).0).collect();
        let harmful = losses.iter().filter(|loss| **loss > PUT_BACK_SHARE).count();
        let mut order: Vec<usize> = (0..changed.len()).collect();
        order.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]).then(a.cmp(&b)));
        changed = order.into_iter().map(|own| changed[own]).collect();
        let mut kept: Vec<usize> = sizes(changed.len()).chain([harmful]).filter(|&size| size < changed.len()).collect();
        kept.sort_unstable();
        kept.dedup();
        let simpler: Vec<usize> = kept.iter().map(|&size| self.history.number(&without(&changed[size..]))).collect();
        self.begin_with(&simpler, first);
        self.bring_to(Phase::Search, &simpler, self.allotment.certain())?;
        let as_good: Vec<usize> =
            simpler.into_iter().filter(|&own| self.is_as_good(own, best, weights)).take(SIMPLER).collect();
        self.bring_to(Phase::Search, &as_good, self.allotment.top())
    }

    /// Whether a candidate is within chance of another, by the runs of the search.
    fn is_as_good(&self, number: usize, than: usize, weights: &[f64]) -> bool {
        let (loss, error) = self.history.behind(number, than, weights);
        loss <= error.max(PUT_BACK_SHARE)
    }

    /// The settings that may be best, run with fresh seeds beside the baseline; then what of the best can be put back.
    fn confirm(&mut self) -> Result<(), Halt> {
        let mut all = vec![0];
        all.extend(self.finalists());
        self.bring_to(Phase::Confirm, &all, self.allotment.confirm)?;
        self.make_sure()?;
        loop {
            let wanted = self.put_back();
            if wanted.is_empty() {
                return Ok(());
            }
            self.bring_to(Phase::Confirm, &wanted, self.allotment.confirm)?;
        }
    }

    /// If nothing is better for sure, what looks best gets all runs that are left, beside the baseline.
    fn make_sure(&mut self) -> Result<(), Halt> {
        let judge = Judge::of(&self.history);
        let Some(hopeful) = judge.hopeful().filter(|_| judge.best_to_recommend() == Some(0)) else { return Ok(()) };
        let left = (self.history.header.budget as usize).saturating_sub(self.runs.len());
        let runs = self.allotment.confirm + (left / 2) as u32;
        self.bring_to(Phase::Confirm, &[0, hopeful], if self.history.header.seeds_matter { runs } else { 0 })
    }

    /// Who is confirmed: in each direction the best, the simplest that is as good, and those behind them; and of every
    /// elevator, and with every controller, the best.
    fn finalists(&self) -> Vec<usize> {
        let all_weights = self.all_weights();
        let certain = self.allotment.certain() as usize;
        let mut finalists: Vec<usize> = Vec::new();
        let (elevators, controllers) = (self.space().elevators.len(), self.space().controllers());
        let chosen = self.allotment.finalists + 1 - elevators - controllers.len();
        let share = chosen.div_ceil(all_weights.len());
        for weights in &all_weights {
            let order: Vec<usize> = self.ranked(weights, certain).into_iter().filter(|number| *number != 0).collect();
            let Some(&best) = order.first() else { continue };
            let changes = |number: &&usize| self.history.candidates[**number].changes;
            let simplest = order.iter().filter(|&&own| self.is_as_good(own, best, weights)).min_by_key(changes);
            let new = [best].into_iter().chain(simplest.copied()).chain(order.iter().copied());
            add_new(&mut finalists, new, share);
        }
        finalists.truncate(chosen);
        let weights = vec![1.0; self.history.header.goals];
        let elevator = |number: usize| self.history.candidates[number].point.as_ref().map(|point| point.elevator);
        let loss = |number: usize| self.history.loss(Phase::Search, number, &weights).unwrap_or(f64::INFINITY);
        let runs = |number: usize| self.history.candidates[number].runs(Phase::Search).len();
        let mut add_best = |of_it: &dyn Fn(usize) -> bool, least: usize| {
            if !finalists.iter().chain(&[0]).any(|&number| of_it(number)) {
                let all = 0..self.history.candidates.len();
                let known = all.filter(|&number| of_it(number) && runs(number) >= least);
                finalists.extend(known.min_by(|&a, &b| loss(a).total_cmp(&loss(b))));
            }
        };
        for own in 0..elevators {
            add_best(&|number| elevator(number) == Some(own), certain);
        }
        for controller in controllers {
            let uses =
                |number: usize| Controller::used_by(&self.history.candidates[number].setting).contains(&controller);
            // One that is worse than others in its first run was not tried again.
            add_best(&uses, 1);
        }
        finalists
    }

    /// Whether the search knows a setting, and that it is within chance of another.
    fn search_says_harmless(&self, setting: &Setting, than: usize) -> bool {
        let known = self.history.candidates.iter().position(|own| own.setting == *setting);
        let weights = vec![1.0; self.history.header.goals];
        known.is_some_and(|number| self.is_as_good(number, than, &weights))
    }

    /// What is to be confirmed beside the setting that would be recommended, as far as the budget goes: itself with all
    /// put back together that seem to make no difference, and with each change put back.
    fn put_back(&mut self) -> Vec<usize> {
        let space = self.space();
        let left =
            (self.history.header.budget as usize).saturating_sub(self.runs.len()) / self.allotment.confirm as usize;
        let judge = Judge::of(&self.history);
        let Some(best) = judge.best_to_recommend().filter(|&number| number != 0) else { return Vec::new() };
        let Some(point) = &self.history.candidates[best].point else { return Vec::new() };
        let without = |dimensions: &[usize]| space.setting(&space.put_back(point, dimensions));
        let changed: Vec<usize> = space.changed(point).collect();
        let confirmed = |setting: &Setting| {
            judge.confirmed.iter().copied().find(|&number| self.history.candidates[number].setting == *setting)
        };
        let without_one = |own: usize| without(&[own]);
        let harmless = |own: &usize| match confirmed(&without_one(*own)) {
            Some(number) => judge.is_as_good(number, best),
            None => self.search_says_harmless(&without_one(*own), best),
        };
        // What can probably go is tried first: the budget may not reach for all.
        let (can_go, must_stay): (Vec<usize>, Vec<usize>) = changed.into_iter().partition(harmless);
        let mut wanted = if can_go.len() > 1 { vec![without(&can_go)] } else { Vec::new() };
        wanted.extend(can_go.into_iter().chain(must_stay).map(without_one));
        wanted.retain(|setting| confirmed(setting).is_none());
        wanted.truncate(left);
        wanted.iter().map(|setting| self.history.number(setting)).collect()
    }
}

/// 1, 2, 4 and so on below `count`.
fn sizes(count: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |size| Some(size * 2)).take_while(move |&size| size < count)
}

/// Adds at most `share` of `new` that are not there yet.
fn add_new(all: &mut Vec<usize>, new: impl Iterator<Item = usize>, share: usize) {
    let before = all.len();
    for number in new {
        if all.len() < before + share && !all.contains(&number) {
            all.push(number);
        }
    }
}

/// What is a step up or down from `point` in a value that it sets of a controller.
fn steps(space: &Space, point: &Point) -> Vec<Point> {
    let dimensions = &space.elevators[point.elevator].dimensions;
    let of_controller = space.changed(point).filter(|&number| dimensions[number].is_of_controller());
    let near = of_controller.flat_map(|number| {
        let level = point.levels[number];
        [level.checked_sub(1), Some(level + 1)].into_iter().flatten().map(move |level| (number, level))
    });
    let is_set = |&(number, level): &(usize, usize)| {
        level < dimensions[number].values.len() && level != dimensions[number].default
    };
    let at = |(number, level): (usize, usize)| {
        let mut point = point.clone();
        point.levels[number] = level;
        point
    };
    near.filter(is_set).map(at).collect()
}

/// A point one step from `point`: often a small one, sometimes any, sometimes back to a default, now and then two at
/// once.
fn neighbour(space: &Space, point: &Point, random: &mut SplitMix64) -> Point {
    let mut point = point.clone();
    if random.below(space.elevators.len() as u64 * 4) == 0 {
        point.elevator = random.below(space.elevators.len() as u64) as usize;
        point.levels = space.elevators[point.elevator].dimensions.iter().map(|own| own.default).collect();
    }
    let dimensions = &space.elevators[point.elevator].dimensions;
    if dimensions.is_empty() {
        return point;
    }
    for _ in 0..if random.below(4) == 0 { 2 } else { 1 } {
        let number = random.below(dimensions.len() as u64) as usize;
        let (own, level) = (&dimensions[number], &mut point.levels[number]);
        *level = step(own, *level, random);
    }
    point
}

/// A step in what `point` has changed already, more often than not; else a neighbour.
fn nearby(space: &Space, point: &Point, random: &mut SplitMix64) -> Point {
    let changed: Vec<usize> = space.changed(point).collect();
    if changed.is_empty() || random.below(4) == 0 {
        return neighbour(space, point, random);
    }
    let number = changed[random.below(changed.len() as u64) as usize];
    let mut point = point.clone();
    let own = &space.elevators[point.elevator].dimensions[number];
    point.levels[number] = step(own, point.levels[number], random);
    point
}

fn step(own: &Dimension, level: usize, random: &mut SplitMix64) -> usize {
    match random.below(6) {
        0 | 1 => (level + 1).min(own.values.len() - 1),
        2 | 3 => level.saturating_sub(1),
        4 if level != own.default => own.default,
        _ => random.below(own.values.len() as u64) as usize,
    }
}
