//! The report card, and its form as Markdown.

use std::fmt::Write as _;

use iosched_lab::Verdict;
use serde::Serialize;

use crate::comparisons::Compared;
use crate::cost::Cost;
use crate::rules::Kept;
use crate::shares::{self, RIVALRIES, Share};
use crate::waits::LongestWait;
use crate::workloads::{DEVICES, WORKLOADS};

/// The parts of a report card that concern one scheduler alone. A part that was not reached is
/// empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportCard {
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Description of the scheduler.
    pub about: &'static str,
    /// Shares where two sides compete.
    pub shares: Vec<Share>,
    /// Longest waits that the search found.
    pub waits: Vec<LongestWait>,
    /// Random operations; `None` if they were not reached.
    pub rules: Option<Kept>,
    /// Instructions per request.
    pub cost: Vec<Cost>,
}

impl ReportCard {
    pub(crate) const fn new(scheduler: &'static str, about: &'static str) -> Self {
        Self { scheduler, about, shares: Vec::new(), waits: Vec::new(), rules: None, cost: Vec::new() }
    }

    /// Whether the scheduler broke a rule.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.rules.as_ref().is_some_and(|kept| kept.violation.is_some())
    }
}

/// All report cards of a judgement, and the comparisons that they share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The comparisons, by workload and device.
    pub compared: Vec<Compared>,
    /// A card for each judged scheduler.
    pub cards: Vec<ReportCard>,
    /// Whether all parts are complete. If false, the judgement was interrupted.
    pub complete: bool,
}

impl Judgement {
    /// Whether any scheduler broke a rule.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.cards.iter().any(ReportCard::is_broken)
    }

    /// Returns the cards as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let cards: Vec<_> = self.cards.iter().map(|card| self.card(card)).collect();
        cards.join("\n")
    }

    fn card(&self, card: &ReportCard) -> String {
        let mut text = format!("## {}\n\n{}.\n", card.scheduler, sentence(card.about));
        if let Some(kept) = &card.rules {
            rules_line(kept, &mut text);
        }
        self.comparisons(card.scheduler, &mut text);
        shares_table(&card.shares, &mut text);
        waits_table(&card.waits, &mut text);
        cost_table(&card.cost, &mut text);
        text
    }

    /// Returns the number of comparisons with each verdict, in a sentence.
    fn summary(&self, scheduler: &str) -> String {
        let verdicts = self.compared.iter().filter_map(|compared| compared.cell(scheduler)?.verdict);
        let verdicts: Vec<Verdict> = verdicts.collect();
        let count = |wanted: Verdict| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
        format!(
            "In {} comparisons with Linux' default scheduler: {} better, {} worse, {} equal, {} undecided.",
            verdicts.len(),
            count(Verdict::Better),
            count(Verdict::Worse),
            count(Verdict::Equal),
            count(Verdict::CannotTell)
        )
    }

    /// Writes the difference from Linux' default scheduler for each workload and device.
    fn comparisons(&self, scheduler: &str, text: &mut String) {
        if self.compared.iter().all(|compared| compared.cell(scheduler).is_none()) {
            return;
        }
        let _ = writeln!(text, "\n{}", self.summary(scheduler));
        let cells = |device| self.compared.iter().filter(move |compared| compared.device == device);
        let header = DEVICES.iter().map(|&device| {
            let baseline = cells(device).next().map_or("", |compared| compared.baseline);
            format!(" {device} (default {baseline}) |")
        });
        let _ = write!(text, "\n| workload | metric |{}\n|---|---|", header.collect::<String>());
        text.push_str(&"---|".repeat(DEVICES.len()));
        text.push('\n');
        for workload in &WORKLOADS {
            let _ = write!(text, "| {} | {} |", workload.name, workload.goal);
            for device in DEVICES {
                let found = cells(device).find(|compared| compared.workload == workload.name);
                let cell = found.and_then(|compared| compared.cell(scheduler));
                let shown = cell.map_or_else(String::new, |cell| difference(cell.verdict, cell.percent));
                let _ = write!(text, " {shown} |");
            }
            text.push('\n');
        }
    }
}

