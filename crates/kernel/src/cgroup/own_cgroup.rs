//! A cgroup of our own, beside which those of a workload are made: it goes with all whose names begin with its own, and
//! what a kill leaves is found by the state directory and removed.
//!
//! It is in the root, which alone may have processes beside cgroups that controllers are enabled for.

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

/// The kind of entries in the state directory.
const CGROUPS: &str = "cgroups";
/// How long a cgroup may take to notice that its last process has ended.
const EMPTY_MAX: Duration = Duration::from_secs(2);
/// How long one may be dying before it is taken for one that memory or a process holds on to.
const DYING_MAX: Duration = Duration::from_secs(1);

/// Tells the cgroups of one process apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// What is on the disk before a cgroup is made.
#[derive(Serialize, Deserialize)]
struct CgroupRecord {
    pid: u32,
    path: PathBuf,
    /// Where the io controller was enabled for it.
    enabled_in: Option<PathBuf>,
}

/// A cgroup of our own, as long as this lives; the io controller is enabled for it and those beside it.
#[derive(Debug)]
pub struct OwnCgroup {
    path: PathBuf,
    root: PathBuf,
    enabled_in: Option<PathBuf>,
    /// `None` once it is removed.
    entry: Option<Entry>,
}

impl OwnCgroup {
    /// Makes one in the root of `tree`; its name begins with `iosched-`.
    ///
    /// # Errors
    /// We may not; or it cannot be kept in mind in `state`. Nothing is left then.
    pub fn create(tree: &Tree, state: &StateDirectory) -> Result<Self, DirectoryError> {
        let root = tree.root().to_owned();
        let control = root.join(SUBTREE_CONTROL);
        let enabled_in = (!has_io(&root, SUBTREE_CONTROL)).then(|| control.clone());
        loop {
            let name = format!("iosched-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = root.join(&name);
            // A process that had our number may have left one.
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
            // From here on whatever goes wrong is undone by its end.
            let cgroup = Self { path, root, enabled_in, entry: Some(entry) };
            if cgroup.enabled_in.is_some() {
                enable(&cgroup.root)?;
            }
            fs::create_dir(&cgroup.path).map_err(|error| failed(&cgroup.path, error))?;
            return Ok(cgroup);
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it, and so those beside it, have these files.
    ///
    /// # Errors
    /// One is not there: what would bring it.
    pub fn has<'f>(&self, wanted: impl Iterator<Item = &'f str>) -> Result<(), String> {
        let known = |name: &str| files().iter().map(|file| file.name).find(|known| *known == name);
        let absent = wanted.filter_map(known).find(|file| !self.path.join(file).is_file());
        let error = |file| CgroupError::Absent { group: self.path.display().to_string(), file };
        absent.map_or(Ok(()), |file| Err(error(file).to_string()))
    }

    /// Where it is made, and where processes go that leave the cgroups beside it.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes it with those beside it and all that is in them.
    ///
    /// # Errors
    /// Somebody is in it; `iosched restore` tries again.
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
        // What stays is in mind, and `iosched restore` tells of it.
        let _ = self.clear();
    }
}

fn failed(path: &Path, error: io::Error) -> DirectoryError {
    DirectoryError::Io { path: path.to_owned(), error }
}

/// Enables the io controller for what is in a cgroup.
pub(crate) fn enable(directory: &Path) -> Result<(), DirectoryError> {
    let control = directory.join(SUBTREE_CONTROL);
    write_once(&control, "+io").map_err(|error| failed(&control, error))
}

/// Where a cgroup is that goes with `own`: no other has a name that begins with `own`'s and a dot.
pub(crate) fn beside(own_path: &Path, name: &str) -> PathBuf {
    let mut path = own_path.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    path.into()
}

/// Removes a cgroup and those beside it with all in them, and what enabled the controller for it, unless others have
/// come to need that.
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
        // The kernel refuses if a cgroup below passes it on.
        let _ = write_once(control, "-io");
    }
    Ok(())
}

/// Whether the io controller is used by any cgroup in `root`.
fn is_needed(root: &Path) -> bool {
    let sets = |group: &String| {
        let text = |file: &CgroupFile| read(&root.join(group).join(file.name)).unwrap_or_default();
        files().iter().any(|file| !file.is_of_root && file.sets_anything(&text(file)))
    };
    names(root).iter().any(sets)
}

/// Removes a cgroup and those in it; files of one go with it.
///
/// The kernel lets go of them after that, and this waits for it: Linux 6.12.117 falls over if bfq is chosen while a
/// removed cgroup is still dying, and `low_latency` is written before it is gone.
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

/// How many cgroups below are removed and not gone, by a `cgroup.stat`; none where it is not told.
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

/// What became of a cgroup that was left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftCgroup {
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
}

/// The cgroups that were made and, it seems, not removed; those that somebody works in are among them.
#[must_use]
pub fn left_over(state: &StateDirectory) -> Vec<String> {
    state.entries(CGROUPS)
}

/// Removes the cgroup `name` of [`left_over`]; with `dry_run` it only looks.
///
/// # Errors
/// Somebody is in it.
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
    fn those_beside_a_cgroup_go_with_it_and_no_others() {
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
