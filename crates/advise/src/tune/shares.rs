//! The importance of each tunable: the share of the differences between settings that the values of
//! the tunable explain.
//!
//! A search does not assign values at random. Settings with a good value of one tunable often also
//! have the same values of other tunables. The shares are therefore computed one after the other.
//! First comes the tunable that explains most of the differences (a main effect, omega squared).
//! The next one explains most of the rest. The computation ends when random values would explain as
//! much as the next tunable. The result of a setting is the logarithm of its ratio to the baseline,
//! run by run. The intervals are a bootstrap over settings.

use iosched_lab::{SIGNIFICANCE, stat};
use iosched_numbers::SplitMix64;
use serde::Serialize;

use super::history::History;
use super::record::Phase;

const SHUFFLES: usize = 1999;
const RESAMPLES: usize = 500;
/// Least number of settings for an answer.
const SETTINGS_MIN: usize = 12;

/// The share of the differences in a goal that a tunable explains.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Number of the goal.
    pub goal: usize,
    /// Name of the tunable.
    pub name: String,
    /// Share of the variance between settings, per cent.
    pub percent: f64,
    /// The 95 % confidence interval of the share, per cent.
    pub interval_percent: (f64, f64),
}

/// Returns the significant shares of the tunables of one elevator for each goal. The first tunable
/// explains most, and each further one explains most of the rest.
pub(super) fn shares(history: &History<'_>, elevator: usize) -> Vec<Share> {
    let dimensions = &history.header.space.elevators[elevator].dimensions;
    let mut random = SplitMix64::new(history.header.seed);
    let mut found = Vec::new();
    for goal in 0..history.header.goals {
        let settings = ratios(history, elevator, goal);
        if settings.len() < SETTINGS_MIN {
            continue;
        }
        let order = explaining(&settings, dimensions.len(), &mut random);
        let intervals = intervals(&settings, &order, &mut random);
        found.extend(order.into_iter().zip(intervals).map(|((number, share), interval_percent)| {
            let name = dimensions[number].name.clone();
            Share { goal, name, percent: share * 100.0, interval_percent }
        }));
    }
    found
}

