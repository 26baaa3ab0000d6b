//! Tests by rank. They use only the order of the values and not their size, so one outlier has
//! little effect.

use statrs::distribution::{ContinuousCDF, Normal};

use super::students_t;

/// Largest number of differences for which the distribution is computed exactly. For more
/// differences, the normal distribution is close enough.
const EXACT_MAX: usize = 100;
/// Least number of values for a trend.
const TREND_MIN: usize = 8;

/// Returns the probability of paired differences whose signs are at least this unbalanced, if there
/// is no true difference. This is Wilcoxon's signed-rank test (two-sided), which is exact even with
/// ties. Pairs without a difference do not count. Returns `None` if no pair differs.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|&difference| difference != 0.0).collect();
    if sorted.is_empty() {
        return None;
    }
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&sorted.iter().map(|difference| difference.abs()).collect::<Vec<_>>());
    let above: u64 = sorted.iter().zip(&ranks).filter(|(difference, _)| **difference > 0.0).map(|(_, rank)| rank).sum();
    let all: u64 = ranks.iter().sum();
    let smaller = above.min(all - above);
    Some(if ranks.len() <= EXACT_MAX { exact(&ranks, smaller) } else { approximate(&ranks, smaller) })
}

/// Returns twice the rank of each value in `sorted`. The lowest rank is 1. Equal values have the
/// mean of their ranks. Twice this mean is a whole number.
fn doubled_ranks(sorted: &[f64]) -> Vec<u64> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for ties in sorted.chunk_by(|a, b| a == b) {
        let first = ranks.len() as u64 + 1;
        let last = ranks.len() as u64 + ties.len() as u64;
        ranks.extend(std::iter::repeat_n(first + last, ties.len()));
    }
    ranks
}

/// Counts the assignments of signs to `ranks` by the sum of the ranks with a positive sign.
fn exact(ranks: &[u64], smaller: u64) -> f64 {
    let all: u64 = ranks.iter().sum();
    let mut share = vec![0.0f64; all as usize + 1];
    share[0] = 1.0;
    for &rank in ranks {
        for sum in (0..share.len()).rev() {
            let with = sum.checked_sub(rank as usize).map_or(0.0, |without| share[without]);
            share[sum] = 0.5 * (share[sum] + with);
        }
    }
    (2.0 * share[..=smaller as usize].iter().sum::<f64>()).min(1.0)
}

fn approximate(ranks: &[u64], smaller: u64) -> f64 {
    let expected = ranks.iter().sum::<u64>() as f64 / 2.0;
    let deviation = ranks.iter().map(|&rank| (rank as f64 / 2.0).powi(2)).sum::<f64>().sqrt();
    (2.0 * Normal::standard().cdf((smaller as f64 - expected) / deviation)).min(1.0)
}

/// A rise or fall of values in their order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Change from the first value to the last, in the unit of the values. It is the median of the
    /// slopes between all pairs of values, times the number of steps.
    pub change: f64,
    /// Two-sided probability that chance alone gives this order (Spearman's rank correlation with
    /// time).
    pub p: f64,
}

/// Returns the trend of the values in their order. Returns `None` for fewer than 8 values, or if
/// all values are equal.
#[must_use]
pub fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < TREND_MIN || values.iter().all(|value| *value == values[0]) {
        return None;
    }
    let correlation = with_order(values);
    let freedom = (n - 2) as f64;
    let rest = 1.0 - correlation * correlation;
    let p = if rest <= 0.0 {
        0.0
    } else {
        (2.0 * students_t(freedom)?.sf(correlation.abs() * (freedom / rest).sqrt())).min(1.0)
    };
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (values[j] - values[i]) / (j - i) as f64));
    let mut slopes: Vec<f64> = pairs.collect();
    slopes.sort_by(f64::total_cmp);
    Some(Trend { change: slopes[slopes.len() / 2] * (n - 1) as f64, p })
}

