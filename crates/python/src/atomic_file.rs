//! Files that are written completely or not at all.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use iosched_system::open_directory::OpenDirectory;
use pyo3::prelude::*;

use crate::error::{of_path, wrong};

/// Calls `write` with a temporary file in the directory of `path`, and renames the file when it is
/// complete. Holds the directory open, so that the file goes to this directory even if its path is
/// replaced. Returns the result of `write`.
pub(crate) fn write_atomically<T>(path: &Path, write: impl FnOnce(File) -> PyResult<T>) -> PyResult<T> {
    let name = path
        .file_name()
        .ok_or_else(|| wrong("path", format_args!("{}: this is not the name of a file", path.display())))?;
    let failed = |error| of_path(&error, path);
    let directory = OpenDirectory::reach(path.parent().unwrap_or(Path::new(""))).map_err(failed)?;
    directory.put(name, failed, |file| write(file.try_clone().map_err(failed)?))
}

/// Writes `bytes` to `path` completely or not at all.
pub(crate) fn write_bytes_atomically(path: &Path, bytes: &[u8]) -> PyResult<()> {
    write_atomically(path, |mut file| file.write_all(bytes).map_err(|error| of_path(&error, path)))
}
