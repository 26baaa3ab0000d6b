//! The cgroups of a workload: made before the clock starts, and removed after.
//!
//! They are as deep in the hierarchy as the workload has them, since that matters: bfq asks in the root alone whether
//! a queue may preempt the one in service, so that of two cgroups below a common one neither ever does.
//!
//! Cgroups of version 2 are told apart by processes: there each task is a process of its own, with this program's
//! memory ([`iosched_system::apart`]). Threads of one process can be in different cgroups where a hierarchy of version
//! 1 has the blkio controller. Where there is neither, or we may not make cgroups, the run goes on without, and says
//! so; unless something is to be written to their files.

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

/// Where distributions mount the blkio controller of version 1.
const HIERARCHY: &str = "/sys/fs/cgroup/blkio";
/// Which threads are in a cgroup of version 1.
const TASKS: &str = "tasks";
/// Which processes are in one of version 2.
const PROCESSES: &str = "cgroup.procs";
/// What is written there for whoever writes.
const OURSELVES: &str = "0";
/// The weight by which bfq shares.
const WEIGHT_1: &str = "blkio.bfq.weight";
const WEIGHT_2: &str = "io.bfq.weight";

/// Tells the cgroups of one process' runs apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Where a run's cgroups of version 2 are made, and what they have for the device.
#[derive(Clone, Copy, Debug)]
pub struct CgroupsOfRun<'a> {
    /// Beside which they are made.
    pub beside: &'a OwnCgroup,
    /// The device, whole.
    pub device: &'a BlockDevice,
    /// What is written to their files, by the names that the workload has for them.
    pub writes: &'a [NamedWrite],
}

/// A cgroup that is wanted: its path, parts divided by `/`, and its weight if one is given.
type Wanted = (String, Option<u32>);

/// The cgroups of a workload, by its names.
fn wanted_by(workload: &Workload) -> Vec<(String, Wanted)> {
    match workload {
        Workload::Jobs(jobs) => of_jobs(jobs),
        Workload::Tasks(set) => of_tasks(set),
        Workload::Trace(_) | Workload::Application(_) => Vec::new(),
    }
}

/// The names that a workload has for its cgroups.
#[must_use]
pub fn cgroups(workload: &Workload) -> Vec<String> {
    wanted_by(workload).into_iter().map(|(name, _)| name).collect()
}

/// Those of fio jobs, whose names are paths.
fn of_jobs(jobs: &Jobs) -> Vec<(String, Wanted)> {
    let mut weights: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    for member in jobs.iter().filter_map(|(_, job)| job.cgroup.as_ref()) {
        // The last job that sets a weight has it, as with a write to the file.
        let weight = weights.entry(&member.name).or_default();
        *weight = member.weight.or(*weight);
    }
    weights.into_iter().map(|(name, weight)| (name.to_owned(), (name.to_owned(), weight))).collect()
}

/// Those of a task set, each of which has a parent that is listed before it.
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

/// The parts of a path; a name that climbs out of ours is none of ours.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "." | ".."))
}

/// The cgroups of a run.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// By the workload's names; empty if the run goes on without.
    paths: BTreeMap<String, PathBuf>,
    /// Those of them in the root, in which all are.
    created: BTreeSet<PathBuf>,
    /// Where processes of version 2 go that leave them; `None`: they are of version 1.
    back: Option<PathBuf>,
    /// What a reader of the figures should know.
    pub(super) notes: Vec<Note>,
}

impl Cgroups {
    /// Those of fio jobs.
    pub(super) fn of_jobs(jobs: &Jobs, of_run: Option<CgroupsOfRun<'_>>) -> Result<Self, ExecuteError> {
        Self::make(of_jobs(jobs), of_run)
    }

    /// Those of a task set.
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

