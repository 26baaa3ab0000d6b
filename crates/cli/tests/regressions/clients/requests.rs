//! Wrong requests, many requests, and incomplete requests.

use std::net::Shutdown;
use std::thread;

use crate::list::Sandbox;
use crate::nbd::{
    BLOCK_STATUS, CACHE, Client, DISC, EINVAL, EIO, ENOSPC, EPERM, FLUSH, FUA, READ, TRIM, Target, WRITE, ZEROES,
    request, write,
};

const SIZE: u64 = 16 << 20;

/// Asserts that each of these requests gets its error, on one connection that stays open.
#[track_caller]
fn each_gets(place: &Sandbox, args: &[&str], sent: &[(Vec<u8>, u32)]) {
    let target = Target::of(place, args);
    let mut client = target.client();
    for (bytes, error) in sent {
        assert_eq!(client.error_of(bytes), *error, "{:x?}", &bytes[..28]);
    }
    assert_eq!(client.read(4096, 512), Ok(vec![0; 512]), "nothing was written");
    target.serves_and_ends_well();
}

const PLAIN: [&str; 3] = ["memory:16M", "--budget-mib", "16"];

pub(super) fn garbage_instead_of_a_request(place: &Sandbox) {
    let target = Target::new(place);
    let mut garbage = request(0, READ, 1, 0, 512);
    garbage[0] = 0;
    for bytes in [garbage, vec![0xff; 5000], b"GET / HTTP/1.1\r\n\r\n padding padding".to_vec()] {
        let mut client = target.client();
        client.try_send(&bytes);
        client.is_closed();
    }
    target.server.says("expected the magic number of a request");
    target.serves_and_ends_well();
}

pub(super) fn unknown_commands(place: &Sandbox) {
    // Block status is only for clients that have negotiated a context.
    let unknown = [BLOCK_STATUS, 8, 9, 100, u16::MAX];
    each_gets(place, &PLAIN, &unknown.map(|command| (request(0, command, 1, 0, 512), EINVAL)));
}

pub(super) fn unknown_flags(place: &Sandbox) {
    let mut sent = Vec::new();
    for flags in [2, 4, 8, 16, 32, 64, 0x8000, 0xfffe] {
        sent.push((request(flags, READ, 1, 4096, 512), EINVAL));
        sent.push((write(flags, 2, 4096, &[1; 512]), EINVAL));
        sent.push((request(flags, TRIM, 3, 4096, 512), EINVAL));
        sent.push((request(flags, FLUSH, 4, 0, 0), EINVAL));
    }
    each_gets(place, &PLAIN, &sent);
}

pub(super) fn beyond_the_end(place: &Sandbox) {
    let mut sent = Vec::new();
    for offset in [SIZE, SIZE - 511, u64::MAX, u64::MAX - 511, 1 << 63, (1 << 63) - 1] {
        sent.push((request(0, READ, 1, offset, 512), EINVAL));
        sent.push((write(0, 2, offset, &[1; 512]), ENOSPC));
        sent.push((request(0, CACHE, 5, offset, 512), EINVAL));
        sent.push((request(0, TRIM, 3, offset, 512), EINVAL));
        sent.push((request(0, ZEROES, 4, offset, 512), ENOSPC));
    }
    each_gets(place, &PLAIN, &sent);
}

pub(super) fn invalid_lengths(place: &Sandbox) {
    let most = u32::MAX;
    each_gets(
        place,
        &PLAIN,
        &[
            (request(0, READ, 1, 0, most), EINVAL),
            (request(0, TRIM, 2, 0, most), EINVAL),
            (request(0, ZEROES, 3, 0, most), ENOSPC),
            (request(0, READ, 4, 0, (32 << 20) + 1), EINVAL),
            (request(0, FLUSH, 5, 0, most), EINVAL),
            (request(0, FLUSH, 6, 1, 0), EINVAL),
        ],
    );
    let target = Target::new(place);
    for length in [most, (32 << 20) + 1] {
        let mut client = target.client();
        client.try_send(&request(0, WRITE, 1, 0, length));
        client.is_closed();
    }
    target.serves_and_ends_well();
}

pub(super) fn length_zero(place: &Sandbox) {
    let sent = [READ, WRITE, TRIM, ZEROES, CACHE].map(|command| (request(0, command, 1, 0, 0), EINVAL));
    each_gets(place, &PLAIN, &sent);
}

