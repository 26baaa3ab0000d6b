//! Fits the parameters of a model to measurements.
//!
//! The probes show some parameters directly. A search finds the others, one at a time, by
//! simulating the probes on the model. Fits are deterministic: the same measurements give the same
//! model.

mod credits;
mod empirical;
mod hdd;
mod rest;
mod search;
mod server;
mod ssd;

pub(super) use hdd::seek_table;

use iosched_disk::{Model, QuantilePoint};
use iosched_sim::Histogram;

use super::Kind;
use super::error::CalibrateError;
use super::evidence::{Evidence, Measured};
use super::probe::Role;

/// The best model of a kind, or the reason why the kind was not tried.
pub(super) type Fit = Result<Model, &'static str>;

/// Returns the best model of `kind`.
pub(super) fn fit(kind: Kind, evidence: &Evidence) -> Result<Fit, CalibrateError> {
    match kind {
        Kind::Hdd => hdd::fit(evidence),
        Kind::Ssd => ssd::fit(evidence),
        Kind::Server => server::fit(evidence),
        Kind::Empirical => empirical::fit(evidence),
    }
}

/// Returns the latencies of 4 KiB reads, one at a time. They come from the distance probes, or from
/// the first size probe if there are no distance probes.
fn single(evidence: &Evidence) -> Result<Single, CalibrateError> {
    let mut probes: Vec<&Measured> = evidence.of_role(Role::Distance).collect();
    if probes.is_empty() {
        probes = evidence.needed(Role::Size)?;
        probes.truncate(1);
    }
    let mut latency = Histogram::default();
    probes.iter().for_each(|measured| latency.merge(&measured.summary.latency));
    let counted_ns = probes.iter().map(|measured| measured.summary.counted_ns).sum();
    Ok(Single { latency, counted_ns, bytes: probes.first().map_or(4096, |measured| measured.probe.bytes) })
}

/// I/Os that were alone on the device.
struct Single {
    latency: Histogram,
    counted_ns: u64,
    bytes: u32,
}

/// Returns the mean of a distribution.
fn mean_ns(points: &[QuantilePoint]) -> f64 {
    let part = |pair: &[QuantilePoint]| (pair[1].share - pair[0].share) * (pair[0].ns + pair[1].ns) as f64 / 2.0;
    points.windows(2).map(part).sum()
}

/// Returns the part of a distribution below a value.
fn below(latency: &Histogram, below_ns: u64) -> Histogram {
    let mut usual = Histogram::default();
    for (first_ns, width_ns, count) in latency.buckets().filter(|&(first_ns, ..)| first_ns < below_ns) {
        let middle_ns = (first_ns + width_ns / 2).clamp(latency.min_ns(), latency.max_ns());
        (0..count).for_each(|_| usual.record(middle_ns));
    }
    usual
}

/// Returns the bandwidth, bytes per second, from the rise of the latency with the size. `None` if
/// larger reads do not take longer.
fn bytes_per_second(evidence: &Evidence) -> Option<f64> {
    let sizes: Vec<(f64, f64)> = evidence
        .of_role(Role::Size)
        .map(|measured| (f64::from(measured.probe.bytes), measured.summary.p50_ns.median))
        .collect();
    median_slope(&sizes).filter(|&slope| slope > 1e-3).map(|slope| 1e9 / slope)
}

/// Returns the median of the slopes of all pairs of points
/// (Theil and Sen). `None` for fewer than two points.
fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes: Vec<f64> = Vec::new();
    for (i, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().map(|(other_x, other_y)| (other_y - y) / (other_x - x)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}

/// Returns the highest bandwidth of the read probes, bytes per second.
fn bandwidth(evidence: &Evidence) -> f64 {
    [Role::Bandwidth, Role::Sequential, Role::Size, Role::Place, Role::Depth]
        .into_iter()
        .flat_map(|role| evidence.of_role(role))
        .map(|measured| measured.summary.iops.median * f64::from(measured.probe.bytes))
        .fold(1e6, f64::max)
}

/// Returns the highest rate of 4 KiB reads at any depth, I/Os per second.
fn most_iops(evidence: &Evidence) -> Result<f64, CalibrateError> {
    let depths = evidence.needed(Role::Depth).or_else(|_| evidence.needed(Role::Size))?;
    Ok(depths.iter().map(|measured| measured.summary.iops.median).fold(1e-3, f64::max))
}
