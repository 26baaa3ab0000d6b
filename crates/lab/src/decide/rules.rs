//! Which setting to use, and why.

use super::words::{effect, nothing_better, noun, seen, some_of};
use super::{Criterion, Decision, DecisionKind, Evidence, Starving};
use crate::compare::{Comparison, RUNS_FEW, RUNS_PUBLISHED, RUNS_WORTH, Verdict};
use crate::figure::{Direction, Figure};
use crate::number::significant;
use crate::words::{idle_in_words, listed, runs_in_words};

/// Settings that are told one by one, at most; the others are counted.
const NAMED_MAX: usize = 4;
/// Gains and costs of one setting that are told, at most.
const EFFECTS_MAX: usize = 2;
/// Trades and costs of settings that are not chosen, at most.
const ASIDES_MAX: usize = 2;

/// Decides.
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
            vec![format!("Keep {}. No run has a metric by which settings can be compared.", rules.label(rules.base()))],
        ),
        (_, Some(first)) => rules.decide(first),
    }
}

const ONE_SETTING: &str = "One setting has nothing to be compared with. Add another with --scheduler.";

fn decision(kind: DecisionKind, setting: Option<usize>, metric: Option<Figure>, sentences: Vec<String>) -> Decision {
    let sentences = sentences.into_iter().filter(|own| !own.is_empty()).collect();
    Decision { kind, setting, metric, sentences, judged: None }
}

struct Rules<'e> {
    evidence: &'e Evidence,
}

