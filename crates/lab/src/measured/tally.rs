//! Counts of measured figures and orders that the simulation reproduces.

use std::collections::BTreeMap;

use iosched_disk::RecordedLoad;

use super::case::{Metric, Source};
use super::run::MeasuredResult;
use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::stat::covering;

/// Scheduler with which the other schedulers are compared.
const BASELINE: &str = "none";
/// Smallest measured difference between two schedulers that defines an order, per cent.
pub const ORDER_PERCENT: f64 = 10.0;

/// Share of the differences between schedulers that the recorded error must cover, per cent. It is
/// also the confidence of verdicts.
pub const COVERED_PERCENT: f64 = 95.0;

/// Agreement of simulation and measurement about the order of two schedulers. A simulated
/// difference counts if it exceeds both 5 % and the error in the profile. Verdicts use the same
/// rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In both, the same scheduler has the higher value.
    Right,
    /// In simulation, the other scheduler has the higher value.
    Wrong,
    /// The simulated values are equal, or their difference is smaller than the error.
    None,
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
    /// Number of orders that are the same on the disk and in simulation.
    pub right: u32,
    /// Number of orders that are reversed in simulation.
    pub wrong: u32,
    /// Number of orders for which the simulation shows no difference, or a difference below its
    /// error.
    pub none: u32,
}

