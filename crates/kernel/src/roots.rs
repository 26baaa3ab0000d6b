//! Roots of the kernel's files: `/sys`, `/proc`, `/dev`, `/run` and `/etc`. The rest of this crate
//! reads files only below these roots, so that a test can provide the files of another machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Roots of a machine's `/sys`, `/proc`, `/dev`, `/run` and `/etc`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    root: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl Roots {
    /// Returns the machine whose `sys`, `proc`, `dev`, `run` and `etc` are in the directory `root`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns a path below `/sys`.
    #[must_use]
    pub fn sys(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("sys").join(path)
    }

    /// Returns a path below `/proc`.
    #[must_use]
    pub fn proc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("proc").join(path)
    }

    /// Returns a path below `/dev`.
    #[must_use]
    pub fn dev(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("dev").join(path)
    }

    /// Returns a path below `/run`.
    #[must_use]
    pub fn run(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("run").join(path)
    }

    /// Returns a path below `/etc`.
    #[must_use]
    pub fn etc(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join("etc").join(path)
    }

    /// Returns the identifier of this boot of the kernel, which changes with each boot. Empty if it
    /// is not known.
    #[must_use]
    pub fn boot_id(&self) -> String {
        value(&self.proc("sys/kernel/random/boot_id")).unwrap_or_default()
    }
}

/// Returns the contents of a file without white space at the ends. Returns `None` if the file
/// cannot be read.
pub(crate) fn value(path: &Path) -> Option<String> {
    Some(read(path).ok()?.trim().to_owned())
}

/// Returns the number in a file.
pub(crate) fn number<T: std::str::FromStr>(path: &Path) -> Option<T> {
    value(path)?.parse().ok()
}

/// Returns the contents of a file. Some files of the kernel are not UTF-8, so invalid bytes are
/// replaced.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// Returns the names in a directory in natural order. The list is empty if the directory cannot be
/// read.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_cached_key(|name| natural(name));
    names
}

/// Returns a key that sorts numbers in names as numbers: sda2 before sda10.
#[must_use]
pub fn natural(name: &str) -> Vec<(String, u64)> {
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
