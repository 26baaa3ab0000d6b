//! fio's job language: from the text of a job file to jobs of which every option is resolved.
//!
//! [`CheckedJobs`] is a valid file: its jobs, what of it makes no difference, and what cannot be done. [`JobFile`] is
//! one that can be run. A file's text goes through `source` (sections, includes, variables), `settings` (each option's
//! value, by its declaration in `options`), `resolve` (a job of each section) and `check` (what is not done, and why).
//!
//! Where fio takes the first part of what it cannot read whole (`bs=4x`, `size=1.5m`, `loops=1,2`), this refuses it:
//! what a person meant by it is something else.

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
    /// Reads a job file that is to be run.
    ///
    /// # Errors
    /// It cannot be read, is no valid job file, or asks for what cannot be done: each with file, line and option.
    pub fn open(path: impl AsRef<Path>, environment: &dyn Environment) -> Result<Self, JobError> {
        CheckedJobs::open(path, environment)?.into_jobs()
    }

    /// Reads the text of a job file that is to be run. `file` is its name, for messages and for what it includes.
    ///
    /// # Errors
    /// As [`JobFile::open`].
    pub fn parse(file: &str, text: &[u8], environment: &dyn Environment) -> Result<Self, JobError> {
        CheckedJobs::parse(file, text, environment)?.into_jobs()
    }

    /// Reads a command line of fio: the words behind its name. `name` is for people, and `priority` is the class and
    /// the level of jobs that set none.
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
