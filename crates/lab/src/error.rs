//! What goes wrong in the lab.

use iosched::SettingError;
use iosched_sim::SimError;
use iosched_trace::TraceError;

use crate::record::RECORDS_FORMAT;

/// Why an experiment cannot be run, or records cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No settings were given.
    #[error("there is nothing to compare; give at least one scheduler")]
    NoSettings,
    /// The same setting twice.
    #[error("the setting {label} is given twice; give each setting once")]
    TwiceTheSame {
        /// Its label.
        label: String,
    },
    /// The same device twice.
    #[error("the device {name} is given twice; give each device once")]
    TwiceTheSameDevice {
        /// Its name.
        name: String,
    },
    /// fio's JSON was asked for of something else than fio jobs.
    #[error("{workload} is not a fio job file, so there is no fio JSON; use --json")]
    NotFioJobs {
        /// The workload.
        workload: String,
    },
    /// No round is complete.
    #[error("not every setting has a finished run, so there is nothing to compare")]
    NothingRun,
    /// No runs.
    #[error("0 runs give no results; make at least 1, better 10")]
    NoRuns,
    /// A run ended before anything of it counted.
    #[error(
        "a run ended after {} s, within the warm-up of {} s, so nothing of it counts; give a shorter --warm-up, or \
         a longer workload",
        *finished_ns as f64 / 1e9, *warm_up_ns as f64 / 1e9
    )]
    OnlyWarmUp {
        /// The warm-up, ns.
        warm_up_ns: u64,
        /// When the run ended, ns.
        finished_ns: u64,
    },
    /// A goal or constraint that the workload has no figure for.
    #[error("{measure}: {workload} has no such metric; {there_is}")]
    NoSuchFigure {
        /// As it is written.
        measure: String,
        /// The workload.
        workload: String,
        /// What there is.
        there_is: String,
    },
    /// The baseline is not among the settings.
    #[error("the baseline {baseline} is not one of the compared settings; they are {}", .labels.join(", "))]
    UnknownBaseline {
        /// What was asked for.
        baseline: String,
        /// What there is.
        labels: Vec<String>,
    },
    /// A setting that is not possible on this device.
    #[error("{source}, on the device {device}")]
    Setting {
        /// The device.
        device: String,
        /// Why.
        source: Box<SettingError>,
    },
    /// A setting of a cgroup that the workload does not have.
    #[error("{setting}: {problem}")]
    NoCgroup {
        /// The setting.
        setting: String,
        /// Which it is, and what would be right.
        problem: String,
    },
    /// A workload that cannot be put on this device.
    #[error("{source}, on the device {device}")]
    Workload {
        /// The device.
        device: String,
        /// Why.
        source: Box<iosched_workload::WorkloadError>,
    },
    /// No such machine.
    #[error("there is no machine {name:?}; available: {}; the name of a file must contain a / or end in \
     .toml", .known.join(", "))]
    UnknownMachine {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// No such published experiment.
    #[error("there is no experiment {name:?}; available: {}; all stands for all of them", .known.join(", "))]
    UnknownExperiment {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// No case of that name.
    #[error("no case has {case:?} in its name; the cases are {}", .known.join(", "))]
    UnknownCase {
        /// What was asked for.
        case: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A description of a machine or an experiment that is none.
    #[error("{file}: {problem}")]
    Data {
        /// The file.
        file: String,
        /// What is wrong, and where.
        problem: String,
    },
    /// A run failed.
    #[error("{name}, run {run} (seed {seed}): {source}")]
    Run {
        /// The setting, and the device if there are several.
        name: String,
        /// The run.
        run: u32,
        /// Its seed.
        seed: u64,
        /// Why.
        source: Box<SimError>,
    },
    /// The simulator itself failed.
    #[error("{name}, run {run} (seed {seed}): the simulator failed, which is a bug: {message}")]
    Bug {
        /// The setting, and the device if there are several.
        name: String,
        /// The run.
        run: u32,
        /// Its seed.
        seed: u64,
        /// What it said.
        message: String,
    },
    /// Settings cannot be compared on a real device.
    #[error(transparent)]
    Verify(#[from] crate::verify::error::VerifyError),
    /// A block trace cannot be written.
    #[error(transparent)]
    Trace(Box<TraceError>),
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Not a file of records.
    #[error("{file}: line 1: not a file of records, which begins with a line {{\"record\":\"header\",…}}: {problem}")]
    NotRecords {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Records of a later version.
    #[error(
        "{file}: line 1: records of format {format}, written by iosched {version}; this version reads up to {RECORDS_FORMAT}"
    )]
    LaterFormat {
        /// The file.
        file: String,
        /// Its format.
        format: u32,
        /// Who wrote it.
        version: String,
    },
    /// A line that is no record, before the last.
    #[error("{file}: line {line}: {problem}")]
    BadRecord {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}
