//! Statistics of small samples: mean, deviation, certainty of a difference, and signs of unusual
//! samples.

mod bootstrap;
mod groups;
mod power;
mod rank;

pub use bootstrap::bootstrap_interval;
pub use groups::{Groups, groups};
pub use power::runs_needed;
pub use rank::{Trend, signed_rank, trend};

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the arithmetic mean, or 0 without values.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Returns the standard deviation of a sample (n - 1 in the denominator), or
/// `None` for fewer than two values.
///
/// For equal values, the result is exactly 0.
#[must_use]
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let (&first, rest) = values.split_first()?;
    if rest.is_empty() {
        return None;
    }
    if rest.iter().all(|&value| value == first) {
        return Some(0.0);
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns whether two means differ by the rule of the published experiments: their distance
/// exceeds the sum of their standard deviations. In other words, the ranges from mean - deviation
/// to mean + deviation do not touch.
#[must_use]
pub fn bars_apart((mean, sd): (f64, f64), (other, other_sd): (f64, f64)) -> bool {
    (mean - other).abs() > sd + other_sd
}

/// Returns Student's t with `freedom` degrees of freedom, or `None` if `freedom` is not above 0.
fn students_t(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

/// A difference of means, and its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The difference.
    pub mean: f64,
    /// Standard error of the difference. 0 if the difference is exact.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
}

impl Difference {
    /// Returns the confidence interval. It misses the true difference with the probability `level`.
    #[must_use]
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let half = match students_t(self.freedom) {
            _ if self.error == 0.0 => 0.0,
            Some(t) => t.inverse_cdf(1.0 - level / 2.0) * self.error,
            None => f64::INFINITY,
        };
        (self.mean - half, self.mean + half)
    }

    /// Returns the two-sided probability of a difference of at least this size, if the true
    /// difference is at most `within`. The probability is at most `level` exactly if
    /// [`Self::interval`], widened by `within` on either side, does not contain 0.
    #[must_use]
    pub fn p(&self, within: f64) -> f64 {
        let beyond = self.mean.abs() - within;
        match students_t(self.freedom) {
            _ if beyond <= 0.0 => 1.0,
            _ if self.error == 0.0 => 0.0,
            Some(t) => (2.0 * t.sf(beyond / self.error)).min(1.0),
            None => 1.0,
        }
    }
}

/// Returns `values[i] - base[i]` for every pair.
#[must_use]
pub fn differences(values: &[f64], base: &[f64]) -> Vec<f64> {
    values.iter().zip(base).map(|(value, base)| value - base).collect()
}

/// Returns the mean of `values[i] - base[i]`. Random effects that are the same for both values of a
/// pair cancel out. Returns `None` for fewer than two pairs.
#[must_use]
pub fn paired(values: &[f64], base: &[f64]) -> Option<Difference> {
    let differences = differences(values, base);
    let error = standard_deviation(&differences)? / (differences.len() as f64).sqrt();
    Some(Difference { mean: mean(&differences), error, freedom: (differences.len() - 1) as f64 })
}

/// Returns the difference of the means of two independent samples (Welch). Returns `None` if a
/// sample has fewer than two values.
#[must_use]
pub fn unpaired(values: &[f64], base: &[f64]) -> Option<Difference> {
    let part = |sample: &[f64]| Some(standard_deviation(sample)?.powi(2) / sample.len() as f64);
    let (a, b) = (part(values)?, part(base)?);
    let error = (a + b).sqrt();
    let freedom = (a + b).powi(2) / (a * a / (values.len() - 1) as f64 + b * b / (base.len() - 1) as f64);
    Some(Difference { mean: mean(values) - mean(base), error, freedom })
}

/// Returns the smallest of `values` with this property: at least the share `share` (0 to 1) of the
/// values are at most this value. Returns `None` without values.
#[must_use]
pub fn covering(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let covered = (values.len() as f64 * share).ceil() as usize;
    values.get(covered.saturating_sub(1)).copied()
}

