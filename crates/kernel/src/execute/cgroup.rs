//! Cgroups of a workload. They are created before the clock starts and removed afterwards.
//!
//! Each cgroup has the same depth in the hierarchy as in the workload, because bfq depends on this
//! depth. bfq checks only in the root whether a queue may preempt the queue in service. Two cgroups
//! with a common parent below the root never preempt each other.
//!
//! Cgroups of version 2 contain processes. With version 2, each task is therefore a process that
//! shares this program's memory ([`iosched_system::apart`]). If a hierarchy of version 1 has the
//! blkio controller, threads of one process can be in different cgroups. If neither version is
//! available, or cgroups cannot be created, the run continues without cgroups and adds a note. If
//! the run must write to cgroup files, it fails instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use iosched::controllers::NamedWrite;
use iosched_workload::TaskSet;
use iosched_workload::Workload;
use iosched_workload::fio::Jobs;
use iosched_workload::outcome::Note;

use super::ExecuteError;
use crate::attribute::write_once;
use crate::block::BlockDevice;
use crate::cgroup::{self, CgroupFile, OwnCgroup};
use crate::roots::read;

/// Usual mount point of the blkio controller of version 1.
const HIERARCHY: &str = "/sys/fs/cgroup/blkio";
/// File that lists the threads in a cgroup of version 1.
const TASKS: &str = "tasks";
/// File that lists the processes in a cgroup of version 2.
const PROCESSES: &str = "cgroup.procs";
/// Text that a process writes to such a file to move itself.
const OURSELVES: &str = "0";
/// Names of the files with bfq's weight, in version 1 and in version 2.
const WEIGHT_1: &str = "blkio.bfq.weight";
const WEIGHT_2: &str = "io.bfq.weight";

/// Counter that makes the names of this process's cgroups distinct.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Location of a run's cgroups of version 2, and their settings for the device.
#[derive(Clone, Copy, Debug)]
pub struct CgroupsOfRun<'a> {
    /// This process's cgroup. The run's cgroups become its siblings.
    pub beside: &'a OwnCgroup,
    /// Whole disk on which the workload runs.
    pub device: &'a BlockDevice,
    /// Values to write to files of the cgroups. The workload's names identify the cgroups.
    pub writes: &'a [NamedWrite],
}

/// A cgroup to create: its path with parts separated by `/`, and its weight if one is given.
type Wanted = (String, Option<u32>);

/// Returns the cgroups of a workload, each with the name that the workload uses for it.
fn wanted_by(workload: &Workload) -> Vec<(String, Wanted)> {
    match workload {
        Workload::Jobs(jobs) => of_jobs(jobs),
        Workload::Tasks(set) => of_tasks(set),
        Workload::Trace(_) | Workload::Application(_) | Workload::Several(_) => Vec::new(),
    }
}

/// Returns the names that a workload uses for its cgroups.
#[must_use]
pub fn cgroups(workload: &Workload) -> Vec<String> {
    wanted_by(workload).into_iter().map(|(name, _)| name).collect()
}

/// Returns the cgroups of fio jobs. Their names are paths.
fn of_jobs(jobs: &Jobs) -> Vec<(String, Wanted)> {
    let mut weights: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    for member in jobs.iter().filter_map(|(_, job)| job.cgroup.as_ref()) {
        // The last job with a weight decides, as with writes to the file.
        let weight = weights.entry(&member.name).or_default();
        *weight = member.weight.or(*weight);
    }
    weights.into_iter().map(|(name, weight)| (name.to_owned(), (name.to_owned(), weight))).collect()
}

/// Returns the cgroups of a task set. A parent is listed before its children.
fn of_tasks(set: &TaskSet) -> Vec<(String, Wanted)> {
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    let wanted = set.cgroups.iter().map(|cgroup| {
        let parent = paths.get(cgroup.parent.as_str()).map(|parent| format!("{parent}/")).unwrap_or_default();
        let path = format!("{parent}{}", cgroup.name);
        paths.insert(&cgroup.name, path.clone());
        (cgroup.name.clone(), (path, (cgroup.weight != 0).then_some(cgroup.weight)))
    });
    wanted.collect()
}

/// Returns the parts of a path. Parts such as `..`, which lead out of the run's cgroups, are left
/// out.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "." | ".."))
}

/// Cgroups of a run.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// Path of each cgroup, by the name that the workload uses for it. Empty if the run continues
    /// without cgroups.
    paths: BTreeMap<String, PathBuf>,
    /// Cgroups that were created in the root. They contain all other cgroups of the run.
    created: BTreeSet<PathBuf>,
    /// File `cgroup.procs` of this process's cgroup, to which processes of version 2 return.
    /// `None` for version 1.
    back: Option<PathBuf>,
    /// Notes for the readers of the results.
    pub(super) notes: Vec<Note>,
}

