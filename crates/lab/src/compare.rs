//! Verdict on a metric of a setting against the baseline: better, worse, equal or cannot tell.
//!
//! Every verdict comes from [`judge`]. This function derives the verdict from the interval that is
//! shown with the verdict. It applies three rules, in this order:
//!
//!  - The settings are *equal* if the whole interval lies within the bound of what matters. The
//!    bound is [`Bounds::equal_within_percent`], but never less than [`Figure::relevant_percent`].
//!    If runs have two [`Outcomes`], the mean is typical of neither outcome. The settings are then
//!    equal only if the difference of every pair of runs lies within the bound.
//!  - One setting is *better* or *worse* if the interval does not contain 0.
//!  - Otherwise the verdict is *cannot tell*: the interval contains 0 and a difference that
//!    matters. [`Comparison::runs_needed`] is the number of runs that would decide.
//!
//! Runs are paired by seed. The interval is the confidence interval of the mean paired difference
//! (Student's t). If the error of the device's model is known, it widens the interval on either
//! side. The level of the interval comes from Holm's procedure for all simultaneous comparisons
//! ([`Comparison::level`]). If two settings are equal, 19 in 20 sets of comparisons find no
//! difference in any metric.
//!
//! With one run there is no interval, so the verdict is *cannot tell*. The data also contain the
//! result of the published rule: two settings differ if the bars of mean ± standard deviation do
//! not touch ([`stat::bars_apart`]). No table shows this result.

use iosched_disk::{Fit, RecordedLoad};
use serde::{Deserialize, Serialize};

use crate::figure::{Direction, Figure};
use crate::number::{grouped, significant};
use crate::record::DeviceRecord;
pub use crate::record::EQUAL_WITHIN_PERCENT;
use crate::stat;

/// Probability of at least one false difference among all simultaneous comparisons.
pub const SIGNIFICANCE: f64 = 0.05;

/// Number of runs of each setting in the published method.
pub const RUNS_PUBLISHED: u32 = 10;
/// Number of runs below which a comparison without a difference is reported as "too few runs".
pub const RUNS_FEW: u32 = 4;
/// Largest number of runs of each setting that iosched recommends.
pub const RUNS_WORTH: u32 = 500;

/// Verdict on the difference of a setting from the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The setting is better than the baseline.
    Better,
    /// The setting is worse than the baseline.
    Worse,
    /// The value is higher than the baseline's. The metric has no better direction.
    More,
    /// The value is lower than the baseline's. The metric has no better direction.
    Less,
    /// The difference is certainly within the bound of what matters.
    Equal,
    /// The runs do not show a difference. They also do not exclude a difference that matters.
    CannotTell,
}

impl Verdict {
    /// Returns the name of the verdict in data.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::More => "more",
            Self::Less => "less",
            Self::Equal => "equal",
            Self::CannotTell => "cannot_tell",
        }
    }

    /// Returns whether the settings certainly differ.
    #[must_use]
    pub const fn differs(self) -> bool {
        !matches!(self, Self::Equal | Self::CannotTell)
    }

    /// Returns the verdict of the reverse comparison: on the baseline, against the setting.
    #[must_use]
    pub const fn turned(self) -> Self {
        match self {
            Self::Better => Self::Worse,
            Self::Worse => Self::Better,
            Self::More => Self::Less,
            Self::Less => Self::More,
            Self::Equal | Self::CannotTell => self,
        }
    }
}

/// Bounds that a verdict depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Largest difference that counts as equal, per cent of the baseline.
    pub equal_within_percent: f64,
    /// Error of the device's model, per cent. It is 0 for a real device, and for a model whose
    /// error was never measured.
    pub model_error_percent: f64,
    /// Error of the ratio of two settings on the device's model, as a factor. The factor is 1 if no
    /// record compares the model with measurements of the device.
    pub model_error_factor: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { equal_within_percent: EQUAL_WITHIN_PERCENT, model_error_percent: 0.0, model_error_factor: 1.0 }
    }
}

impl Bounds {
    /// Returns the bounds for comparisons of a kind of workload on a device. `tail` is true for a
    /// metric that covers only the slowest I/Os.
    #[must_use]
    pub fn on(device: &DeviceRecord, equal_within_percent: f64, tail: bool, load: RecordedLoad) -> Self {
        // Published measurements show the error of the ratio of two settings. This is the error of
        // their difference.
        if let Some(recorded) = device.fit.and_then(|fit| fit.recorded.filter(|_| fit.validated.is_none())) {
            let model_error_factor = recorded.factor(load, tail);
            return Self { equal_within_percent, model_error_percent: 0.0, model_error_factor };
        }
        // An error that is the same for both settings has no effect on the difference. A validated
        // model therefore has a separate error of differences, which takes precedence.
        let error = |fit: Fit| match (fit.validated, tail) {
            (Some(validated), false) => validated.rate_difference_error_percent,
            (Some(validated), true) => validated.tail_difference_error_percent,
            (None, false) => fit.rate_error_percent,
            (None, true) => fit.tail_error_percent,
        };
        let model_error_percent = device.fit.map_or(0.0, error);
        Self { equal_within_percent, model_error_percent, model_error_factor: 1.0 }
    }

