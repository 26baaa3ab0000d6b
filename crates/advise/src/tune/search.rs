//! The search: the choice of the next runs, and the end of the search.
//!
//! First, each tunable is tried alone at both ends of its values. Then follow *brackets* of
//! successive halving. A bracket runs some new settings once. It runs the better third of them
//! three times, and the best of this third as often as the budget allows. All these runs use seeds
//! with which the baseline ran, so that common random effects cancel out. Half of the new settings
//! are proposals of the optimiser, and half are neighbours of the best known setting. After the
//! brackets, the search tidies up: it puts changes of the best setting back to the default if the
//! changes improve nothing. Finally, the best few settings and the baseline are confirmed with
//! seeds that the search did not use.

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

/// Number of attempts to find a new setting before the space counts as exhausted.
const TRIES: usize = 30;
/// Increase of the loss that counts as no increase, even if the noise is smaller. Confirming runs
/// check the result.
const PUT_BACK_SHARE: f64 = 0.005;
/// Number of changes for which the budget for tidying up suffices.
const CHANGES_USUAL: usize = 3;
/// Number of simpler settings that get the largest number of search runs. These settings are as
/// good as the best setting.
const SIMPLER: usize = 2;
/// Number of settings that are confirmed for one goal. Each further goal adds two settings. Each
/// further elevator and each controller adds one setting.
const FINALISTS: usize = 3;
/// Number of variants of the best setting, with changes put back, that the budget can confirm.
const PUT_BACK: usize = 3;

/// Largest number of steps of a climb, and the share of the search's runs after which the climb
/// ends.
const CLIMB_STEPS: usize = 5;
const CLIMB_SHARE: (usize, usize) = (9, 10);

/// Allocation of the budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allotment {
    /// Runs of a setting at each rung of successive halving.
    rungs: Vec<u32>,
    /// Number of new settings of a bracket.
    bracket: usize,
    /// Number of runs that confirm a setting.
    confirm: u32,
    /// Number of settings that are confirmed.
    finalists: usize,
    /// Number of runs of the search.
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
        // The baseline and the variants with changes put back are also confirmed. Confirming takes
        // at most half of the budget.
        let confirming = (confirm as usize * (1 + finalists + PUT_BACK)).min(budget as usize / 2);
        Self { rungs, bracket, confirm, finalists, search: budget as usize - confirming }
    }

    /// Returns the number of runs after which the loss of a setting is fairly certain.
    fn certain(&self) -> u32 {
        self.rungs.get(1).copied().unwrap_or(1)
    }

    fn top(&self) -> u32 {
        self.rungs.last().copied().unwrap_or(1)
    }
}

/// A search in progress.
pub(super) struct Search<'s, 'a, F> {
    pub(super) runner: &'s Runner<'s>,
    pub(super) history: History<'a>,
    pub(super) runs: Vec<TuneRun>,
    pub(super) observe: F,
    pub(super) random: SplitMix64,
    pub(super) allotment: Allotment,
    /// Index of the first search run of a candidate. A candidate without an entry starts with run
    /// 0. Candidates start with different seeds, so that no single seed favours all of them.
    pub(super) first: BTreeMap<usize, u32>,
}

