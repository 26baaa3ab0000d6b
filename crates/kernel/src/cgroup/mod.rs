//! Settings of cgroups (version 2) for a disk, as attributes of the disk.
//!
//! The attribute `cgroup/system.slice/io.max` is the disk's line in the file `io.max` of the cgroup
//! `system.slice`. The attribute `cgroup/io.cost.qos` is its line in the file of the root cgroup.
//! The files identify a disk by its device number. This module reads and writes only the line with
//! this number.
//!
//! | file | contents |
//! |---|---|
//! | `file.rs` | the files: accepted values, values of a disk, values to write to restore a setting |
//! | `tree.rs` | paths of the files, and reasons why a file does not exist |
//! | `own_cgroup.rs` | a cgroup for iosched itself, which is removed after use |

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

/// Prefix of the names of these attributes.
pub const CGROUP: &str = "cgroup/";

/// Returns the cgroup and the file of the attribute `name`. The root cgroup is "". Returns `None`
/// if the attribute is not a file of a cgroup.
pub(crate) fn parts(name: &str) -> Option<(&str, &str)> {
    let below = name.strip_prefix(CGROUP)?;
    Some(below.rsplit_once('/').unwrap_or(("", below)))
}

/// Returns the declaration of the attribute `name`.
pub(crate) fn declaration(name: &str) -> Option<Declaration> {
    let (_, file) = parts(name)?;
    files().iter().find(|known| known.name == file).map(Declaration::Cgroup)
}

/// Returns whether `read` and `written` are the same value of the attribute `name`.
#[must_use]
pub fn is_same(name: &str, read: &str, written: &str) -> bool {
    match declaration(name) {
        Some(Declaration::Cgroup(file)) => file.is_same(read, written),
        _ => read == written,
    }
}

/// Settings of cgroups for all disks, read once.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Controls {
    /// Name of the attribute, declaration and contents of each file.
    texts: Vec<(String, &'static CgroupFile, String)>,
}

impl Controls {
    /// Reads the present settings. The result is empty if there is no io controller of version 2.
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

    /// Returns the names and values that are set for a disk.
    #[must_use]
    pub fn on(&self, number: DeviceNumber) -> Vec<(String, String)> {
        let texts = self.texts.iter().filter(|(_, file, text)| file.sets(text, number));
        texts.map(|(name, file, text)| (name.clone(), file.value(text, number))).collect()
    }
}

impl BlockDevice {
    /// Returns the path of the cgroup file of an attribute.
    pub(crate) fn cgroup_path(&self, name: &str) -> Result<PathBuf, CgroupError> {
        let (group, file) = parts(name).unwrap_or_default();
        Tree::of(self.roots())?.place(group, file)
    }

    fn cgroup_number(&self) -> DeviceNumber {
        self.disk().number()
    }

    /// Reads an attribute of a cgroup, such as `cgroup/db/io.max`.
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

    /// Returns the line to write to the file of an attribute to set a value.
    pub(crate) fn line(&self, name: &str, value: &str) -> String {
        match declaration(name) {
            Some(Declaration::Cgroup(file)) => file.line(self.cgroup_number(), value),
            _ => value.to_owned(),
        }
    }

    /// Writes a value to the file of a cgroup without checks.
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
