//! Paths of the files of cgroups, and reasons why a file does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CGROUP, files};
use crate::roots::{Roots, names, value};

/// Largest depth of listed cgroups.
const DEPTH_MAX: usize = 32;
/// Largest number of listed cgroups.
const GROUPS_MAX: usize = 20_000;
/// Largest number of names in a message.
const LISTED_MAX: usize = 8;

const CONTROLLERS: &str = "cgroup.controllers";
pub(super) const SUBTREE_CONTROL: &str = "cgroup.subtree_control";

/// Reason why an attribute of a cgroup does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no tree of version 2.
    #[error("this machine has no cgroups of version 2{}", remedy(*.has_version_1))]
    NoTree {
        /// Whether there are cgroups of version 1.
        has_version_1: bool,
    },
    /// The tree has no io controller.
    #[error(
        "{}: the cgroups of this machine have no io controller (they have: {there}); {}",
        root.display(),
        who_has_it(*.has_version_1)
    )]
    NoController {
        /// Mount point of the tree.
        root: PathBuf,
        /// Controllers of the tree.
        there: String,
        /// Whether version 1 has the blkio controller.
        has_version_1: bool,
    },
    /// There is no such cgroup.
    #[error("there is no cgroup {group:?}; {parent} has {there}")]
    NoGroup {
        /// Requested cgroup.
        group: String,
        /// Nearest existing ancestor.
        parent: String,
        /// Cgroups in that ancestor.
        there: String,
    },
    /// No cgroup has a file of this name.
    #[error("{name}: cgroups have no such file; the files are {}", all())]
    NoFile {
        /// Requested name.
        name: String,
    },
    /// Only the root cgroup has the file.
    #[error("only the root cgroup has {file}; use the name {CGROUP}{file}")]
    OfRoot {
        /// Name of the file.
        file: &'static str,
    },
    /// The root cgroup does not have the file.
    #[error("the root cgroup has no {file}; name a cgroup, for example {CGROUP}{example}/{file}")]
    NotOfRoot {
        /// Name of the file.
        file: &'static str,
        /// Example of a cgroup that has the file.
        example: String,
    },
    /// The io controller is not enabled for the cgroup.
    #[error(
        "cgroup {group}: the cgroup has no {file}, because the io controller is not enabled for this cgroup; to \
         enable the controller, run: {command}"
    )]
    NotEnabled {
        /// Name of the cgroup.
        group: String,
        /// Name of the file.
        file: &'static str,
        /// Command for a root shell that enables the controller.
        command: String,
    },
    /// The kernel does not provide the file.
    #[error("cgroup {group}: the cgroup has no {file}: {}", absent(file))]
    Absent {
        /// Name of the cgroup.
        group: String,
        /// Name of the file.
        file: &'static str,
    },
    /// The file has no effect on the disk at present.
    #[error("{name}: at present, {of} has no effect on {device}; {}", not_of_disk(of, device))]
    NotOfDisk {
        /// Name of the attribute.
        name: String,
        /// Name of the disk.
        device: String,
        /// Name of the file.
        of: &'static str,
    },
}

fn remedy(has_version_1: bool) -> &'static str {
    match has_version_1 {
        true => {
            ", but cgroups of version 1; to change this, add systemd.unified_cgroup_hierarchy=1 to the kernel \
             command line"
        }
        false => "; mount the cgroups with mount -t cgroup2 none /sys/fs/cgroup",
    }
}

fn who_has_it(has_version_1: bool) -> &'static str {
    match has_version_1 {
        true => {
            "cgroups of version 1 use this controller, under the name blkio; start the kernel with cgroup_no_v1=blkio"
        }
        false => {
            "the kernel was built without this controller, or these cgroups are part of a larger tree that does not \
             enable the controller"
        }
    }
}

fn all() -> String {
    files().iter().map(|file| file.name).collect::<Vec<_>>().join(", ")
}

fn absent(file: &str) -> &'static str {
    if file == "io.bfq.weight" {
        "load the scheduler with modprobe bfq"
    } else {
        "this kernel was built without this \
         controller"
    }
}

fn not_of_disk(file: &str, device: &str) -> String {
    match file {
        "io.bfq.weight" => {
            format!(
                "the scheduler of this disk is not bfq; to change the scheduler, run: iosched set {device} \
                 scheduler=bfq"
            )
        }
        "io.weight" => {
            format!(
                "io.cost uses this weight, but io.cost is off; to switch io.cost on, run: iosched set {device} \
                 {CGROUP}io.cost.qos=enable=1"
            )
        }
        _ => "the device passes requests on to the disks below; set this file for these disks".to_owned(),
    }
}

