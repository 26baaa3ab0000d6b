//! Replies: what goes before a read's data, and all of every other reply.

use super::super::handshake::ALLOCATION_ID;
use super::super::{Terms, wire};
use crate::Errno;
use crate::backend::Extent;

/// Writes the replies of one connection.
///
/// With structured replies agreed on, a read's data comes as one chunk, or as several if there is no memory for all
/// of it at once, and errors carry their message; what succeeds without data is answered by a simple reply in any
/// case, which is the shortest there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replies {
    structured: bool,
}

impl Replies {
    /// Bytes of the longest reply but for a read's data and an error's message.
    pub const BYTES_MAX: usize = wire::CHUNK_HEADER_BYTES + 8;

    /// For a connection.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self { structured: terms.has_chunks() }
    }

    /// Whatever else than a read has been done.
    #[inline]
    pub fn done(self, out: &mut Vec<u8>, cookie: u64) {
        out.extend_from_slice(&wire::simple_reply(0, cookie));
    }

    /// A read has been done: `length` bytes of data, more than 0, as many as it asked for, are to follow.
    #[inline]
    pub fn data(self, out: &mut Vec<u8>, cookie: u64, offset: u64, length: u64) {
        if self.structured {
            self.piece(out, cookie, offset, length, true);
        } else {
            out.extend_from_slice(&wire::simple_reply(0, cookie));
        }
    }

    /// Whether the data of a read may come piece by piece ([`Self::piece`]), unless the client forbids it for that
    /// read.
    #[must_use]
    pub const fn may_come_in_pieces(self) -> bool {
        self.structured
    }

    /// Part of a read has been done: `length` bytes of data from `offset` on, more than 0, are to follow. With
    /// structured replies only.
    #[inline]
    pub fn piece(self, out: &mut Vec<u8>, cookie: u64, offset: u64, length: u64, last: bool) {
        let flags = if last { wire::REPLY_FLAG_DONE } else { 0 };
        out.extend_from_slice(&wire::chunk_header(flags, wire::REPLY_TYPE_OFFSET_DATA, cookie, length as u32 + 8));
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Bytes of the reply that tells of `count` extents.
    #[must_use]
    pub const fn extents_bytes(count: usize) -> usize {
        wire::CHUNK_HEADER_BYTES + 4 + 8 * count
    }

    /// What is allocated: `extents`, at least one, from the request's offset on, none longer than it. With structured
    /// replies only.
    pub fn extents(self, out: &mut Vec<u8>, cookie: u64, extents: &[Extent]) {
        let length = Self::extents_bytes(extents.len()) - wire::CHUNK_HEADER_BYTES;
        let kind = wire::REPLY_TYPE_BLOCK_STATUS;
        out.extend_from_slice(&wire::chunk_header(wire::REPLY_FLAG_DONE, kind, cookie, length as u32));
        out.extend_from_slice(&ALLOCATION_ID.to_be_bytes());
        for extent in extents {
            let state = if extent.is_hole { wire::STATE_HOLE | wire::STATE_ZERO } else { 0 };
            out.extend_from_slice(&(extent.length as u32).to_be_bytes());
            out.extend_from_slice(&state.to_be_bytes());
        }
    }

    /// Anything has failed. Of `message` the client is told [`wire::STRING_BYTES_MAX`] bytes at most, and nothing
    /// without structured replies.
    pub fn failed(self, out: &mut Vec<u8>, cookie: u64, errno: Errno, message: &str) {
        let error = wire::error_number(errno);
        if !self.structured {
            out.extend_from_slice(&wire::simple_reply(error, cookie));
            return;
        }
        let message = shortened(message);
        let message_bytes = message.len() as u16;
        let (kind, length) = (wire::REPLY_TYPE_ERROR, u32::from(message_bytes) + 6);
        out.extend_from_slice(&wire::chunk_header(wire::REPLY_FLAG_DONE, kind, cookie, length));
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&message_bytes.to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    }
}

/// As much of a message as the protocol lets through.
fn shortened(message: &str) -> &str {
    let mut bytes = message.len().min(wire::STRING_BYTES_MAX);
    while !message.is_char_boundary(bytes) {
        bytes -= 1;
    }
    &message[..bytes]
}
