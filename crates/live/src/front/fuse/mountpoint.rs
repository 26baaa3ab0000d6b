//! The mount point of a disk: its checks, and unmounting.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{UnmountFlags, unmount};

use crate::path_check::{PathError, check_path};

/// Program that mounts and unmounts disks for users other than root.
const FUSERMOUNT: &str = "fusermount3";
/// Prefix of the source of an iosched mount. The disk's name follows.
pub(super) const SOURCE: &str = "iosched:";
/// Maximum number of processes that a message lists as users of a mount.
const USERS_NAMED_MAX: usize = 8;

/// Reason why a disk cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// This build lacks the feature `fuse`.
    #[error("this build of iosched cannot mount disks; install a package, or build it with --features full")]
    NotBuilt,
    /// The disk's name cannot be a file name.
    #[error(
        "{name:?} cannot be the name of the disk; use a name without slashes that is not empty, \".\", \"..\" or \
         \"block\""
    )]
    Name {
        /// Name of the disk.
        name: String,
    },
    /// The server of a mount at this directory has ended.
    #[error(
        "{directory}: the server of this mount has ended (\"Transport endpoint is not connected\"); unmount it \
         with: {FUSERMOUNT} -u {directory}, or as root: umount -l {directory}",
        directory = directory.display()
    )]
    Stale {
        /// Path of the directory.
        directory: PathBuf,
    },
    /// Another disk is mounted at this directory.
    #[error("{directory}: a disk is already mounted on this directory; name another \
             directory", directory = directory.display())]
    Mounted {
        /// Path of the directory.
        directory: PathBuf,
    },
    /// The path is not a usable directory.
    #[error("{directory}: {source}; name an existing directory", directory = directory.display())]
    Directory {
        /// Path of the directory.
        directory: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Another user could replace the directory, and root would mount the disk on the replacement.
    /// Only root gets this error.
    #[error(
        "{directory}: {way}, so another user could replace the directory before the disk is mounted. Only root may \
         have write access to the directory and to all directories above it",
        directory = directory.display()
    )]
    Replaceable {
        /// Path of the directory.
        directory: PathBuf,
        /// Part of the path that another user can replace.
        way: PathError,
    },
    /// The system does not mount the disk.
    #[error("{directory}: cannot mount on this directory: {source}{}", hint(source), directory = directory.display())]
    Mount {
        /// Path of the directory.
        directory: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "; FUSE needs /dev/fuse (modprobe fuse), and fusermount3 (package fuse3) unless you are root"
        }
        io::ErrorKind::PermissionDenied => {
            "; you need access to /dev/fuse, and --allow-other needs user_allow_other in /etc/fuse.conf"
        }
        _ => "",
    }
}

/// Checks a mount point. Returns its full path.
pub(super) fn check(directory: &Path) -> Result<PathBuf, MountError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotConnected => MountError::Stale { directory: directory.to_owned() },
        _ => MountError::Directory { directory: directory.to_owned(), source },
    };
    let full = directory.canonicalize().map_err(refused)?;
    // If the server of a mount has ended, the kernel still answers some calls from its cache.
    // Reading the directory always reaches the server and shows the error.
    std::fs::read_dir(&full).map_err(refused)?;
    if is_ours(&full) {
        return Err(MountError::Mounted { directory: full });
    }
    // Root mounts the disk by path, so no other user may be able to replace the path. For other
    // users, fusermount3 mounts the disk, and checks that the user may write to the directory.
    if rustix::process::geteuid().is_root() {
        check_path(directory).map_err(|way| MountError::Replaceable { directory: directory.to_owned(), way })?;
    }
    Ok(full)
}

/// Returns whether an iosched disk is mounted at this directory.
fn is_ours(directory: &Path) -> bool {
    let mounts = std::fs::read("/proc/self/mounts").unwrap_or_default();
    mounts.split(|&byte| byte == b'\n').any(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let (source, place) = (fields.next().unwrap_or_default(), fields.next().map(unescape));
        source.starts_with(SOURCE.as_bytes()) && place.as_deref() == Some(directory.as_os_str())
    })
}

/// Reverts the escapes that proc(5) describes for white space and backslashes: a backslash and
/// three octal digits.
fn unescape(field: &[u8]) -> std::ffi::OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| tail.get(..3)).flatten();
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes)
}