impl Cgroups {
    /// Creates the cgroups of fio jobs.
    pub(super) fn of_jobs(jobs: &Jobs, of_run: Option<CgroupsOfRun<'_>>) -> Result<Self, ExecuteError> {
        Self::make(of_jobs(jobs), of_run)
    }

    /// Creates the cgroups of a task set.
    pub(super) fn of_tasks(set: &TaskSet, of_run: Option<CgroupsOfRun<'_>>) -> Result<Self, ExecuteError> {
        Self::make(of_tasks(set), of_run)
    }

    fn make(wanted: Vec<(String, Wanted)>, of_run: Option<CgroupsOfRun<'_>>) -> Result<Self, ExecuteError> {
        let mut cgroups = Self::default();
        if wanted.is_empty() {
            return Ok(cgroups);
        }
        let count = wanted.len();
        let tried = match of_run {
            Some(of_run) => cgroups.make_beside(of_run, &wanted),
            None => cgroups.make_of_version_1(&wanted),
        };
        match (tried, of_run) {
            (Ok(()), _) => {}
            (Err((path, error)), Some(of_run)) if !of_run.writes.is_empty() => {
                return Err(ExecuteError::Cgroup { cgroup: path.display().to_string(), error });
            }
            (Err((path, error)), _) => {
                cgroups.paths.clear();
                cgroups.back = None;
                let what = format!("{count} cgroup{}", if count == 1 { "" } else { "s" });
                cgroups.notes.push(Note::NotCarriedOut { what, why: format!("{}: {error}", path.display()) });
            }
        }
        Ok(cgroups)
    }

    fn make_of_version_1(&mut self, wanted: &[(String, Wanted)]) -> Result<(), (PathBuf, io::Error)> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = Path::new(HIERARCHY).join(format!("iosched-{}-{number}", std::process::id()));
        for (name, (below, weight)) in wanted {
            let path = self.create(&first, below, |_| Ok(()))?;
            if let Some(weight) = weight {
                let file = path.join(WEIGHT_1);
                fs::write(&file, weight.to_string()).map_err(|error| (file, error))?;
            }
            self.paths.insert(name.clone(), path);
        }
        Ok(())
    }

    /// Creates the parts of the path `below` that do not exist. `pass_on` enables controllers for
    /// the children of a cgroup.
    fn create(
        &mut self,
        first: &Path,
        below: &str,
        mut pass_on: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, (PathBuf, io::Error)> {
        let mut parts = parts(below);
        let mut path = parts.next().map_or_else(|| first.to_owned(), |part| cgroup::beside(first, part));
        let create = |path: &Path| fs::create_dir(path).map_err(|error| (path.to_owned(), error));
        // If the cgroup exists in the root and this run did not create it, another program uses it.
        // Creating it must then fail.
        if !self.created.contains(&path) {
            create(&path)?;
            self.created.insert(path.clone());
        }
        for part in parts {
            let inner = path.join(part);
            if !inner.is_dir() {
                pass_on(&path).map_err(|error| (path, error))?;
                create(&inner)?;
            }
            path = inner;
        }
        Ok(path)
    }

    fn make_beside(
        &mut self,
        of_run: CgroupsOfRun<'_>,
        wanted: &[(String, Wanted)],
    ) -> Result<(), (PathBuf, io::Error)> {
        let first = cgroup::beside(of_run.beside.path(), &format!("run-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        self.back = Some(place_of_this_process(of_run.beside.root()).join(PROCESSES));
        for (name, (below, weight)) in wanted {
            let enable = |path: &Path| cgroup::enable(path).map_err(|error| io::Error::other(error.to_string()));
            let path = self.create(&first, below, enable)?;
            let file = path.join(WEIGHT_2);
            // Without bfq, the file does not exist, and nothing uses the weight.
            if let Some(weight) = weight.filter(|_| file.is_file()) {
                write_once(&file, &weight.to_string()).map_err(|error| (file, error))?;
            }
            self.paths.insert(name.clone(), path);
        }
        for NamedWrite { cgroup, file, text } in of_run.writes {
            let known = cgroup::files().iter().find(|known| known.name == file);
            if let Some((known, path)) = known.zip(self.paths.get(cgroup)) {
                let path = path.join(file);
                write(&path, known, text, of_run.device).map_err(|error| (path, error))?;
            }
        }
        Ok(())
    }

    /// Returns whether each task must be a process.
    pub(super) const fn are_of_processes(&self) -> bool {
        self.back.is_some()
    }

    /// Adds a note if some of the writes use the page cache.
    pub(super) fn add_buffered(&mut self, are_buffered: bool) {
        if are_buffered && self.are_of_processes() {
            let what = "assignment of buffered writes to cgroups".to_owned();
            let why = "the kernel counts these writes for the cgroup that owns the memory. This is the cgroup of \
                       iosched"
                .to_owned();
            self.notes.push(Note::NotCarriedOut { what, why });
        }
    }

    /// Moves the calling thread (version 1) or the calling process (version 2) to a cgroup. An
    /// unknown name has no effect.
    pub(super) fn join(&self, name: &str) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        if self.are_of_processes() {
            return write_once(&path.join(PROCESSES), OURSELVES).map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => io::Error::other(
                    "this cgroup contains other cgroups. In cgroups of version 2, such a cgroup cannot contain \
                     processes",
                ),
                _ => error,
            });
        }
        fs::write(path.join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string())
    }

    /// Moves the calling thread (version 1) or the calling process (version 2) out of the
    /// workload's cgroups.
    pub(super) fn leave(&self) -> io::Result<()> {
        match &self.back {
            _ if self.paths.is_empty() => Ok(()),
            Some(back) => write_once(back, OURSELVES),
            None => fs::write(Path::new(HIERARCHY).join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string()),
        }
    }

    /// Changes the weight of a cgroup.
    pub(super) fn set_weight(&self, name: &str, weight: u32) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        if !self.are_of_processes() {
            return fs::write(path.join(WEIGHT_1), weight.to_string());
        }
        let file = path.join(WEIGHT_2);
        if file.is_file() { write_once(&file, &weight.to_string()) } else { Ok(()) }
    }
}

