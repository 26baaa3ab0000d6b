//! Unix sockets that only their owner may use, and what to do about the ones that others left.
//!
//! The directory of a socket is opened once and checked with all directories above it: nobody but root and this user may
//! change their entries. What is found, made and removed there is looked at through that descriptor, so that nobody can
//! exchange it meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, open, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;

use crate::way::{WayError, check_way};

/// A server that takes the place of a killed one finds it listening until the kernel has cleared its io_uring away: it
/// tries so many times more.
const TRIES: u32 = 20;
/// After so long each.
const PAUSE: Duration = Duration::from_millis(50);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody else listens there.
    #[error("{path}: another server is listening there; stop it, or name another socket", path = path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket of a server that is gone, but of another user: it is not ours to remove.
    #[error(
        "{path}: is the socket of an ended server of another user (uid {uid}), who has to remove it; name another \
         socket",
        path = path.display()
    )]
    NotOurs {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// A file that is no socket: nothing is overwritten.
    #[error("{path}: exists and is not a socket; remove it, or name another", path = path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// Another user could put another server's socket there.
    #[error(
        "{path}: {way}, so another user could replace the socket; name a socket in a directory that, like all \
         directories above it, only root and you may write to",
        path = path.display()
    )]
    Replaceable {
        /// The socket.
        path: PathBuf,
        /// What another user may exchange.
        way: WayError,
    },
    /// The system refuses.
    #[error("{path}: cannot listen there: {source}", path = path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A socket of mode 0600 that is listened on; when it is dropped its file goes, if it is still ours.
#[derive(Debug)]
pub struct OwnedListener {
    listener: UnixListener,
    place: Place,
    /// Device and inode of the file.
    file: (u64, u64),
    has_replaced: bool,
}

impl OwnedListener {
    /// Listens at `path`. The file of a server that is gone is replaced.
    ///
    /// # Errors
    /// If another server listens there, another kind of file is there, other users could replace the socket, or the
    /// system refuses.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let place = Place::open(path)?;
        let refused = |source: io::Error| SocketError::Io { path: path.to_owned(), source };
        // Two servers that begin at the same time would take each other for one that is gone.
        let _alone = place.lock();
        let has_replaced = place.clear()?;
        let bound = || -> io::Result<UnixListener> {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            // The file has the mode of the socket from the moment when it is there.
            fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
            bind(&socket, &address)?;
            listen(&socket, BACKLOG)?;
            Ok(UnixListener::from(socket))
        };
        let listener = bound().map_err(refused)?;
        // It was bound by its path: if that led elsewhere meanwhile, it is not in the directory that was checked.
        let found = place.stat().map_err(|error| refused(error.into()))?;
        Ok(Self { listener, place, file: (found.st_dev, found.st_ino), has_replaced })
    }

    /// What is listened on.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Whether the socket of a server that is gone stood there.
    #[must_use]
    pub fn has_replaced(&self) -> bool {
        self.has_replaced
    }

    /// Where.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place.path
    }
}

impl Drop for OwnedListener {
    fn drop(&mut self) {
        if self.place.stat().is_ok_and(|found| (found.st_dev, found.st_ino) == self.file) {
            let _ = self.place.remove();
        }
    }
}

/// Where a socket is or will be: a name in a directory that is held open.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    directory: OwnedFd,
}

impl Place {
    /// Opens the directory. Refuses one that other users could exchange, or whose entries they could.
    fn open(path: &Path) -> Result<Self, SocketError> {
        let refused = |error: Errno| SocketError::Io { path: path.to_owned(), source: error.into() };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(parent, flags, Mode::empty()).map_err(refused)?;
        let found = fstat(&directory).map_err(refused)?;
        let checked = check_way(parent).map_err(|way| match way {
            WayError::Io { source, .. } => SocketError::Io { path: path.to_owned(), source },
            way => SocketError::Replaceable { path: path.to_owned(), way },
        })?;
        // The way cannot change any more. It may have changed between the opening and the check.
        if checked != (found.st_dev, found.st_ino) {
            return Err(refused(Errno::STALE));
        }
        Ok(Self { path: path.to_owned(), directory })
    }

    fn name(&self) -> &[u8] {
        self.path.file_name().map_or(b"", |name| name.as_bytes())
    }

    fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.directory, self.name(), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn remove(&self) -> Result<(), Errno> {
        unlinkat(&self.directory, self.name(), AtFlags::empty())
    }

