//! The measurements in the form that a fit uses, and the distance of a model from them.

use iosched_disk::{Model, Profile};
use serde::Serialize;

use super::error::CalibrateError;
use super::measurer::simulate;
use super::probe::{Probe, Role, Span};
use super::records::{Measurements, Sample};
use super::summary::{Spread, Summary};
use super::target::Target;

/// Effort of simulating a probe: the largest number of I/Os in a run, and the number of runs, each
/// with its own seed.
#[derive(Clone, Copy)]
struct Effort {
    ios: u64,
    runs: u64,
}

/// Efforts during the search of a fit, and for the final residuals.
const SEARCHING: Effort = Effort { ios: 1_000, runs: 1 };
const IN_THE_END: Effort = Effort { ios: 4_000, runs: 3 };
/// The final simulation of a probe is long enough for about this number of stalls, but never longer
/// than the measurement of the probe.
const STALLS: u64 = 20;
/// Variation between runs at which a metric has half its weight.
const VARIATION_HALF: f64 = 0.1;
/// Largest contribution of a single metric to [`Evidence::miss`], as the logarithm of a ratio. A
/// model that misses one metric can still be right about the others.
const MISS_MAX: f64 = 1.0;
/// Weights of rate, median and p99.
pub(super) const WEIGHTS: [f64; 3] = [1.0, 0.5, 0.5];
/// First seed of the simulated probes.
const SEED: u64 = 17;

/// A probe and the summary of its runs.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) probe: Probe,
    pub(super) summary: Summary,
}

/// All probes that were run.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) target: Target,
    measured: Vec<Measured>,
    norm: Norm,
}

/// Distance of a model from the measurements, from the logarithms of the ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Norm {
    /// The mean of the absolute values. Each value is limited, so that single bad probes count
    /// little.
    Absolute,
    /// The root mean square. It suits the rows of a table, which are independent results.
    Squares,
}

/// A metric of a probe that the report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// I/Os per second.
    Iops,
    /// The 99th percentile of the latency.
    P99,
}

impl Quantity {
    /// All metrics, in the order of the report.
    pub const ALL: [Self; 2] = [Self::Iops, Self::P99];
}

/// The measured and the modelled value of a metric of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Measured value, I/Os per second or ns.
    pub measured: Spread,
    /// Value of the model, in the same unit.
    pub model: f64,
}

impl Pair {
    /// Returns whether the metric was measured. A row of a table can lack a metric.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.measured.median.is_finite()
    }

    /// Returns the relative error: the ratio of the modelled to the measured value, minus 1.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.model / self.measured.median.max(f64::MIN_POSITIVE) - 1.0
    }
}

/// The metrics of one probe, measured and modelled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// The probe.
    pub probe: Probe,
    /// I/Os per second.
    pub iops: Pair,
    /// Median latency, ns.
    pub p50_ns: Pair,
    /// The 99th percentile of the latency, ns.
    pub p99_ns: Pair,
    /// Ratio of the rate of the last run to the rate of the first run.
    pub drift: Option<f64>,
}

impl Residual {
    /// Returns the values of `quantity`.
    #[must_use]
    pub const fn pair(&self, quantity: Quantity) -> &Pair {
        match quantity {
            Quantity::Iops => &self.iops,
            Quantity::P99 => &self.p99_ns,
        }
    }
}

impl Evidence {
    pub(super) fn of(measurements: &Measurements) -> Self {
        let probes = measurements.header.probes.iter();
        let measured = probes.zip(measurements.summaries());
        let measured = measured.filter_map(|(&probe, summary)| Some(Measured { probe, summary: summary? })).collect();
        Self { target: measurements.header.target.clone(), measured, norm: Norm::Absolute }
    }

    /// Creates the evidence of a table.
    pub(super) const fn of_table(target: Target, measured: Vec<Measured>) -> Self {
        Self { target, measured, norm: Norm::Squares }
    }

    /// Returns the norm of the distance that fits minimise.
    pub(super) const fn norm(&self) -> Norm {
        self.norm
    }

    /// Returns the distance of a model with these residuals.
    pub(super) fn distance(&self, residuals: &[Residual], weights: [f64; 3]) -> f64 {
        let norm = self.norm;
        let (mut sum, mut weight_sum) = (0.0, 0.0);
        for residual in residuals {
            for (pair, weight) in [residual.iops, residual.p50_ns, residual.p99_ns].into_iter().zip(weights) {
                if !pair.is_known() {
                    continue;
                }
                let noise = pair.measured.variation.unwrap_or(0.0) / VARIATION_HALF;
                let weight = weight / (1.0 + noise * noise);
                let off = (1.0 + pair.difference()).max(1e-9).ln().abs();
                sum += weight
                    * match norm {
                        Norm::Absolute => off.min(MISS_MAX),
                        Norm::Squares => off * off,
                    };
                weight_sum += weight;
            }
        }
        let mean = if weight_sum > 0.0 { sum / weight_sum } else { 0.0 };
        if norm == Norm::Squares { mean.sqrt() } else { mean }
    }

