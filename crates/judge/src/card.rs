//! The report card, and its form as Markdown.

use std::fmt::Write as _;

use iosched_lab::Verdict;
use serde::Serialize;

use crate::comparisons::{Cell, Compared, Difference, LINUX};
use crate::cost::Cost;
use crate::rules::RulesOutcome;
use crate::shares::{self, RIVALRIES, Share};
use crate::waits::LongestWait;
use crate::workloads::{DEVICES, WORKLOADS};

/// The parts of a report card that concern one scheduler alone. If the judgement ended before a
/// part, the part is empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportCard {
    /// Name of the scheduler.
    pub scheduler: &'static str,
    /// Description of the scheduler.
    pub about: &'static str,
    /// Shares of the disk when two sides compete.
    pub shares: Vec<Share>,
    /// Longest waits that the search found.
    pub waits: Vec<LongestWait>,
    /// Result of random operations. `None` if the judgement ended before this part.
    pub rules: Option<RulesOutcome>,
    /// Instructions per request.
    pub cost: Vec<Cost>,
    /// Reason why the instructions could not be counted. `None` if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_failure: Option<String>,
}

impl ReportCard {
    pub(crate) const fn new(scheduler: &'static str, about: &'static str) -> Self {
        Self {
            scheduler,
            about,
            shares: Vec::new(),
            waits: Vec::new(),
            rules: None,
            cost: Vec::new(),
            cost_failure: None,
        }
    }

    /// Returns whether the scheduler broke a rule.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.violation.is_some())
    }
}

/// All report cards of a judgement, and the comparisons that the cards share.
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
    /// Returns whether any scheduler broke a rule.
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
        if let Some(rules) = &card.rules {
            rules_line(rules, &mut text);
        }
        self.comparisons(card.scheduler, &mut text);
        shares_table(&card.shares, &mut text);
        waits_table(&card.waits, &mut text);
        cost_table(&card.cost, &mut text);
        if let Some(failure) = card.cost_failure.as_deref().and_then(|text| text.lines().next()) {
            let _ = writeln!(text, "\nInstructions: the count failed. {failure}");
        }
        text
    }

    /// Returns the cell of a scheduler in each comparison.
    fn cells<'a>(&'a self, scheduler: &'a str) -> impl Iterator<Item = (&'a Compared, &'a Cell)> {
        self.compared.iter().filter_map(|compared| Some((compared, compared.cell(scheduler)?)))
    }

    /// Writes the number of each verdict, and a table of differences from each of Linux'
    /// schedulers.
    fn comparisons(&self, scheduler: &str, text: &mut String) {
        if self.cells(scheduler).next().is_none() {
            return;
        }
        text.push_str("\n| compared with | better | worse | equal | cannot tell |\n|---|---|---|---|---|\n");
        verdicts_row("Linux' default", self.cells(scheduler).filter_map(|(_, cell)| cell.verdict), text);
        let others = || LINUX.into_iter().filter(|&with| with != scheduler);
        for with in others() {
            let differences = self.cells(scheduler).filter_map(|(_, cell)| cell.compared_with(with));
            verdicts_row(with, differences.map(|difference| difference.verdict), text);
        }
        for with in others() {
            self.differences(scheduler, with, text);
        }
    }

    /// Writes the differences from one of Linux' schedulers, for each workload and device.
    fn differences(&self, scheduler: &str, with: &str, text: &mut String) {
        let header = DEVICES.iter().map(|&device| {
            let found = self.compared.iter().find(|compared| compared.device == device);
            let mark = if found.is_some_and(|compared| compared.baseline == with) { " (default)" } else { "" };
            format!(" {device}{mark} |")
        });
        let _ = write!(text, "\n| compared with {with} | metric |{}\n|---|---|", header.collect::<String>());
        text.push_str(&"---|".repeat(DEVICES.len()));
        text.push('\n');
        for workload in &WORKLOADS {
            let _ = write!(text, "| {} | {} |", workload.name, workload.goal);
            for device in DEVICES {
                let is_here = |compared: &Compared| compared.device == device && compared.workload == workload.name;
                let cell = self.cells(scheduler).find(|(compared, _)| is_here(compared));
                let found = cell.and_then(|(_, cell)| cell.compared_with(with));
                let _ = write!(text, " {} |", found.map(difference).unwrap_or_default());
            }
            text.push('\n');
        }
    }
}

