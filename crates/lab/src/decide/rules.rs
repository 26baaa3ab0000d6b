//! Rules of the decision: the setting to use, with reasons.

mod alternatives;

use super::words::{effect, latency_s, nothing_better, ratio};
use super::{BrokenConstraint, Criterion, Decision, DecisionKind, Evidence, Starving};
use crate::compare::{Comparison, RUNS_FEW, RUNS_PUBLISHED, RUNS_WORTH, Verdict};
use crate::figure::{Direction, Figure, job_of_copy};
use crate::number::significant;
use crate::words::{capital, idle_in_words, listed, marked, runs_in_words, some_of};

/// Largest number of settings that the text names. For the other settings, it gives only their
/// number.
const NAMED_MAX: usize = 4;
/// Largest number of gains of one setting that the text names. If a setting is not chosen, its
/// costs have the same limit.
const EFFECTS_MAX: usize = 2;
/// Largest number of costs of the chosen setting that the text names.
const COSTS_MAX: usize = 3;
/// Largest number of sentences about settings that are not chosen.
const ASIDES_MAX: usize = 2;
/// Smallest gain of a job or process, as a factor, for which the user must choose between this gain
/// and the first metric.
const TRADE: f64 = 2.0;
/// Smallest loss of throughput or time of the whole run, as a factor, for which the user must
/// choose even though the user's goal improves.
const DEAR_LOSS: f64 = 4.0;
/// Smallest gain, as a factor, for which a choice offers a setting instead of the baseline. The
/// setting must be equal to the baseline in the first metric.
const NOTABLE_GAIN: f64 = 1.25;
/// Smallest loss of throughput or time of the whole run, as a factor, that the text names before
/// other losses.
const LARGE_LOSS: f64 = 1.25;

/// Decides which setting to use.
#[must_use]
pub fn decide(evidence: &Evidence) -> Decision {
    let rules = Rules { evidence };
    match (evidence.labels.len(), evidence.criteria.first()) {
        (..2, _) => decision(DecisionKind::Nothing, None, None, vec![ONE_SETTING.to_owned()]),
        _ if evidence.nothing_reached => rules.nothing_reached(),
        _ if evidence.runs < 2 => rules.one_run(),
        _ if evidence.idle_percent.is_some() => rules.idle(),
        (_, None) => decision(
            DecisionKind::Nothing,
            None,
            None,
            vec![format!("Keep {}. No run has a metric by which settings can be compared.", rules.name(rules.base()))],
        ),
        (_, Some(first)) => rules.decide(first),
    }
}

const ONE_SETTING: &str = "A single setting cannot be compared. Add another with --scheduler.";

fn decision(kind: DecisionKind, setting: Option<usize>, metric: Option<Figure>, sentences: Vec<String>) -> Decision {
    let sentences = sentences.into_iter().filter(|sentence| !sentence.is_empty()).collect();
    Decision { kind, setting, otherwise: None, metric, sentences, judged: None }
}

/// Setting to use, without the remarks that the decision later adds.
struct Choice {
    kind: DecisionKind,
    setting: usize,
    otherwise: Option<usize>,
    sentences: Vec<String>,
}

impl Choice {
    fn of(kind: DecisionKind, setting: usize, sentences: Vec<String>) -> Self {
        Self { kind, setting, otherwise: None, sentences }
    }
}

struct Rules<'e> {
    evidence: &'e Evidence,
}

