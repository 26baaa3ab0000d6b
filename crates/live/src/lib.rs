//! A live disk: the elevators of [`iosched`] in the data path of real storage.
//!
//! | module | what it is |
//! |---|---|
//! | [`disk`] | the live request queue, sans-IO: clients, operations, commands |
//! | [`reactor`] | the one thread of a disk, and the [`Handle`] that others have to it |
//! | [`backend`] | what the data is kept on: files and block devices, memory, modelled disks |
//! | [`control`] | control of a disk while it runs: a tree of attributes, and a socket to reach it |
//! | [`front`] | front ends: the protocols that clients speak |
//! | [`fuse`] | a disk as a file system |
//! | [`Messages`] | what a person is told, by threads that must not wait |
//! | [`metrics`] | what Prometheus reads |
//! | [`nbd`] | the NBD protocol, sans-IO |
//! | [`ublk`] | a disk as block devices |
//! | [`vhost`] | a disk as disks of virtual machines |
//!
//! Between front ends and [`disk`] goes an operation with a cookie, between [`disk`] and a back end a command with
//! segments of memory: neither side knows the other.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod backend;
pub mod control;
pub mod disk;
mod errno;
pub mod front;
mod messages;
pub mod metrics;
mod quote;
pub mod reactor;
mod ring;
mod shares;
mod socket;
mod sys;
mod way;

pub use disk::{LiveDisk, SyncWrites};
pub use errno::Errno;
#[cfg(feature = "vhost")]
pub(crate) use front::virtio;
pub use front::{fuse, nbd, ublk, vhost};
pub use iosched_system::{Buffer, Pool, RingError};
pub use messages::{Messages, Unsaid};
pub use quote::{QUOTED_CHARS_MAX, cut, shortened};
pub use reactor::Handle;
pub use shares::Shares;
pub use socket::{OwnedListener, SocketError};
pub use sys::is_printable;
pub use way::WayError;
