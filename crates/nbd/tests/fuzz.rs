//! Random and damaged conversations.

use std::path::Path;

use iosched_nbd::client::{FLAGS, Messages};
use iosched_nbd::{
    Decoder, Event, Handshake, Offer, Progress, ReplyForm, Terms, TlsMode, wire, wire::OptionHeader,
    wire::RequestHeader,
};
use iosched_testing::Random;
use iosched_testing::fuzzing::{bytes, damage, inputs, replay_corpus};
use proptest::prelude::*;

mod session;

use session::fuzz_nbd;

const STRUCTURED: Terms = Terms::new(ReplyForm::Structured).with_block_status();

fn add_option(sent: Messages, random: &mut Random) -> Messages {
    let name = random.pick(&["db", "backup", "", "nothing"]);
    let facts = [0, 1, 2, 3, 9];
    let facts = &facts[random.index(5)..];
    match random.index(10) {
        8 => sent.contexts(wire::OPT_LIST_META_CONTEXT, name, &["base:", "", "qemu:"][..random.index(4)]),
        9 => sent.contexts(wire::OPT_SET_META_CONTEXT, name, &["x:y", wire::BASE_ALLOCATION][..random.index(3)]),
        0 => sent.info(wire::OPT_INFO, name, facts),
        1 => sent.info(wire::OPT_GO, name, facts),
        2 => sent.option(wire::OPT_LIST, &[]),
        3 => sent.option(random.pick(&[wire::OPT_STRUCTURED_REPLY, wire::OPT_EXTENDED_HEADERS]), &[]),
        4 => sent.option(wire::OPT_STARTTLS, &[]),
        5 => sent.option(random.index(12) as u32, &[7; 20][..random.index(20)]),
        6 => sent.option(wire::OPT_EXPORT_NAME, name.as_bytes()),
        _ => sent,
    }
}

/// Appends a random request with extended headers.
fn add_extended(sent: Messages, random: &mut Random) -> Messages {
    let flags = random.pick(&[0, 0, wire::CMD_FLAG_PAYLOAD_LEN, 1, 4, 8, 0xffff]);
    let offset = random.pick(&[0, 512, 1 << 19, u64::MAX]);
    let length = random.pick(&[0, 1, 512, 1 << 19, 32 << 20, 1 << 32, u64::MAX]);
    let mut sent = sent.extended_request(random.index(10) as u16, flags, random.next_word(), offset, length);
    sent.0.extend_from_slice(&[0x21; 512][..random.pick(&[0, 0, 1, 512])]);
    sent
}

fn add_request(sent: Messages, random: &mut Random) -> Messages {
    if random.index(4) == 0 {
        return add_extended(sent, random);
    }
    if random.index(2) == 0 {
        let (cookie, offset) = (random.next_word(), random.index(1 << 19) as u64);
        return match random.pick(&[
            wire::CMD_READ,
            wire::CMD_WRITE,
            wire::CMD_TRIM,
            wire::CMD_WRITE_ZEROES,
            wire::CMD_BLOCK_STATUS,
            wire::CMD_CACHE,
        ]) {
            wire::CMD_WRITE => sent.write(0, cookie, offset, &[0x67; 600][..1 + random.index(599)]),
            command => sent.request(command, wire::CMD_FLAG_FUA, cookie, offset, 1 + random.index(1 << 19) as u32),
        };
    }
    let flags = random.pick(&[0, 0, 0, 1, 2, 4, 8, 16, 32, 3, 0xffff]);
    let offset = random.pick(&[0, 512, 4096, (1 << 20) - 512, 1 << 20, u64::MAX - 511, u64::MAX]);
    let length = random.pick(&[0, 1, 512, 4096, (32 << 20) - 1, 32 << 20, (32 << 20) + 1, u32::MAX]);
    let cookie = random.next_word();
    match random.index(8) {
        0 | 1 => sent.write(flags, cookie, offset, &[0x25; 600][..random.index(600)]),
        2 => sent.request(wire::CMD_FLUSH, flags, cookie, 0, 0),
        _ => sent.request(random.index(10) as u16, flags, cookie, offset, length),
    }
}

/// Returns two bytes that select the offer and the pieces, and a realistic conversation after them.
fn conversation(random: &mut Random) -> Vec<u8> {
    let mut sent = Messages(bytes(2, random));
    sent.0[0] &= random.pick(&[0x3f, 0x20, 0xff]);
    let flags = random.pick(&[FLAGS, FLAGS, FLAGS, 1, 1, 0, 2]);
    sent.0.extend_from_slice(&flags.to_be_bytes());
    for _ in 0..random.index(4) {
        sent = add_option(sent, random);
    }
    sent = if random.index(8) > 0 { sent.go("db") } else { sent };
    for _ in 0..random.index(8) {
        sent = add_request(sent, random);
    }
    sent.0
}

