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
//! - [`Handshake`]: send the greeting, pass received bytes to the handshake, and send its answers.
//!   The handshake ends when the client has chosen one of the [`Offer`]s, or when the connection
//!   must be closed. After [`Progress::StartTls`] all further bytes go through TLS.
//! - [`Decoder`]: pass the bytes after the handshake to the decoder. It returns every [`Request`]
//!   that is within the export and allowed, and the answers to all other requests.
//! - [`Replies`]: writes the header before a read's data, and every other reply.
//!
//! # Choices that the protocol leaves to a server
//!
//! | subject | this library |
//! |---|---|
//! | handshake | fixed newstyle only; `NO_ZEROES`; options: `EXPORT_NAME`, `GO`, `INFO`, `LIST`, `ABORT`, `STARTTLS`, `STRUCTURED_REPLY`, `EXTENDED_HEADERS`, `LIST_META_CONTEXT`, `SET_META_CONTEXT`; all others: `ERR_UNSUP` |
//! | the empty name | the export with the empty name; else the only export; else unknown |
//! | always offered | CACHE, FLUSH, FUA, CAN_MULTI_CONN (one disk is behind all connections: a flush covers every write that the server has answered on any of them); DF after structured replies are negotiated |
//! | offered if the export has it | READ_ONLY, ROTATIONAL, TRIM, WRITE_ZEROES with NO_HOLE, FAST_ZERO (only for zeroes that may become a hole; with NO_HOLE: ENOTSUP) |
//! | metadata contexts | `base:allocation`, chosen by its whole name, for the export that the client chooses afterwards; a list also contains it for the query `base:` and without a query |
//! | BLOCK_STATUS | the server decides how many extents a reply has; the reply may end before the end of the request; with REQ_ONE it has one extent |
//! | CACHE | a read whose data the server drops; if the range is longer than the maximum block size, only its first part |
//! | extended headers | every reply consists of chunks; a write has data with and without `PAYLOAD_LEN`; other requests that announce data: EINVAL, after the server skips the data; READ and WRITE have the same maximum length as without extended headers |
//! | not offered | RESIZE (a proposal outside the protocol; the size stays the same during a connection), payloads of BLOCK_STATUS |
//! | block sizes | at least 1 byte, at most [`Offer::length_max`], whether or not the client asks; the export gives the preferred size |
//! | a read or write above the maximum | a read: EINVAL, or EOVERFLOW with DF; a write: the server closes the connection, because it would have to receive the data |
//! | TRIM and WRITE_ZEROES | any length: they have no data |
//! | beyond the end | a read or TRIM: EINVAL; WRITE or WRITE_ZEROES: ENOSPC |
//! | a request without bytes | EINVAL |
//! | a refused write | the server skips its data and then answers: clients do not expect an answer while they send |
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
