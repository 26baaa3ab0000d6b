//! A decoder for the requests of one connection. It allocates nothing, and copies only headers that
//! arrive in pieces.
//!
//! The decoder checks each request against the export, and returns the answer to a request that
//! fails the check. It returns a write's data as slices of the input. The caller can also receive
//! the data into its own buffer.

use crate::error::ErrorCode;
use crate::offer::Offer;
use crate::reply::ReplyTo;
use crate::terms::{ReplyForm, Terms};
use crate::wire::{self, EXTENDED_REQUEST_BYTES, REQUEST_BYTES, RequestHeader};

/// The kind of a request. A server must handle every kind, so adding a kind is a breaking change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestKind {
    /// Reads bytes.
    Read,
    /// Writes the bytes that follow the request.
    Write,
    /// Writes all completed writes to the medium.
    Flush,
    /// Discards bytes.
    Trim,
    /// Writes zeroes. The client sends no data.
    WriteZeroes,
    /// Reads bytes ahead and does not send them to the client. The decoder shortens a long request.
    Cache,
    /// Reports which parts are allocated.
    BlockStatus,
}

impl RequestKind {
    /// Returns whether the request changes the contents of the export.
    const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }
}

/// A valid request: it is within the export, and the export allows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The kind.
    pub kind: RequestKind,
    /// The number that the client chose for the request. The reply repeats it.
    pub cookie: u64,
    /// First byte on the export; 0 with [`RequestKind::Flush`].
    pub offset: u64,
    /// Length on the export, bytes: at least 1; at most [`Offer::length_max`] with
    /// [`RequestKind::Read`], [`RequestKind::Write`] and [`RequestKind::Cache`]; 0 with
    /// [`RequestKind::Flush`].
    pub length: u64,
    /// Whether the request completes only when the data is on the medium.
    pub fua: bool,
    /// For [`RequestKind::WriteZeroes`]: whether to keep the space allocated.
    pub no_hole: bool,
    /// For [`RequestKind::Read`]: whether to send the data in one chunk.
    pub unfragmented: bool,
    /// For [`RequestKind::BlockStatus`]: whether the reply should have only one extent.
    pub one_extent: bool,
}

impl Request {
    /// Returns the same request for another part of the export, for a server that executes a
    /// request in pieces.
    #[must_use]
    #[inline]
    pub const fn part(self, offset: u64, length: u64) -> Self {
        Self { offset, length, ..self }
    }

    /// Returns the fields of the request that its reply repeats.
    #[must_use]
    pub const fn reply_to(&self) -> ReplyTo {
        ReplyTo { cookie: self.cookie, offset: self.offset }
    }
}

/// The answer to a refused request. [`Replies::failed`](crate::Replies::failed) writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The request.
    pub to: ReplyTo,
    /// The error.
    pub code: ErrorCode,
    /// A message for people.
    pub message: &'static str,
}

/// An error after which the decoder cannot know where the next request begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The bytes at the start of a request are not a request.
    #[error("expected the magic number of a request, {due:#010x}, found {magic:#010x}")]
    Magic {
        /// The number in the input.
        magic: u32,
        /// The number with which requests begin on this connection.
        due: u32,
    },
    /// A request has more data than the announced maximum.
    #[error("the data has {length} bytes, but the announced maximum is {length_max}")]
    TooLong {
        /// The length of the data, bytes.
        length: u64,
        /// [`Offer::length_max`].
        length_max: u32,
    },
}

/// The next part of the stream of requests. A server must handle every event, so adding an event is
/// a breaking change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// The decoder has used all the input and needs more.
    NeedMore,
    /// A valid request. After a [`RequestKind::Write`], its data follows.
    Request(Request),
    /// The next bytes of the last write's data, at least one.
    Data(&'a [u8]),
    /// A request that the server must answer with an error. The decoder has skipped the data of a
    /// refused write.
    Refused(Refusal),
    /// The client disconnects properly. Complete and answer its requests, then close the
    /// connection. Later calls return the same event.
    Disconnect,
    /// The server must close the connection. Later calls return the same event.
    Broken(Broken),
}

