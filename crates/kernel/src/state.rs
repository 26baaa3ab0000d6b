//! Directory for records that must survive a crash: journals of changed settings, and lists of
//! directories and cgroups that iosched has created.
//!
//! `iosched restore` writes and removes the files that the records name. Root therefore uses the
//! directory only if no other user may write to it.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::process;
use iosched_system::open_directory::{FileId, OpenDirectory};

/// Environment variable that names another directory.
const VARIABLE: &str = "IOSCHED_STATE_DIR";
/// Directory of root. It must survive a reboot.
const OF_ROOT: &str = "/var/lib/iosched";

/// Longest time to wait for a killed process to end. The process cannot end before its last I/Os
/// complete. After this time, iosched assumes that the process hangs.
const DYING_MAX: Duration = Duration::from_secs(10);
/// Interval between two attempts to take a lock.
const TICK: Duration = Duration::from_millis(5);

/// Owner of an entry. Entries of all kinds contain the process id.
#[derive(Deserialize)]
struct Owner {
    pid: u32,
}

/// Directory for records that must survive a crash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDirectory {
    path: PathBuf,
}

/// Reason why a record cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refuses.
    #[error(
        "{}: {error}; set {VARIABLE} to another directory, whose files survive a crash",
        path.display()
    )]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// Root would trust files that another user may have written.
    #[error(
        "{path}: {who} may write to this directory, but only root must be able to change the files in it. To give \
         the directory to root, run: chown root {path}; chmod 755 {path}; or name another directory with {VARIABLE}",
        path = path.display()
    )]
    Shared {
        /// Path of the directory.
        path: PathBuf,
        /// Description of the other user.
        who: String,
    },
    /// No directory is known.
    #[error("neither HOME nor XDG_STATE_HOME is set; set {VARIABLE} to a directory whose files survive a crash")]
    NoHome,
}

impl StateDirectory {
    /// Returns the usual directory: IOSCHED_STATE_DIR if this variable is set. Otherwise, the
    /// directory is /var/lib/iosched for root. For other users, it is `iosched` in $XDG_STATE_HOME
    /// or in ~/.local/state.
    ///
    /// # Errors
    /// None of these variables is set, and HOME is not set.
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

    /// Returns the directory of root.
    #[must_use]
    pub fn of_root() -> Self {
        Self { path: OF_ROOT.into() }
    }

    /// Returns the directory `path`.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of the entries of a kind.
    pub(crate) fn entries(&self, kind: &str) -> Vec<String> {
        crate::roots::names(&self.path.join(kind))
    }

    /// Opens the directory of a kind of entries, and creates it if necessary.
    fn place(&self, kind: &str) -> Result<Arc<OpenDirectory>, StateError> {
        let path = self.path.join(kind);
        let failed = |error| StateError::Io { path: path.clone(), error };
        DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(failed)?;
        let all = OpenDirectory::open(&self.path).map_err(failed)?;
        let place = all.directory(Path::new(kind)).map_err(failed)?;
        for held in [&all, &place] {
            if let Some(who) = held.others().map_err(failed)? {
                return Err(StateError::Shared { path: held.path().to_owned(), who });
            }
        }
        Ok(place)
    }

    /// Locks an entry for this process, and creates it if necessary.
    pub(crate) fn lock(&self, kind: &str, name: &str) -> Result<Locked, StateError> {
        let place = self.place(kind)?;
        let name = PathBuf::from(name);
        let path = place.path().join(&name);
        let failed = |error| StateError::Io { path: path.clone(), error };
        loop {
            let mut file = place.make_file(&name, OFlags::RDWR).map_err(failed)?;
            if let Some(text) = lock_after_the_dying(&mut file).map_err(failed)? {
                return Ok(Locked::ByAnother(text));
            }
            // The previous owner may have removed the entry before this process got the lock.
            let ours = FileId::of_file(&file).map_err(failed)?;
            if place.look(&name).is_ok_and(|there| FileId::of(&there) == ours) {
                return Ok(Locked::ByUs(Entry { place, name, path, file }));
            }
        }
    }
}

/// Locks a file, or returns its contents if another process has the lock. The kernel closes the
/// files of a killed process with a delay, so this function waits for such a process.
fn lock_after_the_dying(file: &mut File) -> io::Result<Option<String>> {
    let until = Instant::now() + DYING_MAX;
    loop {
        if lock(file)? {
            return Ok(None);
        }
        let text = contents(file)?;
        let is_dying = parse::<Owner>(&text).is_some_and(|owner| process::is_ending(owner.pid));
        if !is_dying || Instant::now() >= until {
            return Ok(Some(text));
        }
        std::thread::sleep(TICK);
    }
}

/// Tries to lock a file. Returns whether it succeeded.
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

/// Returns the last complete JSON value in a text.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::Deserializer::from_str(text).into_iter().map_while(Result::ok).last()
}

/// Result of locking an entry.
pub(crate) enum Locked {
    /// This process has the lock.
    ByUs(Entry),
    /// Another process has the lock. The value is the contents of the entry.
    ByAnother(String),
}

