//! Words for a difference in a metric.

use crate::compare::{Comparison, Verdict};
use crate::figure::{Direction, Figure};
use crate::number::{grouped, significant};

use super::Criterion;

/// Returns the beginning of a sentence that says that no setting is better in a metric.
pub(super) fn nothing_better(criterion: &Criterion) -> String {
    let figure = criterion.figure;
    match (figure, figure.direction()) {
        (Figure::Finish, _) => "Nothing is faster".to_owned(),
        (Figure::Fairness, _) => "No other setting shares the disk more fairly".to_owned(),
        (_, Direction::Higher) => format!("Nothing raises {}", criterion.phrase),
        (..) if is_time(figure) => format!("Nothing shortens {}", criterion.phrase),
        _ => format!("Nothing lowers {}", criterion.phrase),
    }
}

fn is_time(figure: Figure) -> bool {
    matches!(figure.unit(), "ns" | "us" | "ms" | "s" | "min")
}

/// Returns the effect of a setting on a metric against the baseline: "finishes 20 % sooner (19 to
/// 21 %)", "takes 12 times as long (9.5 to 14)". The comparison must show a difference. With
/// `by_values`, or for a large effect, the text gives the values of both settings instead.
pub(super) fn effect(criterion: &Criterion, setting: usize, baseline: usize, by_values: bool) -> String {
    let figure = criterion.figure;
    let Some((mean, Some(found))) = criterion.settings[setting] else { return String::new() };
    let better = found.verdict == Verdict::Better;
    if figure == Figure::Fairness {
        let base = criterion.settings[baseline].map_or(0.0, |mean_and_comparison| mean_and_comparison.0);
        let more = if better { "more" } else { "less" };
        return format!("shares the disk {more} fairly ({mean:.2} against {base:.2})");
    }
    let rises = found.difference > 0.0;
    let name = &criterion.phrase;
    if let Some(values) = values(criterion, setting, baseline).filter(|_| by_values || is_great(&found)) {
        return match (figure, rises) {
            (_, true) if is_time(figure) => format!("lengthens {name} from {values}"),
            (_, false) if is_time(figure) => format!("shortens {name} from {values}"),
            (_, true) => format!("raises {name} from {values}"),
            (_, false) => format!("lowers {name} from {values}"),
        };
    }
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

/// Returns a latency under a setting, s; `None` for other metrics.
pub(super) fn latency_s(criterion: &Criterion, setting: usize) -> Option<f64> {
    let is_latency = criterion.figure.unit() == "ms";
    criterion
        .settings
        .get(setting)
        .copied()
        .flatten()
        .filter(|_| is_latency)
        .map(|mean_and_comparison| mean_and_comparison.0 / 1000.0)
}

/// Smallest ratio to the baseline, or inverse ratio, for which the text gives both values instead
/// of the ratio.
const GREAT: f64 = 10.0;

fn is_great(found: &Comparison) -> bool {
    found.magnitude() >= GREAT.ln() && found.percent.is_some()
}

/// Returns the ratio of an effect whose text gives both values, such as ", by 98 % (97 to 99 %)".
/// Returns an empty text for other effects.
pub(super) fn ratio(criterion: &Criterion, setting: usize) -> String {
    let Some((_, Some(found))) = criterion.settings[setting] else { return String::new() };
    match found.fold() {
        _ if !is_great(&found) => String::new(),
        Some((times, None)) => format!(", {times} times the baseline"),
        Some((times, Some((low, high)))) => format!(", {times} times the value of the baseline ({low} to {high})"),
        None => match found.size(criterion.figure.unit()) {
            (size, None) => format!(", by {size}"),
            (size, Some((near, far, unit))) => format!(", by {size} ({near} to {far}{unit})"),
        },
    }
}

/// Returns the values of the baseline and of the setting: "3.18 ms to 10.1 s", "101 to 1.43 MB/s".
fn values(criterion: &Criterion, setting: usize, baseline: usize) -> Option<String> {
    let mean = |number: usize| {
        criterion.settings.get(number).copied().flatten().map(|mean_and_comparison| mean_and_comparison.0)
    };
    let [(from, unit), (to, unit_to)] =
        [mean(baseline)?, mean(setting)?].map(|mean| amount(mean, criterion.figure.unit()));
    let space = |unit: &str| if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let first = if unit == unit_to { String::new() } else { space(unit) };
    Some(format!("{from}{first} to {to}{}", space(unit_to)))
}

/// Returns a value and its unit. Long times are in s. A rate has no unit, because the metric's name
/// includes it.
fn amount(value: f64, unit: &'static str) -> (String, &'static str) {
    const MS_OF_S: f64 = 1000.0;
    let (value, unit) = match unit {
        "ms" if value >= MS_OF_S => (value / MS_OF_S, "s"),
        "1/s" => (value, ""),
        _ => (value, unit),
    };
    let text = if value >= 1000.0 { grouped(value.round() as u64) } else { significant(value, 3) };
    (text, unit)
}

/// Returns the effect in simulation that the model's error hides; `None` if no effect is hidden.
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
