//! Comparison of a device model with a recorded disk, request by request.
//!
//! The recorded requests are sent to the model one at a time, with the same pause after each
//! completion as in the recording. The positions of the platters are not known. Therefore
//! distributions are compared instead of single requests.
//!
//! The measure is the root mean square of the horizontal distance between the two distributions of
//! response times. Ruemmler and Wilkes call it the demerit figure ("An introduction to disk drive
//! modeling", 1994).

use iosched::{Op, Time};
use iosched_disk::disksim::Service;
use iosched_disk::{AnyDevice, Command, Device, Profile};
use serde::Serialize;

use crate::number::significant;

/// Quantiles of each distribution in the result.
pub const QUANTILES: [f64; 6] = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

/// A request with its measured and simulated service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Request as measured.
    pub service: Service,
    /// Simulated service time, ns.
    pub simulated_ns: u64,
    /// Whether the model accessed the medium for the request; `None` if the model does not record
    /// it.
    pub from_medium: Option<bool>,
    /// Distance from the end of the previous request to the start of this request, sectors; `None`
    /// for the first request.
    pub distance: Option<u64>,
}

/// Distance between two distributions of response times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Closeness {
    /// Number of requests.
    pub requests: usize,
    /// Measured mean, ms.
    pub measured_mean_ms: f64,
    /// Simulated mean, ms.
    pub mean_ms: f64,
    /// Root mean square distance of the distributions, ms.
    pub rms_ms: f64,
    /// Both distributions at [`QUANTILES`].
    pub quantiles: Vec<QuantilePair>,
}

/// A quantile of both distributions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuantilePair {
    /// The quantile, 0 to 1.
    pub quantile: f64,
    /// Measured value, ms.
    pub measured_ms: f64,
    /// Simulated value, ms.
    pub simulated_ms: f64,
}

/// A kind of requests, with its distributions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// Name of the kind, such as "reads" or "reads from the medium".
    pub name: String,
    /// Distance between the distributions of these requests.
    #[serde(flatten)]
    pub closeness: Closeness,
}

/// Result of comparing a model with a recorded disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Name under which the profile was loaded.
    pub device: String,
    /// Description of the device, in one line.
    pub about: String,
    /// Name of the trace, from the caller.
    pub trace: String,
    /// Seed, which determines the positions of the platters at the start.
    pub seed: u64,
    /// Size of the device, sectors.
    pub capacity_sectors: u64,
    /// Requests in the order in which they were sent, at least 1.
    pub served: Vec<Served>,
}

/// Sends the requests to a device with `profile`. There must be at least one request, and all must
/// be within the device's capacity.
#[must_use]
pub fn validate(profile: &Profile, trace: &str, services: &[Service], seed: u64) -> Validation {
    let mut device = profile.device(seed);
    let mut now = Time::ZERO;
    let mut end: Option<u64> = None;
    let served = services.iter().map(|service| {
        let before = medium_commands(&device);
        let &Service { op, sector, nr_sectors, .. } = service;
        let done = serve_alone(&mut device, now, Command { tag: 0, op, sector, nr_sectors, fua: false });
        let simulated_ns = done.since(now);
        now = done + service.next_ns;
        let distance = end.map(|end| end.abs_diff(sector));
        end = Some(sector + u64::from(nr_sectors));
        // A write to the cache does not count as an access to the medium.
        let from_medium = medium_commands(&device).zip(before).map(|(after, before)| after > before);
        Served { service: *service, simulated_ns, from_medium, distance }
    });
    let served = served.collect();
    Validation {
        device: profile.name().to_owned(),
        about: profile.about().to_owned(),
        trace: trace.to_owned(),
        seed,
        capacity_sectors: profile.card().capacity_sectors,
        served,
    }
}

/// Sends a command at `now` to a device without other commands, and returns its completion time.
pub fn serve_alone(device: &mut impl Device, now: Time, command: Command) -> Time {
    device.submit(now, command);
    let mut at = now;
    while device.advance(at).is_none() {
        match device.next_event() {
            Some(next) => at = next,
            None => unreachable!("a device completes only requests that it received"),
        }
    }
    at
}

fn medium_commands(device: &AnyDevice) -> Option<u64> {
    match device {
        AnyDevice::Hdd(hdd) => Some(hdd.medium_commands()),
        _ => None,
    }
}

impl Closeness {
    /// Returns a sentence about the distance between model and disk.
    #[must_use]
    pub fn decision(&self) -> String {
        let percent = (self.mean_ms / self.measured_mean_ms - 1.0) * 100.0;
        let shown = significant(percent.abs(), 2);
        let mean = match percent {
            _ if !percent.is_finite() => "answers at a different time than".to_owned(),
            _ if percent.abs() < 0.05 => "answers as fast as".to_owned(),
            _ if percent < 0.0 => format!("answers {shown} % faster than"),
            _ => format!("answers {shown} % slower than"),
        };
        format!(
            "On average the model {mean} the disk ({:.2} ms against {:.2} ms). Their distributions of response times are \
             {:.3} ms apart (root mean square).",
            self.mean_ms, self.measured_mean_ms, self.rms_ms
        )
    }
}

impl Validation {
    /// Returns the distance over all requests.
    #[must_use]
    pub fn overall(&self) -> Closeness {
        closeness(&self.served, |_| true).unwrap_or_else(|| unreachable!("there is at least one request"))
    }

