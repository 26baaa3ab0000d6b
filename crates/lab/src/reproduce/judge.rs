//! Judgement of a setting against the baseline: the method of the first document, applied to
//! published and to simulated figures.
//!
//! Two settings differ only if the difference of the means exceeds the standard deviations: the
//! bars from mean - deviation to mean + deviation do not touch ([`bars_apart`]). There are three
//! more rules:
//!  - Simulated runs have less noise than real ones, so a difference must also be relevant. It must
//!    be at least [`RELEVANT_SHARE`] of the mean with the smaller deviation. All differences
//!    between published figures with deviations are larger than this.
//!  - A figure without a published deviation, usually of a single run, is assumed to be accurate to
//!    a tenth ([`NOISE_SHARE`]). Smaller differences do not count. If a row of published figures
//!    has no deviations, the same rule applies to the simulated figures of this row. Both verdicts
//!    then have the same meaning.
//!  - If the simulated runs of a setting or of the baseline have two [`Outcomes`], equal means do
//!    not show that there is no difference. The judgement is then "two outcomes" instead of "no
//!    difference".

use serde::{Deserialize, Serialize};

use crate::compare::{EQUAL_WITHIN_PERCENT, Outcomes};
use crate::figure::Direction;
use crate::stat::{self, bars_apart};

/// Smallest relevant difference, as a share of the mean with the smaller deviation.
pub const RELEVANT_SHARE: f64 = 0.005;
/// Assumed accuracy of a figure without a deviation, as a share. Smaller differences do not count.
pub const NOISE_SHARE: f64 = 0.1;

/// Judgement of a setting against the baseline by the documents' method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The setting is better than the baseline.
    Better,
    /// The setting is worse than the baseline.
    Worse,
    /// The value is higher, in a metric without a better direction.
    More,
    /// The value is lower, in a metric without a better direction.
    Less,
    /// The bars touch, or the difference is not relevant.
    NoDifference,
    /// The bars touch, and the runs of one of the settings have two [`Outcomes`]. The mean of such
    /// runs is typical of no run.
    TwoOutcomes,
}

impl Judgement {
    /// Returns the name of the judgement in data.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::More => "more",
            Self::Less => "less",
            Self::NoDifference => "no_difference",
            Self::TwoOutcomes => "two_outcomes",
        }
    }
}

/// A figure of several runs, or of a single run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Mean of the runs.
    pub mean: f64,
    /// Standard deviation; `None` if it is not published, or for a single run.
    pub sd: Option<f64>,
}

impl Known {
    /// Returns the mean and the standard deviation of runs.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self { mean: stat::mean(values), sd: stat::standard_deviation(values) }
    }
}

/// Compares a setting with the baseline. With `single`, both count as figures of single runs, even
/// if deviations are known.
#[must_use]
pub fn judge(direction: Direction, setting: Known, base: Known, single: bool) -> Judgement {
    let difference = setting.mean - base.mean;
    let (touching, least) = match (setting.sd, base.sd) {
        (Some(own_sd), Some(base_sd)) => {
            let better_known = if own_sd < base_sd { setting.mean } else { base.mean };
            (!bars_apart((setting.mean, own_sd), (base.mean, base_sd)), RELEVANT_SHARE * better_known.abs())
        }
        _ => (false, NOISE_SHARE * base.mean.abs()),
    };
    let least = if single { NOISE_SHARE * base.mean.abs() } else { least };
    if difference == 0.0 || touching || difference.abs() < least {
        return Judgement::NoDifference;
    }
    let (risen, fallen) = match direction {
        Direction::Higher => (Judgement::Better, Judgement::Worse),
        Direction::Lower => (Judgement::Worse, Judgement::Better),
        Direction::Neither => (Judgement::More, Judgement::Less),
    };
    if difference > 0.0 { risen } else { fallen }
}

/// Judges simulated runs as [`judge`] does. Two outcomes are never reported as no difference.
#[must_use]
pub(super) fn judge_runs(direction: Direction, setting: &[f64], base: &[f64], single: bool) -> Judgement {
    let apart = EQUAL_WITHIN_PERCENT / 100.0 * stat::mean(base).abs();
    let has_two = || [setting, base].into_iter().any(|values| Outcomes::of(values, apart).is_some());
    match judge(direction, Known::of(setting), Known::of(base), single) {
        Judgement::NoDifference if setting != base && has_two() => Judgement::TwoOutcomes,
        judgement => judgement,
    }
}

