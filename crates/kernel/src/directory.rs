//! Directories that iosched creates inside a directory that a person names. A workload's files are
//! created only in such a directory and are removed with it. The state directory lists each such
//! directory, so that it can be removed even after iosched was killed.
//!
//! Root creates a directory only where no other user may rename or remove it. iosched holds the
//! directory by its descriptor and only writes and removes files in it. A change of the path
//! therefore cannot redirect iosched to another directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::roots::Roots;
use crate::state::{Entry, Locked, StateDirectory, StateError, parse};
use iosched_system::open_directory::{FileId, OpenDirectory};

/// Kind of the entries in the state directory.
const DIRECTORIES: &str = "directories";
/// File that marks a directory as created by iosched.
const MARKER: &str = ".made-by-iosched";

/// Counter that makes the names of this process's directories distinct.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Record in the state directory. iosched writes it before it creates a directory, and again
/// afterwards.
#[derive(Serialize, Deserialize)]
struct DirectoryRecord {
    pid: u32,
    path: PathBuf,
    /// Device and inode of the directory, once it exists.
    #[serde(default)]
    id: Option<FileId>,
    /// Boot of the kernel during which the directory was created.
    #[serde(default)]
    boot_id: String,
}

impl DirectoryRecord {
    /// Returns whether `found`, a directory with the recorded name, is the directory that iosched
    /// created.
    fn is(&self, found: &OpenDirectory) -> bool {
        let Some(id) = self.id else {
            // iosched was killed before it recorded the id, so the directory must still be empty.
            return found.names().is_ok_and(|names| names.is_empty());
        };
        // Device numbers may change at each boot, so they count only within the same boot.
        let is_same_device = id.device == found.id().device || self.boot_id != Roots::default().boot_id();
        is_same_device && id.inode == found.id().inode && found.has_file(Path::new(MARKER), 0)
    }
}

/// Directory of this process, removed on drop.
#[derive(Debug)]
pub struct OwnDirectory {
    held: Arc<OpenDirectory>,
    /// Entry in the state directory. `None` after removal.
    entry: Option<Entry>,
}

/// Reason why a directory cannot be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the directory or file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// Root would work in a directory where another user may replace files.
    #[error(
        "{path}: {who} may rename files in this directory, but root needs a directory in which no other user may \
         rename files. Create such a directory with install -d -m 700 {path}/iosched-test, and give this directory \
         instead", path = path.display()
    )]
    Shared {
        /// Path of the directory.
        path: PathBuf,
        /// Description of the other user.
        who: String,
    },
    /// The directory cannot be recorded in the state directory.
    #[error(transparent)]
    State(#[from] StateError),
}

impl DirectoryError {
    fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }
}

/// Opens a directory that a person named. The result has an absolute path.
pub(crate) fn open(path: &Path) -> Result<Arc<OpenDirectory>, DirectoryError> {
    let opened = fs::canonicalize(path).and_then(|path| OpenDirectory::open(&path));
    opened.map_err(|error| DirectoryError::io(path, error))
}

impl OwnDirectory {
    /// Creates a directory inside `parent`. Its name begins with `iosched-`.
    ///
    /// # Errors
    /// - `parent` is not a directory, or nothing can be created in it.
    /// - This process is root, and another user may rename files in `parent`.
    /// - The new directory cannot be recorded in `state`.
    pub fn create(parent: &Path, state: &StateDirectory) -> Result<Self, DirectoryError> {
        Self::create_in(&open(parent)?, state)
    }

