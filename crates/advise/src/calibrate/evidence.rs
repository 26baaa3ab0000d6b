//! What was measured, as a fit sees it, and how far a model is from it.

use iosched_disk::{Model, Profile};
use serde::Serialize;

use super::error::CalibrateError;
use super::measurer::simulate;
use super::probe::{Probe, Role, Span};
use super::records::{Measurements, Sample};
use super::summary::{Spread, Summary};
use super::target::Target;

/// How long a probe is simulated: so many I/Os at most, so often with another seed.
#[derive(Clone, Copy)]
struct Effort {
    ios: u64,
    runs: u64,
}

/// While a fit searches, and in the end.
const SEARCHING: Effort = Effort { ios: 1_000, runs: 1 };
const IN_THE_END: Effort = Effort { ios: 4_000, runs: 3 };
/// Stalls that a probe sees in the end, unless it was measured for a shorter time.
const STALLS: u64 = 20;
/// A figure that varies so much from run to run counts half.
const VARIATION_HALF: f64 = 0.1;
/// No single figure counts more than this, as the logarithm of a ratio: a model may miss one thing and get the others
/// right.
const MISS_MAX: f64 = 1.0;
/// What rate, median and p99 count.
pub(super) const WEIGHTS: [f64; 3] = [1.0, 0.5, 0.5];
/// The first seed of simulated probes.
const SEED: u64 = 17;

/// A probe and what its runs say.
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
}

/// What is told of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// I/Os a second.
    Iops,
    /// The latency that one in a hundred exceeds.
    P99,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Iops, Self::P99];
}

/// A figure of a probe: measured, and of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// As measured: I/Os a second, or ns.
    pub measured: Spread,
    /// As the model has it.
    pub model: f64,
}

impl Pair {
    /// Model over measured, less 1.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.model / self.measured.median.max(f64::MIN_POSITIVE) - 1.0
    }
}

/// A probe, measured and of the model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// Which.
    pub probe: Probe,
    /// I/Os a second.
    pub iops: Pair,
    /// Median latency, ns.
    pub p50_ns: Pair,
    /// Latency that one in a hundred exceeds, ns.
    pub p99_ns: Pair,
    /// Rate of the last run over that of the first.
    pub drift: Option<f64>,
}

impl Residual {
    /// That figure.
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
        Self { target: measurements.header.target.clone(), measured }
    }

    /// Probes of that role, in the order of the list.
    pub(super) fn of_role(&self, role: Role) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |measured| measured.probe.role == role)
    }

    /// Likewise.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn needed(&self, role: Role) -> Result<Vec<&Measured>, CalibrateError> {
        let found: Vec<&Measured> = self.of_role(role).collect();
        if found.is_empty() {
            return Err(CalibrateError::Incomplete { missing: format!("probe of role {:?}", role.title()) });
        }
        Ok(found)
    }

    /// How far `profile` is from the probes of `roles`: mean logarithm of ratios, 0 if it is like them. A short run has
    /// a stall or has none, so of models that stall medians alone are looked at.
    pub(super) fn miss(&self, profile: &Profile, roles: &[Role]) -> Result<f64, CalibrateError> {
        let stalls = matches!(profile.model(), Model::Server(config) if config.stalls.is_some());
        let weights = if stalls { [0.0, 1.0, 0.0] } else { WEIGHTS };
        let measured = self.measured.iter().filter(|measured| roles.contains(&measured.probe.role));
        let residuals: Result<Vec<_>, _> = measured.map(|measured| residual(profile, measured, SEARCHING)).collect();
        Ok(miss(&residuals?, weights))
    }

    /// Every probe but the pilot, measured and of `profile`: those that a fit sees, or those held out.
    pub(super) fn residuals(&self, profile: &Profile, held_out: bool) -> Result<Vec<Residual>, CalibrateError> {
        let wanted = |measured: &&Measured| match measured.probe.role {
            Role::Pilot | Role::Saturation => false,
            role => (role == Role::HeldOut) == held_out,
        };
        self.measured.iter().filter(wanted).map(|measured| residual(profile, measured, IN_THE_END)).collect()
    }

    /// Each probe that a fit sees, on the model that `fit` makes of all others.
    pub(super) fn left_out(
        &self,
        fit: impl Fn(&Self) -> Result<Profile, CalibrateError>,
    ) -> Result<Vec<Residual>, CalibrateError> {
        let is_seen = |role: Role| !matches!(role, Role::Pilot | Role::HeldOut | Role::Saturation);
        let seen = self.measured.iter().enumerate().filter(|(_, own)| is_seen(own.probe.role));
        seen.map(|(number, own)| {
            let mut others = self.clone();
            others.measured.remove(number);
            residual(&fit(&others)?, own, IN_THE_END)
        })
        .collect()
    }
}

/// How far residuals are from none: mean logarithm of the ratios of rate, median and p99, each with its weight.
pub(super) fn miss(residuals: &[Residual], weights: [f64; 3]) -> f64 {
    let (mut sum, mut weight_sum) = (0.0, 0.0);
    for residual in residuals {
        for (pair, weight) in [residual.iops, residual.p50_ns, residual.p99_ns].into_iter().zip(weights) {
            let noise = pair.measured.variation.unwrap_or(0.0) / VARIATION_HALF;
            let weight = weight / (1.0 + noise * noise);
            sum += weight * (1.0 + pair.difference()).max(1e-9).ln().abs().min(MISS_MAX);
            weight_sum += weight;
        }
    }
    if weight_sum > 0.0 { sum / weight_sum } else { 0.0 }
}

fn has_credits(profile: &Profile) -> bool {
    match profile.model() {
        Model::Server(config) => !config.credits.is_empty(),
        Model::Empirical(config) => !config.credits.is_empty(),
        _ => false,
    }
}

/// A probe on a device of `profile`.
fn residual(profile: &Profile, measured: &Measured, effort: Effort) -> Result<Residual, CalibrateError> {
    let Measured { probe, summary } = measured;
    // Stalls are rare: as many are seen as when it was measured.
    let stalls_ns = match profile.model() {
        Model::Server(config) if effort.runs > 1 => config.stalls.as_ref().map_or(0, |own| own.every_ns * STALLS),
        _ => 0,
    };
    let ios = effort.ios.max((summary.iops.median * stalls_ns as f64 / 1e9) as u64);
    // When credits are spent depends on all that was done.
    let whole = probe.parts > 0 && has_credits(profile);
    let span = if whole { summary.span } else { span(probe, summary, ios / u64::from(probe.parts.max(1))) };
    let workload = probe.workload(span);
    let mut samples = Vec::new();
    let runs = if whole { 1 } else { effort.runs };
    for run in 0..runs {
        samples.extend(Sample::of(0, 0, &simulate(profile, &workload, SEED + run)?));
    }
    // A model that does nothing in that time is infinitely far.
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

/// As long as it was measured, since caches fill; but no longer than so many I/Os need.
fn span(probe: &Probe, summary: &Summary, ios: u64) -> Span {
    let one_ns = 1e9 / summary.iops.median.max(1e-3);
    // Waiting evens out slowly: everything under way passes through many times.
    let depth = f64::from(probe.depth);
    let ios = (ios as f64).max(30.0 * depth);
    if summary.span.measured_ns as f64 <= one_ns * ios {
        return summary.span;
    }
    Span { warm_up_ns: (one_ns * (ios / 10.0 + 4.0 * depth)) as u64, measured_ns: (one_ns * ios) as u64 }
}