/// Tree of cgroups of version 2 that has the io controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Returns the tree of cgroups of version 2 that is mounted.
    ///
    /// # Errors
    /// There is no tree, or the tree has no io controller.
    pub fn of(roots: &Roots) -> Result<Self, CgroupError> {
        let usual = ["fs/cgroup", "fs/cgroup/unified"].map(|path| roots.sys(path));
        let has_version_1 = roots.sys("fs/cgroup/blkio").is_dir();
        let Some(root) = usual.into_iter().find(|root| root.join(CONTROLLERS).is_file()) else {
            let has_version_1 = has_version_1 || !names(&roots.sys("fs/cgroup")).is_empty();
            return Err(CgroupError::NoTree { has_version_1 });
        };
        if has_io(&root, CONTROLLERS) {
            return Ok(Self { root });
        }
        let there = value(&root.join(CONTROLLERS)).filter(|there| !there.is_empty());
        Err(CgroupError::NoController { root, there: there.unwrap_or_else(|| "none".to_owned()), has_version_1 })
    }

    /// Returns the mount point of the tree.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of a cgroup. "" is the root.
    #[must_use]
    pub fn directory(&self, group: &str) -> PathBuf {
        parts(group).fold(self.root.clone(), |path, part| path.join(part))
    }

    /// Returns every cgroup by its path from the root. The root is "" and comes first.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        self.groups_to(DEPTH_MAX)
    }

    /// Returns the cgroups up to the depth `depth_max`, in the form of [`Self::groups`]. The root
    /// has depth 0.
    #[must_use]
    pub fn groups_to(&self, depth_max: usize) -> Vec<String> {
        let (mut groups, mut left) = (Vec::new(), vec![(String::new(), 0)]);
        while let Some((group, depth)) = left.pop() {
            if groups.len() >= GROUPS_MAX {
                break;
            }
            if depth < depth_max.min(DEPTH_MAX) {
                let below = self.below(&group).into_iter().rev();
                let path = |name: String| if group.is_empty() { name } else { format!("{group}/{name}") };
                left.extend(below.map(|name| (path(name), depth + 1)));
            }
            groups.push(group);
        }
        groups
    }

    /// Returns the names of the children of a cgroup.
    fn below(&self, group: &str) -> Vec<String> {
        let directory = self.directory(group);
        let is_group = |name: &String| fs::symlink_metadata(directory.join(name)).is_ok_and(|about| about.is_dir());
        names(&directory).into_iter().filter(is_group).collect()
    }

    /// Returns the path of the file `file` of the cgroup `group`.
    ///
    /// # Errors
    /// The file does not exist. The message names the remedy.
    pub(super) fn place(&self, group: &str, file: &str) -> Result<PathBuf, CgroupError> {
        let Some(known) = files().iter().find(|known| known.name == file) else {
            return Err(CgroupError::NoFile { name: file.to_owned() });
        };
        let (file, is_root) = (known.name, parts(group).next().is_none());
        if let (true, false) = (known.is_of_root, is_root) {
            return Err(CgroupError::OfRoot { file });
        }
        if !known.is_of_root && is_root {
            let example = self.below("").into_iter().next().unwrap_or_else(|| "system.slice".to_owned());
            return Err(CgroupError::NotOfRoot { file, example });
        }
        self.look_for(group)?;
        let directory = self.directory(group);
        let path = directory.join(file);
        if path.is_file() {
            return Ok(path);
        }
        let shown = if is_root { "/".to_owned() } else { group.to_owned() };
        if has_io(&directory, CONTROLLERS) {
            return Err(CgroupError::Absent { group: shown, file });
        }
        Err(CgroupError::NotEnabled { group: shown, file, command: self.enabling(group) })
    }

    fn look_for(&self, group: &str) -> Result<(), CgroupError> {
        let mut above = String::new();
        for part in parts(group) {
            // Comparing with the listed names rejects paths such as `..` that leave the tree.
            let there = self.below(&above);
            if !there.iter().any(|name| name == part) {
                let parent = if above.is_empty() { "the root".to_owned() } else { above };
                let meant: BTreeSet<_> = there.iter().filter(|name| name.contains(part)).collect();
                let offered: Vec<_> =
                    if meant.is_empty() { there.iter().collect() } else { meant.into_iter().collect() };
                let more = offered.len().saturating_sub(LISTED_MAX);
                let mut listed: Vec<_> = offered.into_iter().take(LISTED_MAX).cloned().collect();
                if more > 0 {
                    listed.push(format!("and {more} more"));
                }
                let there = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
                return Err(CgroupError::NoGroup { group: group.to_owned(), parent, there });
            }
            above = if above.is_empty() { part.to_owned() } else { format!("{above}/{part}") };
        }
        Ok(())
    }

    /// Returns the command that enables the io controller for a cgroup.
    fn enabling(&self, group: &str) -> String {
        let mut directory = self.root.clone();
        let mut files = Vec::new();
        for part in parts(group) {
            if !has_io(&directory, SUBTREE_CONTROL) {
                files.push(directory.join(SUBTREE_CONTROL).display().to_string());
            }
            directory.push(part);
        }
        match files.as_slice() {
            [file] => format!("echo +io > {file}"),
            files => format!("echo +io | tee {}", files.join(" ")),
        }
    }
}

/// Returns whether a file of a cgroup lists the io controller.
pub(super) fn has_io(directory: &Path, file: &str) -> bool {
    value(&directory.join(file)).is_some_and(|text| text.split_whitespace().any(|name| name == "io"))
}

fn parts(group: &str) -> impl Iterator<Item = &str> {
    group.split('/').filter(|part| !part.is_empty())
}