impl Rules<'_> {
    fn base(&self) -> usize {
        self.evidence.baseline
    }

    fn label(&self, setting: usize) -> &str {
        &self.evidence.labels[setting]
    }

    fn labels(&self, settings: &[usize]) -> Vec<String> {
        settings.iter().map(|&setting| self.label(setting).to_owned()).collect()
    }

    /// All settings but the baseline.
    fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.evidence.labels.len()).filter(|&setting| setting != self.base())
    }

    /// Whether nothing that is compared can be set today.
    fn served_only(&self) -> bool {
        self.evidence.served.len() == self.evidence.labels.len()
    }

    fn can_be_set(&self, setting: usize) -> bool {
        self.served_only() || !self.evidence.served.contains(&setting)
    }

    fn broken(&self, setting: usize) -> Option<&str> {
        self.evidence.broken.get(setting)?.as_deref()
    }

    /// Tasks that starve under a setting and not under another.
    fn starves(&self, setting: usize, not_under: usize) -> Option<&Starving> {
        let of = |own: &&Starving| own.settings.contains(&setting) && !own.settings.contains(&not_under);
        self.evidence.starving.iter().find(of)
    }

    /// Metrics after the first that a setting improves, or makes worse; the greatest change first.
    fn changes(&self, setting: usize, wanted: Verdict) -> Vec<&Criterion> {
        let first = self.evidence.criteria.iter().skip(1);
        let counts = |own: &&Criterion| own.concludes || wanted == Verdict::Worse;
        let mut found: Vec<(&Criterion, f64)> = first
            .filter(counts)
            .filter_map(|own| Some((own, compared(own, setting)?)))
            .filter(|(_, found)| found.verdict == wanted)
            .map(|(own, found)| (own, found.percent.map_or(f64::INFINITY, f64::abs)))
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.into_iter().map(|(own, _)| own).collect()
    }

    /// "lengthens sync p99 3.2-fold and shares the disk less fairly".
    fn effects(&self, criteria: &[&Criterion], setting: usize) -> String {
        let better = |own: &&Criterion| compared(own, setting).is_some_and(|own| own.verdict == Verdict::Better);
        let mut all: Vec<String> =
            criteria.iter().take(EFFECTS_MAX).map(|own| effect(own, setting, self.base())).collect();
        if criteria.len() > EFFECTS_MAX {
            let more = criteria.len() - EFFECTS_MAX;
            let verb = if criteria.first().is_some_and(better) { "improves" } else { "worsens" };
            all.push(format!("{verb} {more} more {}", if more == 1 { "metric" } else { "metrics" }));
        }
        listed(&all, "and")
    }

    fn one_run(&self) -> Decision {
        let base = self.label(self.base());
        let said = format!(
            "Too few runs to decide: one run of each setting shows no spread. Keep {base} for now, and make \
             {RUNS_PUBLISHED} runs: --runs {RUNS_PUBLISHED}."
        );
        decision(DecisionKind::TooFewRuns, Some(self.base()), None, vec![said])
    }

    fn nothing_reached(&self) -> Decision {
        let said = format!(
            "Keep {}. Nothing reached the disk: all data stayed in the page cache, so the scheduler had nothing to do.",
            self.label(self.base())
        );
        decision(DecisionKind::Idle, Some(self.base()), None, vec![said])
    }

    fn idle(&self) -> Decision {
        let idle = idle_in_words(self.evidence.idle_percent.unwrap_or(0.0));
        let said = format!(
            "Keep {}. The device was idle at least {idle} of the time, so hardly an I/O waited for another, and the \
             scheduler makes no difference here.",
            self.label(self.base())
        );
        decision(DecisionKind::Idle, Some(self.base()), None, vec![said, self.below(), self.spoiled()])
    }

    fn decide(&self, first: &Criterion) -> Decision {
        let found = if self.broken(self.base()).is_some() { self.allowed(first) } else { self.change(first) };
        let (kind, setting, mut sentences) = found.unwrap_or_else(|| self.keep(first));
        sentences.extend([self.better_served(first), self.below(), self.only_served(), self.spoiled()]);
        let found = decision(kind, Some(setting), Some(first.figure), sentences);
        Decision { judged: Some(self.judged(first)), ..found }
    }

    /// The baseline breaks a bound.
    fn allowed(&self, first: &Criterion) -> Option<(DecisionKind, usize, Vec<String>)> {
        let base = self.base();
        let broken = self.broken(base)?;
        let recommended = self.evidence.recommended;
        let fits = |own: &usize| recommended.map_or_else(|| self.can_be_set(*own), |best| best == *own);
        let kept = self.others().filter(fits).filter(|&own| self.broken(own).is_none());
        let Some(best) = best_of(first, kept) else {
            let said = format!(
                "Keep {0} for now. No setting that was tried keeps every bound: {0} breaks {broken}.",
                self.label(base)
            );
            return Some((DecisionKind::CannotTell, base, vec![said]));
        };
        let mut said = format!("Set {}: it keeps what {} breaks, {broken}", self.label(best), self.label(base));
        let costs = self.costs_with_first(first, best);
        match compared(first, best).map(|own| own.verdict) {
            Some(Verdict::Better) => said += &format!(", and {}", effect(first, best, base)),
            Some(Verdict::Equal) => said += &format!(", with {} equal", noun(first)),
            _ => {}
        }
        said.push('.');
        let costs =
            if costs.is_empty() { String::new() } else { format!("The cost: it {}.", self.effects(&costs, best)) };
        Some((DecisionKind::Change, best, vec![said, costs]))
    }

    fn costs_with_first<'c>(&'c self, first: &'c Criterion, setting: usize) -> Vec<&'c Criterion> {
        let worse = compared(first, setting).is_some_and(|own| own.verdict == Verdict::Worse);
        let mut costs = if worse { vec![first] } else { Vec::new() };
        costs.extend(self.changes(setting, Verdict::Worse));
        costs
    }

    /// A setting that is better than the baseline, if there is one.
    fn change(&self, first: &Criterion) -> Option<(DecisionKind, usize, Vec<String>)> {
        let base = self.base();
        // A user who names a goal decides who may wait. Without one, no task may starve.
        let starves = |setting: usize| self.evidence.reason.is_some() && self.starves(setting, base).is_some();
        let usable = |&own: &usize| self.can_be_set(own) && self.broken(own).is_none() && !starves(own);
        let is_candidate = |&own: &usize| {
            let verdict = compared(first, own).map(|found| found.verdict);
            let free = self.changes(own, Verdict::Worse).is_empty();
            let gains = !self.changes(own, Verdict::Better).is_empty();
            match verdict {
                Some(Verdict::Better) => true,
                Some(Verdict::Equal) => free && gains || self.starves(base, own).is_some(),
                // Of several goals none is above the others.
                Some(Verdict::CannotTell) if self.evidence.reason.is_none() => {
                    free && gains && !may_be_worse(first, own)
                }
                _ => false,
            }
        };
        let all: Vec<usize> = match self.evidence.recommended {
            Some(own) if own == base => return None,
            Some(own) => vec![own],
            None => self.others().filter(usable).filter(is_candidate).collect(),
        };
        let free = all.iter().copied().filter(|&own| self.changes(own, Verdict::Worse).is_empty());
        let best = best_of(first, free).or_else(|| best_of(first, all.into_iter()))?;
        let verdict = compared(first, best).map(|own| own.verdict);
        let mut gains: Vec<&Criterion> = if verdict == Some(Verdict::Better) { vec![first] } else { Vec::new() };
        gains.extend(self.changes(best, Verdict::Better));
        let costs = self.changes(best, Verdict::Worse);
        let feeds = self.starves(base, best).map(|own| own.task.as_str());
        let serves = feeds.map(|task| format!("serves {task}, which starves under {},", self.label(base)));
        let gain = Some(self.effects(&gains, best)).filter(|gain| !gain.is_empty());
        let within = self.evidence.equal_within_percent;
        let equal = (verdict == Some(Verdict::Equal)).then(|| format!("{} is equal within {within} %", noun(first)));
        let it = listed(&serves.into_iter().chain(gain).collect::<Vec<_>>(), "and");
        let reasons = [format!("it {}", it.trim_end_matches(',')), equal.unwrap_or_default()];
        let reasons = reasons.iter().filter(|own| !own.is_empty()).cloned().collect::<Vec<_>>().join(", and ");
        let (kind, said) = if costs.is_empty() || self.evidence.reason.is_none() {
            (DecisionKind::Change, format!("Set {}: {reasons}.", self.label(best)))
        } else {
            let matters = gains.first().map(|own| format!("{} matters most", noun(own)));
            let progress = feeds.map(|task| format!("{task} must make progress"));
            let only_if = listed(&matters.into_iter().chain(progress).collect::<Vec<_>>(), "or");
            let (label, cost) = (self.label(best), self.effects(&costs, best));
            let keep = format!("Otherwise keep {}.", self.label(base));
            (DecisionKind::Trade, format!("Set {label} only if {only_if}: {reasons}, but {cost}. {keep}"))
        };
        let starves = self.starves(best, base).map(|starving| format!("starves {}", starving.task));
        let worsens = (kind == DecisionKind::Change && !costs.is_empty()).then(|| self.effects(&costs, best));
        let paid: Vec<String> = starves.into_iter().chain(worsens).collect();
        let cost = if paid.is_empty() { String::new() } else { format!("The cost: it {}.", paid.join(". It also ")) };
        let rest: Vec<usize> = self.others().filter(|&own| own != best).collect();
        let rest = self.told(first, &rest);
        let rest = if rest.is_empty() { String::new() } else { format!("Against {}, {}.", self.label(base), rest) };
        Some((kind, best, vec![said, cost, rest]))
    }

    /// Nothing is better than the baseline.
    fn keep(&self, first: &Criterion) -> (DecisionKind, usize, Vec<String>) {
        let base = self.base();
        let others: Vec<usize> = self.others().collect();
        if let Some(said) = self.all_equal(&others) {
            return (DecisionKind::Equal, base, vec![said]);
        }
        let few = self.evidence.runs < RUNS_FEW;
        // Intervals of so few runs say nothing.
        let cannot_tell = |own: usize| compared(first, own).is_some_and(|own| own.verdict == Verdict::CannotTell);
        let is_open = |own: usize| may_be_better(first, own) || few && cannot_tell(own);
        let open: Vec<usize> = others.iter().copied().filter(|&own| self.can_be_set(own) && is_open(own)).collect();
        // What only served disks have is told by itself where it is better.
        let is_served = |own: &usize| self.evidence.better_served.contains(own);
        let told: Vec<usize> = others.iter().copied().filter(|own| !is_served(own)).collect();
        let excluded = told.len() < others.len();
        let told = self.told(first, &told);
        let nothing = nothing_better(first);
        let nothing = if excluded { nothing.replacen("Nothing", "Nothing that Linux has", 1) } else { nothing };
        let nothing = nothing + self.condition(first, &others);
        if open.is_empty() {
            let told = if told.is_empty() { told } else { format!(": {told}") };
            let mut sentences = vec![format!("Keep {}. {nothing}{told}.", self.label(base))];
            let (starved, kind, setting) = self.starving_base();
            sentences.push(starved);
            sentences.extend(self.asides(first, &others));
            return (kind, setting, sentences);
        }
        let runs = open.iter().map(|&own| compared(first, own).and_then(|own| own.runs_needed));
        let runs = runs.collect::<Option<Vec<u32>>>().and_then(|all| all.into_iter().max());
        let hidden = open.iter().any(|&own| compared(first, own).is_some_and(|own| own.seen.is_some()));
        let kind = if few && !hidden { DecisionKind::TooFewRuns } else { DecisionKind::CannotTell };
        let head = if kind == DecisionKind::TooFewRuns {
            format!(
                "Too few runs to decide ({} of each setting): keep {} for now.",
                self.evidence.runs,
                self.label(base)
            )
        } else {
            format!(
                "Keep {} for now: whether {} is better is open.",
                self.label(base),
                listed(&self.labels(&open), "or")
            )
        };
        let more = match runs {
            Some(runs) if runs <= RUNS_WORTH => {
                format!("About {} of each setting would tell: --runs {runs}.", runs_in_words(runs))
            }
            Some(_) => format!("It would take more than {RUNS_WORTH} runs of each setting to tell."),
            None => self.untold(first, &open),
        };
        let mut sentences = vec![head, format!("{nothing} for sure: {told}."), more];
        sentences.extend(self.asides(first, &others));
        (kind, base, sentences)
    }

    /// The condition that the better settings do not meet.
    fn condition(&self, first: &Criterion, others: &[usize]) -> &'static str {
        let is_better = |own: &&usize| compared(first, **own).is_some_and(|found| found.verdict == Verdict::Better);
        let better: Vec<usize> = others.iter().filter(is_better).copied().filter(|&own| self.can_be_set(own)).collect();
        if better.iter().any(|&own| self.broken(own).is_some()) {
            " within the bounds"
        } else if better.iter().any(|&own| self.starves(own, self.base()).is_some()) {
            " without starving a task"
        } else {
            ""
        }
    }

    /// Why no number of runs would tell.
    fn untold(&self, first: &Criterion, open: &[usize]) -> String {
        let off = open.iter().filter_map(|&own| Some(compared(first, own)?.model_error_percent));
        let off = off.fold(0.0, f64::max);
        if off <= 0.0 {
            return "No number of runs would tell.".to_owned();
        }
        format!(
            "No number of runs would tell, since the model may be off by {} %: compare on the device itself (--on).",
            significant(off, 2)
        )
    }

    /// That all settings are equal in all metrics, if that is so.
    fn all_equal(&self, others: &[usize]) -> Option<String> {
        let concluding: Vec<&Criterion> = self.evidence.criteria.iter().filter(|own| own.concludes).collect();
        let is_equal = |own: &&Criterion| {
            let mut found = others.iter().filter_map(|&setting| compared(own, setting)).peekable();
            found.peek().is_some() && found.all(|own| own.verdict == Verdict::Equal)
        };
        if !concluding.iter().all(is_equal) {
            return None;
        }
        let count = self.evidence.labels.len();
        let all = if count == 2 { "both".to_owned() } else { format!("all {count}") };
        let names: Vec<String> = concluding.iter().map(|own| own.name.clone()).collect();
        Some(format!(
            "Keep {}. It makes no difference here: {all} settings are equal within {} % in {}.",
            self.label(self.base()),
            self.evidence.equal_within_percent,
            some_of(&names, NAMED_MAX, "and")
        ))
    }

    /// What the first metric is of some settings against the baseline: "none and kyber are equal within 5 %,
    /// bfq takes 19 % longer (9 to 29 %)".
    fn told(&self, first: &Criterion, settings: &[usize]) -> String {
        let of = |wanted: &dyn Fn(&Comparison) -> bool| -> Vec<usize> {
            let is_so = |&own: &usize| compared(first, own).is_some_and(|found| wanted(&found));
            let mut found: Vec<usize> = settings.iter().copied().filter(is_so).collect();
            let size = |own: usize| compared(first, own).and_then(|own| own.percent).unwrap_or(0.0).abs();
            if found.len() > 1 && !is_equal_or_open(first, found[0]) {
                found.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
            }
            found
        };
        let mut parts = Vec::new();
        let equal = of(&|found| found.verdict == Verdict::Equal);
        if !equal.is_empty() {
            let names = self.labels(&equal);
            let are = if names.len() == 1 { "is" } else { "are" };
            let within = self.evidence.equal_within_percent;
            parts.push(format!("{} {are} equal within {within} %", some_of(&names, NAMED_MAX, "and")));
        }
        let differing =
            [of(&|found| found.verdict == Verdict::Better), of(&|found| found.verdict == Verdict::Worse)].concat();
        for &own in differing.iter().take(NAMED_MAX - 1) {
            let mut said = format!("{} {}", self.label(own), effect(first, own, self.base()));
            if let Some(starved) = self.starves(own, self.base()) {
                let is_better = compared(first, own).is_some_and(|found| found.verdict == Verdict::Better);
                said += &format!("{} starves {}", if is_better { ", but" } else { " and" }, starved.task);
            }
            if let Some(broken) = self.broken(own) {
                said += &format!(", but breaks {broken}");
            }
            if !self.can_be_set(own) && compared(first, own).is_some_and(|own| own.verdict == Verdict::Better) {
                said += ", but only on a disk that iosched serves";
            }
            parts.push(said);
        }
        if differing.len() >= NAMED_MAX {
            parts.push(format!("{} more differ", differing.len() + 1 - NAMED_MAX));
        }
        let open = of(&|found| found.verdict == Verdict::CannotTell);
        let (hidden, open): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|&own| compared(first, own).is_some_and(|own| own.seen.is_some()));
        for &own in hidden.iter().take(NAMED_MAX - 1) {
            if let Some(said) = compared(first, own).as_ref().and_then(seen) {
                parts.push(format!("{} was {said}, but the model is too inexact to prove that", self.label(own)));
            }
        }
        let few = self.evidence.runs < RUNS_FEW;
        if few && !open.is_empty() {
            parts.push(format!("{} may be better or worse", some_of(&self.labels(&open), NAMED_MAX, "and")));
        } else {
            let (open, at_best): (Vec<usize>, Vec<usize>) =
                open.into_iter().partition(|&own| may_be_better(first, own));
            let each = |&own: &usize| {
                let ends = compared(first, own).map_or_else(String::new, |found| found.both_ends(first.figure.unit()));
                format!("{}{ends}", self.label(own))
            };
            for (settings, said) in [(at_best, "at best equal"), (open, "better or worse")] {
                let all: Vec<String> = settings.iter().map(each).collect();
                let be = match (said, all.len()) {
                    (_, 0) => continue,
                    ("better or worse", _) => "may be",
                    (_, 1) => "is",
                    _ => "are",
                };
                parts.push(format!("{} {be} {said}", some_of(&all, NAMED_MAX, "and")));
            }
        }
        // Where a part has a comma, parts need more than that.
        let between = if parts.len() > 1 && parts.iter().any(|part| part.contains(", but ")) { "; " } else { ", " };
        parts.join(between)
    }

    /// That the baseline starves a task, and what would not.
    fn starving_base(&self) -> (String, DecisionKind, usize) {
        let base = self.base();
        let can = |&own: &usize| self.can_be_set(own) && self.starves(base, own).is_some();
        let Some(best) = self.evidence.criteria.first().and_then(|first| best_of(first, self.others().filter(can)))
        else {
            return (String::new(), DecisionKind::Keep, base);
        };
        let task = self.starves(base, best).map_or("", |own| own.task.as_str());
        let percent = self.starves(base, best).map_or(0.0, |own| own.percent);
        let said = format!(
            "But {} starves {task}, which gets {} % of what the busiest task gets: set {} if {task} must make \
             progress.",
            self.label(base),
            significant(percent, 2),
            self.label(best)
        );
        (said, DecisionKind::Trade, best)
    }

    /// Settings that are better in another metric, and what is worse under settings that are equal.
    fn asides(&self, first: &Criterion, others: &[usize]) -> Vec<String> {
        let mut said = Vec::new();
        let differs = |verdict| move |own: usize| compared(first, own).is_some_and(|found| found.verdict == verdict);
        let (is_worse, is_better) = (differs(Verdict::Worse), differs(Verdict::Better));
        for &own in others.iter().filter(|&&own| !is_better(own)) {
            // What a user cannot set is no choice, but its costs show what it is.
            let gains = if self.can_be_set(own) { self.changes(own, Verdict::Better) } else { Vec::new() };
            let costs = self.changes(own, Verdict::Worse);
            let name = self.label(own);
            let starves = self.starves(own, self.base());
            match (gains.is_empty(), costs.is_empty(), starves) {
                (false, _, Some(starved)) => {
                    said.push(format!("A trade: {name} {}, but starves {}.", self.effects(&gains, own), starved.task));
                }
                // The sentence on the first metric says it already.
                (true, _, Some(_)) if is_worse(own) => {}
                (true, _, Some(starved)) => said.push(format!("{name} starves {}.", starved.task)),
                (false, false, None) if !is_worse(own) => {
                    let (gains, costs) = (self.effects(&gains, own), self.effects(&costs[..1], own));
                    said.push(format!("A trade: {name} {gains}, but {costs}."));
                }
                (false, _, None) => {
                    let gains = self.effects(&gains, own);
                    let worth = if is_worse(own) { ": set it only if that is worth the loss" } else { "" };
                    said.push(format!("{name} {gains}{worth}."));
                }
                (true, false, None) if !is_worse(own) => {
                    said.push(format!("{name} {}.", self.effects(&costs[..1], own)));
                }
                _ => {}
            }
        }
        said.truncate(ASIDES_MAX);
        said
    }

    fn better_served(&self, first: &Criterion) -> String {
        let Some(best) = best_of(first, self.evidence.better_served.iter().copied()) else { return String::new() };
        if compared(first, best).is_none_or(|own| own.verdict != Verdict::Better) {
            return String::new();
        }
        let costs = self.changes(best, Verdict::Worse);
        let costs = if costs.is_empty() { String::new() } else { format!(", but {}", self.effects(&costs, best)) };
        format!(
            "Only on a disk that iosched serves, {} is better still: it {}{costs}.",
            self.label(best),
            effect(first, best, self.base())
        )
    }

    fn below(&self) -> String {
        self.evidence.below.clone().unwrap_or_default()
    }

    fn spoiled(&self) -> String {
        if self.evidence.spoiled { "The first reservation may change this: read it.".to_owned() } else { String::new() }
    }

    fn only_served(&self) -> String {
        if self.served_only() {
            return "Linux has none of these settings today: they need a disk that iosched serves.".to_owned();
        }
        if self.evidence.served.contains(&self.base()) {
            return format!("{} needs a disk that iosched serves.", self.label(self.base()));
        }
        String::new()
    }

    /// By which metric, from how many runs, and which goal a user could give.
    fn judged(&self, first: &Criterion) -> String {
        let sure = format!("{} {} of each setting, 95 % confidence", self.evidence.runs, self.evidence.run_word);
        let Some(reason) = self.evidence.reason else {
            return format!("Judged by {}: {sure}.", first.name);
        };
        let goal =
            self.evidence.goal.as_ref().map_or_else(String::new, |(goal, task)| {
                format!(" If one {task} matters most, name it: --goal {goal}.")
            });
        format!("Judged by {}, {reason}: {sure}.{goal}", first.name)
    }
}

fn compared(criterion: &Criterion, setting: usize) -> Option<Comparison> {
    criterion.settings.get(setting)?.as_ref()?.1
}

fn is_equal_or_open(criterion: &Criterion, setting: usize) -> bool {
    compared(criterion, setting).is_none_or(|own| !own.verdict.differs())
}

/// The setting that improves a metric most.
fn best_of(criterion: &Criterion, settings: impl Iterator<Item = usize>) -> Option<usize> {
    let sign = if criterion.figure.direction() == Direction::Higher { -1.0 } else { 1.0 };
    let loss = |setting: usize| compared(criterion, setting).map_or(0.0, |own| own.difference * sign);
    settings.min_by(|&a, &b| loss(a).total_cmp(&loss(b)).then(a.cmp(&b)))
}

fn may_be_better(criterion: &Criterion, setting: usize) -> bool {
    compared(criterion, setting).is_some_and(|own| own.may_be_better(criterion.figure.direction()))
}

fn may_be_worse(criterion: &Criterion, setting: usize) -> bool {
    compared(criterion, setting).is_some_and(|own| own.may_be_worse(criterion.figure.direction()))
}
