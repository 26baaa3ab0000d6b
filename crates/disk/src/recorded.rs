//! Errors of a model, from a record of published measurements.

use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, within};

/// Errors of simulated differences between schedulers, from published measurements of the device.
/// The model was not fitted to these measurements. An error is a factor of at least 1. It is the
/// ratio of two schedulers in simulation divided by their ratio on the device, or the inverse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Share of the differences whose error is at most these factors, per cent.
    pub covered_percent: f64,
    /// Errors of workloads that only read, on one disk.
    pub reads: RecordedError,
    /// Errors of workloads that only read, on several disks that each job uses in turn.
    pub reads_of_several_disks: RecordedError,
    /// Errors of workloads that write.
    pub writes: RecordedError,
}

/// Errors of one kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedError {
    /// Error of rates and mean latencies, a factor.
    pub rate_factor: f64,
    /// Error of 99th percentiles, a factor.
    pub tail_factor: f64,
}

/// Kind of a workload in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedLoad {
    /// Reads alone, on one disk.
    Reads,
    /// Reads alone, on several disks.
    ReadsOfSeveralDisks,
    /// Writes, with or without reads.
    Writes,
}

impl RecordedLoad {
    /// All kinds of recorded loads, in a fixed order.
    pub const ALL: [Self; 3] = [Self::Reads, Self::ReadsOfSeveralDisks, Self::Writes];

    /// Returns the kind of a workload.
    #[must_use]
    pub const fn of(writes: bool, disks: u64) -> Self {
        match (writes, disks) {
            (true, _) => Self::Writes,
            (false, 0 | 1) => Self::Reads,
            (false, _) => Self::ReadsOfSeveralDisks,
        }
    }

    /// Returns the kind in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reads => "reads on one disk",
            Self::ReadsOfSeveralDisks => "reads on several disks",
            Self::Writes => "workloads that write",
        }
    }

    /// Returns the key of the kind in a profile.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::ReadsOfSeveralDisks => "reads_of_several_disks",
            Self::Writes => "writes",
        }
    }
}

impl Recorded {
    /// Returns the errors of a kind of workload.
    #[must_use]
    pub const fn error(&self, load: RecordedLoad) -> RecordedError {
        match load {
            RecordedLoad::Reads => self.reads,
            RecordedLoad::ReadsOfSeveralDisks => self.reads_of_several_disks,
            RecordedLoad::Writes => self.writes,
        }
    }

    /// Returns the error of a metric, a factor. `tail` is true for metrics of the slowest I/Os,
    /// such as p99.
    #[must_use]
    pub const fn factor(&self, load: RecordedLoad, tail: bool) -> f64 {
        let RecordedError { rate_factor, tail_factor } = self.error(load);
        if tail { tail_factor } else { rate_factor }
    }

    /// Returns the errors of each kind in words, such as "reads on one disk: rates 1.1, p99 1.4".
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let line = |load: RecordedLoad| {
            let RecordedError { rate_factor, tail_factor } = self.error(load);
            format!("{}: rates {rate_factor}, p99 {tail_factor}", load.words())
        };
        RecordedLoad::ALL.map(line).into()
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        within("fit.recorded.covered_percent", self.covered_percent, 1.0..=100.0)?;
        for load in RecordedLoad::ALL {
            let RecordedError { rate_factor, tail_factor } = self.error(load);
            for (name, factor) in [("rate_factor", rate_factor), ("tail_factor", tail_factor)] {
                within(&format!("fit.recorded.{}.{name}", load.name()), factor, 1.0..=1e6)?;
            }
        }
        Ok(())
    }
}