/// Returns the correlation of the values' ranks with their order.
fn with_order(values: &[f64]) -> f64 {
    let n = values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let sorted: Vec<f64> = order.iter().map(|&place| values[place]).collect();
    let ranks = doubled_ranks(&sorted);
    let middle = n as f64 + 1.0;
    let (mut both, mut rank_squares, mut time) = (0.0, 0.0, 0.0);
    for (&place, &rank) in order.iter().zip(&ranks) {
        let (rank, moment) = (rank as f64 - middle, 2.0 * (place + 1) as f64 - middle);
        both += rank * moment;
        rank_squares += rank * rank;
        time += moment * moment;
    }
    both / (rank_squares * time).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::tests::{close, normal_sample};

    #[test]
    fn signed_rank_p_values_match_published_tables() {
        // All n differences have the same sign: 2 of 2^n assignments.
        close(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), 2.0 / 32.0);
        close(signed_rank(&[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]).unwrap(), 2.0 / 64.0);
        // W = 3 with n = 6: {}, {1}, {2}, {3}, {1,2}: 5 of 64 on each side.
        close(signed_rank(&[-1.0, -2.0, 3.0, 4.0, 5.0, 6.0]).unwrap(), 10.0 / 64.0);
        // The critical value of the tables: n = 10, W = 8, below 5 %; W = 9 above.
        let with_sum = |negative: &[f64]| {
            let all: Vec<f64> = (1..=10).map(f64::from).map(|v| if negative.contains(&v) { -v } else { v }).collect();
            signed_rank(&all).unwrap()
        };
        assert!(with_sum(&[8.0]) < 0.05 && with_sum(&[9.0]) > 0.05 && with_sum(&[5.0, 3.0]) < 0.05);
        close(with_sum(&[8.0]), 0.048_828_125);
    }

    #[test]
    fn ties_share_their_rank_and_zeroes_are_ignored() {
        assert_eq!(signed_rank(&[0.0, 0.0]), None);
        // Ranks 1.5, 1.5, 3. Sums of the negative ones up to 1.5: {a}, {b} and
        // {}: 3 of 8 on a side.
        close(signed_rank(&[1.0, -1.0, 2.0, 0.0]).unwrap(), 6.0 / 8.0);
    }

    #[test]
    fn one_outlier_barely_changes_the_signed_rank_p_value() {
        let mut differences = normal_sample(3, 12);
        let before = signed_rank(&differences).unwrap();
        differences[0] = 1000.0_f64.copysign(differences[0]);
        assert!((signed_rank(&differences).unwrap() - before).abs() < 0.25);
    }

    #[test]
    fn exact_and_approximate_p_values_agree() {
        let sample = normal_sample(1, EXACT_MAX);
        let shifted: Vec<f64> = sample.iter().map(|value| value + 0.2).collect();
        let mut sorted = shifted.clone();
        sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let ranks = doubled_ranks(&sorted.iter().map(|v| v.abs()).collect::<Vec<_>>());
        let above: u64 = sorted.iter().zip(&ranks).filter(|(v, _)| **v > 0.0).map(|(_, rank)| rank).sum();
        let smaller = above.min(ranks.iter().sum::<u64>() - above);
        assert!((exact(&ranks, smaller) - approximate(&ranks, smaller)).abs() < 0.005);
    }

    #[test]
    fn trends_are_found_and_noise_gives_about_5_percent_alarms() {
        let noise = normal_sample(5, 20);
        let drifting: Vec<f64> = noise.iter().enumerate().map(|(i, value)| 100.0 + value + i as f64).collect();
        let found = trend(&drifting).unwrap();
        assert!(found.p < 1e-6 && (15.0..23.0).contains(&found.change), "{found:?}");
        assert_eq!(trend(&[1.0; 20]), None);
        assert_eq!(trend(&[1.0, 2.0, 3.0]), None);
        let alarms = (0..400).filter(|&seed| trend(&normal_sample(seed, 20)).unwrap().p < 0.05).count();
        assert!((8..=34).contains(&alarms), "{alarms} of 400");
    }
}
