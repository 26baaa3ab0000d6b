//! Clients that have not chosen an export yet.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::list::Sandbox;
use crate::nbd::{
    Client, ERR_INVALID, ERR_POLICY, ERR_TLS_REQD, ERR_TOO_BIG, ERR_UNKNOWN, ERR_UNSUP, OPT_ABORT, OPT_EXPORT_NAME,
    OPT_EXTENDED_HEADERS, OPT_GO, OPT_LIST, OPT_META_CONTEXT, OPT_STARTTLS, OPT_STRUCTURED_REPLY, REP_ACK, Target, go,
    option,
};

/// Asserts that each of these messages, after the greeting, ends only its own connection.
fn each_ends_its_connection(place: &Sandbox, sent: &[Vec<u8>]) {
    let target = Target::new(place);
    for bytes in sent {
        let mut client = Client::greeted(target.raw());
        client.try_send(bytes);
        client.is_closed();
    }
    target.serves_and_ends_well();
}

/// Asserts that the server refuses each of these options with this reply, and continues the
/// handshake.
fn each_is_refused(place: &Sandbox, options: &[(u32, Vec<u8>, u32)]) {
    let target = Target::new(place);
    let mut client = target.handshaking();
    for (number, data, kind) in options {
        assert_eq!(client.ask(*number, data), *kind, "option {number} with {} bytes", data.len());
    }
    assert_eq!(client.choose_export("").read(0, 512), Ok(vec![0; 512]));
    target.serves_and_ends_well();
}

fn after_flags(bytes: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 3], bytes].concat()
}

pub(super) fn garbage(place: &Sandbox) {
    let http = b"GET / HTTP/1.1\r\nHost: disk\r\n\r\n".to_vec();
    let noise: Vec<u8> = (0..5000_u32).map(|at| (at * 7 + at / 256) as u8).collect();
    each_ends_its_connection(place, &[http, noise.clone(), after_flags(&noise), vec![0xff; 5000]]);
}

pub(super) fn unknown_client_flags(place: &Sandbox) {
    each_ends_its_connection(place, &[vec![0, 0, 0, 7], vec![0x80, 0, 0, 3], vec![0xff; 4]]);
}

pub(super) fn options_above_64_kib(place: &Sandbox) {
    let of_length = |number: u32, length: u32| {
        let mut bytes = option(number, &[]);
        bytes.truncate(12);
        after_flags(&[bytes, length.to_be_bytes().to_vec()].concat())
    };
    let lengths = [u32::MAX, 1 << 31, 65_537, 1 << 20];
    each_ends_its_connection(place, &lengths.map(|length| of_length(OPT_GO, length)));
}

pub(super) fn option_flood(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.handshaking();
    for _ in 0..1024 {
        assert_eq!(client.ask(99, &[]), ERR_UNSUP);
    }
    client.try_send(&option(99, &[]));
    client.is_closed();
    let mut client = target.handshaking();
    for _ in 0..4 {
        assert_eq!(client.ask(99, &[0; 16_384]), ERR_UNSUP);
    }
    client.try_send(&option(99, &[0]));
    client.is_closed();
    target.serves_and_ends_well();
}

pub(super) fn unread_export_lists(place: &Sandbox) {
    let exports: Vec<String> = (0..40).map(|number| format!("{number}{}", "x".repeat(200))).collect();
    let args = exports.iter().flat_map(|name| ["--export", name]);
    let args: Vec<&str> = ["memory:16M", "--budget-mib", "16", "--export", ""].into_iter().chain(args).collect();
    let target = Target::of(place, &args);
    let mut greedy: Vec<Client> = (0..64).map(|_| target.handshaking()).collect();
    for client in &mut greedy {
        client.send(&option(OPT_LIST, &[]).repeat(1000));
    }
    target.answers();
    let taken_kib = target.taken_kib();
    // Unsent replies need 25 KiB per client. All requested replies together would need 9 MiB per
    // client. The limit also includes pages of the program.
    assert!(taken_kib < 64 * 128, "{taken_kib} KiB for 64 clients");
    drop(greedy);
    target.serves_and_ends_well();
}

