//! The cgroup and the process that submitted a request.
//!
//! Trace events name the thread that submitted a request. `/proc/TID/cgroup` contains the thread's
//! cgroup. The kernel's own threads are in the root cgroup, and they write the data of the page
//! cache. Buffered writes therefore count for the root cgroup here. `io.stat` instead counts them
//! for the cgroup that wrote the data.

use std::collections::HashMap;

use super::pairs::NumberMap;
use crate::roots::{Roots, value};

/// Time after which the cgroup of a thread is read again, ns.
const FRESH_NS: u64 = 5_000_000_000;
/// Largest number of threads whose cgroups are stored.
const THREADS_MAX: usize = 1 << 14;
/// Name that stands for all owners beyond the limit.
pub const OTHERS: &str = "(others)";

/// Cgroup and thread that made requests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Owner {
    /// Path of the cgroup, such as `system.slice/db.service`. The root is `/`. `None` if the
    /// process ended before its cgroup was read.
    pub cgroup: Option<String>,
    /// Name of the thread. `None` if owners are distinguished only by cgroup.
    pub process: Option<String>,
}

impl Owner {
    /// Returns the name of the owner: the cgroup, or the process if the cgroup is not known.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.cgroup, &self.process) {
            (Some(cgroup), _) => cgroup.clone(),
            (None, Some(process)) => format!("process:{process}"),
            (None, None) => OTHERS.to_owned(),
        }
    }
}

/// A thread whose owner is known.
#[derive(Clone, Copy, Debug)]
struct Thread {
    comm: [u8; 16],
    owner: u32,
    read_ns: u64,
}

/// Owners, by number.
#[derive(Debug)]
pub(super) struct Owners {
    roots: Roots,
    depth_max: usize,
    owners_max: usize,
    tells_processes: bool,
    threads: NumberMap<u32, Thread>,
    owners: Vec<Owner>,
    numbers: HashMap<Owner, u32>,
}

impl Owners {
    pub(super) fn new(roots: &Roots, depth_max: usize, owners_max: usize, tells_processes: bool) -> Self {
        let others = Owner { cgroup: None, process: None };
        Self {
            roots: roots.clone(),
            depth_max,
            owners_max,
            tells_processes,
            threads: NumberMap::default(),
            owners: vec![others],
            numbers: HashMap::new(),
        }
    }

    /// Returns the owner with this number.
    pub(super) fn owner(&self, number: u32) -> &Owner {
        &self.owners[number as usize]
    }

    /// Returns the number of the owner of a thread.
    #[inline]
    pub(super) fn of(&mut self, tid: u32, comm: [u8; 16], now_ns: u64) -> u32 {
        // After a thread has ended, another thread may get its number.
        if let Some(thread) = self.threads.get(&tid)
            && thread.comm == comm
            && now_ns.saturating_sub(thread.read_ns) < FRESH_NS
        {
            return thread.owner;
        }
        self.look_up(tid, comm, now_ns)
    }

    #[cold]
    fn look_up(&mut self, tid: u32, comm: [u8; 16], now_ns: u64) -> u32 {
        let text = value(&self.roots.proc(tid.to_string()).join("cgroup"));
        let cgroup = text.as_deref().and_then(cgroup_of).map(|path| shortened(path, self.depth_max));
        let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
        let name = String::from_utf8_lossy(&comm[..end]).into_owned();
        let process = (self.tells_processes || cgroup.is_none()).then_some(name);
        let owner = self.number(Owner { cgroup, process });
        if self.threads.len() >= THREADS_MAX {
            self.threads.clear();
        }
        self.threads.insert(tid, Thread { comm, owner, read_ns: now_ns });
        owner
    }

    fn number(&mut self, owner: Owner) -> u32 {
        if let Some(&number) = self.numbers.get(&owner) {
            return number;
        }
        if self.owners.len() > self.owners_max {
            return 0;
        }
        let number = self.owners.len() as u32;
        self.owners.push(owner.clone());
        self.numbers.insert(owner, number);
        number
    }
}

/// Returns the cgroup that the I/O controller uses, from the text of `/proc/TID/cgroup`. This is
/// the cgroup of version 1 if version 1 has the controller, and otherwise the cgroup of version 2.
/// The root is `/`.
pub(super) fn cgroup_of(text: &str) -> Option<&str> {
    let mut unified = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.split(',').any(|name| name == "blkio") {
            return Some(path);
        }
        if controllers.is_empty() {
            unified = Some(path);
        }
    }
    unified
}

/// Returns the cgroup and the name of a thread. `None` if the thread has ended.
pub(crate) fn owner_of(roots: &Roots, tid: u32) -> Option<Owner> {
    let of_thread = roots.proc(tid.to_string());
    let cgroup = value(&of_thread.join("cgroup"))?;
    let cgroup = cgroup_of(&cgroup).map(|path| shortened(path, usize::MAX));
    Some(Owner { cgroup, process: value(&of_thread.join("comm")) })
}

/// Returns the first parts of a path.
pub(super) fn shortened(path: &str, depth_max: usize) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(depth_max).collect();
    if parts.is_empty() { "/".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comm(name: &str) -> [u8; 16] {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        comm
    }

    #[test]
    fn cgroup_of_the_io_controller_is_found() {
        assert_eq!(cgroup_of("0::/system.slice/db.service"), Some("/system.slice/db.service"));
        assert_eq!(cgroup_of("7:blkio:/a\n1:cpu,cpuacct:/b\n0::/c"), Some("/a"));
        assert_eq!(cgroup_of("1:name=systemd:/b\n0::/c:d"), Some("/c:d"));
        assert_eq!(cgroup_of(""), None);
    }

    #[test]
    fn owners_are_cgroups_or_process_names_and_are_bounded() {
        let here = tempfile::tempdir().unwrap();
        let roots = Roots::at(here.path());
        let process = |tid: u32, cgroup: &str| {
            std::fs::create_dir_all(roots.proc(tid.to_string())).unwrap();
            std::fs::write(roots.proc(tid.to_string()).join("cgroup"), format!("0::{cgroup}\n")).unwrap();
        };
        process(1, "/");
        process(2, "/a.slice/b/c");
        process(4, "/one/more");
        let mut owners = Owners::new(&roots, 2, 3, false);
        let mut names = |tid, now_ns| {
            let number = owners.of(tid, comm("fio"), now_ns);
            owners.owner(number).name()
        };
        assert_eq!([names(1, 0), names(2, 0), names(3, 0), names(4, 0)], ["/", "a.slice/b", "process:fio", OTHERS]);
        // A process that moves is found in its new cgroup after a while.
        process(1, "/a.slice/b");
        assert_eq!([names(1, FRESH_NS - 1), names(1, FRESH_NS)], ["/", "a.slice/b"]);
    }

    #[test]
    fn thread_with_a_reused_id_is_looked_up_again() {
        let here = tempfile::tempdir().unwrap();
        let mut owners = Owners::new(&Roots::at(here.path()), 2, 8, true);
        let (first, second) = (owners.of(7, comm("dd"), 0), owners.of(7, comm("fio"), 1));
        assert_eq!(
            (owners.owner(first).name(), owners.owner(second).name()),
            ("process:dd".into(), "process:fio".into())
        );
    }
}
