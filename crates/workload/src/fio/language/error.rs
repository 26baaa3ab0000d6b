//! Errors of job files, each with its place.

use std::fmt;

use super::place::JobLine;
use super::remark::Refusal;

/// Largest number of errors that a message lists. The message gives only the number of further
/// errors.
pub(super) const PROBLEMS_SHOWN: usize = 20;

/// A reason why a job file cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file is not a valid job file.
    #[error("{}{}", lines(.problems), lines_behind(.refusals))]
    Invalid {
        /// Errors in the order of the file; at least one.
        problems: Vec<JobProblem>,
        /// Unsupported options in the part of the file that could be parsed.
        refusals: Vec<Refusal>,
    },
    /// The file is valid, but has unsupported options. There is at least one refusal. Refusals are
    /// in the order of the file.
    #[error("{}", lines(.0))]
    Unsupported(Vec<Refusal>),
}

/// Text of a job file in a message. Long text is cut.
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

/// Formats each item on a separate line.
fn lines<T: fmt::Display>(all: &[T]) -> String {
    let mut text = String::new();
    for (index, problem) in all.iter().take(PROBLEMS_SHOWN).enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&problem.to_string());
    }
    if all.len() > PROBLEMS_SHOWN {
        text.push_str(&format!("\nand {} more", all.len() - PROBLEMS_SHOWN));
    }
    text
}

/// Formats the refusals that follow the problems.
fn lines_behind(refusals: &[Refusal]) -> String {
    if refusals.is_empty() { String::new() } else { format!("\n{}", lines(refusals)) }
}

/// An error in a job file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {kind}")]
pub struct JobProblem {
    /// Place of the error.
    pub place: JobLine,
    /// Kind of the error.
    pub kind: ProblemKind,
}

impl JobProblem {
    pub(super) const fn new(place: JobLine, kind: ProblemKind) -> Self {
        Self { place, kind }
    }
}

/// Kind of an error in a line of a job file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// An option is before the first section.
    #[error("{}: this option is before the first section; move the option below \
        [global] or the name of a job", Short(.option))]
    OutsideSection {
        /// Name of the option.
        option: String,
    },
    /// A job file of a command line cannot be read.
    #[error("{path}: {problem}; fio treats each argument that does not begin with \"--\" as the name of a job file")]
    JobFile {
        /// Path of the file.
        path: String,
        /// The error of the system.
        problem: String,
    },
    /// A job file of a command line has no section with the name in `--section`.
    #[error("--section={}: {path} has no such section; it has {}", Short(.section), .sections.join(", "))]
    NoSuchSection {
        /// The name.
        section: String,
        /// Path of the file.
        path: String,
        /// Names of its sections.
        sections: Vec<String>,
    },
    /// With this option of the command line, fio does not run jobs.
    #[error("--{option}: with this option, fio does not run jobs; leave out the option")]
    NotARun {
        /// Name of the option.
        option: String,
    },
    /// The header of a section is not valid.
    #[error("{}: the line does not begin a section; write [name]", Short(.header))]
    Section {
        /// The line.
        header: String,
    },
    /// An included file has a section.
    #[error(
        "[{}]: an included file can only contain options; move the section to the job file",
        Short(.section)
    )]
    SectionInInclude {
        /// Name of the section.
        section: String,
    },
    /// The option does not exist.
    #[error("{}: no such option{}", Short(.option), did_you_mean(.near))]
    NoSuchOption {
        /// The option, as written.
        option: String,
        /// Options of similar names, the most similar first.
        near: Vec<&'static str>,
    },
    /// The option belongs to an engine that the section does not use.
    #[error(
        "{option}: this option is only for ioengine={}, but the job has ioengine={engine}; move the option to a job \
         with the right engine",
        .engines.join(" or ")
    )]
    OtherEngine {
        /// Name of the option.
        option: String,
        /// Engines with this option.
        engines: &'static [&'static str],
        /// Engine of the section.
        engine: String,
    },
    /// The value is not valid for the option.
    #[error("{option}={}: {problem}; {expected}", Short(.value))]
    Value {
        /// Name of the option.
        option: String,
        /// The value, as written.
        value: String,
        /// The problem of the value.
        problem: String,
        /// Description of valid values.
        expected: String,
    },
    /// Options contradict each other.
    #[error("{option}: {problem}; {remedy}")]
    Contradiction {
        /// The option that was given last.
        option: String,
        /// The problem.
        problem: String,
        /// A remedy.
        remedy: String,
    },
    /// An included file cannot be read.
    #[error("include {}: {problem}; a path is relative to the file that includes it", Short(.path))]
    Include {
        /// The path, as written.
        path: String,
        /// The error of the system.
        problem: String,
    },
    /// A limit is exceeded.
    #[error("{what}; at most {limit} are allowed")]
    TooMany {
        /// Description of the exceeded limit.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 text; correct the line")]
    NotUtf8,
    /// There is no section except `[global]`.
    #[error("the file has no job; add a section, such as [job1]; on the command line, add --name=job1")]
    NoJobs,
}

fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => "; `iosched job options` lists all options".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
