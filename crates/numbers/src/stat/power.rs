//! The number of runs that are needed to find a difference.

use super::students_t;

/// Desired probability of finding a difference that exists.
const POWER: f64 = 0.8;
/// Upper bound of the number of runs.
const RUNS_MAX: u32 = 1 << 20;

/// Returns the least difference that `runs` paired runs can find, in standard errors.
fn errors_needed(runs: u32, significance: f64) -> Option<f64> {
    let t = students_t(f64::from(runs.checked_sub(1)?))?;
    use statrs::distribution::ContinuousCDF;
    Some(t.inverse_cdf(1.0 - significance / 2.0) + t.inverse_cdf(POWER))
}

/// Returns the number of runs of each setting with which a paired test finds `difference` in 4 of 5
/// cases. `sd` is the standard deviation of the paired differences. `significance` is the
/// probability that the test finds a false difference. Returns `None` if no number of runs is
/// enough.
#[must_use]
pub fn runs_needed(difference: f64, sd: f64, significance: f64) -> Option<u32> {
    let finds = |runs: u32| {
        errors_needed(runs, significance).is_some_and(|errors| difference.abs() >= errors * sd / f64::from(runs).sqrt())
    };
    if difference == 0.0 || !finds(RUNS_MAX) {
        return None;
    }
    let (mut low, mut high) = (1, RUNS_MAX);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if finds(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::paired;
    use crate::stat::tests::normal_sample;

    #[test]
    fn runs_needed_match_published_tables() {
        // From a table of the paired t test at 5 % and 80 %. An effect of one deviation needs 10
        // runs, half a deviation 34 runs, and a fifth 198 or 199 runs.
        assert_eq!(runs_needed(1.0, 1.0, 0.05), Some(10));
        assert_eq!(runs_needed(-0.5, 1.0, 0.05), Some(34));
        assert!((198..=199).contains(&runs_needed(0.2, 1.0, 0.05).unwrap()));
        assert_eq!(runs_needed(5.0, 0.0, 0.05), Some(2));
        assert_eq!(runs_needed(0.0, 1.0, 0.05), None);
        assert_eq!(runs_needed(1e-9, 1.0, 0.05), None);
    }

    #[test]
    fn the_needed_runs_detect_the_effect_in_80_percent() {
        let found = (0..500).filter(|&seed| {
            let differences: Vec<f64> = normal_sample(seed, 34).iter().map(|noise| noise + 0.5).collect();
            paired(&differences, &[0.0; 34]).unwrap().p(0.0) < 0.05
        });
        let found = found.count();
        assert!((370..=430).contains(&found), "{found} of 500");
    }
}