    /// Returns the bounds without the error of the model.
    #[must_use]
    pub fn of_exact_model(self) -> Self {
        Self { model_error_percent: 0.0, model_error_factor: 1.0, ..self }
    }

    /// Returns the largest difference, per cent of the baseline, that the error of the model
    /// explains.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        self.model_error_percent + (self.model_error_factor - 1.0) * 100.0
    }

    /// Returns the bound of equality for a metric, per cent. It is at least `figure_percent`, the
    /// resolution of the metric's values.
    #[must_use]
    pub const fn equal_in(&self, figure_percent: f64) -> f64 {
        self.equal_within_percent.max(figure_percent)
    }
}

/// Significance level of the test for two [`Outcomes`]: largest probability of a false alarm.
pub const OUTCOMES_ALARM: f64 = 0.01;
/// Smallest distance of two outcomes, as a multiple of [`Figure::relevant_percent`].
const OUTCOMES_APART: f64 = 4.0;

/// Two groups of runs, with almost no run between the groups ([`stat::groups`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Mean of the lower group.
    pub low: f64,
    /// Mean of the higher group.
    pub high: f64,
    /// Number of runs in the lower group.
    pub runs_low: u32,
    /// Number of runs in both groups.
    pub runs: u32,
}

impl Outcomes {
    /// Finds two groups of runs that are further apart than `apart`. If the runs are a single
    /// group, this test finds two groups in at most 1 of 100 cases ([`OUTCOMES_ALARM`]).
    #[must_use]
    pub fn of(values: &[f64], apart: f64) -> Option<Self> {
        let found = stat::groups(values).filter(|found| found.p < OUTCOMES_ALARM && found.high - found.low > apart)?;
        let (runs_low, runs) = (found.count_low as u32, values.len() as u32);
        Some(Self { low: found.low, high: found.high, runs_low, runs })
    }

    /// Returns the outcomes in words: "285 in 6 of 12 runs, 344,000 in 6".
    #[must_use]
    pub fn describe(&self, unit: &str) -> String {
        let value = |mean: f64| {
            let amount = if mean.abs() >= 1000.0 { grouped(mean.round() as u64) } else { significant(mean, 3) };
            // The name of a rate includes its unit.
            if matches!(unit, "" | "1/s") { amount } else { format!("{amount} {unit}") }
        };
        let Self { low, high, runs_low, runs } = *self;
        format!("{} in {runs_low} of {runs} runs, {} in {}", value(low), value(high), runs - runs_low)
    }
}

/// Returns the smallest distance of two outcomes that matters, per cent.
pub(crate) fn outcomes_apart_percent(figure: Figure, equal_within_percent: f64) -> f64 {
    equal_within_percent.max(figure.relevant_percent() * OUTCOMES_APART)
}

/// Comparison of a metric under one setting with the same metric under another setting, the
/// baseline. A difference is the value minus the baseline's value. Percentages are relative to the
/// mean of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// Mean difference, in the metric's unit.
    pub difference: f64,
    /// Confidence interval of the difference, widened by the model's error; `None` for a single
    /// run.
    pub interval: Option<(f64, f64)>,
    /// Level of the interval: probability that the interval misses the true difference. Holm's
    /// procedure sets the level.
    pub level: f64,
    /// Mean difference, per cent; `None` if the baseline is 0.
    pub percent: Option<f64>,
    /// Confidence interval, per cent.
    pub interval_percent: Option<(f64, f64)>,
    /// Bound of equality that was applied, per cent.
    pub equal_within_percent: f64,
    /// Error of the device's model, per cent. It is 0 for a real device, and for a model whose
    /// error was never measured.
    pub model_error_percent: f64,
    /// Verdict without the model's error. `None` unless the model's error is the only reason for
    /// "cannot tell".
    #[serde(default)]
    pub seen: Option<Verdict>,
    /// Number of runs of each setting.
    #[serde(default)]
    pub runs: u32,
    /// Probability of this difference if the true difference does not exceed the model's error;
    /// `None` for a single run.
    pub p: Option<f64>,
    /// 95 % confidence interval of the difference by the bootstrap, which assumes no distribution;
    /// `None` for a single run.
    pub bootstrap: Option<(f64, f64)>,
    /// p value of the Wilcoxon signed-rank test: probability of ranks that favour one side at least
    /// this much, if there is no difference. `None` for a single run, or if no pair differs.
    pub rank_p: Option<f64>,
    /// For "cannot tell": number of runs of each setting that would decide in 4 of 5 cases. These
    /// runs would either show the difference, or show that it is too small to matter. `None` if the
    /// verdict is clear, or if no number of runs would decide.
    pub runs_needed: Option<u32>,
    /// Two outcomes of the setting, if its runs have two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Outcomes>,
    /// Two outcomes of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_outcomes: Option<Outcomes>,
    /// Result of the published rule: whether the bars of mean ± standard deviation do not touch.
    /// `None` for a single run.
    pub published: Option<bool>,
}

