//! Rules of plain English for pages: short sentences, no riddles, the words of the glossary, and
//! short lines.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Breach, SourceFile};

/// Longest sentence, in words. Inline code is one word.
pub(super) const WORDS_MAX: usize = 30;
/// Longest line, in columns. Tables, code and lines that have only a link may be longer.
const COLUMNS_MAX: usize = 100;
/// Openings of sentences that make a reader guess the noun. Questions may begin with them.
const OPENINGS: &[&str] = &["Who ", "Whoever ", "Whose ", "Of which ", "That which ", "What "];
/// Words that the glossary replaces, and their replacements.
const GLOSSARY: &[(&str, &str)] = &[
    ("live disk", "served disk"),
    ("live disks", "served disks"),
    ("live stack", "served disk"),
    ("knob", "tunable"),
    ("knobs", "tunables"),
];

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g.", "i.e.", "vs.", "etc.", "cf.", "al."];

/// A sentence of a page, and the byte at which it begins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    begin: usize,
    pub(super) text: String,
}

/// Returns the breaches of one page of Markdown.
pub(super) fn check(page: &SourceFile) -> Vec<Breach> {
    let mut breaches = long_lines(page);
    for sentence in sentences(&page.text) {
        let line = page.text[..sentence.begin].matches('\n').count() + 1;
        breaches.extend(faults(&sentence.text).into_iter().map(|fault| Breach::new(&page.path, line, fault)));
    }
    breaches
}

/// Returns the first words of a sentence, so that a reader can find the sentence.
fn quoted(sentence: &str) -> String {
    let words: Vec<_> = sentence.split_whitespace().take(6).collect();
    format!("\"{} ...\"", words.join(" "))
}

/// Returns the faults of a sentence.
pub(super) fn faults(sentence: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    if words > WORDS_MAX {
        faults.push(format!("{} has {words} words; {WORDS_MAX} are allowed: split it", quoted(sentence)));
    }
    let is_question = sentence.ends_with('?');
    if !is_question && OPENINGS.iter().any(|opening| sentence.starts_with(opening)) {
        faults.push(format!("{} opens with a riddle: begin with the noun that it means", quoted(sentence)));
    }
    let lower = sentence.to_lowercase();
    for (word, instead) in GLOSSARY {
        let parts: Vec<_> = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let wanted: Vec<_> = word.split(' ').collect();
        if parts.windows(wanted.len()).any(|window| window == wanted) {
            faults.push(format!("{}: write \"{instead}\" instead of \"{word}\"", quoted(sentence)));
        }
    }
    faults
}

/// Returns the sentences of paragraphs and list items, without headings, tables and code blocks.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    // Depth of nested elements that are not prose.
    let mut skipped: usize = 0;
    let mut block = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Table(_) | Tag::HtmlBlock) => skipped += 1,
            Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::Table | TagEnd::HtmlBlock) => skipped -= 1,
            _ if skipped > 0 => {}
            Event::Start(Tag::Paragraph | Tag::Item) | Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                split(&std::mem::take(&mut block), &mut sentences);
            }
            Event::Text(text) => block.push((range.start, text.into_string())),
            // Inline code counts as one word.
            Event::Code(_) => block.push((range.start, "`code`".to_owned())),
            Event::SoftBreak | Event::HardBreak => block.push((range.start, " ".to_owned())),
            _ => {}
        }
    }
    split(&block, &mut sentences);
    sentences
}

/// Splits the text of one block into sentences. The block consists of pieces of text, each with its
/// position.
fn split(block: &[(usize, String)], sentences: &mut Vec<Sentence>) {
    let joined: String = block.iter().map(|(_, text)| text.as_str()).collect();
    let place = |offset: usize| {
        let mut before = 0;
        for (begin, text) in block {
            if offset < before + text.len() {
                return begin + (offset - before).min(text.len() - 1);
            }
            before += text.len();
        }
        block.last().map_or(0, |(begin, _)| *begin)
    };
    let mut begin = 0;
    let ends = joined.match_indices(['.', '!', '?']).map(|(at, _)| at + 1).chain([joined.len()]);
    for end in ends {
        // Closing brackets and quotation marks belong to the sentence.
        let rest = joined[end..].trim_start_matches([')', '"', '\'']);
        let end = joined.len() - rest.len();
        let is_end = rest.is_empty() || rest.starts_with(char::is_whitespace);
        let word = joined[begin.min(end)..end].split_whitespace().last().unwrap_or_default();
        let is_abbreviation = ABBREVIATIONS.contains(&word.trim_start_matches('('));
        if !is_end || is_abbreviation || end <= begin {
            continue;
        }
        let sentence = &joined[begin..end];
        let start = begin + (sentence.len() - sentence.trim_start().len());
        if sentence.contains(char::is_alphanumeric) {
            sentences.push(Sentence { begin: place(start), text: sentence.trim().to_owned() });
        }
        begin = end;
    }
}

/// Returns lines with too many columns. Tables, code blocks and lines that cannot be broken may be
/// longer.
fn long_lines(page: &SourceFile) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut fence = None;
    for (number, line) in page.text.lines().enumerate() {
        let trimmed = line.trim_start();
        match fence {
            Some(mark) if trimmed.starts_with(mark) => fence = None,
            None if trimmed.starts_with("```") => fence = Some("```"),
            None if trimmed.starts_with("~~~") => fence = Some("~~~"),
            _ => {}
        }
        let columns = line.chars().count();
        let may_be_long = fence.is_some() || trimmed.starts_with(['|', '<']) || line.contains("](");
        if columns > COLUMNS_MAX && !may_be_long {
            let fault = format!("has {columns} columns; {COLUMNS_MAX} are allowed: break the line");
            breaches.push(Breach::new(&page.path, number + 1, fault));
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn texts(page: &str) -> Vec<String> {
        sentences(page).into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn sentences_are_read_from_paragraphs_and_lists_only() {
        let page = "# Who decides\n\nOne `a b. C` is. Two\nis.\n\n- Three (it is.) Four\n  - Five?\n\n```\nNo. No.\n```\n\n| No. No |\n|---|\n| No. |\n";
        assert_eq!(texts(page), ["One `code` is.", "Two is.", "Three (it is.)", "Four", "Five?"]);
        assert_eq!(texts("Version 0.1.0 has e.g. this. 3 follow."), ["Version 0.1.0 has e.g. this.", "3 follow."]);
    }

    #[test]
    fn breaches_have_the_line_of_their_sentence() {
        let page = file("docs/a.md", "First.\n\nSecond is\nhere. Who asks, waits.\nThe knob turns. Who asks?\n");
        let found: Vec<_> = check(&page).iter().map(|breach| breach.line).collect();
        assert_eq!(found, [4, 5]);
    }

    #[test]
    fn too_long_sentence_is_a_breach() {
        let words = |count: usize| file("docs/a.md", &format!("{}.\n", vec!["w"; count].join(" ")));
        assert!(check(&words(WORDS_MAX)).is_empty());
        assert_eq!(check(&words(WORDS_MAX + 1)).len(), 1);
    }

    #[test]
    fn too_long_line_of_prose_is_a_breach() {
        let line = "w".repeat(COLUMNS_MAX + 1);
        let check = |text: String| check(&file("docs/a.md", &text)).len();
        assert_eq!(check(line.clone()), 1);
        assert_eq!(check(format!("```\n{line}\n```\n")), 0);
        assert_eq!(check(format!("| {line} |\n")), 0);
        assert_eq!(check(format!("[a]({line})\n")), 0);
    }
}