impl<'a, F: FnMut(Progress<'_>) -> Result<(), LabError>> Search<'_, 'a, F> {
    /// Runs the whole search.
    pub(super) fn go(&mut self) -> Result<(), Halt> {
        self.begin()?;
        self.screen()?;
        for weights in self.all_weights() {
            self.climb(&weights)?;
        }
        let mut number = 0;
        // If tidying up needs fewer runs than planned, more brackets use the remaining runs.
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

    /// Makes the missing runs until each candidate has `runs` runs.
    fn bring_to(&mut self, phase: Phase, candidates: &[usize], runs: u32) -> Result<(), Halt> {
        let (top, first) = (self.allotment.top(), self.first.clone());
        let number = |candidate: usize, run: u32| match phase {
            Phase::Search => (first.get(&candidate).copied().unwrap_or(0) + run) % top,
            Phase::Confirm => run,
        };
        // The runs alternate between the candidates, so that
        // the results are comparable after an interruption.
        let wanted =
            (0..runs).flat_map(|run| candidates.iter().map(move |&candidate| (candidate, number(candidate, run))));
        self.evaluate(phase, wanted)
    }

    /// Runs the baseline and the defaults as often as any other
    /// setting, because all settings are compared with them.
    fn begin(&mut self) -> Result<(), Halt> {
        let space = self.space();
        let defaults: Vec<usize> = space.defaults().map(|point| self.history.number(&space.setting(&point))).collect();
        let mut all = vec![0];
        all.extend(defaults.into_iter().filter(|&number| number != 0));
        // If controllers are searched, the defaults get fewer runs, because the controllers need
        // them more.
        let few = !space.controllers().is_empty();
        self.bring_to(Phase::Search, &all, if few { self.allotment.certain() } else { self.allotment.top() })?;
        self.bring_to(Phase::Search, &all[..1], self.allotment.top())
    }

    /// Returns sets of weights of the goals. Each set is a direction in which the search explores
    /// the front.
    fn all_weights(&self) -> Vec<Vec<f64>> {
        let goals = self.history.header.goals;
        let only = |goal: usize| (0..goals).map(|number| if number == goal { 1.0 } else { 0.05 }).collect();
        let mut all: Vec<Vec<f64>> = if goals > 1 { (0..goals).map(only).collect() } else { Vec::new() };
        all.push(vec![1.0; goals]);
        all
    }

    /// Returns the candidates with at least `runs` runs, best first. If candidates have identical
    /// results, the list has only the one with the fewest changes.
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
        all.dedup_by(|later, earlier| later.0 == earlier.0 && runs(later.1) == runs(earlier.1));
        all.into_iter().map(|(_, number)| number).collect()
    }

    /// Returns the best candidate among those whose loss is fairly certain.
    fn incumbent(&self, weights: &[f64]) -> usize {
        let certain = self.allotment.certain() as usize;
        let in_space = |number: &usize| self.history.candidates[*number].point.is_some();
        self.ranked(weights, certain).into_iter().find(in_space).unwrap_or(0)
    }

    /// Runs one bracket. Returns `false` if no new setting is left, or if the budget is too small.
    /// The budget must suffice for the bracket and for tidying up `changes_usual` changes.
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

    /// Sets the number of the first search run of each candidate.
    fn begin_with(&mut self, candidates: &[usize], run: u32) {
        let first = run % self.allotment.top();
        self.first.extend(candidates.iter().map(|&candidate| (candidate, first)));
    }

    /// Runs all settings once, then the better third more often, and so on, for at most `rungs`
    /// rungs (successive halving).
    fn halve(&mut self, mut alive: Vec<usize>, weights: &[f64], rungs: usize) -> Result<(), Halt> {
        for runs in self.allotment.rungs.clone().into_iter().take(rungs) {
            self.bring_to(Phase::Search, &alive, runs)?;
            let order = self.ranked(weights, runs as usize);
            let rank = |number: &usize| order.iter().position(|candidate| candidate == number);
            // A candidate without a rank has the same results as a candidate with fewer changes.
            alive.retain(|number| rank(number).is_some());
            alive.sort_by_key(rank);
            alive.truncate(alive.len().div_ceil(3));
        }
        Ok(())
    }

