//! Families of devices: many devices of one kind with known rates at saturation. For most of these
//! devices, the latencies of reads during writes are also known.

use super::latencies::{Latencies, LatencyRow};
use super::model::{IoCostModel, IoCostQos};
use super::rates::Spread;

/// Share of the metrics of repeated runs that must lie within the usual spread. The usual spread
/// applies to devices with a single run, because their own spread is unknown.
const MOST: f64 = 0.8;

/// Family of similar devices, and their measured parameters of io.cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name of the family.
    pub name: &'static str,
    /// Kind of the members, and the source of the measurements.
    pub about: &'static str,
    text: &'static str,
    /// Table of latencies, with a line for each run and rate of io.cost.
    latencies: &'static str,
}

/// A device of a family, with all runs of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name of the profile: the model name in lower case.
    pub name: String,
    /// Model name that the device reports.
    pub model_name: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Number of commands that the device takes at the same time.
    pub depth: u32,
    /// Results of the runs.
    pub runs: Vec<Run>,
    /// Rows with the latencies of all runs; empty if no latencies were published.
    pub rows: Vec<LatencyRow>,
}

/// Parameters of io.cost from one measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Measured model.
    pub model: IoCostModel,
    /// Tuned QoS. Its bounds are [`IoCostQos::MIN`] and [`IoCostQos::MAX`], because no bounds are
    /// published.
    pub qos: IoCostQos,
    /// Kernel version of the measurement.
    pub kernel: String,
    /// Name of the published result.
    pub result: String,
}

impl Family {
    /// All families of devices with published parameters.
    pub const ALL: &'static [Self] = &[Self {
        name: "ssd",
        about: "SSDs that the project iocost-benchmarks measured for io.cost: maximum rates and, for most SSDs, \
            latencies of reads during writes",
        text: include_str!("../../profiles/families/ssd.csv"),
        latencies: include_str!("../../profiles/families/ssd-latency.csv"),
    }];

    /// Returns the family with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|family| family.name == name)
    }

    /// Returns the members, sorted by name.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let mut members: Vec<Member> = Vec::new();
        for line in self.text.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let Some((model_name, size_bytes, depth, run)) = of_line(line) else { continue };
            match members.iter_mut().find(|member| member.model_name == model_name) {
                Some(known) => known.runs.push(run),
                None => {
                    let name = model_name.to_ascii_lowercase();
                    let model_name = model_name.to_owned();
                    members.push(Member { name, model_name, size_bytes, depth, runs: vec![run], rows: Vec::new() });
                }
            }
        }
        for line in self.latencies.lines().filter(|line| !line.starts_with('#')).skip(1) {
            let Some((model_name, row)) = of_latency_line(line) else { continue };
            if let Some(member) = members.iter_mut().find(|member| member.model_name == model_name) {
                member.rows.push(row);
            }
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// Returns the table of latencies: model, run, rate of io.cost, rates and latencies.
    #[must_use]
    pub const fn latency_table(&self) -> &'static str {
        self.latencies
    }

    /// Returns the member with this name in any family. Case does not matter.
    #[must_use]
    pub fn member(name: &str) -> Option<(&'static Self, Member)> {
        let found = |family: &'static Self| {
            let mut members = family.members().into_iter();
            Some((family, members.find(|member| member.name.eq_ignore_ascii_case(name))?))
        };
        Self::ALL.iter().find_map(found)
    }

    /// Returns the usual spread, per cent. For 80 % of the metrics of repeated runs, the difference
    /// from the mean of their disk model is at most this spread.
    #[must_use]
    pub fn usual_spread_percent(&self) -> f64 {
        let several = self.members().into_iter().filter(|member| member.runs.len() > 1);
        let mut all: Vec<f64> = several.flat_map(|member| member.deviations_percent().collect::<Vec<_>>()).collect();
        all.sort_by(f64::total_cmp);
        let place = (all.len() as f64 * MOST).ceil() as usize;
        all.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    }

    /// Returns the possible error of a member's rates, per cent. It follows from the runs of the
    /// member. With only one run, it is the usual spread.
    #[must_use]
    pub fn spread(&self, member: &Member) -> Spread {
        let runs = member.runs.len();
        Spread { runs, percent: if runs > 1 { member.most_percent() } else { self.usual_spread_percent() } }
    }
}

