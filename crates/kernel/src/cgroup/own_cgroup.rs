//! A cgroup of this process. The cgroups of a workload are siblings of this cgroup, and their names
//! begin with its name. Removing the cgroup also removes these siblings. If this process is killed
//! first, `iosched restore` can remove the cgroups later, because the state directory lists the
//! cgroup.
//!
//! The cgroup is a child of the root, because only the root may both contain processes and enable
//! controllers for its children.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::file::{CgroupFile, files};
use super::tree::{CgroupError, SUBTREE_CONTROL, Tree, has_io};
use crate::attribute::write_once;
use crate::directory::DirectoryError;
use crate::roots::{names, read};
use crate::state::{Entry, Locked, StateDirectory, parse};

/// Kind of the entries in the state directory.
const CGROUPS: &str = "cgroups";
/// Longest time to wait for a cgroup to notice that its last process has ended.
const EMPTY_MAX: Duration = Duration::from_secs(2);
/// Longest time to wait until the kernel has freed removed cgroups. Memory or a process may keep a
/// removed cgroup alive.
const DYING_MAX: Duration = Duration::from_secs(1);

/// Counter that makes the names of this process's cgroups distinct.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Record that is written to the state directory before a cgroup is created.
#[derive(Serialize, Deserialize)]
struct CgroupRecord {
    pid: u32,
    path: PathBuf,
    /// Path of the file in which the io controller was enabled for the cgroup.
    enabled_in: Option<PathBuf>,
}

/// A cgroup of this process, removed on drop. The io controller is enabled for the cgroup and its
/// siblings.
#[derive(Debug)]
pub struct OwnCgroup {
    path: PathBuf,
    root: PathBuf,
    enabled_in: Option<PathBuf>,
    /// Entry in the state directory. `None` after removal.
    entry: Option<Entry>,
}

impl OwnCgroup {
    /// Creates a cgroup in the root of `tree`. Its name begins with `iosched-`.
    ///
    /// # Errors
    /// This process lacks permission, or the cgroup cannot be recorded in `state`. On error no
    /// cgroup remains.
    pub fn create(tree: &Tree, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let root = tree.root().to_owned();
        let control = root.join(SUBTREE_CONTROL);
        let enabled_in = (!has_io(&root, SUBTREE_CONTROL)).then(|| control.clone());
        loop {
            let name = format!("iosched-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = root.join(&name);
            // An earlier process with the same process id may have left an entry.
            let Locked::ByUs(mut entry) = state.lock(CGROUPS, &name)? else { continue };
            if !entry.text()?.is_empty() {
                continue;
            }
            let enabled_in = enabled_in.clone();
            entry.write(&CgroupRecord {
                pid: std::process::id(),
                path: path.clone(),
                enabled_in: enabled_in.clone(),
            })?;
            // After this line, a failure drops the value, which undoes all changes.
            let cgroup = Self { path, root, enabled_in, entry: Some(entry) };
            if cgroup.enabled_in.is_some() {
                enable(&cgroup.root)?;
            }
            fs::create_dir(&cgroup.path).map_err(|error| failed(&cgroup.path, error))?;
            return Ok(cgroup);
        }
    }

    /// Returns the path of the cgroup.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the cgroup, and therefore its siblings, have the `wanted` files.
    ///
    /// # Errors
    /// A file does not exist. The message names the remedy.
    pub fn has<'f>(&self, wanted: impl Iterator<Item = &'f str>) -> Result<(), String> {
        let known = |name: &str| files().iter().map(|file| file.name).find(|known| *known == name);
        let absent = wanted.filter_map(known).find(|file| !self.path.join(file).is_file());
        let error = |file| CgroupError::Absent { group: self.path.display().to_string(), file };
        absent.map_or(Ok(()), |file| Err(error(file).to_string()))
    }

    /// Returns the root cgroup, in which this cgroup was created.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the cgroup, its siblings and all cgroups in them.
    ///
    /// # Errors
    /// A process is still in one of the cgroups. `iosched restore` tries again.
    pub fn remove(mut self) -> Result<(), DirectoryError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), DirectoryError> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        undo(&self.path, self.enabled_in.as_deref())?;
        Ok(entry.remove()?)
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // A failure leaves the entry in the state directory, and `iosched restore` reports it.
        let _ = self.clear();
    }
}

fn failed(path: &Path, error: io::Error) -> DirectoryError {
    DirectoryError::Io { path: path.to_owned(), error }
}

/// Enables the io controller for the children of a cgroup.
pub(crate) fn enable(directory: &Path) -> Result<(), DirectoryError> {
    let control = directory.join(SUBTREE_CONTROL);
    write_once(&control, "+io").map_err(|error| failed(&control, error))
}

