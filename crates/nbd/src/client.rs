//! The client's side: the messages that a client sends, and a decoder for the server's answers.
//!
//! [`wire::read_greeting`] reads the greeting, and [`OptionReply`] reads the other answers of the
//! handshake. [`ReplyHeader`] and [`Payload`] read replies to requests. These types keep no state,
//! because the client knows which requests it has sent.

use super::reply::Extent;
use super::terms::ReplyForm;
use super::wire::{self, OptionHeader, Reader, RequestHeader};

/// The flags that a client of today's protocol sends in the handshake.
pub const FLAGS: u32 = wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES;
/// Maximum data of a reply to an option, bytes. A server that follows the protocol sends much less.
pub const OPTION_REPLY_BYTES_MAX: u32 = 64 << 10;

/// Bytes that a client sends. Each method appends one message.
///
/// ```
/// use iosched_nbd::client::{FLAGS, Messages};
/// use iosched_nbd::wire;
///
/// let hello = Messages::flags(FLAGS).option(wire::OPT_STRUCTURED_REPLY, &[]).go("disk");
/// assert_eq!(hello.0[..4], [0, 0, 0, 3]);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Messages(pub Vec<u8>);

impl Messages {
    /// Starts with the client's flags, `FLAG_C_*`. They are the client's answer to the greeting.
    #[must_use]
    pub fn flags(flags: u32) -> Self {
        Self(flags.to_be_bytes().to_vec())
    }

    /// Appends an option, `OPT_*`, with its data.
    #[must_use]
    pub fn option(mut self, option: u32, data: &[u8]) -> Self {
        OptionHeader { magic: wire::OPTION_MAGIC, option, length: wire::length_of(data.len()) }.write(&mut self.0);
        self.0.extend_from_slice(data);
        self
    }

    /// Appends [`wire::OPT_GO`] or [`wire::OPT_INFO`] for an export. `facts`, `INFO_*`, are the
    /// facts that the client requests.
    #[must_use]
    pub fn info(self, option: u32, name: &str, facts: &[u16]) -> Self {
        self.option(option, &info_data(name.as_bytes(), facts))
    }

    /// Appends [`wire::OPT_GO`], which chooses an export and ends the handshake.
    #[must_use]
    pub fn go(self, name: &str) -> Self {
        self.info(wire::OPT_GO, name, &[])
    }

    /// Appends [`wire::OPT_LIST_META_CONTEXT`] or [`wire::OPT_SET_META_CONTEXT`] for an export.
    #[must_use]
    pub fn contexts(self, option: u32, name: &str, queries: &[&str]) -> Self {
        self.option(option, &contexts_data(name, queries))
    }

    /// Appends a request, `CMD_*`. Does not append the data of a write.
    #[must_use]
    pub fn request(mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Self {
        let header =
            RequestHeader { magic: wire::REQUEST_MAGIC, flags, command, cookie, offset, length: length.into() };
        self.0.extend_from_slice(&header.to_bytes());
        self
    }

    /// Appends a request with extended headers. Does not append the data of a write.
    #[must_use]
    pub fn extended_request(mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u64) -> Self {
        let header = RequestHeader { magic: wire::EXTENDED_REQUEST_MAGIC, flags, command, cookie, offset, length };
        self.0.extend_from_slice(&header.to_extended_bytes());
        self
    }

    /// Appends a write with its data.
    #[must_use]
    pub fn write(self, flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Self {
        let mut messages = self.request(wire::CMD_WRITE, flags, cookie, offset, wire::length_of(data.len()));
        messages.0.extend_from_slice(data);
        messages
    }
}

/// Returns the data of [`wire::OPT_GO`] or [`wire::OPT_INFO`].
#[must_use]
pub fn info_data(name: &[u8], facts: &[u16]) -> Vec<u8> {
    let mut data = wire::length_of(name.len()).to_be_bytes().to_vec();
    data.extend_from_slice(name);
    data.extend_from_slice(&u16::try_from(facts.len()).unwrap_or(u16::MAX).to_be_bytes());
    data.extend(facts.iter().flat_map(|fact| fact.to_be_bytes()));
    data
}

/// Returns the data of [`wire::OPT_LIST_META_CONTEXT`] or [`wire::OPT_SET_META_CONTEXT`].
#[must_use]
pub fn contexts_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let number = |count: usize| wire::length_of(count).to_be_bytes();
    let mut data = [&number(name.len()), name.as_bytes(), &number(queries.len())].concat();
    for query in queries {
        data.extend_from_slice(&number(query.len()));
        data.extend_from_slice(query.as_bytes());
    }
    data
}

/// An answer that does not follow the protocol. The client must close the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The bytes do not begin with the magic number of a reply that is possible now.
    #[error("expected the magic number of a reply, found {magic:#x}")]
    Magic {
        /// The number.
        magic: u64,
    },
    /// A reply to an option has more data than [`OPTION_REPLY_BYTES_MAX`].
    #[error("the reply to option {option} has {length} bytes, but at most {OPTION_REPLY_BYTES_MAX} are allowed")]
    TooLong {
        /// The option.
        option: u32,
        /// Bytes of data.
        length: u32,
    },
    /// The length or the content of a chunk's payload does not fit the chunk's type.
    #[error("the payload of a chunk of type {kind} is malformed")]
    Payload {
        /// `REPLY_TYPE_*`.
        kind: u16,
    },
    /// The protocol does not define the chunk's type.
    #[error("the chunk has the unknown type {kind}")]
    UnknownKind {
        /// The type.
        kind: u16,
    },
}