impl Comparison {
    /// Returns whether the verdict is "cannot tell" and the setting may be better by more than the
    /// bound.
    pub(crate) fn may_be_better(&self, direction: Direction) -> bool {
        self.reach(direction).is_some_and(|(good, _)| good > self.equal_within_percent)
    }

    /// Returns whether the verdict is "cannot tell" and the setting may be worse by more than the
    /// bound.
    pub(crate) fn may_be_worse(&self, direction: Direction) -> bool {
        self.reach(direction).is_some_and(|(_, bad)| bad > self.equal_within_percent)
    }

    /// Returns how far the interval of an undecided difference extends to the better side and to
    /// the worse side, per cent.
    fn reach(&self, direction: Direction) -> Option<(f64, f64)> {
        if self.verdict != Verdict::CannotTell {
            return None;
        }
        let (low, high) = self.interval_percent.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        Some(if direction == Direction::Higher { (high, -low) } else { (-low, high) })
    }

    /// Returns the reverse comparison, of the baseline with the setting. `mean` is the mean of the
    /// setting.
    #[must_use]
    pub fn turned(self, mean: f64) -> Self {
        let turn = |(low, high): (f64, f64)| (-high, -low);
        let percent = |part: f64| (mean != 0.0).then(|| part / mean.abs() * 100.0);
        let interval = self.interval.map(turn);
        Self {
            verdict: self.verdict.turned(),
            seen: self.seen.map(Verdict::turned),
            difference: -self.difference,
            interval,
            percent: percent(-self.difference),
            interval_percent: interval.and_then(|(low, high)| percent(low).zip(percent(high))),
            bootstrap: self.bootstrap.map(turn),
            outcomes: self.base_outcomes,
            base_outcomes: self.outcomes,
            ..self
        }
    }
}

/// Values of a metric under two settings, run by run, and the bounds of their verdict.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'v> {
    /// The metric.
    pub figure: Figure,
    /// Values of the setting, one per run.
    pub values: &'v [f64],
    /// Values of the baseline, one per run.
    pub base: &'v [f64],
    /// Bounds of the verdict.
    pub bounds: Bounds,
    /// Whether a conclusion uses this comparison. Holm's procedure corrects these comparisons for
    /// their number. All other comparisons form a separate family, so that their number does not
    /// hide differences in the first family.
    pub concludes: bool,
}

/// Shares of [`SIGNIFICANCE`] for two families: the comparisons that conclusions use, and all other
/// comparisons. Together, both families show a false difference in at most 1 of 20 cases.
const SHARES: [f64; 2] = [0.8, 0.2];

/// Results of all simultaneous comparisons.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Comparisons, in the order of the pairs.
    pub comparisons: Vec<Comparison>,
    /// Levels of further comparisons; see [`Self::level`].
    levels: [f64; 2],
}

impl Judged {
    /// Returns the level for further comparisons of the same settings: the strictest level that
    /// Holm's procedure assigns.
    #[must_use]
    pub const fn level(&self, concludes: bool) -> f64 {
        self.levels[family(concludes)]
    }
}

const fn family(concludes: bool) -> usize {
    if concludes { 0 } else { 1 }
}

