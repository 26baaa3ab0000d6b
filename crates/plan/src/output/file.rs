//! Output files: path, mark, and how to activate and undo a file.
//!
//! The first line of a file is a mark. In a script, the mark is the line after `#!`. The mark
//! contains a checksum of the rest of the file. If the checksum is right, nobody has edited the
//! file, and iosched may replace or remove it.

use serde::{Deserialize, Serialize};

/// Start of the mark.
const MARK: &str = "Made by iosched plan, checksum ";

/// A file of an output format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Absolute path of the file if its program reads the file there, otherwise a file name.
    pub path: String,
    /// Permission bits of the installed file.
    pub mode: u32,
    /// Contents.
    pub text: String,
    /// Commands for a root shell that make the file take effect.
    pub activate: Vec<String>,
    /// Commands for a root shell that remove the file and its effect.
    pub undo: Vec<String>,
}

/// Syntax of comments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Comment {
    Hash,
    Xml,
}

impl Comment {
    fn line(self, text: &str) -> String {
        match self {
            Self::Hash => format!("# {text}\n"),
            // Two hyphens would end the comment.
            Self::Xml => format!("<!-- {} -->\n", text.replace("--", "- -")),
        }
    }
}

impl OutputFile {
    /// Creates a file with a mark and comments before `body`. A body that begins with `#!` is a
    /// script.
    pub(super) fn new(path: impl Into<String>, comment: Comment, comments: &[String], body: &str) -> Self {
        let (first, body) = match body.strip_prefix("#!").and_then(|rest| rest.split_once('\n')) {
            Some((interpreter, rest)) => (format!("#!{interpreter}\n"), rest),
            None => (String::new(), body),
        };
        let comments: String = comments.iter().map(|text| comment.line(text)).collect();
        let rest = format!("{comments}{body}");
        let mark = comment.line(&format!("{MARK}{:016x}", checksum(&rest)));
        let mode = if first.is_empty() { 0o644 } else { 0o755 };
        let text = format!("{first}{mark}{rest}");
        Self { path: path.into(), mode, text, activate: Vec::new(), undo: Vec::new() }
    }

    pub(super) fn activated(self, activate: Vec<String>, undo: Vec<String>) -> Self {
        Self { activate, undo, ..self }
    }
}

/// Returns whether nobody has changed `text` since iosched wrote it as a file of a plan. `None` if
/// the text is not a file of a plan.
#[must_use]
pub fn is_unchanged(text: &str) -> Option<bool> {
    let mut lines = text.split_inclusive('\n');
    let mut first = lines.next()?;
    let mut before = first.len();
    if first.starts_with("#!") {
        first = lines.next()?;
        before += first.len();
    }
    let (_, sum) = first.split_once(MARK)?;
    let sum = u64::from_str_radix(sum.get(..16)?, 16).ok()?;
    Some(sum == checksum(&text[before..]))
}

/// Returns the FNV-1a checksum with 64 bits. It detects edits, not attacks.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_file_is_recognised() {
        for (comment, body) in [(Comment::Hash, "[Slice]\nIOWeight=3\n"), (Comment::Hash, "#!/bin/sh\nset -e\n")] {
            let file = OutputFile::new("a", comment, &["note: b".to_owned()], body);
            assert_eq!(is_unchanged(&file.text), Some(true), "{}", file.text);
            assert_eq!(is_unchanged(&format!("{}IOWeight=4\n", file.text)), Some(false));
        }
        let file = OutputFile::new("a.xml", Comment::Xml, &["a--b".to_owned()], "<iotune/>\n");
        assert_eq!(is_unchanged(&file.text), Some(true), "{}", file.text);
        assert!(file.text.contains("<!-- a- -b -->\n"));
        assert_eq!(is_unchanged("[Slice]\nIOWeight=3\n"), None);
        assert_eq!(is_unchanged(""), None);
    }
}
