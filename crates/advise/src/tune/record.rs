//! Records of a search: the plan, then each run as it was made. What is told is computed from these.
//!
//! A file of them is JSON lines: the [`TuneHeader`] first, then one line per run, in the order of the search.

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
    /// The plan. Always the first line.
    Tune(Box<TuneHeader>),
    /// One run.
    Trial(Box<TuneRun>),
}

/// The plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneHeader {
    /// Version of iosched that ran it.
    pub version: String,
    /// The command line that makes the records again.
    pub command: String,
    /// What was done.
    pub workload: WorkloadRecord,
    /// To what.
    pub device: DeviceRecord,
    /// How a trace is replayed.
    pub replay: Replay,
    /// The machine that was modelled.
    #[serde(rename = "host")]
    pub block_layer: BlockLayer,
    /// The machine that an application ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// The setting that others are compared with.
    pub baseline: Setting,
    /// What was searched.
    pub space: Space,
    /// What is measured of every run: first the goals, then what constraints speak of, then what else there is to tell.
    pub measures: Vec<MeasureRecord>,
    /// So many of the measures are goals.
    pub goals: usize,
    /// What must hold.
    pub constraints: Vec<ConstraintRecord>,
    /// Runs that may be made.
    pub budget: u32,
    /// The seed; the runs' seeds follow from it.
    pub seed: u64,
    /// Whether another seed makes another run: else one run of a setting tells all of it.
    pub seeds_matter: bool,
    /// Controllers that are not searched, since the workload has no cgroups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Differences within so many per cent of the baseline matter to nobody.
    #[serde(default = "equal_within_default", skip_serializing_if = "is_equal_within_default")]
    pub equal_within_percent: f64,
}

/// A constraint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintRecord {
    /// As it is written.
    pub text: String,
    /// Number of the measure.
    pub measure: usize,
    /// Whether the bound is its least value; else its greatest.
    pub at_least: bool,
    /// The bound, in the measure's unit, or in per cent of the baseline's.
    pub bound: f64,
    /// Whether it is in per cent.
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

    /// The bound in the measure's unit, if the baseline has `baseline`.
    #[must_use]
    pub fn limit(&self, baseline: f64) -> f64 {
        if self.percent { baseline * self.bound / 100.0 } else { self.bound }
    }

    /// By how much of the limit `value` is beyond it; at most 0 if it keeps it.
    pub(super) fn excess(&self, value: f64, baseline: f64) -> f64 {
        let limit = self.limit(baseline);
        let beyond = if self.at_least { limit - value } else { value - limit };
        beyond / limit.abs().max(f64::MIN_POSITIVE)
    }
}

/// What a run was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// To choose by.
    Search,
    /// To judge what was chosen: with seeds that nothing was chosen by.
    Confirm,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneRun {
    /// What it was made for.
    pub phase: Phase,
    /// The setting, as it is written.
    pub setting: String,
    /// Number of the run. Runs of one number share a seed: they are compared with each other.
    pub run: u32,
    /// The run's seed.
    pub seed: u64,
    /// Virtual time it took, ns.
    pub simulated_ns: u64,
    /// Share of it in which the device had work, per cent; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilisation_percent: Option<f64>,
    /// By [`TuneHeader::measures`]; `None` where the run had no such I/O.
    pub values: Vec<Option<f64>>,
    /// Tasks that starved, of a run to confirm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starved: Vec<StarvedTask>,
}

/// Reads a file of records; a last line that is cut short is left out.
///
/// # Errors
/// It cannot be read, or is no such file.
pub fn read(reader: impl BufRead, file: &str) -> Result<(TuneHeader, Vec<TuneRun>), LabError> {
    read_lines(reader, file, |record| match record {
        TuneRecord::Tune(header) => Line::Plan(*header),
        TuneRecord::Trial(run) => Line::Run(*run),
    })
}