/// Returns the dimensions with significant shares, and these shares.
fn explaining(settings: &[Setting<'_>], dimensions: usize, random: &mut SplitMix64) -> Vec<(usize, f64)> {
    let mut rest = settings.to_vec();
    let total = squares(&rest);
    let mut left: Vec<usize> = (0..dimensions).collect();
    let mut found = Vec::new();
    while !left.is_empty() && total > 0.0 {
        let effect = |&number: &usize| Some((number, omega_squared(&by_level(&rest, number))?));
        let most = left.iter().filter_map(effect).max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((number, share)) = most else { break };
        // The factor corrects for the choice of the best of several dimensions.
        if chance(&by_level(&rest, number), share, random) * left.len() as f64 > SIGNIFICANCE {
            break;
        }
        found.push((number, share * squares(&rest) / total));
        explain(&mut rest, number);
        left.retain(|&other| other != number);
    }
    found
}

/// Returns the intervals of the shares in `order`, from resampled settings.
fn intervals(settings: &[Setting<'_>], order: &[(usize, f64)], random: &mut SplitMix64) -> Vec<(f64, f64)> {
    let mut drawn: Vec<Vec<f64>> = vec![Vec::with_capacity(RESAMPLES); order.len()];
    for _ in 0..RESAMPLES {
        let mut rest: Vec<_> =
            settings.iter().map(|_| settings[random.below(settings.len() as u64) as usize]).collect();
        let total = squares(&rest);
        for (samples, &(number, _)) in drawn.iter_mut().zip(order) {
            let share = omega_squared(&by_level(&rest, number)).unwrap_or(0.0).max(0.0);
            samples.push(if total > 0.0 { share * squares(&rest) / total * 100.0 } else { 0.0 });
            explain(&mut rest, number);
        }
    }
    let ends = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        let at = |q: f64| samples[((samples.len() - 1) as f64 * q).round() as usize];
        (at(0.025), at(0.975))
    };
    drawn.into_iter().map(ends).collect()
}

fn by_level(settings: &[Setting<'_>], number: usize) -> Vec<(usize, f64)> {
    settings.iter().map(|(levels, value)| (levels[number], *value)).collect()
}

fn squares(settings: &[Setting<'_>]) -> f64 {
    let values: Vec<f64> = settings.iter().map(|setting| setting.1).collect();
    let mean = stat::mean(&values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Subtracts the mean effect of each value of a dimension.
fn explain(settings: &mut [Setting<'_>], number: usize) {
    let levels_and_values = by_level(settings, number);
    let mean = |level: usize| {
        let values: Vec<f64> = levels_and_values.iter().filter(|value| value.0 == level).map(|value| value.1).collect();
        stat::mean(&values)
    };
    settings.iter_mut().for_each(|(levels, value)| *value -= mean(levels[number]));
}

/// The levels of a setting, and the logarithm of the ratio of its goal to the baseline's.
type Setting<'h> = (&'h [usize], f64);

/// Returns the levels and the ratio of each setting of an elevator. The ratio compares the setting
/// with the baseline, and uses only the runs that exist for both.
fn ratios<'h>(history: &'h History<'_>, elevator: usize, goal: usize) -> Vec<Setting<'h>> {
    let sample = |(number, candidate): (usize, &'h super::history::Candidate)| {
        let point = candidate.point.as_ref().filter(|point| point.elevator == elevator)?;
        Some((point.levels.as_slice(), history.ratios(Phase::Search, number)?[goal]))
    };
    history.candidates.iter().enumerate().filter_map(sample).collect()
}

/// Returns the share of the variance that the level explains. The share is below 0 if random values
/// would explain more than the level does. `None` if all values are equal.
fn omega_squared(values: &[(usize, f64)]) -> Option<f64> {
    let all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let mean = stat::mean(&all);
    let total: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
    let levels = values.iter().map(|(level, _)| level + 1).max()?;
    let mut sums = vec![(0.0, 0.0); levels];
    for (level, value) in values {
        sums[*level].0 += 1.0;
        sums[*level].1 += value;
    }
    let groups = sums.iter().filter(|(count, _)| *count > 0.0);
    let between: f64 = groups.clone().map(|(count, sum)| count * (sum / count - mean).powi(2)).sum();
    let freedom = groups.count() as f64 - 1.0;
    let rest = values.len() as f64 - freedom - 1.0;
    if total <= f64::EPSILON || freedom < 1.0 || rest < 1.0 {
        return None;
    }
    let within = (total - between) / rest;
    Some((between - freedom * within) / (total + within))
}

/// Returns the probability that randomly assigned values explain at least this share.
fn chance(values: &[(usize, f64)], share: f64, random: &mut SplitMix64) -> f64 {
    let mut dealt = values.to_vec();
    let mut as_much = 1;
    for _ in 0..SHUFFLES {
        for last in (1..dealt.len()).rev() {
            let other = random.below(last as u64 + 1) as usize;
            (dealt[last].1, dealt[other].1) = (dealt[other].1, dealt[last].1);
        }
        as_much += usize::from(omega_squared(&dealt).is_none_or(|found| found >= share));
    }
    as_much as f64 / (SHUFFLES + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omega_squared_matches_a_manual_calculation() {
        // Groups 1, 2, 3 and 5, 6, 7. The sum of squares is 24 between the groups, 4 within them (4
        // degrees of freedom), and 28 in total. The result is (24 - 1) / (28 + 1).
        let values = [(0, 1.0), (0, 2.0), (0, 3.0), (1, 5.0), (1, 6.0), (1, 7.0)];
        assert!((omega_squared(&values).unwrap() - 23.0 / 29.0).abs() < 1e-12);
        assert_eq!(omega_squared(&[(0, 1.0), (1, 1.0), (1, 1.0)]), None);
    }

    /// Returns settings whose second dimension mostly has the same value as the first dimension, as
    /// after a successful search.
    fn searched(effect: f64) -> (Vec<[usize; 2]>, Vec<f64>) {
        let mut random = SplitMix64::new(7);
        let levels: Vec<[usize; 2]> =
            (0..60).map(|i| [i % 4, if random.below(5) == 0 { random.below(4) as usize } else { i % 4 }]).collect();
        let values = levels.iter().map(|pair| pair[0] as f64 * effect + random.below(1000) as f64 / 1000.0);
        (levels.clone(), values.collect())
    }

    #[test]
    fn dependent_tunables_and_noise_have_no_share() {
        let found = |effect: f64| {
            let (levels, values) = searched(effect);
            let settings: Vec<Setting<'_>> = levels.iter().map(|pair| &pair[..]).zip(values).collect();
            let order = explaining(&settings, 2, &mut SplitMix64::new(1));
            let intervals = intervals(&settings, &order, &mut SplitMix64::new(2));
            (order, intervals)
        };
        let (order, intervals) = found(1.0);
        assert_eq!(order.iter().map(|entry| entry.0).collect::<Vec<_>>(), [0], "{order:?}");
        assert!(order[0].1 > 0.8 && intervals[0].0 > 80.0 && intervals[0].1 < 100.0, "{order:?} {intervals:?}");
        assert_eq!(found(0.0).0, []);
    }
}