/// Compares all `pairs` at once. This is the only source of verdicts.
#[must_use]
pub fn judge(pairs: &[Pair<'_>]) -> Judged {
    let mut levels = [0.0; 2];
    let mut levels_of_pairs: Vec<f64> = vec![SIGNIFICANCE; pairs.len()];
    for concludes in [true, false] {
        let alpha = SIGNIFICANCE * SHARES[family(concludes)];
        let p = |pair: &Pair<'_>| {
            let found = stat::paired(pair.values, pair.base)?;
            Some(found.p(pair.model_error(found.mean)))
        };
        let tests = pairs.iter().enumerate().filter(|(_, pair)| pair.concludes == concludes);
        let (at, p): (Vec<usize>, Vec<f64>) = tests.filter_map(|(at, pair)| Some((at, p(pair)?))).unzip();
        levels[family(concludes)] = alpha / p.len().max(1) as f64;
        for (at, level) in at.into_iter().zip(stat::holm(&p, alpha)) {
            levels_of_pairs[at] = level;
        }
    }
    // If a number of runs is enough at the strictest level, it is enough at every rank of Holm's
    // procedure.
    let comparison = |(pair, level): (&Pair<'_>, f64)| pair.compare_at(level, levels[family(pair.concludes)]);
    Judged { comparisons: pairs.iter().zip(levels_of_pairs).map(comparison).collect(), levels }
}

impl Pair<'_> {
    /// Compares the pair at `level`. Use [`Judged::level`] if there are other comparisons,
    /// otherwise [`SIGNIFICANCE`].
    #[must_use]
    pub fn compare(&self, level: f64) -> Comparison {
        self.compare_at(level, level)
    }

    fn of_base(&self, percent: f64) -> f64 {
        percent / 100.0 * stat::mean(self.base).abs()
    }

    /// Returns the largest difference that the error of the model explains, in the metric's unit.
    /// It has the sign of `difference`. For example, a factor of two explains a rise to twice the
    /// baseline, or a fall to half of it.
    fn model_error(&self, difference: f64) -> f64 {
        let factor =
            if difference < 0.0 { 1.0 / self.bounds.model_error_factor } else { self.bounds.model_error_factor };
        (factor - 1.0).abs() * stat::mean(self.base).abs() + factor * self.of_base(self.bounds.model_error_percent)
    }

    /// Widens an interval of the difference by the error of the model.
    fn widened(&self, (low, high): (f64, f64)) -> (f64, f64) {
        let Bounds { model_error_percent, model_error_factor, .. } = self.bounds;
        let (base, error) = (stat::mean(self.base), self.of_base(model_error_percent));
        // With a factor of 1, the interval stays exactly the same.
        let scaled = |end: f64, factor: f64| if base + end > 0.0 { end * factor + base * (factor - 1.0) } else { end };
        (scaled(low, 1.0 / model_error_factor) - error, scaled(high, model_error_factor) + error)
    }

    /// Compares the pair. `level` is the level of the interval. `hardest` is the level for which
    /// [`Comparison::runs_needed`] is computed.
    fn compare_at(&self, level: f64, hardest: f64) -> Comparison {
        let Pair { figure, values, base, bounds, .. } = *self;
        let base_mean = stat::mean(base);
        let found = stat::paired(values, base);
        let differences = stat::differences(values, base);
        let difference = found.map_or_else(|| stat::mean(values) - base_mean, |found| found.mean);
        let percent = |part: f64| (base_mean != 0.0).then(|| part / base_mean.abs() * 100.0);
        let published = stat::standard_deviation(values)
            .zip(stat::standard_deviation(base))
            .map(|(sd, other)| stat::bars_apart((stat::mean(values), sd), (base_mean, other)));
        // A value that is never negative cannot fall by more than the baseline, even if the runs
        // vary much.
        let is_bounded = values.iter().chain(base).all(|value| *value >= 0.0);
        let least = if is_bounded { -base_mean } else { f64::NEG_INFINITY };
        let model_error = self.model_error(difference);
        let interval = found.map(|found| {
            let (low, high) = self.widened(found.interval(level));
            (low.max(least), high)
        });
        let equal_within_percent = bounds.equal_in(figure.relevant_percent());
        let apart = self.of_base(outcomes_apart_percent(figure, bounds.equal_within_percent));
        let [outcomes, base_outcomes] = [values, base].map(|values| Outcomes::of(values, apart));
        let equal_within = self.of_base(equal_within_percent);
        let is_mixed = || outcomes.or(base_outcomes).or_else(|| Outcomes::of(&differences, equal_within)).is_some();
        let is_always_equal = || differences.iter().all(|difference| difference.abs() <= equal_within);
        let verdict = match interval {
            None => Verdict::CannotTell,
            Some(interval) => match verdict(figure.direction(), interval, equal_within) {
                Verdict::Equal if is_mixed() && !is_always_equal() => Verdict::CannotTell,
                verdict => verdict,
            },
        };
        // More runs cannot turn two outcomes into one outcome.
        let is_mean_equal = |(low, high): (f64, f64)| -equal_within <= low && high <= equal_within;
        let is_untold = outcomes.or(base_outcomes).is_some() || interval.is_some_and(is_mean_equal);
        let cannot_tell = verdict == Verdict::CannotTell;
        let seen = found.filter(|_| cannot_tell && model_error > 0.0).map(|found| found.interval(level));
        let seen = seen.map(|seen| self::verdict(figure.direction(), seen, self.of_base(equal_within_percent)));
        let comparison = Comparison {
            verdict,
            seen: seen.filter(|seen| seen.differs()),
            runs: values.len().min(base.len()) as u32,
            difference,
            interval,
            level,
            percent: percent(difference),
            interval_percent: interval.and_then(|(low, high)| percent(low).zip(percent(high))),
            equal_within_percent,
            model_error_percent: bounds.error_percent(),
            p: found.map(|found| found.p(model_error)),
            bootstrap: stat::bootstrap_interval(&differences),
            rank_p: stat::signed_rank(&differences).filter(|_| found.is_some()),
            runs_needed: None,
            outcomes,
            base_outcomes,
            published,
        };
        let runs_needed = (cannot_tell && !is_untold)
            .then(|| runs_to_tell(&comparison, model_error, values, base, hardest))
            .flatten();
        // The spread of two or three runs is mostly chance. The number of runs that follows from it
        // is therefore not reliable.
        let least = if comparison.runs < RUNS_FEW { RUNS_PUBLISHED } else { 0 };
        Comparison { runs_needed: runs_needed.map(|runs| runs.max(least)), ..comparison }
    }
}

