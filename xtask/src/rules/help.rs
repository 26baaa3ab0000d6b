//! Rule about the help of commands: the documentation of the
//! items from which clap derives arguments, commands and values.

use super::{Breach, SourceFile, prose};

/// Derives that turn the documentation of an item into help.
const DERIVES: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

/// Returns the sentences of help that break a rule of prose.
pub(super) fn unclear(file: &SourceFile) -> Vec<Breach> {
    let paragraphs = paragraphs(&file.text).into_iter();
    let sentences = paragraphs.flat_map(|(line, text)| {
        // The default in brackets at the end is not a part of the sentence.
        let text = text.split(" [default:").next().unwrap_or_default().to_owned();
        prose::sentences(&text).into_iter().map(move |sentence| (line, sentence.text))
    });
    let faults = sentences.flat_map(|(line, text)| prose::faults(&text).into_iter().map(move |fault| (line, fault)));
    faults.map(|(line, fault)| Breach::new(&file.path, line, fault)).collect()
}

/// Returns the paragraphs of help in a source file, each with its first line.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // The last documentation comment, until the rule reads the item of this comment. The comment is
    // help if its item has one of the derives.
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

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::super::prose::WORDS_MAX;
    use super::*;

    fn breaches(text: &str) -> Vec<String> {
        unclear(&file("crates/cli/src/x.rs", text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn help_that_starts_with_a_question_word_is_a_breach() {
        // The mark `%/` prevents this text from being documentation of this file.
        let text = "\
%/ What is not help may begin so.
pub(crate) struct Plain;

%/ What it does
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    %/ Number of clients. Who is more waits.
    #[arg(long)]
    clients: u16,
}

%/ What is not help may begin so.
fn f() {}
";
        let breaches = breaches(&text.replace('%', "//"));
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(breaches[0].starts_with("crates/cli/src/x.rs:4: \"What it does"), "{breaches:?}");
        assert!(breaches[1].starts_with("crates/cli/src/x.rs:7: \"Who is more"), "{breaches:?}");
    }

    #[test]
    fn long_sentence_of_help_is_a_breach() {
        let long = vec!["word"; WORDS_MAX + 1].join(" ");
        let quoted = format!("Run `{long}` [default: {}]", vec!["word"; WORDS_MAX - 1].join(" "));
        let two = format!("{}.\n    /// {}", vec!["one"; WORDS_MAX].join(" "), vec!["two"; WORDS_MAX].join(" "));
        let text = |doc: &str| {
            format!("#[derive(clap::ValueEnum)]\nenum Kind {{\n    /// Short\n    ///\n    /// {doc}\n    A,\n}}\n")
        };
        let found = breaches(&text(&long));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/cli/src/x.rs:5:") && found[0].contains("has 31 words"), "{found:?}");
        assert_eq!(breaches(&text(&quoted)), Vec::<String>::new());
        assert_eq!(breaches(&text(&two)), Vec::<String>::new());
    }

    #[test]
    fn rule_finds_the_help_of_the_command() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = super::super::files(&root.join("crates/cli/src"), "rs").unwrap();
        let read: usize = sources.iter().map(|file| paragraphs(&file.text).len()).sum();
        // Each command has help for several options. If the rule finds fewer paragraphs, it no
        // longer recognises the declarations.
        assert!(read > 200, "{read} paragraphs");
    }
}
