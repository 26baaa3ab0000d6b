//! What can be wrong with a file.

/// Something that is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}; {remedy}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct DiskSimError {
    /// The file, as the caller called it.
    pub file: String,
    /// The line, from 1; `None` if it is about something missing.
    pub line: Option<u32>,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
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
