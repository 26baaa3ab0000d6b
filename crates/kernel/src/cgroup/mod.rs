//! What cgroups of version 2 have for a disk, as attributes of the disk: `cgroup/system.slice/io.max` is what is in the
//! file `io.max` of the cgroup `system.slice` for it, `cgroup/io.cost.qos` what is in the root's `io.cost.qos`. The
//! number of the disk in the files is written and read here; lines of other disks are not touched.
//!
//! | file | what it does |
//! |---|---|
//! | `file.rs` | the files: what they take, what they say of a disk, what has to be written to have that again |
//! | `tree.rs` | where they are, and why one is not there |
//! | `own.rs` | a cgroup of our own, which is removed |

mod file;
mod own_cgroup;
mod tree;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::attribute::{Attribute, AttributeError, Declaration, write_once};
use crate::block::{BlockDevice, DeviceNumber};
use crate::roots::{Roots, read};

pub use file::{CgroupFile, CgroupValueError, files};
pub use own_cgroup::{LeftCgroup, OwnCgroup, clear, left_over};
pub(crate) use own_cgroup::{beside, enable, remove};
pub use tree::{CgroupError, Tree};

/// What the names of such attributes begin with.
pub const CGROUP: &str = "cgroup/";

/// The cgroup and the file of the attribute `name`; the root is "". `None`: it is no file of a cgroup.
pub(crate) fn parts(name: &str) -> Option<(&str, &str)> {
    let below = name.strip_prefix(CGROUP)?;
    Some(below.rsplit_once('/').unwrap_or(("", below)))
}

/// What is known of the attribute `name`.
pub(crate) fn declaration(name: &str) -> Option<Declaration> {
    let (_, file) = parts(name)?;
    files().iter().find(|known| known.name == file).map(Declaration::Cgroup)
}

/// What cgroups set for disks, read once.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Controls {
    /// Names as of attributes, and what the files hold.
    texts: Vec<(String, &'static CgroupFile, String)>,
}

impl Controls {
    /// What is set now; nothing where there is no io controller of version 2.
    #[must_use]
    pub fn of(roots: &Roots) -> Self {
        let Ok(tree) = Tree::of(roots) else { return Self::default() };
        let mut texts = Vec::new();
        for group in tree.groups() {
            let directory = tree.directory(&group);
            let inner = if group.is_empty() { String::new() } else { format!("{group}/") };
            for file in files().iter().filter(|file| file.is_of_root == group.is_empty()) {
                if let Ok(text) = read(&directory.join(file.name)) {
                    texts.push((format!("{CGROUP}{inner}{}", file.name), file, text));
                }
            }
        }
        Self { texts }
    }

    /// What of it is set for a disk: names and values.
    #[must_use]
    pub fn on(&self, number: DeviceNumber) -> Vec<(String, String)> {
        let texts = self.texts.iter().filter(|(_, file, text)| file.sets(text, number));
        texts.map(|(name, file, text)| (name.clone(), file.value(text, number))).collect()
    }
}

impl BlockDevice {
    /// Where the file of a cgroup is that an attribute stands for.
    pub(crate) fn cgroup_path(&self, name: &str) -> Result<PathBuf, CgroupError> {
        let (group, file) = parts(name).unwrap_or_default();
        Tree::of(self.roots())?.place(group, file)
    }

    fn cgroup_number(&self) -> DeviceNumber {
        self.disk().number()
    }

    /// One attribute of a cgroup, as `cgroup/db/io.max`.
    pub(crate) fn cgroup_attribute(&self, name: &str) -> Result<Attribute, AttributeError> {
        let path = self.cgroup_path(name)?;
        let failed = |error| AttributeError::Io { path: path.clone(), error };
        let text = read(&path).map_err(failed)?;
        let is_writable = fs::metadata(&path).map_err(failed)?.permissions().mode() & 0o222 != 0;
        let declaration = declaration(name);
        let value = match declaration {
            Some(Declaration::Cgroup(file)) => file.value(&text, self.cgroup_number()),
            _ => text,
        };
        Ok(Attribute { name: name.to_owned(), value, is_writable, declaration })
    }

    /// What is written to the file of an attribute to give it a value.
    pub(crate) fn line(&self, name: &str, value: &str) -> String {
        match declaration(name) {
            Some(Declaration::Cgroup(file)) => file.line(self.cgroup_number(), value),
            _ => value.to_owned(),
        }
    }

    /// Writes what is not checked to the file of a cgroup.
    pub(crate) fn write_cgroup(&self, name: &str, value: &str) -> Result<(), AttributeError> {
        let path = self.cgroup_path(name)?;
        let file = match declaration(name) {
            Some(Declaration::Cgroup(file)) => file,
            _ => return Err(AttributeError::Io { path, error: io::ErrorKind::NotFound.into() }),
        };
        let device = self.disk_name().to_owned();
        write_once(&path, &self.line(name, value)).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => AttributeError::Permission { path },
            io::ErrorKind::Unsupported => {
                CgroupError::NotOfDisk { name: name.to_owned(), device, of: file.name }.into()
            }
            _ => {
                let (name, value) = (name.to_owned(), value.to_owned());
                AttributeError::Refused { device, name, value, error, takes: format!("; {}", file.takes()) }
            }
        })
    }
}

#[cfg(test)]
#[path = "../tests/cgroup.rs"]
mod tests;
