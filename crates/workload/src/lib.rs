//! What tasks do: synthetic programs, scenarios and trace replay. Neither time nor device is here.
//!
//! A [`Workload`] is a [`TaskSet`], tasks in closed loops and scheduled arrivals, read from a TOML
//! file or a recorded [`Scenario`]; a [`Trace`], read once and shared by all runs; or
//! [`fio::Jobs`], read from a fio job file. Who runs it draws from it: a [`Program`] gives a task's
//! next I/O and think time, a trace gives entries, a [`ClosedLoop`] what waited for what, a
//! [`fio::Generator`] a job's next I/O.
#![forbid(unsafe_code)]

pub mod app;
mod arrivals;
mod closed;
mod error;
mod file;
pub mod fio;
mod fit;
pub mod outcome;
mod pasted;
mod program;
mod replay;
mod scenario;
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
pub use task_loop::{After, TaskLoop, TaskNumbers};
pub use tasks::{
    Arrival, Cgroup, CgroupMove, CgroupRemoval, Class, Count, Hints, Pattern, Phase, PriorityChange, Task, TaskOp,
    TaskSet, Think, WeightChange,
};
pub use trace::{Entries, Entry, Process, Trace};

use std::path::Path;
use std::sync::Arc;

/// What names of fio job files end in.
const JOB_FILE_ENDINGS: [&str; 3] = ["fio", "job", "ini"];

/// Whether a file is a fio job file by its name.
#[must_use]
pub fn is_job_file(path: &Path) -> bool {
    path.extension().is_some_and(|own| JOB_FILE_ENDINGS.iter().any(|ending| own == *ending))
}

/// What is done to a device.
#[derive(Clone, Debug)]
pub enum Workload {
    /// Tasks that submit, wait and think.
    Tasks(Box<TaskSet>),
    /// A recording that is replayed.
    Trace(Arc<Trace>),
    /// fio jobs.
    Jobs(fio::Jobs),
    /// A program that makes system calls.
    Application(Box<app::Spec>),
}

impl Workload {
    /// Reads a workload: a task file if the name ends in `.toml`, a fio job file if it ends in `.fio`, `.job` or
    /// `.ini`, a command line if it begins with the name of one of [`app::programs`] and no file is called so, else a
    /// trace in any format that [`iosched_trace`] knows. Variables in job files are not set.
    ///
    /// # Errors
    /// When it cannot be read or is not what its name says.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        Self::open_with(path, &fio::NoVariables)
    }

    /// Likewise; job files see `environment`.
    ///
    /// # Errors
    /// As [`Workload::open`].
    pub fn open_with(path: impl AsRef<Path>, environment: &dyn fio::Environment) -> Result<Self, WorkloadError> {
        Self::open_as(path, environment, &ReadOptions::default())
    }

    /// Likewise; a trace is read as `reading` says. What has a format or columns given is a trace, whatever it is
    /// called.
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

    /// A program's command line, as it is pasted. `None` if no program of its name is modelled.
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

    /// When it ends at the latest, ns since its start, where its command line says so.
    #[must_use]
    pub fn limit_ns(&self) -> Option<u64> {
        match self {
            Self::Jobs(jobs) => jobs.limit_ns(),
            Self::Application(spec) => spec.limit_ns(),
            Self::Tasks(_) | Self::Trace(_) => None,
        }
    }

    /// Its name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Tasks(tasks) => &tasks.name,
            Self::Trace(trace) => trace.name(),
            Self::Jobs(jobs) => &jobs.file().name,
            Self::Application(spec) => spec.name(),
        }
    }

    /// What one task or process does, for a run of it alone. `None` if there is none of that number.
    #[must_use]
    pub fn only(&self, task: usize) -> Option<Self> {
        match self {
            Self::Tasks(tasks) => tasks.only(task).map(|set| Self::Tasks(set.into())),
            Self::Trace(trace) => trace.only(task).map(|trace| Self::Trace(Arc::new(trace))),
            Self::Jobs(jobs) => jobs.only(task).map(Self::Jobs),
            // Its tasks belong together.
            Self::Application(_) => None,
        }
    }

    /// How many tasks or processes it has.
    #[must_use]
    pub fn task_count(&self) -> usize {
        match self {
            Self::Tasks(tasks) => tasks.tasks.len(),
            Self::Trace(trace) => trace.processes().len(),
            Self::Jobs(jobs) => jobs.count(),
            Self::Application(spec) => spec.task_count(),
        }
    }
}
