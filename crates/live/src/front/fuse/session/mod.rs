//! A session with the kernel, in which a disk answers file system requests.

mod budget;
mod clients;
mod filesystem;
mod nodes;
mod process;
mod transfer;

use std::io;
use std::path::Path;
use std::sync::Arc;

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};

use super::mountpoint::{self, MountError, Unmounter};
use super::{MountOptions, check};
use crate::Handle;
use clients::{Clients, Sweeper};
use filesystem::{Access, DiskFs};

/// Number of threads that take requests from the kernel.
const THREADS: usize = 1;

/// A mounted disk. It is unmounted when this value is dropped.
pub struct Mounted {
    session: BackgroundSession,
    unmounter: Unmounter,
    _sweeper: Sweeper,
}

/// Mounts a served disk with FUSE in a directory.
///
/// # Errors
/// The directory cannot be a mount point, or the system does not allow the mount.
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
    /// Returns a handle that unmounts the disk from any thread.
    #[must_use]
    pub fn unmounter(&self) -> Unmounter {
        self.unmounter.clone()
    }

    /// Returns the directory where the disk is mounted.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.unmounter.directory()
    }

    /// Waits until this or another process has unmounted the disk, and no process uses it.
    ///
    /// # Errors
    /// Reading from `/dev/fuse` fails while the disk is mounted.
    pub fn wait(self) -> io::Result<()> {
        match self.session.join() {
            // The last close of a detached mount can end the connection while the session reads the
            // request of this close.
            Err(error) if is_aborted(&error) && !self.unmounter.is_mounted() => Ok(()),
            ended => ended,
        }
    }
}

fn is_aborted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::CONNABORTED.raw_os_error())
}
