//! Words for people.

use crate::record::Header;

/// "a", "a and b", "a, b and c", with `word` before the last: "and" or "or".
#[must_use]
pub fn listed(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// The labels of settings, in words, as [`listed`].
#[must_use]
pub fn labels(header: &Header, settings: &[usize], word: &str) -> String {
    listed(&settings.iter().map(|&setting| header.settings[setting].label.clone()).collect::<Vec<_>>(), word)
}
