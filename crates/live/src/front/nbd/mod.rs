//! NBD: the exports of a disk, and TLS. The crate [`iosched_nbd`] implements the protocol.
//!
//! [`Exports`] contains the exports that clients can choose. [`Transport`] is the TLS layer of a
//! connection. [`reactor::nbd`](crate::reactor::nbd) is the server. The server makes these choices:
//!
//! | subject | this server |
//! |---|---|
//! | BLOCK_STATUS | the back end reports the allocated parts |
//! | CACHE | a read whose data the server drops, with the priority of the client |
//! | a read for which there is not enough memory now | answered in pieces. With structured replies and without DF: several chunks. Otherwise: one reply, whose data arrives in pieces; the server closes the connection if a later piece fails |
//! | a client that shuts down only its sending side | gets the answers to its requests |

mod exports;
mod tls;

pub use exports::{EXPORTS_MAX, Export, Exports, ExportsError, FieldError};
pub use tls::{Received, ServerConfig, TlsError, TlsFiles, TlsFilesError, Transport};