    /// Makes what is not there of the cgroup `below`; `pass_on` hands controllers on to what is in a cgroup.
    fn create(
        &mut self,
        first: &Path,
        below: &str,
        mut pass_on: impl FnMut(&Path) -> io::Result<()>,
    ) -> Result<PathBuf, (PathBuf, io::Error)> {
        let mut parts = parts(below);
        let mut path = parts.next().map_or_else(|| first.to_owned(), |part| cgroup::beside(first, part));
        let create = |path: &Path| fs::create_dir(path).map_err(|error| (path.to_owned(), error));
        // One in the root that is there and not ours is another's.
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
            // Without bfq nobody looks at it, and it is not there.
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

    /// Whether each task has to be a process of its own.
    pub(super) const fn are_of_processes(&self) -> bool {
        self.back.is_some()
    }

    /// Some of the writes are of the page cache.
    pub(super) fn add_buffered(&mut self, are_buffered: bool) {
        if are_buffered && self.are_of_processes() {
            let what = "cgroups of writes through the page cache".to_owned();
            let why = "the kernel charges them to the cgroup that owns the memory, which is the cgroup of this program"
                .to_owned();
            self.notes.push(Note::NotCarriedOut { what, why });
        }
    }

    /// The calling thread, or process of one, is in a cgroup from now on; `None`: in the one it began in.
    pub(super) fn join(&self, name: &str) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        if self.are_of_processes() {
            return write_once(&path.join(PROCESSES), OURSELVES).map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => io::Error::other(
                    "contains cgroups, so it cannot contain processes: version 2 allows only one of \
                         the two",
                ),
                _ => error,
            });
        }
        fs::write(path.join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string())
    }

    /// The calling thread, or process of one, leaves the workload's cgroups.
    pub(super) fn leave(&self) -> io::Result<()> {
        match &self.back {
            _ if self.paths.is_empty() => Ok(()),
            Some(back) => write_once(back, OURSELVES),
            None => fs::write(Path::new(HIERARCHY).join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string()),
        }
    }

    /// The weight of a cgroup changes.
    pub(super) fn set_weight(&self, name: &str, weight: u32) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        if !self.are_of_processes() {
            return fs::write(path.join(WEIGHT_1), weight.to_string());
        }
        let file = path.join(WEIGHT_2);
        if file.is_file() { write_once(&file, &weight.to_string()) } else { Ok(()) }
    }
}

/// Writes to the file of a cgroup what it is to have for `device`, and looks whether it has.
fn write(path: &Path, file: &CgroupFile, text: &str, device: &BlockDevice) -> io::Result<()> {
    let is_weight = text.strip_prefix("default ").unwrap_or(text).parse::<u32>().is_ok();
    // A share of one device can be given only while somebody looks at it there.
    let text = &if is_weight && !text.contains(' ') { format!("default {text}") } else { text.to_owned() };
    write_once(path, &if is_weight { text.clone() } else { file.line(device.number(), text) })?;
    let value = file.value(&read(path)?, device.number());
    match value == *text || (!is_weight && file.is_same(&value, text)) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the kernel stored {value} instead of {text}"))),
    }
}

/// The cgroup that this process is in.
fn place_of_this_process(root: &Path) -> PathBuf {
    let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = memberships.lines().find_map(|line| line.strip_prefix("0::/"));
    path.map_or_else(|| root.to_owned(), |path| root.join(path))
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for path in &self.created {
            // One that somebody is still in stays.
            let _ = cgroup::remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::names;

    /// The directories that are made for a cgroup, the one in the root first.
    fn created_paths(here: &Path, below: &str) -> Vec<String> {
        let deepest = Cgroups::default().create(&here.join("own"), below, |_| Ok(())).unwrap();
        let mut all: Vec<&Path> = deepest.ancestors().take_while(|path| *path != here).collect();
        all.reverse();
        all.iter().map(|path| format!("/cg/{}", path.strip_prefix(here).unwrap().display())).collect()
    }

    #[test]
    fn a_cgroup_is_as_deep_as_the_workload_has_it() {
        // Where cgroups are made and removed as directories are.
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(created_paths(here, "db"), ["/cg/own.db"]);
        assert_eq!(created_paths(here, "system.slice/db"), ["/cg/own.system.slice", "/cg/own.system.slice/db"]);
        assert!(names(here).is_empty(), "they are removed");
    }

    #[test]
    fn a_cgroup_that_climbs_out_is_none_of_ours() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        assert_eq!(created_paths(here, "../../etc"), ["/cg/own.etc"]);
        assert_eq!(created_paths(here, ".."), ["/cg/own"]);
        assert!(names(here).is_empty(), "they are removed");
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
