//! What is wrong with a plan, a unit or a dataset.

use std::io;

use iosched_lab::LabError;
use iosched_lab::request::RequestError;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Which.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The plan.
    #[error("{file}: {problem}")]
    Plan {
        /// Its name.
        file: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// What a unit is to compare.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A comparison.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A file of a dataset.
    #[error("{file}: not a file of a sweep's dataset: {problem}")]
    Dataset {
        /// Which.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something else is where a dataset is to be.
    #[error("{file}: is a file, but a dataset is a directory; name an existing or a new directory")]
    NoDirectory {
        /// Which.
        file: String,
    },
    /// A summary.
    #[error("{0}")]
    Summary(String),
}

impl SweepError {
    pub(crate) fn io(file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { file, source }
    }
}
