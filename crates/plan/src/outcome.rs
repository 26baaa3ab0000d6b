//! Intervals of predicted values, and whether they meet a goal.

use crate::goal::{Bound, Goal, Metric};
use crate::plan::{Interval, Outcome};

/// 97.5th percentile of Student's t for 1, 2, ... degrees of freedom.
const T: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// 97.5th percentile of Student's t for more degrees of freedom than `T` has.
const T_LARGE: f64 = 1.96;
/// Lower limit of values whose logarithm is taken.
const LEAST: f64 = 1e-6;
/// Largest distance between a value and an end of its interval, as a logarithm of a factor.
const WIDTH_MAX: f64 = 10.0;

/// Returns the mean of runs, with the interval that contains a further run with 95 % probability.
/// The error of the model, `error_percent`, makes the interval wider. All values are positive, so
/// the interval has logarithmic width. `None` if a run has no value.
pub(crate) fn interval(values: &[Option<f64>], error_percent: f64) -> Option<Interval> {
    let logs: Vec<f64> = values.iter().map(|value| value.map(|value| value.max(LEAST).ln())).collect::<Option<_>>()?;
    let count = logs.len() as f64;
    if logs.is_empty() {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / count;
    let freedom = logs.len() - 1;
    let sd = if freedom == 0 {
        0.0
    } else {
        (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / freedom as f64).sqrt()
    };
    let t = if freedom == 0 { 0.0 } else { T.get(freedom - 1).copied().unwrap_or(T_LARGE) };
    let half = t * sd * (1.0 + 1.0 / count).sqrt() + (1.0 + error_percent / 100.0).ln();
    let half = half.min(WIDTH_MAX);
    Some(Interval { value: mean.exp(), from: (mean - half).exp(), to: (mean + half).exp() })
}

/// Returns whether a goal is met. The interval of the prediction is inside the range, outside the
/// range, or partly inside.
pub(crate) fn judged(predicted: Interval, (low, high): (f64, f64)) -> Outcome {
    if predicted.from >= low && predicted.to <= high {
        Outcome::Met
    } else if predicted.to < low || predicted.from > high {
        Outcome::Missed
    } else {
        Outcome::CannotTell
    }
}

/// Returns the goal with the strictest bound that the whole predicted interval meets. `None` if the
/// bound of this kind of goal cannot be relaxed.
pub(crate) fn relaxed(goal: &Goal, predicted: Interval) -> Option<Goal> {
    let up = |value: f64| rounded(value, f64::ceil);
    let down = |value: f64| rounded(value, f64::floor);
    match goal {
        Goal::Bound(metric, Bound::AtMost(_)) => Some(Goal::Bound(*metric, Bound::AtMost(up(predicted.to)))),
        Goal::Bound(metric, Bound::AtLeast(_)) => Some(Goal::Bound(*metric, Bound::AtLeast(down(predicted.from)))),
        Goal::Reservation(metric @ (Metric::Throughput | Metric::Iops), _) => {
            Some(Goal::Reservation(*metric, down(predicted.from)))
        }
        Goal::Limit(metric, _) => Some(Goal::Limit(*metric, up(predicted.to))),
        Goal::Reservation(..) | Goal::Share(_) | Goal::Before(_) => None,
    }
}

/// Rounds to two significant digits.
fn rounded(value: f64, round: fn(f64) -> f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let places = 1 - value.log10().floor() as i32;
    let scale = 10f64.powi(places);
    // A division by a whole number gives 5.2. A multiplication can give 5.2000000000000002.
    if places >= 0 { round(value * scale) / scale } else { round(value * scale) * 10f64.powi(-places) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_differ_have_a_wide_interval() {
        let of = |values: &[f64], error| interval(&values.iter().map(|v| Some(*v)).collect::<Vec<_>>(), error).unwrap();
        let equal = of(&[5.0; 8], 0.0);
        assert!((equal.from - 5.0).abs() < 1e-9 && (equal.to - 5.0).abs() < 1e-9);
        let apart = of(&[4.0, 5.0, 6.0, 5.0], 0.0);
        assert!(apart.from < 3.1 && apart.to > 7.5, "{apart:?}");
        let with_error = of(&[5.0; 8], 20.0);
        assert!((with_error.to - 6.0).abs() < 1e-9 && (with_error.from - 5.0 / 1.2).abs() < 1e-9);
        assert_eq!(interval(&[Some(1.0), None], 0.0), None);
    }

    #[test]
    fn only_an_interval_inside_the_range_is_met() {
        let interval = |from, to| Interval { value: (from + to) / 2.0, from, to };
        let range = (0.0, 5.0);
        assert_eq!(judged(interval(3.0, 5.0), range), Outcome::Met);
        assert_eq!(judged(interval(3.0, 5.1), range), Outcome::CannotTell);
        assert_eq!(judged(interval(5.1, 6.0), range), Outcome::Missed);
    }

    #[test]
    fn relaxed_goal_is_met_and_rounded() {
        let predicted = Interval { value: 6.0, from: 5.55, to: 7.212 };
        let relaxed = |text: &str| relaxed(&text.parse().unwrap(), predicted).map(|goal| goal.to_string());
        assert_eq!(relaxed("p99(read) < 5 ms").unwrap(), "p99(read) <= 7.3 ms");
        assert_eq!(relaxed("throughput >= 50 MB/s").unwrap(), "throughput >= 5.5 MB/s");
        assert_eq!(relaxed("share 2"), None);
    }
}
