//! Tests of every request, flag and refusal, and of the replies.

use iosched_nbd::client::Messages;
use iosched_nbd::wire;
use iosched_nbd::{
    Broken, Decoder, ErrorCode, Event, Extent, LENGTH_MAX, Offer, Refusal, Replies, ReplyForm, ReplyTo, Request,
    RequestKind, Terms,
};

use super::client::{self, OFFSET, Reply};

const SIZE: u64 = 1 << 40;
const SIMPLE: Terms = Terms::new(ReplyForm::Simple);
const STRUCTURED: Terms = Terms::new(ReplyForm::Structured);
/// Terms with extended headers.
const EXTENDED: Terms = Terms::new(ReplyForm::Extended).with_block_status();
/// Terms with the metadata context `base:allocation`.
const STATUS: Terms = STRUCTURED.with_block_status();

fn offer() -> Offer {
    Offer::new("disk", SIZE)
}

/// Returns the offer of the tests with a change.
fn offer_with(change: impl FnOnce(&mut Offer)) -> Offer {
    let mut offer = offer();
    change(&mut offer);
    offer
}

fn only<'a>(decoder: &mut Decoder, mut sent: &'a [u8]) -> Event<'a> {
    let event = decoder.advance(&mut sent);
    assert!(sent.is_empty());
    event
}

/// Returns the only event that a new decoder returns for a request.
fn event(offer: &Offer, terms: Terms, command: u16, flags: u16, offset: u64, length: u64) -> Event<'static> {
    let sent = match terms.form {
        ReplyForm::Extended => Messages::default().extended_request(command, flags, 7, offset, length).0,
        _ => Messages::default().request(command, flags, 7, offset, u32::try_from(length).unwrap()).0,
    };
    match only(&mut Decoder::new(offer, terms), &sent) {
        Event::Data(_) => panic!("data without a write"),
        Event::NeedMore => Event::NeedMore,
        Event::Request(request) => Event::Request(request),
        Event::Refused(refusal) => Event::Refused(refusal),
        Event::Disconnect => Event::Disconnect,
        Event::Broken(broken) => Event::Broken(broken),
    }
}

