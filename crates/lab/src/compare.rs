//! The verdict on one figure of one setting against the baseline.
//!
//! The rule: runs are paired by seed, and the 95 % confidence interval of the mean paired difference (Student's t) is
//! taken. A difference counts if the interval does not hold 0 *and* the mean difference is at least
//! [`Figure::relevant_percent`] of the baseline's mean; else the verdict is *no difference*. With one run there is no
//! interval and no verdict. Of a real device, where chance is not ours, a difference must also stand among all that are looked at
//! together (Holm): of two equal settings, 19 comparisons in 20 then find no difference in any figure. Beside it stands the published rule: two settings differ where the bars of
//! mean ± standard deviation do not touch ([`stat::bars_apart`]).

use serde::{Deserialize, Serialize};

use crate::figure::{Direction, Figure};
use crate::stat;

/// Probability of a false "differs" that one comparison takes.
pub const SIGNIFICANCE: f64 = 0.05;

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better than the baseline.
    Better,
    /// Worse.
    Worse,
    /// More, of a figure that is neither better nor worse for it.
    More,
    /// Less, of such a figure.
    Less,
    /// None that is sure and worth speaking of.
    NoDifference,
    /// Too few runs to say.
    Undecided,
}

impl Verdict {
    /// Its name in data.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::More => "more",
            Self::Less => "less",
            Self::NoDifference => "no_difference",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the settings differ.
    #[must_use]
    pub const fn differs(self) -> bool {
        !matches!(self, Self::NoDifference | Self::Undecided)
    }
}

/// A figure under one setting against the same under another. Differences are value minus baseline; per cents are of
/// the baseline's mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// Mean difference, in the figure's unit.
    pub difference: f64,
    /// The 95 % confidence interval of the difference; `None` of a single run.
    pub interval: Option<(f64, f64)>,
    /// Mean difference in per cent; `None` if the baseline is 0.
    pub percent: Option<f64>,
    /// The interval in per cent.
    pub interval_percent: Option<(f64, f64)>,
    /// Probability of such a difference if there were none; `None` of a single run.
    pub p: Option<f64>,
    /// The 95 % confidence interval of the difference by the bootstrap, which assumes no shape; `None` of a single run.
    pub bootstrap: Option<(f64, f64)>,
    /// Probability of differences as one-sided if there were none, by their ranks (Wilcoxon); `None` if no pair differs.
    pub rank_p: Option<f64>,
    /// Runs of each setting that would find a difference of this size 4 times in 5; `None` where no number would.
    pub runs_needed: Option<u32>,
    /// The published rule: the difference of the means is outside the standard deviations. `None` of a single run.
    pub published: Option<bool>,
    /// Whether the difference stays significant among all comparisons made at once (Holm).
    pub survives_all: bool,
}

