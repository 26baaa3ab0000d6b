//! Sources of measurements, and the cases in them.

use iosched::Setting;
use iosched_disk::RecordedLoad;
use iosched_disk::io_cost::Latencies;
use iosched_workload::outcome::DirectionResult;

/// Source of measurements: a file in a known format, of one model of disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Block sizes, queue depths, processes and schedulers on one disk (ICPE 2024).
    Icpe24,
    /// A job that runs together with background jobs, on eight disks (ICPE 2024).
    Icpe24Interference,
    /// Kyber's two latency targets with a reader and a writer (HotCloudPerf 2024).
    KyberGrid,
    /// Latencies of SSDs at rates of io.cost (iocost-benchmarks).
    SsdLatency,
    /// Targets and weights of io.cost, with a reader that runs together with other jobs
    /// (isol-bench).
    IsolIocost,
    /// Results from mails to the kernel mailing list linux-block.
    ListTables,
}

impl Source {
    /// All sources, in the order in which they are run and printed.
    pub const ALL: [Self; 6] =
        [Self::Icpe24, Self::Icpe24Interference, Self::KyberGrid, Self::SsdLatency, Self::IsolIocost, Self::ListTables];

    /// Returns the name of the source. Its file has this name and the suffix `.csv`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Icpe24 => "icpe24",
            Self::Icpe24Interference => "icpe24-interference",
            Self::KyberGrid => "kyber-grid",
            Self::SsdLatency => "ssd-latency",
            Self::IsolIocost => "isol-iocost",
            Self::ListTables => "list-tables",
        }
    }

    /// Returns a description of the measurements in a phrase.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Icpe24 => "Samsung 980 PRO 1 TB: sizes, depths, processes and schedulers",
            Self::Icpe24Interference => "eight Samsung 980 PRO 1 TB: a job next to background jobs",
            Self::KyberGrid => "Samsung 980 PRO 1 TB: kyber's latency targets, a reader next to a writer",
            Self::SsdLatency => "25 models of SSDs: latencies under two loads, at several rates of io.cost",
            Self::IsolIocost => "Intel Optane 900P 280 GB: targets and weights of io.cost, a reader next to other jobs",
            Self::ListTables => "several disks: results from mails to the kernel mailing list linux-block",
        }
    }

    /// Returns the name of the disk's model. The disks of [`SsdLatency`](Self::SsdLatency) and
    /// [`ListTables`](Self::ListTables) are in the cases.
    #[must_use]
    pub const fn device(self) -> &'static str {
        match self {
            Self::SsdLatency => "members of the family ssd",
            Self::IsolIocost => "optane-900p",
            Self::ListTables => "a disk for each table",
            _ => "nvme-980pro",
        }
    }

    /// Largest factor between a simulated and a measured rate at which the two match.
    #[must_use]
    pub const fn rate_within(self) -> f64 {
        match self {
            Self::KyberGrid => 1.25,
            _ => 1.15,
        }
    }

    /// Returns the largest factor between a simulated and a measured 99th percentile of latency at
    /// which the two match.
    #[must_use]
    pub const fn p99_within(self) -> f64 {
        match self {
            Self::KyberGrid | Self::IsolIocost => 1.25,
            _ => 1.5,
        }
    }
}

/// A metric that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// I/Os per second, over all copies of a job.
    Iops,
    /// Mean latency from the submission, us.
    LatencyMean,
    /// Median of the completion latency, us.
    P50,
    /// 99th percentile of the completion latency, us.
    P99,
    /// Median of the device's latency of reads, from the dispatch to the completion, us.
    DeviceP50,
    /// 99th percentile of the device's latency of reads, us.
    DeviceP99,
    /// Writes per second of a job that also reads, over all copies of the job.
    WriteIops,
    /// Bytes per second over all copies of a job, MB/s.
    Throughput,
    /// Time from the start of a job to its end, s.
    StartUp,
}

