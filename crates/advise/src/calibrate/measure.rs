//! Measures a device. Each round runs every probe once, in
//! a new order, so that drift and noise become visible.

use std::sync::atomic::{AtomicBool, Ordering};

use iosched_numbers::SplitMix64;

use super::error::{CalibrateError, FORMAT};
use super::measurer::Measurer;
use super::probe::{Probe, Role, Span, probes};
use super::records::{Header, Measurements, Sample};

/// Least size of a device, bytes. On a smaller device,
/// a small cache could hold most of the data by chance.
const CAPACITY_BYTES_MIN: u64 = 16 << 20;
/// Longest probe, ns.
const SPAN_NS_MAX: u64 = 20_000_000_000;
/// Duration of the pilot, ns.
const PILOT_NS: u64 = 400_000_000;
/// Random stream for the order of the probes.
const ORDER_STREAM: u64 = 0xCA11_B8A7;

/// Duration and extent of a calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Whether only the most important probes run.
    pub quick: bool,
    /// Number of runs of each probe, at least 1.
    pub rounds: u32,
    /// Duration of a probe on a fast device, ns.
    pub probe_ns: u64,
    /// On a slow device, a probe waits for this number of I/Os, but for at most four times
    /// `probe_ns`.
    pub ios: u64,
    /// Number of I/Os after which a probe ends early.
    pub ios_max: u64,
}

impl Pace {
    /// Pace of a full calibration, which takes a few minutes.
    pub const FULL: Self = Self { quick: false, rounds: 3, probe_ns: 1_000_000_000, ios: 500, ios_max: u64::MAX };
    /// Pace of a quick calibration, which takes half a minute unless the device is slow.
    pub const QUICK: Self = Self { quick: true, rounds: 1, probe_ns: 450_000_000, ios: 100, ios_max: u64::MAX };
    /// Pace of the calibration of a model, in virtual time.
    pub const SIMULATED: Self = Self { quick: false, rounds: 2, probe_ns: 2_000_000_000, ios: 1_000, ios_max: 3_000 };

    /// Returns the duration of `probe` if an I/O of the pilot took `latency_ns`.
    fn span(self, probe: &Probe, latency_ns: f64) -> Span {
        // The pause of a burst counts once per burst, not once per I/O.
        let one_ns = latency_ns / f64::from(probe.depth) + probe.think_ns as f64 / f64::from(probe.burst.max(1));
        let wanted = one_ns * self.ios as f64;
        // Time in which the device replaces all I/Os in flight four times.
        let least = 4.0 * latency_ns * f64::from(probe.depth);
        let base = self.probe_ns as f64;
        let usual = wanted.clamp(base, 4.0 * base).min(one_ns * self.ios_max as f64).max(least);
        let judged = if probe.role == Role::HeldOut { 2.0 } else { 1.0 };
        let measured_ns = ((usual * judged) as u64).min(SPAN_NS_MAX);
        Span { warm_up_ns: (measured_ns / 5).max(least as u64 / 2).min(SPAN_NS_MAX / 4), measured_ns }
    }
}

/// An event during a measurement.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The header: the device and the planned probes.
    Header(&'a Header),
    /// A probe begins.
    Begins {
        /// The probe.
        probe: &'a Probe,
        /// Number of complete runs.
        done: usize,
        /// Number of planned runs.
        total: usize,
    },
    /// A run is complete.
    Sample(&'a Sample),
}

/// Measures all probes and passes each event to `observe`. If `interrupt` becomes true, returns the
/// measurements made until then.
///
/// # Errors
/// The device is too small, the device fails, or `observe` fails.
pub fn measure<M: Measurer>(
    measurer: &mut M,
    pace: Pace,
    seed: u64,
    command: &str,
    interrupt: &AtomicBool,
    mut observe: impl FnMut(Progress<'_>) -> Result<(), CalibrateError>,
) -> Result<Measurements, CalibrateError> {
    let target = measurer.target().clone();
    let bytes = target.capacity_sectors.saturating_mul(512);
    if bytes < CAPACITY_BYTES_MIN {
        return Err(CalibrateError::TooSmall { target: target.name, bytes, least: CAPACITY_BYTES_MIN });
    }
    let probes = probes(&target, pace.quick);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let header = Header { format: FORMAT, version, command: command.to_owned(), target, seed, probes };
    observe(Progress::Header(&header))?;
    let order = order(&header.probes, pace.rounds, seed);
    let total = order.len();
    let mut measurements = Measurements::new(header);
    let mut latency_ns = 0.0;
    for (done, (round, number)) in order.into_iter().enumerate() {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        let probe = measurements.header.probes[number];
        observe(Progress::Begins { probe: &probe, done, total })?;
        let span = match probe.role {
            Role::Pilot => Span { warm_up_ns: PILOT_NS / 8, measured_ns: PILOT_NS },
            _ => pace.span(&probe, latency_ns),
        };
        let seed = SplitMix64::entity(seed, (u64::from(round) << 32) + number as u64).next_u64();
        let result = match measurer.measure(&probe.workload(span), seed) {
            Err(_) if interrupt.load(Ordering::Relaxed) => break,
            result => result,
        };
        let failed = |source| CalibrateError::Measure { probe: probe.to_string(), source: Box::new(source) };
        let nothing = || CalibrateError::Nothing {
            probe: probe.to_string(),
            seconds: span.measured_ns as f64 / 1e9,
            target: measurements.header.target.name.clone(),
        };
        let sample = Sample::of(number, round, &result.map_err(failed)?).ok_or_else(nothing)?;
        if probe.role == Role::Pilot {
            latency_ns = sample.latency().mean_ns();
        }
        observe(Progress::Sample(&sample))?;
        measurements.samples.push(sample);
    }
    Ok(measurements)
}

/// Returns the order of the runs, as pairs of a round and a probe number. The pilot runs once at
/// the beginning. Every round then runs all other probes in a new order. Probes in parts run only
/// in the first round.
fn order(probes: &[Probe], rounds: u32, seed: u64) -> Vec<(u32, usize)> {
    let mut random = SplitMix64::entity(seed, ORDER_STREAM);
    let mut order = vec![(0, 0)];
    for round in 0..rounds.max(1) {
        // A probe in parts takes many times as long, so it runs only once.
        let mut numbers: Vec<usize> = (1..probes.len()).filter(|&i| round == 0 || probes[i].parts == 0).collect();
        for i in (1..numbers.len()).rev() {
            numbers.swap(i, random.below(i as u64 + 1) as usize);
        }
        order.extend(numbers.into_iter().map(|number| (round, number)));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::target::Target;
    use iosched_disk::Profile;

    #[test]
    fn pilot_is_first_and_rounds_have_no_duplicate_probes() {
        let probes = probes(&Target::of_card("nvme", Profile::named("nvme").unwrap().card()), false);
        let (all, long) = (probes.len(), probes.iter().filter(|probe| probe.parts > 0).count());
        let order = order(&probes, 3, 7);
        assert_eq!(order[0], (0, 0));
        for round in 0..3 {
            let mut numbers: Vec<usize> =
                order[1..].iter().filter(|(of_round, _)| *of_round == round).map(|&(_, number)| number).collect();
            assert!(!numbers.is_sorted());
            numbers.sort_unstable();
            assert_eq!(numbers.len(), all - 1 - if round == 0 { 0 } else { long });
            numbers.dedup();
            assert!(numbers.len() >= all - 1 - long && numbers.last() < Some(&all), "each probe at most once");
        }
    }
}