    /// Creates a directory as [`create`](Self::create) does, inside a directory that is already
    /// open.
    pub(crate) fn create_in(place: &Arc<OpenDirectory>, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let parent = place.path();
        if let Some(who) = place.others().map_err(|error| DirectoryError::io(parent, error))? {
            return Err(DirectoryError::Shared { path: parent.to_owned(), who });
        }
        loop {
            let name = format!("iosched-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = parent.join(&name);
            // An earlier process with the same process id may have left an entry.
            let Locked::ByUs(mut entry) = state.lock(DIRECTORIES, &name)? else { continue };
            if !entry.text()?.is_empty() {
                continue;
            }
            let mut about =
                DirectoryRecord { pid: std::process::id(), path, id: None, boot_id: Roots::default().boot_id() };
            entry.write(&about)?;
            let held = match place.make(Path::new(&name)) {
                Ok(held) => held,
                Err(error) => {
                    entry.remove()?;
                    match error.kind() {
                        io::ErrorKind::AlreadyExists => continue,
                        _ => return Err(DirectoryError::io(&about.path, error)),
                    }
                }
            };
            about.id = Some(held.id());
            entry.write(&about)?;
            let directory = Self { held, entry: Some(entry) };
            let marker = directory.held.make_file(Path::new(MARKER), OFlags::WRONLY | OFlags::EXCL);
            marker.map_err(|error| DirectoryError::io(&directory.path().join(MARKER), error))?;
            return Ok(directory);
        }
    }

    /// Returns the absolute path at which the directory was created.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.held.path()
    }

    /// Returns the open directory.
    pub(crate) const fn held(&self) -> &Arc<OpenDirectory> {
        &self.held
    }

    /// Removes the directory with all its contents.
    ///
    /// # Errors
    /// A file cannot be removed, or another file now has the directory's name. `iosched restore`
    /// tries again.
    pub fn remove(mut self) -> Result<(), DirectoryError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), DirectoryError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        remove_all(&self.held)?;
        Ok(entry.remove()?)
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // A failure leaves the entry in the state directory, and `iosched restore` reports it.
        let _ = self.clear();
    }
}

/// Removes a directory. The marker is removed last, so that an interrupted removal leaves a
/// directory that is still marked.
fn remove_all(held: &Arc<OpenDirectory>) -> Result<(), DirectoryError> {
    let removed = held.empty(Some(MARKER.as_ref())).and_then(|()| held.empty(None)).and_then(|()| held.remove());
    removed.map_err(|error| DirectoryError::io(held.path(), error))
}

/// Outcome of clearing a directory that was left behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleared {
    /// The directory was removed. In a dry run, it would be removed.
    Removed {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory no longer existed.
    Gone,
    /// Another process uses the directory.
    InUse {
        /// Id of the process that uses the directory, 0 if not known.
        pid: u32,
    },
    /// The directory was left unchanged, because it is no longer the one that iosched created.
    NotOurs {
        /// Path of the directory.
        path: PathBuf,
    },
}

/// Returns the names of directories whose entries are still in the state directory. Directories in
/// use are included.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(DIRECTORIES)
}

/// Removes the directory `name` of [`left_over`]. With `dry_run`, the function changes nothing.
///
/// # Errors
/// A file in the directory cannot be removed.
pub fn clear(state: &StateDirectory, name: &str, dry_run: bool) -> Result<Cleared, DirectoryError> {
    let mut entry = match state.lock(DIRECTORIES, name)? {
        Locked::ByUs(entry) => entry,
        Locked::ByAnother(text) => {
            return Ok(Cleared::InUse { pid: parse::<DirectoryRecord>(&text).map_or(0, |record| record.pid) });
        }
    };
    let Some((record, found)) =
        parse::<DirectoryRecord>(&entry.text()?).and_then(|record| found(&record.path).map(|held| (record, held)))
    else {
        if !dry_run {
            entry.remove()?;
        }
        return Ok(Cleared::Gone);
    };
    if !record.is(&found) {
        return Ok(Cleared::NotOurs { path: record.path });
    }
    if !dry_run {
        remove_all(&found)?;
        entry.remove()?;
    }
    Ok(Cleared::Removed { path: record.path })
}