/// Returns the verdict that follows from an interval.
fn verdict(direction: Direction, (low, high): (f64, f64), equal_within: f64) -> Verdict {
    if -equal_within <= low && high <= equal_within {
        return Verdict::Equal;
    }
    if low <= 0.0 && high >= 0.0 {
        return Verdict::CannotTell;
    }
    match (direction, low > 0.0) {
        (Direction::Higher, true) | (Direction::Lower, false) => Verdict::Better,
        (Direction::Higher, false) | (Direction::Lower, true) => Verdict::Worse,
        (Direction::Neither, true) => Verdict::More,
        (Direction::Neither, false) => Verdict::Less,
    }
}

/// Returns the number of runs of each setting that would decide `comparison` in 4 of 5 cases, at
/// the given probability of a false difference. Returns `None` for a single run, and if no number
/// of runs would decide.
fn runs_to_tell(
    comparison: &Comparison,
    model_error: f64,
    values: &[f64],
    base: &[f64],
    significance: f64,
) -> Option<u32> {
    let spread = stat::standard_deviation(&stat::differences(values, base))?;
    let base_mean = stat::mean(base).abs();
    let of_base = |percent: f64| percent / 100.0 * base_mean;
    let size = comparison.difference.abs();
    let largest_error = of_base(comparison.model_error_percent);
    let room = [size - model_error, of_base(comparison.equal_within_percent) - size - largest_error];
    let runs =
        room.into_iter().filter(|room| *room > 0.0).filter_map(|room| stat::runs_needed(room, spread, significance));
    runs.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_numbers::SplitMix64;
    use proptest::prelude::*;

    fn compared(figure: Figure, values: &[f64], base: &[f64]) -> Comparison {
        judged(figure, values, base, Bounds::default())
    }

    fn judged(figure: Figure, values: &[f64], base: &[f64], bounds: Bounds) -> Comparison {
        Pair { figure, values, base, bounds, concludes: true }.compare(SIGNIFICANCE)
    }

    fn within(percent: f64) -> Bounds {
        Bounds { equal_within_percent: percent, ..Bounds::default() }
    }

    #[test]
    fn two_outcomes_with_equal_means_are_not_equal() {
        // The means are equal, and 200 runs make the interval small.
        let base = [100.0; 200];
        let values: Vec<f64> = (0..200).map(|run| if run % 2 == 0 { 88.0 } else { 112.0 }).collect();
        let found = judged(Figure::Finish, &values, &base, within(10.0));
        assert_eq!((found.verdict, found.runs_needed), (Verdict::CannotTell, None), "{found:?}");
        let outcomes = found.outcomes.unwrap();
        assert_eq!(outcomes.describe("s"), "88.0 s in 100 of 200 runs, 112 s in 100");
        assert_eq!((found.base_outcomes, found.turned(100.0).base_outcomes), (None, Some(outcomes)));
        assert_eq!(found.turned(100.0).verdict, Verdict::CannotTell);
    }

    #[test]
    fn two_outcomes_do_not_ask_for_more_runs() {
        // One of the two outcomes is equal to the baseline's value, so the interval contains 0.
        let values: Vec<f64> = (0..12).map(|run| if run % 4 == 0 { 0.6 } else { 175.0 }).collect();
        let found = compared(Figure::Throughput, &values, &[174.0; 12]);
        assert_eq!((found.verdict, found.runs_needed), (Verdict::CannotTell, None), "{found:?}");
        let words = "cannot tell: two outcomes, 0.600 MB/s in 3 of 12 runs, 175 MB/s in 9";
        assert_eq!(found.describe("MB/s"), words);
    }

    #[test]
    fn settings_with_the_same_outcome_in_every_round_are_equal() {
        // The seed decides the outcome. Both settings have the same outcome in each run.
        let base: Vec<f64> = (0..12).map(|run| if run % 2 == 0 { 285.0 } else { 344_000.0 }).collect();
        let values: Vec<f64> = base.iter().map(|value| value * 1.001).collect();
        let found = compared(Figure::Finish, &values, &base);
        assert_eq!(found.verdict, Verdict::Equal, "{found:?}");
        assert!(found.outcomes.is_some() && found.base_outcomes.is_some());
    }

    #[test]
    fn equal_values_are_equal_for_every_metric() {
        for &figure in Figure::ALL {
            for values in [&[1.0, 2.0, 3.0][..], &[5.0; 10], &[0.0, 0.0]] {
                let found = compared(figure, values, values);
                assert_eq!(found.verdict, Verdict::Equal, "{figure:?}");
                assert_eq!((found.difference, found.published), (0.0, Some(false)));
            }
        }
    }

    #[test]
    fn a_known_shift_is_found_with_its_size() {
        let base = [100.0, 104.0, 96.0, 102.0, 98.0];
        let shifted: Vec<f64> = base.iter().map(|value| value * 0.8).collect();
        let found = compared(Figure::SyncP99, &shifted, &base);
        assert_eq!(found.verdict, Verdict::Better);
        assert!((found.percent.unwrap() + 20.0).abs() < 1e-9);
        let (low, high) = found.interval_percent.unwrap();
        assert!(low < -20.0 && -20.0 < high && high < -19.0, "{low} {high}");
        assert_eq!(found.published, Some(true));
        assert_eq!(compared(Figure::Throughput, &shifted, &base).verdict, Verdict::Worse);
        assert_eq!(compared(Figure::Utilisation, &shifted, &base).verdict, Verdict::Less);
    }

    #[test]
    fn the_published_rule_may_disagree_with_the_interval() {
        // Every run is better by 1, but the runs scatter by more than 1.
        let base = [1.0, 5.0, 3.0, 9.0, 7.0];
        let values: Vec<f64> = base.iter().map(|value| value - 1.0).collect();
        let found = compared(Figure::Finish, &values, &base);
        assert_eq!((found.verdict, found.published), (Verdict::Better, Some(false)));
    }

    #[test]
    fn certain_difference_within_the_limit_is_equal() {
        let judged = |figure, value, percent| judged(figure, &[value; 2], &[100.0; 2], within(percent)).verdict;
        assert_eq!(judged(Figure::Finish, 104.9, 5.0), Verdict::Equal);
        assert_eq!(judged(Figure::Finish, 105.1, 5.0), Verdict::Worse);
        assert_eq!(judged(Figure::Finish, 104.9, 1.0), Verdict::Worse);
        // A difference below the resolution of the values is never reported.
        assert_eq!(judged(Figure::Finish, 100.4, 0.1), Verdict::Equal);
        assert_eq!(judged(Figure::Finish, 100.6, 0.1), Verdict::Worse);
        assert_eq!(judged(Figure::SyncP50, 101.6, 0.1), Verdict::Equal);
    }

    #[test]
    fn uncertain_difference_says_how_many_runs_are_needed() {
        let noise = [-30.0, 35.0, -10.0, 20.0, 5.0, -20.0];
        let base = [100.0; 6];
        let around = |shift: f64| noise.map(|noise| 100.0 + shift + noise);
        let found = compared(Figure::SyncP99, &around(10.0), &base);
        assert_eq!(found.verdict, Verdict::CannotTell);
        // According to the tables of the paired t test, a difference of 10 with a deviation of 25
        // needs 51 runs.
        assert!((48..=54).contains(&found.runs_needed.unwrap()), "{found:?}");
        assert!(found.describe("ms").starts_with("cannot tell (-16 to +36 %), needs 5"), "{}", found.describe("ms"));
        // Without a difference, `runs_needed` runs would show that the difference is at most 5 %.
        let found = compared(Figure::SyncP99, &around(0.0), &base);
        assert_eq!(found.verdict, Verdict::CannotTell);
        assert!((185..=215).contains(&found.runs_needed.unwrap()), "{found:?}");
    }

    #[test]
    fn positive_values_decrease_by_at_most_100_percent() {
        let (values, base) = ([10.0, 400.0, 20.0], [900.0, 100.0, 500.0]);
        let found = compared(Figure::Throughput, &values, &base);
        assert_eq!(found.verdict, Verdict::CannotTell);
        let (low, high) = found.interval_percent.unwrap();
        assert!(low == -100.0 && high > 100.0, "{low} {high}");
        assert!(found.describe("").starts_with("too few runs (3)"), "{}", found.describe(""));
        // A value that can be negative can fall by more than the baseline.
        let found = compared(Figure::Throughput, &values.map(|value| value - 100.0), &base);
        assert!(found.interval_percent.unwrap().0 < -100.0, "{found:?}");
    }

    #[test]
    fn verdict_within_the_model_error_is_cannot_tell() {
        let base = [100.0, 101.0, 99.0, 100.5];
        let better = base.map(|value| value * 0.8);
        let off = |percent: f64| Bounds { model_error_percent: percent, ..Bounds::default() };
        assert_eq!(judged(Figure::SyncMean, &better, &base, off(15.0)).verdict, Verdict::Better);
        let found = judged(Figure::SyncMean, &better, &base, off(38.0));
        assert_eq!((found.verdict, found.runs_needed), (Verdict::CannotTell, None));
        assert_eq!(found.seen, Some(Verdict::Better));
        assert_eq!(found.describe("ms"), "cannot tell: -20 % in simulation, the model may be wrong by 38 %");
        // Large differences are printed as multiples. In the last case, `seen` is `None`, because
        // the runs show no difference.
        let sevenfold = base.map(|value| value * 7.1);
        let found = judged(Figure::SyncMean, &sevenfold, &base, off(640.0));
        assert_eq!(found.describe("ms"), "cannot tell: 7.1-fold in simulation, the model may be wrong by 640 %");
        let noisy = [50.0, 150.0, 80.0, 130.0];
        let found = judged(Figure::SyncMean, &noisy, &base, off(640.0));
        assert_eq!((found.verdict, found.seen), (Verdict::CannotTell, None));
        // Equality on an inaccurate model is not certain either.
        assert_eq!(judged(Figure::SyncMean, &base, &base, off(10.0)).verdict, Verdict::CannotTell);
    }

    #[test]
    fn differences_are_in_per_cent_and_large_rises_are_multiples() {
        let description =
            |figure: Figure, values: &[f64], base: &[f64]| compared(figure, values, base).describe(figure.unit());
        assert_eq!(description(Figure::SyncP99, &[8.1, 8.0, 7.9], &[10.0; 3]), "better by 20 % (18 to 22 %)");
        assert_eq!(description(Figure::SyncP99, &[120.0, 120.0], &[10.0, 10.0]), "worse 12-fold");
        assert_eq!(description(Figure::SyncP99, &[32.0, 32.0], &[10.0, 10.0]), "worse 3.2-fold");
        assert_eq!(description(Figure::SyncP99, &[110.0, 130.0, 120.0], &[10.0; 3]), "worse 12-fold (9.5 to 14)");
        assert_eq!(description(Figure::AsyncMean, &[5.0, 5.0], &[0.0, 0.0]), "worse by 5.0 ms");
        assert_eq!(description(Figure::Finish, &[5.0, 5.0], &[5.0, 5.0]), "equal");
        assert_eq!(description(Figure::Finish, &[102.0, 102.2], &[100.0, 100.0]), "equal (+0.83 to +3.4 %)");
    }

    #[test]
    fn uncertain_verdict_of_three_runs_says_too_few_runs() {
        let found = compared(Figure::Finish, &[10.0, 12.0, 9.5], &[10.0, 10.5, 9.0]);
        let runs = found.runs_needed.unwrap();
        assert_eq!((found.verdict, found.runs), (Verdict::CannotTell, 3));
        assert_eq!(found.describe("s"), format!("too few runs (3), needs {runs}"));
        // Three runs can still show a clear difference.
        assert_eq!(compared(Figure::Finish, &[12.0, 12.0, 12.1], &[10.0; 3]).verdict, Verdict::Worse);
    }

    #[test]
    fn one_run_decides_nothing() {
        let found = compared(Figure::Finish, &[5.0], &[10.0]);
        assert_eq!((found.verdict, found.interval, found.published), (Verdict::CannotTell, None, None));
        assert_eq!((found.percent, found.describe("s").as_str()), (Some(-50.0), "too few runs (1)"));
    }

    #[test]
    fn difference_from_zero_has_no_percentage() {
        let found = compared(Figure::AsyncMean, &[5.0, 5.0], &[0.0, 0.0]);
        assert_eq!((found.verdict, found.percent), (Verdict::Worse, None));
    }

    /// Returns the verdict by the rule of docs/method.md, from the displayed values: the interval
    /// and the bound.
    fn expected_verdict(figure: Figure, shown: &Comparison, base: &[f64]) -> Verdict {
        let Some((low, high)) = shown.interval else { return Verdict::CannotTell };
        let matters = shown.equal_within_percent / 100.0 * stat::mean(base).abs();
        let holds_none = low <= 0.0 && 0.0 <= high;
        let holds_what_matters = low < -matters || high > matters;
        let rises = shown.difference > 0.0;
        match (holds_none, holds_what_matters, figure.direction()) {
            (_, false, _) => Verdict::Equal,
            (true, true, _) => Verdict::CannotTell,
            (false, true, Direction::Neither) => {
                if rises {
                    Verdict::More
                } else {
                    Verdict::Less
                }
            }
            (false, true, direction) if rises == (direction == Direction::Higher) => Verdict::Better,
            (false, true, _) => Verdict::Worse,
        }
    }

    fn samples() -> impl Strategy<Value = Vec<(Vec<f64>, Vec<f64>)>> {
        // Means, shifts and noise of very different sizes, with one run or a few runs.
        let sample = (1..12usize, -2.0..4.0f64, 0.2..3.0f64, -4.0..0.3f64, any::<u64>(), any::<bool>());
        let samples = sample.prop_map(|(runs, size, shift, noise, seed, exact)| {
            let (size, noise) = (10f64.powf(size), if exact { 0.0 } else { 10f64.powf(noise) });
            let mut rng = SplitMix64::new(seed);
            let mut around = |mean: f64| (0..runs).map(|_| mean * (1.0 + noise * (rng.unit() - 0.5))).collect();
            (around(size * shift), around(size))
        });
        proptest::collection::vec(samples, 1..24)
    }

    proptest! {
        #[test]
        fn verdict_agrees_with_its_interval(
            samples in samples(),
            equal_within_percent in prop_oneof![Just(0.01), Just(5.0), Just(100.0)],
            model_error_percent in prop_oneof![Just(0.0), Just(7.5), Just(400.0)],
            model_error_factor in prop_oneof![Just(1.0), Just(1.2), Just(4.0)],
            concluding in 0..24usize,
        ) {
            let bounds = Bounds { equal_within_percent, model_error_percent, model_error_factor };
            let pair = |(at, (values, base)): (usize, &'_ (Vec<f64>, Vec<f64>))| {
                let figure = Figure::ALL[at % Figure::ALL.len()];
                (figure, values.clone(), base.clone(), at < concluding)
            };
            let owned: Vec<_> = samples.iter().enumerate().map(pair).collect();
            let pairs: Vec<Pair<'_>> = owned
                .iter()
                .map(|(figure, values, base, concludes)| Pair { figure: *figure, values, base, bounds, concludes: *concludes })
                .collect();
            let judged = judge(&pairs);
            prop_assert_eq!(judged.comparisons.len(), pairs.len());
            for (pair, shown) in pairs.iter().zip(&judged.comparisons) {
                prop_assert_eq!(shown.verdict, expected_verdict(pair.figure, shown, pair.base), "{:?}", shown);
                prop_assert!(shown.interval.is_none_or(|(low, high)| low <= shown.difference && shown.difference <= high));
                // The displayed interval is at least as wide as the interval without any other
                // comparisons.
                let alone = pair.compare(SIGNIFICANCE);
                prop_assert!(alone.interval.is_none_or(|(low, _)| shown.interval.is_some_and(|interval| interval.0 <= low)));
            }
            // Holm's rule: a comparison shows a difference only if all comparisons with a smaller p
            // also show a difference.
            for concludes in [true, false] {
                let mut family: Vec<&Comparison> = pairs
                    .iter()
                    .zip(&judged.comparisons)
                    .filter(|(pair, comparison)| pair.concludes == concludes && comparison.p.is_some())
                    .map(|(_, comparison)| comparison)
                    .collect();
                family.sort_by(|a, b| a.p.partial_cmp(&b.p).unwrap());
                let holds_none = |comparison: &&Comparison| comparison.interval.is_some_and(|(low, high)| low <= 0.0 && high >= 0.0);
                let first = family.iter().position(holds_none).unwrap_or(family.len());
                // If p equals the level up to rounding, either result is correct.
                let near = |comparison: &Comparison| comparison.p.is_some_and(|p| (p / comparison.level - 1.0).abs() < 1e-6);
                let in_order = family[first..].iter().all(holds_none) || family.iter().any(|comparison| near(comparison));
                prop_assert!(in_order);
                prop_assert!(family.iter().all(|comparison| comparison.level >= judged.level(concludes)));
            }
        }
    }

    #[test]
    fn model_error_factor_applies_in_both_directions() {
        let base = [100.0, 101.0, 99.0, 100.0, 100.0];
        let twice = Bounds { model_error_factor: 2.0, ..Bounds::default() };
        let verdict = |times: f64| {
            let values: Vec<f64> = base.iter().map(|value| value * times).collect();
            judged(Figure::SyncP99, &values, &base, twice)
        };
        // A difference below the factor of the model's error has no winner, in either direction.
        for times in [0.52, 0.7, 1.0, 1.4, 1.9] {
            assert_eq!(verdict(times).verdict, Verdict::CannotTell, "{times}");
        }
        assert_eq!((verdict(0.45).verdict, verdict(2.2).verdict), (Verdict::Better, Verdict::Worse));
        let (low, high) = verdict(1.0).interval_percent.unwrap();
        assert!((low + 50.0).abs() < 2.0 && (high - 100.0).abs() < 3.0, "{low} {high}");
        assert_eq!(verdict(1.4).model_error_percent, 100.0);
        assert_eq!(verdict(1.4).seen, Some(Verdict::Worse));
    }

    #[test]
    fn many_comparisons_make_a_single_difference_uncertain() {
        // Alone, the difference is significant (p is 0.02). Among 20 other comparisons it is not
        // significant, and its interval contains 0.
        let (values, base) = ([8.0, 9.0, 7.6, 9.4, 8.6], [10.0; 5]);
        let odd =
            Pair { figure: Figure::SyncP99, values: &values, base: &base, bounds: Bounds::default(), concludes: true };
        assert_eq!(odd.compare(SIGNIFICANCE).verdict, Verdict::Better);
        let noise = [10.0, 13.0, 8.0, 9.5, 11.0];
        let others = [Pair { values: &noise, ..odd }; 20];
        let found = judge(&[&[odd][..], &others].concat()).comparisons[0];
        let (low, high) = found.interval_percent.unwrap();
        assert_eq!(found.verdict, Verdict::CannotTell);
        assert!(low < -5.0 && high > 0.0, "{found:?}");
    }
}
