//! Files that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use pyo3::prelude::*;

use crate::error::{of_path, wrong};

/// Calls `write` with a temporary file next to `path`, and renames
/// the file when it is complete. Returns the result of `write`.
pub(crate) fn whole<T>(path: &Path, write: impl FnOnce(File) -> PyResult<T>) -> PyResult<T> {
    let name =
        path.file_name().ok_or_else(|| wrong("path", format_args!("{}: is not the name of a file", path.display())))?;
    let part = path.with_file_name(format!(".{}.part-{}", name.to_string_lossy(), std::process::id()));
    let failed = |error: io::Error| of_path(&error, path);
    // A killed process with the same number may have left
    // the file. A link is removed and never followed.
    let _ = fs::remove_file(&part);
    let written = File::create_new(&part).map_err(failed).and_then(write);
    let written = written.and_then(|found| fs::rename(&part, path).map(|()| found).map_err(failed));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Writes `bytes` to `path` completely or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> PyResult<()> {
    whole(path, |mut file| file.write_all(bytes).map_err(|error| of_path(&error, path)))
}
