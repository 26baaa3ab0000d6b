//! Words for output.

use crate::compare::RUNS_WORTH;
use crate::record::Header;

/// Lists names: "a", "a and b", "a, b and c". `word` stands before the last name: "and" or "or".
#[must_use]
pub fn listed(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// Returns a setting in a sentence, in backquotes, so that the scheduler `none` is not read as the
/// word "none".
#[must_use]
pub fn marked(label: &str) -> String {
    format!("`{label}`")
}

/// Returns settings in a sentence: "`none` and `bfq`".
pub(crate) fn marked_list(labels: &[String]) -> String {
    listed(&labels.iter().map(|label| marked(label)).collect::<Vec<_>>(), "and")
}

/// Returns the text with a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns the labels of settings in words, as [`listed`] does.
#[must_use]
pub fn labels(header: &Header, settings: &[usize], word: &str) -> String {
    listed(&settings.iter().map(|&setting| header.settings[setting].label.clone()).collect::<Vec<_>>(), word)
}

/// Returns a number of runs in words: "34 runs". For a number above [`RUNS_WORTH`], returns "more
/// than" this limit.
#[must_use]
pub fn runs_in_words(runs: u32) -> String {
    if runs > RUNS_WORTH { format!("more than {RUNS_WORTH} runs") } else { format!("{runs} runs") }
}

/// Returns the idle share for a utilisation in per cent, such as "99.8 %", rounded down.
#[must_use]
pub fn idle_in_words(utilisation_percent: f64) -> String {
    format!("{} %", ((100.0 - utilisation_percent) * 10.0).floor() / 10.0)
}
/// Lists at most `most` names, and counts the other names: "a, b and 3 more".
pub(crate) fn some_of(names: &[String], most: usize, word: &str) -> String {
    if names.len() <= most {
        return listed(names, word);
    }
    format!("{} and {} more", names[..most - 1].join(", "), names.len() - (most - 1))
}