    /// Nobody else begins to listen in the directory as long as this is there. Without it, as in a directory that
    /// cannot be read, it is most likely nobody as well.
    fn lock(&self) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.directory, ".", flags, Mode::empty()).ok()?;
        for _ in 0..TRIES {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(directory),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        None
    }

    /// Removes the socket of a server that is gone, if it was ours. Whether there was one.
    fn clear(&self) -> Result<bool, SocketError> {
        let path = || self.path.clone();
        let refused = |source: io::Error| SocketError::Io { path: path(), source };
        let uid = match self.stat() {
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(refused(error.into())),
            Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::Socket => {
                return Err(SocketError::NotASocket { path: path() });
            }
            Ok(found) => found.st_uid,
        };
        let mut tries = TRIES;
        loop {
            match connect_at_once(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if uid != geteuid().as_raw() {
                        return Err(SocketError::NotOurs { path: path(), uid });
                    }
                    self.remove().map_err(|error| refused(error.into()))?;
                    return Ok(true);
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(refused(error)),
                Ok(connection) if is_served(&connection) => return Err(SocketError::InUse { path: path() }),
                _ if tries == 0 => return Err(SocketError::InUse { path: path() }),
                _ => tries -= 1,
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Connects, or fails with [`WouldBlock`](io::ErrorKind::WouldBlock) if whoever listens takes nobody at present.
fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Whether the process that listens at the other end is alive: not if it was killed and the kernel still clears it
/// away, nor if it is none that we can see.
fn is_served(connection: &UnixStream) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(connection) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.pid.as_raw_nonzero())).unwrap_or_default();
    // The state comes behind the name, which is in parentheses and may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem::MaybeUninit;
    use std::os::unix::fs::{PermissionsExt, chown};

    use rustix::fs::inotify;

    use super::*;

    #[test]
    fn a_directory_that_others_may_change_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let bound = |mode: u32| {
            fs::set_permissions(here.path(), fs::Permissions::from_mode(mode)).unwrap();
            OwnedListener::bind(&path)
        };
        for mode in [0o777, 0o757, 0o722] {
            let error = bound(mode).unwrap_err();
            let is_open = |way: &WayError| matches!(way, WayError::Open { mode: found, .. } if *found == mode);
            assert!(matches!(&error, SocketError::Replaceable { way, .. } if is_open(way)), "{error}");
        }
        // Nobody can replace what another owns in a sticky directory.
        for mode in [0o1777, 0o755, 0o700] {
            bound(mode).unwrap();
        }
        const NOBODY: u32 = 65_534;
        // A group of the user's own number is private; others are not.
        if geteuid().is_root() {
            bound(0o775).unwrap();
            chown(here.path(), None, Some(NOBODY)).unwrap();
            let way = |found: Result<OwnedListener, SocketError>| match found.unwrap_err() {
                SocketError::Replaceable { way, .. } => way,
                other => panic!("{other}"),
            };
            assert!(matches!(way(bound(0o775)), WayError::Open { .. }));
            chown(here.path(), Some(NOBODY), Some(0)).unwrap();
            assert!(matches!(way(bound(0o700)), WayError::OfAnother { uid: NOBODY, .. }));
        }
        assert!(!path.exists(), "nothing is made there");
    }

    #[test]
    fn a_socket_below_a_directory_that_others_may_rename_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let above = here.path().join("above");
        let path = above.join("mine/s");
        fs::create_dir_all(above.join("mine")).unwrap();
        fs::set_permissions(&above, fs::Permissions::from_mode(0o777)).unwrap();
        let error = OwnedListener::bind(&path).unwrap_err();
        let expected = format!("other users may write to {} (mode 0777), so another user could", above.display());
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(!path.exists(), "nothing is made there");
        fs::set_permissions(&above, fs::Permissions::from_mode(0o1777)).unwrap();
        OwnedListener::bind(&path).unwrap();
    }

    #[test]
    fn a_socket_has_its_mode_from_the_beginning() {
        // Who changes the mode by the path afterwards may change that of a file that another user has put there.
        let here = tempfile::tempdir().unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, here.path(), inotify::WatchFlags::ATTRIB).unwrap();
        let listener = OwnedListener::bind(&here.path().join("s")).unwrap();
        assert_eq!(fs::symlink_metadata(listener.path()).unwrap().permissions().mode() & 0o777, 0o600);
        let changed = inotify::Reader::new(&watch, &mut [MaybeUninit::uninit(); 512]).next().map(drop);
        assert_eq!(changed, Err(Errno::AGAIN), "the mode was changed");
    }

    #[test]
    fn a_socket_is_its_owners_alone_and_goes_with_its_listener() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let listener = OwnedListener::bind(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(OwnedListener::bind(&path), Err(SocketError::InUse { .. })));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_is_served_until_its_process_is_gone() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let listener = OwnedListener::bind(&path).unwrap();
        assert!(is_served(&UnixStream::connect(&path).unwrap()), "it is we");
        // Another process of ours takes the socket over and is killed: it is to be seen until we wait for it.
        let script = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(100)";
        let other = here.path().join("other");
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", script]).arg(&other).spawn() else {
            println!("skipped: python3 is not here");
            return;
        };
        let connection = loop {
            match UnixStream::connect(&other) {
                Ok(connection) => break connection,
                Err(_) => std::thread::sleep(PAUSE),
            }
        };
        assert!(is_served(&connection));
        child.kill().unwrap();
        let gone = (0..TRIES).any(|_| {
            std::thread::sleep(PAUSE);
            !is_served(&connection)
        });
        assert!(gone, "a process that was killed does not serve");
        child.wait().unwrap();
        assert!(!is_served(&connection));
        drop(listener);
    }

    #[test]
    fn only_a_left_over_socket_is_replaced() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a stale socket");
        drop(OwnedListener::bind(&path).unwrap());
        fs::write(&path, "precious").unwrap();
        assert!(matches!(OwnedListener::bind(&path), Err(SocketError::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_listener_leaves_the_socket_of_its_successor_alone() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let first = OwnedListener::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = OwnedListener::bind(&path).unwrap();
        drop(first);
        assert!(UnixStream::connect(second.path()).is_ok());
    }
}
