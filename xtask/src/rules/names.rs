//! Rule against names in code that do not describe their contents.

use super::{Breach, SourceFile};

/// Words that are bad names, because a reader must guess the noun.
const MEANINGLESS: [&str; 5] = ["own", "told", "asked", "made", "said"];

/// Returns names that consist only of such words.
pub(super) fn meaningless(file: &SourceFile) -> Vec<Breach> {
    let (path, mut breaches) = (&file.path, Vec::new());
    if !path.starts_with("crates/") && !path.starts_with("xtask/") {
        return breaches;
    }
    for (line, name) in names(&file.text) {
        if MEANINGLESS.contains(&name) {
            let what = format!("{name} is no name: say what it holds, such as request, finding or record");
            breaches.push(Breach::new(path, line, what));
        }
    }
    breaches
}

/// Returns the identifiers of a source file with their lines. Includes identifiers in format
/// strings, but not in comments.
fn names(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let length = match rest.as_bytes() {
            [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => rest.find("*/").map_or(rest.len(), |end| end + 2),
            [b'r' | b'b', ..] if raw_string(rest).is_some() => raw_string(rest).unwrap_or(rest.len()),
            [b'"', ..] => {
                let length = string(rest);
                found.extend(formatted(&rest[..length]).map(|name| (line, name)));
                length
            }
            // A quotation mark in a character literal does not begin a string.
            [b'\'', b'"', b'\'', ..] => 3,
            [b'\'', b'\\', _, b'\'', ..] => 4,
            [first, ..] if first.is_ascii_alphabetic() || *first == b'_' => {
                let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
                found.push((line, &rest[..length]));
                length
            }
            [first, ..] if first.is_ascii_digit() => rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the string literal at the beginning of `text`.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// Returns the length of the raw string literal at the beginning of `text`, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let behind = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let marked = behind.trim_start_matches('#');
    let content = marked.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(behind.len() - marked.len()));
    let left = content.find(&end).map_or("", |at| &content[at + end.len()..]);
    Some(text.len() - left.len())
}

/// Returns the names in braces in a format string.
fn formatted(string: &str) -> impl Iterator<Item = &str> {
    let inside = string.split('{').skip(1);
    inside.map(|part| &part[..part.find(|c: char| !is_part(c)).unwrap_or(part.len())])
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        meaningless(&file(path, text)).iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn meaningless_names_are_found_in_code_and_formats() {
        // The rule also reads this file. It ignores the contents of raw strings, so this text is a
        // raw string.
        let text = r#"fn told() {
  all.map(|own| own + 1);
  println!("{made:?}");
  self.asked
}"#;
        assert_eq!(lines("crates/live/src/x.rs", text), [1, 2, 2, 3, 4]);
    }

    #[test]
    fn words_in_comments_and_strings_are_ignored() {
        let text =
            "// its own\nlet owned = \"its own\"; // told\nlet quote = '\"'; let made_by = r#\"own \" made\"#;\n";
        assert_eq!(lines("crates/live/src/x.rs", text), [0; 0]);
    }
}