/// Compares `values` with `base`, run by run.
#[must_use]
pub fn compare(figure: Figure, values: &[f64], base: &[f64]) -> Comparison {
    let base_mean = stat::mean(base);
    let found = stat::paired(values, base);
    let differences = stat::differences(values, base);
    let spread = stat::standard_deviation(&differences);
    let difference = found.map_or_else(|| stat::mean(values) - base_mean, |found| found.mean);
    let percent = |part: f64| (base_mean != 0.0).then(|| part / base_mean.abs() * 100.0);
    let published = stat::standard_deviation(values)
        .zip(stat::standard_deviation(base))
        .map(|(own, other)| stat::bars_apart((stat::mean(values), own), (base_mean, other)));
    let verdict = match found {
        None => Verdict::Undecided,
        Some(found) if found.low <= 0.0 && found.high >= 0.0 => Verdict::NoDifference,
        Some(_) if percent(difference).is_some_and(|p| p.abs() < figure.relevant_percent()) => Verdict::NoDifference,
        Some(_) => match (figure.direction(), difference > 0.0) {
            (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
            (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
            (Direction::Neither, true) => Verdict::More,
            (Direction::Neither, false) => Verdict::Less,
        },
    };
    let interval = found.map(|found| (found.low, found.high));
    Comparison {
        verdict,
        difference,
        interval,
        percent: percent(difference),
        interval_percent: interval.and_then(|(low, high)| percent(low).zip(percent(high))),
        p: found.map(|found| found.p),
        bootstrap: stat::bootstrap_interval(&differences),
        rank_p: stat::signed_rank(&differences).filter(|_| found.is_some()),
        runs_needed: spread.and_then(|spread| stat::runs_needed(difference, spread)),
        published,
        survives_all: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_do_not_differ_in_any_figure() {
        for &figure in Figure::ALL {
            for values in [&[1.0, 2.0, 3.0][..], &[5.0; 10], &[0.0, 0.0]] {
                let found = compare(figure, values, values);
                assert_eq!(found.verdict, Verdict::NoDifference, "{figure:?}");
                assert_eq!((found.difference, found.published), (0.0, Some(false)));
            }
        }
    }

    #[test]
    fn a_known_shift_is_found_with_its_size() {
        let base = [100.0, 104.0, 96.0, 102.0, 98.0];
        let shifted: Vec<f64> = base.iter().map(|value| value * 0.8).collect();
        let found = compare(Figure::SyncP99, &shifted, &base);
        assert_eq!(found.verdict, Verdict::Better);
        assert!((found.percent.unwrap() + 20.0).abs() < 1e-9);
        let (low, high) = found.interval_percent.unwrap();
        assert!(low < -20.0 && -20.0 < high && high < -19.0, "{low} {high}");
        assert_eq!(found.published, Some(true));
        assert_eq!(compare(Figure::Throughput, &shifted, &base).verdict, Verdict::Worse);
        assert_eq!(compare(Figure::Utilisation, &shifted, &base).verdict, Verdict::Less);
    }

    #[test]
    fn the_published_rule_may_disagree_with_the_interval() {
        // Every run is better by one, but runs differ among each other by more.
        let base = [10.0, 50.0, 30.0, 90.0, 70.0];
        let values: Vec<f64> = base.iter().map(|value| value - 1.0).collect();
        let found = compare(Figure::Finish, &values, &base);
        assert_eq!((found.verdict, found.published), (Verdict::Better, Some(false)));
    }

    #[test]
    fn what_is_sure_but_too_small_is_no_difference() {
        let found = compare(Figure::Finish, &[100.4, 100.4], &[100.0, 100.0]);
        assert_eq!(found.verdict, Verdict::NoDifference);
        assert_eq!(compare(Figure::Finish, &[100.6, 100.6], &[100.0, 100.0]).verdict, Verdict::Worse);
        assert_eq!(compare(Figure::SyncP50, &[101.6, 101.6], &[100.0, 100.0]).verdict, Verdict::NoDifference);
    }

    #[test]
    fn differences_are_told_in_per_cent_and_great_rises_as_multiples() {
        let told = |figure: Figure, values: &[f64], base: &[f64]| compare(figure, values, base).describe(figure.unit());
        assert_eq!(told(Figure::SyncP99, &[8.1, 8.0, 7.9], &[10.0; 3]), "better by 20 % (18 to 22 %)");
        assert_eq!(told(Figure::SyncP99, &[120.0, 120.0], &[10.0, 10.0]), "worse 12-fold");
        assert_eq!(told(Figure::SyncP99, &[110.0, 130.0, 120.0], &[10.0; 3]), "worse 12-fold (9.5 to 14)");
        assert_eq!(told(Figure::AsyncMean, &[5.0, 5.0], &[0.0, 0.0]), "worse by 5.0 ms");
        assert_eq!(told(Figure::Finish, &[5.0, 5.0], &[5.0, 5.0]), "no difference");
    }

    #[test]
    fn one_run_decides_nothing() {
        let found = compare(Figure::Finish, &[5.0], &[10.0]);
        assert_eq!((found.verdict, found.interval, found.published), (Verdict::Undecided, None, None));
        assert_eq!(found.percent, Some(-50.0));
    }

    #[test]
    fn against_nothing_there_is_no_percentage() {
        let found = compare(Figure::AsyncMean, &[5.0, 5.0], &[0.0, 0.0]);
        assert_eq!((found.verdict, found.percent), (Verdict::Worse, None));
    }
}