fn accepted(command: u16, flags: u16, offset: u64, length: u32) -> Request {
    match event(&offer(), STATUS, command, flags, offset, length.into()) {
        Event::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn refused(offer: &Offer, terms: Terms, command: u16, flags: u16, offset: u64, length: u32) -> ErrorCode {
    match event(offer, terms, command, flags, offset, length.into()) {
        Event::Refused(Refusal { to: ReplyTo { cookie: 7, .. }, code, message }) if !message.is_empty() => code,
        other => panic!("{other:?}"),
    }
}

fn parts(request: &Request) -> (RequestKind, u64, u64, u64) {
    (request.kind, request.cookie, request.offset, request.length)
}

fn flags(request: &Request) -> [bool; 4] {
    [request.fua, request.no_hole, request.unfragmented, request.one_extent]
}

#[test]
fn every_command_is_decoded_with_its_flags() {
    let commands = [
        (wire::CMD_READ, RequestKind::Read),
        (wire::CMD_WRITE, RequestKind::Write),
        (wire::CMD_TRIM, RequestKind::Trim),
        (wire::CMD_WRITE_ZEROES, RequestKind::WriteZeroes),
        (wire::CMD_CACHE, RequestKind::Cache),
        (wire::CMD_BLOCK_STATUS, RequestKind::BlockStatus),
    ];
    for (number, kind) in commands {
        let mut request = accepted(number, 0, 4097, 511);
        assert_eq!(parts(&request), (kind, 7, 4097, 511));
        assert_eq!(flags(&request), [false; 4]);
        request.fua = true;
        assert_eq!(accepted(number, wire::CMD_FLAG_FUA, 4097, 511), request);
    }
    let flush = accepted(wire::CMD_FLUSH, 0, 0, 0);
    assert_eq!((parts(&flush), flags(&flush)), ((RequestKind::Flush, 7, 0, 0), [false; 4]));
    assert!(accepted(wire::CMD_WRITE_ZEROES, wire::CMD_FLAG_NO_HOLE, 0, 512).no_hole);
    assert!(!accepted(wire::CMD_READ, wire::CMD_FLAG_DF, 0, 512).fua);
    assert!(accepted(wire::CMD_READ, wire::CMD_FLAG_DF, 0, 512).unfragmented);
    assert!(accepted(wire::CMD_BLOCK_STATUS, wire::CMD_FLAG_REQ_ONE, 0, 512).one_extent);
}

#[test]
fn a_disconnect_ends_the_stream() {
    let sent = Messages::default().request(wire::CMD_DISC, 0, 0, 0, 0).request(wire::CMD_READ, 0, 1, 0, 1).0;
    let (mut decoder, mut input) = (Decoder::new(&offer(), SIMPLE), &sent[..]);
    assert_eq!(decoder.advance(&mut input), Event::Disconnect);
    assert_eq!(decoder.advance(&mut input), Event::Disconnect);
    assert_eq!(input.len(), wire::REQUEST_BYTES);
}

#[test]
fn commands_that_are_not_offered_are_refused() {
    for command in [wire::CMD_BLOCK_STATUS, wire::CMD_RESIZE, 9, u16::MAX] {
        assert_eq!(refused(&offer(), STRUCTURED, command, 0, 0, 512), ErrorCode::Invalid);
    }
    let plain = offer_with(|offer| (offer.trim, offer.write_zeroes) = (false, false));
    assert_eq!(refused(&plain, STRUCTURED, wire::CMD_TRIM, 0, 0, 512), ErrorCode::Invalid);
    assert_eq!(refused(&plain, STRUCTURED, wire::CMD_WRITE_ZEROES, 0, 0, 512), ErrorCode::Invalid);
}

#[test]
fn flags_are_accepted_only_with_their_commands() {
    let allowed = |command| match command {
        wire::CMD_READ => wire::CMD_FLAG_FUA | wire::CMD_FLAG_DF,
        wire::CMD_WRITE_ZEROES => wire::CMD_FLAG_FUA | wire::CMD_FLAG_NO_HOLE | wire::CMD_FLAG_FAST_ZERO,
        wire::CMD_BLOCK_STATUS => wire::CMD_FLAG_FUA | wire::CMD_FLAG_REQ_ONE,
        _ => wire::CMD_FLAG_FUA,
    };
    let fast = offer_with(|offer| offer.fast_zero = true);
    let commands = [
        wire::CMD_READ,
        wire::CMD_FLUSH,
        wire::CMD_TRIM,
        wire::CMD_WRITE_ZEROES,
        wire::CMD_BLOCK_STATUS,
        wire::CMD_CACHE,
    ];
    for command in commands {
        for flag in (0..16).map(|bit| 1 << bit) {
            let length = if command == wire::CMD_FLUSH { 0 } else { 512 };
            let event = event(&fast, STATUS, command, flag, 0, length);
            let expected = allowed(command) & flag != 0;
            assert_eq!(matches!(event, Event::Request(_)), expected, "{command} with {flag:#x}: {event:?}");
            let einval = matches!(event, Event::Refused(Refusal { code: ErrorCode::Invalid, .. }));
            assert_eq!(einval, !expected);
        }
    }
}

#[test]
fn df_needs_structured_replies() {
    assert_eq!(refused(&offer(), SIMPLE, wire::CMD_READ, wire::CMD_FLAG_DF, 0, 512), ErrorCode::Invalid);
}

#[test]
fn fast_zero_is_refused_if_zeroes_are_not_fast() {
    assert_eq!(
        refused(&offer(), STRUCTURED, wire::CMD_WRITE_ZEROES, wire::CMD_FLAG_FAST_ZERO, 0, 512),
        ErrorCode::NotSupported
    );
    let fast = offer_with(|offer| offer.fast_zero = true);
    let flags = wire::CMD_FLAG_FAST_ZERO | wire::CMD_FLAG_NO_HOLE;
    assert_eq!(refused(&fast, STRUCTURED, wire::CMD_WRITE_ZEROES, flags, 0, 512), ErrorCode::NotSupported);
}

#[test]
fn requests_beyond_the_end_are_refused() {
    for command in [wire::CMD_READ, wire::CMD_WRITE, wire::CMD_TRIM, wire::CMD_WRITE_ZEROES] {
        assert_eq!(accepted(command, 0, SIZE - 512, 512).offset, SIZE - 512);
    }
    for (offset, length) in [(SIZE - 511, 512), (SIZE, 1), (u64::MAX, 1), (u64::MAX - 511, 512)] {
        assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_READ, 0, offset, length), ErrorCode::Invalid);
        assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_TRIM, 0, offset, length), ErrorCode::Invalid);
        assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_WRITE_ZEROES, 0, offset, length), ErrorCode::NoSpace);
        let sent = Messages::default().write(0, 7, offset, &vec![0; length as usize]).0;
        let refusal = Refusal {
            to: ReplyTo { cookie: 7, offset },
            code: ErrorCode::NoSpace,
            message: "the request goes beyond the end of the export",
        };
        assert_eq!(only(&mut Decoder::new(&offer(), STRUCTURED), &sent), Event::Refused(refusal));
    }
}