impl Rules<'_> {
    fn base(&self) -> usize {
        self.evidence.baseline
    }

    /// Returns the name of a setting in a sentence.
    fn name(&self, setting: usize) -> String {
        marked(&self.evidence.labels[setting])
    }

    fn names(&self, settings: &[usize]) -> Vec<String> {
        settings.iter().map(|&setting| self.name(setting)).collect()
    }

    /// Returns all settings except the baseline.
    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.evidence.labels.len()).filter(|&setting| setting != self.base())
    }

    /// Returns whether only a served disk can use the compared settings.
    fn served_only(&self) -> bool {
        self.evidence.served.len() == self.evidence.labels.len()
    }

    fn can_be_set(&self, setting: usize) -> bool {
        self.served_only() || !self.evidence.served.contains(&setting)
    }

    fn broken(&self, setting: usize) -> &[BrokenConstraint] {
        self.evidence.broken.get(setting).map_or(&[], Vec::as_slice)
    }

    /// Returns the tasks that starve under `setting` but not under the setting `not_under`.
    fn starving(&self, setting: usize, not_under: usize) -> Vec<&Starving> {
        let of = |starving: &&Starving| starving.settings.contains(&setting) && !starving.settings.contains(&not_under);
        self.evidence.starving.iter().filter(of).collect()
    }

    /// Returns these tasks in words: "the job backup", "the jobs backup and batch". Returns `None`
    /// if there are none.
    fn starves(&self, setting: usize, not_under: usize) -> Option<String> {
        let names: Vec<String> =
            self.starving(setting, not_under).iter().map(|starving| starving.task.clone()).collect();
        let plural = match names.len() {
            0 => return None,
            1 => "",
            _ if self.evidence.task_word.ends_with('s') => "es",
            _ => "s",
        };
        Some(format!("the {}{plural} {}", self.evidence.task_word, some_of(&names, NAMED_MAX, "and")))
    }

    /// Returns the metrics after the first that a setting improves or worsens. The largest change
    /// comes first, but a large loss of the whole run's work precedes all other losses. There is at
    /// most one metric per task. Omits tasks that starve under only one of the two settings,
    /// because they are reported separately.
    fn changes(&self, setting: usize, wanted: Verdict) -> Vec<&Criterion> {
        let counts = |criterion: &&Criterion| criterion.concludes || wanted == Verdict::Worse;
        let mut found: Vec<(&Criterion, f64)> = (self.evidence.criteria.iter().skip(1))
            .filter(counts)
            .filter(|criterion| compared(criterion, setting).is_some_and(|found| found.verdict == wanted))
            .map(|criterion| (criterion, magnitude(criterion, setting)))
            .collect();
        let is_large_loss = |found: &(&Criterion, f64)| {
            wanted == Verdict::Worse && is_of_whole(found.0.figure) && found.1 >= LARGE_LOSS.ln()
        };
        found.sort_by(|a, b| is_large_loss(b).cmp(&is_large_loss(a)).then(b.1.total_cmp(&a.1)));
        let (base, all) = (self.base(), &self.evidence.starving);
        let starves = |task: &str| {
            let differs =
                |starving: &&Starving| starving.settings.contains(&setting) != starving.settings.contains(&base);
            let is_of = |starving: &str| {
                starving == task || starving.starts_with(&format!("{task} (")) || job_of_copy(starving) == Some(task)
            };
            all.iter().filter(differs).any(|starving| is_of(&starving.task))
        };
        let mut tasks: Vec<&str> = Vec::new();
        let mut is_new = |criterion: &&Criterion| match criterion.figure.task() {
            Some(task) if tasks.contains(&task) || starves(task) => false,
            Some(task) => {
                tasks.push(task);
                true
            }
            None => true,
        };
        found.into_iter().map(|(criterion, _)| criterion).filter(|criterion| is_new(criterion)).collect()
    }

    /// Returns the effect of a setting on a metric in words. If a latency is at least half a run,
    /// an I/O waited for most of the run. The length of the run then limits this latency.
    fn effect(&self, criterion: &Criterion, setting: usize) -> String {
        let half_s = self.evidence.run_s.map(|run_s| run_s / 2.0);
        let is_long =
            |setting| latency_s(criterion, setting).zip(half_s).is_some_and(|(seconds, half_s)| seconds >= half_s);
        let verdict = compared(criterion, setting).map(|comparison| comparison.verdict);
        let remark = match verdict {
            Some(Verdict::Worse) if is_long(setting) => " (most of the run)".to_owned(),
            Some(Verdict::Better) if is_long(self.base()) => {
                format!(" (under {}, I/Os waited during most of the run)", self.name(self.base()))
            }
            _ => String::new(),
        };
        effect(criterion, setting, self.base(), !remark.is_empty()) + &remark
    }

    /// Returns the effects of a setting on metrics, one clause for each of the first `most`
    /// metrics. A last clause only names the other metrics.
    fn clauses(&self, criteria: &[&Criterion], setting: usize, most: usize) -> Vec<String> {
        let better = |criterion: &&Criterion| {
            compared(criterion, setting).is_some_and(|comparison| comparison.verdict == Verdict::Better)
        };
        let mut all: Vec<String> =
            criteria.iter().take(most).map(|criterion| self.effect(criterion, setting)).collect();
        if criteria.len() > most {
            let verb = if criteria.first().is_some_and(better) { "improves" } else { "worsens" };
            let names: Vec<String> = criteria[most..].iter().map(|criterion| criterion.phrase.clone()).collect();
            all.push(format!("{verb} {}", some_of(&names, NAMED_MAX, "and")));
        }
        all
    }

    /// Returns the effects in words: "lengthens sync p99 by 20 % and shares the disk less fairly".
    fn effects(&self, criteria: &[&Criterion], setting: usize) -> String {
        listed(&self.clauses(criteria, setting, EFFECTS_MAX), "and")
    }

    /// Returns the costs of a setting after its gains; empty if there are none.
    fn but(&self, costs: &[&Criterion], setting: usize) -> String {
        if costs.is_empty() { String::new() } else { format!(" But it {}.", self.effects(costs, setting)) }
    }

    /// Returns the costs of the chosen setting, two clauses per sentence; empty if there are none.
    fn cost(&self, costs: &[&Criterion], setting: usize) -> String {
        let starves = self.starves(setting, self.base()).map(|tasks| format!("starves {tasks}"));
        let all: Vec<String> = starves.into_iter().chain(self.clauses(costs, setting, COSTS_MAX)).collect();
        sentences("The cost: it", &all)
    }

    fn one_run(&self) -> Decision {
        let keep = format!("Keep {} for now: one run of each setting is too few to decide.", self.name(self.base()));
        let more = format!("Make {RUNS_PUBLISHED} runs: --runs {RUNS_PUBLISHED}.");
        decision(DecisionKind::TooFewRuns, Some(self.base()), None, vec![keep, more])
    }

    fn nothing_reached(&self) -> Decision {
        let sentence = format!(
            "Keep {}. Nothing reached the disk: all data stayed in the page cache, so the scheduler had nothing to do.",
            self.name(self.base())
        );
        decision(DecisionKind::Idle, Some(self.base()), None, vec![sentence])
    }

    fn idle(&self) -> Decision {
        let idle = idle_in_words(self.evidence.idle_percent.unwrap_or(0.0));
        let keep = format!("Keep {}: the scheduler makes no difference here.", self.name(self.base()));
        let why = format!("The device was idle at least {idle} of the time, so I/Os rarely waited for each other.");
        decision(DecisionKind::Idle, Some(self.base()), None, vec![keep, why, self.below(), self.spoiled()])
    }

    fn decide(&self, first: &Criterion) -> Decision {
        let found = if self.broken(self.base()).is_empty() { self.change(first) } else { self.allowed(first) };
        let Choice { kind, setting, otherwise, mut sentences } = found.unwrap_or_else(|| self.keep(first));
        self.only_served(setting, &mut sentences);
        sentences.extend(self.two_outcomes(first));
        sentences.extend([self.better_served(first), self.below(), self.spoiled()]);
        if self.evidence.kernels_differ {
            sentences[0] = sentences[0].replacen("Set ", "Use ", 1).replace("Otherwise set", "Otherwise use");
        }
        let found = decision(kind, Some(setting), Some(first.figure), sentences);
        Decision { otherwise, judged: Some(self.judged(first)), ..found }
    }

    /// Makes the decision if the baseline breaks a constraint.
    fn allowed(&self, first: &Criterion) -> Option<Choice> {
        let base = self.base();
        let broken = self.broken(base);
        if broken.is_empty() {
            return None;
        }
        let recommended = self.evidence.recommended;
        let fits = |setting: &usize| recommended.map_or_else(|| self.can_be_set(*setting), |best| best == *setting);
        let kept = self.others().filter(fits).filter(|&setting| self.broken(setting).is_empty());
        let Some(best) = best_of(first, kept) else {
            let name = self.name(base);
            let keep = format!("Keep {name} for now: no setting that was tried meets every constraint.");
            let sentences = vec![keep, format!("{name} breaks {}.", all_of(broken))];
            return Some(Choice::of(DecisionKind::CannotTell, base, sentences));
        };
        let name = self.name(base);
        // "throughput >= 50 (4.15 MB/s)" does not say which setting has this value.
        let values = broken.iter().map(|broken| format!("{} ({name} has {})", broken.constraint, broken.value));
        let values = values.collect::<Vec<_>>().join(" and ");
        let set = format!("Set {}. It meets the constraint that {name} breaks: {values}.", self.name(best));
        let gain = match compared(first, best).map(|comparison| comparison.verdict) {
            Some(Verdict::Better) => format!("It also {}.", self.effect(first, best)),
            Some(Verdict::Equal) => format!("{} is equal.", capital(&first.phrase)),
            _ => String::new(),
        };
        let cost = self.cost(&self.costs_with_first(first, best), best);
        Some(Choice::of(DecisionKind::Change, best, vec![set, gain, cost]))
    }

    fn costs_with_first<'c>(&'c self, first: &'c Criterion, setting: usize) -> Vec<&'c Criterion> {
        let worse = compared(first, setting).is_some_and(|comparison| comparison.verdict == Verdict::Worse);
        let mut costs = if worse { vec![first] } else { Vec::new() };
        costs.extend(self.changes(setting, Verdict::Worse));
        costs
    }

    /// Makes the decision to change, if a setting is better than the baseline.
    fn change(&self, first: &Criterion) -> Option<Choice> {
        let base = self.base();
        // With a goal, the user decides which tasks may wait. Without a goal, no task may starve.
        let starves = |setting: usize| self.evidence.reason.is_some() && self.starves(setting, base).is_some();
        let usable =
            |&candidate: &usize| self.can_be_set(candidate) && self.broken(candidate).is_empty() && !starves(candidate);
        let is_candidate = |&candidate: &usize| {
            let verdict = compared(first, candidate).map(|found| found.verdict);
            let free = self.changes(candidate, Verdict::Worse).is_empty();
            let gains = !self.changes(candidate, Verdict::Better).is_empty();
            match verdict {
                Some(Verdict::Better) => true,
                Some(Verdict::Equal) => free && gains || self.starves(base, candidate).is_some(),
                // If there are several goals, no goal has precedence.
                Some(Verdict::CannotTell) if self.evidence.reason.is_none() => {
                    free && gains && !may_be_worse(first, candidate)
                }
                _ => false,
            }
        };
        let all: Vec<usize> = match self.evidence.recommended {
            Some(recommended) if recommended == base => return None,
            Some(recommended) => vec![recommended],
            None => self.others().filter(usable).filter(is_candidate).collect(),
        };
        let is_free = |&candidate: &usize| self.changes(candidate, Verdict::Worse).is_empty();
        let free: Vec<usize> = all.iter().copied().filter(is_free).collect();
        let best = self.best_change(first, if free.is_empty() { &all } else { &free })?;
        let verdict = compared(first, best).map(|comparison| comparison.verdict);
        let mut gains: Vec<&Criterion> = if verdict == Some(Verdict::Better) { vec![first] } else { Vec::new() };
        gains.extend(self.changes(best, Verdict::Better));
        let costs = self.changes(best, Verdict::Worse);
        let feeds = self.starves(base, best);
        let (name, base_name) = (self.name(best), self.name(base));
        let serves = feeds.as_ref().map(|task| format!("serves {task}, which starves under {base_name}"));
        let equal = (verdict == Some(Verdict::Equal))
            .then(|| format!("{} is equal within {} %.", capital(&first.phrase), self.evidence.equal_within_percent));
        let mut gained = self.clauses(&gains, best, EFFECTS_MAX);
        if verdict == Some(Verdict::Better) {
            gained[0] += &ratio(first, best);
        }
        let all: Vec<String> = gained.into_iter().chain(serves).collect();
        let rest: Vec<usize> = self.others().filter(|&setting| setting != best).collect();
        let trade = self.trade(first, best, &rest);
        let is_slight = verdict == Some(Verdict::Equal)
            && feeds.is_none()
            && gains.iter().all(|gain| magnitude(gain, best) < NOTABLE_GAIN.ln());
        let hidden = self.hidden_gain(first, &rest, trade.map(|(setting, _)| setting));
        if (trade.is_some() || hidden.is_some()) && is_slight && self.evidence.recommended.is_none() {
            // The user chooses between the baseline and a setting that helps a job or process much.
            // A third setting that is slightly better than the baseline would only distract.
            return None;
        }
        // A goal decides alone, unless the whole run loses much.
        let is_dear = costs.iter().any(|cost| is_of_whole(cost.figure) && magnitude(cost, best) >= DEAR_LOSS.ln());
        let is_change = costs.is_empty() || self.evidence.reason.is_none() && !is_dear;
        let mut sentences = if let Some((setting, gain)) = trade.filter(|_| is_change) {
            let (metric, gain, other) = (&first.phrase, &gain.phrase, self.name(setting));
            let head = format!("Set {name} if {metric} matters more than {gain}. Otherwise set {other}.");
            vec![head, sentences(&name, &all), equal.unwrap_or_default()]
        } else if is_change {
            let (gain, more) = all.split_first()?;
            let more = if more.is_empty() { String::new() } else { sentences("It also", more) };
            vec![format!("Set {name}: it {gain}."), more, equal.unwrap_or_default(), self.cost(&costs, best)]
        } else {
            let matters = gains.first().map(|criterion| criterion.phrase.clone());
            let progress = feeds.map(|task| format!("progress of {task}"));
            let gains_in = listed(&matters.into_iter().chain(progress).collect::<Vec<_>>(), "or");
            let head =
                format!("Set {name} if {gains_in} matters more than {}. Otherwise keep {base_name}.", costs[0].phrase);
            vec![head, sentences("The gain: it", &all), equal.unwrap_or_default(), self.cost(&costs, best)]
        };
        if let Some((setting, gain)) = trade {
            let other = self.name(setting);
            if !is_change {
                sentences.push(format!("Set {other} if {} matters most.", gain.phrase));
            }
            let gained = self.effects(&self.changes(setting, Verdict::Better), setting);
            sentences.push(format!("{other} {gained}.{}", self.but(&self.changes(setting, Verdict::Worse), setting)));
        }
        let kind = if is_change && trade.is_none() { DecisionKind::Change } else { DecisionKind::Trade };
        let mut described = self.described(first, &self.without_better_served(&rest));
        if let Some(first) = described.first_mut() {
            *first = format!("Against {base_name}, {first}");
        }
        sentences.extend(described);
        sentences.extend(hidden);
        sentences.extend(self.larger_gain(best, first, &rest, trade.map(|(setting, _)| setting)));
        let otherwise = trade.filter(|_| is_change).map(|(setting, _)| setting);
        Some(Choice { kind, setting: best, otherwise, sentences })
    }

    /// Makes the decision to keep the baseline, because no setting is better.
    fn keep(&self, first: &Criterion) -> Choice {
        let base = self.base();
        let others: Vec<usize> = self.others().collect();
        if let Some(sentences) = self.all_equal(&others) {
            return Choice::of(DecisionKind::Equal, base, sentences);
        }
        let few = self.evidence.runs < RUNS_FEW;
        // The intervals of very few runs cannot exclude that a setting is better.
        let cannot_tell =
            |number: usize| compared(first, number).is_some_and(|comparison| comparison.verdict == Verdict::CannotTell);
        let is_open = |number: usize| may_be_better(first, number) || few && cannot_tell(number);
        let open: Vec<usize> =
            others.iter().copied().filter(|&number| self.can_be_set(number) && is_open(number)).collect();
        let described = self.without_better_served(&others);
        let excluded = described.len() < others.len();
        let described = self.described(first, &described);
        let mut nothing = nothing_better(first);
        if excluded {
            for start in ["Nothing", "No other setting"] {
                nothing = nothing.replacen(start, "No other scheduler of Linux", 1);
            }
        }
        let nothing = nothing + self.condition(first, &others);
        if open.is_empty() {
            let trade = self.trade(first, base, &others);
            let head = match trade {
                Some((setting, gain)) => format!(
                    "Keep {} if {} matters more than {}. Otherwise set {}.",
                    self.name(base),
                    first.phrase,
                    gain.phrase,
                    self.name(setting)
                ),
                None => format!("Keep {}. {nothing}.", self.name(base)),
            };
            let kind = if trade.is_some() { DecisionKind::Trade } else { DecisionKind::Keep };
            let otherwise = trade.map(|(setting, _)| setting);
            let kept = Choice { kind, setting: base, otherwise, sentences: vec![head] };
            let mut choice = self.starving_base(first).unwrap_or(kept);
            choice.sentences.extend(described);
            choice.sentences.extend(self.starving_beside_goal());
            choice.sentences.extend(self.asides(first, &others, otherwise));
            return choice;
        }
        let runs = open.iter().map(|&number| compared(first, number).and_then(|comparison| comparison.runs_needed));
        let runs = runs.collect::<Option<Vec<u32>>>().and_then(|all| all.into_iter().max());
        let hidden =
            open.iter().any(|&number| compared(first, number).is_some_and(|comparison| comparison.seen.is_some()));
        let kind = if few && !hidden { DecisionKind::TooFewRuns } else { DecisionKind::CannotTell };
        let keep = format!("Keep {} for now:", self.name(base));
        let head = if kind == DecisionKind::TooFewRuns {
            format!("{keep} {} runs of each setting are too few to decide.", self.evidence.runs)
        } else {
            format!("{keep} the runs do not show whether {} is better.", listed(&self.names(&open), "or"))
        };
        let more = match runs {
            Some(runs) if runs <= RUNS_WORTH => {
                let option = self.evidence.runs_option.map_or_else(String::new, |option| format!(": {option} {runs}"));
                format!("About {} of each setting would give a verdict{option}.", runs_in_words(runs))
            }
            Some(_) => format!("More than {RUNS_WORTH} runs of each setting would be needed for a verdict."),
            None => self.untold(first, &open),
        };
        let mut sentences = vec![head, format!("{nothing} for sure.")];
        sentences.extend(described);
        sentences.push(more);
        sentences.extend(self.asides(first, &others, None));
        Choice::of(kind, base, sentences)
    }

    /// Returns the best of the settings to which the user may change: the one with the largest gain
    /// in the first metric. If no setting gains there, it is one that serves a starving task, or
    /// else the one with the largest gain in any metric.
    fn best_change(&self, first: &Criterion, candidates: &[usize]) -> Option<usize> {
        let best = best_of(first, candidates.iter().copied())?;
        if compared(first, best).is_some_and(|comparison| comparison.verdict == Verdict::Better) {
            return Some(best);
        }
        let gain =
            |setting| self.changes(setting, Verdict::Better).first().map_or(0.0, |gain| magnitude(gain, setting));
        let serves = |setting| self.starves(self.base(), setting).is_some();
        let rank = |&a: &usize, &b: &usize| serves(b).cmp(&serves(a)).then(gain(b).total_cmp(&gain(a))).then(a.cmp(&b));
        candidates.iter().copied().min_by(rank)
    }

    /// Leaves out the better settings that only served disks can use. [`Self::better_served`] reports
    /// them.
    fn without_better_served(&self, settings: &[usize]) -> Vec<usize> {
        settings.iter().copied().filter(|setting| !self.evidence.better_served.contains(setting)).collect()
    }

    /// Returns the condition that the better settings do not meet.
    fn condition(&self, first: &Criterion, others: &[usize]) -> &'static str {
        let is_better =
            |number: &&usize| compared(first, **number).is_some_and(|found| found.verdict == Verdict::Better);
        let better: Vec<usize> =
            others.iter().filter(is_better).copied().filter(|&number| self.can_be_set(number)).collect();
        if better.iter().any(|&number| !self.broken(number).is_empty()) {
            " within the constraints"
        } else if better.iter().any(|&number| self.starves(number, self.base()).is_some()) {
            " without starving a task"
        } else {
            ""
        }
    }

    /// Explains why no number of runs would give a verdict.
    fn untold(&self, first: &Criterion, open: &[usize]) -> String {
        let off = open.iter().filter_map(|&number| Some(compared(first, number)?.model_error_percent));
        let off = off.fold(0.0, f64::max);
        if off <= 0.0 {
            return "More runs would not give a verdict.".to_owned();
        }
        format!(
            "More runs would not give a verdict, because the model may be wrong by {} %. Compare on the device \
             itself with --on.",
            significant(off, 2)
        )
    }

    /// Returns the sentences for the case that all settings are equal in all metrics.
    fn all_equal(&self, others: &[usize]) -> Option<Vec<String>> {
        let concluding: Vec<&Criterion> =
            self.evidence.criteria.iter().filter(|criterion| criterion.concludes).collect();
        let is_equal = |criterion: &&Criterion| {
            let mut found = others.iter().filter_map(|&setting| compared(criterion, setting)).peekable();
            found.peek().is_some() && found.all(|criterion| criterion.verdict == Verdict::Equal)
        };
        if !concluding.iter().all(is_equal) {
            return None;
        }
        let count = self.evidence.labels.len();
        let all = if count == 2 { "both".to_owned() } else { format!("all {count}") };
        let names: Vec<String> = concluding.iter().map(|criterion| criterion.phrase.clone()).collect();
        Some(vec![
            format!("Keep {}: the setting makes no difference here.", self.name(self.base())),
            format!(
                "{} settings are equal within {} % in {}.",
                capital(&all),
                self.evidence.equal_within_percent,
                some_of(&names, NAMED_MAX, "and")
            ),
        ])
    }

    /// Names the disks or kernels that can use a setting whose scheduler is not part of Linux.
    fn place(&self, setting: usize) -> &'static str {
        match self.evidence.out_of_tree.contains(&setting) {
            true => "a disk that iosched serves, or a kernel that has this scheduler",
            false => "a disk that iosched serves",
        }
    }

    /// Offers a choice if the baseline starves a task and another setting does not starve it. The
    /// other setting is not better than the baseline.
    fn starving_base(&self, first: &Criterion) -> Option<Choice> {
        let base = self.base();
        let can = |&number: &usize| self.can_be_set(number) && self.starves(base, number).is_some();
        let is_free = |number: &usize| self.starves(*number, base).is_none();
        let best = best_of(first, self.others().filter(can).filter(is_free))
            .or_else(|| best_of(first, self.others().filter(can)))?;
        let (task, starving) = (self.starves(base, best)?, *self.starving(base, best).first()?);
        let (name, base_name) = (self.name(best), self.name(base));
        let Some(starved) = self.starves(best, base) else {
            let noun = &first.phrase;
            let head =
                format!("Set {name} if progress of {task} matters more than {noun}. Otherwise keep {base_name}.");
            let sentences = vec![head, self.why_starving(base, task, starving)];
            return Some(Choice::of(DecisionKind::Trade, best, sentences));
        };
        // Every setting starves a task, so the user decides between the tasks.
        let head = format!(
            "Keep {base_name} if progress of {starved} matters more than progress of {task}. Otherwise set {name}."
        );
        let sentences = vec![head, self.why_starving(base, task, starving)];
        Some(Choice { kind: DecisionKind::Trade, setting: base, otherwise: Some(best), sentences })
    }

    /// Returns a sentence about the tasks that starve under the baseline. With a goal, the user
    /// decides which tasks may wait, but must know about them.
    fn starving_beside_goal(&self) -> Option<String> {
        let is_of_base = |starving: &&Starving| starving.settings.contains(&self.base());
        let names: Vec<String> =
            self.evidence.starving.iter().filter(is_of_base).map(|starving| starving.task.clone()).collect();
        if self.evidence.reason.is_some() || names.is_empty() {
            return None;
        }
        let verb = if names.len() == 1 { "starves" } else { "starve" };
        Some(format!("Under {}, {} {verb}.", self.name(self.base()), some_of(&names, NAMED_MAX, "and")))
    }

    /// Returns a sentence about the small share of the I/Os that a task gets.
    fn why_starving(&self, base: usize, task: String, starving: &Starving) -> String {
        let base_name = self.name(base);
        format!(
            "{base_name} starves {task}: {} gets {} % of the I/Os of the busiest {}.",
            starving.task,
            significant(starving.percent, 2),
            self.evidence.task_word
        )
    }

    /// Returns sentences about the first settings with two outcomes: their runs form two groups in
    /// the metric that decides.
    fn two_outcomes(&self, first: &Criterion) -> Vec<String> {
        let of = |setting: usize| {
            if setting == self.base() {
                return self.others().find_map(|other| compared(first, other)?.base_outcomes);
            }
            compared(first, setting)?.outcomes
        };
        let sentence = |setting: usize| {
            let outcomes = of(setting)?.describe(first.figure.unit());
            Some(format!("Under {}, {} has two outcomes: {outcomes}.", self.name(setting), first.phrase))
        };
        (0..self.evidence.labels.len()).filter_map(sentence).take(ASIDES_MAX).collect()
    }

    fn below(&self) -> String {
        self.evidence.below.clone().unwrap_or_default()
    }

    fn spoiled(&self) -> String {
        let reason = self.evidence.spoiled;
        reason.map_or_else(String::new, |reason| {
            format!("The first of the listed doubts may change this decision: {reason}.")
        })
    }

    /// Adds the remark that a scheduler is not part of Linux. If the remark concerns the setting to
    /// use, the remark comes first.
    fn only_served(&self, setting: usize, sentences: &mut Vec<String>) {
        let base = self.base();
        if self.served_only() {
            let mut chars = sentences[0].chars();
            let first: String = chars.next().into_iter().flat_map(char::to_lowercase).collect();
            let there = format!("{first}{}", chars.as_str()).replace("Otherwise keep", "Otherwise use");
            sentences[0] = format!(
                "Linux has none of these settings, because they need a disk that iosched serves. On such a disk, \
                 {there}"
            );
        } else if self.evidence.served.contains(&setting) {
            let name = self.name(setting);
            sentences[0] = sentences[0].replacen(&name, &format!("{name} (only on {})", self.place(setting)), 1);
        } else if self.evidence.served.contains(&base) {
            sentences.push(format!("Linux does not have {}, which needs {}.", self.name(base), self.place(base)));
        }
    }

    /// Returns sentences with the metric that decides, the reason, the option that chooses another
    /// metric, and the number of runs.
    fn judged(&self, first: &Criterion) -> String {
        let sure = format!(
            "Based on {} {} of each setting, with 95 % confidence.",
            self.evidence.runs, self.evidence.run_word
        );
        let name = &first.phrase;
        let Some(reason) = self.evidence.reason else {
            let among = if self.broken(self.base()).is_empty() {
                "The goal decides"
            } else {
                "Among the settings that meet every constraint, the goal decides"
            };
            return format!("{among}: {}. {sure}", first.phrase);
        };
        let has_p99 = self.evidence.criteria.iter().skip(1).any(|criterion| criterion.figure == Figure::SyncP99);
        let usual = if has_p99 { "\"p99(sync)\"" } else { "METRIC" };
        let such = self.evidence.goal.as_deref().unwrap_or(usual);
        format!(
            "Without a goal, {name} decides, because {reason}. To let another metric decide, add --goal {such}. {sure}"
        )
    }
}

