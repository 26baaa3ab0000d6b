//! The first and the last lines of every page: the decision, and the reservations in order of weight.

use std::fmt::Display;
use std::fmt::Write as _;

use iosched_lab::Decision;

use super::grid::Look;

/// Reservations that are told without --details, at most.
const RESERVATIONS: usize = 3;

/// The decision as the first lines, and how it was judged below it.
pub(super) fn decision(decision: &Decision, look: Look) -> String {
    let mut lines = vec![decision.sentences.join(" ")];
    lines.extend(decision.judged.clone());
    paragraphs(&lines, look)
}

/// Each on a line that is broken where it must be, and an empty line below them.
pub(super) fn paragraphs(lines: &[String], look: Look) -> String {
    let lines = lines.iter().filter(|line| !line.is_empty());
    lines.map(|line| look.wrap(line, "") + "\n").collect::<String>() + "\n"
}

/// The weightiest reservations, each with its remedy; all of them with --details. Nothing of none.
pub(super) fn reservations(doubts: &[impl Display], look: Look) -> String {
    let mut text = String::new();
    if doubts.is_empty() {
        return text;
    }
    let told = if look.details { doubts.len() } else { RESERVATIONS };
    text.push_str("\nreservations, the weightiest first:\n");
    for doubt in doubts.iter().take(told) {
        let _ = writeln!(text, "{}", look.wrap(&format!("  - {doubt}"), "    "));
    }
    if doubts.len() > told {
        let _ = writeln!(text, "  and {} more: --details", doubts.len() - told);
    }
    text
}
