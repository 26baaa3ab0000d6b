//! Words for people.

use crate::compare::RUNS_WORTH;
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

/// A setting in a sentence: "`none`" is a scheduler, and none is not.
#[must_use]
pub fn marked(label: &str) -> String {
    format!("`{label}`")
}

/// Settings in a sentence: "`none` and `bfq`".
pub(crate) fn marked_list(labels: &[String]) -> String {
    listed(&labels.iter().map(|own| marked(own)).collect::<Vec<_>>(), "and")
}

/// With a capital first letter.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// The labels of settings, in words, as [`listed`].
#[must_use]
pub fn labels(header: &Header, settings: &[usize], word: &str) -> String {
    listed(&settings.iter().map(|&setting| header.settings[setting].label.clone()).collect::<Vec<_>>(), word)
}

/// "about 34 runs"; what nobody makes is not told to the last run.
#[must_use]
pub fn runs_in_words(runs: u32) -> String {
    if runs > RUNS_WORTH { format!("more than {RUNS_WORTH} runs") } else { format!("{runs} runs") }
}

/// "99.8 %", of a utilisation in per cent; never more than it was.
#[must_use]
pub fn idle_in_words(utilisation_percent: f64) -> String {
    format!("{} %", ((100.0 - utilisation_percent) * 10.0).floor() / 10.0)
}