/// Returns the better direction for a unit: lower for times and shares of waiting, higher for
/// rates.
#[must_use]
pub fn direction_of(unit: &str) -> Direction {
    if matches!(unit, "s" | "ms" | "us" | "%") { Direction::Lower } else { Direction::Higher }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(mean: f64, sd: f64) -> Known {
        Known { mean, sd: Some(sd) }
    }

    const fn single(mean: f64) -> Known {
        Known { mean, sd: None }
    }

    #[test]
    fn settings_differ_where_deviation_bars_do_not_overlap() {
        let rate = |setting, base| judge(Direction::Higher, setting, base, false);
        // Published figures: random write of 4 MiB and of 1 MiB, backwards read, file creation.
        assert_eq!(rate(known(86_134.5, 123.38), known(76_935.9, 406.46)), Judgement::Better);
        assert_eq!(rate(known(68_563.1, 498.1), known(66_683.5, 445.16)), Judgement::Better);
        assert_eq!(rate(known(75_570.9, 91.59), known(75_419.5, 135.84)), Judgement::NoDifference);
        assert_eq!(rate(known(1013.7, 11.42), known(1029.1, 15.21)), Judgement::NoDifference);
    }

    #[test]
    fn two_outcomes_are_not_called_no_difference() {
        let two: Vec<f64> = (0..12).map(|run| if run % 2 == 0 { 285.0 } else { 344_000.0 }).collect();
        let one = [172_000.0; 12];
        let judge = |setting: &[f64], base: &[f64]| judge_runs(Direction::Higher, setting, base, false);
        assert_eq!([judge(&two, &one), judge(&one, &two)], [Judgement::TwoOutcomes; 2]);
        assert_eq!(judge(&two, &two), Judgement::NoDifference, "the same outcome in every run");
        assert_eq!(judge(&one, &[173_000.0; 12]), Judgement::Worse);
    }

    #[test]
    fn lower_times_are_better() {
        assert_eq!(judge(Direction::Lower, known(9.0, 0.1), known(10.0, 0.1), false), Judgement::Better);
        assert_eq!(judge(Direction::Higher, known(9.0, 0.1), known(10.0, 0.1), false), Judgement::Worse);
        assert_eq!((direction_of("s"), direction_of("files/s")), (Direction::Lower, Direction::Higher));
    }

    #[test]
    fn certain_difference_below_half_a_percent_is_no_difference() {
        let rate = |mean: f64| judge(Direction::Higher, known(mean, 0.0), known(1000.0, 0.0), false);
        assert_eq!([rate(1004.9), rate(1005.1), rate(994.0)].map(Judgement::id), ["no_difference", "better", "worse"]);
        assert_eq!(rate(1000.0), Judgement::NoDifference);
    }

    #[test]
    fn half_percent_limit_uses_the_mean_with_less_deviation() {
        // 0.5 % of 2 is less than 0.5 % of 1000. Only the mean with the smaller deviation counts.
        let found = judge(Direction::Higher, known(2.0, 0.001), known(0.0, 1.9), false);
        assert_eq!(found, Judgement::Better);
    }

    #[test]
    fn single_values_within_a_tenth_are_no_difference() {
        let rate = |mean: f64| judge(Direction::Higher, single(mean), single(100.0), false);
        assert_eq!([rate(109.0), rate(111.0), rate(89.0)].map(Judgement::id), ["no_difference", "better", "worse"]);
        // The same rule applies to simulated figures of the row, even if their deviation is small.
        assert_eq!(judge(Direction::Higher, known(105.0, 0.1), known(100.0, 0.1), true), Judgement::NoDifference);
        assert_eq!(judge(Direction::Higher, known(115.0, 0.1), known(100.0, 0.1), true), Judgement::Better);
        assert_eq!(judge(Direction::Higher, known(115.0, 9.0), known(100.0, 9.0), true), Judgement::NoDifference);
    }
}
