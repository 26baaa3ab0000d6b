//! Errors of plans, units and datasets.

use std::io;

use iosched_lab::LabError;
use iosched_lab::request::RequestError;

/// Reason why a sweep cannot run or be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// Reason.
        source: io::Error,
    },
    /// The plan is not valid.
    #[error("{file}: {problem}")]
    Plan {
        /// Name of the plan's file.
        file: String,
        /// The problem, and how to correct it.
        problem: String,
    },
    /// The comparison that a unit requests is not valid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A comparison failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A file does not belong to a dataset.
    #[error("{file}: this is not a file of a sweep's dataset: {problem}")]
    Dataset {
        /// Name of the file.
        file: String,
        /// Reason.
        problem: String,
    },
    /// The path of a dataset is not a directory.
    #[error("{file}: this is a file, but a dataset is a directory; name an existing or a new directory")]
    NoDirectory {
        /// Path of the dataset.
        file: String,
    },
    /// A summary is not possible.
    #[error("{0}")]
    Summary(String),
}

impl SweepError {
    pub(crate) fn io(file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { file, source }
    }
}
