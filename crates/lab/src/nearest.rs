//! Suggestions for unknown names.

/// Returns the known name that is most similar to `given`, if a name is similar enough. At most a
/// third of the letters may be missing, extra, wrong or swapped, but one such letter is always
/// allowed.
pub fn nearest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given = given.trim().to_lowercase();
    let far = (given.chars().count() / 3).max(1);
    let distances = known.into_iter().map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name));
    distances.filter(|&(distance, _)| distance <= far).min_by_key(|&(distance, _)| distance).map(|(_, name)| name)
}

/// Returns a suggestion such as `; did you mean cfq?` to append to an error; empty if no name is
/// similar.
pub fn did_you_mean<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// Splits a list of names as errors contain it.
pub fn listed(names: &str) -> impl Iterator<Item = &str> {
    names.split(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_word_is_near_and_another_word_is_not() {
        let known = ["noop", "deadline", "cfq", "mq-deadline", "bfq"];
        for (given, meant) in [
            ("cqf", Some("cfq")),
            ("CFQ", Some("cfq")),
            ("dedline", Some("deadline")),
            ("mqdeadline", Some("mq-deadline")),
            ("scan", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }
}