/// Returns the input with this number.
fn input(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    if random.index(8) == 0 {
        let count = random.index(300);
        return bytes(count, &mut random);
    }
    let mut data = conversation(&mut random);
    if random.index(2) > 0 {
        damage(&mut data, &mut random);
    }
    data
}

#[test]
fn random_conversations_keep_the_invariants_in_little_memory() {
    let inputs = inputs(100_000);
    let (mut negotiated, mut requests, mut refused, mut ended) = (0_u64, 0_u64, 0_u64, 0_u64);
    for number in 0..inputs {
        let data = input(number);
        let used = allocation_counter::measure(|| fuzz_nbd(&data)).bytes_max;
        // The limit covers two runs, each with a transcript of requests and answers.
        let most = 16_384 + 64 * data.len() as u64;
        assert!(used <= most, "input {number}: {used} bytes of memory for {} of input", data.len());
        if number % 16 == 0 {
            let record = session::whole(&data);
            negotiated += u64::from(matches!(record.progress.last(), Some(Progress::Negotiated(_))));
            requests += record.requests.iter().filter(|request| request.is_ok()).count() as u64;
            refused += record.requests.iter().filter(|request| request.is_err()).count() as u64;
            ended += u64::from(record.end.is_some());
        }
    }
    println!("of every 16th: {negotiated} negotiated, {requests} requests, {refused} refused, {ended} closed");
    // The inputs together reach every part of the protocol.
    let looked_at = inputs / 16;
    for reached in [negotiated, requests, refused, ended] {
        assert!(reached >= looked_at / 20, "{reached} of {looked_at}");
    }
}

#[test]
fn corpus_inputs_keep_the_invariants() {
    replay_corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/nbd"), fuzz_nbd);
}

#[test]
fn decoding_requests_allocates_no_memory() {
    let offer = Offer::new("disk", 1 << 40);
    let mut sent = Messages::default();
    for index in 0..1000 {
        sent = sent.write(0, index, index << 12, &[1; 4096]).request(wire::CMD_READ, 0, index, 0, 4096);
        sent = sent.request(wire::CMD_READ, 0xff, index, 0, 4096);
    }
    let mut decoder = Decoder::new(&offer, STRUCTURED);
    let mut events = 0;
    let used = allocation_counter::measure(|| {
        for piece in sent.0.chunks(10_007) {
            let mut input = piece;
            while decoder.advance(&mut input) != Event::NeedMore {
                events += 1;
            }
        }
    });
    assert!(events >= 4000, "{events}");
    assert_eq!(used.count_total, 0);
}

#[test]
fn announced_option_length_allocates_at_most_64_bytes() {
    let mut out = Vec::with_capacity(100);
    let mut handshake = Handshake::new([Offer::new("db", 1)].into(), TlsMode::Off, &mut out);
    let mut sent = Messages::flags(FLAGS).0;
    OptionHeader { magic: wire::OPTION_MAGIC, option: wire::OPT_GO, length: 64 << 10 }.write(&mut sent);
    let used = allocation_counter::measure(|| {
        assert_eq!(handshake.advance(&mut &sent[..], &mut out), Progress::NeedMore);
    });
    assert!(used.bytes_max <= 64, "{used:?}");
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_result_in_pieces(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz_nbd(&data);
    }

    #[test]
    fn conversation_result_does_not_depend_on_pieces(number: u64, pieces: u8) {
        let mut data = conversation(&mut Random::new(number));
        data[1] = pieces;
        fuzz_nbd(&data);
    }

    #[test]
    fn wrong_option_magic_closes_the_connection(bytes: [u8; 16]) {
        prop_assume!(bytes[..8] != wire::OPTION_MAGIC.to_be_bytes());
        let data = [&[0, 0, 0, 0, 0, 3][..], &bytes].concat();
        prop_assert!(session::whole(&data).end.is_some());
    }

    #[test]
    fn wrong_request_magic_closes_the_connection(bytes: [u8; 28]) {
        prop_assume!(bytes[..4] != wire::REQUEST_MAGIC.to_be_bytes());
        let mut decoder = Decoder::new(&Offer::new("disk", u64::MAX), STRUCTURED);
        prop_assert!(matches!(decoder.advance(&mut &bytes[..]), Event::Broken(_)));
    }

    #[test]
    fn headers_read_as_written(magic: u32, flags: u16, command: u16, cookie: u64, offset: u64, length: u32, more: u32) {
        let header = RequestHeader { magic, flags, command, cookie, offset, length: length.into() };
        prop_assert_eq!(RequestHeader::read(&header.to_bytes()), header);
        let long = RequestHeader { length: u64::from(more) << 32 | u64::from(length), ..header };
        prop_assert_eq!(RequestHeader::read_extended(&long.to_extended_bytes()), long);
        let (mut bytes, header) = (Vec::new(), OptionHeader { magic: cookie, option: magic, length });
        header.write(&mut bytes);
        prop_assert_eq!(OptionHeader::read(&bytes), Some(header));
    }
}