pub(super) fn long_names(place: &Sandbox) {
    let long = vec![b'x'; 4097];
    each_is_refused(
        place,
        &[
            (OPT_GO, go(&long, &[]), ERR_TOO_BIG),
            (OPT_GO, go(&long[1..], &[]), ERR_UNKNOWN),
            (OPT_GO, go("\u{1f4be}".repeat(1024).as_bytes(), &[0; 16]), ERR_UNKNOWN),
        ],
    );
    each_ends_its_connection(place, &[after_flags(&option(OPT_EXPORT_NAME, &long))]);
}

pub(super) fn names_not_in_utf_8(place: &Sandbox) {
    let names: [&[u8]; 4] = [&[0xff], b"db\xc3\x28", &[0xed, 0xa0, 0x80], &[0xf8; 100]];
    each_is_refused(place, &names.map(|name| (OPT_GO, go(name, &[]), ERR_INVALID)));
    each_ends_its_connection(place, &names.map(|name| after_flags(&option(OPT_EXPORT_NAME, name))));
}

pub(super) fn unknown_names(place: &Sandbox) {
    each_is_refused(
        place,
        &[
            (OPT_GO, go(b"none", &[]), ERR_UNKNOWN),
            (OPT_GO, go(b"\0", &[]), ERR_UNKNOWN),
            (OPT_GO, go(b"../../etc/passwd", &[]), ERR_UNKNOWN),
            (OPT_GO, go(b"\x1b[2J", &[]), ERR_UNKNOWN),
        ],
    );
    each_ends_its_connection(place, &[after_flags(&option(OPT_EXPORT_NAME, b"none"))]);
}

