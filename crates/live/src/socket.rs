//! Unix sockets that only their owner may use, and the replacement of stale sockets of ended
//! servers.
//!
//! This module opens the directory of a socket once, and checks it together with all directories
//! above it. Only root and this user may change the entries of these directories. The module then
//! accesses files in the directory through the open descriptor, so that no other user can replace
//! the directory meanwhile.

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

use crate::path_check::{PathError, check_path};

/// Maximum number of retries. The socket of a killed server still listens until the kernel has
/// cleaned up the server's io_uring.
const TRIES: u32 = 20;
/// Pause before each retry.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// Reason why a socket cannot be opened for listening.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another server listens at the socket.
    #[error("{path}: another server listens on this socket; stop that server, or name another \
             socket", path = path.display())]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The server of the socket has ended, but the socket belongs to another user.
    #[error(
        "{path}: this socket belongs to another user (uid {uid}), and its server has ended. Only that user can \
         remove the socket; name another socket",
        path = path.display()
    )]
    NotOurs {
        /// Path of the socket.
        path: PathBuf,
        /// Owner of the socket.
        uid: u32,
    },
    /// The path is a file of another kind. The server does not overwrite it.
    #[error("{path}: this file exists and is not a socket; remove the file, or name another \
             socket", path = path.display())]
    NotASocket {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another user could replace the socket.
    #[error(
        "{path}: {way}, so another user could replace the socket. Only root and you may have write access to its \
         directory and to all directories above it",
        path = path.display()
    )]
    Replaceable {
        /// Path of the socket.
        path: PathBuf,
        /// Part of the path that another user can replace.
        way: PathError,
    },
    /// Error of the system.
    #[error("{path}: cannot listen on this socket: {source}", path = path.display())]
    Io {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

/// A listening socket with mode 0600. When dropped, it removes its file if nobody has replaced the
/// file.
#[derive(Debug)]
pub struct OwnedListener {
    listener: UnixListener,
    place: Place,
    /// Device and inode of the file.
    file: (u64, u64),
    has_replaced: bool,
}

impl OwnedListener {
    /// Listens at `path`. Replaces the socket of a server that has ended.
    ///
    /// # Errors
    /// Another server listens at the socket, the path is another kind of file, other users could
    /// replace the socket, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        let place = Place::open(path)?;
        let refused = |source: io::Error| SocketError::Io { path: path.to_owned(), source };
        // Two servers can start at the same time. Without the lock, each could treat the other's
        // socket as a stale one.
        let _alone = place.lock();
        let has_replaced = place.clear()?;
        let bound = || -> io::Result<UnixListener> {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            // The mode of the socket becomes the mode of the file when the file is created.
            fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
            bind(&socket, &address)?;
            listen(&socket, BACKLOG)?;
            Ok(UnixListener::from(socket))
        };
        let listener = bound().map_err(refused)?;
        // The socket was bound by its path. If the path led to another directory at that moment,
        // the file is not in the checked directory, and this call fails.
        let found = place.stat().map_err(|error| refused(error.into()))?;
        Ok(Self { listener, place, file: (found.st_dev, found.st_ino), has_replaced })
    }

    /// Returns the listener of the socket.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Returns whether the new socket replaced a stale socket.
    #[must_use]
    pub fn has_replaced(&self) -> bool {
        self.has_replaced
    }

    /// Returns the path of the socket.
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

/// Place of a socket: a name in an open directory.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    directory: OwnedFd,
}