/// Returns a description as the beginning of a sentence.
fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns the difference from the default in words: `better, -58 %`.
fn difference(verdict: Option<Verdict>, percent: Option<f64>) -> String {
    let Some(verdict) = verdict else { return "the default".to_owned() };
    let word = match verdict {
        Verdict::Equal => return "equal".to_owned(),
        Verdict::CannotTell => "undecided",
        Verdict::Better | Verdict::More => "better",
        Verdict::Worse | Verdict::Less => "worse",
    };
    match percent {
        Some(percent) if percent >= 200.0 => format!("{word}, {:.1} times", 1.0 + percent / 100.0),
        Some(percent) => format!("{word}, {percent:+.0} %"),
        None => word.to_owned(),
    }
}

fn shares_table(all: &[Share], text: &mut String) {
    if all.is_empty() {
        return;
    }
    let header: String = shares::DEVICES.iter().map(|device| format!(" {device} |")).collect();
    let rule = "---|".repeat(shares::DEVICES.len());
    let _ = write!(text, "\n| share of the first process or cgroup |{header}\n|---|{rule}\n");
    for rivalry in &RIVALRIES {
        let of_rivalry = all.iter().filter(|share| share.rivalry == rivalry.about);
        let cells: String = of_rivalry.map(|share| format!(" {:.0} % |", share.first * 100.0)).collect();
        let _ = writeln!(text, "| {} |{cells}", rivalry.about);
    }
}

fn waits_table(all: &[LongestWait], text: &mut String) {
    if all.is_empty() {
        return;
    }
    text.push_str("\n| device | victim | longest wait found | adversaries |\n|---|---|---|---|\n");
    for wait in all {
        let longest = time(wait.wait_ns);
        let longest = if wait.grows { format!("no bound found ({longest})") } else { longest };
        let _ = writeln!(text, "| {} | {} | {longest} | {} |", wait.device, wait.op, wait.adversaries);
    }
}

fn time(ns: u64) -> String {
    match ns as f64 / 1e6 {
        ms if ms >= 1_000.0 => format!("{:.1} s", ms / 1_000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

fn rules_line(kept: &Kept, text: &mut String) {
    let _ = match &kept.violation {
        None => writeln!(
            text,
            "\nRules: no rule was broken in {} random operations with {} requests.",
            kept.operations, kept.requests
        ),
        Some(violation) => writeln!(text, "\nRules: **a rule was broken**: {violation}"),
    };
}

fn cost_table(all: &[Cost], text: &mut String) {
    if all.is_empty() {
        return;
    }
    text.push_str("\n| load | instructions per request: elevator | whole queue |\n|---|---|---|\n");
    for cost in all {
        let _ = writeln!(text, "| {} | {:.0} | {:.0} |", cost.load, cost.elevator, cost.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_shown_with_their_verdict() {
        let cases = [
            (None, None, "the default"),
            (Some(Verdict::Better), Some(-58.4), "better, -58 %"),
            (Some(Verdict::Worse), Some(340.0), "worse, 4.4 times"),
            (Some(Verdict::Equal), Some(1.0), "equal"),
            (Some(Verdict::CannotTell), Some(7.0), "undecided, +7 %"),
        ];
        for (verdict, percent, shown) in cases {
            assert_eq!(difference(verdict, percent), shown);
        }
    }

    #[test]
    fn a_broken_rule_and_an_unbounded_wait_are_shown() {
        let card = ReportCard {
            waits: vec![LongestWait {
                device: "sata-7200",
                op: "read",
                wait_ns: 19_000_000_000,
                grows: true,
                tried: 64,
                adversaries: "1 x sequential reader".to_owned(),
            }],
            rules: Some(Kept { operations: 10, requests: 5, violation: Some("seed 3: Progress".to_owned()) }),
            ..ReportCard::new("sedf", "shortest expected deadline first")
        };
        let judgement = Judgement { compared: Vec::new(), cards: vec![card], complete: true };
        let text = judgement.markdown();
        assert!(judgement.is_broken());
        assert!(text.starts_with("## sedf\n\nShortest expected deadline first.\n"), "{text}");
        assert!(text.contains("| read | no bound found (19.0 s) | 1 x sequential reader |"), "{text}");
        assert!(text.contains("**a rule was broken**: seed 3: Progress"), "{text}");
    }
}
