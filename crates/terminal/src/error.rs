//! Errors of the command line, of files and of standard output, with their exit codes.

use std::fmt;
use std::io;

/// Exit code after Ctrl-C, as shells report a program that SIGINT ended.
pub const INTERRUPTED: u8 = 130;
/// Exit code of a command that failed.
pub const FAILED: u8 = 1;

/// An error of usage: the command would work with a different command line or file.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The program that reads standard output has closed it.
#[derive(Debug, thiserror::Error)]
#[error("the program that reads standard output has ended")]
pub struct Unread;

/// Returns an error of usage.
pub fn usage(problem: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(problem.to_string()))
}

/// Returns whether the user probably gave a wrong name: there is no such file, or its content has
/// the wrong type.
pub(crate) fn is_wrong_file(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | IsADirectory | NotADirectory | InvalidData | InvalidInput)
}

/// Returns the error of a file. It is an error of usage if another file name could help.
pub fn of_file(problem: String, error: &io::Error) -> anyhow::Error {
    if is_wrong_file(error) { usage(problem) } else { anyhow::Error::msg(problem) }
}
