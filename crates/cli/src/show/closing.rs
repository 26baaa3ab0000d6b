//! The first and the last lines of every page: the decision, and the reservations in order of weight.

use std::fmt::Display;
use std::fmt::Write as _;

use iosched_advise::tune::commands_explained;
use iosched_lab::{Decision, DecisionKind, Header};

use super::grid::Look;

/// Reservations that are told without --details, at most.
const RESERVATIONS: usize = 3;

/// The decision as the first lines: what to do with the commands for it, the reasons, what is to be known of the input,
/// and how it was judged.
pub(super) fn decision(decision: &Decision, commands: &[String], input: Option<&str>, look: Look) -> String {
    let (first, rest) = decision.sentences.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut text = look.wrap(first, "") + "\n";
    commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    rest.iter().for_each(|own| text.push_str(&(look.wrap(&format!("- {own}"), "  ") + "\n")));
    for part in [input, decision.judged.as_deref()].into_iter().flatten() {
        text.push_str(&(look.wrap(part, "") + "\n"));
    }
    text + "\n"
}

/// The commands that set what a decision says, where it says that something is to be set.
pub(super) fn to_set(decision: &Decision, header: &Header) -> Vec<String> {
    let is_set = matches!(decision.kind, DecisionKind::Change | DecisionKind::Trade);
    let setting = decision.setting.filter(|&own| is_set && own != header.baseline);
    setting.map_or_else(Vec::new, |own| commands_explained(&header.settings[own].setting))
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