/// Writes a row with the number of each verdict.
fn verdicts_row(with: &str, verdicts: impl Iterator<Item = Verdict>, text: &mut String) {
    let mut counts = [0; 4];
    for verdict in verdicts {
        counts[match verdict {
            Verdict::Better | Verdict::More => 0,
            Verdict::Worse | Verdict::Less => 1,
            Verdict::Equal => 2,
            Verdict::CannotTell => 3,
        }] += 1;
    }
    let [better, worse, equal, undecided] = counts;
    let _ = writeln!(text, "| {with} | {better} | {worse} | {equal} | {undecided} |");
}

/// Makes the first letter of a description a capital, so that it can begin a sentence.
fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Formats a difference, such as `better, -58 %`.
fn difference(&Difference { verdict, percent, .. }: &Difference) -> String {
    let word = match verdict {
        Verdict::Equal => return "equal".to_owned(),
        Verdict::CannotTell => "cannot tell",
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
        let longest = if wait.grows { format!("still growing at {longest}") } else { longest };
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

fn rules_line(rules: &RulesOutcome, text: &mut String) {
    let _ = match &rules.violation {
        None => writeln!(
            text,
            "\nRules: no rule was broken in {} random operations with {} requests.",
            rules.operations, rules.requests
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
            (Verdict::Better, Some(-58.4), "better, -58 %"),
            (Verdict::Worse, Some(340.0), "worse, 4.4 times"),
            (Verdict::Equal, Some(1.0), "equal"),
            (Verdict::CannotTell, Some(7.0), "cannot tell, +7 %"),
        ];
        for (verdict, percent, shown) in cases {
            assert_eq!(difference(&Difference { with: "none", percent, verdict }), shown);
        }
    }

    #[test]
    fn a_card_compares_with_every_linux_scheduler() {
        let verdicts = [Verdict::Better, Verdict::Equal, Verdict::Worse, Verdict::CannotTell];
        let differences = LINUX.into_iter().zip(verdicts);
        let differences = differences.map(|(with, verdict)| Difference { with, percent: Some(-9.0), verdict });
        let cell = Cell {
            scheduler: "sedf".to_owned(),
            mean: 1.0,
            percent: Some(-9.0),
            verdict: Some(Verdict::Equal),
            differences: differences.collect(),
        };
        let (workload, device) = (&WORKLOADS[0], DEVICES[0]);
        let compared = Compared {
            workload: workload.name,
            goal: workload.goal,
            device,
            baseline: "mq-deadline",
            cells: vec![cell],
        };
        let cards = vec![ReportCard::new("sedf", "shortest expected deadline first")];
        let text = Judgement { compared: vec![compared], cards, complete: true }.markdown();
        for row in ["Linux' default | 0 | 0 | 1 | 0 |", "none | 1 | 0 | 0 | 0 |", "kyber | 0 | 1 | 0 | 0 |"] {
            assert!(text.contains(&format!("\n| {row}\n")), "{row}: {text}");
        }
        for (with, shown) in LINUX.into_iter().zip(["better, -9 %", "equal", "worse, -9 %", "cannot tell, -9 %"]) {
            let (_, table) = text.split_once(&format!("| compared with {with} | metric | {device}")).unwrap();
            assert_eq!(table.starts_with(" (default) |"), with == "mq-deadline", "{table}");
            assert!(table.contains(&format!("| {} | {} | {shown} |", workload.name, workload.goal)), "{table}");
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
            rules: Some(RulesOutcome { operations: 10, requests: 5, violation: Some("seed 3: Progress".to_owned()) }),
            ..ReportCard::new("sedf", "shortest expected deadline first")
        };
        let judgement = Judgement { compared: Vec::new(), cards: vec![card], complete: true };
        let text = judgement.markdown();
        assert!(judgement.is_broken());
        assert!(text.starts_with("## sedf\n\nShortest expected deadline first.\n"), "{text}");
        assert!(text.contains("| read | still growing at 19.0 s | 1 x sequential reader |"), "{text}");
        assert!(text.contains("**a rule was broken**: seed 3: Progress"), "{text}");
    }
}
