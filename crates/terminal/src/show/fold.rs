//! Text that fits a terminal. The rest of a long line continues below the last column of the line.

use super::Look;
use crate::output;

/// Least number of columns for the rest of a line.
const REST_MIN: usize = 24;

/// Prints text. On a terminal, folds lines at spaces so that they fit its width.
pub fn page(text: &str) -> anyhow::Result<()> {
    output::print(&fold(text, Look::of_standard_output().width))
}

/// Prints a JSON document without a change, or a text like [`page`].
pub fn answer(text: &str, is_json: bool) -> anyhow::Result<()> {
    if is_json { output::print(text) } else { page(text) }
}

fn fold(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| fold_line(line, width)).collect()
}

fn fold_line(line: &str, width: usize) -> String {
    let chars: Vec<char> = line.trim_end().chars().collect();
    if chars.len() <= width {
        return line.to_owned();
    }
    let indent = hanging_indent(&chars, width);
    let (mut folded, mut rest, mut left) = (String::new(), &chars[..], width);
    while rest.len() > left {
        let taken = rest.len().min(left + 1);
        // Folds at the last space that fits. Never splits the first columns, or a word that is too
        // long.
        let first = if folded.is_empty() { indent + 1 } else { 1 };
        let blank = |at: &usize| rest[*at] == ' ';
        let Some(at) = (first..taken).rev().find(blank).or_else(|| (taken..rest.len()).find(blank)) else { break };
        folded.extend(&rest[..at]);
        folded.truncate(folded.trim_end().len());
        folded.push('\n');
        folded.extend(std::iter::repeat_n(' ', indent));
        let next = rest[at..].iter().position(|c| *c != ' ').unwrap_or(0);
        rest = &rest[at + next..];
        left = width - indent;
    }
    folded.extend(rest);
    folded + "\n"
}

/// Returns the start of the last column that leaves enough room for words. If no column does,
/// returns a position just after the start of the line.
fn hanging_indent(line: &[char], width: usize) -> usize {
    let begins = |at: &usize| line[*at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ';
    let column = (2..line.len().min(width.saturating_sub(REST_MIN))).rev().find(begins);
    let start = line.iter().position(|c| *c != ' ').unwrap_or(0);
    column.filter(|at| *at > start).unwrap_or(start + 2).min(width / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_indented_to_their_last_column() {
        let table = "name      what\nnoop      first come, first served: for devices that schedule\n";
        let folded = "name      what\nnoop      first come, first served:\n          for devices that schedule\n";
        assert_eq!(fold(table, Some(38)), folded);
        assert_eq!(fold(table, Some(70)), table);
        assert_eq!(fold(table, None), table);
        let prose = "  A sentence that is longer than the line may be.";
        assert_eq!(fold(prose, Some(30)), "  A sentence that is longer\n    than the line may be.\n");
    }

    #[test]
    fn words_longer_than_the_line_are_not_split() {
        let long = "x".repeat(60);
        assert_eq!(fold(&format!("a {long} b\n"), Some(20)), format!("a {long}\n  b\n"));
        assert_eq!(fold(&long, Some(20)), format!("{long}\n"));
    }

    #[test]
    fn folded_lines_do_not_exceed_the_width() {
        let line = format!("{:20}{:>10}  0..=100  2.6.18  {}", "slice_idle", "ms", "word ".repeat(50));
        let folded = fold(&line, Some(80));
        assert!(folded.lines().all(|line| line.chars().count() <= 80), "{folded}");
        assert_eq!(folded.matches("word").count(), 50);
    }
}