    /// Returns the probes of `role`, in the order of the list.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |measured| measured.probe.role == role)
    }

    /// Returns the probes of `role`.
    ///
    /// # Errors
    /// No probe has this role.
    pub(super) fn needed(&self, role: Role) -> Result<Vec<&Measured>, CalibrateError> {
        let found: Vec<&Measured> = self.of_role(role).collect();
        if found.is_empty() {
            return Err(CalibrateError::Incomplete { missing: format!("probe of role {:?}", role.title()) });
        }
        Ok(found)
    }

    /// Returns the distance of `profile` from the probes of `roles`. 0 means equal values. For
    /// models with stalls, only medians count, because a short run contains a stall only by chance.
    pub(super) fn miss(&self, profile: &Profile, roles: &[Role]) -> Result<f64, CalibrateError> {
        let stalls = matches!(profile.model(), Model::Server(config) if config.stalls.is_some());
        let weights = if stalls { [0.0, 1.0, 0.0] } else { WEIGHTS };
        let measured = self.measured.iter().filter(|measured| roles.contains(&measured.probe.role));
        let residuals: Result<Vec<_>, _> = measured.map(|measured| residual(profile, measured, SEARCHING)).collect();
        Ok(self.distance(&residuals?, weights))
    }

    /// Returns the residuals of `profile` for the held-out probes if `held_out` is true, otherwise
    /// for the probes that a fit uses. The pilot and the saturation probes have no residual.
    pub(super) fn residuals(&self, profile: &Profile, held_out: bool) -> Result<Vec<Residual>, CalibrateError> {
        let wanted = |measured: &&Measured| match measured.probe.role {
            Role::Pilot | Role::Saturation => false,
            role => (role == Role::HeldOut) == held_out,
        };
        self.measured.iter().filter(wanted).map(|measured| residual(profile, measured, IN_THE_END)).collect()
    }

    /// Returns a residual for each probe that a fit uses. The residual compares the probe with a
    /// model that is fitted to all other probes.
    pub(super) fn left_out(
        &self,
        fit: impl Fn(&Self) -> Result<Profile, CalibrateError>,
    ) -> Result<Vec<Residual>, CalibrateError> {
        let is_seen = |role: Role| !matches!(role, Role::Pilot | Role::HeldOut | Role::Saturation);
        let seen = self.measured.iter().enumerate().filter(|(_, measured)| is_seen(measured.probe.role));
        seen.map(|(number, measured)| {
            let mut others = self.clone();
            others.measured.remove(number);
            residual(&fit(&others)?, measured, IN_THE_END)
        })
        .collect()
    }
}

fn has_credits(profile: &Profile) -> bool {
    match profile.model() {
        Model::Server(config) => !config.credits.is_empty(),
        Model::Empirical(config) => !config.credits.is_empty(),
        _ => false,
    }
}

/// Simulates a probe on a device of `profile`.
fn residual(profile: &Profile, measured: &Measured, effort: Effort) -> Result<Residual, CalibrateError> {
    let Measured { probe, summary } = measured;
    // Stalls are rare, so the final simulation must be long enough for about `STALLS` stalls.
    let stalls_ns = match profile.model() {
        Model::Server(config) if effort.runs > 1 => config.stalls.as_ref().map_or(0, |stalls| stalls.every_ns * STALLS),
        _ => 0,
    };
    let ios = effort.ios.max((summary.iops.median * stalls_ns as f64 / 1e9) as u64);
    // The number of credits depends on all earlier I/O, so the simulation of a probe with credits
    // has the full length of the measurement.
    let uses_credits = probe.parts > 0 && has_credits(profile);
    let span = if uses_credits { summary.span } else { span(probe, summary, ios / u64::from(probe.parts.max(1))) };
    let workload = probe.workload(span);
    let mut samples = Vec::new();
    let runs = if uses_credits { 1 } else { effort.runs };
    for run in 0..runs {
        samples.extend(Sample::of(0, 0, &simulate(profile, &workload, SEED + run)?));
    }
    // A model without I/O in this time counts as infinitely far away.
    let model = Summary::of(&samples.iter().collect::<Vec<_>>());
    let pair = |measured: &Spread, of: &dyn Fn(&Summary) -> f64| Pair {
        measured: *measured,
        model: model.as_ref().map_or(f64::MIN_POSITIVE, of),
    };
    Ok(Residual {
        probe: *probe,
        iops: pair(&summary.iops, &|model| model.iops.median),
        p50_ns: pair(&summary.p50_ns, &|model| model.p50_ns.median),
        p99_ns: pair(&summary.p99_ns, &|model| model.p99_ns.median),
        drift: summary.drift,
    })
}

/// Returns the span to simulate: the measured span, so that caches become as full as during the
/// measurement, but at most the time of `ios` I/Os.
fn span(probe: &Probe, summary: &Summary, ios: u64) -> Span {
    let one_ns = 1e9 / summary.iops.median.max(1e-3);
    // Queueing times need long runs to converge: all I/Os in flight must be replaced many times.
    let depth = f64::from(probe.depth);
    let ios = (ios as f64).max(30.0 * depth);
    if summary.span.measured_ns as f64 <= one_ns * ios {
        return summary.span;
    }
    Span { warm_up_ns: (one_ns * (ios / 10.0 + 4.0 * depth)) as u64, measured_ns: (one_ns * ios) as u64 }
}