/// The reason why the stream ended.
#[derive(Clone, Copy, Debug)]
enum Over {
    Disconnect,
    Broken(Broken),
}

/// Decodes the requests of one connection.
#[derive(Clone, Debug)]
pub struct Decoder {
    rules: Rules,
    /// The first bytes of a request that has not arrived completely.
    header: [u8; EXTENDED_REQUEST_BYTES],
    header_bytes: usize,
    data_left: u32,
    /// The refusal of the write whose data is arriving, if the server refuses this write.
    refusal: Option<Refusal>,
    over: Option<Over>,
}

impl Decoder {
    /// Creates a decoder for a connection that has chosen `offer`.
    #[must_use]
    pub fn new(offer: &Offer, terms: Terms) -> Self {
        Self {
            rules: Rules::new(offer, terms),
            header: [0; EXTENDED_REQUEST_BYTES],
            header_bytes: 0,
            data_left: 0,
            refusal: None,
            over: None,
        }
    }

    /// Takes the next part of the stream from the front of `input`.
    #[inline]
    pub fn advance<'a>(&mut self, input: &mut &'a [u8]) -> Event<'a> {
        if self.data_left > 0 {
            if input.is_empty() {
                return Event::NeedMore;
            }
            let data = self.take_data(input);
            match self.refusal {
                None => return Event::Data(data),
                Some(_) if self.data_left > 0 => return Event::NeedMore,
                Some(_) => {}
            }
        }
        if let Some(refusal) = self.refusal.take() {
            return Event::Refused(refusal);
        }
        match self.over {
            None => {}
            Some(Over::Disconnect) => return Event::Disconnect,
            Some(Over::Broken(broken)) => return Event::Broken(broken),
        }
        let Some(header) = self.next_header(input) else { return Event::NeedMore };
        self.request(&header, input)
    }

    /// Takes the next request's header if all of it has arrived.
    #[inline]
    fn next_header(&mut self, input: &mut &[u8]) -> Option<RequestHeader> {
        let is_extended = self.rules.terms.form == ReplyForm::Extended;
        if self.header_bytes == 0 {
            // Most headers arrive in one piece.
            if is_extended {
                if let Some((header, rest)) = input.split_first_chunk() {
                    *input = rest;
                    return Some(RequestHeader::read_extended(header));
                }
            } else if let Some((header, rest)) = input.split_first_chunk() {
                *input = rest;
                return Some(RequestHeader::read(header));
            }
        }
        let header_bytes = if is_extended { EXTENDED_REQUEST_BYTES } else { REQUEST_BYTES };
        if !self.gather_header(input, header_bytes) {
            return None;
        }
        if is_extended {
            return Some(RequestHeader::read_extended(&self.header));
        }
        self.header.first_chunk().map(RequestHeader::read)
    }

    /// Returns the number of bytes of the last write's data that have not arrived yet. When the
    /// input is used up, the caller may receive these bytes directly into its own buffer, and
    /// report them with [`Self::data_received`]. Returns 0 while the decoder skips the data of a
    /// refused write.
    #[must_use]
    pub fn data_wanted(&self) -> u32 {
        if self.refusal.is_some() { 0 } else { self.data_left }
    }

    /// Reports that the caller itself has received `bytes` of the data. The number is at most
    /// [`Self::data_wanted`].
    pub fn data_received(&mut self, bytes: u32) {
        debug_assert!(
            bytes <= self.data_wanted(),
            "received {bytes} bytes of data, but only {} are missing",
            self.data_wanted()
        );
        self.data_left = self.data_left.saturating_sub(bytes);
    }

    /// Refuses the last write, because the caller will not execute it. The decoder skips the rest
    /// of its data and then returns [`Event::Refused`].
    pub fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// Returns whether the stream is between two requests. A client that disconnects now leaves no
    /// incomplete request.
    #[must_use]
    pub fn between_requests(&self) -> bool {
        self.header_bytes == 0 && self.data_left == 0 && self.refusal.is_none()
    }

    fn take_data<'a>(&mut self, input: &mut &'a [u8]) -> &'a [u8] {
        let (data, rest) = input.split_at(input.len().min(self.data_left as usize));
        *input = rest;
        self.data_left -= data.len() as u32;
        data
    }

    /// Adds input to a header of which only a part has arrived. Returns whether the header is
    /// complete.
    fn gather_header(&mut self, input: &mut &[u8], header_bytes: usize) -> bool {
        let missing = header_bytes - self.header_bytes;
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.header[self.header_bytes..][..taken.len()].copy_from_slice(taken);
        *input = rest;
        if taken.len() < missing {
            self.header_bytes += taken.len();
            return false;
        }
        self.header_bytes = 0;
        true
    }

    #[inline]
    fn request<'a>(&mut self, header: &RequestHeader, input: &mut &'a [u8]) -> Event<'a> {
        let &RequestHeader { magic, flags, command, cookie, offset, length } = header;
        let (due, length_max) = (self.rules.magic(), self.rules.length_max);
        if magic != due {
            return self.broken(Broken::Magic { magic, due });
        }
        let has_data = command == wire::CMD_WRITE || self.rules.announces_data(flags);
        if has_data && length > length_max.into() {
            return self.broken(Broken::TooLong { length, length_max });
        }
        if command == wire::CMD_DISC {
            self.over = Some(Over::Disconnect);
            return Event::Disconnect;
        }
        self.data_left = if has_data { length as u32 } else { 0 };
        match self.rules.check(header) {
            Ok(request) => Event::Request(request),
            Err((code, message)) => {
                let refusal = Refusal { to: ReplyTo { cookie, offset }, code, message };
                if self.data_left == 0 {
                    return Event::Refused(refusal);
                }
                self.refusal = Some(refusal);
                self.advance(input)
            }
        }
    }

    fn broken<'a>(&mut self, broken: Broken) -> Event<'a> {
        self.over = Some(Over::Broken(broken));
        Event::Broken(broken)
    }
}

