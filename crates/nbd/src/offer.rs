//! Exports as the protocol describes them to clients.

use super::terms::Terms;
use super::wire;

/// Maximum length of a read or write, bytes, unless the server announces a larger one. A client
/// that does not ask for the maximum must assume this value.
pub const LENGTH_MAX: u32 = 32 << 20;

/// An export as clients see it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// Name that clients request; at most [`wire::STRING_BYTES_MAX`] bytes.
    pub name: String,
    /// A description for people; may be empty.
    pub description: String,
    /// Size, bytes.
    pub size_bytes: u64,
    /// Whether the server refuses writes, trims and zeroes.
    pub read_only: bool,
    /// Whether the disk is rotational, so that clients should avoid seeks.
    pub rotational: bool,
    /// Whether TRIM is offered.
    pub trim: bool,
    /// Whether WRITE_ZEROES is offered.
    pub write_zeroes: bool,
    /// Whether FAST_ZERO is offered. Such an export writes zeroes faster than data if the zeroes
    /// may become a hole. A request for fast zeroes fails with ENOTSUP if FAST_ZERO is not offered,
    /// or if the request has NO_HOLE.
    pub fast_zero: bool,
    /// Preferred block size, bytes: a power of two from 512 to [`LENGTH_MAX`].
    pub preferred_block_bytes: u32,
    /// Maximum length of a read or write, bytes: a power of two, at least [`LENGTH_MAX`]. The
    /// server sends this value to clients that ask for it.
    pub length_max: u32,
}

impl Offer {
    /// Returns the offer of a writable disk with TRIM and WRITE_ZEROES, without FAST_ZERO.
    #[must_use]
    pub fn new(name: impl Into<String>, size_bytes: u64) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            size_bytes,
            read_only: false,
            rotational: false,
            trim: true,
            write_zeroes: true,
            fast_zero: false,
            preferred_block_bytes: 4096,
            length_max: LENGTH_MAX,
        }
    }

    /// Returns the transmission flags, `wire::TRANS_*`.
    #[must_use]
    pub fn flags(&self, terms: Terms) -> u16 {
        let always = wire::TRANS_HAS_FLAGS
            | wire::TRANS_SEND_FLUSH
            | wire::TRANS_SEND_FUA
            | wire::TRANS_CAN_MULTI_CONN
            | wire::TRANS_SEND_CACHE;
        let writable = !self.read_only;
        let flags = [
            (self.read_only, wire::TRANS_READ_ONLY),
            (self.rotational, wire::TRANS_ROTATIONAL),
            (writable && self.trim, wire::TRANS_SEND_TRIM),
            (writable && self.write_zeroes, wire::TRANS_SEND_WRITE_ZEROES),
            (writable && self.write_zeroes && self.fast_zero, wire::TRANS_SEND_FAST_ZERO),
            (terms.has_chunks(), wire::TRANS_SEND_DF),
        ];
        flags.iter().filter(|(is, _)| *is).fold(always, |all, (_, flag)| all | flag)
    }
}

/// Finds the offer of this name. If there is only one offer, the empty name also means this offer.
#[must_use]
pub fn find(offers: &[Offer], name: &str) -> Option<usize> {
    let named = offers.iter().position(|offer| offer.name == name);
    named.or_else(|| (name.is_empty() && offers.len() == 1).then_some(0))
}
