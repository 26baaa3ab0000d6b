//! Tests that the client and the server read each other's messages, and that no input makes a
//! decoder panic.

use iosched_nbd::client::{
    ChunkHeader, FLAGS, Messages, OPTION_REPLY_BYTES_MAX, OptionReply, Payload, ReplyError, ReplyHeader,
};
use iosched_nbd::wire::{self, OptionHeader};
use iosched_nbd::{
    Decoder, ErrorCode, Event, Extent, Handshake, LENGTH_MAX, Negotiated, Offer, Progress, Replies, ReplyForm, ReplyTo,
    Terms, TlsMode,
};
use proptest::prelude::*;

const FORMS: [ReplyForm; 3] = [ReplyForm::Simple, ReplyForm::Structured, ReplyForm::Extended];
const ERRORS: [ErrorCode; 8] = [
    ErrorCode::NotPermitted,
    ErrorCode::Io,
    ErrorCode::OutOfMemory,
    ErrorCode::Invalid,
    ErrorCode::NoSpace,
    ErrorCode::Overflow,
    ErrorCode::NotSupported,
    ErrorCode::ShuttingDown,
];

fn form() -> impl Strategy<Value = ReplyForm> {
    prop::sample::select(&FORMS[..])
}

/// Returns the header and the payload of the only reply in `bytes`. The bytes arrive at the client
/// one by one.
fn read_reply(bytes: &[u8], form: ReplyForm) -> (ReplyHeader, &[u8]) {
    let whole = (0..=bytes.len()).find_map(|arrived| {
        let mut input = &bytes[..arrived];
        let header = ReplyHeader::read(&mut input, form).unwrap();
        assert!(header.is_some() || input.len() == arrived, "an incomplete header must not be consumed");
        header.map(|header| (header, &bytes[arrived..]))
    });
    whole.expect("the header has arrived")
}

fn chunk(header: ReplyHeader) -> ChunkHeader {
    let ReplyHeader::Chunk(chunk) = header else { panic!("{header:?}") };
    chunk
}

#[test]
fn handshake_of_both_sides_ends_in_transmission() {
    for form in FORMS {
        let mut answers = Vec::new();
        let mut handshake = Handshake::new([Offer::new("disk", 1 << 30)].into(), TlsMode::Off, &mut answers);
        let mut sent = Messages::flags(FLAGS);
        sent = match form {
            ReplyForm::Simple => sent,
            ReplyForm::Structured => sent.option(wire::OPT_STRUCTURED_REPLY, &[]),
            ReplyForm::Extended => sent.option(wire::OPT_EXTENDED_HEADERS, &[]),
        };
        if form != ReplyForm::Simple {
            sent = sent.contexts(wire::OPT_SET_META_CONTEXT, "disk", &[wire::BASE_ALLOCATION]);
        }
        let sent = sent.info(wire::OPT_GO, "disk", &[wire::INFO_NAME]);
        let mut input = &sent.0[..];
        let progress = loop {
            match handshake.advance(&mut input, &mut answers) {
                Progress::Replied => {}
                progress => break progress,
            }
        };
        let mut terms = Terms::new(form);
        terms.block_status = form != ReplyForm::Simple;
        assert_eq!(progress, Progress::Negotiated(Negotiated { offer: 0, terms }));
        let (greeting, mut replies) = answers.split_first_chunk().unwrap();
        assert_eq!(wire::read_greeting(greeting), Some(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES));
        let mut last = None;
        while let Some(reply) = OptionReply::read(&mut replies).unwrap() {
            assert_eq!(reply.kind & wire::REP_FLAG_ERROR, 0, "{reply:?}");
            last = Some((reply.option, reply.kind));
        }
        assert_eq!((last, replies.len()), (Some((wire::OPT_GO, wire::REP_ACK)), 0));
    }
}

#[test]
fn every_error_keeps_its_number() {
    for error in ERRORS {
        assert_eq!(ErrorCode::from_number(error.number()), error);
        assert_eq!(ErrorCode::from_errno(error.number().cast_signed()), error);
    }
}