#[test]
fn maximum_request_length_is_enforced() {
    for command in [wire::CMD_READ, wire::CMD_WRITE, wire::CMD_TRIM, wire::CMD_WRITE_ZEROES] {
        assert_eq!(accepted(command, 0, 0, LENGTH_MAX).length, u64::from(LENGTH_MAX));
    }
    assert_eq!(
        accepted(wire::CMD_CACHE, 0, 0, u32::MAX).length,
        u64::from(LENGTH_MAX),
        "only the first part of a long range is cached"
    );
    let large = offer_with(|offer| offer.length_max = 2 * LENGTH_MAX);
    for command in [wire::CMD_READ, wire::CMD_WRITE] {
        let event = event(&large, STRUCTURED, command, 0, 0, u64::from(2 * LENGTH_MAX));
        assert!(matches!(event, Event::Request(_)), "{event:?}");
    }
    let longer = LENGTH_MAX + 1;
    assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_READ, 0, 0, longer), ErrorCode::Invalid);
    assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_READ, wire::CMD_FLAG_DF, 0, u32::MAX), ErrorCode::Overflow);
    assert_eq!(accepted(wire::CMD_TRIM, 0, 0, u32::MAX).length, u64::from(u32::MAX));
    assert_eq!(accepted(wire::CMD_WRITE_ZEROES, 0, 0, u32::MAX).length, u64::from(u32::MAX));
    let broken = Event::Broken(Broken::TooLong { length: longer.into(), length_max: LENGTH_MAX });
    assert_eq!(event(&offer(), STRUCTURED, wire::CMD_WRITE, 0, 0, longer.into()), broken);
}

#[test]
fn empty_requests_and_flushes_with_a_range_are_refused() {
    for command in [wire::CMD_READ, wire::CMD_WRITE, wire::CMD_TRIM, wire::CMD_WRITE_ZEROES] {
        assert_eq!(refused(&offer(), STRUCTURED, command, 0, 512, 0), ErrorCode::Invalid);
    }
    assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_FLUSH, 0, 512, 0), ErrorCode::Invalid);
    assert_eq!(refused(&offer(), STRUCTURED, wire::CMD_FLUSH, 0, 0, 512), ErrorCode::Invalid);
}

#[test]
fn read_only_export_refuses_writes_and_skips_their_data() {
    let offer = offer_with(|offer| offer.read_only = true);
    for command in [wire::CMD_TRIM, wire::CMD_WRITE_ZEROES] {
        assert_eq!(refused(&offer, STRUCTURED, command, 0, 0, 512), ErrorCode::NotPermitted);
    }
    assert!(matches!(event(&offer, STRUCTURED, wire::CMD_READ, 0, 0, 512), Event::Request(_)));
    assert!(matches!(event(&offer, STRUCTURED, wire::CMD_FLUSH, 0, 0, 0), Event::Request(_)));

    // The decoder skips the data of a refused write before it returns the answer, and does not
    // decode the data as a request.
    let sent = Messages::default().write(0, 7, 0, &[0x25; 600]).request(wire::CMD_READ, 0, 8, 0, 512).0;
    let (mut decoder, mut input) = (Decoder::new(&offer, STRUCTURED), &sent[..300]);
    assert_eq!(decoder.advance(&mut input), Event::NeedMore);
    assert_eq!((decoder.data_wanted(), decoder.between_requests()), (0, false));
    input = &sent[300..];
    assert!(matches!(
        decoder.advance(&mut input),
        Event::Refused(Refusal { to: ReplyTo { cookie: 7, .. }, code: ErrorCode::NotPermitted, .. })
    ));
    assert!(matches!(decoder.advance(&mut input), Event::Request(Request { cookie: 8, .. })));
    assert_eq!((decoder.advance(&mut input), decoder.between_requests()), (Event::NeedMore, true));
}

