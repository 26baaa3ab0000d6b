//! Counts of measured figures and orders that the simulation reproduces.

use std::collections::BTreeMap;

use super::case::Metric;
use super::run::MeasuredResult;
use crate::compare::EQUAL_WITHIN_PERCENT;

/// Scheduler that others are compared with.
const BASELINE: &str = "none";
/// Smallest measured difference that counts as an order, per cent.
pub const ORDER_PERCENT: f64 = 10.0;

/// Result for the order of two schedulers, measured and simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The same scheduler has the higher value, by more than 5 %.
    Right,
    /// The other scheduler has the higher value, by more than 5 %.
    Wrong,
    /// The simulated values are equal within 5 %.
    Equal,
}

/// Counts over the results of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of rates.
    pub rates: u32,
    /// Number of rates that [match](super::Source::rate_within).
    pub rates_met: u32,
    /// Number of 99th percentiles.
    pub p99s: u32,
    /// Number of 99th percentiles that [match](super::Source::p99_within).
    pub p99s_met: u32,
    /// Number of orders that are the same.
    pub right: u32,
    /// Number of orders that are reversed.
    pub wrong: u32,
    /// Number of orders that the simulation does not show.
    pub equal: u32,
}

impl Tally {
    /// Counts these results. An order needs the result under `none` in the same group.
    #[must_use]
    pub fn of(results: &[&MeasuredResult<'_>]) -> Self {
        let mut tally = Self::default();
        let all = results.iter().flat_map(|result| result.figures().map(|figure| (result.case.source, figure)));
        for (source, (figure, simulated)) in all {
            let is_met = |within: f64| simulated.is_some_and(|value| is_within(value / figure.measured, within));
            match figure.metric {
                Metric::Iops => {
                    tally.rates += 1;
                    tally.rates_met += u32::from(is_met(source.rate_within()));
                }
                Metric::P99 | Metric::DeviceP99 => {
                    tally.p99s += 1;
                    tally.p99s_met += u32::from(is_met(source.p99_within()));
                }
                Metric::LatencyMean | Metric::P50 | Metric::DeviceP50 => {}
            }
        }
        for order in orders(results) {
            match order {
                Order::Right => tally.right += 1,
                Order::Wrong => tally.wrong += 1,
                Order::Equal => tally.equal += 1,
            }
        }
        tally
    }
}

/// How near simulated 99th percentiles are to measured ones, and whether they have the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailAgreement {
    /// Median of the factors between the simulated and the measured value, at least 1.
    pub factor: f64,
    /// Rank correlation (Spearman) of the simulated with the measured values, from -1 to 1.
    pub rank_correlation: f64,
}

impl TailAgreement {
    /// Compares the 99th percentiles of the results. Returns `None` for fewer than two.
    #[must_use]
    pub fn of(results: &[&MeasuredResult<'_>]) -> Option<Self> {
        let all = results.iter().flat_map(|result| result.figures()).filter(|(figure, _)| figure.metric.is_tail());
        let pairs: Vec<(f64, f64)> =
            all.filter_map(|(figure, simulated)| Some((figure.measured, simulated?))).collect();
        let mut factors: Vec<f64> =
            pairs.iter().map(|(measured, simulated)| (simulated / measured).ln().abs()).collect();
        factors.sort_unstable_by(f64::total_cmp);
        let ranks = [ranks(pairs.iter().map(|pair| pair.0)), ranks(pairs.iter().map(|pair| pair.1))];
        let middle = (pairs.len() as f64 - 1.0) / 2.0;
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
        let spread = (product(&ranks[0], &ranks[0]) * product(&ranks[1], &ranks[1])).sqrt();
        let rank_correlation = if spread > 0.0 { product(&ranks[0], &ranks[1]) / spread } else { 0.0 };
        (pairs.len() > 1).then(|| Self { factor: factors[factors.len() / 2].exp(), rank_correlation })
    }
}

/// Returns the rank of each value, from 0. Equal values share the mean of their ranks.
fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let mut sorted = values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other < value);
        let not_above = sorted.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0 - 0.5
    };
    values.iter().map(rank).collect()
}

/// Whether a ratio is between 1/within and within.
#[must_use]
pub(super) fn is_within(ratio: f64, within: f64) -> bool {
    ratio.is_finite() && ratio <= within && ratio >= 1.0 / within
}

