//! The quality of a fit, in numbers and in a sentence.

use std::fmt;

use iosched_disk::Fit;
use iosched_numbers::stat::covering;
use serde::Serialize;

use super::evidence::{Pair, Quantity, Residual};

/// Largest relative error at which the model meets a metric.
pub const WITHIN: f64 = 0.1;
/// Variation between runs above which a metric cannot show whether a model meets it.
pub const NOISY: f64 = 0.1;
/// A model fits if it meets at least the share `MET_SHARE` of the rates of the probes and misses
/// no rate by more than `MISS_MAX`.
const MET_SHARE: f64 = 0.7;
const MISS_MAX: f64 = 0.5;
/// Rates drift if their mean changes by more than `DRIFT_MIN` from the first to the last round.
/// Less than the share `DRIFT_OTHERS_MAX` of the rates may change in the other direction.
const DRIFT_MIN: f64 = 0.05;
const DRIFT_OTHERS_MAX: f64 = 0.25;

/// The judgement of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The kind of the nearest model.
    pub kind: &'static str,
    /// Whether the model fits.
    pub fits: bool,
    /// Number of rates of probes whose error is at most [`WITHIN`], and number of all rates.
    pub met: (usize, usize),
    /// Number of metrics of held-out workloads whose error is at most [`WITHIN`], and number of all
    /// these metrics.
    pub held_out_met: (usize, usize),
    /// The probe with the largest error of its rate, in words, and the error.
    pub worst: Option<(String, f64)>,
    /// Number of metrics that vary too much between runs for a judgement, and number of all
    /// metrics.
    pub noisy: (usize, usize),
}

impl Verdict {
    pub(super) fn of(kind: &'static str, residuals: &[Residual], held_out: &[Residual]) -> Self {
        let differences = || residuals.iter().map(|residual| (residual, residual.iops.difference()));
        let met = differences().filter(|(_, difference)| difference.abs() <= WITHIN).count();
        let worst = differences().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let misses_little = worst.is_none_or(|(_, difference)| difference.abs() <= MISS_MAX);
        let pairs = |residual: &'_ Residual| Quantity::ALL.map(|quantity| *residual.pair(quantity));
        let figures = || held_out.iter().flat_map(pairs).filter(Pair::is_known);
        let all = || {
            residuals.iter().chain(held_out).flat_map(|residual| Quantity::ALL.map(|quantity| residual.pair(quantity)))
        };
        let is_noisy = |variation: Option<f64>| variation.is_some_and(|variation| variation > NOISY);
        Self {
            kind,
            fits: !residuals.is_empty() && met as f64 >= MET_SHARE * residuals.len() as f64 && misses_little,
            met: (met, residuals.len()),
            held_out_met: (figures().filter(|pair| pair.difference().abs() <= WITHIN).count(), figures().count()),
            worst: worst.map(|(residual, difference)| (residual.probe.to_string(), difference)),
            noisy: (all().filter(|pair| is_noisy(pair.measured.variation)).count(), all().count()),
        }
    }
}

/// Share of the measured metrics whose error does not exceed the errors in [`Fit`].
const COVERED: f64 = 0.8;

/// Returns the error of a model over all measurements, whether the fit used them or not.
pub(super) fn fit(verdict: &Verdict, residuals: &[Residual], held_out: &[Residual]) -> Fit {
    let error_percent = |quantity: Quantity| {
        let pairs =
            residuals.iter().chain(held_out).map(|residual| residual.pair(quantity)).filter(|pair| pair.is_known());
        covered_percent(pairs.map(|pair| off(pair.difference())).collect())
    };
    Fit {
        fits: verdict.fits,
        rate_error_percent: error_percent(Quantity::Iops),
        tail_error_percent: error_percent(Quantity::P99),
        rates_only: false,
        validated: None,
        recorded: None,
    }
}

/// Returns the value that four fifths of `all` do not exceed, in per cent with one decimal.
pub(crate) fn covered_percent(all: Vec<f64>) -> f64 {
    (covering(all, COVERED).unwrap_or(0.0) * 1e3).round() / 10.0
}

/// Returns the relative error of a ratio whose difference from 1 is `difference`. A ratio of 1/2
/// has the same error as a ratio of 2.
pub(crate) fn off(difference: f64) -> f64 {
    /// Limit of the ratio. Larger errors are not distinguished.
    const MOST: f64 = 1e3;
    ((1.0 + difference).max(1.0 / MOST).ln().abs().exp() - 1.0).min(MOST)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (met, all) = self.met;
        let within = WITHIN * 100.0;
        if self.fits {
            write!(
                f,
                "{} fits: {met} of {all} rates of the model are within {within:.0} % of the measurement",
                self.kind
            )?;
        } else {
            write!(
                f,
                "no model fits: {} is closest, with {met} of {all} rates within {within:.0} % of the measurement",
                self.kind
            )?;
        }
        if let Some((probe, difference)) = self.worst.as_ref().filter(|(_, difference)| difference.abs() > WITHIN) {
            write!(f, "; the largest error is {:+.0} %, for {probe}", difference * 100.0)?;
        }
        let (held_out, figures) = self.held_out_met;
        if figures > 0 {
            write!(
                f,
                "; for workloads that the fit did not use, {held_out} of {figures} metrics are within {within:.0} %"
            )?;
        }
        let (noisy, all) = self.noisy;
        if noisy > 0 {
            let noise = NOISY * 100.0;
            write!(
                f,
                "; {noisy} of {all} metrics vary by more than {noise:.0} % from run to run, so no model can match \
                 these metrics"
            )?;
        }
        Ok(())
    }
}

/// Returns a sentence about the drift of rates from
/// the first to the last round. `None` without drift.
pub(super) fn drift(residuals: &[Residual]) -> Option<String> {
    let drifts: Vec<f64> = residuals.iter().filter_map(|residual| residual.drift).collect();
    if drifts.is_empty() {
        return None;
    }
    let count = drifts.len() as f64;
    let mean = drifts.iter().map(|drift| drift.ln()).sum::<f64>() / count;
    let up = drifts.iter().filter(|&&drift| drift > 1.0).count() as f64 / count;
    if mean.abs() <= DRIFT_MIN || (DRIFT_OTHERS_MAX..=1.0 - DRIFT_OTHERS_MAX).contains(&up) {
        return None;
    }
    let word = if mean > 0.0 { "faster" } else { "slower" };
    let percent = (mean.exp() - 1.0).abs() * 100.0;
    Some(format!(
        "the device became {word} by {percent:.0} % from the first round to the last; possible \
         reasons are I/O credits, a cache, or other load"
    ))
}