/// A reply to an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionReply<'a> {
    /// `OPT_*`.
    pub option: u32,
    /// `REP_*`.
    pub kind: u32,
    /// Data of the reply. In an error reply, the data is a message.
    pub data: &'a [u8],
}

impl<'a> OptionReply<'a> {
    /// Takes the next reply from the front of `input`. If the reply has not arrived completely,
    /// returns `None` and takes nothing.
    ///
    /// # Errors
    /// If the bytes are not a reply to an option, or if its data is too long.
    pub fn read(input: &mut &'a [u8]) -> Result<Option<Self>, ReplyError> {
        let mut reader = Reader(input);
        let Some(magic) = reader.u64() else { return Ok(None) };
        if magic != wire::OPTION_REPLY_MAGIC {
            return Err(ReplyError::Magic { magic });
        }
        let (Some(option), Some(kind), Some(length)) = (reader.u32(), reader.u32(), reader.u32()) else {
            return Ok(None);
        };
        if length > OPTION_REPLY_BYTES_MAX {
            return Err(ReplyError::TooLong { option, length });
        }
        let Some(data) = reader.bytes(length as usize) else { return Ok(None) };
        *input = reader.0;
        Ok(Some(Self { option, kind, data }))
    }
}

/// The header of a reply to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyHeader {
    /// The whole reply. After a successful read, the data follows.
    Simple {
        /// 0, or a number of [`ErrorCode`](crate::ErrorCode).
        error: u32,
        /// The request's cookie.
        cookie: u64,
    },
    /// One chunk of a reply. The chunk's payload follows.
    Chunk(ChunkHeader),
}

/// The header of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkHeader {
    /// `REPLY_FLAG_*`.
    pub flags: u16,
    /// `REPLY_TYPE_*`.
    pub kind: u16,
    /// The request's cookie.
    pub cookie: u64,
    /// The request's offset. Only extended headers have it.
    pub offset: Option<u64>,
    /// Bytes of payload that follow.
    pub length: u64,
}

impl ReplyHeader {
    /// Takes the next header from the front of `input`. If the header has not arrived completely,
    /// returns `None` and takes nothing.
    ///
    /// # Errors
    /// If the bytes are not the start of a reply in this `form`.
    pub fn read(input: &mut &[u8], form: ReplyForm) -> Result<Option<Self>, ReplyError> {
        let mut reader = Reader(input);
        let Some(magic) = reader.u32() else { return Ok(None) };
        let header = match (magic, form) {
            (wire::SIMPLE_REPLY_MAGIC, ReplyForm::Simple | ReplyForm::Structured) => Self::simple(&mut reader),
            (wire::STRUCTURED_REPLY_MAGIC, ReplyForm::Structured) => Self::chunk(&mut reader, false),
            (wire::EXTENDED_REPLY_MAGIC, ReplyForm::Extended) => Self::chunk(&mut reader, true),
            _ => return Err(ReplyError::Magic { magic: magic.into() }),
        };
        if header.is_some() {
            *input = reader.0;
        }
        Ok(header)
    }

    fn simple(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self::Simple { error: reader.u32()?, cookie: reader.u64()? })
    }

    fn chunk(reader: &mut Reader<'_>, is_extended: bool) -> Option<Self> {
        let (flags, kind, cookie) = (reader.u16()?, reader.u16()?, reader.u64()?);
        let offset = if is_extended { Some(reader.u64()?) } else { None };
        let length = if is_extended { reader.u64()? } else { reader.u32()?.into() };
        Some(Self::Chunk(ChunkHeader { flags, kind, cookie, offset, length }))
    }
}

