//! Front ends: the protocols through which clients reach a served disk.
//!
//! The NBD and virtio modules are sans-IO. The thread of a disk, [`reactor`](crate::reactor), moves
//! their bytes. FUSE and ublk bring threads, which send operations to the reactor through a
//! [`Handle`](crate::Handle).
//!
//! A build without the feature of a front end has its stub in `absent` instead, whose calls return
//! an error. The module that a stub replaces names it by `path`.

pub mod fuse;
pub mod nbd;
pub mod ublk;
pub mod vhost;
#[cfg(feature = "vhost")]
pub(crate) mod virtio;
