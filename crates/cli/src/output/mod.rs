//! Where output goes: standard output, and whatever else was named for it.
//!
//! [`Outputs`] looks at everything that a command is to write before anything runs; what it allows is an [`Output`],
//! written as a whole, or [`Records`], written line by line as runs finish.

mod args;
mod kind;
mod last;
mod place;
mod plan;
mod records;
pub(crate) mod said;
#[cfg(test)]
mod tests;
mod whole;

use std::io::{self, Write};

use anyhow::{Result, anyhow};

use crate::fail::Unread;
pub(crate) use args::WriteArgs;
pub(crate) use kind::{Kind, MARK};
pub(crate) use last::{LAST_PAGE, last_records};
pub(crate) use plan::{Output, Outputs, Replacing, all_of};
pub(crate) use records::Records;
pub(crate) use said::{announce, exit, finish, messages, say, say_line};
pub(crate) use whole::Room;

/// As people and command lines call it.
const STANDARD_OUTPUT: &str = "-";

/// What came of writing to standard output.
fn of_standard_output(written: io::Result<()>) -> Result<()> {
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Unread.into(),
        _ => anyhow!("standard output: cannot be written: {error}"),
    })
}

/// Writes `text` to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    of_standard_output(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes one JSON document to standard output.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}