#[test]
fn wrong_request_magic_closes_the_connection() {
    let mut decoder = Decoder::new(&offer(), SIMPLE);
    let garbage = b"GET / HTTP/1.1\r\nHost: localhost\r\n";
    let broken = Event::Broken(Broken::Magic { magic: u32::from_be_bytes(*b"GET "), due: wire::REQUEST_MAGIC });
    let mut input = &garbage[..];
    assert_eq!(decoder.advance(&mut input), broken);
    let mut good = &Messages::default().request(wire::CMD_READ, 0, 1, 0, 512).0[..];
    assert_eq!(decoder.advance(&mut good), broken);
}

#[test]
fn write_data_may_arrive_in_pieces() {
    let data: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let sent = Messages::default().write(wire::CMD_FLAG_FUA, 1, 512, &data).request(wire::CMD_FLUSH, 0, 2, 0, 0).0;
    let (mut decoder, mut received) = (Decoder::new(&offer(), SIMPLE), Vec::new());
    let mut requests = Vec::new();
    for piece in sent.chunks(77) {
        let mut input = piece;
        loop {
            match decoder.advance(&mut input) {
                Event::NeedMore => break,
                Event::Data(data) => received.extend_from_slice(data),
                Event::Request(request) => requests.push((request.kind, request.fua)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(received, data);
    assert_eq!(requests, [(RequestKind::Write, true), (RequestKind::Flush, false)]);
}

#[test]
fn caller_may_receive_write_data_itself() {
    let sent = Messages::default().write(0, 1, 512, &[1; 100]).0;
    let mut decoder = Decoder::new(&offer(), SIMPLE);
    let mut input = &sent[..wire::REQUEST_BYTES + 30];
    assert!(matches!(decoder.advance(&mut input), Event::Request(_)));
    assert_eq!(decoder.data_wanted(), 100);
    assert_eq!(decoder.advance(&mut input), Event::Data(&[1; 30]));
    assert_eq!((decoder.advance(&mut input), decoder.data_wanted()), (Event::NeedMore, 70));
    decoder.data_received(40);
    decoder.data_received(30);
    assert!(decoder.between_requests());
    let mut next = &Messages::default().request(wire::CMD_READ, 0, 2, 0, 1).0[..];
    assert!(matches!(decoder.advance(&mut next), Event::Request(Request { cookie: 2, .. })));
}

#[test]
fn data_of_a_write_refused_by_the_caller_is_skipped() {
    let sent = Messages::default().write(0, 1, 512, &[1; 100]).request(wire::CMD_READ, 0, 2, 0, 1).0;
    let refusal = Refusal { to: ReplyTo { cookie: 1, offset: 512 }, code: ErrorCode::OutOfMemory, message: "no room" };
    // The result is the same whether none, some or all of the data has arrived.
    for arrived in [0, 30, 100] {
        let mut decoder = Decoder::new(&offer(), SIMPLE);
        let (mut first, mut rest) = sent.split_at(wire::REQUEST_BYTES + arrived);
        assert!(matches!(decoder.advance(&mut first), Event::Request(_)));
        if arrived > 0 {
            assert_eq!(decoder.advance(&mut first), Event::Data(&[1; 100][..arrived]));
        }
        decoder.refuse(refusal);
        assert_eq!(decoder.data_wanted(), 0);
        assert_eq!(decoder.advance(&mut rest), Event::Refused(refusal));
        assert!(matches!(decoder.advance(&mut rest), Event::Request(Request { cookie: 2, .. })));
    }
}

/// The request to which the replies of the tests belong.
const TO: ReplyTo = ReplyTo { cookie: 9, offset: OFFSET };

fn extent(length: u64, is_hole: bool) -> Extent {
    Extent { length, state: if is_hole { wire::STATE_HOLE | wire::STATE_ZERO } else { 0 } }
}

/// Returns the reply that a client reads from the output of `write`.
fn replied(terms: Terms, write: impl FnOnce(Replies, &mut Vec<u8>)) -> Reply {
    let mut out = Vec::new();
    write(Replies::new(terms), &mut out);
    client::reply(&out, terms.form)
}

#[test]
fn simple_replies_have_cookie_and_error() {
    assert_eq!(replied(SIMPLE, |replies, out| replies.done(out, TO)), Reply::Simple { error: 0, cookie: 9 });
    assert_eq!(replied(SIMPLE, |replies, out| replies.data(out, TO, 1)), Reply::Simple { error: 0, cookie: 9 });
    let failed = |replies: Replies, out: &mut Vec<u8>| replies.failed(out, TO, ErrorCode::NoSpace, "full");
    assert_eq!(replied(SIMPLE, failed), Reply::Simple { error: 28, cookie: 9 });
}

#[test]
fn structured_replies_have_data_pieces_and_messages() {
    assert_eq!(replied(STRUCTURED, |replies, out| replies.done(out, TO)), Reply::Simple { error: 0, cookie: 9 });
    let data = |replies: Replies, out: &mut Vec<u8>| replies.data(out, TO, LENGTH_MAX.into());
    assert_eq!(replied(STRUCTURED, data), Reply::Data { cookie: 9, offset: OFFSET, length: LENGTH_MAX.into() });
    assert!(Replies::new(STRUCTURED).may_come_in_pieces() && !Replies::new(SIMPLE).may_come_in_pieces());
    let flags_of = |last| {
        let mut out = Vec::new();
        Replies::new(STRUCTURED).piece(&mut out, TO, SIZE, 512, last);
        u16::from_be_bytes([out[4], out[5]])
    };
    assert_eq!((flags_of(false), flags_of(true)), (0, wire::REPLY_FLAG_DONE), "the last piece is the end of the reply");
    let failed = |replies: Replies, out: &mut Vec<u8>| replies.failed(out, TO, ErrorCode::Io, "voilà");
    assert_eq!(replied(STRUCTURED, failed), Reply::Error { cookie: 9, error: 5, message: "voilà".into() });
}

#[test]
fn extents_of_a_reply_belong_to_one_context() {
    let given = [(512, true), (u64::from(u32::MAX) - 512, false)];
    let extents = given.map(|(length, is_hole)| extent(length, is_hole));
    let reply = replied(STATUS, |replies, out| replies.extents(out, TO, extents.into_iter()));
    assert_eq!(
        reply,
        Reply::Extents { cookie: 9, context: 1, extents: vec![(512, 3), (u64::from(u32::MAX) - 512, 0)] }
    );
    let mut out = Vec::new();
    Replies::new(STATUS).extents(&mut out, TO, extents.into_iter());
    assert!(out.len() <= Replies::extents_bytes_max(extents.len()));
}

#[test]
fn with_extended_headers_every_reply_is_a_chunk() {
    assert_eq!(replied(EXTENDED, |replies, out| replies.done(out, TO)), Reply::Nothing { cookie: 9 });
    let data = |replies: Replies, out: &mut Vec<u8>| replies.data(out, TO, 512);
    assert_eq!(replied(EXTENDED, data), Reply::Data { cookie: 9, offset: OFFSET, length: 512 });
    let failed = |replies: Replies, out: &mut Vec<u8>| replies.failed(out, TO, ErrorCode::Io, "voilà");
    assert_eq!(replied(EXTENDED, failed), Reply::Error { cookie: 9, error: 5, message: "voilà".into() });
    let extents = [extent(1 << 40, true), extent(512, false)];
    let reply = replied(EXTENDED, |replies, out| replies.extents(out, TO, extents.into_iter()));
    assert_eq!(reply, Reply::Extents { cookie: 9, context: 1, extents: vec![(1 << 40, 3), (512, 0)] });
}

/// Returns the events of a decoder for requests with extended headers.
fn extended(sent: &Messages) -> Vec<Event<'_>> {
    let (mut decoder, mut input) = (Decoder::new(&offer(), EXTENDED), &sent.0[..]);
    let mut events = Vec::new();
    loop {
        let event = decoder.advance(&mut input);
        events.push(event);
        if matches!(event, Event::NeedMore | Event::Broken(_)) {
            return events;
        }
    }
}

#[test]
fn extended_requests_have_long_lengths() {
    let event = |command, offset, length: u64| event(&offer(), EXTENDED, command, 0, offset, length);
    for command in [wire::CMD_TRIM, wire::CMD_WRITE_ZEROES, wire::CMD_BLOCK_STATUS] {
        assert!(matches!(event(command, 0, SIZE), Event::Request(Request { length: SIZE, .. })));
        assert!(matches!(event(command, 1, SIZE), Event::Refused(_)));
    }
    // The decoder does not truncate the length to 32 bits.
    for length in [u64::from(LENGTH_MAX) + 1, (1 << 32) + 512] {
        assert!(matches!(event(wire::CMD_READ, 0, length), Event::Refused(Refusal { code: ErrorCode::Invalid, .. })));
    }
}

#[test]
fn announced_payload_is_write_data_or_skipped() {
    for flags in [wire::CMD_FLAG_PAYLOAD_LEN, 0] {
        let mut sent = Messages::default().extended_request(wire::CMD_WRITE, flags, 7, 0, 3);
        sent.0.extend_from_slice(b"abc");
        let events = extended(&sent);
        assert!(matches!(events[..], [Event::Request(_), Event::Data(b"abc"), Event::NeedMore]), "{events:?}");
    }
    for command in [wire::CMD_READ, wire::CMD_TRIM, wire::CMD_BLOCK_STATUS, 99] {
        let mut sent = Messages::default().extended_request(command, wire::CMD_FLAG_PAYLOAD_LEN, 7, 0, 3);
        sent.0.extend_from_slice(b"abc");
        let sent = sent.extended_request(wire::CMD_READ, 0, 8, 0, 512);
        let events = extended(&sent);
        let expected = matches!(
            events[..],
            [
                Event::Refused(Refusal { code: ErrorCode::Invalid, .. }),
                Event::Request(Request { cookie: 8, .. }),
                Event::NeedMore
            ]
        );
        assert!(expected, "{events:?}");
    }
    let long: u64 = 1 << 40;
    let event = event(&offer(), EXTENDED, wire::CMD_TRIM, wire::CMD_FLAG_PAYLOAD_LEN, 0, long);
    assert_eq!(event, Event::Broken(Broken::TooLong { length: long, length_max: LENGTH_MAX }));
}

#[test]
fn each_kind_of_header_has_its_own_magic() {
    let compact = Messages::default().request(wire::CMD_READ, 0, 7, 0, 512).request(wire::CMD_READ, 0, 7, 0, 512);
    let due = wire::EXTENDED_REQUEST_MAGIC;
    assert_eq!(extended(&compact), [Event::Broken(Broken::Magic { magic: wire::REQUEST_MAGIC, due })]);
    let sent = Messages::default().extended_request(wire::CMD_READ, 0, 7, 0, 512).0;
    let event = Decoder::new(&offer(), STRUCTURED).advance(&mut &sent[..]);
    assert_eq!(event, Event::Broken(Broken::Magic { magic: due, due: wire::REQUEST_MAGIC }));
}

#[test]
fn extended_headers_may_arrive_in_pieces() {
    let sent = Messages::default()
        .extended_request(wire::CMD_READ, 0, 7, OFFSET, 512)
        .extended_request(wire::CMD_READ, 0, 8, OFFSET, 512)
        .0;
    for length in 1..wire::EXTENDED_REQUEST_BYTES {
        let (mut decoder, mut cookies) = (Decoder::new(&offer(), EXTENDED), Vec::new());
        for mut piece in sent.chunks(length) {
            while let Event::Request(request) = decoder.advance(&mut piece) {
                assert_eq!((request.offset, request.length), (OFFSET, 512));
                cookies.push(request.cookie);
            }
        }
        assert_eq!(cookies, [7, 8]);
    }
}

#[test]
fn long_message_is_cut_at_a_character_boundary() {
    let long = format!("x{}", "é".repeat(3000));
    let Reply::Error { message, .. } =
        replied(STRUCTURED, |replies, out| replies.failed(out, TO, ErrorCode::Io, &long))
    else {
        panic!("no error");
    };
    assert_eq!(message.len(), 4095);
    assert!(long.starts_with(&message));
}

#[test]
fn unknown_errnos_are_mapped_to_protocol_errors() {
    let numbers = [(1, 1), (5, 5), (12, 12), (22, 22), (28, 28), (75, 75), (95, 95), (108, 108)];
    let like = [(13, 1), (30, 1), (27, 28), (122, 28), (38, 95), (110, 5), (0, 5), (-1, 5)];
    for (errno, number) in numbers.into_iter().chain(like) {
        assert_eq!(ErrorCode::from_errno(errno).number(), number, "{errno}");
    }
}
