//! Directories of our own in those that a person names: files of a workload are made there and nowhere else, and go
//! with it. What a kill leaves is found by the state directory and removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::state::{Entry, Locked, StateDirectory, StateError, parse};

/// The kind of entries in the state directory.
const DIRECTORIES: &str = "directories";
/// The file that says that a directory is ours.
const MARKER: &str = ".made-by-iosched";

/// Tells the directories of one process apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// What is on the disk before a directory is made.
#[derive(Serialize, Deserialize)]
struct Made {
    pid: u32,
    path: PathBuf,
}

/// A directory of our own, as long as this lives.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    /// `None` once it is removed.
    entry: Option<Entry>,
}

/// Why there is no directory, or it cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It cannot be kept in mind.
    #[error(transparent)]
    State(#[from] StateError),
}

impl OwnDirectory {
    /// Makes one inside of `parent`; its name begins with `iosched-`.
    ///
    /// # Errors
    /// `parent` is no directory, or nothing can be made in it; or it cannot be kept in mind in `state`.
    pub fn create(parent: &Path, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let parent = fs::canonicalize(parent).map_err(|error| DirectoryError::Io { path: parent.to_owned(), error })?;
        loop {
            let name = format!("iosched-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = parent.join(&name);
            // A process that had our number may have left one.
            let Locked::ByUs(mut entry) = state.lock(DIRECTORIES, &name)? else { continue };
            if !entry.text()?.is_empty() {
                continue;
            }
            entry.write(&Made { pid: std::process::id(), path: path.clone() })?;
            match fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) => {
                    entry.remove()?;
                    match error.kind() {
                        io::ErrorKind::AlreadyExists => continue,
                        _ => return Err(DirectoryError::Io { path, error }),
                    }
                }
            }
            let made = Self { path, entry: Some(entry) };
            let marker = made.path.join(MARKER);
            File::create(&marker).map_err(|error| DirectoryError::Io { path: marker, error })?;
            return Ok(made);
        }
    }

    /// Where it is, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// Something cannot be removed; `iosched restore` tries again.
    pub fn remove(mut self) -> Result<(), DirectoryError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), DirectoryError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        remove_all(&self.path)?;
        Ok(entry.remove()?)
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // What stays is in mind, and `iosched restore` tells of it.
        let _ = self.clear();
    }
}

/// Removes a directory; the marker goes last, so that what is left is known for ours.
fn remove_all(path: &Path) -> Result<(), DirectoryError> {
    let failed = |path: PathBuf| move |error| DirectoryError::Io { path, error };
    for entry in fs::read_dir(path).map_err(failed(path.to_owned()))? {
        let entry = entry.map_err(failed(path.to_owned()))?;
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let inner = entry.path();
        if entry.file_name() != MARKER {
            let removed = if is_directory { fs::remove_dir_all(&inner) } else { fs::remove_file(&inner) };
            removed.map_err(failed(inner))?;
        }
    }
    fs::remove_dir_all(path).map_err(failed(path.to_owned()))
}

/// What became of a directory that was left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleared {
    /// It was removed, or would be.
    Removed {
        /// Where it was.
        path: PathBuf,
    },
    /// It was gone.
    Gone,
    /// Somebody works in it.
    InUse {
        /// Who; 0 if that is not known.
        pid: u32,
    },
    /// It was left alone: it has another owner by now.
    NotOurs {
        /// Where it is.
        path: PathBuf,
    },
}

/// The directories that were made and, it seems, not removed; those that somebody works in are among them.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(DIRECTORIES)
}

/// Removes the directory `name` of [`left_over`]; with `dry_run` it only looks.
///
/// # Errors
/// Something in it cannot be removed.
pub fn clear(state: &StateDirectory, name: &str, dry_run: bool) -> Result<Cleared, DirectoryError> {
    let mut entry = match state.lock(DIRECTORIES, name)? {
        Locked::ByUs(entry) => entry,
        Locked::ByAnother(text) => return Ok(Cleared::InUse { pid: parse::<Made>(&text).map_or(0, |made| made.pid) }),
    };
    let path = parse::<Made>(&entry.text()?).map(|made| made.path);
    let Some(path) = path.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())) else {
        if !dry_run {
            entry.remove()?;
        }
        return Ok(Cleared::Gone);
    };
    // One without a marker was just being made, and is empty.
    let is_ours = path.join(MARKER).is_file() || fs::read_dir(&path).is_ok_and(|mut files| files.next().is_none());
    if !is_ours {
        return Ok(Cleared::NotOurs { path });
    }
    if !dry_run {
        remove_all(&path)?;
        entry.remove()?;
    }
    Ok(Cleared::Removed { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (tempfile::TempDir, StateDirectory) {
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(&here.path().join("state"));
        (here, state)
    }

    /// A directory with files in it, as a kill leaves it.
    fn left(parent: &Path, state: &StateDirectory) -> (String, PathBuf) {
        let mut made = OwnDirectory::create(parent, state).unwrap();
        fs::create_dir(made.path().join("inner")).unwrap();
        fs::write(made.path().join("inner/file"), "x").unwrap();
        made.entry = None;
        let path = made.path().to_owned();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), path)
    }

    #[test]
    fn it_goes_with_all_that_is_in_it() {
        let (here, state) = places();
        let made = OwnDirectory::create(here.path(), &state).unwrap();
        let other = OwnDirectory::create(here.path(), &state).unwrap();
        fs::write(made.path().join("file"), "x").unwrap();
        let (path, other_path) = (made.path().to_owned(), other.path().to_owned());
        made.remove().unwrap();
        assert!(!path.exists() && other_path.exists());
        drop(other);
        assert!(!other_path.exists());
        assert!(left_over(&state).is_empty());
    }

    #[test]
    fn what_a_kill_leaves_is_removed() {
        let (here, state) = places();
        let (name, path) = left(here.path(), &state);
        assert_eq!(left_over(&state), [name.as_str()]);
        assert_eq!(clear(&state, &name, true).unwrap(), Cleared::Removed { path: path.clone() });
        assert!(path.exists());
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::Removed { path: path.clone() });
        assert!(!path.exists());
        assert!(left_over(&state).is_empty());
    }

    #[test]
    fn what_is_used_or_not_ours_is_left_alone() {
        let (here, state) = places();
        let made = OwnDirectory::create(here.path(), &state).unwrap();
        let name = made.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::InUse { pid: std::process::id() });
        drop(made);
        let (name, path) = left(here.path(), &state);
        fs::remove_file(path.join(MARKER)).unwrap();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::NotOurs { path: path.clone() });
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(here.path(), &path).unwrap();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::Gone, "a link in its place is not followed");
        assert!(here.path().exists() && left_over(&state).is_empty());
    }

    #[test]
    fn a_parent_that_takes_none_is_named() {
        let (here, state) = places();
        let error = OwnDirectory::create(&here.path().join("none"), &state).unwrap_err().to_string();
        assert!(error.contains("/none: No such file"), "{error}");
        assert!(left_over(&state).is_empty());
    }
}
