//! Why a device cannot be calibrated.

use iosched_disk::ProfileError;
use iosched_sim::SimError;

use super::records::FORMAT;

/// Why a device cannot be calibrated, or what was measured of it not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The device fails.
    #[error("{probe}: {source}")]
    Measure {
        /// What was being measured.
        probe: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing came back.
    #[error("{probe}: nothing was read or written in {seconds:.1} s; check whether {target} works")]
    Nothing {
        /// What was being measured.
        probe: String,
        /// For how long.
        seconds: f64,
        /// The device.
        target: String,
    },
    /// What a fit needs was not measured.
    #[error(
        "there are too few measurements for a fit: {missing} is missing; measure again, and let at least one round \
         finish"
    )]
    Incomplete {
        /// Roles of probes.
        missing: String,
    },
    /// It cannot be of the kind that was asked for.
    #[error("the device is not of this kind: {reason}")]
    NoKind {
        /// The kind, and why.
        reason: String,
    },
    /// The profile to begin with is of another kind of device than what is fitted.
    #[error("the profile to start from is of kind {kind}; only kind hdd (a rotating disk) can be fitted to a trace")]
    Start {
        /// Its kind.
        kind: &'static str,
    },
    /// The device is too small for the probes.
    #[error("{target} has {bytes} bytes; a device or file to calibrate must have at least {least}")]
    TooSmall {
        /// The device.
        target: String,
        /// Its size.
        bytes: u64,
        /// Least size.
        least: u64,
    },
    /// A run of a model failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// What was fitted is no device.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Not a file of measurements.
    #[error(
        "{file}: line 1: not a file of measurements, which begins with a line {{\"record\":\"calibration\",…}}: {problem}"
    )]
    NotMeasurements {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// Of a later version.
    #[error(
        "{file}: line 1: measurements of format {format}, written by iosched {version}; this version reads up to {FORMAT}"
    )]
    LaterFormat {
        /// The file.
        file: String,
        /// Its format.
        format: u32,
        /// Who wrote it.
        version: String,
    },
    /// A line that is no measurement.
    #[error("{file}: line {line}: {problem}")]
    BadLine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        problem: String,
    },
}
