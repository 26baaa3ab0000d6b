//! How the help of a command is written: the documentation of what clap derives arguments, commands and values from.

use super::{Breach, SourceFile};

/// A sentence of help has no more words. A quotation or a piece of code counts as one.
const WORDS_MAX: usize = 30;
/// No sentence of help begins with these: what follows is a riddle, and a noun or a verb is not.
const OPENINGS: [&str; 4] = ["Who ", "What ", "Of which ", "That "];
/// Derives whose items' documentation is help.
const DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Sentences of help that are too long or begin with a riddle.
pub(super) fn unclear(file: &SourceFile) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (line, paragraph) in paragraphs(&file.text) {
        for sentence in sentences(&paragraph) {
            if let Some(opening) = OPENINGS.into_iter().find(|opening| sentence.starts_with(opening)) {
                let what = format!(
                    "help begins with \"{}\"; begin with a noun or an imperative: {}",
                    opening.trim_end(),
                    beginning(&sentence)
                );
                breaches.push(Breach::new(&file.path, line, what));
            }
            let words = words(&sentence);
            if words > WORDS_MAX {
                let what = format!(
                    "a sentence of help has {words} words; {WORDS_MAX} are allowed: split it: {}",
                    beginning(&sentence)
                );
                breaches.push(Breach::new(&file.path, line, what));
            }
        }
    }
    breaches
}

/// The paragraphs of help in a source file, each with the line that it begins at.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // The documentation read last, whose item is not known yet; it is help if the item is derived so.
    let mut pending: Vec<(usize, String)> = Vec::new();
    let mut begins = true;
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        let trimmed = line.trim_start();
        if let Some(doc) = trimmed.strip_prefix("///") {
            let doc = doc.trim();
            match pending.last_mut().filter(|_| !begins) {
                Some((_, paragraph)) if !doc.is_empty() => {
                    paragraph.push(' ');
                    paragraph.push_str(doc);
                }
                _ if doc.is_empty() => {}
                _ => pending.push((line_number, doc.to_owned())),
            }
            begins = doc.is_empty();
            continue;
        }
        begins = true;
        if line.starts_with("#[derive(") {
            inside = line.split([',', '(', ')', ' ', ':']).any(|word| DERIVES.contains(&word));
        } else if line.starts_with('}') {
            inside = false;
        }
        let is_attribute = trimmed.starts_with("#[");
        if inside {
            found.append(&mut pending);
        } else if !is_attribute {
            pending.clear();
        }
    }
    found
}

/// The sentences of a paragraph. What is in brackets at its end, as a default, is a sentence.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let last = found.last().map_or("", String::as_str);
        let ended = last.trim_end_matches([')', '"', '`']).ends_with(['.', '?', '!']);
        if !last.is_empty() && (ended || word.starts_with("[default:")) {
            found.push(String::new());
        }
        if let Some(sentence) = found.last_mut() {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(word);
        }
    }
    found
}

/// How many words a sentence has; what is in quotes or backticks is one.
fn words(sentence: &str) -> usize {
    let (mut words, mut quote) = (0, None);
    for word in sentence.split_whitespace() {
        words += usize::from(quote.is_none());
        for c in word.chars() {
            quote = match quote {
                None if matches!(c, '"' | '`') => Some(c),
                Some(open) if c == open => None,
                other => other,
            };
        }
    }
    words
}

/// The first words of a sentence, by which it is found.
fn beginning(sentence: &str) -> String {
    let mut words = sentence.split_whitespace();
    let first: Vec<&str> = words.by_ref().take(8).collect();
    let more = if words.next().is_some() { " …" } else { "" };
    format!("{}{more}", first.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn told(text: &str) -> Vec<String> {
        unclear(&file("crates/cli/src/x.rs", text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn help_does_not_begin_with_a_riddle() {
        let text = "\
/// What is not help may begin so.
pub(crate) struct Plain;

/// What it does
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Number of clients. Who is more waits.
    #[arg(long)]
    clients: u16,
}

/// What is not help may begin so.
fn f() {}
";
        let told = told(text);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("crates/cli/src/x.rs:4: help begins with \"What\""), "{told:?}");
        assert!(told[1].starts_with("crates/cli/src/x.rs:7: help begins with \"Who\""), "{told:?}");
    }

    #[test]
    fn sentences_of_help_are_short() {
        let long = vec!["word"; WORDS_MAX + 1].join(" ");
        let quoted = format!("Run `{long}` [default: {}]", vec!["word"; WORDS_MAX - 1].join(" "));
        let two = format!("{}.\n    /// {}", vec!["one"; WORDS_MAX].join(" "), vec!["two"; WORDS_MAX].join(" "));
        let text = |doc: &str| {
            format!("#[derive(clap::ValueEnum)]\nenum Kind {{\n    /// Short\n    ///\n    /// {doc}\n    A,\n}}\n")
        };
        let found = told(&text(&long));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/cli/src/x.rs:5: a sentence of help has 31 words"), "{found:?}");
        assert_eq!(told(&text(&quoted)), Vec::<String>::new());
        assert_eq!(told(&text(&two)), Vec::<String>::new());
    }

    #[test]
    fn help_of_the_command_is_recognised() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = super::super::files(&root.join("crates/cli/src"), "rs").unwrap();
        let read: usize = sources.iter().map(|file| paragraphs(&file.text).len()).sum();
        // Each command has help for several options: fewer would mean that the declarations are no longer recognised.
        assert!(read > 200, "{read} paragraphs");
    }
}
