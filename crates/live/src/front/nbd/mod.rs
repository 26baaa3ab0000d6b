//! The server's side of the NBD protocol, without sockets, clocks or threads.
//!
//! Bytes go in and come out; who moves them, and when, is for the caller. The families of calls, in the order a server
//! makes them for one connection:
//!
//! - [`Handshake`]: send the greeting, feed it what arrives, send what it answers, until a client has chosen one of the
//!   [`Offer`]s, or is to be closed. When it says [`Progress::StartTls`] the rest goes through a TLS transport.
//! - [`Decoder`]: feed it what arrives from then on; it gives out [`Request`]s that are within the export and allowed on
//!   it, and what to answer to the others.
//! - [`Replies`]: the bytes before a read's data, and of every other reply.
//!
//! [`Exports`] says which offers there are, [`Transport`] is the TLS.
//!
//! What the protocol leaves to a server:
//!
//! | what | here |
//! |---|---|
//! | handshake | fixed newstyle alone; `NO_ZEROES`; options: `EXPORT_NAME`, `GO`, `INFO`, `LIST`, `ABORT`, `STARTTLS`, `STRUCTURED_REPLY`, `EXTENDED_HEADERS`, `LIST_META_CONTEXT`, `SET_META_CONTEXT`; all others: `ERR_UNSUP` |
//! | the empty name | the export declared under it; else the only one there is; else unknown |
//! | offered always | CACHE, FLUSH, FUA, CAN_MULTI_CONN (one disk stands behind all connections: a flush covers what was answered on any); DF once structured replies are agreed |
//! | offered where so | READ_ONLY, ROTATIONAL, TRIM, WRITE_ZEROES with NO_HOLE, FAST_ZERO (of what may become a hole; with NO_HOLE: ENOTSUP) |
//! | metadata contexts | `base:allocation`, chosen by its whole name, for the export that is chosen afterwards; listed also for `base:` and for no query |
//! | BLOCK_STATUS | what the back end tells; a reply has so many extents as the server likes, and may end before what was asked for; with REQ_ONE one |
//! | CACHE | a read whose data is dropped, with the client's priority; of more than the maximum block size the first part |
//! | extended headers | every reply is chunks; a write has data, whether `PAYLOAD_LEN` says so or not; other requests that announce data: EINVAL, after it has been skipped; READ and WRITE are as long as without |
//! | not offered | RESIZE (a proposal beside the protocol; a connection keeps the size it was told), payloads of BLOCK_STATUS |
//! | block sizes | 1 byte at least, [`Offer::length_max`] at most, whether the client asks or not; preferred as the export says |
//! | a read or write of more | a read: EINVAL, or EOVERFLOW with DF; a write: the connection is closed, for its data would have to be read |
//! | a read for which there is no memory at once | answered in pieces: several chunks with structured replies and without DF; else one reply whose data comes bit by bit, and the connection is closed if a later piece fails |
//! | a client that ends its sending alone | gets the answers to what it has asked for |
//! | TRIM and WRITE_ZEROES | of any length: they carry no data |
//! | beyond the end | a read or TRIM: EINVAL; WRITE or WRITE_ZEROES: ENOSPC |
//! | nothing long | EINVAL |
//! | a refused write | answered after its data has been skipped: clients do not expect answers to what they are still sending |

mod exports;
mod handshake;
mod offer;
mod terms;
mod tls;
mod transmission;
pub mod wire;

pub use exports::{EXPORTS_MAX, Export, Exports, ExportsError, FieldError};
pub use handshake::{Closed, Handshake, Negotiated, OPTION_BYTES_MAX, OPTIONS_MAX, Progress, TlsMode};
pub use offer::{LENGTH_MAX, Offer, find};
pub use terms::{ReplyForm, Terms};
pub use tls::{Received, ServerConfig, TlsError, TlsFiles, TlsFilesError, Transport};
pub use transmission::{Broken, Decoder, Event, Refusal, Replies, ReplyTo, Request, RequestKind};
