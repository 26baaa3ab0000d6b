//! The measurements of the battery as JSON lines: a header, then one line per run. If writing stops
//! early, the complete lines remain readable. Predictions are not stored, because the profile gives
//! the same predictions again.

use std::io::{self, BufRead, Write};

use iosched_kernel::checks::Finding;
use iosched_lab::RecordWriter;
use iosched_numbers::SplitMix64;
use iosched_sim::RunResult;
use serde::{Deserialize, Serialize};

use super::error::ValidationError;
use super::workloads::{Span, TRIALS, Trial, trials};
use crate::calibrate::Target;

/// Present format of the file.
pub const FORMAT: u32 = 1;

/// The plan of a validation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Format of the file, at most [`FORMAT`].
    pub format: u32,
    /// Version of iosched that wrote the file.
    pub version: String,
    /// The command line that repeats the measurement.
    pub command: String,
    /// The measured device.
    pub target: Target,
    /// Names of the schedulers.
    pub schedulers: Vec<String>,
    /// Runs of each workload with each scheduler.
    pub rounds: u32,
    /// The seed. The seeds of all runs follow from it.
    pub seed: u64,
    /// Warm-up of each run, which does not count, ns.
    pub warm_up_ns: u64,
    /// Measured time of each run, ns.
    pub measured_ns: u64,
}

impl Header {
    /// Returns the workloads of this validation.
    #[must_use]
    pub fn trials(&self) -> [Trial; TRIALS] {
        trials(self.target.writable)
    }

    /// Returns the seed of a run on a model instead of the
    /// device. It differs from the seeds of the prediction.
    #[must_use]
    pub fn seed_of_run(&self, run: u32) -> u64 {
        SplitMix64::entity(self.seed, u64::from(run) + 1).next_u64()
    }

    /// Returns the duration of the runs.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span { warm_up_ns: self.warm_up_ns, measured_ns: self.measured_ns }
    }
}

/// A run on the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Number of the workload.
    pub trial: usize,
    /// Number of the scheduler.
    pub scheduler: usize,
    /// Number of the run, from 0.
    pub run: u32,
    /// Result of the watched job.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of the watched job of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// I/Os per second.
    pub iops: f64,
    /// The 99th percentile of the latency, ns.
    pub p99_ns: f64,
}

impl Outcome {
    /// Returns the result of a run of `trial` with `scheduler`.
    ///
    /// # Errors
    /// The watched job completed no I/O in the measured time.
    pub fn of(trial: &Trial, scheduler: &str, result: &RunResult) -> Result<Self, ValidationError> {
        let nothing = || ValidationError::Nothing { trial: trial.name, scheduler: scheduler.to_owned() };
        let mut watched = result.jobs.iter().filter(|job| job.name == trial.watched);
        let mut job = watched.next().ok_or_else(nothing)?.clone();
        // All copies of a job count as one job.
        watched.for_each(|other| job.merge(other));
        let mut latency = job.read.latency.clone();
        latency.merge(&job.write.latency);
        let is_known = latency.count() > 0 && job.counted_ns() > 0;
        let outcome = || Self {
            iops: latency.count() as f64 * 1e9 / job.counted_ns() as f64,
            p99_ns: latency.quantile_ns(0.99) as f64,
        };
        is_known.then(outcome).ok_or_else(nothing)
    }
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line {
    Battery(Box<Header>),
    Run(Run),
    Load { load: Finding },
}

/// All measurements of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The device and the plan.
    pub header: Header,
    /// The runs, in the order of the measurement.
    pub runs: Vec<Run>,
    /// Load of other programs on the device and the machine.
    pub loads: Vec<Finding>,
    /// Warnings for the reader, for example about a truncated line.
    pub warnings: Vec<String>,
}

/// Writes the header of a file. `out` should not buffer.
///
/// # Errors
/// `out` fails.
pub fn write_header(out: impl Write, header: &Header) -> io::Result<()> {
    RecordWriter::new(out).write(&Line::Battery(Box::new(header.clone())))
}

/// Appends a run to a file.
///
/// # Errors
/// `out` fails.
pub fn write_run(out: impl Write, run: &Run) -> io::Result<()> {
    RecordWriter::new(out).write(&Line::Run(*run))
}

/// Appends the load of other programs to a file.
///
/// # Errors
/// `out` fails.
pub fn write_load(out: impl Write, load: &Finding) -> io::Result<()> {
    RecordWriter::new(out).write(&Line::Load { load: load.clone() })
}

impl Measured {
    /// Creates measurements without runs.
    #[must_use]
    pub const fn new(header: Header) -> Self {
        Self { header, runs: Vec::new(), loads: Vec::new(), warnings: Vec::new() }
    }

    /// Reads a file. `file` is its name for messages. A
    /// truncated last line is left out, with a warning.
    ///
    /// # Errors
    /// The file cannot be read, does not contain a validation,
    /// has a later format, or has a damaged line before its last.
    pub fn read(reader: impl BufRead, file: &str) -> Result<Self, ValidationError> {
        let io = |source| ValidationError::Io { file: file.to_owned(), source };
        let none = |problem: String| ValidationError::NotABattery { file: file.to_owned(), problem };
        let mut lines = reader.split(b'\n').enumerate().peekable();
        let first = lines.next().ok_or_else(|| none("the file is empty".to_owned()))?.1.map_err(io)?;
        let value: serde_json::Value = serde_json::from_slice(&first).map_err(|error| none(error.to_string()))?;
        let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if format > FORMAT.into() {
            return Err(none(format!(
                "the file has format {format}; this version of iosched reads formats up to {FORMAT}"
            )));
        }
        let mut measured = match serde_json::from_value(value) {
            Ok(Line::Battery(header)) => Self::new(*header),
            Ok(_) => return Err(none("the first line is a run, not the header".to_owned())),
            Err(error) => return Err(none(error.to_string())),
        };
        while let Some((number, line)) = lines.next() {
            let text = line.map_err(io)?;
            let bad = |problem: String| ValidationError::BadLine { file: file.to_owned(), line: number + 1, problem };
            match serde_json::from_slice(&text) {
                _ if text.is_empty() && lines.peek().is_none() => {}
                Ok(Line::Run(run)) if measured.knows(&run) => measured.runs.push(run),
                Ok(Line::Run(_)) => {
                    return Err(bad("the header does not list the workload or the scheduler of this run".to_owned()));
                }
                Ok(Line::Load { load }) => measured.loads.push(load),
                Ok(Line::Battery(_)) => return Err(bad("the file has a second header".to_owned())),
                Err(error) if error.is_eof() && lines.peek().is_none() => measured.warnings.push(format!(
                    "{file}: line {} is incomplete, because writing was interrupted there; iosched left this line out",
                    number + 1
                )),
                Err(error) => return Err(bad(format!("the line is not a run: {error}"))),
            }
        }
        Ok(measured)
    }

    fn knows(&self, run: &Run) -> bool {
        run.trial < TRIALS && run.scheduler < self.header.schedulers.len()
    }

    /// Returns the results of a workload with a scheduler, in the order of the runs.
    pub fn of(&self, trial: usize, scheduler: usize) -> impl Iterator<Item = Outcome> {
        let is_of_cell = move |run: &&Run| (run.trial, run.scheduler) == (trial, scheduler);
        self.runs.iter().filter(is_of_cell).map(|run| run.outcome)
    }
}