/// Compares each scheduler with `none` in rate and 99th percentile of each job, if the disk shows a
/// difference.
fn orders(results: &[&MeasuredResult<'_>]) -> Vec<Order> {
    let is_baseline = |result: &&&MeasuredResult<'_>| result.case.setting.to_string() == BASELINE;
    let baselines: BTreeMap<&str, &MeasuredResult<'_>> =
        results.iter().filter(is_baseline).map(|result| (result.case.group.as_str(), *result)).collect();
    let mut orders = Vec::new();
    for result in results {
        let Some(baseline) = baselines.get(result.case.group.as_str()) else { continue };
        if std::ptr::eq(*baseline, *result) {
            continue;
        }
        for figure in result.case.figures.iter().filter(|figure| matches!(figure.metric, Metric::Iops | Metric::P99)) {
            let value = |of: &MeasuredResult<'_>| of.value(&figure.job, figure.metric);
            if let (Some(other), Some(base)) = (value(result), value(baseline)) {
                orders.extend(order(other.0 / base.0, other.1 / base.1));
            }
        }
    }
    orders
}

/// Returns the result for one order, from the ratio of the two schedulers on the disk and in
/// simulation; `None` if the disk shows no order.
fn order(measured: f64, simulated: f64) -> Option<Order> {
    let differs = |ratio: f64, percent: f64| !is_within(ratio, 1.0 + percent / 100.0);
    differs(measured, ORDER_PERCENT).then(|| match differs(simulated, EQUAL_WITHIN_PERCENT) {
        false => Order::Equal,
        true if (measured > 1.0) == (simulated > 1.0) => Order::Right,
        true => Order::Wrong,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Figure, MeasuredCase, Source};

    fn case(setting: &str, figures: &[(Metric, f64)]) -> MeasuredCase {
        let figure = |&(metric, measured): &(Metric, f64)| Figure { job: "reader".to_owned(), metric, measured };
        MeasuredCase {
            source: Source::Icpe24,
            group: "g".to_owned(),
            setting: setting.parse().unwrap(),
            jobs: vec![],
            disks: 1,
            disk: None,
            figures: figures.iter().map(figure).collect(),
        }
    }

    #[test]
    fn figures_are_met_within_their_factor() {
        let cases = [case("none", &[(Metric::Iops, 100.0), (Metric::P99, 10.0)])];
        let tally = |rate, p99| Tally::of(&[&MeasuredResult { case: &cases[0], simulated: vec![rate, p99] }]);
        let met = tally(Some(114.0), Some(6.7));
        assert_eq!((met.rates_met, met.rates, met.p99s_met, met.p99s), (1, 1, 1, 1));
        let missed = tally(Some(116.0), None);
        assert_eq!((missed.rates_met, missed.rates, missed.p99s_met, missed.p99s), (0, 1, 0, 1));
    }

    #[test]
    fn agreement_is_the_median_factor_and_the_order_of_ranks() {
        let cases: Vec<_> = [10.0, 20.0, 40.0].map(|p99| case("none", &[(Metric::P99, p99)])).into();
        let agreement = |simulated: [f64; 3]| {
            let results = cases.iter().zip(simulated);
            let results: Vec<_> =
                results.map(|(case, p99)| MeasuredResult { case, simulated: vec![Some(p99)] }).collect();
            TailAgreement::of(&results.iter().collect::<Vec<_>>()).unwrap()
        };
        let found = agreement([5.0, 20.0, 60.0]);
        assert!((found.factor - 1.5).abs() < 1e-9 && (found.rank_correlation - 1.0).abs() < 1e-9, "{found:?}");
        assert!((agreement([60.0, 20.0, 5.0]).rank_correlation + 1.0).abs() < 1e-9);
        assert_eq!(ranks([3.0, 1.0, 3.0].into_iter()), [1.5, 0.0, 1.5]);
        assert_eq!(TailAgreement::of(&[]), None);
    }

    #[test]
    fn only_differences_that_the_disk_shows_are_orders() {
        assert_eq!(order(1.05, 2.0), None);
        assert_eq!(order(0.8, 0.5), Some(Order::Right));
        assert_eq!(order(0.8, 1.2), Some(Order::Wrong));
        assert_eq!(order(3.0, 1.04), Some(Order::Equal));
    }

    #[test]
    fn a_group_is_held_against_its_none() {
        let cases = [case("none", &[(Metric::P99, 10.0)]), case("kyber", &[(Metric::P99, 2.0)])];
        let results: Vec<_> = cases
            .iter()
            .zip([8.0, 1.0])
            .map(|(case, p99)| MeasuredResult { case, simulated: vec![Some(p99)] })
            .collect();
        let tally = Tally::of(&results.iter().collect::<Vec<_>>());
        assert_eq!((tally.right, tally.wrong, tally.equal), (1, 0, 0));
    }
}
