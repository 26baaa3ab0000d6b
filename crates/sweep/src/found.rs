//! Search for local workloads by path or pattern.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

/// A workload that the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name in results, as in the plan.
    pub name: String,
    /// Path or URL of the workload. For a command, the command line.
    pub place: String,
    /// Identity of the content. Workloads with the same identity are the same.
    pub identity: String,
    /// Size, bytes. 0 for a command.
    pub bytes: u64,
    /// Whether the workload is a command line.
    pub command: bool,
    /// Reason why the workload cannot be read. `None` if it can be read.
    pub problem: Option<String>,
}

impl Found {
    /// Creates the workload of an application's command line.
    pub(crate) fn command(line: &str) -> Self {
        let (name, place) = (line.to_owned(), line.to_owned());
        Self { name, place, identity: "command".to_owned(), bytes: 0, command: true, problem: None }
    }

    /// Creates the workload at a URL, with the identity and the size of its content.
    #[must_use]
    pub fn at_url(url: String, identity: String, bytes: u64) -> Self {
        Self { name: url.clone(), place: url, identity, bytes, command: false, problem: None }
    }

    /// Creates the workload in `files`, which are one file or one file for each CPU.
    fn files(name: String, path: &Path, files: &[PathBuf]) -> Self {
        let place = path.display().to_string();
        let (bytes, identity, problem) = match content(files) {
            Ok((bytes, hash)) => (bytes, format!("{hash:032x}"), None),
            Err(error) => (0, String::new(), Some(format!("{place}: {error}"))),
        };
        Self { name, place, identity, bytes, command: false, problem }
    }
}

/// Returns size and hash of the content of files.
fn content(files: &[PathBuf]) -> io::Result<(u64, u128)> {
    let mut hasher = XxHash3_128::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    for path in files {
        let mut file = File::open(path)?;
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                read => {
                    hasher.write(&buffer[..read]);
                    bytes += read as u64;
                }
            }
        }
    }
    Ok((bytes, hasher.finish_128()))
}

/// Returns the files that match `pattern`, relative to `directory`, sorted by name. Files that
/// cannot be read have a [`Found::problem`].
///
/// # Errors
/// No file matches, or the pattern is not valid.
pub fn find(pattern: &str, directory: &Path) -> Result<Vec<Found>, String> {
    let full_pattern = directory.join(pattern);
    // The name of a file can look like a pattern. A name can also stand for several files, one for
    // each CPU.
    if !full_pattern.is_dir()
        && let Ok(files) = iosched_trace::files(&full_pattern)
    {
        return Ok(vec![Found::files(pattern.to_owned(), &full_pattern, &files)]);
    }
    let full_pattern = full_pattern.display().to_string();
    let matched =
        glob::glob(&full_pattern).map_err(|error| format!("{pattern}: this is not a valid pattern: {error}"))?;
    let mut all = Vec::new();
    let mut known = BTreeSet::new();
    for found in matched {
        let path = match found {
            Ok(path) => path,
            Err(error) => {
                let name = error.path().display().to_string();
                all.push(Found { problem: Some(error.to_string()), ..Found::files(name, error.path(), &[]) });
                continue;
            }
        };
        let files = iosched_trace::files(&path).unwrap_or_else(|_| vec![path.clone()]);
        if !path.is_dir() && known.insert(files.clone()) {
            let name = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
            all.push(Found::files(name, &path, &files));
        }
    }
    if all.is_empty() {
        return Err(format!("{full_pattern}: no such file"));
    }
    Ok(all)
}
