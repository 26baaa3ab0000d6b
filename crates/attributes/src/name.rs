//! Finds the files of attribute names such as `nr_requests`, `iosched/slice_idle`,
//! `clients/3/ioprio` or `sda/scheduler`.

use iosched_kernel::attribute::{Declaration, chosen, declaration};
use iosched_kernel::cgroup::CGROUP;
use iosched_lab::{AttributeValue, nearest};

use crate::error::wrong;
use crate::{AttributesError, Disks, Entry, Tree, TreeError};

/// Directories of a disk that are searched for a name, in this order.
const PLACES: &[&str] = &["queue/", "queue/iosched/", ""];
/// Directories of a disk whose files are its attributes. Other directories of the kernel's disks
/// hold no attributes.
const DIRECTORIES: &[&str] = &["queue", "clients", "groups", "cgroup"];
/// Directory of a served disk's groups.
const GROUPS: &str = "groups/";
/// A file behind the link `device`. Listings follow no other links.
const DEPTH: &str = "device/queue_depth";

/// A disk of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Name of the disk.
    pub name: String,
    /// Directory of the disk in the tree.
    pub path: String,
}

impl Disk {
    /// Returns the path in the tree of a file in the disk's directory.
    #[must_use]
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }
}

/// A file of a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Disk of the file.
    pub disk: Disk,
    /// Name as the user wrote it, without the disk.
    pub name: String,
    /// Path in the tree.
    pub path: String,
}

impl Named {
    /// Returns the path in the disk's directory.
    #[must_use]
    pub fn of_disk(&self) -> &str {
        self.path[self.disk.path.len()..].trim_start_matches('/')
    }
}

impl Disks {
    /// Returns the files that `name` means: one file of each disk, or only a file of the disk that
    /// the name begins with.
    ///
    /// # Errors
    /// No disk has such a file.
    pub fn find(&mut self, name: &str) -> Result<Vec<Named>, AttributesError> {
        let (named, name) = AttributeValue::parts(name, self.disks.iter().map(|disk| disk.name.as_str()));
        let is_meant = |disk: &&Disk| named.is_none_or(|named| disk.name == named);
        let disks: Vec<Disk> = self.disks.iter().filter(is_meant).cloned().collect();
        let mut found = Vec::new();
        for disk in &disks {
            if let Some(path) = self.find_of(disk, name)? {
                found.push(Named { disk: disk.clone(), name: name.to_owned(), path });
            }
        }
        if found.is_empty() {
            return Err(self.unknown(&disks, name));
        }
        Ok(found)
    }

    fn find_of(&mut self, disk: &Disk, name: &str) -> Result<Option<String>, AttributesError> {
        if self.are_the_kernels && name.starts_with(CGROUP) {
            let path = disk.path_of(name);
            return match self.tree.read(&path) {
                Err(error) if error.kind == std::io::ErrorKind::InvalidInput => Err(wrong(error)),
                Err(error) if error.explains => Err(error.into()),
                _ => Ok(Some(path)),
            };
        }
        for place in PLACES {
            let path = disk.path_of(&format!("{place}{name}"));
            match self.tree.read(&path) {
                Err(error) if error.is_absence() => {}
                Err(error) if error.kind == std::io::ErrorKind::IsADirectory => {}
                // The file exists, even if it cannot be read.
                _ => return Ok(Some(path)),
            }
        }
        Ok(None)
    }

    /// Returns the error for a `name` that is on none of `disks`.
    fn unknown(&mut self, disks: &[Disk], name: &str) -> AttributesError {
        let Some(disk) = disks.first() else {
            return wrong("there is no disk");
        };
        let mut known: Vec<_> = self.all_of(disk).unwrap_or_default().into_iter().map(|named| named.name).collect();
        known.retain(|name| !name.starts_with("clients/"));
        let tunables = known.iter().filter_map(|known| known.strip_prefix("iosched/"));
        let attributes = || known.iter().map(String::as_str).chain(tunables.clone());
        let [_] = disks else {
            // The user may have meant a disk, an attribute, or a disk with its attribute.
            let names = || disks.iter().map(|disk| disk.name.as_str());
            let meant = match name.split_once('/') {
                Some((given, rest)) => nearest(given, names()).map(|disk| format!("{disk}/{rest}")),
                None => None,
            };
            let meant = meant.or_else(|| nearest(name, names().chain(attributes())).map(str::to_owned));
            let hint = meant.map_or_else(
                || {
                    format!(
                        "the disks are {}; iosched get {} lists their attributes",
                        names().collect::<Vec<_>>().join(", "),
                        disk.name
                    )
                },
                |meant| format!("did you mean {meant}?"),
            );
            return wrong(format!("{name}: there is no such disk or attribute; {hint}"));
        };
        // If no name is similar, suggest the shortest name that contains the given name.
        let containing = || attributes().filter(|known| known.contains(name)).min_by_key(|known| known.len());
        let hint = nearest(name, attributes()).or_else(containing).map_or_else(
            || format!("{} has {}", disk.name, known.join(", ")),
            |meant| format!("did you mean {meant}?"),
        );
        wrong(format!("{name}: there is no such attribute; {hint}"))
    }

    /// Returns every file of a disk. Each file has the shortest name that finds it.
    ///
    /// # Errors
    /// A directory of the disk cannot be listed.
    pub fn all_of(&mut self, disk: &Disk) -> Result<Vec<Named>, TreeError> {
        let mut found = Vec::new();
        let named = |name: &str, path: String| Named { disk: disk.clone(), name: name.to_owned(), path };
        for Entry { name, is_directory } in self.tree.list(&disk.path)? {
            if !is_directory {
                found.push(named(&name, disk.path_of(&name)));
            } else if DIRECTORIES.contains(&name.as_str()) {
                files(self.tree.as_mut(), &disk.path_of(&name), &mut |path| {
                    let of_disk = path[disk.path.len()..].trim_start_matches('/');
                    found.push(named(of_disk.strip_prefix("queue/").unwrap_or(of_disk), path.to_owned()));
                })?;
            }
        }
        let depth = disk.path_of(DEPTH);
        if self.tree.read(&depth).is_ok() {
            found.push(named(DEPTH, depth));
        }
        Ok(found)
    }

    /// Returns the present scheduler of a disk.
    pub fn scheduler(&mut self, disk: &Disk) -> Option<String> {
        let text = self.tree.read(&disk.path_of("queue/scheduler")).ok()?;
        Some(chosen(&text).to_owned())
    }

    /// Returns the declaration of a file while `scheduler` is the present scheduler.
    #[must_use]
    pub fn declaration(file: &Named, scheduler: &str) -> Option<Declaration> {
        let of_disk = file.of_disk();
        // A group of a served disk has the files of a cgroup.
        if let Some(name) = of_disk.strip_prefix(GROUPS) {
            return declaration(&format!("{CGROUP}{name}"), scheduler);
        }
        let name = of_disk.strip_prefix("queue/").or_else(|| Some(of_disk).filter(|name| name.starts_with(CGROUP)))?;
        declaration(name, scheduler)
    }
}

/// Calls `each` with every file below a directory of a tree.
fn files(tree: &mut dyn Tree, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), TreeError> {
    for Entry { name, is_directory } in tree.list(path)? {
        let path = format!("{path}/{name}");
        if is_directory {
            files(tree, &path, each)?;
        } else {
            each(&path);
        }
    }
    Ok(())
}
