//! fio's job language: from the text of a job file to jobs with all options resolved.
//!
//! [`CheckedJobs`] is a valid file, with its jobs, its options without effect, and its unsupported
//! options. A [`JobFile`] has only supported options and can run. The text of a file passes through
//! these modules:
//! - `source`: sections, includes, variables;
//! - `settings`: the value of each option, parsed as its declaration in `options` says;
//! - `resolve`: a job from each section;
//! - `check`: unsupported options, and the reasons.
//!
//! If fio cannot parse a whole value, it uses the first part (`bs=4x`, `size=1.5m`, `loops=1,2`).
//! This module rejects such values, because the user means something else.

mod arithmetic;
mod check;
mod command_line;
mod engines;
mod environment;
pub(crate) mod error;
mod files;
mod list;
mod number;
mod options;
mod place;
mod remark;
mod resolve;
mod settings;
mod source;
mod value;

use std::path::Path;

pub use check::CheckedJobs;
pub use engines::{EngineBehaviour, IO_ENGINES, IoEngine, io_engine};
pub use environment::{Environment, Machine, NoVariables};
pub use error::{JobError, JobProblem, ProblemKind};
pub use options::{Category, JobOption, Treatment, Unit, ValueKind, job_options};
pub use place::JobLine;
pub use remark::{Refusal, Remark};

use crate::fio::job::JobFile;

impl JobFile {
    /// Reads a job file that must have only supported options.
    ///
    /// # Errors
    /// The file cannot be read, is not a valid job file, or has unsupported options. Each error has
    /// file, line and option.
    pub fn open(path: impl AsRef<Path>, environment: &dyn Environment) -> Result<Self, JobError> {
        CheckedJobs::open(path, environment)?.into_jobs()
    }

    /// Parses the text of a job file that must have only supported options. `file` is its name, for
    /// messages and for its includes.
    ///
    /// # Errors
    /// As [`JobFile::open`].
    pub fn parse(file: &str, text: &[u8], environment: &dyn Environment) -> Result<Self, JobError> {
        CheckedJobs::parse(file, text, environment)?.into_jobs()
    }

    /// Parses the words of a fio command line after the program's name. `name` is the name of the
    /// result for display. `priority` is the class and level of jobs that do not set a priority.
    ///
    /// # Errors
    /// As [`JobFile::open`].
    pub(crate) fn of_command(
        name: &str,
        words: &[String],
        priority: Option<(u8, u8)>,
        environment: &dyn Environment,
    ) -> Result<Self, JobError> {
        CheckedJobs::of_command(name, words, priority, environment)?.into_jobs()
    }
}