impl Tally {
    /// Counts these results. An order compares a scheduler with `none`, so it exists only if the
    /// group has a result under `none`. In the tables of mails, any two figures of one case with
    /// the same unit also give an order.
    #[must_use]
    pub fn of(results: &[&MeasuredResult<'_>]) -> Self {
        let mut tally = Self::default();
        let all = results.iter().flat_map(|result| result.figures().map(|figure| (result.case.source, figure)));
        for (source, (figure, simulated)) in all {
            let is_met = |within: f64| simulated.is_some_and(|value| is_within(value / figure.measured, within));
            match figure.metric {
                metric if metric.is_rate() => {
                    tally.rates += 1;
                    tally.rates_met += u32::from(is_met(source.rate_within()));
                }
                Metric::P99 | Metric::DeviceP99 => {
                    tally.p99s += 1;
                    tally.p99s_met += u32::from(is_met(source.p99_within()));
                }
                _ => {}
            }
        }
        for Ratio { measured, simulated, factor, .. } in ratios(results).into_iter().chain(relations(results)) {
            let Some(order) = order(measured, simulated, factor) else { continue };
            match order {
                Order::Right => tally.right += 1,
                Order::Wrong => tally.wrong += 1,
                Order::None => tally.none += 1,
            }
        }
        tally
    }
}

/// Agreement of simulated 99th percentiles with measured ones, in size and in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailAgreement {
    /// Median over all figures of the factor between the simulated and the measured value. Each
    /// factor is at least 1.
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

/// Returns whether a ratio is between 1/`within` and `within`.
#[must_use]
pub(super) fn is_within(ratio: f64, within: f64) -> bool {
    ratio.is_finite() && ratio <= within && ratio >= 1.0 / within
}

/// Comparison of a scheduler with `none` in a metric of a job. It contains the measured ratio of
/// their values, the simulated ratio, and the error that the profile records for the simulated
/// ratio.
struct Ratio {
    measured: f64,
    simulated: f64,
    load: RecordedLoad,
    is_tail: bool,
    factor: f64,
    is_fitted: bool,
}

/// Compares each scheduler with `none` in rate and 99th percentile of each job.
fn ratios(results: &[&MeasuredResult<'_>]) -> Vec<Ratio> {
    let is_baseline = |result: &&&MeasuredResult<'_>| {
        result.case.source != Source::ListTables && result.case.setting.to_string() == BASELINE
    };
    let baselines: BTreeMap<(Source, &str), &MeasuredResult<'_>> = results
        .iter()
        .filter(is_baseline)
        .map(|result| ((result.case.source, result.case.group.as_str()), *result))
        .collect();
    let mut ratios = Vec::new();
    for result in results {
        let case = result.case;
        let Some(baseline) = baselines.get(&(case.source, case.group.as_str())) else { continue };
        if std::ptr::eq(*baseline, *result) {
            continue;
        }
        for figure in case.figures.iter().filter(|figure| matches!(figure.metric, Metric::Iops | Metric::P99)) {
            let value = |result: &MeasuredResult<'_>| result.value(&figure.job, figure.metric);
            if let (Some(other), Some(base)) = (value(result), value(baseline)) {
                let (load, is_tail) = (case.load(), figure.metric.is_tail());
                let factor = result.recorded.map_or(1.0, |recorded| recorded.factor(load, is_tail));
                let (measured, simulated) = (other.0 / base.0, other.1 / base.1);
                ratios.push(Ratio { measured, simulated, load, is_tail, factor, is_fitted: case.is_fitted() });
            }
        }
    }
    ratios
}

/// Compares any two figures of one case of the tables of mails, if they have the same unit. Figures
/// without a simulated value are left out.
fn relations(results: &[&MeasuredResult<'_>]) -> Vec<Ratio> {
    let of_mails = results.iter().filter(|result| result.case.source == Source::ListTables);
    let figures: Vec<_> = of_mails
        .flat_map(|result| result.figures().map(|(figure, simulated)| (result.case, figure, simulated)))
        .filter_map(|(case, figure, simulated)| Some((case, figure, simulated?)))
        .collect();
    let mut relations = Vec::new();
    for (number, (case, figure, simulated)) in figures.iter().enumerate() {
        let others = figures[..number].iter();
        for (other_case, other, base) in others.filter(|(other_case, other, _)| {
            other_case.part() == case.part() && other.metric.unit() == figure.metric.unit()
        }) {
            debug_assert_eq!(other_case.source, case.source);
            relations.push(Ratio {
                measured: figure.measured / other.measured,
                simulated: simulated / base,
                load: case.load(),
                is_tail: figure.metric.is_tail(),
                factor: 1.0,
                is_fitted: false,
            });
        }
    }
    relations
}

/// Returns the result for one order. `measured` and `simulated` are the ratios of the two
/// schedulers' values on the disk and in simulation. `factor` is the error of the simulated ratio.
/// Returns `None` if the values on the disk are too close for an order.
fn order(measured: f64, simulated: f64, factor: f64) -> Option<Order> {
    let bound = (1.0 + EQUAL_WITHIN_PERCENT / 100.0).max(factor);
    (!is_within(measured, 1.0 + ORDER_PERCENT / 100.0)).then(|| match !is_within(simulated, bound) {
        false => Order::None,
        true if (measured > 1.0) == (simulated > 1.0) => Order::Right,
        true => Order::Wrong,
    })
}

/// Errors of simulated differences between schedulers in results, for one kind of workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceErrors {
    /// Kind of the workload.
    pub load: RecordedLoad,
    /// Number of differences in rates, and the factor that covers [`COVERED_PERCENT`] of them.
    pub rates: (usize, f64),
    /// Number of differences in 99th percentiles, and the factor that covers [`COVERED_PERCENT`] of
    /// them.
    pub tails: (usize, f64),
}

impl DifferenceErrors {
    /// Returns the errors for each kind of workload. Omits the differences that the costs of
    /// schedulers were fitted to.
    #[must_use]
    pub fn of(results: &[&MeasuredResult<'_>]) -> Vec<Self> {
        let ratios = ratios(results);
        let error = |load: RecordedLoad, is_tail: bool| {
            let of_kind =
                ratios.iter().filter(|ratio| ratio.load == load && ratio.is_tail == is_tail && !ratio.is_fitted);
            let errors: Vec<f64> = of_kind.map(|ratio| (ratio.simulated / ratio.measured).ln().abs().exp()).collect();
            (errors.len(), covering(errors, COVERED_PERCENT / 100.0).unwrap_or(1.0))
        };
        let of_kind = |load| Self { load, rates: error(load, false), tails: error(load, true) };
        RecordedLoad::ALL.map(of_kind).into_iter().filter(|errors| errors.rates.0 + errors.tails.0 > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_disk::{Recorded, RecordedError};

    use crate::measured::{Figure, MeasuredCase};

    fn case(setting: &str, figures: &[(Metric, f64)]) -> MeasuredCase {
        let figure = |&(metric, measured): &(Metric, f64)| Figure { job: "reader".to_owned(), metric, measured };
        MeasuredCase {
            source: Source::Icpe24,
            group: "g".to_owned(),
            setting: setting.parse().unwrap(),
            jobs: vec![],
            disks: 1,
            disk: None,
            obstacle: None,
            figures: figures.iter().map(figure).collect(),
        }
    }

    #[test]
    fn metrics_are_met_within_their_factor() {
        let cases = [case("none", &[(Metric::Iops, 100.0), (Metric::P99, 10.0)])];
        let tally =
            |rate, p99| Tally::of(&[&MeasuredResult { case: &cases[0], simulated: vec![rate, p99], recorded: None }]);
        let met = tally(Some(114.0), Some(6.7));
        assert_eq!((met.rates_met, met.rates, met.p99s_met, met.p99s), (1, 1, 1, 1));
        let missed = tally(Some(116.0), None);
        assert_eq!((missed.rates_met, missed.rates, missed.p99s_met, missed.p99s), (0, 1, 0, 1));
    }

    #[test]
    fn tail_agreement_is_median_factor_and_rank_correlation() {
        let cases: Vec<_> = [10.0, 20.0, 40.0].map(|p99| case("none", &[(Metric::P99, p99)])).into();
        let agreement = |simulated: [f64; 3]| {
            let results = cases.iter().zip(simulated);
            let results: Vec<_> = results
                .map(|(case, p99)| MeasuredResult { case, simulated: vec![Some(p99)], recorded: None })
                .collect();
            TailAgreement::of(&results.iter().collect::<Vec<_>>()).unwrap()
        };
        let found = agreement([5.0, 20.0, 60.0]);
        assert!((found.factor - 1.5).abs() < 1e-9 && (found.rank_correlation - 1.0).abs() < 1e-9, "{found:?}");
        assert!((agreement([60.0, 20.0, 5.0]).rank_correlation + 1.0).abs() < 1e-9);
        assert_eq!(ranks([3.0, 1.0, 3.0].into_iter()), [1.5, 0.0, 1.5]);
        assert_eq!(TailAgreement::of(&[]), None);
    }

    #[test]
    fn only_measured_differences_have_an_order() {
        assert_eq!(order(1.05, 2.0, 1.0), None);
        assert_eq!(order(0.8, 0.5, 1.0), Some(Order::Right));
        assert_eq!(order(0.8, 1.2, 1.0), Some(Order::Wrong));
        assert_eq!(order(3.0, 1.04, 1.0), Some(Order::None));
    }

    #[test]
    fn settings_of_a_group_are_compared_with_none() {
        let cases = [case("none", &[(Metric::P99, 10.0)]), case("kyber", &[(Metric::P99, 2.0)])];
        let results: Vec<_> = cases
            .iter()
            .zip([8.0, 1.0])
            .map(|(case, p99)| MeasuredResult { case, simulated: vec![Some(p99)], recorded: None })
            .collect();
        let tally = Tally::of(&results.iter().collect::<Vec<_>>());
        assert_eq!((tally.right, tally.wrong, tally.none), (1, 0, 0));
    }

    #[test]
    fn difference_below_the_recorded_error_gives_no_order() {
        assert_eq!(order(0.8, 1.9, 2.0), Some(Order::None));
        assert_eq!(order(0.8, 0.55, 2.0), Some(Order::None));
        assert_eq!(order(0.8, 0.45, 2.0), Some(Order::Right));
        let error = RecordedError { rate_factor: 1.1, tail_factor: 3.0 };
        let other = RecordedError { rate_factor: 1.0, tail_factor: 1.0 };
        let recorded = Recorded { covered_percent: 95.0, reads: error, reads_of_several_disks: other, writes: other };
        let cases = [case("none", &[(Metric::P99, 10.0)]), case("kyber", &[(Metric::P99, 20.0)])];
        let results: Vec<_> = cases
            .iter()
            .zip([10.0, 4.0])
            .map(|(case, p99)| MeasuredResult { case, simulated: vec![Some(p99)], recorded: Some(recorded) })
            .collect();
        let results: Vec<_> = results.iter().collect();
        let tally = Tally::of(&results);
        assert_eq!((tally.right, tally.wrong, tally.none), (0, 0, 1), "0.4 is within the factor of 3");
        let [errors] = DifferenceErrors::of(&results)[..] else { panic!("one kind of workload") };
        assert_eq!((errors.load, errors.tails.0), (RecordedLoad::Reads, 1));
        assert!((errors.tails.1 - 5.0).abs() < 1e-9, "measured 2, simulated 0.4: {errors:?}");
    }
}
