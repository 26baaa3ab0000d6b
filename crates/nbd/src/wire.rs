//! The numbers of the NBD protocol, and conversions of its messages of fixed size to and from
//! bytes.
//!
//! Names are the names of the protocol, without the prefix `NBD_`. Numbers are from the public
//! specification ("The NBD protocol", `doc/proto.md` of the NetworkBlockDevice project). All
//! integers are big-endian on the wire.

/// First magic of a server's greeting: `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second magic of a newstyle greeting, and the magic before each option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// The magic before each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The magic before each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The magic before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The magic before a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// The magic before each request with extended headers.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// The magic before a chunk of a reply with extended headers.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Server's handshake flag: the server answers wrong options with errors and keeps the connection.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1 << 0;
/// Server's handshake flag: the server can omit the padding after `OPT_EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 1 << 1;
/// Client's flag: agrees to [`FLAG_FIXED_NEWSTYLE`].
pub const FLAG_C_FIXED_NEWSTYLE: u32 = 1 << 0;
/// Client's flag: agrees to [`FLAG_NO_ZEROES`].
pub const FLAG_C_NO_ZEROES: u32 = 1 << 1;

/// Option: enter transmission with the named export. The server can only do this or close the
/// connection.
pub const OPT_EXPORT_NAME: u32 = 1;
/// Option of a client: end the session.
pub const OPT_ABORT: u32 = 2;
/// Option of a client: list all exports.
pub const OPT_LIST: u32 = 3;
/// Option, withdrawn from the protocol.
pub const OPT_PEEK_EXPORT: u32 = 4;
/// Option of a client: start TLS on the connection.
pub const OPT_STARTTLS: u32 = 5;
/// Option of a client: describe an export.
pub const OPT_INFO: u32 = 6;
/// Option: describe an export and enter transmission with it.
pub const OPT_GO: u32 = 7;
/// Option: answer requests with structured replies.
pub const OPT_STRUCTURED_REPLY: u32 = 8;
/// Option: list the metadata contexts of an export.
pub const OPT_LIST_META_CONTEXT: u32 = 9;
/// Option: choose metadata contexts for block status.
pub const OPT_SET_META_CONTEXT: u32 = 10;
/// Option of a client: use requests with 64-bit lengths.
pub const OPT_EXTENDED_HEADERS: u32 = 11;

/// Reply to an option: the option succeeded.
pub const REP_ACK: u32 = 1;
/// Reply to an option: an export.
pub const REP_SERVER: u32 = 2;
/// Reply to an option: a fact about an export.
pub const REP_INFO: u32 = 3;
/// Reply to an option: a metadata context.
pub const REP_META_CONTEXT: u32 = 4;
/// Flag that is set in the kind of every error reply.
pub const REP_FLAG_ERROR: u32 = 1 << 31;
/// Error: the server does not support the option.
pub const REP_ERR_UNSUP: u32 = REP_FLAG_ERROR + 1;
/// Error: the server's configuration forbids the option.
pub const REP_ERR_POLICY: u32 = REP_FLAG_ERROR + 2;
/// Error: the option is malformed.
pub const REP_ERR_INVALID: u32 = REP_FLAG_ERROR + 3;
/// Error: the server allows the option only inside TLS.
pub const REP_ERR_TLS_REQD: u32 = REP_FLAG_ERROR + 5;
/// Error: the export does not exist.
pub const REP_ERR_UNKNOWN: u32 = REP_FLAG_ERROR + 6;
/// Error: the server is shutting down.
pub const REP_ERR_SHUTDOWN: u32 = REP_FLAG_ERROR + 7;
/// Error: the option is too long.
pub const REP_ERR_TOO_BIG: u32 = REP_FLAG_ERROR + 9;
/// Error: the option needs extended headers, or contradicts them.
pub const REP_ERR_EXT_HEADER_REQD: u32 = REP_FLAG_ERROR + 10;

/// Fact about an export: size and transmission flags.
pub const INFO_EXPORT: u16 = 0;
/// Fact about an export: its canonical name.
pub const INFO_NAME: u16 = 1;
/// Fact about an export: a description for people.
pub const INFO_DESCRIPTION: u16 = 2;
/// Fact about an export: smallest, preferred and largest block.
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flag: the other flags are valid.
pub const TRANS_HAS_FLAGS: u16 = 1 << 0;
/// Transmission flag: the server refuses writes.
pub const TRANS_READ_ONLY: u16 = 1 << 1;
/// Transmission flag: the server accepts [`CMD_FLUSH`].
pub const TRANS_SEND_FLUSH: u16 = 1 << 2;
/// Transmission flag: the server accepts [`CMD_FLAG_FUA`].
pub const TRANS_SEND_FUA: u16 = 1 << 3;
/// Transmission flag: the disk is rotational.
pub const TRANS_ROTATIONAL: u16 = 1 << 4;
/// Transmission flag: the server accepts [`CMD_TRIM`].
pub const TRANS_SEND_TRIM: u16 = 1 << 5;
/// Transmission flag: the server accepts [`CMD_WRITE_ZEROES`].
pub const TRANS_SEND_WRITE_ZEROES: u16 = 1 << 6;
/// Transmission flag: the server accepts [`CMD_FLAG_DF`].
pub const TRANS_SEND_DF: u16 = 1 << 7;
/// Transmission flag: a flush on one connection covers the completed writes of all connections.
pub const TRANS_CAN_MULTI_CONN: u16 = 1 << 8;
/// Transmission flag: the server accepts [`CMD_CACHE`].
pub const TRANS_SEND_CACHE: u16 = 1 << 10;
/// Transmission flag: the server accepts [`CMD_FLAG_FAST_ZERO`].
pub const TRANS_SEND_FAST_ZERO: u16 = 1 << 11;