#[test]
fn long_reply_to_an_option_is_refused_at_its_header() {
    let mut bytes = Vec::new();
    bytes.extend(wire::OPTION_REPLY_MAGIC.to_be_bytes());
    for number in [wire::OPT_LIST, wire::REP_SERVER, OPTION_REPLY_BYTES_MAX + 1] {
        bytes.extend(u32::to_be_bytes(number));
    }
    let error = OptionReply::read(&mut &bytes[..]).unwrap_err();
    assert_eq!(error, ReplyError::TooLong { option: wire::OPT_LIST, length: OPTION_REPLY_BYTES_MAX + 1 });
}

#[test]
fn replies_of_another_form_are_refused() {
    let to = ReplyTo { cookie: 1, offset: 0 };
    for (written, read) in [
        (ReplyForm::Structured, ReplyForm::Simple),
        (ReplyForm::Structured, ReplyForm::Extended),
        (ReplyForm::Extended, ReplyForm::Structured),
        (ReplyForm::Simple, ReplyForm::Extended),
    ] {
        let mut bytes = Vec::new();
        Replies::new(Terms::new(written)).data(&mut bytes, to, 1);
        assert!(matches!(ReplyHeader::read(&mut &bytes[..], read), Err(ReplyError::Magic { .. })), "{written:?}");
    }
}

#[test]
fn holes_and_errors_with_an_offset_are_read() {
    let numbers = [&(1_u64 << 40).to_be_bytes()[..], &512_u32.to_be_bytes()].concat();
    let hole = Payload::Hole { offset: 1 << 40, length: 512 };
    assert_eq!(Payload::read(wire::REPLY_TYPE_OFFSET_HOLE, &numbers), Ok(hole));
    let failed = [&5_u32.to_be_bytes()[..], &2_u16.to_be_bytes(), b"no", &7_u64.to_be_bytes()].concat();
    let error = Payload::Error { error: 5, message: b"no", offset: Some(7) };
    assert_eq!(Payload::read(wire::REPLY_TYPE_ERROR_OFFSET, &failed), Ok(error));
    // An error of a later version may have more fields.
    let error = Payload::Error { error: 5, message: b"no", offset: None };
    assert_eq!(Payload::read(wire::REPLY_TYPE_FLAG_ERROR + 99, &failed), Ok(error));
    assert_eq!(Payload::read(99, &failed), Err(ReplyError::UnknownKind { kind: 99 }));
}

#[test]
fn payloads_of_a_wrong_length_are_malformed() {
    let kinds = [
        wire::REPLY_TYPE_OFFSET_DATA,
        wire::REPLY_TYPE_OFFSET_HOLE,
        wire::REPLY_TYPE_BLOCK_STATUS,
        wire::REPLY_TYPE_BLOCK_STATUS_EXT,
        wire::REPLY_TYPE_ERROR,
    ];
    for kind in kinds {
        assert_eq!(Payload::read(kind, &[0; 3]), Err(ReplyError::Payload { kind }));
    }
    let kind = wire::REPLY_TYPE_NONE;
    assert_eq!(Payload::read(kind, &[0]), Err(ReplyError::Payload { kind }));
    let kind = wire::REPLY_TYPE_BLOCK_STATUS;
    assert_eq!(Payload::read(kind, &[0; 4]), Err(ReplyError::Payload { kind }), "no extent");
    // The decoder allocates no memory for announced extents that have not arrived.
    let many = [[0; 4], [0xff; 4]].concat();
    let kind = wire::REPLY_TYPE_BLOCK_STATUS_EXT;
    assert_eq!(Payload::read(kind, &many), Err(ReplyError::Payload { kind }));
}

