//! The parameters of io.cost for a device, each with its source: probes
//! of a calibration, or a profile that is simulated at saturation.
//!
//! The model describes the device at saturation. The QoS latencies are 95th percentiles of random 4
//! KiB I/Os on the busy device. They are measured at the lowest depth that reaches nine tenths of
//! the highest rate, because I/Os would only wait at a greater depth. With the QoS bounds, the rate
//! of virtual time can become between half and one and a half times the usual rate.

use iosched_disk::Profile;
pub use iosched_disk::io_cost::hwdb_path;
use iosched_disk::io_cost::{BUSY, Family, IoCostModel, IoCostQos, QOS_SHARE, hwdb, hwdb_name};
use iosched_disk::measure::{Saturated, saturation};
use serde::Serialize;

use crate::calibrate::{Measurements, Probe, Role, Summary};

const SMALL_BYTES: u32 = 4096;
/// Least size of I/Os that give a bandwidth.
const LARGE_BYTES: u32 = 256 << 10;

/// The model and the QoS of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoCost {
    /// The performance of the device at saturation.
    pub model: IoCostModel,
    /// The latencies to keep.
    pub qos: IoCostQos,
    /// Source of each parameter.
    pub origins: Vec<Origin>,
}

/// Parameter of io.cost, with the measurement or simulation that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Name of the parameter in the kernel's files.
    pub name: &'static str,
    /// Value of the parameter.
    pub value: u64,
    /// The measurement or simulation that gave the value.
    pub from: String,
}

/// A value and its source.
type Found = (f64, String);

impl IoCost {
    /// Creates the parameters of a profile by simulation. For a member of a family, uses published
    /// values.
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        if let Some((_, member)) = Family::member(profile.name())
            && let Some(run) = member.runs.first()
        {
            let runs = member.runs.len();
            let origin = if runs == 1 { "published".to_owned() } else { format!("published: mean of {runs} runs") };
            let latencies = [0, 1].map(|_| format!("published: results of tuning, {}", run.result));
            return Self::with(member.mean(), run.qos, vec![origin; IoCostModel::NAMES.len()], latencies);
        }
        let found = saturation(profile);
        let at = |(_, depth): (f64, u32), what: &str| format!("simulated: {what}, {depth} in flight");
        let busy = |saturated: &Saturated, what: &str| {
            format!(
                "simulated: 95th percentile of the latency of random {what} of 4 KiB, {} in flight",
                saturated.busy_depth
            )
        };
        let parameters = |saturated: &Saturated, what: &str| {
            [
                at(saturated.bytes, &format!("sequential {what} of 1 MiB")),
                at(saturated.sequential, &format!("sequential {what} of 4 KiB")),
                at(saturated.random, &format!("random {what} of 4 KiB")),
            ]
        };
        let latencies = [busy(&found.reads, "reads"), busy(&found.writes, "writes")];
        let rates = [parameters(&found.reads, "reads"), parameters(&found.writes, "writes")].concat();
        Self::with(found.model(), found.qos(), rates, latencies)
    }

    /// Creates the parameters from measurements. Parameters without a measurement come from the
    /// fitted `profile`. Measurements are missing if the device was only read, or if no probe shows
    /// the parameter.
    #[must_use]
    pub fn of_measurements(measurements: &Measurements, profile: &Profile) -> Self {
        let simulated = Self::of_profile(profile);
        let summaries = measurements.summaries();
        let probes: Vec<(&Probe, &Summary)> =
            measurements.header.probes.iter().zip(&summaries).filter_map(|(p, s)| Some((p, s.as_ref()?))).collect();
        let capacity_sectors = measurements.header.target.capacity_sectors;
        let saturated = |writes: bool| {
            let plain = || probes.iter().filter(move |(probe, _)| is_plain(probe, writes));
            let most = |found: &mut dyn Iterator<Item = Found>| found.reduce(|a, b| if b.0 > a.0 { b } else { a });
            let small = |probe: &Probe, sequential| probe.bytes == SMALL_BYTES && probe.sequential == sequential;
            let rate = |(probe, summary): &(&Probe, &Summary)| (summary.iops.median, probe.to_string());
            let bytes = most(
                &mut plain()
                    .filter(|(probe, _)| probe.bytes >= LARGE_BYTES)
                    .map(|(probe, summary)| (summary.iops.median * f64::from(probe.bytes), probe.to_string())),
            );
            // Probes at depth 1 show saturation only on a device with depth 1.
            let deep = |probe: &Probe| probe.depth > 1 || measurements.header.target.depth == 1;
            let sequential = most(&mut plain().filter(|(p, _)| small(p, true) && deep(p)).map(rate));
            let at_random: Vec<_> =
                plain().filter(|(probe, _)| small(probe, false) && probe.sectors == capacity_sectors).collect();
            let random = most(&mut at_random.iter().filter(|(probe, _)| deep(probe)).map(|entry| rate(entry)));
            let busy = random.as_ref().and_then(|(best, _)| {
                let busy = at_random.iter().filter(|(_, summary)| summary.iops.median >= BUSY * best);
                busy.min_by_key(|(probe, _)| probe.depth)
            });
            let latency = busy.map(|(probe, summary)| {
                (summary.latency.quantile_ns(QOS_SHARE) as f64 / 1e3, format!("95th percentile of: {probe}"))
            });
            ([bytes, sequential, random], latency)
        };
        let ((reads, rlat), (writes, wlat)) = (saturated(false), saturated(true));
        let not_measured = |origin: &Origin| format!("not measured; the value is from the model: {}", origin.from);
        let mut figures = simulated.model.figures();
        let mut rates: Vec<String> = simulated.origins.iter().take(6).map(not_measured).collect();
        for (place, found) in reads.into_iter().chain(writes).enumerate() {
            if let Some((value, from)) = found {
                figures[place] = (value as u64).max(1);
                rates[place] = from;
            }
        }
        let mut qos = simulated.qos;
        let mut latencies = [6, 7].map(|place| not_measured(&simulated.origins[place]));
        for (place, found) in [rlat, wlat].into_iter().enumerate() {
            if let Some((us, from)) = found {
                let us = (us.ceil() as u64).max(1);
                *[&mut qos.rlat_us, &mut qos.wlat_us][place] = us;
                latencies[place] = from;
            }
        }
        Self::with(IoCostModel::of(figures), qos, rates, latencies)
    }

    fn with(model: IoCostModel, qos: IoCostQos, rates: Vec<String>, latencies: [String; 2]) -> Self {
        let figures = IoCostModel::NAMES.into_iter().zip(model.figures()).zip(rates);
        let mut origins: Vec<Origin> = figures.map(|((name, value), from)| Origin { name, value, from }).collect();
        let [rlat, wlat] = latencies;
        origins.push(Origin { name: "rlat", value: qos.rlat_us, from: rlat });
        origins.push(Origin { name: "wlat", value: qos.wlat_us, from: wlat });
        Self { model, qos, origins }
    }

    /// Returns the entry for systemd's hwdb for devices with this model name.
    #[must_use]
    pub fn hwdb(&self, model_name: Option<&str>) -> String {
        hwdb(&hwdb_name(model_name), &self.model, &self.qos)
    }
}

