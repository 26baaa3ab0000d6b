//! Errors of workloads, each with its place.

/// A reason why a workload cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The trace has no process with the name that was given for a cgroup or a priority.
    #[error("{file}: {given}: the trace has no process with this name; the names in the trace are {known}")]
    NoSuchProcess {
        /// Name of the trace's file.
        file: String,
        /// The name that was given.
        given: String,
        /// Names of some of the trace's processes.
        known: String,
    },
    /// The file is not TOML, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Toml {
        /// Name of the file.
        file: String,
        /// Line, column, the value found and the value expected.
        source: Box<toml::de::Error>,
    },
    /// The file is not JSON, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Json {
        /// Name of the file.
        file: String,
        /// Line, column, the value found and the value expected.
        source: serde_json::Error,
    },
    /// A value is not valid.
    #[error("{file}: {field}: {problem}; {remedy}")]
    Invalid {
        /// Name of the file.
        file: String,
        /// The field, for example `tasks[2].total`. Indices start at 0.
        field: String,
        /// The problem of the value.
        problem: String,
        /// A remedy.
        remedy: &'static str,
    },
    /// A fio job file cannot be read.
    #[error(transparent)]
    JobFile(#[from] crate::fio::language::error::JobError),
    /// A job of a fio job file cannot be run.
    #[error("{file}: line {line}: job {job}: {problem}; {remedy}")]
    Job {
        /// Name of the job file.
        file: String,
        /// Line of the job's section, from 1.
        line: u32,
        /// Name of the job.
        job: String,
        /// The problem of the job.
        problem: String,
        /// A remedy.
        remedy: &'static str,
    },
    /// A program's command line cannot be run.
    #[error("{command}: {option}: {problem}; {remedy}")]
    Command {
        /// The command, as written.
        command: String,
        /// The option, as written or in its correct form.
        option: String,
        /// The problem of the option.
        problem: String,
        /// A remedy.
        remedy: String,
    },
    /// The command line is for a program that iosched does not simulate.
    #[error("{program}: iosched does not simulate this program, and no file has this name{remedy}; given: {line}")]
    NoSuchProgram {
        /// Name of the program.
        program: String,
        /// Start of the command line.
        line: String,
        /// The simulated program with the most similar name. Empty if no name is similar.
        remedy: String,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] iosched_trace::TraceError),
    /// The trace has no requests.
    #[error("{file}: the trace has no requests to replay")]
    NoRequests {
        /// Name of the file.
        file: String,
    },
}

/// Largest number of characters of a command line that a message shows.
const SHOWN_CHARS: usize = 60;

/// Returns a text for a message, cut after [`SHOWN_CHARS`] characters.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
