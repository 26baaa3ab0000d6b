//! A live disk as a file system: `DIR/<name>` is the disk as one file, and `DIR/block/<name>/` its control tree.
//!
//! The file has the disk's size and no page cache: each read and write goes through the elevator as a request of the process that
//! made it, with that process' ioprio, and is answered when the disk has done it. `fsync` is a flush, `O_SYNC` and `O_DSYNC`
//! are force-unit-access, a punched hole is a trim, a zeroed range is written as zeroes.

mod budget;
mod clients;
mod filesystem;
mod mountpoint;
mod nodes;
mod process;
mod transfer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};

use crate::Handle;
use clients::{Clients, Sweeper};
use filesystem::{Access, DiskFs};
pub use mountpoint::{MountError, Unmounted, Unmounter, User};

/// Threads that take requests from the kernel.
const THREADS: usize = 1;

/// How a disk is mounted.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Where.
    pub directory: PathBuf,
    /// Whether other users may use the disk, too.
    pub allow_other: bool,
    /// Whether the disk can only be read.
    pub read_only: bool,
}

/// A disk that is mounted. Dropping it unmounts it.
pub struct Mounted {
    session: BackgroundSession,
    unmounter: Unmounter,
    _sweeper: Sweeper,
}

/// Whether a disk of that name can be mounted on `directory`; that one by its full name.
///
/// # Errors
/// If not.
pub fn check(name: &str, directory: &Path) -> Result<PathBuf, MountError> {
    if name.is_empty() || name.contains('/') || [".", "..", "block"].contains(&name) {
        return Err(MountError::Name { name: name.to_owned() });
    }
    mountpoint::check(directory)
}

/// Mounts a disk that is served.
///
/// # Errors
/// If the directory cannot be mounted on, or the system does not let us.
pub fn mount(disk: &Handle, options: &MountOptions) -> Result<Mounted, MountError> {
    let name = disk.name();
    let directory = check(name, &options.directory)?;
    let place = directory.clone();
    let failed = |source: io::Error| MountError::Mount { directory: place.clone(), source };
    let clients = Arc::new(Clients::new(disk.clone(), options.read_only));
    let writable = if options.read_only { 0o444 } else { 0o666 };
    let access = Access {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        disk_mode: if options.allow_other { writable } else { writable & 0o600 },
        read_only: options.read_only,
    };
    let file_system = DiskFs::new(disk.clone(), Arc::clone(&clients), access);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(format!("{}{name}", mountpoint::SOURCE)),
        MountOption::Subtype("iosched".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    config.clone_fd = THREADS > 1;
    let session = Session::new(file_system, &directory, &config).and_then(Session::spawn).map_err(failed)?;
    let sweeper = Sweeper::spawn(clients).map_err(failed)?;
    Ok(Mounted { session, unmounter: Unmounter::new(directory), _sweeper: sweeper })
}

impl Mounted {
    /// What unmounts it, from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Where.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.unmounter.directory()
    }

    /// Waits until it is unmounted, by us or by anybody, and nobody uses it any more.
    ///
    /// # Errors
    /// If the kernel and we no longer understand each other.
    pub fn wait(self) -> io::Result<()> {
        self.session.join()
    }
}
