//! Messages of bounded length. Quoted input, such as a line of a file, is shortened.

use std::borrow::Cow;

/// Maximum number of characters of quoted input. Quoted input is a text in quotes or backticks, a
/// word, or a line of a file after its line number.
pub const QUOTED_CHARS_MAX: usize = 200;
/// Maximum number of characters of the note about omitted text. A text that exceeds
/// [`QUOTED_CHARS_MAX`] by at most this number is not shortened, because the note could be longer
/// than the omitted text. For the same reason, a shortened text is not shortened a second time.
const NOTE_CHARS_MAX: usize = 40;
/// Maximum number of characters of a line.
const LINE_CHARS_MAX: usize = 4000;
/// Marks that begin and end a quote.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// Maximum number of lines of a message.
const LINES_MAX: usize = 100;

/// Shortens the quotes of a message to at most [`QUOTED_CHARS_MAX`] characters each.
#[must_use]
pub fn shortened(message: &str) -> Cow<'_, str> {
    // Such a short message has no part that is too long.
    if message.len() <= QUOTED_CHARS_MAX {
        return message.into();
    }
    let mut lines: Vec<String> = message.lines().take(LINES_MAX).map(line_of).collect();
    let more = message.lines().skip(LINES_MAX).count();
    if more > 0 {
        lines.push(format!("… ({more} more lines)"));
    }
    lines.join("\n").into()
}

fn line_of(line: &str) -> String {
    // A quoted line of a file, `12 | TEXT`, can be too long even if all its words are short.
    let gutter = line.find(" | ").filter(|&at| line[..at].chars().all(|c| c.is_ascii_digit() || c == ' '));
    if let Some(at) = gutter {
        let chars_max = QUOTED_CHARS_MAX + at + 3;
        // A mark (`^`) below omitted text would point at nothing.
        let is_mark = line[at + 3..].chars().all(|c| c == ' ' || c == '^');
        return if is_mark && line.len() > chars_max {
            line[..at + 2].to_owned()
        } else {
            cut(line, chars_max).into_owned()
        };
    }
    let mut short = String::with_capacity(line.len().min(LINE_CHARS_MAX));
    let mut marks = QUOTES.to_vec();
    let mut rest = line;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(part_of(rest, &mut marks));
        short += &short_part(part);
        rest = after;
    }
    cut(&short, LINE_CHARS_MAX).into_owned()
}

/// Shortens a part: the text in quotes, or a word without the punctuation after it.
fn short_part(part: &str) -> Cow<'_, str> {
    if part.chars().nth(QUOTED_CHARS_MAX + NOTE_CHARS_MAX).is_none() {
        return part.into();
    }
    let quote = part.chars().next().filter(|mark| QUOTES.contains(mark) && part.len() > 1 && part.ends_with(*mark));
    let (begin, end) = match quote {
        Some(mark) => (mark.len_utf8(), part.len() - mark.len_utf8()),
        None => (0, part.trim_end_matches([':', ';', ',']).len()),
    };
    format!("{}{}{}", &part[..begin], cut(&part[begin..end], QUOTED_CHARS_MAX), &part[end..]).into()
}

/// Returns the length of the first part of a line, bytes. A part is a quote, white space, or a
/// word. `marks` contains the marks that can begin a quote. If a mark has no end, it is removed
/// from `marks`, so that the search for its end is not repeated.
fn part_of(line: &str, marks: &mut Vec<char>) -> usize {
    if let Some(mark) = line.chars().next().filter(|mark| marks.contains(mark)) {
        match end_of_quote(&line[1..], mark) {
            Some(end) => return 1 + end,
            None => marks.retain(|other| *other != mark),
        }
    }
    let is_blank = line.starts_with(char::is_whitespace);
    let mut before = ' ';
    let mut ends = |(at, c): (usize, char)| {
        // An apostrophe within a word begins no quote.
        let begins = matches!(c, '"' | '`') || (c == '\'' && !before.is_alphanumeric());
        before = c;
        c.is_whitespace() != is_blank || (at > 0 && begins && marks.contains(&c))
    };
    line.char_indices().find(|&place| ends(place)).map_or(line.len(), |(at, _)| at)
}

/// Returns the position after the closing mark of a quote. Marks inside the quote are escaped as in
/// Rust.
fn end_of_quote(text: &str, mark: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if c == mark && !escaped => return Some(at + 1),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

/// Shortens a text with more than `chars_max` characters to `chars_max`, and appends a note with
/// its length.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        None => text.into(),
        Some(_) if text.trim().is_empty() => text.chars().take(chars_max).collect(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_quotes_words_and_lines_are_shortened() {
        let (long, words) = ("x".repeat(300_000), "a \\\"b\\\" ".repeat(50_000));
        let cases = [
            (format!("seek:3: {long} is no number; write one"), "(300000 characters) is no number; write one"),
            (format!("seek:3: \"{words}\" is no number"), "(400000 characters)\" is no number"),
            (format!("a: 1\n  |\n1 | {}\n  |{}^\nbad", "y z ".repeat(9), " ".repeat(30_000)), "\n  |\nbad"),
            (format!("12 | {words}\nwrong"), "(400005 characters)\nwrong"),
            (format!("invalid value '{words}' for '--run-for <S>'"), "(400000 characters)' for '--run-for <S>'"),
            (format!("unknown field `{words}`, expected `name`"), "(400000 characters)`, expected `name`"),
            (format!("{long}: there is no such disk"), "… (300000 characters): there is no such disk"),
            (format!("'-- --{long}'"), "… (300005 characters)'"),
            (format!("\"{long}"), "(300001 characters)"),
            (words, "characters)"),
            ("line\n".repeat(300_000), "… (299900 more lines)"),
        ];
        for (text, end) in cases {
            let short = shortened(&text);
            assert!(short.ends_with(end) && short.chars().count() < 4200, "{short}");
        }
    }

    #[test]
    fn shortened_text_is_not_shortened_again() {
        let (long, words) = ("x".repeat(300_000), "a \\\"b\\\" ".repeat(50_000));
        for text in [&long, &words] {
            let short = cut(text, QUOTED_CHARS_MAX);
            for message in [format!("{short}: no such file"), format!("'-- --{short}'"), format!("no {short}.zst")] {
                assert_eq!(shortened(&message), message);
            }
            let message = format!("invalid value '{text}' for \"{text}\"");
            let once = shortened(&message);
            assert_eq!(shortened(&once), once);
        }
    }

    #[test]
    fn a_message_without_long_parts_stays_as_it_is() {
        let text = format!("{}\n  \"a b\": there is no é; {}", "name, ".repeat(300), "word ".repeat(50));
        assert_eq!(shortened(&text), text);
    }
}