/// Returns whether a probe has only reads or only writes, without pauses and flushes, either at
/// random places or in sequence.
fn is_plain(probe: &Probe, writes: bool) -> bool {
    let one_way = probe.read_percent == if writes { 0 } else { 100 };
    let has_role = matches!(
        probe.role,
        Role::Depth | Role::Bandwidth | Role::Sequential | Role::Write | Role::HeldOut | Role::Saturation
    );
    one_way && has_role && probe.flush_every == 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::calibrate::{Measurer, Pace, Simulated, Target, measure};

    fn measured(profile: &Profile, writable: bool) -> Measurements {
        struct ReadOnly(Simulated, Target);
        impl Measurer for ReadOnly {
            type Error = <Simulated as Measurer>::Error;
            fn target(&self) -> &Target {
                &self.1
            }
            fn measure(
                &mut self,
                workload: &iosched_workload::Workload,
                seed: u64,
            ) -> Result<iosched_sim::RunResult, Self::Error> {
                self.0.measure(workload, seed)
            }
        }
        let device = Simulated::new(profile.clone());
        let target = Target { writable, ..device.target().clone() };
        measure(&mut ReadOnly(device, target), Pace::SIMULATED, 1, "", &AtomicBool::new(false), |_| Ok(())).unwrap()
    }

    #[test]
    fn measured_io_cost_model_matches_the_published_rates() {
        let profile = Profile::named("mtfdkba512tfh").unwrap();
        let io_cost = IoCost::of_measurements(&measured(&profile, true), &profile);
        let wanted = iosched_disk::io_cost::Family::member("mtfdkba512tfh").unwrap().1.mean();
        for ((name, found), wanted) in IoCostModel::NAMES.iter().zip(io_cost.model.figures()).zip(wanted.figures()) {
            let off = found as f64 / wanted as f64 - 1.0;
            assert!(off.abs() < 0.1, "{name}: {found} for {wanted}");
        }
        assert!(io_cost.origins.iter().all(|origin| !origin.from.contains("not measured")), "{:?}", io_cost.origins);
        // Ten servers are busy at depth 16, and a few I/Os wait.
        assert!((80..400).contains(&io_cost.qos.rlat_us), "{}", io_cost.qos);
        assert!(
            io_cost.hwdb(Some("A disk/1")).starts_with("block:*:name:A_disk_1:fwrev:*:\n  IOCOST_SOLUTIONS=measured\n")
        );
    }

    #[test]
    fn unmeasured_write_parameters_are_marked_as_from_the_model() {
        let profile = Profile::named("sata-ssd").unwrap();
        let io_cost = IoCost::of_measurements(&measured(&profile, false), &profile);
        let from = |name: &str| io_cost.origins.iter().find(|origin| origin.name == name).unwrap().from.clone();
        for name in ["wbps", "wseqiops", "wrandiops", "wlat"] {
            assert!(from(name).starts_with("not measured; the value is from the model: simulated: "), "{}", from(name));
        }
        assert!(from("rrandiops").starts_with("random read 4 KiB, depth "), "{}", from("rrandiops"));
    }

    #[test]
    fn family_member_has_published_latencies() {
        let io_cost = IoCost::of_profile(&Profile::named("ct1000p3pssd8").unwrap());
        assert_eq!((io_cost.qos.rlat_us, io_cost.qos.wlat_us), (39_518, 287_834));
        assert!(io_cost.origins[6].from.contains("result-462faf38bd17d"));
    }
}