    /// Returns the kinds with at least one request: reads, writes, reads that the model serves from
    /// its cache, and reads that it serves from its medium. Reads from the medium are also divided
    /// by their distance from the previous request.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let is_read = |served: &Served| served.service.op == Op::Read;
        let mut kinds = Vec::new();
        let mut add = |name: &str, is_in: &dyn Fn(&Served) -> bool| {
            let closeness = closeness(&self.served, is_in);
            kinds.extend(closeness.map(|closeness| Kind { name: name.to_owned(), closeness }));
        };
        add("reads", &is_read);
        add("writes", &|served| !is_read(served));
        add("reads from the cache", &|served| is_read(served) && served.from_medium == Some(false));
        let from_medium = |served: &Served| is_read(served) && served.from_medium == Some(true);
        add("reads from the medium", &from_medium);
        let mib = 2048;
        let per_cent = self.capacity_sectors / 100;
        for (name, near, far) in [
            ("  within 1 MiB of the previous", 0, mib),
            ("  within 1 % of the disk", mib, per_cent.max(mib)),
            ("  within 10 % of the disk", per_cent.max(mib), per_cent.max(mib) * 10),
            ("  further", per_cent.max(mib) * 10, u64::MAX),
        ] {
            add(name, &|served| from_medium(served) && served.distance.is_some_and(|d| (near..far).contains(&d)));
        }
        kinds
    }

    /// Returns the response times of the requests that `is_in` selects, ns: first the measured
    /// times, then the simulated times, both sorted.
    #[must_use]
    pub fn sorted_ns(&self, is_in: impl Fn(&Served) -> bool) -> (Vec<u64>, Vec<u64>) {
        sorted_ns(&self.served, is_in)
    }
}

fn sorted_ns(served: &[Served], is_in: impl Fn(&Served) -> bool) -> (Vec<u64>, Vec<u64>) {
    let chosen = || served.iter().filter(|served| is_in(served));
    let mut measured: Vec<u64> = chosen().map(|served| served.service.service_ns).collect();
    let mut simulated: Vec<u64> = chosen().map(|served| served.simulated_ns).collect();
    measured.sort_unstable();
    simulated.sort_unstable();
    (measured, simulated)
}

fn closeness(served: &[Served], is_in: impl Fn(&Served) -> bool) -> Option<Closeness> {
    let (measured, simulated) = sorted_ns(served, is_in);
    let requests = measured.len();
    if requests == 0 {
        return None;
    }
    let mean_ms = |ns: &[u64]| ns.iter().map(|&ns| ns as f64).sum::<f64>() / requests as f64 / 1e6;
    let quantiles = QUANTILES.map(|quantile| QuantilePair {
        quantile,
        measured_ms: at(&measured, quantile) / 1e6,
        simulated_ms: at(&simulated, quantile) / 1e6,
    });
    Some(Closeness {
        requests,
        measured_mean_ms: mean_ms(&measured),
        mean_ms: mean_ms(&simulated),
        rms_ms: rms(&measured, &simulated) / 1e6,
        quantiles: quantiles.to_vec(),
    })
}

/// Returns a quantile of sorted values: the smallest value that is at least as large as this share
/// of the values.
fn at(sorted: &[u64], quantile: f64) -> f64 {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1] as f64
}

/// Returns the root mean square distance of two distributions, given as sorted values of the same
/// number. The horizontal distance at each height is the distance between two values of the same
/// rank.
#[must_use]
pub fn rms(a: &[u64], b: &[u64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let squares = a.iter().zip(b).map(|(&a, &b)| (a.abs_diff(b) as f64).powi(2));
    (squares.sum::<f64>() / a.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rms_distance_compares_equal_ranks() {
        assert_eq!(rms(&[1, 2, 3], &[1, 2, 3]), 0.0);
        assert_eq!(rms(&[0, 10], &[3, 14]), (12.5f64).sqrt());
    }

    #[test]
    fn model_has_no_distance_from_itself() {
        let profile = Profile::named("sata-7200").unwrap();
        let services: Vec<Service> = (0..200u64)
            .map(|i| Service {
                op: if i % 3 == 0 { Op::Write } else { Op::Read },
                sector: i * i * 7919 * 8 % 1_000_000_000,
                nr_sectors: 8,
                service_ns: 0,
                next_ns: 40_000_000,
            })
            .collect();
        let first = validate(&profile, "self", &services, 3);
        let measured: Vec<Service> =
            first.served.iter().map(|served| Service { service_ns: served.simulated_ns, ..served.service }).collect();
        let again = validate(&profile, "self", &measured, 3);
        let overall = again.overall();
        assert_eq!((overall.rms_ms, overall.requests), (0.0, 200));
        assert_eq!(overall.mean_ms, overall.measured_mean_ms);
        let kinds = again.kinds();
        let requests =
            |name: &str| kinds.iter().find(|kind| kind.name == name).map_or(0, |kind| kind.closeness.requests);
        assert_eq!((requests("reads"), requests("writes")), (133, 67));
        assert_eq!(requests("reads from the cache") + requests("reads from the medium"), 133);
        // Other positions of the platters change single requests, but almost never the
        // distribution.
        assert!(
            overall.decision().starts_with("On average the model answers as fast as the disk ("),
            "{}",
            overall.decision()
        );
        let slower = Closeness { mean_ms: overall.measured_mean_ms * 1.1, ..overall.clone() };
        assert!(slower.decision().starts_with("On average the model answers 10 % slower than the disk"), "{slower:?}");
        let other = validate(&profile, "self", &measured, 4).overall();
        assert!(other.rms_ms > 0.0 && other.rms_ms < 1.5, "{}", other.rms_ms);
    }
}
