//! Reads answers as a client does, for the tests. Accepts only complete answers.

use iosched_nbd::ReplyForm;
use iosched_nbd::client::{ChunkHeader, OptionReply, Payload, ReplyHeader};
use iosched_nbd::wire;

/// Returns the replies to options in `bytes`.
pub(crate) fn option_replies(mut bytes: &[u8]) -> Vec<OptionReply<'_>> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        replies.push(OptionReply::read(&mut bytes).unwrap().expect("the whole reply has arrived"));
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
    /// A chunk without payload.
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

/// The offset that replies with extended headers must have.
pub(crate) const OFFSET: u64 = 1 << 33;

/// Returns the only reply in `bytes`, without the data of a read, which the server sends
/// afterwards.
pub(crate) fn reply(mut bytes: &[u8], form: ReplyForm) -> Reply {
    let header = ReplyHeader::read(&mut bytes, form).unwrap().expect("the whole header has arrived");
    let ChunkHeader { flags, kind, cookie, offset, length } = match header {
        ReplyHeader::Simple { error, cookie } => {
            assert!(bytes.is_empty());
            return Reply::Simple { error, cookie };
        }
        ReplyHeader::Chunk(chunk) => chunk,
    };
    assert_eq!(flags, wire::REPLY_FLAG_DONE);
    assert_eq!(offset, (form == ReplyForm::Extended).then_some(OFFSET), "the offset of the request");
    if kind == wire::REPLY_TYPE_OFFSET_DATA {
        let offset = wire::Reader(bytes).u64().unwrap();
        assert_eq!(bytes.len(), 8);
        return Reply::Data { cookie, offset, length: length - 8 };
    }
    assert_eq!(bytes.len() as u64, length);
    match Payload::read(kind, bytes).unwrap() {
        Payload::None => Reply::Nothing { cookie },
        Payload::BlockStatus { context, extents } => {
            let extents = extents.iter().map(|extent| (extent.length, extent.state)).collect();
            Reply::Extents { cookie, context, extents }
        }
        Payload::Error { error, message, offset: None } => {
            Reply::Error { cookie, error, message: String::from_utf8(message.to_vec()).unwrap() }
        }
        other => panic!("{other:?}"),
    }
}
