//! Tree of the kernel's disks, `/sys/block`. Each disk's directory has an additional directory
//! `cgroup` with the values that cgroups have for the disk. A listing of `cgroup` has only values
//! that are set, but every file can be read and written.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use iosched_kernel::attribute::{AttributeError, ValueError};
use iosched_kernel::cgroup::{CGROUP, CgroupError, Controls};
use iosched_kernel::{BlockDevice, Roots};

use crate::directory::Directory;
use crate::{Entry, Tree, TreeError};

/// Returns the tree of all disks.
pub(crate) fn of_all(root: &Path) -> Box<dyn Tree> {
    Box::new(Kernel { files: Directory::of_kernel(root), disk: None, roots: Roots::default(), controls: None })
}

/// Returns the tree of the disk `name`.
pub(crate) fn of_one(root: &Path, name: &str) -> Box<dyn Tree> {
    let disk = Some(name.to_owned());
    Box::new(Kernel { files: Directory::of_kernel(root), disk, roots: Roots::default(), controls: None })
}

struct Kernel {
    files: Directory,
    /// Disk whose directory is the root. If `None`, the root has a directory for each disk.
    disk: Option<String>,
    roots: Roots,
    /// Settings of cgroups, read at the first listing that needs them.
    controls: Option<Controls>,
}

impl Kernel {
    /// Returns the disk and the attribute of a path, if the attribute belongs to a cgroup.
    fn of_cgroup<'p>(&self, path: &'p str) -> Option<(String, &'p str)> {
        let (disk, name) = match &self.disk {
            Some(disk) => (disk.as_str(), path),
            None => path.split_once('/')?,
        };
        (name == CGROUP.trim_end_matches('/') || name.starts_with(CGROUP)).then(|| (disk.to_owned(), name))
    }

    fn device(&self, disk: &str) -> Result<BlockDevice, TreeError> {
        BlockDevice::named(&self.roots, disk).map_err(|error| TreeError {
            kind: io::ErrorKind::NotFound,
            message: error.to_string(),
            explains: true,
        })
    }

    /// Returns the entries of `directory` that have a value for a disk. Leaves out the entries of
    /// subdirectories.
    fn set_for(&mut self, disk: &str, directory: &str) -> Result<Vec<Entry>, TreeError> {
        let device = self.device(disk)?;
        let controls = self.controls.get_or_insert_with(|| Controls::of(&self.roots));
        let begin = format!("{directory}/");
        let mut entries = BTreeSet::new();
        for (name, _) in controls.on(device.number()) {
            if let Some(rest) = name.strip_prefix(&begin) {
                let (first, is_directory) = rest.split_once('/').map_or((rest, false), |(first, _)| (first, true));
                entries.insert((first.to_owned(), is_directory));
            }
        }
        Ok(entries.into_iter().map(|(name, is_directory)| Entry { name, is_directory }).collect())
    }
}

fn failed(error: AttributeError) -> TreeError {
    let kind = match &error {
        AttributeError::Cgroup(
            CgroupError::NoGroup { .. }
            | CgroupError::NoFile { .. }
            | CgroupError::OfRoot { .. }
            | CgroupError::NotOfRoot { .. },
        )
        | AttributeError::Value { source: ValueError::Cgroup(_), .. } => io::ErrorKind::InvalidInput,
        AttributeError::Refused { error, .. } => error.kind(),
        AttributeError::Permission { .. } | AttributeError::ReadOnly { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    TreeError { kind, message: error.to_string(), explains: true }
}

impl Tree for Kernel {
    fn list(&mut self, path: &str) -> Result<Vec<Entry>, TreeError> {
        if let Some((disk, name)) = self.of_cgroup(path) {
            return self.set_for(&disk, name);
        }
        let mut entries = self.files.list(path)?;
        let is_of_disk = self.disk.is_some() == path.is_empty() && !path.contains('/');
        if is_of_disk && entries.iter().any(|entry| entry.name == "queue") {
            entries.push(Entry { name: CGROUP.trim_end_matches('/').to_owned(), is_directory: true });
        }
        Ok(entries)
    }

    fn read(&mut self, path: &str) -> Result<String, TreeError> {
        let Some((disk, name)) = self.of_cgroup(path) else { return self.files.read(path) };
        Ok(self.device(&disk)?.attribute(name).map_err(failed)?.value)
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), TreeError> {
        let Some((disk, name)) = self.of_cgroup(path) else { return self.files.write(path, value) };
        self.device(&disk)?.set_attribute(name, value).map(drop).map_err(failed)
    }
}