impl Place {
    /// Opens the directory. Refuses a directory that other users could replace, and a directory
    /// whose entries they could change.
    fn open(path: &Path) -> Result<Self, SocketError> {
        let refused = |error: Errno| SocketError::Io { path: path.to_owned(), source: error.into() };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(parent, flags, Mode::empty()).map_err(refused)?;
        let found = fstat(&directory).map_err(refused)?;
        let checked = check_path(parent).map_err(|way| match way {
            PathError::Io { source, .. } => SocketError::Io { path: path.to_owned(), source },
            way => SocketError::Replaceable { path: path.to_owned(), way },
        })?;
        // After the check the path cannot change. But it may have changed between the opening and
        // the check.
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

    /// Locks the directory against other servers that start to listen there. Returns `None` if the
    /// directory cannot be locked, for example because it is unreadable. A conflict is unlikely in
    /// this case.
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

    /// Removes a stale socket of this user. Returns whether there was a stale socket.
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

/// Connects without waiting. Fails with [`WouldBlock`](io::ErrorKind::WouldBlock) if the listener's
/// queue is full.
fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Returns whether the listening process is alive. A process counts as ended if the kernel is still
/// cleaning it up, or if it is not visible.
fn is_served(connection: &UnixStream) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(connection) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.pid.as_raw_nonzero())).unwrap_or_default();
    // The state follows the name, which is in parentheses and can contain any character.
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
    fn socket_in_a_directory_others_may_change_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let bound = |mode: u32| {
            fs::set_permissions(here.path(), fs::Permissions::from_mode(mode)).unwrap();
            OwnedListener::bind(&path)
        };
        for mode in [0o777, 0o757, 0o722] {
            let error = bound(mode).unwrap_err();
            let is_open = |way: &PathError| matches!(way, PathError::Open { mode: found, .. } if *found == mode);
            assert!(matches!(&error, SocketError::Replaceable { way, .. } if is_open(way)), "{error}");
        }
        // In a sticky directory, only the owner of a file can replace it.
        for mode in [0o1777, 0o755, 0o700] {
            bound(mode).unwrap();
        }
        const NOBODY: u32 = 65_534;
        // A group with the same number as the user is private; other groups are not.
        if geteuid().is_root() {
            bound(0o775).unwrap();
            chown(here.path(), None, Some(NOBODY)).unwrap();
            let way = |found: Result<OwnedListener, SocketError>| match found.unwrap_err() {
                SocketError::Replaceable { way, .. } => way,
                other => panic!("{other}"),
            };
            assert!(matches!(way(bound(0o775)), PathError::Open { .. }));
            chown(here.path(), Some(NOBODY), Some(0)).unwrap();
            assert!(matches!(way(bound(0o700)), PathError::OfAnother { uid: NOBODY, .. }));
        }
        assert!(!path.exists(), "no socket is created");
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
        assert!(!path.exists(), "no socket is created");
        fs::set_permissions(&above, fs::Permissions::from_mode(0o1777)).unwrap();
        OwnedListener::bind(&path).unwrap();
    }

    #[test]
    fn socket_is_created_with_its_mode() {
        // A later change of the mode by path could affect a file that another user has put there.
        let here = tempfile::tempdir().unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&watch, here.path(), inotify::WatchFlags::ATTRIB).unwrap();
        let listener = OwnedListener::bind(&here.path().join("s")).unwrap();
        assert_eq!(fs::symlink_metadata(listener.path()).unwrap().permissions().mode() & 0o777, 0o600);
        let changed = inotify::Reader::new(&watch, &mut [MaybeUninit::uninit(); 512]).next().map(drop);
        assert_eq!(changed, Err(Errno::AGAIN), "the mode was changed");
    }

    #[test]
    fn socket_is_private_and_removed_with_its_listener() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let listener = OwnedListener::bind(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(OwnedListener::bind(&path), Err(SocketError::InUse { .. })));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn socket_counts_as_served_until_its_process_is_killed() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("s");
        let listener = OwnedListener::bind(&path).unwrap();
        assert!(is_served(&UnixStream::connect(&path).unwrap()), "this process serves the socket");
        // Another process takes over the socket and is killed. It stays visible until this process
        // waits for it.
        let script = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); time.sleep(100)";
        let other = here.path().join("other");
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", script]).arg(&other).spawn() else {
            println!("skipped: python3 is not installed");
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
        assert!(gone, "a killed process does not serve the socket");
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
