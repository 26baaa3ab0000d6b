#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `handshake/` | the handshake of a server, and its options |
//! | `offer.rs`, `terms.rs` | exports as clients see them; the result of the handshake |
//! | `request.rs`, `reply.rs`, `error.rs` | decoding of requests, replies, errors of replies |
//! | `client.rs` | messages of a client, and decoding of answers |
//! | `wire.rs` | the numbers of the protocol, and messages of fixed size |
//!
//! # The server's side
//!
//! A server makes these calls for one connection:
//!
//! - [`Handshake`]: send the greeting, feed the handshake with received bytes, and send its
//!   answers. It ends when the client has chosen one of the [`Offer`]s, or must be closed. After
//!   [`Progress::StartTls`] all further bytes go through TLS.
//! - [`Decoder`]: feed it with the bytes after the handshake. It returns the [`Request`]s that are
//!   within the export and allowed, and the answers to the other requests.
//! - [`Replies`]: writes the header before a read's data, and every other reply.
//!
//! # Choices that the protocol leaves to a server
//!
//! | subject | this library |
//! |---|---|
//! | handshake | fixed newstyle only; `NO_ZEROES`; options: `EXPORT_NAME`, `GO`, `INFO`, `LIST`, `ABORT`, `STARTTLS`, `STRUCTURED_REPLY`, `EXTENDED_HEADERS`, `LIST_META_CONTEXT`, `SET_META_CONTEXT`; all others: `ERR_UNSUP` |
//! | the empty name | the export with the empty name; else the only export; else unknown |
//! | always offered | CACHE, FLUSH, FUA, CAN_MULTI_CONN (one disk is behind all connections: a flush covers every write that was answered on any of them); DF after structured replies are negotiated |
//! | offered if the export has it | READ_ONLY, ROTATIONAL, TRIM, WRITE_ZEROES with NO_HOLE, FAST_ZERO (if the zeroes may become a hole; with NO_HOLE: ENOTSUP) |
//! | metadata contexts | `base:allocation`, set by its whole name, for the export that the client chooses afterwards; also listed for `base:` and without a query |
//! | BLOCK_STATUS | the server decides how many extents a reply has; the reply may end before the end of the request; with REQ_ONE it has one extent |
//! | CACHE | a read whose data is dropped; if it is longer than the maximum block size, its first part |
//! | extended headers | every reply is chunks; a write has data with and without `PAYLOAD_LEN`; other requests that announce data: EINVAL, after the data is skipped; READ and WRITE have the same maximum length as without |
//! | not offered | RESIZE (a proposal outside of the protocol; a connection keeps its size), payloads of BLOCK_STATUS |
//! | block sizes | at least 1 byte, at most [`Offer::length_max`], whether or not the client asks; the export gives the preferred size |
//! | a longer read or write | a read: EINVAL, or EOVERFLOW with DF; a write: the connection is closed, because its data would have to be read |
//! | TRIM and WRITE_ZEROES | any length: they have no data |
//! | beyond the end | a read or TRIM: EINVAL; WRITE or WRITE_ZEROES: ENOSPC |
//! | a request without bytes | EINVAL |
//! | a refused write | answered after its data is skipped: clients do not expect an answer while they send |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod client;
mod error;
mod handshake;
mod offer;
mod reply;
mod request;
mod terms;
pub mod wire;

pub use error::ErrorCode;
pub use handshake::{Closed, Handshake, Negotiated, OPTION_BYTES_MAX, OPTIONS_MAX, Progress, TlsMode};
pub use offer::{LENGTH_MAX, Offer, find};
pub use reply::{Extent, Replies, ReplyTo};
pub use request::{Broken, Decoder, Event, Refusal, Request, RequestKind};
pub use terms::{ReplyForm, Terms};
