//! NBD: the exports of a disk, and TLS. The crate [`iosched_nbd`] implements the protocol.
//!
//! [`Exports`] has the exports that clients can choose. [`Transport`] is the TLS layer of a
//! connection. [`reactor::nbd`](crate::reactor::nbd) is the server. It makes these choices:
//!
//! | subject | this server |
//! |---|---|
//! | BLOCK_STATUS | the back end reports the allocated parts |
//! | CACHE | a read whose data is dropped, with the priority of the client |
//! | a read for which there is no memory at once | answered in pieces: several chunks with structured replies and without DF; else one reply whose data arrives bit by bit, and the connection is closed if a later piece fails |
//! | a client that shuts down its sending side only | gets the answers to its requests |

mod exports;
mod tls;

pub use exports::{EXPORTS_MAX, Export, Exports, ExportsError, FieldError};
pub use tls::{Received, ServerConfig, TlsError, TlsFiles, TlsFilesError, Transport};