/// An entry that this process has locked. The lock ends when the value is dropped or the process
/// ends in any way.
#[derive(Debug)]
pub(crate) struct Entry {
    place: Arc<OpenDirectory>,
    name: PathBuf,
    /// Path for messages.
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

    /// Returns the contents of the entry, which are empty if it is new.
    pub(crate) fn text(&mut self) -> Result<String, StateError> {
        contents(&mut self.file).map_err(|error| self.failed(error))
    }

    /// Appends a value. The value is on the disk when this function returns. Earlier values remain
    /// in the file. If the new value is incomplete after a crash, the last complete value is the
    /// value of the entry. Returns the offset of the end of the new value, bytes.
    pub(crate) fn write<T: Serialize>(&mut self, value: &T) -> Result<u64, StateError> {
        let mut written = || -> io::Result<u64> {
            let mut text = serde_json::to_vec_pretty(value)?;
            text.push(b'\n');
            self.file.seek(SeekFrom::End(0))?;
            self.file.write_all(&text)?;
            self.file.sync_all()?;
            self.place.file().sync_all()?;
            self.file.stream_position()
        };
        written().map_err(|error| StateError::Io { path: self.path.clone(), error })
    }

    /// Removes all values after the offset `end`, which must be the end of a value. The value that
    /// ends there becomes the value of the entry, also on the disk.
    pub(crate) fn forget_behind(&mut self, end: u64) -> Result<(), StateError> {
        let done = self.file.set_len(end).and_then(|()| self.file.sync_all());
        done.map_err(|error| self.failed(error))
    }

    /// Removes the entry.
    pub(crate) fn remove(self) -> Result<(), StateError> {
        let removed = self.place.remove_file(&self.name).and_then(|()| self.place.file().sync_all());
        removed.map_err(|error| self.failed(error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn root_refuses_a_state_directory_that_others_may_write() {
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(here.path());
        assert!(state.lock("kind", "a").is_ok());
        for shared in [here.path().to_owned(), here.path().join("kind")] {
            fs::set_permissions(&shared, fs::Permissions::from_mode(0o775)).unwrap();
            let refused = matches!(state.lock("kind", "a"), Err(StateError::Shared { path, .. }) if path == shared);
            assert_eq!(refused, rustix::process::geteuid().is_root());
            fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn lock_waits_for_a_killed_holder_to_exit() {
        use std::process::{Command, Stdio};
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(here.path());
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let entry = || match state.lock("kind", "a").unwrap() {
            Locked::ByUs(mut entry) => {
                entry.write(&serde_json::json!({ "pid": child.id() })).unwrap();
                entry
            }
            Locked::ByAnother(text) => panic!("{text}"),
        };
        let of_the_living = entry();
        assert!(matches!(state.lock("kind", "a"), Ok(Locked::ByAnother(_))));
        drop(of_the_living);
        // The process is killed but not yet reaped. The test's own process holds the lock in place
        // of the dying process.
        let of_the_dying = entry();
        child.kill().unwrap();
        let waiting = state.clone();
        let waiting = std::thread::spawn(move || matches!(waiting.lock("kind", "a"), Ok(Locked::ByUs(_))));
        std::thread::sleep(Duration::from_millis(100));
        drop(of_the_dying);
        assert!(waiting.join().unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn an_entry_that_is_a_symlink_is_not_followed() {
        let here = tempfile::tempdir().unwrap();
        let (state, victim) = (StateDirectory::at(&here.path().join("state")), here.path().join("victim"));
        drop(state.lock("kind", "a"));
        symlink(&victim, here.path().join("state/kind/b")).unwrap();
        assert!(state.lock("kind", "b").is_err());
        assert!(!victim.exists());
    }

    #[test]
    fn entry_has_one_owner_and_lasts_until_removed() {
        let here = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(&here.path().join("new"));
        let Ok(Locked::ByUs(mut entry)) = state.lock("kind", "a") else { panic!("no process holds the lock") };
        assert_eq!(entry.text().unwrap(), "");
        entry.write(&[1, 2]).unwrap();
        assert!(
            matches!(state.lock("kind", "a"), Ok(Locked::ByAnother(text)) if parse::<Vec<u8>>(&text) == Some(vec![1, 2]))
        );
        assert_eq!(state.entries("kind"), ["a"]);
        drop(entry);
        let Ok(Locked::ByUs(mut entry)) = state.lock("kind", "a") else { panic!("the lock should be free") };
        assert_eq!(
            parse::<Vec<u8>>(&entry.text().unwrap()),
            Some(vec![1, 2]),
            "the text remains after its owner releases the lock"
        );
        entry.write(&[3]).unwrap();
        let text = entry.text().unwrap();
        assert_eq!(parse::<Vec<u8>>(&text), Some(vec![3]));
        let cut = text.trim_end().strip_suffix(']').unwrap();
        assert_eq!(parse::<Vec<u8>>(cut), Some(vec![1, 2]), "an incomplete text is ignored");
        entry.remove().unwrap();
        assert!(state.entries("kind").is_empty());
    }
}
