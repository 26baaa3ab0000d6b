//! Records of a search: the plan, then each run in its
//! order. All results are computed from the records.
//!
//! A file of records is JSON lines: the [`TuneHeader`],
//! then one line per run, in the order of the search.

use std::io::BufRead;

use iosched::Setting;
use iosched_lab::goal::{Bound, Constraint, MeasureRecord};
use iosched_lab::{
    DeviceRecord, LabError, Line, MachineRecord, StarvedTask, WorkloadRecord, equal_within_default,
    is_equal_within_default, read_lines,
};
use iosched_sim::{BlockLayer, Replay};
use serde::{Deserialize, Serialize};

use super::space::Space;

/// One line of a file of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum TuneRecord {
    /// The plan, which is always the first line.
    Tune(Box<TuneHeader>),
    /// One run.
    Trial(Box<TuneRun>),
}

/// The plan of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneHeader {
    /// Version of iosched that ran the search.
    pub version: String,
    /// Command line that makes the same records again.
    pub command: String,
    /// The workload.
    pub workload: WorkloadRecord,
    /// The device.
    pub device: DeviceRecord,
    /// The replay of a trace.
    pub replay: Replay,
    /// The model of the block layer.
    #[serde(rename = "host")]
    pub block_layer: BlockLayer,
    /// The machine model of an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// The setting that others are compared with.
    pub baseline: Setting,
    /// The space that was searched.
    pub space: Space,
    /// Measures of every run: first the goals, then the measures of the constraints, then the usual
    /// measures.
    pub measures: Vec<MeasureRecord>,
    /// Number of measures that are goals.
    pub goals: usize,
    /// Conditions that a setting must meet.
    pub constraints: Vec<ConstraintRecord>,
    /// Largest number of runs.
    pub budget: u32,
    /// The seed. The seeds of the runs follow from it.
    pub seed: u64,
    /// Whether runs with different seeds differ. If not, one run of a setting is enough.
    pub seeds_matter: bool,
    /// Controllers that are not searched because the workload has no cgroups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Largest difference from the baseline that counts as equal, per cent.
    #[serde(default = "equal_within_default", skip_serializing_if = "is_equal_within_default")]
    pub equal_within_percent: f64,
}

/// A constraint of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintRecord {
    /// Text of the constraint.
    pub text: String,
    /// Number of the measure.
    pub measure: usize,
    /// Whether the bound is the smallest allowed value. Otherwise it is the largest.
    pub at_least: bool,
    /// The bound, in the unit of the measure or in per cent of the baseline.
    pub bound: f64,
    /// Whether the bound is in per cent of the baseline.
    pub percent: bool,
}

impl ConstraintRecord {
    pub(super) fn new(constraint: &Constraint, bound: Bound, measure: usize) -> Self {
        let (bound, percent) = match bound {
            Bound::Percent(percent) => (percent, true),
            Bound::Value(value, _) => (value, false),
        };
        Self { text: constraint.to_string(), measure, at_least: constraint.at_least, bound, percent }
    }

    /// Returns the bound in the unit of the measure, for a baseline value of `baseline`.
    #[must_use]
    pub fn limit(&self, baseline: f64) -> f64 {
        if self.percent { baseline * self.bound / 100.0 } else { self.bound }
    }

    /// Returns the amount by which `value` exceeds the limit, as a share of the limit. The result
    /// is 0 or less if the constraint holds.
    pub(super) fn excess(&self, value: f64, baseline: f64) -> f64 {
        let limit = self.limit(baseline);
        let beyond = if self.at_least { limit - value } else { value - limit };
        beyond / limit.abs().max(f64::MIN_POSITIVE)
    }
}

/// Purpose of a run in a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A run that helps to choose settings.
    Search,
    /// A run that judges chosen settings, with a seed that the search did not use.
    Confirm,
}

/// One run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRun {
    /// Purpose of the run.
    pub phase: Phase,
    /// Label of the setting.
    pub setting: String,
    /// Number of the run. Runs with the same number share a seed and are compared with each other.
    pub run: u32,
    /// Seed of the run.
    pub seed: u64,
    /// Virtual time of the run, ns.
    pub simulated_ns: u64,
    /// Share of that time in which the device was busy, per cent. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_percent: Option<f64>,
    /// Values by [`TuneHeader::measures`]. `None` if the run had no I/O of this kind.
    pub values: Vec<Option<f64>>,
    /// Tasks that starved. Only in confirming runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<StarvedTask>,
}

/// Reads a file of records. A truncated last line is left out.
///
/// # Errors
/// The file cannot be read, or does not contain records of a search.
pub fn read(reader: impl BufRead, file: &str) -> Result<(TuneHeader, Vec<TuneRun>), LabError> {
    read_lines(reader, file, |record| match record {
        TuneRecord::Tune(header) => Line::Plan(*header),
        TuneRecord::Trial(run) => Line::Run(*run),
    })
}
