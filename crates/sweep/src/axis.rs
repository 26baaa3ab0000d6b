//! Values of one axis of a plan: a single value, a list, or a range.

use serde::Deserialize;

/// A single value or a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "must be text or a list of texts. A workload is a path, a pattern, a URL, or a table with the \
        field path or command"
)]
pub(crate) enum OneOrMore<T> {
    /// A list. It must be the first variant. Otherwise the parser would also read a list as a
    /// table, field by field.
    More(Vec<T>),
    /// A single value.
    One(T),
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self::More(Vec::new())
    }
}

impl<T: Clone> OneOrMore<T> {
    pub(crate) fn to_vec(&self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::More(more) => more.clone(),
        }
    }
}

/// Seeds: a number, a list of numbers, or a range such as "1..5", which includes both ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "seeds must be a whole number, a list of whole numbers, or a range such as \"1..5\"")]
pub(crate) enum Seeds {
    /// A single seed.
    One(u64),
    /// A list of seeds.
    More(Vec<u64>),
    /// A range of seeds.
    Range(String),
}

impl Seeds {
    pub(crate) fn values(&self) -> Result<Vec<u64>, String> {
        match self {
            Self::One(seed) => Ok(vec![*seed]),
            Self::More(seeds) => Ok(seeds.clone()),
            Self::Range(text) => {
                let ends = text.split_once("..").and_then(|(low, high)| {
                    let end = |text: &str| text.trim().parse::<u64>().ok();
                    Some((end(low)?, end(high)?))
                });
                match ends {
                    Some((low, high)) if low <= high => Ok((low..=high).collect()),
                    _ => Err(format!(
                        "seeds {text:?} is not a range; write a range as \"1..5\", which includes both ends"
                    )),
                }
            }
        }
    }
}
