//! How a difference is told of a metric.

use crate::compare::{Comparison, Verdict};
use crate::figure::{Direction, Figure};
use crate::number::significant;

use super::Criterion;

/// A metric in a sentence: "the time to finish", "sync p99".
pub(super) fn noun(criterion: &Criterion) -> &str {
    match criterion.figure {
        Figure::Finish => "the time to finish",
        _ => &criterion.name,
    }
}

/// How a sentence begins that says that no setting is better in a metric.
pub(super) fn nothing_better(criterion: &Criterion) -> String {
    let figure = criterion.figure;
    match (figure, figure.direction()) {
        (Figure::Finish | Figure::Throughput, _) => "Nothing is faster".to_owned(),
        (Figure::Fairness, _) => "Nothing shares the disk more fairly".to_owned(),
        (_, Direction::Higher) => format!("Nothing raises {}", noun(criterion)),
        (..) if is_time(figure) => format!("Nothing shortens {}", noun(criterion)),
        _ => format!("Nothing lowers {}", noun(criterion)),
    }
}

fn is_time(figure: Figure) -> bool {
    matches!(figure.unit(), "ns" | "us" | "ms" | "s" | "min")
}

/// What a setting does to a metric against the baseline: "finishes 20 % sooner (19 to 21 %)", "takes 12 times as long
/// (9.5 to 14)". Of comparisons that show a difference.
pub(super) fn effect(criterion: &Criterion, setting: usize, baseline: usize) -> String {
    let figure = criterion.figure;
    let Some((mean, Some(found))) = criterion.settings[setting] else { return String::new() };
    let better = found.verdict == Verdict::Better;
    if figure == Figure::Fairness {
        let base = criterion.settings[baseline].map_or(0.0, |own| own.0);
        let more = if better { "more" } else { "less" };
        return format!("shares the disk {more} fairly ({mean:.2} against {base:.2})");
    }
    let rises = found.difference > 0.0;
    let name = noun(criterion);
    if let Some((times, between)) = found.fold() {
        let between = between.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
        return match figure {
            Figure::Finish => format!("takes {times} times as long{between}"),
            _ if is_time(figure) => format!("makes {name} {times} times as long{between}"),
            _ => format!("makes {name} {times} times as high{between}"),
        };
    }
    let (size, between) = found.size(figure.unit());
    let between = between.map_or_else(String::new, |(near, far, unit)| format!(" ({near} to {far}{unit})"));
    match (figure, rises) {
        (Figure::Finish, true) => format!("takes {size} longer{between}"),
        (Figure::Finish, false) => format!("finishes {size} sooner{between}"),
        (_, true) if is_time(figure) => format!("lengthens {name} by {size}{between}"),
        (_, false) if is_time(figure) => format!("shortens {name} by {size}{between}"),
        (_, true) => format!("raises {name} by {size}{between}"),
        (_, false) => format!("lowers {name} by {size}{between}"),
    }
}

/// What was seen in simulation, and why it is not trusted; `None` if the model's error hides nothing.
pub(super) fn seen(found: &Comparison) -> Option<String> {
    let seen = found.seen?;
    let percent = found.percent?;
    let size = match found.fold() {
        Some((times, _)) => format!("{times} times the baseline's value"),
        None => format!("{} % {}", significant(percent.abs(), 2), if percent > 0.0 { "more" } else { "less" }),
    };
    let judged = if seen == Verdict::Better { "better" } else { "worse" };
    Some(format!("{judged} in simulation ({size})"))
}

/// A number of settings in words: "a, b and 3 more".
pub(super) fn some_of(names: &[String], most: usize, word: &str) -> String {
    if names.len() <= most {
        return crate::words::listed(names, word);
    }
    format!("{} and {} more", names[..most - 1].join(", "), names.len() - (most - 1))
}
