//! Errors of a calibration.

use iosched_disk::ProfileError;
use iosched_sim::SimError;

/// Present format of the file of measurements, which errors name.
pub const FORMAT: u32 = 2;

/// An error of a calibration, or of reading its measurements.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The device failed during a probe.
    #[error("{probe}: {source}")]
    Measure {
        /// The probe that failed.
        probe: String,
        /// Error of the device.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A probe completed no I/O.
    #[error("{probe}: no I/O completed in {seconds:.1} s; check {target} for errors")]
    Nothing {
        /// The probe without I/O.
        probe: String,
        /// Duration of the probe, s.
        seconds: f64,
        /// Name of the device.
        target: String,
    },
    /// A measurement that the fit needs is missing.
    #[error("a measurement that the fit needs is missing: {missing}; measure again, and let at least one round finish")]
    Incomplete {
        /// Title of the missing role of probes.
        missing: String,
    },
    /// The device cannot be of the kind that the user chose.
    #[error("the chosen kind of model cannot describe this device: {reason}")]
    NoKind {
        /// Reason why the kind does not fit.
        reason: String,
    },
    /// The profile to start from is of a different kind than the fit produces.
    #[error(
        "the initial profile is of kind {kind}, but only a profile of kind hdd (a rotating disk) can be fitted to a \
         trace"
    )]
    Start {
        /// Kind of the profile.
        kind: &'static str,
    },
    /// The device is too small for the probes.
    #[error("{target} has {bytes} bytes; a device or file to calibrate must have at least {least} bytes")]
    TooSmall {
        /// Name of the device.
        target: String,
        /// Size of the device, bytes.
        bytes: u64,
        /// Least size, bytes.
        least: u64,
    },
    /// A simulated run failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The fitted parameters are not a valid profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Path of the file.
        file: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file does not contain measurements.
    #[error(
        "{file}: line 1: this is not a file of measurements; such a file begins with a line \
         {{\"record\":\"calibration\",…}}: {problem}"
    )]
    NotMeasurements {
        /// Path of the file.
        file: String,
        /// Reason why the first line is not a header.
        problem: String,
    },
    /// The file has the format of a later version.
    #[error(
        "{file}: line 1: these measurements have format {format}, of iosched {version}; this version of iosched \
         reads formats up to {FORMAT}"
    )]
    LaterFormat {
        /// Path of the file.
        file: String,
        /// Format of the file.
        format: u32,
        /// Version of iosched that wrote the file.
        version: String,
    },
    /// A table of measurements is not valid.
    #[error("{file}: {problem}")]
    Table {
        /// Path of the file.
        file: String,
        /// Place, problem and remedy.
        problem: String,
    },
    /// A line of the file is not a measurement.
    #[error("{file}: line {line}: {problem}")]
    BadLine {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Error of the line.
        problem: String,
    },
}
