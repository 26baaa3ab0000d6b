//! Detection of two groups of values. The mean of both groups together is not typical of any run.
//!
//! The test splits the values at the place where the variance between the two parts is the largest
//! share of the whole variance. It compares this share with the shares of random samples of one
//! group. There are four kinds of such samples: normal, uniform, exponential and log-normal. The
//! kind whose samples look most like two groups determines the result. If the values are one group
//! of any of these kinds, `p` is below 0.01 in at most 1 of 100 samples.

use crate::SplitMix64;

use super::mean;

/// Least number of values for a test.
const VALUES_MIN: usize = 6;
/// Least share of the variance that must be between the two groups. Such groups hardly overlap. The
/// best split of one normal group has a share of 0.64.
const BETWEEN_MIN: f64 = 0.8;
/// Number of random samples of one group, of each kind, for the comparison.
const SAMPLES: u32 = 999;
/// Kinds of groups. Each function creates a value from the random numbers.
const KINDS: [fn(&mut SplitMix64) -> f64; 4] =
    [normal, SplitMix64::unit, |rng| -(1.0 - rng.unit()).ln(), |rng| normal(rng).exp()];
/// Seed of the samples. It is fixed, so that the same values give the same answer.
const SEED: u64 = 0x2_6709;

/// Division of a sample into two groups of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Groups {
    /// Mean of the lower group.
    pub low: f64,
    /// Mean of the higher group.
    pub high: f64,
    /// Number of values in the lower group.
    pub count_low: usize,
    /// Probability that a random sample of one group looks at least as much like two groups. It is
    /// the largest of the probabilities of the four kinds of samples.
    pub p: f64,
}

/// Splits values into the two most compact groups. Returns `None` for fewer than 6 values, or if
/// the groups overlap. A group has at least a fifth of the values, and at least two values. Fewer
/// values are outliers, not a group.
#[must_use]
pub fn groups(values: &[f64]) -> Option<Groups> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (at, explained) = split(&sorted).filter(|&(_, explained)| explained >= BETWEEN_MIN)?;
    let mut sample = vec![0.0; values.len()];
    let mut alike = |value: &fn(&mut SplitMix64) -> f64| {
        let mut rng = SplitMix64::new(SEED);
        let looks_alike = (0..SAMPLES).filter(|_| {
            sample.iter_mut().for_each(|drawn| *drawn = value(&mut rng));
            sample.sort_by(f64::total_cmp);
            split(&sample).is_some_and(|(_, other)| other >= explained)
        });
        looks_alike.count()
    };
    let most = KINDS.iter().map(&mut alike).max().unwrap_or(0);
    let p = (most + 1) as f64 / f64::from(SAMPLES + 1);
    Some(Groups { low: mean(&sorted[..at]), high: mean(&sorted[at..]), count_low: at, p })
}

/// Returns the index at which the second group begins, and the share of the
/// variance between the groups. Returns `None` if there is no split.
fn split(sorted: &[f64]) -> Option<(usize, f64)> {
    let n = sorted.len();
    let least = (n / 5).max(2);
    let middle = mean(sorted);
    let total: f64 = sorted.iter().map(|value| (value - middle).powi(2)).sum();
    if total == 0.0 {
        return None;
    }
    let mut below: f64 = sorted[..least].iter().map(|value| value - middle).sum();
    let mut best = (least, 0.0);
    for (at, next) in sorted.iter().enumerate().take(n - least + 1).skip(least) {
        let between = below * below * n as f64 / (at as f64 * (n - at) as f64 * total);
        if between > best.1 {
            best = (at, between);
        }
        below += next - middle;
    }
    Some(best)
}

/// Returns a random number of the standard normal distribution (Box and Muller's method).
pub(super) fn normal(rng: &mut SplitMix64) -> f64 {
    let (radius, angle) = ((-2.0 * (1.0 - rng.unit()).ln()).sqrt(), std::f64::consts::TAU * rng.unit());
    radius * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::normal_sample;

    #[test]
    fn two_groups_are_found_with_their_means() {
        let noise = normal_sample(1, 20);
        let values: Vec<f64> =
            noise.iter().enumerate().map(|(i, v)| v + if i % 3 == 0 { 100.0 } else { 88.0 }).collect();
        let found = groups(&values).unwrap();
        assert!(found.p <= 0.001 && found.count_low == 13, "{found:?}");
        assert!((87.0..89.0).contains(&found.low) && (99.0..101.0).contains(&found.high), "{found:?}");
    }

    #[test]
    fn two_outcomes_are_found_in_few_runs() {
        let found = groups(&[285.0, 344_000.0, 286.0, 343_900.0, 344_100.0, 284.0]).unwrap();
        assert!(found.p <= 0.001 && found.count_low == 3, "{found:?}");
        let found = groups(&[&[285.0; 6][..], &[344_000.0; 6]].concat()).unwrap();
        assert!(found.p <= 0.001 && found.count_low == 6, "{found:?}");
    }

    #[test]
    fn samples_of_one_group_rarely_look_like_two() {
        let alarm = |values: &[f64]| groups(values).is_some_and(|found| found.p < 0.01);
        for runs in [6, 12, 40] {
            for (kind, value) in KINDS.iter().enumerate() {
                let alarms = (0..500u64).filter(|&seed| {
                    let mut rng = SplitMix64::entity(seed, 77);
                    let values: Vec<f64> = (0..runs).map(|_| value(&mut rng)).collect();
                    alarm(&values)
                });
                // If the true rate is 1 %, more than 12 of 500 alarms have a probability of 1 in
                // 1,000.
                let alarms = alarms.count();
                assert!(alarms <= 12, "{alarms} of 500 samples of {runs} runs, kind {kind}");
            }
        }
    }

    #[test]
    fn one_outlier_is_not_a_group() {
        let alarm = |values: &[f64]| groups(values).is_some_and(|found| found.p < 0.01);
        let mut values = normal_sample(4, 15);
        values[7] = 40.0;
        assert!(!alarm(&values));
        assert_eq!(groups(&[1.0; 12]), None);
        assert_eq!(groups(&[1.0, 2.0, 9.0, 10.0]), None);
    }
}
