//! A served disk as disks of virtual machines. With the protocol vhost-user-blk, QEMU and other
//! programs let another process serve a virtio disk.
//!
//! Each [`Door`] is a unix socket with an export. A connected frontend, such as QEMU, is a client
//! of the disk, with the class, level, weight and group of the export. All requests of a guest
//! belong to one client. A socket serves one frontend at a time. The next frontend waits until the
//! current frontend disconnects.
//!
//! A separate thread reads the messages on the socket, and passes them to the disk's thread. The
//! disk's thread itself serves the queues of guests, as it serves NBD connections. It copies data
//! once, between the guest's memory and the disk's memory. The crate `vhost` implements the
//! protocol, and `virtio-queue` implements the rings. This module does not use the crate
//! `vhost-user-backend`, for two reasons. Its threads would pass every request to the disk's
//! thread. It also cannot keep requests in flight for the next server (inflight region).
//!
//! A server can be killed at any time. The frontend keeps the requests in flight, and the next
//! server executes them again. A guest cannot be migrated, because the server does not log its
//! writes to the guest's memory.
//!
//! The server maps a frontend's memory. A frontend that shortens the file of this memory would end
//! the server's process. Therefore only the owner of the socket may connect.
//!
//! Without the feature `vhost`, [`serve`] and [`check`] return an error.

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

/// A socket for frontends, with the export that it serves.
#[derive(Debug)]
pub struct Door {
    /// Socket of the door.
    pub listener: OwnedListener,
    /// Export for the frontends that connect to the socket.
    pub export: Export,
}

/// Reason why virtual machines cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum VhostError {
    /// This build lacks the feature `vhost`.
    #[error("this build of iosched cannot serve virtual machines; build it with --features vhost or full")]
    NotBuilt,
    /// The disk accepts no clients.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system cannot create a thread or a descriptor.
    #[error("cannot serve virtual machines on the vhost-user socket: {0}")]
    Socket(io::Error),
}

/// Checks whether this build can serve virtual machines.
///
/// # Errors
/// The build lacks the feature `vhost`.
pub fn check() -> Result<(), VhostError> {
    if cfg!(feature = "vhost") { Ok(()) } else { Err(VhostError::NotBuilt) }
}