pub(super) fn fua_is_accepted(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.client();
    assert_eq!(client.error_of(&write(FUA, 1, 512, &[7; 512])), 0);
    for (command, offset, length) in [(TRIM, 8192, 8192), (ZEROES, 8192, 8192), (ZEROES, 16_385, 3), (FLUSH, 0, 0)] {
        assert_eq!(client.error_of(&request(FUA, command, 2, offset, length)), 0);
    }
    assert_eq!(client.error_of(&request(FUA, READ, 3, 512, 512)), 0);
    assert_eq!(client.bytes(512), [7; 512]);
    target.serves_and_ends_well();
}

pub(super) fn unaligned_zeroes_and_trims(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.client();
    assert_eq!(client.error_of(&write(0, 1, 0, &[7; 65_536])), 0);
    for (offset, length) in [(1, 1), (511, 2), (4095, 4098), (20_000, 1)] {
        assert_eq!(client.error_of(&request(0, TRIM, 2, offset, length)), 0);
        let bytes = client.read(0, 65_536).unwrap();
        let around = [&bytes[..offset as usize], &bytes[offset as usize + length as usize..]].concat();
        assert!(around.iter().all(|&byte| byte == 7), "a trim of {length} at {offset}");
        assert_eq!(client.error_of(&request(0, ZEROES, 3, offset, length)), 0);
        let mut zeroed = vec![7; 65_536];
        zeroed[offset as usize..][..length as usize].fill(0);
        assert!(client.read(0, 65_536).unwrap() == zeroed, "zeroes of {length} at {offset}");
        assert_eq!(client.error_of(&write(0, 4, 0, &[7; 65_536])), 0);
    }
    target.serves_and_ends_well();
}

pub(super) fn writes_to_a_read_only_export(place: &Sandbox) {
    let target = Target::of(place, &["memory:16M", "--budget-mib", "16", "--export", "", "--export", "ro,read_only"]);
    let mut client = target.handshaking().choose_export("ro");
    assert_eq!(client.error_of(&write(0, 1, 0, &vec![1; 1 << 20])), EPERM);
    assert_eq!(client.error_of(&request(0, TRIM, 2, 0, 512)), EPERM);
    assert_eq!(client.error_of(&request(0, ZEROES, 3, 0, 512)), EPERM);
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    target.serves_and_ends_well();
}

pub(super) fn cookies_that_repeat(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.client();
    client.send(&request(0, READ, 5, 0, 512).repeat(64));
    for _ in 0..64 {
        assert_eq!(client.reply(), (0, 5));
        client.bytes(512);
    }
    target.serves_and_ends_well();
}

/// Sends `count` requests at once. Each of them must get a reply.
fn flood(place: &Sandbox, count: usize, bytes: &[u8], error: u32) {
    let target = Target::new(place);
    let client = target.client();
    let mut sender = client.stream.try_clone().unwrap();
    let all = bytes.repeat(count);
    thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut sender, &all).unwrap());
        let mut client = client;
        for _ in 0..count {
            assert_eq!(client.reply().0, error);
        }
        target.answers();
    });
    target.serves_and_ends_well();
}

pub(super) fn ten_thousand_writes(place: &Sandbox) {
    flood(place, 10_000, &write(0, 1, 4096, &[1; 512]), 0);
}

pub(super) fn flush_flood(place: &Sandbox) {
    flood(place, 10_000, &request(0, FLUSH, 1, 0, 0), 0);
}

pub(super) fn zeroes_flood(place: &Sandbox) {
    flood(place, 2000, &request(0, ZEROES, 1, 0, SIZE as u32), 0);
}

pub(super) fn trim_flood(place: &Sandbox) {
    flood(place, 2000, &request(0, TRIM, 1, 0, SIZE as u32), 0);
}

pub(super) fn unknown_command_flood(place: &Sandbox) {
    flood(place, 10_000, &request(0, 99, 1, 0, 0), EINVAL);
}