    /// Tries each tunable alone, starting from the defaults of every elevator. It tries both ends
    /// of the values if this needs at most a third of the remaining runs. Otherwise it tries only
    /// the end that is farther from the default. Controllers are tried only with the first
    /// elevator. For a controller, it tries the middle value instead of the farther end. The
    /// strictest value is tried only together with the middle value.
    fn screen(&mut self) -> Result<(), Halt> {
        let space = self.space();
        let left = self.allotment.search.saturating_sub(self.runs.len());
        let defaults: Vec<Point> = space.defaults().collect();
        let ends = |only_farther: bool| -> Vec<Point> {
            let neighbours = |default: &Point| -> Vec<Point> {
                let dimensions = space.elevators[default.elevator].dimensions.iter().enumerate();
                // The effect of a controller depends only little on the elevator.
                let is_first = |dimension: &Dimension| {
                    let mut before =
                        space.elevators[..default.elevator].iter().flat_map(|elevator| &elevator.dimensions);
                    !dimension.is_of_controller() || before.all(|known| known.name != dimension.name)
                };
                dimensions
                    .filter(move |(_, dimension)| is_first(dimension))
                    .flat_map(move |(number, dimension)| {
                        let last = dimension.values.len() - 1;
                        // The strictest value of a controller is rarely useful, so its middle value
                        // comes first.
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
            defaults.iter().flat_map(neighbours).collect()
        };
        let mut points = ends(false);
        if points.len() > left / 3 {
            points = ends(true);
        }
        points.truncate(left / 2);
        let numbers: Vec<usize> = points.iter().map(|point| self.history.number(&space.setting(point))).collect();
        // The two ends of a tunable start with different seeds, so that one seed cannot favour or
        // harm both.
        for (turn, number) in numbers.iter().enumerate() {
            self.begin_with(&[*number], turn as u32 % 2);
        }
        let all_weights = self.all_weights();
        // With several goals, the best settings depend on the weights, so no setting gets all runs
        // yet.
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

    /// Climbs from the best known setting of every controller. A step moves one value of the
    /// controller up or down, and runs each such setting once. The climb ends when no step improves
    /// the result. Tighter caps and targets often improve the result up to a limit, and then make
    /// it much worse. Only single steps find this limit.
    fn climb(&mut self, weights: &[f64]) -> Result<(), Halt> {
        let space = self.space();
        let most = self.allotment.search * CLIMB_SHARE.0 / CLIMB_SHARE.1;
        let mut tops = Vec::new();
        for controller in space.controllers() {
            let uses = |candidate: &usize| {
                Controller::used_by(&self.history.candidates[*candidate].setting).contains(&controller)
            };
            let Some(mut best) = self.ranked(weights, 1).into_iter().find(uses) else { continue };
            for _ in 0..CLIMB_STEPS {
                let Some(point) = self.history.candidates[best].point.clone() else { break };
                let near = steps(space, &point).into_iter().map(|point| self.history.number(&space.setting(&point)));
                let near: Vec<usize> = near.collect();
                if near.is_empty() || self.runs.len() + near.len() > most {
                    break;
                }
                let first = self.first.get(&best).copied().unwrap_or(0);
                let unknown = |candidate: &&usize| self.history.candidates[**candidate].runs(Phase::Search).is_empty();
                let new: Vec<usize> = near.iter().filter(unknown).copied().collect();
                self.begin_with(&new, first);
                self.bring_to(Phase::Search, &new, 1)?;
                let loss =
                    |candidate: usize| self.history.loss(Phase::Search, candidate, weights).unwrap_or(f64::INFINITY);
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

    /// Returns the number of runs for tidying up.
    fn to_tidy(&self, changes: usize) -> usize {
        let (certain, top) = (self.allotment.certain() as usize, self.allotment.top() as usize);
        if changes < 2 { 0 } else { changes + (sizes(changes).count() + 1) * certain + SIMPLER * (top - certain) }
    }

    /// Returns at most `count` new settings.
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

    /// Returns the points whose neighbours are tried: the best known point, and the best known
    /// point with every controller.
    fn starts(&self, weights: &[f64]) -> Vec<Point> {
        let incumbent = self.incumbent(weights);
        let ranked = self.ranked(weights, 1);
        let uses = |number: usize, controller| {
            Controller::used_by(&self.history.candidates[number].setting).contains(&controller)
        };
        let with = |controller: Controller| ranked.iter().copied().find(|&number| uses(number, controller));
        let mut numbers = vec![incumbent];
        numbers.extend(self.space().controllers().into_iter().filter_map(with).filter(|&number| number != incumbent));
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.history.candidates[number].point.clone()).collect()
    }

    fn proposal(&mut self, weights: &[f64]) -> Option<Point> {
        let history = &self.history;
        let tried: Vec<(&Point, f64)> = history
            .candidates
            .iter()
            .enumerate()
            .filter_map(|(number, candidate)| {
                Some((candidate.point.as_ref()?, history.loss(Phase::Search, number, weights)?))
            })
            .collect();
        adapter::propose(&history.header.space, &tried, &mut self.random)
    }

    /// Finds changes of the best setting that can be put back. First, one run for each change puts
    /// back this change alone. Then the search tries settings that keep only the 1, 2, 4, ... most
    /// important changes. Simpler settings that are as good as the best get all runs.
    fn tidy(&mut self, weights: &[f64]) -> Result<(), Halt> {
        let space = self.space();
        let best = self.incumbent(weights);
        let Some(point) = self.history.candidates[best].point.clone() else { return Ok(()) };
        let mut changed: Vec<usize> = space.changed(&point).collect();
        if changed.len() < 2 {
            return Ok(());
        }
        let without = |dimensions: &[usize]| space.setting(&space.put_back(&point, dimensions));
        let numbers: Vec<usize> =
            changed.iter().map(|&dimension| self.history.number(&without(&[dimension]))).collect();
        let first = self.first.get(&best).copied().unwrap_or(0);
        self.begin_with(&numbers, first);
        self.bring_to(Phase::Search, &numbers, 1)?;
        let losses: Vec<f64> = numbers.iter().map(|&number| self.history.behind(number, best, weights).0).collect();
        let harmful = losses.iter().filter(|loss| **loss > PUT_BACK_SHARE).count();
        let mut order: Vec<usize> = (0..changed.len()).collect();
        order.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]).then(a.cmp(&b)));
        changed = order.into_iter().map(|index| changed[index]).collect();
        let mut retained_sizes: Vec<usize> =
            sizes(changed.len()).chain([harmful]).filter(|&size| size < changed.len()).collect();
        retained_sizes.sort_unstable();
        retained_sizes.dedup();
        let simpler: Vec<usize> =
            retained_sizes.iter().map(|&size| self.history.number(&without(&changed[size..]))).collect();
        self.begin_with(&simpler, first);
        self.bring_to(Phase::Search, &simpler, self.allotment.certain())?;
        let as_good: Vec<usize> =
            simpler.into_iter().filter(|&candidate| self.is_as_good(candidate, best, weights)).take(SIMPLER).collect();
        self.bring_to(Phase::Search, &as_good, self.allotment.top())
    }

    /// Returns whether a candidate is as good as another within the noise of the search runs.
    fn is_as_good(&self, number: usize, than: usize, weights: &[f64]) -> bool {
        let (loss, error) = self.history.behind(number, than, weights);
        loss <= error.max(PUT_BACK_SHARE)
    }

    /// Confirms the finalists and the baseline with new seeds. Then confirms variants of the best
    /// setting. In each variant, one or more changed values of the best setting are defaults again.
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

    /// If no setting is certainly better, gives the remaining runs to the most promising setting
    /// and to the baseline, half to each.
    fn make_sure(&mut self) -> Result<(), Halt> {
        let judge = Judge::of(&self.history);
        let Some(hopeful) = judge.hopeful().filter(|_| judge.best_to_recommend() == Some(0)) else { return Ok(()) };
        let left = (self.history.header.budget as usize).saturating_sub(self.runs.len());
        let runs = self.allotment.confirm + (left / 2) as u32;
        self.bring_to(Phase::Confirm, &[0, hopeful], if self.history.header.seeds_matter { runs } else { 0 })
    }

    /// Returns the settings to confirm. For each set of weights, these are the best setting, the
    /// simplest setting that is as good, and the next best settings. The best setting of every
    /// elevator and of every controller is added.
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
            let simplest =
                order.iter().filter(|&&candidate| self.is_as_good(candidate, best, weights)).min_by_key(changes);
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
        for index in 0..elevators {
            add_best(&|number| elevator(number) == Some(index), certain);
        }
        for controller in controllers {
            let uses =
                |number: usize| Controller::used_by(&self.history.candidates[number].setting).contains(&controller);
            // A controller that loses in its first run gets no further runs, so here one run is
            // enough.
            add_best(&uses, 1);
        }
        finalists
    }

    /// Returns whether the search has run a setting and
    /// found it as good as another within the noise.
    fn search_says_harmless(&self, setting: &Setting, than: usize) -> bool {
        let known = self.history.candidates.iter().position(|candidate| candidate.setting == *setting);
        let weights = vec![1.0; self.history.header.goals];
        known.is_some_and(|number| self.is_as_good(number, than, &weights))
    }

    /// Returns the variants of the recommended setting to confirm, as far as the budget allows. The
    /// first variant puts back all changes that seem to have no effect. Each further variant puts
    /// back one change.
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
        let without_one = |dimension: usize| without(&[dimension]);
        let harmless = |dimension: &usize| match confirmed(&without_one(*dimension)) {
            Some(number) => judge.is_as_good(number, best),
            None => self.search_says_harmless(&without_one(*dimension), best),
        };
        // Changes without effect come first, because the budget may not suffice for all.
        let (can_go, must_stay): (Vec<usize>, Vec<usize>) = changed.into_iter().partition(harmless);
        let mut wanted = if can_go.len() > 1 { vec![without(&can_go)] } else { Vec::new() };
        wanted.extend(can_go.into_iter().chain(must_stay).map(without_one));
        wanted.retain(|setting| confirmed(setting).is_none());
        wanted.truncate(left);
        wanted.iter().map(|setting| self.history.number(setting)).collect()
    }
}

/// Returns 1, 2, 4 and so on, below `count`.
fn sizes(count: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |size| Some(size * 2)).take_while(move |&size| size < count)
}