/// Returns the level at which Holm's procedure decides each of several tests. A test finds a
/// difference if its `p` is at most this level. The probability that any of the tests finds a false
/// difference is at most `alpha`.
#[must_use]
pub fn holm(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]).then(a.cmp(&b)));
    let level = |rank: usize| alpha / (p.len() - rank) as f64;
    // If one test finds no difference, no test with a larger `p` finds a difference.
    let found = order.iter().enumerate().take_while(|&(rank, &test)| p[test] <= level(rank)).count();
    let mut levels = vec![0.0; p.len()];
    for (rank, &test) in order.iter().enumerate() {
        levels[test] = level(rank.min(found));
    }
    levels
}

/// Returns Jain's fairness index: 1 if all values are equal, 1/n if only one is not 0. Returns
/// `None` for fewer than two values, or if all are 0.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if values.len() < 2 || squares == 0.0 {
        return None;
    }
    let sum: f64 = values.iter().sum();
    Some(sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use proptest::prelude::*;

    /// Returns values of the standard normal distribution.
    pub(super) fn normal_sample(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = SplitMix64::entity(seed, 1);
        (0..count).map(|_| groups::normal(&mut rng)).collect()
    }

    #[track_caller]
    pub(super) fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1e-3), "{found}, expected {expected}");
    }

    #[test]
    fn the_covering_value_covers_at_least_the_given_share() {
        let values = vec![4.0, 1.0, 5.0, 2.0, 3.0];
        assert_eq!(
            [0.0, 0.2, 0.7, 0.8, 0.81, 1.0].map(|share| covering(values.clone(), share).unwrap()),
            [1.0, 1.0, 4.0, 4.0, 5.0, 5.0]
        );
        assert_eq!(covering(Vec::new(), 0.5), None);
    }

    #[test]
    fn mean_and_deviation_match_manual_calculation() {
        // Sum 40, squares of the deviations 9+1+1+1+0+0+4+16 = 32.
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        close(mean(&values), 5.0);
        close(standard_deviation(&values).unwrap(), (32.0f64 / 7.0).sqrt());
        assert_eq!(standard_deviation(&[3.0]), None);
        assert_eq!(standard_deviation(&[0.1, 0.1, 0.1]), Some(0.0));
    }

    #[test]
    fn t_quantiles_match_published_tables() {
        let quantile = |freedom| students_t(freedom).unwrap().inverse_cdf(0.975);
        for (freedom, expected) in [(1.0, 12.706_205), (2.0, 4.302_653), (9.0, 2.262_157), (29.0, 2.045_230)] {
            close(quantile(freedom), expected);
        }
    }

    #[test]
    fn paired_differences_match_manual_calculation() {
        // Differences 1, 2, 3: mean 2, deviation 1, error 1/sqrt 3; t(0.975, 2) = 4.302653.
        let found = paired(&[11.0, 22.0, 33.0], &[10.0, 20.0, 30.0]).unwrap();
        close(found.mean, 2.0);
        let (low, high) = found.interval(0.05);
        close(low, 2.0 - 4.302_653 / 3f64.sqrt());
        close(high, 2.0 + 4.302_653 / 3f64.sqrt());
        // t = 2 sqrt 3 = 3.4641 with 2 degrees: p = 1 - t / sqrt(2 + t^2) = 1 - sqrt(12/14).
        close(found.p(0.0), 1.0 - (12.0f64 / 14.0).sqrt());
        // If the true difference may be up to 1, t is half as large.
        close(found.p(1.0), 1.0 - (3.0f64 / 5.0).sqrt());
        assert_eq!(found.p(2.0), 1.0);
    }

    #[test]
    fn welch_intervals_match_manual_calculation() {
        // Equal deviations 1 and sizes 3: error sqrt(2/3), 4 degrees, t(0.975, 4) = 2.776445.
        let found = unpaired(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
        close(found.mean, 3.0);
        close(found.interval(0.05).1 - found.mean, 2.776_445 * (2.0f64 / 3.0).sqrt());
    }

    #[test]
    fn without_variance_a_difference_is_exact() {
        let [same, apart] = [2.0, 5.0].map(|value| paired(&[value; 4], &[2.0; 4]).unwrap());
        assert_eq!((same.interval(0.05), same.p(0.0)), ((0.0, 0.0), 1.0));
        assert_eq!((apart.interval(0.05), apart.p(0.0), apart.p(3.0)), ((3.0, 3.0), 0.0, 1.0));
        assert_eq!(paired(&[5.0], &[2.0]), None);
    }

    #[test]
    fn pairing_detects_a_difference_that_unpaired_tests_miss() {
        // The random effect on a run (tens) is much larger than the effect of the setting (ones).
        let base = [10.0, 50.0, 30.0, 90.0, 70.0, 20.0];
        let noise = [0.1, -0.1, 0.2, -0.2, 0.0, 0.1];
        let values: Vec<f64> = base.iter().zip(noise).map(|(base, noise)| base + 1.0 + noise).collect();
        let (together, apart) = (paired(&values, &base).unwrap(), unpaired(&values, &base).unwrap());
        let [together, apart] = [together, apart].map(|found| found.interval(0.05));
        assert!(together.0 > 0.8 && together.1 < 1.3, "{together:?}");
        assert!(apart.0 < 0.0 && apart.1 > 0.0, "{apart:?}");
    }

    #[test]
    fn touching_error_bars_do_not_differ() {
        assert!(!bars_apart((10.0, 1.0), (12.0, 1.0)));
        assert!(bars_apart((10.0, 1.0), (12.0, 0.9)));
        assert!(!bars_apart((5.0, 0.0), (5.0, 0.0)));
        // Published: 76935.90 and 86134.50 KB/s; 443.20 and 454.10 s.
        assert!(bars_apart((76_935.9, 406.46), (86_134.5, 123.38)));
        assert!(!bars_apart((443.2, 7.69), (454.1, 5.58)));
    }

    #[test]
    fn holm_levels_match_manual_calculation() {
        // Sorted: 0.01 <= 0.05/4, 0.016 <= 0.05/3, 0.03 > 0.05/2. The last test then finds no
        // difference either.
        assert_eq!(holm(&[0.04, 0.01, 0.03, 0.016], 0.05), [0.05 / 2.0, 0.05 / 4.0, 0.05 / 2.0, 0.05 / 3.0]);
        assert_eq!(holm(&[], 0.05), [] as [f64; 0]);
    }

    #[test]
    fn jain_index_matches_manual_calculation() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1 + 2 + 3)^2 / (3 * 14).
        close(jain(&[1.0, 2.0, 3.0]).unwrap(), 36.0 / 42.0);
        assert_eq!(jain(&[1.0]), None);
    }

    proptest! {
        #[test]
        fn intervals_contain_the_mean_and_mirror_when_negated(
            pairs in proptest::collection::vec((-1e6..1e6f64, -1e6..1e6f64), 2..30),
            level in 1e-4..0.2f64,
            within in 0.0..1e6f64,
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (there, back) = (paired(&a, &b).unwrap(), paired(&b, &a).unwrap());
            let (low, high) = there.interval(level);
            prop_assert!(low <= there.mean && there.mean <= high);
            prop_assert!((low + back.interval(level).1).abs() <= 1e-9 * low.abs().max(1.0));
            // The widened interval contains 0 exactly if chance and `within` together can explain
            // the difference.
            let p = there.p(within);
            prop_assert!((0.0..=1.0).contains(&p));
            if (p / level - 1.0).abs() > 1e-4 {
                prop_assert_eq!(low - within <= 0.0 && high + within >= 0.0, p > level);
            }
        }
    }
}
