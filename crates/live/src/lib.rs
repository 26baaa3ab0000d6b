//! Served disks: the schedulers of [`iosched`] in the data path of real storage.
//!
//! | module | content |
//! |---|---|
//! | [`disk`] | the request queue of a served disk, sans-IO: clients, operations, commands |
//! | [`reactor`] | the only thread of a disk, and the [`Handle`] for other threads |
//! | [`backend`] | storage of the data: files and block devices, memory, modelled disks |
//! | [`control`] | control of a running disk: a tree of attributes, and its socket |
//! | [`front`] | front ends: the protocols that clients speak |
//! | [`fuse`] | a disk as a file system |
//! | [`Messages`] | messages to the user, from threads that must not wait |
//! | [`metrics`] | metrics for Prometheus |
//! | [`nbd`] | the NBD protocol, sans-IO |
//! | [`ublk`] | a disk as block devices |
//! | [`vhost`] | a disk as disks of virtual machines |
//!
//! A front end gives [`disk`] an operation with a cookie. [`disk`] gives the back end a command
//! with segments of memory. Front ends and back ends do not depend on each other.
//!
//! | feature | content |
//! |---|---|
//! | `fuse` (default) | [`fuse`] |
//! | `tls` (default) | NBD inside TLS |
//! | `vhost` (default) | [`vhost`] |
//! | `histories` | whole histories of served disks in virtual time, for tests |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod backend;
pub mod control;
pub mod disk;
mod errno;
pub mod front;
mod messages;
pub mod metrics;
mod path_check;
mod quote;
pub mod reactor;
mod ring;
mod shares;
mod socket;
mod sys;

pub use disk::{LiveDisk, SyncWrites};
pub use errno::Errno;
#[cfg(feature = "vhost")]
pub(crate) use front::virtio;
pub use front::{fuse, nbd, ublk, vhost};
pub use iosched_system::{Buffer, Pool, RingError};
pub use messages::{Messages, Unsaid};
pub use path_check::PathError;
pub use quote::{QUOTED_CHARS_MAX, cut, shortened};
pub use reactor::Handle;
pub use shares::{Portion, Shares};
pub use socket::{OwnedListener, SocketError};
pub use sys::is_printable;
