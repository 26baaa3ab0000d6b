//! Replies. For a read, this module writes only the header before the data.

use crate::error::ErrorCode;
use crate::handshake::ALLOCATION_ID;
use crate::terms::{ReplyForm, Terms};
use crate::wire;

/// The fields of a request that its reply repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplyTo {
    /// The request's cookie.
    pub cookie: u64,
    /// The request's first byte on the export.
    pub offset: u64,
}

/// A part of an export with one state in a metadata context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Length, bytes; at least 1.
    pub length: u64,
    /// In [`wire::BASE_ALLOCATION`]: [`wire::STATE_HOLE`] and [`wire::STATE_ZERO`], or 0 for data.
    pub state: u64,
}

/// Writes the replies of one connection.
///
/// With structured replies, the data of a read is one chunk. If there is not enough memory for all
/// the data at once, the data is several chunks. Errors have a message. A success without data is a
/// simple reply, because this reply is the shortest. With extended headers, every reply consists of
/// chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replies {
    form: ReplyForm,
}

impl Replies {
    /// Creates the writer for a connection.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self { form: terms.form }
    }

    /// Appends the header of a chunk with `length` bytes of payload.
    #[inline]
    fn chunk(self, out: &mut Vec<u8>, to: ReplyTo, (flags, kind): (u16, u16), length: u64) {
        let ReplyTo { cookie, offset } = to;
        if self.form == ReplyForm::Extended {
            out.extend_from_slice(&wire::extended_chunk_header(flags, kind, cookie, offset, length));
        } else {
            // The length fits into 32 bits, because reads are short.
            out.extend_from_slice(&wire::chunk_header(flags, kind, cookie, length as u32));
        }
    }

    /// Writes the reply to a completed request that is not a read.
    #[inline]
    pub fn done(self, out: &mut Vec<u8>, to: ReplyTo) {
        if self.form == ReplyForm::Extended {
            self.chunk(out, to, (wire::REPLY_FLAG_DONE, wire::REPLY_TYPE_NONE), 0);
        } else {
            out.extend_from_slice(&wire::simple_reply(0, to.cookie));
        }
    }

    /// Writes the header of the reply to a completed read. The caller then sends the `length` bytes
    /// of data, at least 1.
    #[inline]
    pub fn data(self, out: &mut Vec<u8>, to: ReplyTo, length: u64) {
        if self.may_come_in_pieces() {
            self.piece(out, to, to.offset, length, true);
        } else {
            out.extend_from_slice(&wire::simple_reply(0, to.cookie));
        }
    }

    /// Returns whether the data of a read may be sent in pieces ([`Self::piece`]). A client can
    /// forbid pieces for one read ([`Request::unfragmented`](crate::Request::unfragmented)).
    #[must_use]
    pub const fn may_come_in_pieces(self) -> bool {
        !matches!(self.form, ReplyForm::Simple)
    }

    /// Writes the header of one piece of a read. The caller then sends the `length` bytes of the
    /// piece, at least 1. Simple replies have no pieces.
    #[inline]
    pub fn piece(self, out: &mut Vec<u8>, to: ReplyTo, offset: u64, length: u64, last: bool) {
        let flags = if last { wire::REPLY_FLAG_DONE } else { 0 };
        self.chunk(out, to, (flags, wire::REPLY_TYPE_OFFSET_DATA), length + 8);
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Returns the maximum length of a reply with `count` extents, bytes.
    #[must_use]
    pub const fn extents_bytes_max(count: usize) -> usize {
        wire::EXTENDED_CHUNK_HEADER_BYTES + 8 + 16 * count
    }

    /// Writes the reply to a block status request. `extents` has at least one extent, and the first
    /// one begins at the request's offset. Simple replies have no extents.
    pub fn extents(self, out: &mut Vec<u8>, to: ReplyTo, extents: impl ExactSizeIterator<Item = Extent>) {
        let (is_long, count) = (self.form == ReplyForm::Extended, extents.len() as u32);
        let (kind, length) = if is_long {
            (wire::REPLY_TYPE_BLOCK_STATUS_EXT, 8 + 16 * u64::from(count))
        } else {
            (wire::REPLY_TYPE_BLOCK_STATUS, 4 + 8 * u64::from(count))
        };
        self.chunk(out, to, (wire::REPLY_FLAG_DONE, kind), length);
        out.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
        if is_long {
            out.extend_from_slice(&count.to_be_bytes());
        }
        for extent in extents {
            if is_long {
                out.extend_from_slice(&extent.length.to_be_bytes());
                out.extend_from_slice(&extent.state.to_be_bytes());
            } else {
                out.extend_from_slice(&(extent.length as u32).to_be_bytes());
                out.extend_from_slice(&(extent.state as u32).to_be_bytes());
            }
        }
    }

    /// Writes the reply to a failed request, with at most [`wire::STRING_BYTES_MAX`] bytes of
    /// `message`. Simple replies have no message.
    pub fn failed(self, out: &mut Vec<u8>, to: ReplyTo, code: ErrorCode, message: &str) {
        let error = code.number();
        if self.form == ReplyForm::Simple {
            out.extend_from_slice(&wire::simple_reply(error, to.cookie));
            return;
        }
        let message = shortened(message);
        let message_bytes = message.len() as u16;
        let length = u64::from(message_bytes) + 6;
        self.chunk(out, to, (wire::REPLY_FLAG_DONE, wire::REPLY_TYPE_ERROR), length);
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&message_bytes.to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    }
}

/// Shortens a message to the maximum length of the protocol.
fn shortened(message: &str) -> &str {
    let mut bytes = message.len().min(wire::STRING_BYTES_MAX);
    while !message.is_char_boundary(bytes) {
        bytes -= 1;
    }
    &message[..bytes]
}
