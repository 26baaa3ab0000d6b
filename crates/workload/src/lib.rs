//! Workloads: synthetic tasks, scenarios, traces, fio jobs and simulated programs. This crate knows
//! neither time nor devices.
//!
//! A [`Workload`] is one of these:
//! - a [`TaskSet`]: tasks in closed loops and scheduled arrivals, read from a TOML file or a
//!   recorded [`Scenario`];
//! - a [`Trace`], read once and shared by all runs;
//! - [`fio::Jobs`], read from a fio job file;
//! - an [`app::Spec`], read from a command line;
//! - [`Several`] of these at the same time, each with a cgroup.
//!
//! The code that runs a workload takes its I/Os from these types. A [`Program`] returns a task's
//! next I/O and think time. A trace returns entries. A [`ClosedLoop`] returns the number of
//! completions that each I/O waited for. A [`fio::Generator`] returns a job's next I/O.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `tasks.rs`, `file.rs`, `scenario.rs` | task sets, and their files: TOML, recorded scenarios |
//! | `program.rs`, `task_loop.rs` | the state of a task during a run |
//! | `trace.rs`, `fit.rs` | a recorded trace, and its placement on a smaller device |
//! | `replay.rs`, `arrivals.rs` | modes of replay, open replay |
//! | `closed.rs`, `depth.rs` | closed replay, and the depth that a process keeps |
//! | `fio/` | fio jobs: `language/` (job files), `layout` (places of files), `generator` (I/Os), `process/` (a job in a run) |
//! | `app/` | simulated programs, each in a file or folder; `command_line` and `spec` read their command lines |
//! | `pasted.rs`, `stream.rs` | command lines as users paste them; workloads from standard input |
//! | `several.rs` | workloads of several units in one run |
//! | `outcome/` | the results of a run |
//! | `error.rs` | errors with their places |
#![forbid(unsafe_code)]

pub mod app;
mod arrivals;
mod closed;
mod depth;
mod error;
mod file;
pub mod fio;
mod fit;
pub mod outcome;
mod pasted;
mod program;
mod replay;
mod scenario;
mod several;
mod stream;
mod task_loop;
mod tasks;
mod trace;

pub use arrivals::{Arrivals, TimesByProcess, due_ns};
pub use closed::{ByProcess, ClosedLoop};
pub use error::WorkloadError;
pub use iosched_system::rows::Cursor;
pub use iosched_trace::{Fit, ReadOptions};
pub use program::Program;
pub use replay::{Followers, Replay};
pub use scenario::{Brief, Scenario, TagMap, TunableChange};
pub use several::{PART_SEPARATOR, Part, Several};
pub use task_loop::{After, TaskLoop, TaskNumbers};
pub use tasks::{
    Arrival, Cgroup, CgroupMove, CgroupRemoval, Class, Count, Hints, Pattern, Phase, PriorityChange, Task, TaskOp,
    TaskSet, Think, WeightChange,
};
pub use trace::{Contents, Entries, Entry, Process, Trace};

use std::path::Path;
use std::sync::Arc;

/// Extensions of the names of fio job files.
const JOB_FILE_ENDINGS: [&str; 3] = ["fio", "job", "ini"];

/// Returns whether a file is a fio job file, by the extension of its name.
#[must_use]
pub fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|found| JOB_FILE_ENDINGS.iter().any(|ending| found == *ending))
}

/// The I/O that a run makes.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Tasks that submit, wait and think.
    Tasks(Box<TaskSet>),
    /// A recording to replay.
    Trace(Arc<Trace>),
    /// Jobs of fio.
    Jobs(fio::Jobs),
    /// A program that makes system calls.
    Application(Box<app::Spec>),
    /// Workloads of several units at the same time.
    Several(Box<Several>),
}

