//! Records without a file name: `last.jsonl` in the user's state directory.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::error::usage;

/// Default page of these records, in the current directory.
pub const LAST_PAGE: &str = "last.html";
pub(super) const LAST: &str = "last.jsonl";

/// Returns the state directory: IOSCHED_STATE_DIR, or
/// `iosched` in $XDG_STATE_HOME or ~/.local/state.
///
/// # Errors
/// None of the variables is set.
pub(super) fn directory() -> Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = variable("IOSCHED_STATE_DIR") {
        return Ok(path);
    }
    // The XDG specification says that a relative path must be ignored.
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")));
    state
        .map(|path| path.join("iosched"))
        .ok_or_else(|| anyhow!("cannot find a directory for records: set IOSCHED_STATE_DIR, XDG_STATE_HOME or HOME"))
}

/// Returns the path of the records of the last comparison.
///
/// # Errors
/// There are no such records.
pub fn last_records() -> Result<PathBuf> {
    let path = directory()?.join(LAST);
    if path.exists() {
        return Ok(path);
    }
    Err(usage(format_args!("{}: there is no comparison yet; run iosched compare first", path.display())))
}