pub(super) fn inconsistent_lengths(place: &Sandbox) {
    let mut beyond = go(b"", &[]);
    beyond[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut more_facts = go(b"", &[1, 2]);
    more_facts[4..6].copy_from_slice(&u16::MAX.to_be_bytes());
    let rest = [go(b"", &[]), vec![0]].concat();
    let wrong = [vec![], vec![0; 3], vec![0; 5], beyond, more_facts, rest];
    each_is_refused(place, &wrong.map(|data| (OPT_GO, data, ERR_INVALID)));
}

pub(super) fn unsupported_or_malformed_options(place: &Sandbox) {
    each_is_refused(
        place,
        &[
            (OPT_EXTENDED_HEADERS, vec![1], ERR_INVALID),
            (OPT_META_CONTEXT, go(b"", &[]), ERR_INVALID),
            (OPT_STARTTLS, vec![], ERR_POLICY),
            (OPT_STARTTLS, vec![1], ERR_INVALID),
            (OPT_LIST, vec![1], ERR_INVALID),
            (OPT_STRUCTURED_REPLY, vec![1], ERR_INVALID),
            (4, vec![], ERR_UNSUP),
            (0, vec![], ERR_UNSUP),
            (u32::MAX, vec![0; 100], ERR_UNSUP),
        ],
    );
}

pub(super) fn structured_replies_twice(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.handshaking();
    for _ in 0..2 {
        assert_eq!(client.ask(OPT_STRUCTURED_REPLY, &[]), REP_ACK);
    }
    let mut client = client.choose_export("");
    client.send(&crate::nbd::request(0, crate::nbd::READ, 1, 0, 4096));
    assert_eq!(client.chunks(0, 4096), Ok(vec![0; 4096]));
    target.serves_and_ends_well();
}

pub(super) fn abort(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = target.handshaking();
    assert_eq!(client.ask(OPT_ABORT, &[]), REP_ACK);
    client.is_closed();
    target.serves_and_ends_well();
}

pub(super) fn client_without_fixed_newstyle(place: &Sandbox) {
    let target = Target::new(place);
    // A client without fixed newstyle can only choose an export, and receives 124 bytes of padding.
    let mut client = Client::greeted(target.raw());
    client.send(&[[0; 4].to_vec(), option(OPT_EXPORT_NAME, b"")].concat());
    assert_eq!(client.bytes(10)[..8], (16_u64 << 20).to_be_bytes());
    assert_eq!(client.bytes(124), [0; 124]);
    assert_eq!(client.read(4096, 512), Ok(vec![0; 512]));
    let mut client = Client::greeted(target.raw());
    client.try_send(&[[0; 4].to_vec(), option(OPT_LIST, &[])].concat());
    client.is_closed();
    target.serves_and_ends_well();
}

pub(super) fn byte_by_byte(place: &Sandbox) {
    let target = Target::new(place);
    let mut client = Client::greeted(target.raw());
    for byte in after_flags(&[option(OPT_LIST, &[]), option(OPT_GO, &go(b"", &[3]))].concat()) {
        client.send(&[byte]);
        thread::sleep(Duration::from_millis(1));
    }
    for (number, replies) in [(OPT_LIST, 2), (OPT_GO, 3)] {
        for _ in 0..replies {
            client.replied(number);
        }
    }
    for byte in crate::nbd::request(0, crate::nbd::READ, 1, 0, 512) {
        client.send(&[byte]);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(client.reply(), (0, 1));
    client.bytes(512);
    drop(client);
    target.serves_and_ends_well();
}

pub(super) fn disconnect_at_every_byte(place: &Sandbox) {
    let target = Target::new(place);
    let text = after_flags(&option(OPT_GO, &go(b"", &[])));
    for length in 0..=text.len() {
        let mut client = Client::greeted(target.raw());
        client.send(&text[..length]);
    }
    target.serves_and_ends_well();
}

pub(super) fn unfinished_handshakes(place: &Sandbox) {
    let target = Target::of(place, &["memory:16M", "--budget-mib", "16", "--handshake-timeout", "1"]);
    let mut silent: Vec<Client> = (0..200).map(|_| Client::greeted(target.raw())).collect();
    for (number, client) in silent.iter_mut().enumerate() {
        client.send(&after_flags(&option(OPT_GO, &go(b"", &[])))[..number % 20]);
    }
    target.answers();
    for client in &mut silent {
        client.is_closed();
    }
    target.server.says("the handshake took too long");
    target.serves_and_ends_well();
}

/// Creates a directory with a certificate of the server.
pub(super) fn certificates(place: &Sandbox) -> bool {
    if !crate::common::has_openssl() {
        return false;
    }
    let folder = place.path("tls");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                  -addext subjectAltName=DNS:localhost \
                  -keyout \"$1/server-key.pem\" -out \"$1/server-cert.pem\" 2>/dev/null";
    crate::common::sh(script, &[&folder]);
    true
}

const SECURE: [&str; 7] = ["memory:16M", "--budget-mib", "16", "--tls", "tls", "--handshake-timeout", "1"];

/// Asserts that the server still requires TLS, and still accepts other clients.
fn is_still_secure(target: &Target) {
    assert_eq!(target.handshaking().ask(OPT_STARTTLS, &[]), REP_ACK);
}

pub(super) fn plain_text_to_a_secure_server(place: &Sandbox) {
    if !certificates(place) {
        return;
    }
    let target = Target::secure(place, &SECURE);
    let mut client = target.handshaking();
    for number in [OPT_GO, OPT_LIST, OPT_STRUCTURED_REPLY, OPT_EXTENDED_HEADERS] {
        assert_eq!(client.ask(number, &go(b"", &[])), ERR_TLS_REQD);
    }
    client.try_send(&option(OPT_EXPORT_NAME, b""));
    client.is_closed();
    is_still_secure(&target);
    target.ends_well();
}

pub(super) fn garbage_instead_of_tls(place: &Sandbox) {
    if !certificates(place) {
        return;
    }
    let target = Target::secure(place, &SECURE);
    // A second STARTTLS is also not a TLS message.
    for bytes in [vec![0x5a; 5000], option(OPT_STARTTLS, &[]), option(OPT_GO, &go(b"", &[])), vec![22, 3, 1, 255, 255]]
    {
        let mut client = target.handshaking();
        client.send(&[option(OPT_STARTTLS, &[]), bytes].concat());
        assert_eq!(client.replied(OPT_STARTTLS).0, REP_ACK);
        client.is_closed();
    }
    is_still_secure(&target);
    target.ends_well();
}

pub(super) fn unfinished_tls_handshakes(place: &Sandbox) {
    if !certificates(place) {
        return;
    }
    let target = Target::secure(place, &SECURE);
    let mut silent: Vec<Client> = (0..100).map(|_| target.handshaking()).collect();
    for client in &mut silent {
        assert_eq!(client.ask(OPT_STARTTLS, &[]), REP_ACK);
        // Sends only the beginning of a message.
        client.stream.write_all(&[22, 3, 1, 2]).unwrap();
    }
    let taken_kib = target.taken_kib();
    assert!(taken_kib < 100 * 64, "{taken_kib} KiB for 100 clients");
    for client in &mut silent {
        client.is_closed();
    }
    is_still_secure(&target);
    target.ends_well();
}
