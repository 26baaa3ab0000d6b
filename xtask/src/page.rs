//! Writes or checks files of the documentation, completely or in part.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

/// Mark at the end of the part of a page that a command writes.
const END: &str = "<!-- end -->";

/// Returns the path of a file. `name` is relative to the root of the repository.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Returns the page `name` with `part` in the place that `cargo xtask COMMAND` writes. The other
/// text of the page is written by hand.
pub(crate) fn with_part(name: &str, command: &str, part: &str) -> anyhow::Result<String> {
    let begin = format!("<!-- written by cargo xtask {command} -->");
    let page = std::fs::read_to_string(path(name)).with_context(|| format!("{name} cannot be read"))?;
    let (before, rest) = page.split_once(&begin).with_context(|| format!("{name} has no line {begin}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{name} has no line {END} behind {begin}"))?;
    Ok(format!("{before}{begin}\n\n{part}\n{END}{after}"))
}

/// Writes `files`, which are pairs of a name and a text. With `check`, only prints the files that
/// `cargo xtask COMMAND` would change.
pub(crate) fn write_or_check(files: &[(String, String)], check: bool, command: &str) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for (name, text) in files {
        if !check {
            if let Some(folder) = path(name).parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path(name), text).with_context(|| format!("{name} cannot be written"))?;
            println!("{name} written");
        } else if std::fs::read_to_string(path(name)).ok().as_ref() != Some(text) {
            eprintln!("{name} is not up to date: run `cargo xtask {command}`");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}