/// Joins clauses to sentences, with one or two clauses in each: "The cost: it A and B. It also C."
/// A sentence has at most 25 words, if its clauses allow it.
fn sentences(lead: &str, clauses: &[String]) -> String {
    const WORDS_MAX: usize = 25;
    let mut sentences: Vec<String> = Vec::new();
    let mut rest = clauses;
    while !rest.is_empty() {
        let lead = if sentences.is_empty() { lead } else { "It also" };
        let sentence = |count: usize| format!("{lead} {}.", listed(&rest[..count], "and"));
        let is_short = |count: &usize| sentence(*count).split_whitespace().count() <= WORDS_MAX;
        let count = Some(rest.len().min(2)).filter(is_short).unwrap_or(1);
        sentences.push(sentence(count));
        rest = &rest[count..];
    }
    sentences.join(" ")
}

/// Returns whether a metric measures how much work the whole run does.
const fn is_of_whole(figure: Figure) -> bool {
    matches!(figure, Figure::Throughput | Figure::Iops | Figure::Finish)
}

fn compared(criterion: &Criterion, setting: usize) -> Option<Comparison> {
    criterion.settings.get(setting)?.as_ref()?.1
}

/// Returns [`Comparison::magnitude`], or 0 without a comparison.
fn magnitude(criterion: &Criterion, setting: usize) -> f64 {
    compared(criterion, setting).map_or(0.0, |comparison| comparison.magnitude())
}

