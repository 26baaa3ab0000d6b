//! The first and the last lines of the output: the decision, and the doubts in the order of their
//! importance.

use std::fmt::Display;
use std::fmt::Write as _;

use iosched_lab::Decision;

use super::grid::Look;

/// Largest number of doubts without --details.
const DOUBTS: usize = 3;

/// Returns the decision as the first lines: which setting to use with its commands, the reasons,
/// notes on the input, and how iosched judged.
pub(super) fn decision(decision: &Decision, commands: &[String], input: Option<&str>, look: Look) -> String {
    let (first, rest) = decision.sentences.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut text = look.wrap(first, "") + "\n";
    commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
    rest.iter().for_each(|sentence| text.push_str(&(look.wrap(&format!("- {sentence}"), "  ") + "\n")));
    for part in [input, decision.judged.as_deref()].into_iter().flatten() {
        text.push_str(&(look.wrap(part, "") + "\n"));
    }
    text + "\n"
}

/// Wraps each line as a paragraph, with an empty line at the end.
pub(super) fn paragraphs(lines: &[String], look: Look) -> String {
    let lines = lines.iter().filter(|line| !line.is_empty());
    lines.map(|line| look.wrap(line, "") + "\n").collect::<String>() + "\n"
}

/// Returns the most important doubts with their remedies, or all doubts with --details. Returns an
/// empty text if there are no doubts.
pub(super) fn doubts(doubts: &[impl Display], look: Look) -> String {
    let mut text = String::new();
    if doubts.is_empty() {
        return text;
    }
    let shown = if look.details { doubts.len() } else { DOUBTS };
    text.push_str("\ndoubts, the most important first:\n");
    for doubt in doubts.iter().take(shown) {
        let _ = writeln!(text, "{}", look.wrap(&format!("  - {doubt}"), "    "));
    }
    if doubts.len() > shown {
        let _ = writeln!(text, "  and {} more: --details", doubts.len() - shown);
    }
    text
}
