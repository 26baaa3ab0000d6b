//! Sentences about settings that are not chosen: their differences, gains and costs.

use super::super::Criterion;
use super::super::words::seen;
use super::{
    ASIDES_MAX, NAMED_MAX, NOTABLE_GAIN, Rules, TRADE, advantage, all_of, best_of, compared, magnitude, may_be_better,
};
use crate::compare::{RUNS_FEW, Verdict};
use crate::words::some_of;

impl Rules<'_> {
    /// Returns a setting for which the user must choose between this setting and the setting `to`,
    /// and the metric that it improves. The setting must help a job or process much more than `to`
    /// does. This gain must also be much larger than the loss in the first metric.
    pub(super) fn trade(&self, first: &Criterion, to: usize, others: &[usize]) -> Option<(usize, &Criterion)> {
        // If the user gave a goal, the user has already chosen the metric that decides.
        self.evidence.reason.as_ref()?;
        let gain = |&setting: &usize| {
            let gains = self.changes(setting, Verdict::Better).into_iter().filter(|gain| gain.figure.is_of_part());
            let gains = gains.map(|gain| (gain, magnitude(gain, setting) - advantage(gain, to).max(0.0)));
            let (gain, gained) = gains.max_by(|a, b| a.1.total_cmp(&b.1))?;
            let lost = advantage(first, to) - advantage(first, setting);
            let is_much = gained >= TRADE.ln() && gained >= 2.0 * lost;
            is_much.then_some((setting, gain, gained))
        };
        let is_open = |setting: &&usize| self.can_be_set(**setting) && self.starves(**setting, self.base()).is_none();
        let all = others.iter().filter(is_open).filter_map(gain);
        all.max_by(|a, b| a.2.total_cmp(&b.2)).map(|(setting, gain, _)| (setting, gain))
    }

    /// Returns a sentence about a setting that equals the baseline in the first metric, but gains
    /// notably more than the chosen setting `best` in other metrics. It is not chosen because it
    /// also has costs. The setting `trade` is left out, because the decision already describes it.
    pub(super) fn larger_gain(
        &self,
        best: usize,
        first: &Criterion,
        others: &[usize],
        trade: Option<usize>,
    ) -> Option<String> {
        // A goal of the user decides alone.
        self.evidence.reason.as_ref()?;
        let is_open = |setting: &&usize| {
            let is_equal = compared(first, **setting).is_some_and(|found| found.verdict == Verdict::Equal);
            let is_usable = self.can_be_set(**setting) && self.broken(**setting).is_empty();
            is_equal && is_usable && self.starves(**setting, self.base()).is_none() && Some(**setting) != trade
        };
        let more = |gain: &Criterion, setting| magnitude(gain, setting) - advantage(gain, best).max(0.0);
        let gains = |&setting: &usize| {
            let mut gains = self.changes(setting, Verdict::Better);
            gains.retain(|gain| more(gain, setting) >= NOTABLE_GAIN.ln());
            let most = gains.iter().map(|gain| more(gain, setting)).reduce(f64::max)?;
            Some((setting, gains, most))
        };
        let (setting, gains, _) = others.iter().filter(is_open).filter_map(gains).max_by(|a, b| a.2.total_cmp(&b.2))?;
        let costs = self.but(&self.changes(setting, Verdict::Worse), setting);
        Some(format!("{} gains more: it {}.{costs}", self.name(setting), self.effects(&gains, setting)))
    }

    /// Returns a sentence about a setting that is worse in the first metric: the one that improves
    /// a job or process most. The first metric alone would hide this gain. The setting `trade` is
    /// left out, because the decision already describes it.
    pub(super) fn hidden_gain(&self, first: &Criterion, others: &[usize], trade: Option<usize>) -> Option<String> {
        // A goal of the user decides alone.
        self.evidence.reason.as_ref()?;
        let is_open = |setting: &&usize| {
            let is_worse = compared(first, **setting).is_some_and(|found| found.verdict == Verdict::Worse);
            is_worse && self.can_be_set(**setting) && Some(**setting) != trade
        };
        let gain = |&setting: &usize| {
            let gains = self.changes(setting, Verdict::Better).into_iter().filter(|gain| gain.figure.is_of_part());
            let gain = gains.max_by(|a, b| magnitude(a, setting).total_cmp(&magnitude(b, setting)))?;
            Some((setting, gain, magnitude(gain, setting)))
        };
        let gains = others.iter().filter(is_open).filter_map(gain).filter(|(.., size)| *size >= TRADE.ln());
        let (setting, gain, _) = gains.max_by(|a, b| a.2.total_cmp(&b.2))?;
        Some(format!("But {} {}.", self.name(setting), self.effect(gain, setting)))
    }

    /// Describes settings against the baseline in the first metric, in sentences: "`none` and
    /// `kyber` are equal within 5 % in finish.", "`bfq` takes 19 % longer (9 to 29 %)."
    pub(super) fn described(&self, first: &Criterion, settings: &[usize]) -> Vec<String> {
        let of = |wanted: Verdict| -> Vec<usize> {
            let is_so = |&number: &usize| compared(first, number).is_some_and(|found| found.verdict == wanted);
            let mut found: Vec<usize> = settings.iter().copied().filter(is_so).collect();
            if wanted.differs() {
                found.sort_by(|&a, &b| magnitude(first, a).total_cmp(&magnitude(first, b)));
            }
            found
        };
        let mut sentences = Vec::new();
        let equal: Vec<String> = of(Verdict::Equal).into_iter().map(|number| self.name_and_place(number)).collect();
        if !equal.is_empty() {
            let are = if equal.len() == 1 { "is" } else { "are" };
            let within = self.evidence.equal_within_percent;
            let equal = some_of(&equal, NAMED_MAX, "and");
            sentences.push(format!("{equal} {are} equal within {within} % in {}.", first.phrase));
        }
        let differing = [of(Verdict::Better), of(Verdict::Worse)].concat();
        sentences.extend(differing.iter().take(NAMED_MAX - 1).map(|&number| self.differing(first, number)));
        if let [.., last] = differing.get(NAMED_MAX - 1..).unwrap_or_default() {
            sentences.push(self.more_differing(first, differing.len() + 1 - NAMED_MAX, *last));
        }
        let (hidden, open): (Vec<usize>, Vec<usize>) = of(Verdict::CannotTell)
            .into_iter()
            .partition(|&number| compared(first, number).is_some_and(|comparison| comparison.seen.is_some()));
        for &number in hidden.iter().take(NAMED_MAX - 1) {
            if let Some(seen) = compared(first, number).as_ref().and_then(seen) {
                sentences.push(format!(
                    "{} was {seen}, but the model is too inexact to prove this difference.",
                    self.name(number)
                ));
            }
        }
        if self.evidence.runs < RUNS_FEW && !open.is_empty() {
            let open: Vec<String> = open.into_iter().map(|number| self.name_and_place(number)).collect();
            sentences.push(format!("{} may be better or worse.", some_of(&open, NAMED_MAX, "and")));
            return sentences;
        }
        let (open, at_best): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|&number| may_be_better(first, number));
        let each = |&number: &usize| {
            let ends = compared(first, number).map_or_else(String::new, |found| found.both_ends(first.figure.unit()));
            if self.can_be_set(number) || ends.is_empty() {
                return format!("{}{ends}", self.name_and_place(number));
            }
            // One pair of brackets holds the place and the range.
            format!(
                "{}{}",
                self.name(number),
                ends.replacen(" (", " (not in Linux, only on disks that iosched serves; ", 1)
            )
        };
        for (settings, be) in [(at_best, "equal or worse"), (open, "better or worse")] {
            let all: Vec<String> = settings.iter().map(each).collect();
            if !all.is_empty() {
                sentences.push(format!("{} may be {be}.", some_of(&all, NAMED_MAX, "and")));
            }
        }
        sentences
    }

    /// Describes the other settings that differ from the baseline, which the text does not name.
    /// `last` is the setting among them that differs most.
    fn more_differing(&self, first: &Criterion, more: usize, last: usize) -> String {
        if more == 1 {
            return self.differing(first, last);
        }
        let is_worse = compared(first, last).is_some_and(|found| found.verdict == Verdict::Worse);
        let (are, most) = if is_worse { ("worse", "worst") } else { ("better", "best") };
        format!("{more} more settings are {are}. The {most}: {}", self.differing(first, last))
    }

    /// Describes a setting that differs from the baseline, in a sentence.
    fn differing(&self, first: &Criterion, setting: usize) -> String {
        let is_better = compared(first, setting).is_some_and(|found| found.verdict == Verdict::Better);
        let mut sentence = format!("{} {}", self.name_and_place(setting), self.effect(first, setting));
        if let Some(starved) = self.starves(setting, self.base()) {
            sentence += &format!("{} starves {}", if is_better { ", but" } else { " and" }, starved);
        }
        let broken = self.broken(setting);
        if !broken.is_empty() {
            sentence += &format!(", but breaks {}", all_of(broken));
        }
        sentence + "."
    }

    /// Returns the name of a setting, with a remark if the scheduler is not part of Linux.
    fn name_and_place(&self, setting: usize) -> String {
        let place = match (self.can_be_set(setting), self.evidence.out_of_tree.contains(&setting)) {
            (true, _) => "",
            (false, false) => " (not in Linux, only on disks that iosched serves)",
            (false, true) => " (only on disks that iosched serves, and in kernels that have this scheduler)",
        };
        self.name(setting) + place
    }

    /// Returns sentences about settings that are better in another metric, and about the costs of
    /// equal settings. Choices come first. The setting `trade` is left out, because the first
    /// sentence of the decision already says when to use it.
    pub(super) fn asides(&self, first: &Criterion, others: &[usize], trade: Option<usize>) -> Vec<String> {
        let (mut choices, mut sentences) = (Vec::new(), Vec::new());
        let differs =
            |verdict| move |number: usize| compared(first, number).is_some_and(|found| found.verdict == verdict);
        let (is_worse, is_better) = (differs(Verdict::Worse), differs(Verdict::Better));
        for &number in others.iter().filter(|&&number| !is_better(number)) {
            // A setting that a user cannot apply is not a choice. Its costs are still reported.
            let gains = if self.can_be_set(number) { self.changes(number, Verdict::Better) } else { Vec::new() };
            let mut costs = self.changes(number, Verdict::Worse);
            if is_worse(number) {
                costs.insert(0, first);
            }
            let name = self.name(number);
            let gained = self.effects(&gains, number);
            match (gains.first(), costs.first(), self.starves(number, self.base())) {
                (Some(_), _, Some(starved)) => {
                    sentences.push(format!("{name} {gained}, but starves {}.", starved));
                }
                // The sentence about the first metric already reports this setting.
                (None, _, _) if is_worse(number) => {}
                (None, _, Some(starved)) => sentences.push(format!("{name} starves {}.", starved)),
                (Some(_), Some(_), None) if trade == Some(number) => {
                    // Another sentence reports the loss in the first metric.
                    let others = &costs[usize::from(is_worse(number))..];
                    choices.push(format!("{name} {gained}.{}", self.but(others, number)));
                }
                (Some(gain), Some(cost), None) => {
                    let only = format!("Set {name} only if {} matters more than {}.", gain.phrase, cost.phrase);
                    // Another sentence already reports the loss in the first metric, but does not
                    // say which job loses.
                    let paid = match costs[1..].iter().find(|cost| cost.figure.is_of_part()) {
                        _ if !is_worse(number) => self.but(&costs[..1], number),
                        Some(part) => self.but(&[*part], number),
                        None => String::new(),
                    };
                    choices.push(format!("{only} It {gained}.{paid}"));
                }
                (Some(_), None, None) => sentences.push(format!("{name} {gained}.")),
                (None, Some(_), None) => sentences.push(format!("{name} {}.", self.effects(&costs[..1], number))),
                (None, None, None) => {}
            }
        }
        choices.extend(sentences);
        choices.truncate(ASIDES_MAX);
        choices
    }

    pub(super) fn better_served(&self, first: &Criterion) -> String {
        let Some(best) = best_of(first, self.evidence.better_served.iter().copied()) else { return String::new() };
        if compared(first, best).is_none_or(|comparison| comparison.verdict != Verdict::Better) {
            return String::new();
        }
        let costs = self.but(&self.changes(best, Verdict::Worse), best);
        format!(
            "{} is even better, but only on {}: it {}.{costs}",
            self.name(best),
            self.place(best),
            self.effect(first, best)
        )
    }
}
