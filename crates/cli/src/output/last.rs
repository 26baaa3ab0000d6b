//! Records that nobody named a file for: `last.jsonl` where the user's programs keep their state.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::fail::usage;

/// The page of them, in the current directory.
pub(crate) const LAST_PAGE: &str = "last.html";
pub(super) const LAST: &str = "last.jsonl";

/// Where it is: IOSCHED_STATE_DIR, else `iosched` in $XDG_STATE_HOME or ~/.local/state.
///
/// # Errors
/// Nobody says where.
pub(super) fn directory() -> Result<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = variable("IOSCHED_STATE_DIR") {
        return Ok(path);
    }
    // A path that is not absolute is to be ignored there.
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")));
    state
        .map(|path| path.join("iosched"))
        .ok_or_else(|| anyhow!("cannot find a directory for records: set IOSCHED_STATE_DIR, XDG_STATE_HOME or HOME"))
}

/// The records of the last comparison.
///
/// # Errors
/// There are none.
pub(crate) fn last_records() -> Result<PathBuf> {
    let path = directory()?.join(LAST);
    if path.exists() {
        return Ok(path);
    }
    Err(usage(format_args!("{}: there is no comparison yet; run iosched compare first", path.display())))
}
