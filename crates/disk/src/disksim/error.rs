//! Errors of DiskSim's files.

/// An error in a file, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}; {remedy}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct DiskSimError {
    /// Name of the file, as the caller gave it.
    pub file: String,
    /// Line, from 1; `None` if something is missing.
    pub line: Option<u32>,
    /// The problem.
    pub problem: String,
    /// A remedy.
    pub remedy: String,
}

impl DiskSimError {
    pub(crate) fn at(file: &str, line: u32, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), problem: problem.into(), remedy: remedy.into() }
    }

    pub(crate) fn of(file: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, problem: problem.into(), remedy: remedy.into() }
    }
}
