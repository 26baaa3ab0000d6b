//! Extended headers on a served disk, by a client of our own: libnbd before 1.18 and QEMU before 8.2 do not know them.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use iosched_live::nbd::wire;

use super::client::{self, FLAGS, OFFSET, Reply, Sent};
use super::disk::Disk;

const MIB: u64 = 1 << 20;

#[test]
fn extended_headers_do_all_of_a_large_disk_at_once() {
    let disk = Disk::new("memory:32G", 64);
    let mut socket = UnixStream::connect(disk.path("s")).unwrap();
    let sent = Sent::hello(FLAGS).option(wire::OPT_EXTENDED_HEADERS, &[]);
    let sent = sent.contexts(wire::OPT_SET_META_CONTEXT, "", &["base:allocation"]).go("");
    socket.write_all(&sent.0).unwrap();
    // The greeting; ACK; a context and ACK; the export and ACK.
    let mut shaken = [0; wire::GREETING_BYTES + 5 * wire::OPTION_REPLY_HEADER_BYTES + 4 + 15 + 12];
    socket.read_exact(&mut shaken).unwrap();

    let mut ask = |sent: Sent| {
        socket.write_all(&sent.0).unwrap();
        client::receive(&mut socket)
    };
    let length = 3 << 33;
    let mut write = Sent::default().extended(wire::CMD_WRITE, wire::CMD_FLAG_PAYLOAD_LEN, 1, OFFSET, 10_000);
    write.0.extend_from_slice(&[7; 10_000]);
    assert_eq!(ask(write).0, Reply::Nothing { cookie: 1 });
    let (reply, data) = ask(Sent::default().extended(wire::CMD_READ, 0, 2, OFFSET, 12_000));
    assert_eq!(reply, Reply::Data { cookie: 2, offset: OFFSET, length: 12_000 });
    assert_eq!((&data[..10_000], &data[10_000..]), (&[7; 10_000][..], &[0; 2_000][..]));
    let status = || Sent::default().extended(wire::CMD_BLOCK_STATUS, 0, 3, OFFSET, length);
    let extents = |extents| Reply::Extents { cookie: 3, context: 1, extents };
    assert_eq!(ask(status()).0, extents(vec![(12_288, 0), (length - 12_288, 3)]));
    assert_eq!(ask(Sent::default().extended(wire::CMD_TRIM, 0, 4, OFFSET, length)).0, Reply::Nothing { cookie: 4 });
    assert_eq!(ask(status()).0, extents(vec![(length, 3)]));
    let zero = Sent::default().extended(wire::CMD_WRITE_ZEROES, 0, 5, OFFSET, length);
    assert_eq!(ask(zero).0, Reply::Nothing { cookie: 5 });
    // Longer than a read may be: its beginning is read.
    assert_eq!(ask(Sent::default().extended(wire::CMD_CACHE, 0, 6, OFFSET, 128 * MIB)).0, Reply::Nothing { cookie: 6 });
    let beyond = Sent::default().extended(wire::CMD_TRIM, 0, 7, OFFSET, length + 1);
    assert!(matches!(ask(beyond).0, Reply::Error { cookie: 7, error: 22, .. }));
}
