//! The end of every page in three lines: what to set, how sure that is, and what spoils it most.

use std::fmt::Display;
use std::fmt::Write as _;

use super::grid::Look;

/// The rest is told with --details.
pub(super) fn three_lines(answer: &str, sure: &str, doubts: &[impl Display], look: Look) -> String {
    let more = doubts.len().saturating_sub(1);
    let doubtful = match doubts.first() {
        None => "nothing was found".to_owned(),
        Some(first) if more > 0 && !look.details => format!("{first} (and {more} more: --details)"),
        Some(first) => first.to_string(),
    };
    let mut text = String::new();
    for (label, said) in [("answer:", answer), ("how sure:", sure), ("doubtful:", &doubtful)] {
        let _ = writeln!(text, "{}", look.wrap(&format!("{label:11}{said}"), "           "));
    }
    text
}

/// All doubts, each with its remedy; nothing of none, and nothing if only the answer is wanted.
pub(super) fn doubts(title: &str, doubts: &[impl Display], look: Look) -> String {
    let mut text = String::new();
    if doubts.is_empty() || !look.details {
        return text;
    }
    let _ = writeln!(text, "\n{title}");
    for doubt in doubts {
        let _ = writeln!(text, "{}", look.wrap(&format!("  - {doubt}"), "    "));
    }
    text
}
