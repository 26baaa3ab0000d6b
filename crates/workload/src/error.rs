//! What goes wrong with a workload, and where.

/// Why a workload cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The file system refuses.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A process that is to be in a cgroup is not in the trace.
    #[error("{file}: {given}: no process of the trace has this name; it has {known}")]
    NoSuchProcess {
        /// The trace.
        file: String,
        /// What was asked for.
        given: String,
        /// Some of its processes.
        known: String,
    },
    /// Not TOML, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Toml {
        /// The file.
        file: String,
        /// Line, column, what was found and what was expected.
        source: Box<toml::de::Error>,
    },
    /// Not JSON, or a field is unknown, missing or of another type.
    #[error("{file}: {source}")]
    Json {
        /// The file.
        file: String,
        /// Line, column, what was found and what was expected.
        source: serde_json::Error,
    },
    /// A value that makes no sense.
    #[error("{file}: {field}: {problem}; {remedy}")]
    Invalid {
        /// The file.
        file: String,
        /// The field, as `tasks[2].total`; counted from 0.
        field: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A fio job file cannot be read.
    #[error(transparent)]
    JobFile(#[from] crate::fio::language::error::JobError),
    /// A job of a fio job file cannot be run.
    #[error("{file}: line {line}: job {job}: {problem}; {remedy}")]
    Job {
        /// The job file.
        file: String,
        /// Line of the job's section, from 1.
        line: u32,
        /// The job's name.
        job: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A program's command line cannot be run.
    #[error("{command}: {option}: {problem}; {remedy}")]
    Command {
        /// The command, as written.
        command: String,
        /// The option, as written or as it should be.
        option: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// A command line whose program is not modelled.
    #[error(
        "{program}: iosched does not simulate this program, and there is no file with this name{remedy}; given: {line}"
    )]
    NoSuchProgram {
        /// The program.
        program: String,
        /// The start of the line.
        line: String,
        /// The nearest that is modelled; empty if nothing is near.
        remedy: String,
    },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] iosched_trace::TraceError),
    /// The trace holds no request.
    #[error("{file}: the trace has no requests to replay")]
    NoRequests {
        /// The file.
        file: String,
    },
}

/// Characters of a command line that a message shows, at most.
const SHOWN_CHARS: usize = 60;

/// A text as it is shown in a message: its start, if it is long.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