pub(super) fn overlapping_writes(place: &Sandbox) {
    let target = Target::new(place);
    thread::scope(|scope| {
        for number in 1..=4_u8 {
            let mut client = target.client();
            scope.spawn(move || {
                for round in 0..50 {
                    // Some writes begin in the middle of a block.
                    let offset = 4096 + 256 * u64::from(round % 3_u8);
                    assert_eq!(client.error_of(&write(0, 1, offset, &[number; 8192])), 0);
                }
            });
        }
    });
    let bytes = target.client().read(4096 + 512, 7680).unwrap();
    assert!(bytes.iter().all(|byte| (1..=4).contains(byte)), "each byte comes from one of the clients");
    assert!(bytes[512..7168].chunks(256).all(|part| part.iter().all(|byte| byte == &part[0])));
    target.serves_and_ends_well();
}

pub(super) fn disconnect_request_with_requests_in_flight(place: &Sandbox) {
    let target = Target::of(place, &["model:sata-ssd,size=1G", "--budget-mib", "16"]);
    let mut client = target.client();
    client.send(&[request(0, READ, 1, 0, 65_536).repeat(50), request(0, DISC, 0, 0, 0)].concat());
    assert_eq!(client.ends_after().len(), 50 * (65_536 + 16), "all reads have replies");
    target.serves_and_ends_well();
}

pub(super) fn half_closed(place: &Sandbox) {
    let target = Target::of(place, &["model:sata-ssd,size=1G", "--budget-mib", "16"]);
    for extra in [0, 10, 28] {
        let mut client = target.client();
        let more = [request(0, WRITE, 9, 0, 4096), vec![1; 50]].concat();
        client.send(&[request(0, READ, 1, 0, 65_536).repeat(50), more[..extra].to_vec()].concat());
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.ends_after().len(), 50 * (65_536 + 16), "all complete requests have replies");
    }
    target.serves_and_ends_well();
}

pub(super) fn disconnect_with_requests_in_flight(place: &Sandbox) {
    let target = Target::of(place, &["model:sata-ssd,size=1G", "--budget-mib", "16"]);
    for round in 0..30 {
        let mut client = target.client();
        client.send(&request(0, READ, 1, round << 20, 1 << 20).repeat(20));
        client.send(&[request(0, WRITE, 2, 0, 1 << 20), vec![1; 70_000]].concat());
    }
    target.serves_and_ends_well();
}

pub(super) fn reset(place: &Sandbox) {
    let target = Target::of(place, &["memory:16M", "--budget-mib", "16", "--tcp", "127.0.0.1:0", "--insecure"]);
    let port = target.server.port();
    for _ in 0..20 {
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut client = Client::introduced(stream).choose_export("");
        client.send(&request(0, READ, 1, 0, 1 << 20).repeat(8));
        // If a client closes a connection with unread data, the server receives a reset.
        client.stream.peek(&mut [0]).unwrap();
        client.try_send(&[request(0, WRITE, 2, 0, 1 << 20), vec![1; 10_000]].concat());
    }
    target.serves_and_ends_well();
}

pub(super) fn error_within_a_large_write(place: &Sandbox) {
    let target = Target::of(place, &["fault:bad=9437184+4096:memory:64M", "--budget-mib", "1"]);
    let mut client = target.client();
    assert_eq!(client.error_of(&write(FUA, 3, 0, &vec![9; 20 << 20])), EIO);
    assert_eq!(client.error_of(&write(0, 4, 10 << 20, &vec![8; 20 << 20])), 0);
    assert_eq!(client.read(10 << 20, 512), Ok(vec![8; 512]));
    target.serves_and_ends_well();
}

pub(super) fn error_within_a_large_read(place: &Sandbox) {
    let target = Target::of(place, &["fault:bad=9437184+4096:memory:64M", "--budget-mib", "1"]);
    let mut client = target.structured();
    client.send(&request(0, READ, 3, 0, 20 << 20));
    assert_eq!(client.chunks(0, 20 << 20), Err(EIO));
    client.send(&request(0, READ, 4, 10 << 20, 20 << 20));
    assert_eq!(client.chunks(10 << 20, 20 << 20).map(|data| data.len()), Ok(20 << 20));
    // After the header of a simple reply, an error can no longer be reported.
    let mut client = target.client();
    client.send(&request(0, READ, 5, 0, 20 << 20));
    assert_eq!(client.reply(), (0, 5));
    assert!(client.ends_after().len() < 20 << 20);
    target.server.says("failed after the server had begun to send the reply");
    target.serves_and_ends_well();
}