/// The conditions that an export's requests must meet.
#[derive(Clone, Copy, Debug)]
struct Rules {
    size_bytes: u64,
    read_only: bool,
    trim: bool,
    write_zeroes: bool,
    fast_zero: bool,
    length_max: u32,
    terms: Terms,
}

/// An error code and a message for people.
type Wrong = (ErrorCode, &'static str);

impl Rules {
    fn new(offer: &Offer, terms: Terms) -> Self {
        let &Offer { size_bytes, read_only, trim, write_zeroes, fast_zero, length_max, .. } = offer;
        Self { size_bytes, read_only, trim, write_zeroes, fast_zero, length_max, terms }
    }

    /// Returns the magic number at the start of every request.
    #[inline]
    fn magic(&self) -> u32 {
        if self.terms.form == ReplyForm::Extended { wire::EXTENDED_REQUEST_MAGIC } else { wire::REQUEST_MAGIC }
    }

    /// Returns whether the flags announce data after the request. The command does not matter.
    #[inline]
    fn announces_data(&self, flags: u16) -> bool {
        self.terms.form == ReplyForm::Extended && flags & wire::CMD_FLAG_PAYLOAD_LEN != 0
    }

    /// Checks `header`, and converts it into a request.
    #[inline]
    fn check(&self, header: &RequestHeader) -> Result<Request, Wrong> {
        let &RequestHeader { flags, cookie, offset, length, .. } = header;
        let (kind, flags_known) = self.kind(header.command)?;
        if flags & !flags_known != 0 {
            return Err((ErrorCode::Invalid, "a flag is unknown for this command or was not offered"));
        }
        let mut request = Request {
            kind,
            cookie,
            offset,
            length,
            fua: flags & wire::CMD_FLAG_FUA != 0,
            no_hole: flags & wire::CMD_FLAG_NO_HOLE != 0,
            unfragmented: flags & wire::CMD_FLAG_DF != 0,
            one_extent: flags & wire::CMD_FLAG_REQ_ONE != 0,
        };
        if kind == RequestKind::Flush {
            let is_whole_device = offset == 0 && length == 0;
            return if is_whole_device {
                Ok(request)
            } else {
                Err((ErrorCode::Invalid, "a flush must have offset and length 0"))
            };
        }
        if self.read_only && kind.writes() {
            return Err((ErrorCode::NotPermitted, "the export is read-only"));
        }
        if length == 0 {
            return Err((ErrorCode::Invalid, "the length of the request is 0"));
        }
        self.check_range(&request)?;
        match kind {
            RequestKind::Read if length > self.length_max.into() => {
                let code = if request.unfragmented { ErrorCode::Overflow } else { ErrorCode::Invalid };
                return Err((code, "the read is longer than the maximum block size"));
            }
            RequestKind::Cache => request.length = request.length.min(self.length_max.into()),
            _ => {}
        }
        // A hole is fast to make. With NO_HOLE, nothing guarantees that zeroing is faster than
        // writing data.
        if flags & wire::CMD_FLAG_FAST_ZERO != 0 && (!self.fast_zero || request.no_hole) {
            return Err((ErrorCode::NotSupported, "on this export, writing zeroes is not faster than writing data"));
        }
        Ok(request)
    }

    /// Returns the kind of the command `number`, and the flags that the command allows.
    #[inline]
    fn kind(&self, number: u16) -> Result<(RequestKind, u16), Wrong> {
        let fua = wire::CMD_FLAG_FUA;
        match number {
            wire::CMD_READ if self.terms.has_chunks() => Ok((RequestKind::Read, fua | wire::CMD_FLAG_DF)),
            wire::CMD_READ => Ok((RequestKind::Read, fua)),
            // PAYLOAD_LEN is optional, because a write always has data.
            wire::CMD_WRITE if self.terms.form == ReplyForm::Extended => {
                Ok((RequestKind::Write, fua | wire::CMD_FLAG_PAYLOAD_LEN))
            }
            wire::CMD_WRITE => Ok((RequestKind::Write, fua)),
            wire::CMD_FLUSH => Ok((RequestKind::Flush, fua)),
            wire::CMD_TRIM if self.trim => Ok((RequestKind::Trim, fua)),
            wire::CMD_WRITE_ZEROES if self.write_zeroes => {
                Ok((RequestKind::WriteZeroes, fua | wire::CMD_FLAG_NO_HOLE | wire::CMD_FLAG_FAST_ZERO))
            }
            wire::CMD_CACHE => Ok((RequestKind::Cache, fua)),
            wire::CMD_BLOCK_STATUS if self.terms.block_status => {
                Ok((RequestKind::BlockStatus, fua | wire::CMD_FLAG_REQ_ONE))
            }
            wire::CMD_BLOCK_STATUS => Err((ErrorCode::Invalid, "no metadata context was negotiated for this export")),
            _ => Err((ErrorCode::Invalid, "the command was not offered")),
        }
    }

    #[inline]
    fn check_range(&self, request: &Request) -> Result<(), Wrong> {
        let end = request.offset.checked_add(request.length);
        if end.is_some_and(|end| end <= self.size_bytes) {
            return Ok(());
        }
        let code = match request.kind {
            RequestKind::Write | RequestKind::WriteZeroes => ErrorCode::NoSpace,
            _ => ErrorCode::Invalid,
        };
        Err((code, "the request goes beyond the end of the export"))
    }
}
