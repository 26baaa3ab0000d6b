//! What is wrong with a job file, and where.

use std::fmt;

use super::place::JobLine;
use super::remark::Refusal;

/// Mistakes that are told one by one; of more, only the number.
pub(super) const TOLD_MAX: usize = 20;

/// Why a job file cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is not a valid job file.
    #[error("{}{}", told(.problems), told_too(.refusals))]
    Invalid {
        /// At least one, in the order of the file.
        problems: Vec<JobProblem>,
        /// What could not be done either, as far as the file can be understood.
        refusals: Vec<Refusal>,
    },
    /// It is valid, and asks for what iosched cannot do. At least one refusal, in the order of the file.
    #[error("{}", told(.0))]
    Unsupported(Vec<Refusal>),
}

/// Text of a job file in a message: its first characters, if it is long.
pub(in crate::fio) struct Short<'a>(pub(in crate::fio) &'a str);

impl Short<'_> {
    const CHARS_MAX: usize = 200;
}

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(Self::CHARS_MAX) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}… ({} characters)", &self.0[..end], self.0.chars().count()),
        }
    }
}

/// Each on a line of its own.
fn told<T: fmt::Display>(all: &[T]) -> String {
    let mut text = String::new();
    for (index, one) in all.iter().take(TOLD_MAX).enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&one.to_string());
    }
    if all.len() > TOLD_MAX {
        text.push_str(&format!("\nand {} more", all.len() - TOLD_MAX));
    }
    text
}

/// What is to be said besides.
fn told_too(refusals: &[Refusal]) -> String {
    if refusals.is_empty() { String::new() } else { format!("\n{}", told(refusals)) }
}

/// One mistake in a job file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct JobProblem {
    /// Where.
    pub place: JobLine,
    /// What.
    pub kind: ProblemKind,
}

impl JobProblem {
    pub(super) const fn new(place: JobLine, kind: ProblemKind) -> Self {
        Self { place, kind }
    }
}

/// What can be wrong with a line of a job file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// An option before the first section.
    #[error("{}: it is before the first section; move it below [global] or the name of a job", Short(.option))]
    OutsideSection {
        /// The option.
        option: String,
    },
    /// A job file that a command line names.
    #[error("{path}: {problem}; a word without -- names a job file")]
    JobFile {
        /// The file.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// An option of the command line that makes fio do something else than run jobs.
    #[error("--{option}: with this option fio runs no jobs; leave it out")]
    NotARun {
        /// The option.
        option: String,
    },
    /// A section's header that is none.
    #[error("{}: is not a section; write [name]", Short(.header))]
    Section {
        /// The line.
        header: String,
    },
    /// A section in an included file.
    #[error(
        "[{}]: an included file can only contain options; move the section to the job file",
        Short(.section)
    )]
    SectionInInclude {
        /// Its name.
        section: String,
    },
    /// No such option.
    #[error("{}: no such option{}", Short(.option), did_you_mean(.near))]
    NoSuchOption {
        /// What was written.
        option: String,
        /// Options of similar names, the most similar first.
        near: Vec<&'static str>,
    },
    /// An option of another engine than the section's.
    #[error(
        "{option}: this option is only for ioengine={}, but the engine here is {engine}; put it below its ioengine",
        .engines.join(" or ")
    )]
    OtherEngine {
        /// The option.
        option: String,
        /// Engines that have it.
        engines: &'static [&'static str],
        /// The section's engine.
        engine: String,
    },
    /// A value that the option cannot have.
    #[error("{option}={}: {problem}; {expected}", Short(.value))]
    Value {
        /// The option.
        option: String,
        /// The value, as written.
        value: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// Options that contradict each other.
    #[error("{option}: {problem}; {remedy}")]
    Contradiction {
        /// The option that was given last.
        option: String,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// An included file cannot be read.
    #[error("include {}: {problem}; a path is relative to the file that includes it", Short(.path))]
    Include {
        /// The path, as written.
        path: String,
        /// What the system says.
        problem: String,
    },
    /// More than there may be of something.
    #[error("{what}; at most {limit} are allowed")]
    TooMany {
        /// What there is too much of.
        what: String,
        /// How many there may be.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("the line is not UTF-8; write it again")]
    NotUtf8,
    /// No section but `[global]`.
    #[error("there is no job: add a section, such as [job1]; on the command line, add --name=job1")]
    NoJobs,
}

fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => "; `iosched job options` lists all".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