/// Adds at most `share` numbers of `new`, without duplicates.
fn add_new(all: &mut Vec<usize>, new: impl Iterator<Item = usize>, share: usize) {
    let before = all.len();
    for number in new {
        if all.len() < before + share && !all.contains(&number) {
            all.push(number);
        }
    }
}

/// Returns the points that differ from `point` by one step in a value of a controller. Only values
/// that `point` sets change.
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

/// Returns a point one or two steps from `point`, or from the defaults of another elevator. A step
/// is often small, sometimes arbitrary, and sometimes back to a default.
fn neighbour(space: &Space, point: &Point, random: &mut SplitMix64) -> Point {
    let mut point = point.clone();
    if random.below(space.elevators.len() as u64 * 4) == 0 {
        point.elevator = random.below(space.elevators.len() as u64) as usize;
        point.levels = space.elevators[point.elevator].dimensions.iter().map(|dimension| dimension.default).collect();
    }
    let dimensions = &space.elevators[point.elevator].dimensions;
    if dimensions.is_empty() {
        return point;
    }
    for _ in 0..if random.below(4) == 0 { 2 } else { 1 } {
        let number = random.below(dimensions.len() as u64) as usize;
        let (dimension, level) = (&dimensions[number], &mut point.levels[number]);
        *level = step(dimension, *level, random);
    }
    point
}

/// Returns a point near `point`. Three times out of four, the function changes one level of `point`
/// that is not the default of its dimension. Otherwise, or if all levels are defaults, the function
/// returns a [`neighbour`].
fn nearby(space: &Space, point: &Point, random: &mut SplitMix64) -> Point {
    let changed: Vec<usize> = space.changed(point).collect();
    if changed.is_empty() || random.below(4) == 0 {
        return neighbour(space, point, random);
    }
    let number = changed[random.below(changed.len() as u64) as usize];
    let mut point = point.clone();
    let dimension = &space.elevators[point.elevator].dimensions[number];
    point.levels[number] = step(dimension, point.levels[number], random);
    point
}

fn step(dimension: &Dimension, level: usize, random: &mut SplitMix64) -> usize {
    match random.below(6) {
        0 | 1 => (level + 1).min(dimension.values.len() - 1),
        2 | 3 => level.saturating_sub(1),
        4 if level != dimension.default => dimension.default,
        _ => random.below(dimension.values.len() as u64) as usize,
    }
}