/// Returns the path of the sibling `name` of the cgroup at `own_path`. The directory's name
/// consists of that cgroup's name, a dot and `name`.
pub(crate) fn beside(own_path: &Path, name: &str) -> PathBuf {
    let mut path = own_path.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    path.into()
}

/// Removes a cgroup and its siblings with all cgroups in them. Disables the io controller that was
/// enabled for it, unless another cgroup now uses the controller.
fn undo(path: &Path, enabled_in: Option<&Path>) -> Result<(), DirectoryError> {
    if let (Some(root), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) {
        let first = format!("{name}.");
        for there in names(root).iter().filter(|there| there.starts_with(&first)) {
            remove(&root.join(there))?;
        }
    }
    remove(path)?;
    if let Some((control, root)) = enabled_in.and_then(|control| Some((control, control.parent()?)))
        && !is_needed(root)
    {
        // The kernel refuses if a child enables the controller for its own children.
        let _ = write_once(control, "-io");
    }
    Ok(())
}

/// Returns whether any cgroup in `root` sets a value of the io controller.
fn is_needed(root: &Path) -> bool {
    let sets = |group: &String| {
        let text = |file: &CgroupFile| read(&root.join(group).join(file.name)).unwrap_or_default();
        files().iter().any(|file| !file.is_of_root && file.sets_anything(&text(file)))
    };
    names(root).iter().any(sets)
}

/// Removes a cgroup and the cgroups in it. The kernel removes their files with them.
///
/// The kernel frees a cgroup some time after its removal; this function waits until the cgroup is
/// freed. Linux 6.12.117 crashes if bfq is chosen while a removed cgroup is still dying and
/// `low_latency` is written before the cgroup is freed.
pub(crate) fn remove(path: &Path) -> Result<(), DirectoryError> {
    let stat = path.parent().map(|parent| parent.join("cgroup.stat")).unwrap_or_default();
    let before = dying(&stat);
    remove_all(path)?;
    let began = Instant::now();
    while dying(&stat) > before && began.elapsed() < DYING_MAX {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Returns the number of removed but not yet freed descendants from a `cgroup.stat`, or 0 if it is
/// not reported.
fn dying(stat: &Path) -> u64 {
    let stat = read(stat).unwrap_or_default();
    let count = stat.lines().find_map(|line| line.strip_prefix("nr_dying_descendants "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn remove_all(path: &Path) -> Result<(), DirectoryError> {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_all(&entry.path())?;
        }
    }
    let began = Instant::now();
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && began.elapsed() < EMPTY_MAX => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path, error)),
            _ => return Ok(()),
        }
    }
}

/// Outcome of clearing a cgroup that was left behind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftCgroup {
    /// The cgroup was removed. In a dry run, it would be removed.
    Removed {
        /// Path of the cgroup.
        path: PathBuf,
    },
    /// The cgroup no longer existed.
    Gone,
    /// Another process uses the cgroup.
    InUse {
        /// Id of the process that uses the cgroup, 0 if not known.
        pid: u32,
    },
}

/// Returns the names of cgroups whose entries are still in the state directory. Cgroups in use are
/// included.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(CGROUPS)
}

/// Removes the cgroup `name` of [`left_over`]. With `dry_run`, the function changes nothing.
///
/// # Errors
/// A process is in the cgroup.
pub fn clear(state: &StateDirectory, name: &str, dry_run: bool) -> Result<LeftCgroup, DirectoryError> {
    let mut entry = match state.lock(CGROUPS, name)? {
        Locked::ByUs(entry) => entry,
        Locked::ByAnother(text) => {
            return Ok(LeftCgroup::InUse { pid: parse::<CgroupRecord>(&text).map_or(0, |record| record.pid) });
        }
    };
    let record = parse::<CgroupRecord>(&entry.text()?);
    let there = record.as_ref().map(|record| record.path.clone()).filter(|path| path.is_dir());
    if !dry_run {
        if let Some(record) = record {
            undo(&record.path, record.enabled_in.as_deref())?;
        }
        entry.remove()?;
    }
    Ok(there.map_or(LeftCgroup::Gone, |path| LeftCgroup::Removed { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_removes_a_cgroup_with_its_run_cgroups_only() {
        let here = tempfile::tempdir().unwrap();
        let (root, own_path) = (here.path(), here.path().join("iosched-1-0"));
        for path in [own_path.clone(), beside(&own_path, "run-3.db").join("inner"), root.join("iosched-1-01.run-3.db")]
        {
            fs::create_dir_all(path).unwrap();
        }
        undo(&own_path, None).unwrap();
        assert_eq!(names(root), ["iosched-1-01.run-3.db"]);
    }
}
