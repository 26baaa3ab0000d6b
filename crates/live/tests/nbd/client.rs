//! A client's side of the protocol, as much of it as tests need.

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
        self.option(option, &asked(name.as_bytes(), facts))
    }

    pub(crate) fn go(self, name: &str) -> Self {
        self.ask(wire::OPT_GO, name, &[])
    }

    /// `LIST_META_CONTEXT` or `SET_META_CONTEXT`.
    pub(crate) fn contexts(self, option: u32, name: &str, queries: &[&str]) -> Self {
        self.option(option, &contexts(name, queries))
    }

    pub(crate) fn request(mut self, command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Self {
        let header = RequestHeader { magic: wire::REQUEST_MAGIC, flags, command, cookie, offset, length };
        self.0.extend_from_slice(&header.to_bytes());
        self
    }

    pub(crate) fn write(self, flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Self {
        let mut sent = self.request(wire::CMD_WRITE, flags, cookie, offset, u32::try_from(data.len()).unwrap());
        sent.0.extend_from_slice(data);
        sent
    }
}

/// The data of GO or INFO.
pub(crate) fn asked(name: &[u8], facts: &[u16]) -> Vec<u8> {
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
    Simple { error: u32, cookie: u64 },
    Data { cookie: u64, offset: u64, length: u32 },
    Error { cookie: u64, error: u32, message: String },
    Extents { cookie: u64, context: u32, extents: Vec<(u64, u64)> },
}

/// The header of a reply; a read's data comes after it.
pub(crate) fn reply(reader: &mut Reader<'_>) -> Reply {
    match reader.u32().unwrap() {
        wire::SIMPLE_REPLY_MAGIC => Reply::Simple { error: reader.u32().unwrap(), cookie: reader.u64().unwrap() },
        wire::STRUCTURED_REPLY_MAGIC => {
            assert_eq!(reader.u16(), Some(wire::REPLY_FLAG_DONE));
            let (kind, cookie, length) = (reader.u16().unwrap(), reader.u64().unwrap(), reader.u32().unwrap());
            match kind {
                wire::REPLY_TYPE_OFFSET_DATA => {
                    Reply::Data { cookie, offset: reader.u64().unwrap(), length: length - 8 }
                }
                wire::REPLY_TYPE_BLOCK_STATUS => {
                    let context = reader.u32().unwrap();
                    let mut number = || u64::from(reader.u32().unwrap());
                    let extents = (0..(length - 4) / 8).map(|_| (number(), number())).collect();
                    Reply::Extents { cookie, context, extents }
                }
                wire::REPLY_TYPE_ERROR => {
                    let error = reader.u32().unwrap();
                    let bytes = reader.u16().unwrap();
                    assert_eq!(u32::from(bytes) + 6, length);
                    let message = reader.bytes(usize::from(bytes)).unwrap().to_vec();
                    Reply::Error { cookie, error, message: String::from_utf8(message).unwrap() }
                }
                other => panic!("chunk of type {other}"),
            }
        }
        other => panic!("magic {other:#x}"),
    }
}
