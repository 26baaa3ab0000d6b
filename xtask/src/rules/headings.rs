//! Rule about the headings of doc comments.

use super::{Breach, SourceFile};

/// Headings that rustdoc and readers know. Their text must begin on the next line.
const HEADINGS: [&str; 4] = ["Errors", "Panics", "Examples", "Safety"];

/// Returns the headings of doc comments with text on the same line. Rustdoc would show the whole
/// line as a heading, and the next line as an incomplete paragraph.
pub(super) fn joined(file: &SourceFile) -> Vec<Breach> {
    let lines = file.text.lines().enumerate();
    let faults = lines.filter_map(|(number, line)| Some((number + 1, joined_heading(line)?)));
    faults
        .map(|(line, heading)| {
            Breach::new(&file.path, line, format!("text follows the heading {heading}: begin it on the next line"))
        })
        .collect()
}

/// Returns the heading of a line that also has text.
fn joined_heading(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start();
    let title = text.trim_start_matches('#');
    if title.len() == text.len() || !title.starts_with(' ') {
        return None;
    }
    let mut words = title.split_whitespace();
    let first = words.next()?.trim_end_matches([':', '.', ',']);
    let is_alone = words.next().is_none();
    HEADINGS.into_iter().find(|heading| *heading == first).filter(|_| !is_alone)
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn heading_with_text_on_its_line_is_refused() {
        let text = "//! # Panics Never.\n\n/// Opens it.\n///\n/// # Errors There is no such file.\n/// ## Safety: none\nfn f() {}\n";
        let lines: Vec<usize> = joined(&file("a.rs", text)).iter().map(|breach| breach.line).collect();
        assert_eq!(lines, [1, 5, 6]);
    }

    #[test]
    fn other_headings_and_lines_of_examples_are_accepted() {
        let text = "/// # Errors\n/// There is none.\n/// # Duties of the host\n/// # fn example() {}\n/// # Errors::new();\n// # Errors as above\n/// #[derive(Errors)]\n";
        assert!(joined(&file("a.rs", text)).is_empty());
    }
}
