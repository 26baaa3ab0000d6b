//! Tests of extended headers on a served disk. The client belongs to this project, because libnbd
//! before 1.18 and QEMU before 8.2 do not support extended headers.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use iosched_nbd::client::{ChunkHeader, FLAGS, Messages, Payload, ReplyHeader};
use iosched_nbd::{Extent, ReplyForm, wire};

use super::disk::Disk;

const MIB: u64 = 1 << 20;

const OFFSET: u64 = 1 << 33;

/// Returns the cookie and the payload of the next reply. The reply must consist of one chunk.
fn receive<'a>(socket: &mut impl Read, bytes: &'a mut Vec<u8>) -> (u64, Payload<'a>) {
    let mut header = [0; wire::EXTENDED_CHUNK_HEADER_BYTES];
    socket.read_exact(&mut header).unwrap();
    let header = ReplyHeader::read(&mut &header[..], ReplyForm::Extended).unwrap();
    let Some(ReplyHeader::Chunk(chunk)) = header else { panic!("{header:?}") };
    let ChunkHeader { kind, cookie, offset, length, .. } = chunk;
    assert!(chunk.is_last() && offset == Some(OFFSET), "{chunk:?}");
    bytes.resize(length as usize, 0);
    socket.read_exact(bytes).unwrap();
    (cookie, Payload::read(kind, bytes).unwrap())
}

#[test]
fn extended_requests_cover_a_range_above_4_gib_at_once() {
    let disk = Disk::new("memory:32G", 64);
    let mut socket = UnixStream::connect(disk.path("s")).unwrap();
    let sent = Messages::flags(FLAGS).option(wire::OPT_EXTENDED_HEADERS, &[]);
    let sent = sent.contexts(wire::OPT_SET_META_CONTEXT, "", &["base:allocation"]).go("");
    socket.write_all(&sent.0).unwrap();
    // The greeting; an ACK; a context and an ACK; the export and an ACK.
    let mut shaken = [0; wire::GREETING_BYTES + 5 * wire::OPTION_REPLY_HEADER_BYTES + 4 + 15 + 12];
    socket.read_exact(&mut shaken).unwrap();

    let mut bytes = Vec::new();
    let mut write =
        Messages::default().extended_request(wire::CMD_WRITE, wire::CMD_FLAG_PAYLOAD_LEN, 1, OFFSET, 10_000);
    write.0.extend_from_slice(&[7; 10_000]);
    socket.write_all(&write.0).unwrap();
    assert_eq!(receive(&mut socket, &mut bytes), (1, Payload::None));
    let mut ask = |command, cookie, length| {
        let sent = Messages::default().extended_request(command, 0, cookie, OFFSET, length);
        socket.write_all(&sent.0).unwrap();
        let mut bytes = Vec::new();
        let (answered, payload) = receive(&mut socket, &mut bytes);
        assert_eq!(answered, cookie);
        match payload {
            Payload::None => Ok((Vec::new(), Vec::new())),
            Payload::Data { offset: OFFSET, data } => Ok((data.to_vec(), Vec::new())),
            Payload::BlockStatus { context: 1, extents } => Ok((Vec::new(), extents)),
            Payload::Error { error, .. } => Err(error),
            other => panic!("{other:?}"),
        }
    };
    let length = 3 << 33;
    let (data, _) = ask(wire::CMD_READ, 2, 12_000).unwrap();
    assert_eq!((&data[..10_000], &data[10_000..]), (&[7; 10_000][..], &[0; 2_000][..]));
    let nothing = Ok((Vec::new(), Vec::new()));
    let extents = |extents: &[(u64, u64)]| {
        let extents = extents.iter().map(|&(length, state)| Extent { length, state }).collect();
        Ok((Vec::new(), extents))
    };
    assert_eq!(ask(wire::CMD_BLOCK_STATUS, 3, length), extents(&[(12_288, 0), (length - 12_288, 3)]));
    assert_eq!(ask(wire::CMD_TRIM, 4, length), nothing);
    assert_eq!(ask(wire::CMD_BLOCK_STATUS, 3, length), extents(&[(length, 3)]));
    assert_eq!(ask(wire::CMD_WRITE_ZEROES, 5, length), nothing);
    // The request is longer than the maximum read, so the disk reads only the beginning of the
    // range.
    assert_eq!(ask(wire::CMD_CACHE, 6, 128 * MIB), nothing);
    assert_eq!(ask(wire::CMD_TRIM, 7, length + 1), Err(22));
}
