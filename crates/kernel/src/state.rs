//! Where it is kept what must outlive us: journals of changed settings, and which directories are ours.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The variable that says where, instead of the usual place.
const VARIABLE: &str = "IOSCHED_STATE_DIR";
/// Where root keeps it: it must be there after a reboot.
const OF_ROOT: &str = "/var/lib/iosched";

/// A directory that outlives us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDirectory {
    path: PathBuf,
}

/// Why something cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refuses.
    #[error("{}: {error}; {VARIABLE} may name another directory for what must outlive a crash", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is no place for it.
    #[error("neither HOME nor XDG_STATE_HOME is set; {VARIABLE} may name a directory for what must outlive a crash")]
    NoHome,
}

impl StateDirectory {
    /// The usual one: what IOSCHED_STATE_DIR says, else /var/lib/iosched for root, and `iosched` in $XDG_STATE_HOME or
    /// ~/.local/state for others.
    ///
    /// # Errors
    /// Nobody says where.
    pub fn usual() -> Result<Self, StateError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = variable(VARIABLE) {
            return Ok(Self { path });
        }
        if rustix::process::geteuid().is_root() {
            return Ok(Self::of_root());
        }
        let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        Ok(Self { path: state.ok_or(StateError::NoHome)?.join("iosched") })
    }

    /// Root's.
    #[must_use]
    pub fn of_root() -> Self {
        Self { path: OF_ROOT.into() }
    }

    /// The directory `path`.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The entries of a kind, by name.
    pub(crate) fn entries(&self, kind: &str) -> Vec<String> {
        crate::roots::names(&self.path.join(kind))
    }

    fn entry_path(&self, kind: &str, name: &str) -> PathBuf {
        self.path.join(kind).join(name)
    }

    /// An entry, made if it is not there, for us alone.
    pub(crate) fn lock(&self, kind: &str, name: &str) -> Result<Locked, StateError> {
        let path = self.entry_path(kind, name);
        let failed = |error| StateError::Io { path: path.clone(), error };
        fs::create_dir_all(self.path.join(kind)).map_err(failed)?;
        loop {
            let mut file =
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            if !lock(&file).map_err(failed)? {
                return Ok(Locked::ByAnother(contents(&mut file).map_err(failed)?));
            }
            // Whoever had it may have removed it before we had the lock.
            let is_there =
                fs::metadata(&path).is_ok_and(|there| file.metadata().is_ok_and(|ours| ours.ino() == there.ino()));
            if is_there {
                return Ok(Locked::ByUs(Entry { path, file }));
            }
        }
    }
}

/// Takes a file for us alone; whether nobody else has it.
fn lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn contents(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The last value that is there as a whole.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).last()
}

/// Makes sure that the names in a directory outlive a crash.
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// What became of taking an entry.
pub(crate) enum Locked {
    /// Nobody else has it.
    ByUs(Entry),
    /// Somebody else has it; what it holds.
    ByAnother(String),
}

/// An entry that is ours as long as this lives, or until we end, however that is.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    file: File,
}

impl Entry {
    fn failed(&self, error: io::Error) -> StateError {
        StateError::Io { path: self.path.clone(), error }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds; empty if it is new.
    pub(crate) fn text(&mut self) -> Result<String, StateError> {
        contents(&mut self.file).map_err(|error| self.failed(error))
    }

    /// Gives it a value, which is on the disk when this returns. Those before stay in front of it: until it is whole,
    /// the last of them is what the entry holds.
    pub(crate) fn write<T: Serialize>(&mut self, value: &T) -> Result<(), StateError> {
        let mut written = || -> io::Result<()> {
            let mut text = serde_json::to_vec_pretty(value)?;
            text.push(b'\n');
            self.file.seek(SeekFrom::End(0))?;
            self.file.write_all(&text)?;
            self.file.sync_all()?;
            sync_directory(&self.path)
        };
        written().map_err(|error| StateError::Io { path: self.path.clone(), error })
    }

    /// It is no longer needed.
    pub(crate) fn remove(self) -> Result<(), StateError> {
        fs::remove_file(&self.path).and_then(|()| sync_directory(&self.path)).map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_owners_and_goes_when_it_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(&here.path().join("new"));
        let Ok(Locked::ByUs(mut entry)) = state.lock("kind", "a") else { panic!("nobody has it") };
        assert_eq!(entry.text().unwrap(), "");
        entry.write(&[1, 2]).unwrap();
        assert!(
            matches!(state.lock("kind", "a"), Ok(Locked::ByAnother(text)) if parse::<Vec<u8>>(&text) == Some(vec![1, 2]))
        );
        assert_eq!(state.entries("kind"), ["a"]);
        drop(entry);
        let Ok(Locked::ByUs(mut entry)) = state.lock("kind", "a") else { panic!("it was let go") };
        assert_eq!(parse::<Vec<u8>>(&entry.text().unwrap()), Some(vec![1, 2]), "it outlives its owner");
        entry.write(&[3]).unwrap();
        let text = entry.text().unwrap();
        assert_eq!(parse::<Vec<u8>>(&text), Some(vec![3]));
        let cut = text.trim_end().strip_suffix(']').unwrap();
        assert_eq!(parse::<Vec<u8>>(cut), Some(vec![1, 2]), "one that is not whole is none");
        entry.remove().unwrap();
        assert!(state.entries("kind").is_empty());
    }
}
