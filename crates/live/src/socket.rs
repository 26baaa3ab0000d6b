//! Unix sockets that only their owner may use, and what to do about the ones that others left.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};

/// Who takes a killed server's place finds it listening until the kernel has cleared its io_uring away: it is asked so
/// many times more.
const TRIES: u32 = 20;
/// After so long each.
const PAUSE: Duration = Duration::from_millis(50);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Somebody else listens there.
    #[error("{path}: another server listens there; stop that one, or name another socket", path = path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The socket of a server that is gone, but of another user: it is not ours to remove.
    #[error(
        "{path}: a server of another user (uid {uid}) has left its socket there; it is theirs to remove, so name another socket",
        path = path.display()
    )]
    NotOurs {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// A file that is no socket: nothing is overwritten.
    #[error("{path}: there is a file of that name, and it is not a socket; remove it, or name another", path = path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
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
    path: PathBuf,
    /// Device and inode of the file.
    file: (u64, u64),
    has_replaced: bool,
}

impl OwnedListener {
    /// Listens at `path`. The file of a server that is gone is replaced.
    ///
    /// # Errors
    /// If another server listens there, another kind of file is there, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        // Two servers that begin at the same time would take each other for one that is gone.
        let _alone = lock_directory(path);
        let has_replaced = clear(path)?;
        let refused = |source: io::Error| SocketError::Io { path: path.to_owned(), source };
        let bound = || -> io::Result<UnixListener> {
            let address = SocketAddrUnix::new(path)?;
            let flags = SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            bind(&socket, &address)?;
            // Nobody can connect before `listen`.
            rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
            listen(&socket, BACKLOG)?;
            Ok(UnixListener::from(socket))
        };
        let listener = bound().map_err(refused)?;
        let metadata = fs::symlink_metadata(path).map_err(refused)?;
        Ok(Self { listener, path: path.to_owned(), file: (metadata.dev(), metadata.ino()), has_replaced })
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
        &self.path
    }
}

impl Drop for OwnedListener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Nobody else begins to listen in the directory of `path` as long as this is there. Without it, as in a directory
/// that cannot be read, it is most likely nobody as well.
fn lock_directory(path: &Path) -> Option<fs::File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = fs::File::open(parent).ok()?;
    for _ in 0..TRIES {
        match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(directory),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
    None
}

/// Connects, or fails with [`WouldBlock`](io::ErrorKind::WouldBlock) if whoever listens takes nobody at present.
fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Removes the socket of a server that is gone, if it was ours. Whether there was one.
fn clear(path: &Path) -> Result<bool, SocketError> {
    let refused = |source| SocketError::Io { path: path.to_owned(), source };
    let uid = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(refused(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket { path: path.to_owned() }),
        Ok(found) => found.uid(),
    };
    let mut tries = TRIES;
    loop {
        match connect_at_once(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                if uid != rustix::process::geteuid().as_raw() {
                    return Err(SocketError::NotOurs { path: path.to_owned(), uid });
                }
                fs::remove_file(path).map_err(refused)?;
                return Ok(true);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(refused(error)),
            Ok(connection) if is_served(&connection) => return Err(SocketError::InUse { path: path.to_owned() }),
            _ if tries == 0 => return Err(SocketError::InUse { path: path.to_owned() }),
            _ => tries -= 1,
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the process that listens at the other end is alive: not if it was killed and the kernel still clears it
/// away, nor if it is none that we can see.
fn is_served(connection: &UnixStream) -> bool {
    let Ok(peer) = rustix::net::sockopt::socket_peercred(connection) else { return false };
    let stat = fs::read_to_string(format!("/proc/{}/stat", peer.pid.as_raw_nonzero())).unwrap_or_default();
    // The state comes behind the name, which is in parentheses and may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

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
    fn who_listens_is_alive_or_gone() {
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
    fn the_socket_of_a_server_that_is_gone_is_replaced_and_another_file_is_not() {
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
