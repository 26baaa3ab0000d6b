//! Trees of files: `/sys/block`, or the directory of a mounted disk.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iosched_kernel::attribute::{write_once, write_once_below};
use iosched_kernel::roots::natural;

use crate::{Entry, Tree, TreeError};

/// Magic numbers of file systems whose files are attributes: sysfs, and FUSE, which mounted disks
/// use.
const OF_ATTRIBUTES: [u64; 2] = [0x6265_6572, 0x6573_5546];

/// Returns whether the files in a directory are attributes, and not the data of a user. A directory
/// with data may look like a disk.
pub(crate) fn has_attributes(directory: &Path) -> bool {
    rustix::fs::statfs(directory).is_ok_and(|about| OF_ATTRIBUTES.contains(&(about.f_type as u64)))
}

/// Tree below a directory.
pub(crate) struct Directory {
    root: PathBuf,
    is_the_kernels: bool,
}

impl Directory {
    /// Returns the tree of the kernel. Disks are links in this tree, so writes follow links.
    pub(crate) fn of_kernel(root: &Path) -> Self {
        Self { root: root.to_owned(), is_the_kernels: true }
    }

    /// Creates the tree of a mounted disk. The user who mounted the disk controls its contents, so
    /// writes do not follow links.
    pub(crate) fn of_mount(root: &Path) -> Self {
        Self { root: root.to_owned(), is_the_kernels: false }
    }

    fn failed(&self, path: &str, error: &io::Error) -> TreeError {
        let full = self.root.join(path);
        let is_read_only = || fs::metadata(&full).is_ok_and(|found| found.permissions().mode() & 0o222 == 0);
        let problem = match error.kind() {
            io::ErrorKind::PermissionDenied if is_read_only() => "this attribute is read-only".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "only the owner of this file has access (for a disk of the kernel: root)".to_owned()
            }
            io::ErrorKind::InvalidInput => "the value is not valid for this file".to_owned(),
            io::ErrorKind::NotConnected => "the server of this mount has ended".to_owned(),
            _ => error.to_string(),
        };
        TreeError { kind: error.kind(), message: format!("{}: {problem}", full.display()), explains: false }
    }
}

impl Tree for Directory {
    /// Follows links only at the root, where the kernel's disks are links.
    fn list(&mut self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let listed = || -> io::Result<Vec<Entry>> {
            let mut entries = Vec::new();
            for entry in fs::read_dir(self.root.join(path))? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let is_directory = kind.is_dir() || (path.is_empty() && kind.is_symlink() && entry.path().is_dir());
                let is_listed = is_directory || kind.is_file();
                // sysfs has only names that are valid UTF-8.
                if let (true, Ok(name)) = (is_listed, entry.file_name().into_string()) {
                    entries.push(Entry { name, is_directory });
                }
            }
            entries.sort_by_cached_key(|entry| natural(&entry.name));
            Ok(entries)
        };
        listed().map_err(|error| self.failed(path, &error))
    }

    fn read(&mut self, path: &str) -> Result<String, TreeError> {
        let bytes = fs::read(self.root.join(path)).map_err(|error| self.failed(path, &error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), TreeError> {
        let written = if self.is_the_kernels {
            write_once(&self.root.join(path), value)
        } else {
            write_once_below(&self.root, Path::new(path), value)
        };
        written.map_err(|error| self.failed(path, &error))
    }
}