/// Returns the directory at this path. A symbolic link does not count.
fn found(path: &Path) -> Option<Arc<OpenDirectory>> {
    OpenDirectory::open(path.parent()?).ok()?.directory(Path::new(path.file_name()?)).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn places() -> (tempfile::TempDir, StateDirectory) {
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(&here.path().join("state"));
        (here, state)
    }

    /// Creates a directory with files, and leaves it in the state of a killed process.
    fn left_by_killed_run(parent: &Path, state: &StateDirectory) -> (String, PathBuf) {
        let mut directory = OwnDirectory::create(parent, state).unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("inner/file"), "x").unwrap();
        directory.entry = None;
        let path = directory.path().to_owned();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), path)
    }

    #[test]
    fn own_directory_is_removed_with_its_contents() {
        let (here, state) = places();
        let directory = OwnDirectory::create(here.path(), &state).unwrap();
        let other = OwnDirectory::create(here.path(), &state).unwrap();
        fs::write(directory.path().join("file"), "x").unwrap();
        let (path, other_path) = (directory.path().to_owned(), other.path().to_owned());
        directory.remove().unwrap();
        assert!(!path.exists() && other_path.exists());
        drop(other);
        assert!(!other_path.exists());
        assert!(left_over(&state).is_empty());
    }

    #[test]
    fn directory_of_a_killed_run_is_removed() {
        let (here, state) = places();
        let (name, path) = left_by_killed_run(here.path(), &state);
        assert_eq!(left_over(&state), [name.as_str()]);
        assert_eq!(clear(&state, &name, true).unwrap(), Cleared::Removed { path: path.clone() });
        assert!(path.exists());
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::Removed { path: path.clone() });
        assert!(!path.exists());
        assert!(left_over(&state).is_empty());
    }

    #[test]
    fn used_and_foreign_directories_are_left_alone() {
        let (here, state) = places();
        let directory = OwnDirectory::create(here.path(), &state).unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::InUse { pid: std::process::id() });
        drop(directory);
        let (name, path) = left_by_killed_run(here.path(), &state);
        fs::remove_file(path.join(MARKER)).unwrap();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::NotOurs { path: path.clone() });
        fs::remove_dir_all(&path).unwrap();
        std::os::unix::fs::symlink(here.path(), &path).unwrap();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::Gone, "a link in its place is not followed");
        assert!(here.path().exists() && left_over(&state).is_empty());
    }

    /// Replaces one of our directories by a link to another user's files.
    fn exchanged(here: &Path, path: &Path) -> PathBuf {
        let victim = here.join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("file"), "precious").unwrap();
        fs::write(victim.join(MARKER), "").unwrap();
        fs::rename(path, here.join("moved")).unwrap();
        std::os::unix::fs::symlink(&victim, path).unwrap();
        victim
    }

    #[test]
    fn removal_does_not_follow_a_symlink() {
        let (here, state) = places();
        let directory = OwnDirectory::create(here.path(), &state).unwrap();
        fs::write(directory.path().join("inner"), "x").unwrap();
        let victim = exchanged(here.path(), directory.path());
        let error = directory.remove().unwrap_err().to_string();
        assert!(error.contains("replaced or moved"), "{error}");
        assert_eq!(fs::read(victim.join("file")).unwrap(), b"precious");
        assert_eq!(fs::read_dir(here.path().join("moved")).unwrap().count(), 0, "iosched removes its own files");
    }

    #[test]
    fn restore_leaves_a_replaced_directory_alone() {
        let (here, state) = places();
        let (name, path) = left_by_killed_run(here.path(), &state);
        let victim = exchanged(here.path(), &path);
        fs::remove_file(&path).unwrap();
        fs::rename(&victim, &path).unwrap();
        assert_eq!(clear(&state, &name, false).unwrap(), Cleared::NotOurs { path: path.clone() });
        assert_eq!(fs::read(path.join("file")).unwrap(), b"precious");
    }

    #[test]
    fn root_refuses_a_parent_where_others_may_rename() {
        let (here, state) = places();
        let is_root = rustix::process::geteuid().is_root();
        for (mode, is_shared) in [(0o755, false), (0o775, true), (0o777, true), (0o1777, false)] {
            fs::set_permissions(here.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = OwnDirectory::create(here.path(), &state).err();
            assert_eq!(matches!(refused, Some(DirectoryError::Shared { .. })), is_shared && is_root, "{mode:o}");
        }
        assert!(left_over(&state).is_empty());
    }

    #[test]
    fn error_names_a_missing_parent_directory() {
        let (here, state) = places();
        let error = OwnDirectory::create(&here.path().join("none"), &state).unwrap_err().to_string();
        assert!(error.contains("/none: No such file"), "{error}");
        assert!(left_over(&state).is_empty());
    }
}