/// Returns the magnitude. The sign is negative unless the setting is better than the baseline.
fn advantage(criterion: &Criterion, setting: usize) -> f64 {
    let sign = match compared(criterion, setting).map(|found| found.verdict) {
        Some(Verdict::Better) => 1.0,
        _ => -1.0,
    };
    sign * magnitude(criterion, setting)
}

/// Returns the setting with the largest improvement of a metric.
fn best_of(criterion: &Criterion, settings: impl Iterator<Item = usize>) -> Option<usize> {
    let sign = if criterion.figure.direction() == Direction::Higher { -1.0 } else { 1.0 };
    let loss = |setting: usize| compared(criterion, setting).map_or(0.0, |comparison| comparison.difference * sign);
    settings.min_by(|&a, &b| loss(a).total_cmp(&loss(b)).then(a.cmp(&b)))
}

fn may_be_better(criterion: &Criterion, setting: usize) -> bool {
    compared(criterion, setting).is_some_and(|comparison| comparison.may_be_better(criterion.figure.direction()))
}

fn may_be_worse(criterion: &Criterion, setting: usize) -> bool {
    compared(criterion, setting).is_some_and(|comparison| comparison.may_be_worse(criterion.figure.direction()))
}

/// Lists broken constraints with their values.
fn all_of(broken: &[BrokenConstraint]) -> String {
    broken.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
