//! Why a battery gives no answer.

use std::io;

use iosched_lab::LabError;
use iosched_lab::verify::VerifyError;

/// A battery that was not run, or not read.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// A file of something else.
    #[error("{file}: is not a file of a validation: {problem}")]
    NotABattery {
        /// Its name.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A damaged line.
    #[error("{file}: line {line}: {problem}")]
    BadLine {
        /// The file's name.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The device or its model does not run a workload.
    #[error("{trial} under {scheduler}: {source}")]
    Run {
        /// The workload.
        trial: &'static str,
        /// The scheduler.
        scheduler: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Nothing came back in the time that counts.
    #[error("{trial} under {scheduler}: no I/O completed in the measured time; give a longer --run-for")]
    Nothing {
        /// The workload.
        trial: &'static str,
        /// The scheduler.
        scheduler: String,
    },
    /// The request is wrong: another one would be right.
    #[error("{0}")]
    Wrong(String),
    /// A comparison on the device fails.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The device cannot be prepared.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Too little was measured to judge anything.
    #[error("no workload has two runs under a scheduler, so there is nothing to compare with")]
    TooLittle,
}