/// Command of a client: read a range.
pub const CMD_READ: u16 = 0;
/// Command: write; the data follows the request.
pub const CMD_WRITE: u16 = 1;
/// Command: disconnect; there is no reply.
pub const CMD_DISC: u16 = 2;
/// Command: write the data of all completed writes to the medium.
pub const CMD_FLUSH: u16 = 3;
/// Command: discard; the client does not need the contents any more.
pub const CMD_TRIM: u16 = 4;
/// Command of a client: read a range ahead.
pub const CMD_CACHE: u16 = 5;
/// Command: write zeroes. The client sends no data.
pub const CMD_WRITE_ZEROES: u16 = 6;
/// Command: report block status in the chosen metadata contexts.
pub const CMD_BLOCK_STATUS: u16 = 7;
/// Command, experimental: change the export's size.
pub const CMD_RESIZE: u16 = 8;

/// Command flag: complete only when the data is on the medium.
pub const CMD_FLAG_FUA: u16 = 1 << 0;
/// Command flag of [`CMD_WRITE_ZEROES`]: keep the space allocated.
pub const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
/// Command flag of [`CMD_READ`]: do not fragment the reply.
pub const CMD_FLAG_DF: u16 = 1 << 2;
/// Command flag of [`CMD_BLOCK_STATUS`]: return one extent.
pub const CMD_FLAG_REQ_ONE: u16 = 1 << 3;
/// Command flag of [`CMD_WRITE_ZEROES`]: fail if writing zeroes is not faster than writing data.
pub const CMD_FLAG_FAST_ZERO: u16 = 1 << 4;
/// Command flag with extended headers: the length is the length of the payload after the request.
pub const CMD_FLAG_PAYLOAD_LEN: u16 = 1 << 5;

/// Flag of a chunk: this chunk is the last one of the reply.
pub const REPLY_FLAG_DONE: u16 = 1 << 0;
/// Flag that is set in the type of every error chunk.
pub const REPLY_TYPE_FLAG_ERROR: u16 = 1 << 15;
/// Type of a chunk: no payload.
pub const REPLY_TYPE_NONE: u16 = 0;
/// Type of a chunk: an offset and data.
pub const REPLY_TYPE_OFFSET_DATA: u16 = 1;
/// Type of a chunk: an offset and a number of zeroes.
pub const REPLY_TYPE_OFFSET_HOLE: u16 = 2;
/// Type of a chunk: a metadata context, and extents with their states in this context.
pub const REPLY_TYPE_BLOCK_STATUS: u16 = 5;
/// Type of a chunk: a metadata context and extents with 64-bit numbers.
pub const REPLY_TYPE_BLOCK_STATUS_EXT: u16 = 6;
/// Type of a chunk: an error and a message for people.
pub const REPLY_TYPE_ERROR: u16 = REPLY_TYPE_FLAG_ERROR + 1;
/// Type of a chunk: an error, a message for people, and the offset of the error.
pub const REPLY_TYPE_ERROR_OFFSET: u16 = REPLY_TYPE_FLAG_ERROR + 2;

/// Name of the metadata context that describes allocation.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// State in [`BASE_ALLOCATION`]: no space is allocated.
pub const STATE_HOLE: u64 = 1 << 0;
/// State in [`BASE_ALLOCATION`]: the extent reads as zeroes.
pub const STATE_ZERO: u64 = 1 << 1;

/// Longest string in the protocol (names, descriptions, messages), bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// Number of bytes of a server's greeting.
pub const GREETING_BYTES: usize = 18;
/// Bytes of an option's header, before the option's data.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Bytes of the header of a reply to an option, before the reply's data.
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;
/// Bytes of a request's header, before a write's data.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a request's extended header, before a write's data.
pub const EXTENDED_REQUEST_BYTES: usize = 32;
/// Bytes of a simple reply, before a read's data.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of the header of a structured reply's chunk, before the payload.
pub const CHUNK_HEADER_BYTES: usize = 20;
/// Bytes of the extended header of a chunk, before the payload.
pub const EXTENDED_CHUNK_HEADER_BYTES: usize = 32;
/// Number of zero bytes after the answer to [`OPT_EXPORT_NAME`], for clients without
/// [`FLAG_C_NO_ZEROES`].
pub const EXPORT_NAME_PADDING_BYTES: usize = 124;