impl Member {
    /// Returns the mean of the runs.
    #[must_use]
    pub fn mean(&self) -> IoCostModel {
        let mean = |place: usize| {
            let sum: u64 = self.runs.iter().map(|run| run.model.figures()[place]).sum();
            (sum as f64 / self.runs.len() as f64).round() as u64
        };
        IoCostModel::of([0, 1, 2, 3, 4, 5].map(mean))
    }

    /// Returns the smallest and the largest value of each coefficient.
    #[must_use]
    pub fn range(&self) -> [(u64, u64); 6] {
        [0, 1, 2, 3, 4, 5].map(|place| {
            let figures = || self.runs.iter().map(|run| run.model.figures()[place]);
            (figures().min().unwrap_or(0), figures().max().unwrap_or(0))
        })
    }

    /// Returns the largest deviation of a run's coefficient from the mean, per cent.
    fn most_percent(&self) -> f64 {
        self.deviations_percent().fold(0.0, f64::max)
    }

    /// Returns a description in one line.
    #[must_use]
    pub fn about(&self) -> String {
        let spread = match self.runs.len() {
            1 => "one run".to_owned(),
            runs => format!("mean of {runs} runs; each run is within {:.0} % of the mean", self.most_percent()),
        };
        let size = self.size_bytes as f64 / 1e9;
        let latencies =
            if self.latencies().is_some() { "latencies of reads during writes" } else { "without latencies" };
        format!("{size:.0} GB SSD, depth {}, rates at saturation ({spread}), {latencies}", self.depth)
    }

    /// Returns the latencies from all runs together; `None` if no latencies were published.
    #[must_use]
    pub fn latencies(&self) -> Option<Latencies> {
        Latencies::of(&self.rows)
    }

    /// Returns the source of the runs.
    #[must_use]
    pub fn source(&self) -> String {
        let names: Vec<&str> = self.runs.iter().map(|run| run.result.as_str()).collect();
        format!("iocost-benchmarks: {}", names.join(", "))
    }

    /// Returns the deviation of each coefficient of each run from the mean, per cent.
    fn deviations_percent(&self) -> impl Iterator<Item = f64> + '_ {
        let means = self.mean().figures();
        let off = move |(rate, mean): (u64, u64)| (rate as f64 / mean as f64 - 1.0).abs() * 100.0;
        self.runs.iter().flat_map(move |run| run.model.figures().into_iter().zip(means).map(off))
    }
}

/// Parses a line into a model name and a row. The first fields are model, run, rate of io.cost,
/// reads and writes. Then come the mean bytes of a read and of a write, and the latencies of reads
/// in us (first quartile, median, 99th percentile).
fn of_latency_line(line: &str) -> Option<(&str, LatencyRow)> {
    let [model_name, _run, vrate, figures @ ..] = &line.split(',').collect::<Vec<_>>()[..] else { return None };
    let figures: Vec<f64> = figures.iter().map(|figure| figure.parse().ok()).collect::<Option<_>>()?;
    let &[reads, writes, read_bytes, write_bytes, read_p25_us, read_p50_us, read_p99_us] = &figures[..] else {
        return None;
    };
    let vrate_percent = if *vrate == "off" { None } else { Some(vrate.parse().ok()?) };
    let row =
        LatencyRow { vrate_percent, reads, writes, read_bytes, write_bytes, read_p25_us, read_p50_us, read_p99_us };
    Some((model_name, row))
}

/// Parses model name, size in bytes, depth, and the result of the run.
fn of_line(line: &str) -> Option<(&str, u64, u32, Run)> {
    let parts: Vec<&str> = line.split(',').collect();
    let [name, depth, size, rates @ .., rpct, rlat, wpct, wlat, kernel, result] = parts.as_slice() else { return None };
    let rates: Vec<u64> = rates.iter().map(|rate| rate.parse().ok()).collect::<Option<_>>()?;
    let (rlat_us, wlat_us) = (rlat.parse().ok()?, wlat.parse().ok()?);
    let (rpct, wpct) = (rpct.parse().ok()?, wpct.parse().ok()?);
    let qos = IoCostQos { rpct, rlat_us, wpct, wlat_us, min: IoCostQos::MIN, max: IoCostQos::MAX };
    let model = IoCostModel::of(rates.try_into().ok()?);
    let run = Run { model, qos, kernel: (*kernel).to_owned(), result: (*result).to_owned() };
    Some((name, size.parse().ok()?, depth.parse().ok()?, run))
}