impl Metric {
    /// Returns the metric that has this name in the tables.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "iops" => Self::Iops,
            "lat_mean" => Self::LatencyMean,
            "clat_p50" => Self::P50,
            "clat_p99" => Self::P99,
            _ => return None,
        })
    }

    /// Returns whether the metric is a latency of the device alone, without waits in the queue.
    #[must_use]
    pub const fn is_of_device(self) -> bool {
        matches!(self, Self::DeviceP50 | Self::DeviceP99)
    }

    /// Returns the unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Iops | Self::WriteIops => "1/s",
            Self::Throughput => "MB/s",
            Self::StartUp => "s",
            Self::LatencyMean | Self::P50 | Self::P99 | Self::DeviceP50 | Self::DeviceP99 => "us",
        }
    }

    /// Returns whether the metric is a rate.
    #[must_use]
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::WriteIops | Self::Throughput)
    }

    /// Returns whether the metric is a 99th percentile.
    #[must_use]
    pub const fn is_tail(self) -> bool {
        matches!(self, Self::P99 | Self::DeviceP99)
    }

    /// Returns the name of the metric in output.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::LatencyMean => "mean, us",
            Self::P50 => "p50, us",
            Self::P99 => "p99, us",
            Self::DeviceP50 => "device p50, us",
            Self::DeviceP99 => "device p99, us",
            Self::WriteIops => "write IOPS",
            Self::Throughput => "MB/s",
            Self::StartUp => "start-up, s",
        }
    }

    /// Returns the value for the I/O of a job in `counted_ns`; `None` if there was no I/O.
    pub(super) fn of(self, direction: &DirectionResult, counted_ns: u64) -> Option<f64> {
        if direction.ios == 0 || counted_ns == 0 {
            return None;
        }
        Some(match self {
            Self::Iops | Self::WriteIops => direction.ios as f64 * 1e9 / counted_ns as f64,
            Self::Throughput => direction.bytes as f64 * 1e3 / counted_ns as f64,
            Self::LatencyMean => direction.latency.mean_ns() / 1e3,
            Self::P50 => direction.completion.quantile_ns(0.5) as f64 / 1e3,
            Self::P99 => direction.completion.quantile_ns(0.99) as f64 / 1e3,
            Self::DeviceP50 | Self::DeviceP99 | Self::StartUp => return None,
        })
    }
}

/// A measured figure of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the job.
    pub job: String,
    /// The metric.
    pub metric: Metric,
    /// Measured value, in the metric's unit.
    pub measured: f64,
}

/// The disk of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasuredDisk {
    /// A disk of a family, with latencies that were measured on this disk.
    Member {
        /// Model name of the disk.
        name: String,
        /// Measured latencies of the disk.
        latencies: Latencies,
    },
    /// A profile by name.
    Named(String),
    /// The text of a profile.
    Text {
        /// Name of the disk in messages.
        name: String,
        /// The profile.
        text: String,
    },
}

/// One setting of one measured run.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCase {
    /// Source of the measurements.
    pub source: Source,
    /// Description of the run. The cases of one group differ only in their settings.
    pub group: String,
    /// Scheduler and its tunables.
    pub setting: Setting,
    /// Section of a fio job file for each job.
    pub jobs: Vec<String>,
    /// Number of disks that each job opened.
    pub disks: u32,
    /// The disk, if it is not the disk of the source.
    pub disk: Option<MeasuredDisk>,
    /// Reason why the case cannot be simulated.
    pub obstacle: Option<&'static str>,
    /// Measured figures.
    pub figures: Vec<Figure>,
}

impl MeasuredCase {
    /// Returns the description of the case. Adds the setting, unless the description already
    /// implies it.
    #[must_use]
    pub fn head(&self) -> String {
        match self.source {
            Source::SsdLatency | Source::IsolIocost => self.group.clone(),
            _ => format!("{}, {}", self.group, self.setting),
        }
    }

    /// Returns the kind of the workload.
    #[must_use]
    pub fn load(&self) -> RecordedLoad {
        let writes = self.jobs.iter().any(|job| job.contains("write") || job.contains("rw=randrw"));
        RecordedLoad::of(writes, self.disks.into())
    }

    /// Returns whether the costs of schedulers were fitted to measurements in this part of the
    /// source.
    #[must_use]
    pub fn is_fitted(&self) -> bool {
        self.source == Source::Icpe24 && ["2,", "3,", "7"].iter().any(|figure| self.part().starts_with(figure))
    }

    /// Returns the part of the source that contains the case: a figure of the paper, or an
    /// experiment.
    #[must_use]
    pub fn part(&self) -> &str {
        self.group.split_once(':').map_or(&self.group, |(part, _)| part)
    }
}