/// Reads big-endian integers from the front of a slice. Returns `None` if too few bytes are left.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    /// Takes the next 16-bit integer.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes the next 32-bit integer.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes the next 64-bit integer.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// Converts a length to the 32 bits on the wire. A length above `u32::MAX` becomes `u32::MAX`.
pub(crate) fn length_of(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The header of an option, before its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionHeader {
    /// Must be [`OPTION_MAGIC`]; the reader must check it.
    pub magic: u64,
    /// `OPT_*`.
    pub option: u32,
    /// Bytes of data that follow.
    pub length: u32,
}

impl OptionHeader {
    /// Reads a header from the first [`OPTION_HEADER_BYTES`] of `bytes`. Returns `None` if `bytes`
    /// is shorter.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Self { magic: reader.u64()?, option: reader.u32()?, length: reader.u32()? })
    }

    /// Appends the header to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.magic.to_be_bytes());
        out.extend_from_slice(&self.option.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

/// The header of a request, before a write's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHeader {
    /// Must be [`REQUEST_MAGIC`] or [`EXTENDED_REQUEST_MAGIC`]; the reader must check it.
    pub magic: u32,
    /// `CMD_FLAG_*`.
    pub flags: u16,
    /// `CMD_*`.
    pub command: u16,
    /// A number that the client chooses; the reply repeats it.
    pub cookie: u64,
    /// First byte on the export.
    pub offset: u64,
    /// Bytes on the export; at most `u32::MAX` without extended headers.
    pub length: u64,
}

impl RequestHeader {
    /// Reads the compact header of a request.
    #[must_use]
    #[inline]
    pub fn read(bytes: &[u8; REQUEST_BYTES]) -> Self {
        let [head @ .., l0, l1, l2, l3] = *bytes;
        Self::read_parts(head, u32::from_be_bytes([l0, l1, l2, l3]).into())
    }

    /// Reads the extended header of a request.
    #[must_use]
    #[inline]
    pub fn read_extended(bytes: &[u8; EXTENDED_REQUEST_BYTES]) -> Self {
        let [head @ .., l0, l1, l2, l3, l4, l5, l6, l7] = *bytes;
        Self::read_parts(head, u64::from_be_bytes([l0, l1, l2, l3, l4, l5, l6, l7]))
    }

    #[inline]
    fn read_parts(bytes: [u8; REQUEST_BYTES - 4], length: u64) -> Self {
        let [m0, m1, m2, m3, f0, f1, c0, c1, rest @ ..] = bytes;
        let [k0, k1, k2, k3, k4, k5, k6, k7, o0, o1, o2, o3, o4, o5, o6, o7] = rest;
        Self {
            magic: u32::from_be_bytes([m0, m1, m2, m3]),
            flags: u16::from_be_bytes([f0, f1]),
            command: u16::from_be_bytes([c0, c1]),
            cookie: u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length,
        }
    }

    /// Converts the header to its compact form. A length above `u32::MAX` loses its upper half.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REQUEST_BYTES] {
        let extended = self.to_extended_bytes();
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..24].copy_from_slice(&extended[..24]);
        bytes[24..].copy_from_slice(&extended[28..]);
        bytes
    }

    /// Converts the header to its extended form.
    #[must_use]
    pub fn to_extended_bytes(&self) -> [u8; EXTENDED_REQUEST_BYTES] {
        let mut bytes = [0; EXTENDED_REQUEST_BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// Returns the greeting of a fixed newstyle server.
#[must_use]
pub fn greeting() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[0..8].copy_from_slice(&GREETING_MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes[16..18].copy_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
    bytes
}

/// Returns the server's flags, `FLAG_*`, from a newstyle greeting. Returns `None` if the bytes are
/// not a newstyle greeting.
///
/// ```
/// # use iosched_nbd::wire;
/// assert_eq!(wire::read_greeting(&wire::greeting()), Some(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES));
/// ```
#[must_use]
pub fn read_greeting(bytes: &[u8; GREETING_BYTES]) -> Option<u16> {
    let mut reader = Reader(bytes);
    let is_newstyle = reader.u64() == Some(GREETING_MAGIC) && reader.u64() == Some(OPTION_MAGIC);
    reader.u16().filter(|_| is_newstyle)
}

/// Returns a simple reply. `error` is 0 or [`ErrorCode::number`](crate::ErrorCode::number). If the
/// request is a read and `error` is 0, the data follows.
#[must_use]
#[inline]
pub fn simple_reply(error: u32, cookie: u64) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    bytes[0..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// Returns the header of a chunk of a structured reply, before its `length` bytes of payload.
/// `flags` is [`REPLY_FLAG_DONE`] or 0.
#[must_use]
#[inline]
pub fn chunk_header(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_HEADER_BYTES] {
    let mut bytes = [0; CHUNK_HEADER_BYTES];
    bytes[0..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..20].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Returns the extended header of a chunk, before its `length` bytes of payload. `offset` is the
/// offset of the request.
#[must_use]
#[inline]
pub fn extended_chunk_header(
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
) -> [u8; EXTENDED_CHUNK_HEADER_BYTES] {
    let mut bytes = [0; EXTENDED_CHUNK_HEADER_BYTES];
    bytes[0..4].copy_from_slice(&EXTENDED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..32].copy_from_slice(&length.to_be_bytes());
    bytes
}
