//! A live disk as disks of virtual machines: vhost-user-blk, the protocol by which QEMU and others leave a virtio disk
//! to another process.
//!
//! Each [`Door`] is a unix socket and an export. Who connects, a frontend such as QEMU, is a client of the disk with the
//! class, level, weight and group of that export: all requests of a guest are one client's. One frontend is served at a
//! time by each socket; the next one waits until it has gone.
//!
//! The socket is served by a thread, which only ever says what has changed; guests' queues are served in the disk's own
//! thread, as NBD's connections are, with one copy between the guest's memory and the disk's. The crate `vhost` has the
//! protocol, `virtio-queue` the rings. The crate `vhost-user-backend`, which would serve queues in threads of its own,
//! cannot keep requests under way for the next server (inflight region), and its threads would hand every request to
//! the disk's.
//!
//! A server may be killed at any time: the frontend keeps what was under way, and when it connects to the next server
//! that does it again. A guest cannot be migrated, for what is written to its memory is not logged.
//!
//! A frontend's memory is mapped. One that makes its file shorter meanwhile ends this process, so that only the
//! socket's owner may connect.
//!
//! All of it but the names needs the feature `vhost`.

#[cfg(feature = "vhost")]
pub(crate) mod channel;
#[cfg(feature = "vhost")]
mod session;
#[cfg_attr(not(feature = "vhost"), path = "../absent/vhost_sockets.rs")]
mod sockets;

use std::io;

use crate::OwnedListener;
use crate::nbd::Export;
use crate::reactor::ConnectError;
pub use sockets::{Sockets, serve};

/// Where a frontend connects, and what it finds there.
#[derive(Debug)]
pub struct Door {
    /// Where.
    pub listener: OwnedListener,
    /// What it is to the disk.
    pub export: Export,
}

/// Why no virtual machine can be served.
#[derive(Debug, thiserror::Error)]
pub enum VhostError {
    /// This build cannot.
    #[error("this build of iosched cannot serve virtual machines; build it with --features vhost or full")]
    NotBuilt,
    /// The disk does not take clients.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system gives no thread, or no descriptor.
    #[error("cannot serve a socket of virtual machines: {0}")]
    Socket(io::Error),
}

/// Whether this build can serve virtual machines.
///
/// # Errors
/// If not.
pub fn check() -> Result<(), VhostError> {
    if cfg!(feature = "vhost") { Ok(()) } else { Err(VhostError::NotBuilt) }
}
