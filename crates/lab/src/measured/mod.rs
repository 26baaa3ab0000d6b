//! Figures that others measured on named devices, beside the same runs in simulation.
//!
//! A [`MeasuredCase`] is one setting of one run of a [`Source`]. [`simulate`] runs each case on a model of the disk.
//! [`Tally`] counts how many figures are met, and how often the
//! order of two schedulers is the same as on the disk.

mod host;
mod run;
mod table;
mod tally;

use std::path::Path;

use iosched::Setting;
use iosched_workload::outcome::DirectionResult;

pub use run::{MeasuredOptions, MeasuredResult, simulate};
pub use tally::{ORDER_PERCENT, Order, Tally};

use crate::error::LabError;

/// Where figures come from: a file of a known form, of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// One disk: sizes, depths, processes and schedulers (ICPE 2024).
    Icpe24,
    /// A job beside background jobs on eight disks (ICPE 2024).
    Icpe24Interference,
    /// Kyber's two latency targets, a reader and a writer (HotCloudPerf 2024).
    KyberGrid,
}

impl Source {
    /// All sources, in the order in which they are run and printed.
    pub const ALL: [Self; 3] = [Self::Icpe24, Self::Icpe24Interference, Self::KyberGrid];

    /// Its name; its file is named so, with `.csv`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Icpe24 => "icpe24",
            Self::Icpe24Interference => "icpe24-interference",
            Self::KyberGrid => "kyber-grid",
        }
    }

    /// What was measured, in a phrase.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Icpe24 => "Samsung 980 PRO 1 TB: sizes, depths, processes and schedulers",
            Self::Icpe24Interference => "eight Samsung 980 PRO 1 TB: a job beside background jobs",
            Self::KyberGrid => "Samsung 980 PRO 1 TB: kyber's latency targets, a reader beside a writer",
        }
    }

    /// The model of its disk.
    #[must_use]
    pub const fn device(self) -> &'static str {
        "nvme-980pro"
    }

    /// How far a simulated rate may be from the measured one to be counted as met, as a factor.
    #[must_use]
    pub const fn rate_within(self) -> f64 {
        match self {
            Self::KyberGrid => 1.25,
            _ => 1.15,
        }
    }

    /// The same for the 99th percentile of latency.
    #[must_use]
    pub const fn p99_within(self) -> f64 {
        match self {
            Self::KyberGrid => 1.25,
            _ => 1.5,
        }
    }

    /// The figures that are shipped.
    const fn shipped(self) -> &'static str {
        match self {
            Self::Icpe24 => include_str!("../../measured/icpe24.csv"),
            Self::Icpe24Interference => include_str!("../../measured/icpe24-interference.csv"),
            Self::KyberGrid => include_str!("../../measured/kyber-grid.csv"),
        }
    }

    /// The cases of all sources: the shipped ones, or those of the files in `directory` that are named as the sources.
    ///
    /// # Errors
    /// A file cannot be read or is wrong, or the directory has none of the files.
    pub fn cases(directory: Option<&Path>) -> Result<Vec<MeasuredCase>, LabError> {
        let Some(directory) = directory else {
            let shipped = |source: Self| table::read(source, &format!("{}.csv", source.name()), source.shipped());
            return Ok(Self::ALL.map(shipped).into_iter().collect::<Result<Vec<_>, _>>()?.concat());
        };
        let files = Self::ALL.map(|source| (source, directory.join(format!("{}.csv", source.name()))));
        let mut cases = Vec::new();
        for (source, path) in files.iter().filter(|(_, path)| path.exists()) {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| LabError::Data { file: file.clone(), problem: error.to_string() })?;
            cases.extend(table::read(*source, &file, &text)?);
        }
        if cases.is_empty() {
            let names: Vec<String> = Self::ALL.iter().map(|source| format!("{}.csv", source.name())).collect();
            let problem = format!("no measurements in it; files are named {}", names.join(", "));
            return Err(LabError::Data { file: directory.display().to_string(), problem });
        }
        Ok(cases)
    }
}

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// I/Os per second, of all copies of a job together.
    Iops,
    /// Mean latency from the submission on, us.
    LatencyMean,
    /// Median of the completion latency, us.
    P50,
    /// 99th percentile of the completion latency, us.
    P99,
}

impl Metric {
    /// By its name in tables.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "iops" => Self::Iops,
            "lat_mean" => Self::LatencyMean,
            "clat_p50" => Self::P50,
            "clat_p99" => Self::P99,
            _ => return None,
        })
    }

    /// Its name in output.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::LatencyMean => "mean, us",
            Self::P50 => "p50, us",
            Self::P99 => "p99, us",
        }
    }

    /// Its value in what a job did in `counted_ns`; `None` without an I/O.
    fn of(self, direction: &DirectionResult, counted_ns: u64) -> Option<f64> {
        if direction.ios == 0 || counted_ns == 0 {
            return None;
        }
        Some(match self {
            Self::Iops => direction.ios as f64 * 1e9 / counted_ns as f64,
            Self::LatencyMean => direction.latency.mean_ns() / 1e3,
            Self::P50 => direction.completion.quantile_ns(0.5) as f64 / 1e3,
            Self::P99 => direction.completion.quantile_ns(0.99) as f64 / 1e3,
        })
    }
}

/// A measured figure of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the job.
    pub job: String,
    /// What was measured.
    pub metric: Metric,
    /// Its value on the disk.
    pub measured: f64,
}

/// One setting of one measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCase {
    /// Where it comes from.
    pub source: Source,
    /// What was run. Cases of one group differ by their setting alone.
    pub group: String,
    /// The scheduler and its tunables.
    pub setting: Setting,
    /// A section of a job file for each job.
    pub jobs: Vec<String>,
    /// Disks that each job opened.
    pub disks: u32,
    /// What was measured.
    pub figures: Vec<Figure>,
}

impl MeasuredCase {
    /// The part of its source that it belongs to: a figure of the paper, or an experiment.
    #[must_use]
    pub fn part(&self) -> &str {
        self.group.split_once(':').map_or(&self.group, |(part, _)| part)
    }
}
