//! Whether values fall into two groups: then their mean is of nothing that ever happens.

use crate::SplitMix64;

use super::mean;

/// Values that this needs.
const VALUES_MIN: usize = 10;
/// The share of the variance that lies between two groups that hardly overlap, at least; of one normal group it is
/// 0.64.
const BETWEEN_MIN: f64 = 0.8;
/// Samples of one group that values are held against.
const SAMPLES: u32 = 1999;
/// The same values give the same answer.
const SEED: u64 = 0x2_6709;

/// Two groups of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Groups {
    /// The mean of the lower ones.
    pub low: f64,
    /// The mean of the higher ones.
    pub high: f64,
    /// How many are in the lower one.
    pub count_low: usize,
    /// Probability that values of one group, normally distributed, look as much like two.
    pub p: f64,
}

/// Splits values where two groups are most alike within; `None` of fewer than 10 values, or if the groups overlap. A
/// fifth of the values, and at least two, make a group: less are odd runs.
#[must_use]
pub fn groups(values: &[f64]) -> Option<Groups> {
    if values.len() < VALUES_MIN {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (at, explained) = split(&sorted).filter(|&(_, explained)| explained >= BETWEEN_MIN)?;
    let mut rng = SplitMix64::new(SEED);
    let alike = (0..SAMPLES).filter(|_| {
        let mut sample: Vec<f64> = (0..values.len()).map(|_| normal(&mut rng)).collect();
        sample.sort_by(f64::total_cmp);
        split(&sample).is_some_and(|(_, other)| other >= explained)
    });
    let p = (alike.count() + 1) as f64 / f64::from(SAMPLES + 1);
    Some(Groups { low: mean(&sorted[..at]), high: mean(&sorted[at..]), count_low: at, p })
}

/// Where the second group begins, and the share of the variance that lies between the groups; `None` if there is none.
fn split(sorted: &[f64]) -> Option<(usize, f64)> {
    let n = sorted.len();
    let least = (n / 5).max(2);
    let middle = mean(sorted);
    let whole: f64 = sorted.iter().map(|value| (value - middle).powi(2)).sum();
    if whole == 0.0 {
        return None;
    }
    let mut below: f64 = sorted[..least].iter().map(|value| value - middle).sum();
    let mut best = (least, 0.0);
    for (at, next) in sorted.iter().enumerate().take(n - least + 1).skip(least) {
        let between = below * below * n as f64 / (at as f64 * (n - at) as f64 * whole);
        if between > best.1 {
            best = (at, between);
        }
        below += next - middle;
    }
    Some(best)
}

/// A number of the standard normal distribution (Box and Muller's method).
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
    fn one_group_rarely_looks_like_two_and_one_odd_run_is_none() {
        let alarm = |values: &[f64]| groups(values).is_some_and(|found| found.p <= 0.01);
        let alarms = (0..1000).filter(|&seed| alarm(&normal_sample(seed, 12))).count();
        assert!((2..=20).contains(&alarms), "{alarms} of 1000");
        let mut values = normal_sample(4, 15);
        values[7] = 40.0;
        assert!(!alarm(&values));
        assert_eq!(groups(&[1.0; 12]), None);
        assert_eq!(groups(&[1.0, 2.0, 9.0, 10.0]), None);
    }
}
