//! What goes wrong on a real device.

use iosched_kernel::settings::Change;

use crate::error::LabError;

/// Why settings cannot be compared on a real device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The device does not take a setting.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting.
        setting: String,
        /// Why.
        problem: String,
    },
    /// A run failed.
    #[error("{problem}")]
    Run {
        /// Why.
        problem: String,
    },
    /// The workload cannot be run there, or a run failed.
    #[error(transparent)]
    Execute(Box<iosched_kernel::execute::ExecuteError>),
    /// Something else changes settings of the device again and again.
    #[error(
        "{setting}: {} in each of {runs} runs; another program (udev, tuned or another iosched) sets this device; \
         stop it first",
        changes.iter().map(Change::of_others).collect::<Vec<_>>().join(", ")
    )]
    Disturbed {
        /// The setting.
        setting: String,
        /// What was not as it was set, after the last run.
        changes: Vec<Change>,
        /// Runs that were made.
        runs: u32,
    },
    /// Something could not be put back.
    #[error("{problem}")]
    Left {
        /// What, and how to do it by hand.
        problem: String,
    },
    /// Something failed, and then something could not be put back.
    #[error("{first}; and then: {then}")]
    Twice {
        /// What failed.
        first: Box<LabError>,
        /// What could not be put back.
        then: Box<VerifyError>,
    },
}
