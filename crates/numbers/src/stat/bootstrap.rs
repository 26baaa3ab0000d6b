//! The bootstrap: an interval for the mean that other random runs of the same kind could have. It
//! assumes no distribution.
//!
//! The method is bias-corrected and accelerated (BCa), after Efron and
//! Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 14.

use crate::SplitMix64;
use statrs::distribution::{ContinuousCDF, Normal};

use super::mean;

/// Number of samples. 50 samples are below the 2.5 % quantile.
const RESAMPLES: u32 = 2000;
/// Seed of the samples. It is fixed, so that the same values give the same interval.
const SEED: u64 = 0xb007_57a9;

/// Returns the 95 % confidence interval of the mean of `values`, or `None` for
/// fewer than two values.
#[must_use]
pub fn bootstrap_interval(values: &[f64]) -> Option<(f64, f64)> {
    let (&first, rest) = values.split_first()?;
    if rest.is_empty() {
        return None;
    }
    if rest.iter().all(|&value| value == first) {
        return Some((first, first));
    }
    let means = resampled_means(values);
    let normal = Normal::standard();
    let observed = mean(values);
    let below = means.iter().filter(|&&mean| mean < observed).count() as f64;
    // The share is neither 0 nor 1, because the mean of the sample is not an extreme value.
    let share = (below / f64::from(RESAMPLES)).clamp(0.5 / f64::from(RESAMPLES), 1.0 - 0.5 / f64::from(RESAMPLES));
    let bias = normal.inverse_cdf(share);
    let acceleration = acceleration(values);
    let quantile = |probability: f64| {
        let shifted = bias + normal.inverse_cdf(probability);
        let corrected = normal.cdf(bias + shifted / (1.0 - acceleration * shifted));
        let place = (corrected * f64::from(RESAMPLES)) as usize;
        means[place.min(means.len() - 1)]
    };
    Some((quantile(0.025), quantile(0.975)))
}

/// Returns means of samples drawn from `values` with replacement, sorted.
fn resampled_means(values: &[f64]) -> Vec<f64> {
    let mut rng = SplitMix64::new(SEED);
    let mut draw = || values[rng.below(values.len() as u64) as usize];
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| values.iter().map(|_| draw()).sum::<f64>() / values.len() as f64).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// Returns the acceleration of the method, which says how the error of the mean changes with the
/// mean. It is a sixth of the skewness of the means that leave out one value each.
fn acceleration(values: &[f64]) -> f64 {
    let (sum, others) = (values.iter().sum::<f64>(), (values.len() - 1) as f64);
    let without: Vec<f64> = values.iter().map(|value| (sum - value) / others).collect();
    let middle = mean(&without);
    let power = |exponent: i32| without.iter().map(|value| (middle - value).powi(exponent)).sum::<f64>();
    let squares = power(2);
    if squares == 0.0 { 0.0 } else { power(3) / (6.0 * squares.powf(1.5)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::normal_sample;

    #[test]
    fn bootstrap_intervals_contain_the_mean_and_are_reproducible() {
        let values = [9.0, 11.0, 10.0, 12.0, 8.0, 10.5, 9.5, 10.0];
        let (low, high) = bootstrap_interval(&values).unwrap();
        assert!(8.8 < low && low < 10.0 && 10.0 < high && high < 11.2, "{low} {high}");
        assert_eq!(bootstrap_interval(&values), Some((low, high)));
        assert_eq!(bootstrap_interval(&[4.0; 5]), Some((4.0, 4.0)));
        assert_eq!(bootstrap_interval(&[4.0]), None);
    }

    #[test]
    fn bootstrap_intervals_extend_toward_the_long_tail() {
        let skewed = [1.0, 1.1, 0.9, 1.0, 1.2, 0.8, 1.0, 1.1, 9.0, 1.0];
        let (low, high) = bootstrap_interval(&skewed).unwrap();
        let mean = mean(&skewed);
        assert!(high - mean > 1.5 * (mean - low), "{low} {mean} {high}");
    }

    #[test]
    fn most_bootstrap_intervals_contain_the_true_mean() {
        let holding = (0..300).filter(|&seed| {
            let (low, high) = bootstrap_interval(&normal_sample(seed, 20)).unwrap();
            low <= 0.0 && 0.0 <= high
        });
        // For many values, 95 % is expected. For 20 values, the bootstrap is known to contain the
        // true mean slightly less often.
        let holding = holding.count();
        assert!((270..=297).contains(&holding), "{holding} of 300");
    }
}
