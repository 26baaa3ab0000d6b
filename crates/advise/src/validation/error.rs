//! Errors of a validation.

use std::io;

use iosched_disk::ProfileError;
use iosched_kernel::StateError;
use iosched_lab::LabError;
use iosched_lab::verify::{DeviceRequestError, VerifyError};

use crate::calibrate::PlaceError;

/// An error of running or reading a validation.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Path of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The file does not contain a validation.
    #[error("{file}: this is not a file of a validation: {problem}")]
    NotABattery {
        /// Path of the file.
        file: String,
        /// Error of the file.
        problem: String,
    },
    /// A line is damaged.
    #[error("{file}: line {line}: {problem}")]
    BadLine {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// Error of the line.
        problem: String,
    },
    /// A workload cannot run on the device or its model.
    #[error("{trial} under {scheduler}: {source}")]
    Run {
        /// Name of the workload.
        trial: &'static str,
        /// Name of the scheduler.
        scheduler: String,
        /// Error of the run.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No I/O completed in the measured time.
    #[error("{trial} under {scheduler}: no I/O completed in the measured time; give a longer --run-for")]
    Nothing {
        /// Name of the workload.
        trial: &'static str,
        /// Name of the scheduler.
        scheduler: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    Wrong(String),
    /// The target cannot be measured.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The target has no disk with schedulers.
    #[error(transparent)]
    Request(#[from] DeviceRequestError),
    /// The profile that is used instead of a device is wrong.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The directory for records of changed settings cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A comparison on the device failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The device cannot be prepared.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// There are too few measurements for a judgement.
    #[error("no workload has two runs under the same scheduler, so iosched cannot judge the profile")]
    TooLittle,
}