/// A process that uses a mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Name of the process.
    pub name: String,
    /// Number of the process.
    pub pid: u32,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// Result of unmounting a served disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unmounted {
    /// The disk is unmounted.
    Done,
    /// The disk is in use. No process can open it any more. The mount ends when all its users have
    /// closed their files. The list has only the processes that are visible.
    InUse(Vec<User>),
}

/// Unmounts a served disk, from any thread.
#[derive(Clone, Debug)]
pub struct Unmounter {
    directory: PathBuf,
}

impl Unmounter {
    #[cfg(feature = "fuse")]
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Returns the directory where the disk is mounted.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether the disk is mounted.
    pub(super) fn is_mounted(&self) -> bool {
        is_ours(&self.directory)
    }

    /// Unmounts the disk. If the disk is in use, only detaches the mount from its directory.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn unmount(&self) -> io::Result<Unmounted> {
        if !self.is_mounted() {
            return Ok(Unmounted::Done);
        }
        match self.try_unmount(false) {
            Ok(()) => Ok(Unmounted::Done),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                let users = users(&self.directory);
                self.try_unmount(true)?;
                Ok(Unmounted::InUse(users))
            }
            Err(error) => Err(error),
        }
    }

    fn try_unmount(&self, lazily: bool) -> io::Result<()> {
        let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
        match unmount(&self.directory, flags) {
            Err(rustix::io::Errno::PERM) => self.fusermount(lazily),
            unmounted => Ok(unmounted?),
        }
    }

    /// Unmounts as a user other than root.
    fn fusermount(&self, lazily: bool) -> io::Result<()> {
        let options: &[&str] = if lazily { &["-u", "-z", "--"] } else { &["-u", "--"] };
        let ran = Command::new(FUSERMOUNT).args(options).arg(&self.directory).output()?;
        if ran.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
        let kind = if text.contains("busy") { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
        Err(io::Error::new(kind, text))
    }
}

/// Returns processes with an open file, a working directory or a root directory below `directory`.
fn users(directory: &Path) -> Vec<User> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| uses(pid, directory))
        .take(USERS_NAMED_MAX)
        .map(|pid| User { name: crate::sys::process_name(pid), pid })
        .collect()
}

fn uses(pid: u32, directory: &Path) -> bool {
    let leads_there = |link: &Path| std::fs::read_link(link).is_ok_and(|place| place.starts_with(directory));
    let process = PathBuf::from(format!("/proc/{pid}"));
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    [OsStr::from_bytes(b"cwd"), OsStr::from_bytes(b"root")].iter().any(|link| leads_there(&process.join(link)))
        || files.map(|entry| entry.path()).any(|link| leads_there(&link))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn escapes_in_mount_tables_are_decoded() {
        assert_eq!(unescape(b"/mnt/a\\040b\\134c"), "/mnt/a b\\c");
        assert_eq!(unescape(b"/mnt/\\9"), "/mnt/\\9");
        assert_eq!(unescape(b"\\"), "\\");
    }

    #[test]
    fn a_mount_point_must_be_a_directory() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (path, expected) in [(file, "Not a directory"), (here.path().join("gone"), "No such file")] {
            let message = check(&path).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("name an existing directory"), "{message}");
        }
        assert!(check(here.path()).is_ok());
        assert!(!is_ours(here.path()));
    }

    #[test]
    fn root_refuses_mount_points_that_others_can_replace() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let here = tempfile::tempdir().unwrap();
        let (above, point) = (here.path().join("above"), here.path().join("above/point"));
        std::fs::create_dir_all(&point).unwrap();
        let open = |mode| std::fs::set_permissions(&above, std::fs::Permissions::from_mode(mode)).unwrap();
        open(0o777);
        let message = check(&point).unwrap_err().to_string();
        assert!(
            message.contains("other users may write to") && message.contains("Only root may have write access"),
            "{message}"
        );
        open(0o1777);
        assert_eq!(check(&point).unwrap(), point.canonicalize().unwrap());
        // In a sticky directory, the owner of the mount point can still replace it.
        std::os::unix::fs::chown(&point, Some(65_534), None).unwrap();
        assert!(matches!(check(&point), Err(MountError::Replaceable { .. })));
    }

    #[test]
    fn users_include_processes_that_work_in_the_directory() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().canonicalize().unwrap();
        assert_eq!(users(&path), []);
        let mut child = Command::new("sleep").arg("100").current_dir(&path).spawn().unwrap();
        let found = users(&path);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pid, child.id());
    }
}
