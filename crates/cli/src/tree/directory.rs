//! A tree of files: `/sys/block`, or what a mounted disk shows.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Entry, Tree, TreeError};

/// The tree below a directory.
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn failed(&self, path: &str, error: &io::Error) -> TreeError {
        let full = self.root.join(path);
        let is_read_only = || fs::metadata(&full).is_ok_and(|found| found.permissions().mode() & 0o222 == 0);
        let said = match error.kind() {
            io::ErrorKind::PermissionDenied if is_read_only() => "it is read-only".to_owned(),
            io::ErrorKind::PermissionDenied => "only its owner may do that".to_owned(),
            io::ErrorKind::InvalidInput => "the kernel refuses that".to_owned(),
            io::ErrorKind::NotConnected => "the server of this mount is gone".to_owned(),
            _ => error.to_string(),
        };
        TreeError { kind: error.kind(), message: format!("{}: {said}", full.display()), explains: false }
    }
}

impl Tree for Directory {
    /// Links count as what they lead to only at the root, where the kernel's disks are links.
    fn list(&mut self, path: &str) -> Result<Vec<Entry>, TreeError> {
        let listed = || -> io::Result<Vec<Entry>> {
            let mut entries = Vec::new();
            for entry in fs::read_dir(self.root.join(path))? {
                let entry = entry?;
                let kind = entry.file_type()?;
                let is_directory = kind.is_dir() || (path.is_empty() && kind.is_symlink() && entry.path().is_dir());
                let is_listed = is_directory || kind.is_file();
                // sysfs has no other names.
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
        let full = self.root.join(path);
        // One write, as the kernel wants it, and no file is made.
        let written = fs::OpenOptions::new().write(true).open(full).and_then(|mut file| {
            let text = format!("{value}\n");
            match io::Write::write(&mut file, text.as_bytes())? {
                count if count == text.len() => Ok(()),
                _ => Err(io::ErrorKind::WriteZero.into()),
            }
        });
        written.map_err(|error| self.failed(path, &error))
    }
}

/// A key that sorts numbers in names as numbers: sda2 before sda10.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        key.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_their_numbers() {
        let mut names = ["sda10", "sda2", "loop0", "sda", "nvme1n1", "nvme0n2"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, ["loop0", "nvme0n2", "nvme1n1", "sda", "sda2", "sda10"]);
    }
}
