//! Front ends: the protocols through which clients reach a served disk.
//!
//! The NBD and virtio modules are sans-IO. The thread of a disk, [`reactor`](crate::reactor), sends
//! and receives their bytes. FUSE and ublk have their own threads, which send operations to the
//! reactor through a [`Handle`](crate::Handle).
//!
//! In a build without the feature of a front end, a stub in `absent` replaces the front end. The
//! calls of a stub return an error. The replaced module refers to the stub by `path`.

pub mod fuse;
pub mod nbd;
pub mod ublk;
pub mod vhost;
#[cfg(feature = "vhost")]
pub(crate) mod virtio;
