//! Output to standard output and to named files.
//!
//! [`Outputs`] checks every output file of a command before anything runs. The result is an
//! [`Output`], which is written as a whole, or [`Records`], which get a line when a run finishes.

mod complete_file;
mod kind;
mod last;
mod messages;
mod place;
mod plan;
mod records;

use std::io::{self, Write};

use anyhow::{Result, anyhow};

use crate::error::Unread;
pub use complete_file::Room;
pub use kind::{Kind, MARK};
pub use last::{LAST_PAGE, last_records};
pub use messages::{announce, exit, finish, messages, say, say_line};
pub use plan::{Output, Outputs, Replacing, WriteArgs};
pub use records::Records;

/// Converts an error of writing to standard output.
fn of_standard_output(written: io::Result<()>) -> Result<()> {
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Unread.into(),
        _ => anyhow!("standard output: cannot be written: {error}"),
    })
}

/// Writes `text` to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    of_standard_output(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes one JSON document to standard output.
pub fn json(value: &impl serde::Serialize) -> Result<()> {
    print(&(serde_json::to_string_pretty(value)? + "\n"))
}
