//! Errors of the lab.

use iosched::SettingError;
use iosched_sim::SimError;
use iosched_trace::TraceError;

use crate::record::RECORDS_FORMAT;

/// Error of an experiment that cannot run, or of records that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No settings were given.
    #[error("no scheduler is given; give at least one scheduler")]
    NoSettings,
    /// A version of Linux is given, but every scheduler always follows the rules of one version.
    #[error(
        "the kernel version {kernel} has no effect, because {elevator} always follows the rules of Linux {rules}; \
         add a scheduler of today's Linux, or leave out --kernel"
    )]
    NoVersions {
        /// The version.
        kernel: iosched::KernelVersion,
        /// A scheduler of the comparison.
        elevator: String,
        /// Versions of Linux with the rules of this scheduler, as far as they are known.
        rules: String,
    },
    /// A setting is given twice.
    #[error("the setting {label} is given twice; give each setting once")]
    TwiceTheSame {
        /// Label of the setting.
        label: String,
    },
    /// A device is given twice.
    #[error("the device {name} is given twice; give each device once")]
    TwiceTheSameDevice {
        /// Name of the device.
        name: String,
    },
    /// fio's JSON was requested for a workload that is not a fio job file.
    #[error("{workload} is not a fio job file, so iosched cannot write fio's JSON; use --json")]
    NotFioJobs {
        /// Name of the workload.
        workload: String,
    },
    /// No round is complete.
    #[error("some settings have no finished run, so iosched cannot compare the settings")]
    NothingRun,
    /// The number of runs is 0.
    #[error("0 runs give no results; give at least 1 run, better 10 runs")]
    NoRuns,
    /// A run ended within the warm-up, so it has no results.
    #[error(
        "a run ended after {} s, but the warm-up lasts {} s, so the run has no result; give a shorter --warm-up, or a \
         longer workload",
        *finished_ns as f64 / 1e9, *warm_up_ns as f64 / 1e9
    )]
    OnlyWarmUp {
        /// Length of the warm-up, ns.
        warm_up_ns: u64,
        /// End of the run, ns.
        finished_ns: u64,
    },
    /// The workload has no metric for a goal or constraint.
    #[error("{measure}: {workload} has no such metric; {there_is}")]
    NoSuchFigure {
        /// The goal or constraint, as the user wrote it.
        measure: String,
        /// Name of the workload.
        workload: String,
        /// Sentence that lists the available metrics.
        there_is: String,
    },
    /// The baseline is not among the settings.
    #[error("the baseline {baseline} is not one of the compared settings; these are {}", .labels.join(", "))]
    UnknownBaseline {
        /// Label that the user gave as the baseline.
        baseline: String,
        /// Labels of the settings.
        labels: Vec<String>,
    },
    /// A setting is not possible on this device.
    #[error("{source}, on the device {device}")]
    Setting {
        /// Name of the device.
        device: String,
        /// Reason.
        source: Box<SettingError>,
    },
    /// A setting names a cgroup that the workload does not have.
    #[error("{setting}: {problem}")]
    NoCgroup {
        /// The setting.
        setting: String,
        /// Name of the cgroup, and the available names.
        problem: String,
    },
    /// The workload does not fit this device.
    #[error("{source}, on the device {device}")]
    Workload {
        /// Name of the device.
        device: String,
        /// Reason.
        source: Box<iosched_workload::WorkloadError>,
    },
    /// There is no machine profile with that name.
    #[error("there is no machine {name:?}; available: {}; the name of a file must contain a / or end in \
        .toml", .known.join(", "))]
    UnknownMachine {
        /// Name that the user gave.
        name: String,
        /// Names of the available machines.
        known: Vec<&'static str>,
    },
    /// There is no published experiment with that name.
    #[error("there is no experiment {name:?}; available: {}, and \"all\" for all experiments", .known.join(", "))]
    UnknownExperiment {
        /// Name that the user gave.
        name: String,
        /// Names of the available experiments.
        known: Vec<&'static str>,
    },
    /// No case of the experiment matches.
    #[error("no case has {case:?} in its name; the cases are {}", .known.join(", "))]
    UnknownCase {
        /// Text that the user gave.
        case: String,
        /// Names of the cases.
        known: Vec<String>,
    },
    /// A description of a machine or an experiment is not valid.
    #[error("{file}: {problem}")]
    Data {
        /// Name of the file.
        file: String,
        /// Error and its place in the file.
        problem: String,
    },
    /// A run failed.
    #[error("{name}, run {run} (seed {seed}): {source}")]
    Run {
        /// Label of the setting, with the device's name if there are several devices.
        name: String,
        /// Number of the run, from 0.
        run: u32,
        /// Seed of the run.
        seed: u64,
        /// Reason.
        source: Box<SimError>,
    },
    /// The simulator panicked. This is a bug.
    #[error("{name}, run {run} (seed {seed}): the simulator failed, which is a bug: {message}")]
    Bug {
        /// Label of the setting, with the device's name if there are several devices.
        name: String,
        /// Number of the run, from 0.
        run: u32,
        /// Seed of the run.
        seed: u64,
        /// Message of the panic.
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
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a file of records.
    #[error(
        "{file}: line 1: this is not a file of records; such a file begins with a line {{\"record\":\"header\",…}}: \
         {problem}"
    )]
    NotRecords {
        /// Name of the file.
        file: String,
        /// Reason.
        problem: String,
    },
    /// The records have a later format than this version reads.
    #[error(
        "{file}: line 1: these records have format {format}, of iosched {version}; this version of iosched reads \
         formats up to {RECORDS_FORMAT}"
    )]
    LaterFormat {
        /// Name of the file.
        file: String,
        /// Format of the records.
        format: u32,
        /// Version of iosched that wrote the file.
        version: String,
    },
    /// A line other than the last is not a record.
    #[error("{file}: line {line}: {problem}")]
    BadRecord {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Reason.
        problem: String,
    },
}
