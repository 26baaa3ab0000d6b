//! A client's side of the protocol, as much of it as tests need.

use std::io::Read;

use iosched_live::nbd::wire::{self, OptionHeader, Reader, RequestHeader};

/// Client flags of a client of today.
pub(crate) const FLAGS: u32 = wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES;

/// Bytes that a client sends, built call by call.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sent(pub(crate) Vec<u8>);

impl Sent {
    /// After a greeting: the client flags.
    pub(crate) fn hello(flags: u32) -> Self {
        Self(flags.to_be_bytes().to_vec())
    }

    pub(crate) fn option(mut self, option: u32, data: &[u8]) -> Self {
        let length = u32::try_from(data.len()).unwrap();
        OptionHeader { magic: wire::OPTION_MAGIC, option, length }.write(&mut self.0);
        self.0.extend_from_slice(data);
        self
    }

    /// GO or INFO.
    pub(crate) fn ask(self, option: u32, name: &str, facts: &[u16]) -> Self {
        self.option(option, &info_request(name.as_bytes(), facts))
    }

    pub(crate) fn go(self, name: &str) -> Self {
        self.ask(wire::OPT_GO, name, &[])
    }

    /// `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
    pub(crate) fn contexts(self, option: u32, name: &str, queries: &[&str]) -> Self {
        self.option(option, &contexts(name, queries))
    }

    pub(crate) fn request(mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Self {
        let header =
            RequestHeader { magic: wire::REQUEST_MAGIC, flags, command, cookie, offset, length: length.into() };
        self.0.extend_from_slice(&header.to_bytes());
        self
    }

    /// A request with extended headers.
    pub(crate) fn extended(mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u64) -> Self {
        let header = RequestHeader { magic: wire::EXTENDED_REQUEST_MAGIC, flags, command, cookie, offset, length };
        self.0.extend_from_slice(&header.to_extended_bytes());
        self
    }

    pub(crate) fn write(self, flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Self {
        let mut sent = self.request(wire::CMD_WRITE, flags, cookie, offset, u32::try_from(data.len()).unwrap());
        sent.0.extend_from_slice(data);
        sent
    }
}

/// The data of GO or INFO.
pub(crate) fn info_request(name: &[u8], facts: &[u16]) -> Vec<u8> {
    let mut data = u32::try_from(name.len()).unwrap().to_be_bytes().to_vec();
    data.extend_from_slice(name);
    data.extend_from_slice(&u16::try_from(facts.len()).unwrap().to_be_bytes());
    data.extend(facts.iter().flat_map(|fact| fact.to_be_bytes()));
    data
}

/// The data of `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
pub(crate) fn contexts(name: &str, queries: &[&str]) -> Vec<u8> {
    let number = |count: usize| u32::try_from(count).unwrap().to_be_bytes();
    let mut data = [&number(name.len()), name.as_bytes(), &number(queries.len())].concat();
    for query in queries {
        data.extend_from_slice(&[&number(query.len()), query.as_bytes()].concat());
    }
    data
}

/// A reply to an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OptionReply {
    pub(crate) option: u32,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
}

/// All replies in `bytes`, which hold whole ones and nothing else.
pub(crate) fn option_replies(bytes: &[u8]) -> Vec<OptionReply> {
    let mut reader = Reader(bytes);
    let mut replies = Vec::new();
    while !reader.0.is_empty() {
        assert_eq!(reader.u64(), Some(wire::OPTION_REPLY_MAGIC));
        let (option, kind) = (reader.u32().unwrap(), reader.u32().unwrap());
        let length = reader.u32().unwrap() as usize;
        replies.push(OptionReply { option, kind, data: reader.bytes(length).unwrap().to_vec() });
    }
    replies
}

/// A reply to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Simple {
        error: u32,
        cookie: u64,
    },
    /// A chunk that says nothing but that it is done.
    Nothing {
        cookie: u64,
    },
    Data {
        cookie: u64,
        offset: u64,
        length: u64,
    },
    Error {
        cookie: u64,
        error: u32,
        message: String,
    },
    Extents {
        cookie: u64,
        context: u32,
        extents: Vec<(u64, u64)>,
    },
}

/// The offset that replies with extended headers are to tell.
pub(crate) const OFFSET: u64 = 1 << 33;

/// The header of a reply, the only chunk of it; a read's data comes after it.
pub(crate) fn reply(reader: &mut Reader<'_>) -> Reply {
    let magic = reader.u32().unwrap();
    if magic == wire::SIMPLE_REPLY_MAGIC {
        return Reply::Simple { error: reader.u32().unwrap(), cookie: reader.u64().unwrap() };
    }
    let is_extended = magic == wire::EXTENDED_REPLY_MAGIC;
    assert!(is_extended || magic == wire::STRUCTURED_REPLY_MAGIC, "magic {magic:#x}");
    assert_eq!(reader.u16(), Some(wire::REPLY_FLAG_DONE));
    let (kind, cookie) = (reader.u16().unwrap(), reader.u64().unwrap());
    let length = if is_extended {
        assert_eq!(reader.u64(), Some(OFFSET), "the request's");
        reader.u64().unwrap()
    } else {
        reader.u32().unwrap().into()
    };
    match kind {
        wire::REPLY_TYPE_NONE => {
            assert_eq!(length, 0);
            Reply::Nothing { cookie }
        }
        wire::REPLY_TYPE_OFFSET_DATA => Reply::Data { cookie, offset: reader.u64().unwrap(), length: length - 8 },
        wire::REPLY_TYPE_BLOCK_STATUS => {
            let context = reader.u32().unwrap();
            let mut number = || u64::from(reader.u32().unwrap());
            let extents = (0..(length - 4) / 8).map(|_| (number(), number())).collect();
            Reply::Extents { cookie, context, extents }
        }
        wire::REPLY_TYPE_BLOCK_STATUS_EXT => {
            let (context, count) = (reader.u32().unwrap(), reader.u32().unwrap());
            assert_eq!(length, 8 + 16 * u64::from(count));
            let mut number = || reader.u64().unwrap();
            let extents = (0..count).map(|_| (number(), number())).collect();
            Reply::Extents { cookie, context, extents }
        }
        wire::REPLY_TYPE_ERROR => {
            let error = reader.u32().unwrap();
            let bytes = reader.u16().unwrap();
            assert_eq!(u64::from(bytes) + 6, length);
            let message = reader.bytes(usize::from(bytes)).unwrap().to_vec();
            Reply::Error { cookie, error, message: String::from_utf8(message).unwrap() }
        }
        other => panic!("chunk of type {other}"),
    }
}

/// The next reply with extended headers, a chunk, and a read's data.
pub(crate) fn receive(socket: &mut impl Read) -> (Reply, Vec<u8>) {
    let mut bytes = vec![0; wire::EXTENDED_CHUNK_HEADER_BYTES];
    socket.read_exact(&mut bytes).unwrap();
    let length = Reader(&bytes[24..]).u64().unwrap() as usize;
    bytes.resize(wire::EXTENDED_CHUNK_HEADER_BYTES + length, 0);
    socket.read_exact(&mut bytes[wire::EXTENDED_CHUNK_HEADER_BYTES..]).unwrap();
    let mut reader = Reader(&bytes);
    let reply = reply(&mut reader);
    (reply, reader.0.to_vec())
}
