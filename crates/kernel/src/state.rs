//! Where it is kept what must outlive us: journals of changed settings, and which directories are ours.
//!
//! `iosched restore` writes and removes what is said there, so that root uses it only if no other
//! user may write it.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::held::{FileId, Held};
use crate::process;

/// The variable that says where, instead of the usual place.
const VARIABLE: &str = "IOSCHED_STATE_DIR";
/// Where root keeps it: it must be there after a reboot.
const OF_ROOT: &str = "/var/lib/iosched";

/// How long a process may take to end after it was killed: its last I/Os are waited for. One that takes longer hangs.
const DYING_MAX: Duration = Duration::from_secs(10);
/// How often a lock is tried again.
const TICK: Duration = Duration::from_millis(5);

/// Whose an entry is: all kinds of entries name the process.
#[derive(Deserialize)]
struct Owner {
    pid: u32,
}

/// A directory that outlives us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDirectory {
    path: PathBuf,
}

/// Why something cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refuses.
    #[error("{}: {error}; {VARIABLE} can name another directory for the records of settings, which must survive a \
         crash", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Root would do what another user may have written.
    #[error(
        "{path}: {who} may write to this directory, but root trusts its contents; make it root's alone: chown root \
         {path}; chmod 755 {path}; or name another directory with {VARIABLE}", path = path.display()
    )]
    Shared {
        /// The directory.
        path: PathBuf,
        /// The other user, in words.
        who: String,
    },
    /// There is no place for it.
    #[error(
        "neither HOME nor XDG_STATE_HOME is set; {VARIABLE} can name a directory for the records of settings, \
         which must survive a crash"
    )]
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

    /// The directory of a kind of entries, made if it is not there.
    fn place(&self, kind: &str) -> Result<Arc<Held>, StateError> {
        let path = self.path.join(kind);
        let failed = |error| StateError::Io { path: path.clone(), error };
        DirBuilder::new().recursive(true).mode(0o755).create(&path).map_err(failed)?;
        let all = Held::open(&self.path).map_err(failed)?;
        let place = all.directory(Path::new(kind)).map_err(failed)?;
        for held in [&all, &place] {
            if let Some(who) = held.others().map_err(failed)? {
                return Err(StateError::Shared { path: held.path().to_owned(), who });
            }
        }
        Ok(place)
    }

    /// An entry, made if it is not there, for us alone.
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
            // Whoever had it may have removed it before we had the lock.
            let ours = FileId::of_file(&file).map_err(failed)?;
            if place.look(&name).is_ok_and(|there| FileId::of(&there) == ours) {
                return Ok(Locked::ByUs(Entry { place, name, path, file }));
            }
        }
    }
}

/// Takes a file for us alone, or gives what it holds if somebody else has it. Of a process that was killed, the kernel
/// closes files a moment later: the lock of such a process is waited for.
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
    place: Arc<Held>,
    name: PathBuf,
    /// For messages.
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
    /// the last of them is what the entry holds. Where the value ends, bytes.
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

    /// Forgets the values behind `end`, where one ends: that one is what the entry holds, also on the disk.
    pub(crate) fn forget_behind(&mut self, end: u64) -> Result<(), StateError> {
        let done = self.file.set_len(end).and_then(|()| self.file.sync_all());
        done.map_err(|error| self.failed(error))
    }

    /// It is no longer needed.
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
    fn the_lock_of_a_killed_process_is_waited_for() {
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
        // Killed, and nobody has taken notice: its files are here, as if they were still open there.
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
