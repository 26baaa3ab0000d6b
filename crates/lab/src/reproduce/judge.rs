//! Which of two settings is better: the method of the first document, for published figures and ours alike.
//!
//! Two settings differ only where the difference of the means is outside the standard deviations: the bars from mean -
//! deviation to mean + deviation do not touch ([`bars_apart`]). Beyond that:
//!  - Simulated runs have less noise than real ones, so a difference must also be worth speaking of: at least
//!    [`RELEVANT_SHARE`] of the mean that is known better. Published figures with deviations all are.
//!  - A figure of which no deviation is printed, most often of a single run, is taken to be known to a tenth
//!    ([`NOISE_SHARE`]): smaller differences are none. Where the published figures of a row are such, ours of that row are
//!    judged likewise, so that both verdicts mean the same.

use serde::{Deserialize, Serialize};

use crate::figure::Direction;
use crate::stat::bars_apart;

/// Smallest difference that is worth a verdict, of the mean that is known better.
pub const RELEVANT_SHARE: f64 = 0.005;
/// What a figure without a deviation is known to: smaller differences are none.
pub const NOISE_SHARE: f64 = 0.1;

/// What the documents' method says of a setting against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Better than the baseline.
    Better,
    /// Worse.
    Worse,
    /// More, of a figure that is neither better nor worse for it.
    More,
    /// Less, of such a figure.
    Less,
    /// The bars touch, or the difference is not worth speaking of.
    NoDifference,
}

impl Judgement {
    /// Its name in data.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::More => "more",
            Self::Less => "less",
            Self::NoDifference => "no_difference",
        }
    }
}

/// A figure as it is known: of several runs, or of one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; `None` if it is not told, or of a single run.
    pub sd: Option<f64>,
}

/// Compares a setting with the baseline. `single`: as figures of single runs, whatever deviations are known.
#[must_use]
pub fn judge(direction: Direction, own: Known, base: Known, single: bool) -> Judgement {
    let difference = own.mean - base.mean;
    let (touching, least) = match (own.sd, base.sd) {
        (Some(own_sd), Some(base_sd)) => {
            let better_known = if own_sd < base_sd { own.mean } else { base.mean };
            (!bars_apart((own.mean, own_sd), (base.mean, base_sd)), RELEVANT_SHARE * better_known.abs())
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

/// Which way a figure of that unit is better: times and shares of waiting are better the lower, rates the higher.
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
    fn settings_differ_where_the_bars_do_not_touch() {
        let rate = |own, base| judge(Direction::Higher, own, base, false);
        // As published: random write of 4 MiB, and of 1 MiB; backwards read; file creation.
        assert_eq!(rate(known(86_134.5, 123.38), known(76_935.9, 406.46)), Judgement::Better);
        assert_eq!(rate(known(68_563.1, 498.1), known(66_683.5, 445.16)), Judgement::Better);
        assert_eq!(rate(known(75_570.9, 91.59), known(75_419.5, 135.84)), Judgement::NoDifference);
        assert_eq!(rate(known(1013.7, 11.42), known(1029.1, 15.21)), Judgement::NoDifference);
    }

    #[test]
    fn a_time_is_better_the_lower() {
        assert_eq!(judge(Direction::Lower, known(9.0, 0.1), known(10.0, 0.1), false), Judgement::Better);
        assert_eq!(judge(Direction::Higher, known(9.0, 0.1), known(10.0, 0.1), false), Judgement::Worse);
        assert_eq!((direction_of("s"), direction_of("files/s")), (Direction::Lower, Direction::Higher));
    }

    #[test]
    fn sure_difference_below_half_a_percent_counts_as_none() {
        let rate = |own: f64| judge(Direction::Higher, known(own, 0.0), known(1000.0, 0.0), false);
        assert_eq!([rate(1004.9), rate(1005.1), rate(994.0)].map(Judgement::id), ["no_difference", "better", "worse"]);
        assert_eq!(rate(1000.0), Judgement::NoDifference);
    }

    #[test]
    fn the_half_percent_is_of_the_mean_that_is_known_better() {
        // 0.5 % of 2 is less than 0.5 % of 1000; only the better known one counts.
        let found = judge(Direction::Higher, known(2.0, 0.001), known(0.0, 1.9), false);
        assert_eq!(found, Judgement::Better);
    }

    #[test]
    fn single_figures_are_known_to_a_tenth() {
        let rate = |own: f64| judge(Direction::Higher, single(own), single(100.0), false);
        assert_eq!([rate(109.0), rate(111.0), rate(89.0)].map(Judgement::id), ["no_difference", "better", "worse"]);
        // Ours beside them likewise, however sure we are.
        assert_eq!(judge(Direction::Higher, known(105.0, 0.1), known(100.0, 0.1), true), Judgement::NoDifference);
        assert_eq!(judge(Direction::Higher, known(115.0, 0.1), known(100.0, 0.1), true), Judgement::Better);
        assert_eq!(judge(Direction::Higher, known(115.0, 9.0), known(100.0, 9.0), true), Judgement::NoDifference);
    }
}