/// Writes the value for `device` to the file of a cgroup and checks the stored value.
fn write(path: &Path, file: &CgroupFile, text: &str, device: &BlockDevice) -> io::Result<()> {
    let is_weight = text.strip_prefix("default ").unwrap_or(text).parse::<u32>().is_ok();
    // The weight of one device can only be set while a mechanism uses weights on that device.
    let text = &if is_weight && !text.contains(' ') { format!("default {text}") } else { text.to_owned() };
    write_once(path, &if is_weight { text.clone() } else { file.line(device.number(), text) })?;
    let value = file.value(&read(path)?, device.number());
    match value == *text || (!is_weight && file.is_same(&value, text)) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the kernel stored {value} instead of {text}"))),
    }
}

/// Returns the cgroup of this process.
fn place_of_this_process(root: &Path) -> PathBuf {
    let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = memberships.lines().find_map(|line| line.strip_prefix("0::/"));
    path.map_or_else(|| root.to_owned(), |path| root.join(path))
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for path in &self.created {
            // A cgroup that still contains processes remains.
            let _ = cgroup::remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::names;

    /// Returns the directories that are created for a cgroup, beginning with the directory in the
    /// root.
    fn created_paths(here: &Path, below: &str) -> Vec<String> {
        let deepest = Cgroups::default().create(&here.join("own"), below, |_| Ok(())).unwrap();
        let mut all: Vec<&Path> = deepest.ancestors().take_while(|path| *path != here).collect();
        all.reverse();
        all.iter().map(|path| format!("/cg/{}", path.strip_prefix(here).unwrap().display())).collect()
    }

    #[test]
    fn cgroups_have_the_depth_of_the_workload() {
        // Cgroups are created and removed like directories.
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(created_paths(here, "db"), ["/cg/own.db"]);
        assert_eq!(created_paths(here, "system.slice/db"), ["/cg/own.system.slice", "/cg/own.system.slice/db"]);
        assert!(names(here).is_empty(), "the cgroups are removed");
    }

    #[test]
    fn dot_dot_in_cgroup_paths_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(created_paths(here, "../../etc"), ["/cg/own.etc"]);
        assert_eq!(created_paths(here, ".."), ["/cg/own"]);
        assert!(names(here).is_empty(), "the cgroups are removed");
    }

    #[test]
    fn existing_cgroups_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        fs::create_dir(here.join("own.theirs")).unwrap();
        let mut cgroups = Cgroups::default();
        let mut passed_on = 0;
        for (below, is_made) in [("theirs", false), ("a/b", true), ("a", true), ("a/b", true)] {
            let result = cgroups.create(&here.join("own"), below, |_| {
                passed_on += 1;
                Ok(())
            });
            assert_eq!(result.is_ok(), is_made, "{below}");
        }
        drop(cgroups);
        assert_eq!(passed_on, 1);
        assert_eq!(names(here), ["own.theirs"]);
    }
}