proptest! {
    #[test]
    fn requests_are_read_as_written(
        form in form(),
        cookie: u64,
        offset in 0_u64..1 << 39,
        length in 1..=LENGTH_MAX,
        flags in prop::sample::select(vec![0, wire::CMD_FLAG_FUA]),
        command in prop::sample::select(vec![wire::CMD_READ, wire::CMD_TRIM, wire::CMD_WRITE_ZEROES, wire::CMD_CACHE]),
    ) {
        let sent = match form {
            ReplyForm::Extended => {
                Messages::default().extended_request(command, flags, cookie, offset, length.into())
            }
            _ => Messages::default().request(command, flags, cookie, offset, length),
        };
        let mut decoder = Decoder::new(&Offer::new("disk", 1 << 40), Terms::new(form));
        let Event::Request(request) = decoder.advance(&mut &sent.0[..]) else { panic!("not accepted") };
        prop_assert_eq!((request.cookie, request.offset, request.length), (cookie, offset, u64::from(length)));
        prop_assert_eq!(request.fua, flags != 0);
    }

    #[test]
    fn replies_are_read_as_written(
        form in form(), cookie: u64, offset: u64, length in 1..=LENGTH_MAX, is_last: bool, error in 0..ERRORS.len(),
        message in "\\PC{0,100}", extents in prop::collection::vec((1..u32::MAX, 0_u64..4), 1..20),
    ) {
        let (replies, to) = (Replies::new(Terms::new(form)), ReplyTo { cookie, offset });
        let error = ERRORS[error].number();
        let mut bytes = Vec::new();
        replies.failed(&mut bytes, to, ErrorCode::from_number(error), &message);
        let (header, payload) = read_reply(&bytes, form);
        if form == ReplyForm::Simple {
            prop_assert_eq!(header, ReplyHeader::Simple { error, cookie });
            return Ok(());
        }
        let chunk_of = |header| {
            let chunk = chunk(header);
            assert_eq!((chunk.cookie, chunk.offset), (cookie, (form == ReplyForm::Extended).then_some(offset)));
            chunk
        };
        let failed = chunk_of(header);
        prop_assert!(failed.is_last() && failed.length == payload.len() as u64);
        let expected = Payload::Error { error, message: message.as_bytes(), offset: None };
        prop_assert_eq!(Payload::read(failed.kind, payload), Ok(expected));

        bytes.clear();
        replies.piece(&mut bytes, to, offset, length.into(), is_last);
        let (header, at) = read_reply(&bytes, form);
        let piece = chunk_of(header);
        prop_assert_eq!((piece.is_last(), piece.length), (is_last, u64::from(length) + 8));
        let data = [at, b"data"].concat();
        prop_assert_eq!(Payload::read(piece.kind, &data), Ok(Payload::Data { offset, data: b"data" }));

        let extents: Vec<_> = extents.iter().map(|&(length, state)| Extent { length: length.into(), state }).collect();
        bytes.clear();
        replies.extents(&mut bytes, to, extents.iter().copied());
        prop_assert!(bytes.len() <= Replies::extents_bytes_max(extents.len()));
        let (header, payload) = read_reply(&bytes, form);
        let status = chunk_of(header);
        prop_assert!(status.is_last() && status.length == payload.len() as u64);
        prop_assert_eq!(Payload::read(status.kind, payload), Ok(Payload::BlockStatus { context: 1, extents }));
    }

    #[test]
    fn clients_survive_any_answer(
        bytes in prop::collection::vec(any::<u8>(), 0..200), form in form(), magic: bool, kind: u16,
    ) {
        let with_magic = |magic_bytes: &[u8]| if magic { [magic_bytes, &bytes].concat() } else { bytes.clone() };
        let option = with_magic(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
        let mut input = &option[..];
        while let Ok(Some(reply)) = OptionReply::read(&mut input) {
            prop_assert!(reply.data.len() <= option.len());
        }
        for number in [wire::SIMPLE_REPLY_MAGIC, wire::STRUCTURED_REPLY_MAGIC, wire::EXTENDED_REPLY_MAGIC] {
            let reply = with_magic(&number.to_be_bytes());
            let mut input = &reply[..];
            if let Ok(Some(ReplyHeader::Chunk(chunk))) = ReplyHeader::read(&mut input, form) {
                let _ = Payload::read(chunk.kind, input);
            }
        }
        for kind in [kind, kind % 8, wire::REPLY_TYPE_FLAG_ERROR | (kind % 4)] {
            let _ = Payload::read(kind, &bytes);
        }
    }

    #[test]
    fn options_are_read_as_written(option: u32, data in prop::collection::vec(any::<u8>(), 0..100)) {
        let sent = Messages::default().option(option, &data);
        let header = OptionHeader::read(&sent.0).expect("the header has arrived");
        prop_assert_eq!(header, OptionHeader { magic: wire::OPTION_MAGIC, option, length: data.len() as u32 });
        prop_assert_eq!(&sent.0[wire::OPTION_HEADER_BYTES..], &data[..]);
    }
}
