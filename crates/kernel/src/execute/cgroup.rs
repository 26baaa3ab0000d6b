//! The cgroups of a workload: made below one of our own before the clock starts, and removed after.
//!
//! Threads of one process can be in different cgroups where a hierarchy of version 1 has the blkio controller; version
//! 2 moves processes only. Where there is no such hierarchy, or we may not make cgroups in it, the run goes on without,
//! and says so.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use iosched_workload::TaskSet;
use iosched_workload::fio::Jobs;
use iosched_workload::outcome::Note;

/// Where distributions mount the blkio controller.
const HIERARCHY: &str = "/sys/fs/cgroup/blkio";
/// Which threads are in a cgroup.
const TASKS: &str = "tasks";
/// The weight by which bfq shares.
const WEIGHT: &str = "blkio.bfq.weight";

/// Tells the cgroups of one process' runs apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A cgroup that is wanted: its path, parts divided by `/`, and its weight if one is given.
type Wanted = (String, Option<u32>);

/// The cgroups of a run.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// By the workload's names; empty if the run goes on without.
    paths: BTreeMap<String, PathBuf>,
    /// Our own, in which all are.
    own: Option<PathBuf>,
    /// What a reader of the figures should know.
    pub(super) note: Option<Note>,
}

impl Cgroups {
    /// Those of fio jobs, whose names are paths.
    pub(super) fn of_jobs(jobs: &Jobs) -> Self {
        let mut weights: BTreeMap<&str, Option<u32>> = BTreeMap::new();
        for member in jobs.iter().filter_map(|(_, job)| job.cgroup.as_ref()) {
            // The last job that sets a weight has it, as with a write to the file.
            let weight = weights.entry(&member.name).or_default();
            *weight = member.weight.or(*weight);
        }
        Self::make(weights.into_iter().map(|(name, weight)| (name.to_owned(), (name.to_owned(), weight))))
    }

    /// Those of a task set, each of which has a parent that is listed before it.
    pub(super) fn of_tasks(set: &TaskSet) -> Self {
        let mut paths: BTreeMap<&str, String> = BTreeMap::new();
        let wanted: Vec<(String, Wanted)> = set
            .cgroups
            .iter()
            .map(|cgroup| {
                let parent = paths.get(cgroup.parent.as_str()).map(|parent| format!("{parent}/")).unwrap_or_default();
                let path = format!("{parent}{}", cgroup.name);
                paths.insert(&cgroup.name, path.clone());
                (cgroup.name.clone(), (path, (cgroup.weight != 0).then_some(cgroup.weight)))
            })
            .collect();
        Self::make(wanted.into_iter())
    }

    fn make(wanted: impl ExactSizeIterator<Item = (String, Wanted)>) -> Self {
        let mut made = Self::default();
        let count = wanted.len();
        if count == 0 {
            return made;
        }
        if let Err((path, error)) = made.try_make(wanted) {
            made.paths.clear();
            let what = format!("{count} cgroup{}", if count == 1 { "" } else { "s" });
            made.note = Some(Note::NotCarriedOut { what, why: format!("{}: {error}", path.display()) });
        }
        made
    }

    fn try_make(&mut self, wanted: impl Iterator<Item = (String, Wanted)>) -> Result<(), (PathBuf, io::Error)> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let own = Path::new(HIERARCHY).join(format!("iosched-{}-{number}", std::process::id()));
        fs::create_dir(&own).map_err(|error| (own.clone(), error))?;
        self.own = Some(own.clone());
        for (name, (below, weight)) in wanted {
            // A name that climbs out of ours is none of ours.
            let parts = below.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
            let path = parts.fold(own.clone(), |path, part| path.join(part));
            fs::create_dir_all(&path).map_err(|error| (path.clone(), error))?;
            if let Some(weight) = weight {
                let file = path.join(WEIGHT);
                fs::write(&file, weight.to_string()).map_err(|error| (file, error))?;
            }
            self.paths.insert(name, path);
        }
        Ok(())
    }

    /// The calling thread is in a cgroup from now on; `None`: in the one it began in.
    pub(super) fn join(&self, name: &str) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        fs::write(path.join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string())
    }

    /// The calling thread leaves the workload's cgroups.
    pub(super) fn leave(&self) -> io::Result<()> {
        if self.paths.is_empty() {
            return Ok(());
        }
        fs::write(Path::new(HIERARCHY).join(TASKS), rustix::thread::gettid().as_raw_nonzero().to_string())
    }

    /// The weight of a cgroup changes.
    pub(super) fn set_weight(&self, name: &str, weight: u32) -> io::Result<()> {
        let Some(path) = self.paths.get(name) else { return Ok(()) };
        fs::write(path.join(WEIGHT), weight.to_string())
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            remove(own);
        }
    }
}

/// Removes a cgroup and those below. One that somebody is still in stays.
fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}