impl Workload {
    /// Reads a workload. Its name determines its kind:
    /// - A name that ends in `.toml` is a task file.
    /// - A name that ends in `.fio`, `.job` or `.ini` is a fio job file.
    /// - A text that begins with the name of one of [`app::programs`] is a command line, unless a
    ///   file has this name.
    /// - Anything else is a trace in any format that [`iosched_trace`] knows.
    ///
    /// Variables in job files are not set.
    ///
    /// # Errors
    /// The workload cannot be read, or its content is not of this kind.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        Self::open_with(path, &fio::NoVariables)
    }

    /// Reads a workload as [`Workload::open`] does. Job files see the variables of `environment`.
    ///
    /// # Errors
    /// As [`Workload::open`].
    pub fn open_with(path: impl AsRef<Path>, environment: &dyn fio::Environment) -> Result<Self, WorkloadError> {
        Self::open_as(path, environment, &ReadOptions::default())
    }

    /// Reads a workload as [`Workload::open_with`] does, and reads traces with the options
    /// `reading`. If these options name a format or columns, the workload is a trace, whatever its
    /// name is.
    ///
    /// # Errors
    /// As [`Workload::open`].
    pub fn open_as(
        path: impl AsRef<Path>,
        environment: &dyn fio::Environment,
        reading: &ReadOptions,
    ) -> Result<Self, WorkloadError> {
        let path = path.as_ref();
        if reading.format.is_some() || reading.columns.is_some() {
            return Trace::open_with(path, reading).map(|trace| Self::Trace(Arc::new(trace)));
        }
        let is_program = |text: &str| {
            let as_fio = app::programs_as_fio().iter().any(|program| program.name == text);
            text.contains(' ') || as_fio || app::Spec::is_command(text)
        };
        let is_line = |text: &&str| !path.exists() && is_program(text);
        if let Some(text) = path.to_str().filter(is_line)
            && let Some(workload) = Self::of_command(text, environment)?
        {
            return Ok(workload);
        }
        if path.extension().is_some_and(|extension| extension == "toml") {
            TaskSet::open(path).map(|set| Self::Tasks(set.into()))
        } else if is_job_file(path) {
            let mut file = fio::JobFile::open(path, environment)?;
            fio::load_logs(&mut file)?;
            Ok(Self::Jobs(fio::Jobs::new(file)))
        } else {
            let trace = Trace::open_with(path, reading).map_err(|error| pasted::no_program(path, error));
            trace.map(|trace| Self::Trace(Arc::new(trace)))
        }
    }

    /// Parses a program's command line as a user pasted it. Returns `None` if iosched does not
    /// simulate the program.
    fn of_command(text: &str, environment: &dyn fio::Environment) -> Result<Option<Self>, WorkloadError> {
        let pasted = pasted::Pasted::read(text)?;
        let Some(program) = pasted.words.first() else { return Ok(None) };
        let program = pasted::base(program);
        let line = pasted.line(text);
        let fio = if program == "fio" { Some(pasted.words[1..].to_vec()) } else { app::as_fio(&line)? };
        if let Some(words) = fio {
            let name = error::shortened(text);
            let mut file = fio::JobFile::of_command(&name, &words, pasted.priority, environment)?;
            fio::load_logs(&mut file)?;
            return Ok(Some(Self::Jobs(fio::Jobs::new(file).limited(pasted.limit_ns))));
        }
        if !app::Spec::is_command(program) {
            return Ok(None);
        }
        let spec = app::Spec::parse(&line)?.started(text, pasted.ioprio(), pasted.limit_ns);
        Ok(Some(Self::Application(spec.into())))
    }

    /// Returns the time limit that the command line sets, ns since the start of the run. Returns
    /// `None` if there is no limit.
    #[must_use]
    pub fn limit_ns(&self) -> Option<u64> {
        match self {
            Self::Jobs(jobs) => jobs.limit_ns(),
            Self::Application(spec) => spec.limit_ns(),
            Self::Several(several) => several.parts.iter().filter_map(|part| part.workload.limit_ns()).min(),
            Self::Tasks(_) | Self::Trace(_) => None,
        }
    }

    /// Returns the name of the workload for display.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tasks(tasks) => &tasks.name,
            Self::Trace(trace) => trace.name(),
            Self::Jobs(jobs) => &jobs.file().name,
            Self::Application(spec) => spec.name(),
            Self::Several(several) => &several.name,
        }
    }

    /// Returns the workload of a single task or process, to run it alone. Returns `None` if there
    /// is no task with this number, or if the tasks cannot run alone.
    #[must_use]
    pub fn only(&self, task: usize) -> Option<Self> {
        match self {
            Self::Tasks(tasks) => tasks.only(task).map(|set| Self::Tasks(set.into())),
            Self::Trace(trace) => trace.only(task).map(|trace| Self::Trace(Arc::new(trace))),
            Self::Jobs(jobs) => jobs.only(task).map(Self::Jobs),
            // The tasks of a program, or of a part, can depend on each other.
            Self::Application(_) | Self::Several(_) => None,
        }
    }

    /// Returns the number of tasks or processes.
    #[must_use]
    pub fn task_count(&self) -> usize {
        match self {
            Self::Tasks(tasks) => tasks.tasks.len(),
            Self::Trace(trace) => trace.processes().len(),
            Self::Jobs(jobs) => jobs.count(),
            Self::Application(spec) => spec.task_count(),
            Self::Several(several) => several.task_count(),
        }
    }
}