impl ChunkHeader {
    /// Returns whether this chunk is the last one of the reply.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.flags & wire::REPLY_FLAG_DONE != 0
    }
}

/// The payload of a chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// Nothing.
    None,
    /// Data of a read.
    Data {
        /// First byte on the export.
        offset: u64,
        /// The data, at least one byte.
        data: &'a [u8],
    },
    /// A part of a read that contains only zeroes.
    Hole {
        /// First byte on the export.
        offset: u64,
        /// Length, bytes.
        length: u32,
    },
    /// Extents in a metadata context. The first extent begins at the request's offset.
    BlockStatus {
        /// The number that the server assigned to the context in the handshake.
        context: u32,
        /// The extents, at least one.
        extents: Vec<Extent>,
    },
    /// The request failed.
    Error {
        /// A number of [`ErrorCode`](crate::ErrorCode).
        error: u32,
        /// Text for people. It should be UTF-8.
        message: &'a [u8],
        /// Offset of the error on the export, if the server reports it.
        offset: Option<u64>,
    },
}

impl<'a> Payload<'a> {
    /// Reads the payload of a chunk of the type `kind`, `REPLY_TYPE_*`.
    ///
    /// # Errors
    /// If the kind is unknown, or if the bytes are not a payload of this kind.
    pub fn read(kind: u16, bytes: &'a [u8]) -> Result<Self, ReplyError> {
        let is_known = matches!(
            kind,
            wire::REPLY_TYPE_NONE
                | wire::REPLY_TYPE_OFFSET_DATA
                | wire::REPLY_TYPE_OFFSET_HOLE
                | wire::REPLY_TYPE_BLOCK_STATUS
                | wire::REPLY_TYPE_BLOCK_STATUS_EXT
        );
        if !is_known && kind & wire::REPLY_TYPE_FLAG_ERROR == 0 {
            return Err(ReplyError::UnknownKind { kind });
        }
        Self::parts(kind, Reader(bytes)).ok_or(ReplyError::Payload { kind })
    }

    fn parts(kind: u16, mut reader: Reader<'a>) -> Option<Self> {
        let payload = match kind {
            wire::REPLY_TYPE_NONE => Self::None,
            wire::REPLY_TYPE_OFFSET_DATA => {
                let offset = reader.u64()?;
                let data = reader.bytes(reader.0.len()).filter(|data| !data.is_empty())?;
                Self::Data { offset, data }
            }
            wire::REPLY_TYPE_OFFSET_HOLE => Self::Hole { offset: reader.u64()?, length: reader.u32()? },
            wire::REPLY_TYPE_BLOCK_STATUS => {
                let context = reader.u32()?;
                let (extents, rest) = reader.0.as_chunks::<8>();
                let extent = |extent: &[u8; 8]| {
                    let [l0, l1, l2, l3, s0, s1, s2, s3] = *extent;
                    let length = u32::from_be_bytes([l0, l1, l2, l3]).into();
                    Extent { length, state: u32::from_be_bytes([s0, s1, s2, s3]).into() }
                };
                reader.0 = rest;
                Self::BlockStatus { context, extents: extents.iter().map(extent).collect() }
            }
            wire::REPLY_TYPE_BLOCK_STATUS_EXT => {
                let (context, count) = (reader.u32()?, reader.u32()?);
                if u64::from(count) * 16 != reader.0.len() as u64 {
                    return None;
                }
                let mut extents = Vec::with_capacity(count as usize);
                while let (Some(length), Some(state)) = (reader.u64(), reader.u64()) {
                    extents.push(Extent { length, state });
                }
                Self::BlockStatus { context, extents }
            }
            _ => {
                let (error, length) = (reader.u32()?, reader.u16()?);
                let message = reader.bytes(length.into())?;
                let offset = if kind == wire::REPLY_TYPE_ERROR_OFFSET { Some(reader.u64()?) } else { None };
                // An error of an unknown type may have more fields.
                if !matches!(kind, wire::REPLY_TYPE_ERROR | wire::REPLY_TYPE_ERROR_OFFSET) {
                    reader.0 = &[];
                }
                Self::Error { error, message, offset }
            }
        };
        let is_empty = matches!(&payload, Self::BlockStatus { extents, .. } if extents.is_empty());
        (reader.0.is_empty() && !is_empty).then_some(payload)
    }
}
