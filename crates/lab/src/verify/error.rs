//! Errors of comparisons on a real device.

use iosched_kernel::settings::Change;

use crate::error::LabError;

/// Error of a comparison on a real device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The device does not accept a setting.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: String,
        /// Reason.
        problem: String,
    },
    /// A run failed.
    #[error("{problem}")]
    Run {
        /// Reason.
        problem: String,
    },
    /// The workload cannot run on the target, or a run failed.
    #[error(transparent)]
    Execute(Box<iosched_kernel::execute::ExecuteError>),
    /// Another program keeps changing settings of the device.
    #[error(
        "{setting}: {} in each of {runs} runs. Another program (udev, tuned or another iosched) changes the settings \
         of this device; stop that program first",
        changes.iter().map(Change::of_others).collect::<Vec<_>>().join(", ")
    )]
    Disturbed {
        /// The setting.
        setting: String,
        /// Settings that had other values after the last run.
        changes: Vec<Change>,
        /// Number of runs that were made.
        runs: u32,
    },
    /// A setting could not be restored.
    #[error("{problem}")]
    Left {
        /// The setting, and how to restore it by hand.
        problem: String,
    },
    /// A comparison failed, and then a setting could not be restored.
    #[error("{first}; a second error followed: {then}")]
    Twice {
        /// First error.
        first: Box<LabError>,
        /// Error of the restoration.
        then: Box<VerifyError>,
    },
}
