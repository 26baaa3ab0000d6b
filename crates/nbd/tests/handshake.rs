//! Every option, in every state that changes its answer.

use std::sync::Arc;

use iosched_nbd::wire::{self, Reader};
use iosched_nbd::{
    Closed, Handshake, Negotiated, OPTION_BYTES_MAX, OPTIONS_MAX, Offer, Progress, ReplyForm, Terms, TlsMode,
};

use iosched_nbd::client::{FLAGS, Messages, OptionReply, contexts_data, info_data};

use super::client;

fn offers() -> Arc<[Offer]> {
    let mut backup = Offer::new("backup", 1 << 30);
    backup.description = "only at night".into();
    let mut archive = Offer::new("archive", 4096);
    (archive.read_only, archive.rotational) = (true, true);
    Arc::new([backup, archive])
}

/// Returns a handshake after its greeting.
fn start(offers: Arc<[Offer]>, tls: TlsMode) -> Handshake {
    let mut out = Vec::new();
    let handshake = Handshake::new(offers, tls, &mut out);
    assert_eq!(out, b"NBDMAGICIHAVEOPT\x00\x03");
    handshake
}

/// Feeds all of `sent`. Returns the progress, the answers and the rest of the input.
fn feed<'a>(handshake: &mut Handshake, mut sent: &'a [u8]) -> (Progress, Vec<u8>, &'a [u8]) {
    let mut out = Vec::new();
    loop {
        match handshake.advance(&mut sent, &mut out) {
            Progress::Replied => {}
            progress => return (progress, out, sent),
        }
    }
}

/// Sends `sent` to a new handshake without TLS. Returns the progress and the answers.
fn run(sent: &Messages) -> (Progress, Vec<u8>) {
    let (progress, out, left) = feed(&mut start(offers(), TlsMode::Off), &sent.0);
    assert!(left.is_empty());
    (progress, out)
}

fn hello() -> Messages {
    Messages::flags(FLAGS)
}

/// Returns the kind of each reply.
fn kinds(replies: &[OptionReply<'_>]) -> Vec<u32> {
    replies.iter().map(|reply| reply.kind).collect()
}

/// Returns the kind of the only reply to options that do not end the handshake.
fn refused(sent: &Messages) -> u32 {
    let (progress, out) = run(sent);
    assert_eq!(progress, Progress::NeedMore);
    let replies = client::option_replies(&out);
    let [reply] = &replies[..] else { panic!("{replies:?}") };
    assert!(reply.kind & wire::REP_FLAG_ERROR != 0 && !reply.data.is_empty(), "{reply:?}");
    reply.kind
}

const WRITABLE: u16 = wire::TRANS_HAS_FLAGS
    | wire::TRANS_SEND_FLUSH
    | wire::TRANS_SEND_FUA
    | wire::TRANS_SEND_TRIM
    | wire::TRANS_SEND_WRITE_ZEROES
    | wire::TRANS_CAN_MULTI_CONN
    | wire::TRANS_SEND_CACHE;

fn negotiated(offer: usize, structured_replies: bool) -> Progress {
    let form = if structured_replies { ReplyForm::Structured } else { ReplyForm::Simple };
    Progress::Negotiated(Negotiated { offer, terms: Terms::new(form) })
}

#[test]
fn export_name_reply_omits_zeroes_if_negotiated() {
    let (progress, out) = run(&hello().option(wire::OPT_EXPORT_NAME, b"backup"));
    assert_eq!(progress, negotiated(0, false));
    assert_eq!(out, [&(1u64 << 30).to_be_bytes()[..], &WRITABLE.to_be_bytes()].concat());

    for flags in [0, wire::FLAG_C_FIXED_NEWSTYLE] {
        let (progress, out) = run(&Messages::flags(flags).option(wire::OPT_EXPORT_NAME, b"backup"));
        assert_eq!(progress, negotiated(0, false));
        assert_eq!((out.len(), &out[10..]), (134, &[0; 124][..]));
    }
}

#[test]
fn unknown_export_name_closes_the_connection() {
    for name in [&b"nothing"[..], b"", b"\xff"] {
        let (progress, out) = run(&hello().option(wire::OPT_EXPORT_NAME, name));
        assert_eq!((progress, out.len()), (Progress::Close(Closed::UnknownExport), 0));
    }
}

#[test]
fn go_returns_size_and_flags_and_enters_transmission() {
    let (progress, out) = run(&hello().go("archive"));
    assert_eq!(progress, negotiated(1, false));
    let replies = client::option_replies(&out);
    assert_eq!(kinds(&replies), [wire::REP_INFO, wire::REP_ACK]);
    assert!(replies.iter().all(|reply| reply.option == wire::OPT_GO));
    let mut facts = Reader(replies[0].data);
    assert_eq!((facts.u16(), facts.u64()), (Some(wire::INFO_EXPORT), Some(4096)));
    let flags = wire::TRANS_HAS_FLAGS
        | wire::TRANS_READ_ONLY
        | wire::TRANS_ROTATIONAL
        | wire::TRANS_SEND_FLUSH
        | wire::TRANS_SEND_FUA
        | wire::TRANS_CAN_MULTI_CONN
        | wire::TRANS_SEND_CACHE;
    assert_eq!((facts.u16(), facts.0.len()), (Some(flags), 0));
}

#[test]
fn info_returns_requested_facts_and_handshake_continues() {
    let facts = [wire::INFO_BLOCK_SIZE, wire::INFO_NAME, wire::INFO_DESCRIPTION, 77];
    let (progress, out) = run(&hello().info(wire::OPT_INFO, "backup", &facts).go("backup"));
    assert_eq!(progress, negotiated(0, false));
    let replies = client::option_replies(&out);
    let info = wire::REP_INFO;
    assert_eq!(kinds(&replies), [info, info, info, info, wire::REP_ACK, info, wire::REP_ACK]);
    assert_eq!(replies[1].data, b"\x00\x01backup");
    assert_eq!(replies[2].data, b"\x00\x02only at night");
    assert_eq!(replies[3].data, b"\x00\x03\x00\x00\x00\x01\x00\x00\x10\x00\x02\x00\x00\x00");
    let mut large = Offer::new("db", 1 << 30);
    large.length_max = 128 << 20;
    let large: Arc<[Offer]> = Arc::new([large]);
    let sent = hello().info(wire::OPT_GO, "db", &[wire::INFO_BLOCK_SIZE]);
    let (_, out, _) = feed(&mut start(large, TlsMode::Off), &sent.0);
    assert_eq!(client::option_replies(&out)[1].data[10..], (128_u32 << 20).to_be_bytes());
}

#[test]
fn export_without_description_sends_none() {
    let (_, out) = run(&hello().info(wire::OPT_GO, "archive", &[wire::INFO_DESCRIPTION]));
    assert_eq!(kinds(&client::option_replies(&out)), [wire::REP_INFO, wire::REP_ACK]);
}

#[test]
fn go_and_info_refuse_an_unknown_export() {
    for option in [wire::OPT_GO, wire::OPT_INFO] {
        for name in ["nothing", ""] {
            assert_eq!(refused(&hello().info(option, name, &[])), wire::REP_ERR_UNKNOWN);
        }
    }
}

#[test]
fn empty_name_selects_the_only_export() {
    let only: Arc<[Offer]> = Arc::new([Offer::new("sda", 512)]);
    for sent in [hello().go(""), hello().option(wire::OPT_EXPORT_NAME, b""), hello().go("sda")] {
        assert_eq!(feed(&mut start(Arc::clone(&only), TlsMode::Off), &sent.0).0, negotiated(0, false));
    }
    let (_, out, _) = feed(&mut start(only, TlsMode::Off), &hello().info(wire::OPT_GO, "", &[wire::INFO_NAME]).0);
    assert_eq!(client::option_replies(&out)[1].data, b"\x00\x01sda");
}

#[test]
fn empty_name_selects_the_export_with_that_name() {
    let two: Arc<[Offer]> = Arc::new([Offer::new("sda", 512), Offer::new("", 512)]);
    assert_eq!(feed(&mut start(two, TlsMode::Off), &hello().go("").0).0, negotiated(1, false));
}

#[test]
fn go_and_info_refuse_inconsistent_lengths() {
    let right = info_data(b"backup", &[wire::INFO_NAME]);
    let mut long = right.clone();
    long.push(0);
    let huge = [&u32::MAX.to_be_bytes(), &right[4..]].concat();
    for data in [&right[..right.len() - 1], &long, &huge, &right[..4], &[]] {
        for option in [wire::OPT_GO, wire::OPT_INFO] {
            assert_eq!(refused(&hello().option(option, data)), wire::REP_ERR_INVALID, "{data:?}");
        }
    }
}

#[test]
fn names_up_to_4096_bytes_of_utf8_are_accepted() {
    let name = "é".repeat(2048);
    let long: Arc<[Offer]> = Arc::new([Offer::new(name.clone(), 512)]);
    assert_eq!(feed(&mut start(long, TlsMode::Off), &hello().go(&name).0).0, negotiated(0, false));
    assert_eq!(refused(&hello().go(&format!("{name}x"))), wire::REP_ERR_TOO_BIG);
    assert_eq!(refused(&hello().option(wire::OPT_GO, &info_data(b"\xff\xfe", &[]))), wire::REP_ERR_INVALID);
}

#[test]
fn list_names_all_exports_with_their_descriptions() {
    let (progress, out) = run(&hello().option(wire::OPT_LIST, &[]));
    assert_eq!(progress, Progress::NeedMore);
    let replies = client::option_replies(&out);
    assert_eq!(kinds(&replies), [wire::REP_SERVER, wire::REP_SERVER, wire::REP_ACK]);
    assert_eq!(replies[0].data, b"\x00\x00\x00\x06backuponly at night");
    assert_eq!(replies[1].data, b"\x00\x00\x00\x07archive");
}

#[test]
fn options_without_data_refuse_data() {
    for option in [wire::OPT_LIST, wire::OPT_STRUCTURED_REPLY, wire::OPT_STARTTLS, wire::OPT_EXTENDED_HEADERS] {
        assert_eq!(refused(&hello().option(option, b"x")), wire::REP_ERR_INVALID, "{option}");
    }
}

#[test]
fn fast_zero_is_offered_only_if_zeroes_are_fast() {
    for (fast_zero, read_only, write_zeroes) in
        [(true, false, true), (false, false, true), (true, true, true), (true, false, false)]
    {
        let mut offer = Offer::new("db", 1 << 20);
        (offer.fast_zero, offer.read_only, offer.write_zeroes) = (fast_zero, read_only, write_zeroes);
        let offered = offer.flags(Terms::default()) & wire::TRANS_SEND_FAST_ZERO != 0;
        assert_eq!(offered, fast_zero && !read_only && write_zeroes);
    }
}

#[test]
fn structured_replies_are_negotiated_and_offer_df() {
    let (progress, out) = run(&hello().option(wire::OPT_STRUCTURED_REPLY, &[]).go("backup"));
    assert_eq!(progress, negotiated(0, true));
    let replies = client::option_replies(&out);
    assert_eq!(kinds(&replies), [wire::REP_ACK, wire::REP_INFO, wire::REP_ACK]);
    assert_eq!(replies[1].data[10..], (WRITABLE | wire::TRANS_SEND_DF).to_be_bytes());
}

/// Sends a client's option for structured replies, and then the options that `ask` adds. Returns
/// the replies to those options.
fn structured(ask: impl FnOnce(Messages) -> Messages) -> (Progress, Vec<OptionReply<'static>>) {
    let (progress, out) = run(&ask(hello().option(wire::OPT_STRUCTURED_REPLY, &[])));
    (progress, client::option_replies(out.leak()).split_off(1))
}

/// Returns the index of the chosen export, and whether block status was negotiated.
fn has_status(progress: Progress) -> (usize, bool) {
    let Progress::Negotiated(Negotiated { offer, terms }) = progress else { panic!("{progress:?}") };
    (offer, terms.block_status)
}

const SET: u32 = wire::OPT_SET_META_CONTEXT;
const LIST: u32 = wire::OPT_LIST_META_CONTEXT;

#[test]
fn contexts_are_listed_by_name_namespace_or_all() {
    let listed: [&[&str]; 4] = [&[], &["base:"], &[wire::BASE_ALLOCATION], &["qemu:", "x", wire::BASE_ALLOCATION]];
    for queries in listed {
        let (_, replies) = structured(|sent| sent.contexts(LIST, "backup", queries));
        assert_eq!(kinds(&replies), [wire::REP_META_CONTEXT, wire::REP_ACK], "{queries:?}");
        assert_eq!(&replies[0].data[4..], wire::BASE_ALLOCATION.as_bytes());
    }
    for queries in [&["qemu:"], &["base:allocations"], &[""]] {
        let (_, replies) = structured(|sent| sent.contexts(LIST, "backup", queries));
        assert_eq!(kinds(&replies), [wire::REP_ACK], "{queries:?}");
    }
}

#[test]
fn last_context_choice_replaces_earlier_ones() {
    let chosen: [(&[&str], bool); 4] =
        [(&[wire::BASE_ALLOCATION], true), (&["x:y", wire::BASE_ALLOCATION], true), (&["base:"], false), (&[], false)];
    for (queries, expected) in chosen {
        let (progress, replies) = structured(|sent| sent.contexts(SET, "backup", queries).go("backup"));
        assert_eq!(has_status(progress), (0, expected), "{queries:?}");
        assert_eq!(replies[0].kind == wire::REP_META_CONTEXT, expected);
        let again =
            |sent: Messages| sent.contexts(SET, "backup", &[wire::BASE_ALLOCATION]).contexts(SET, "backup", queries);
        assert_eq!(has_status(structured(|sent| again(sent).go("backup")).0), (0, expected));
    }
    // A refused choice also cancels the previous choice.
    let refused = |sent: Messages| sent.contexts(SET, "backup", &[wire::BASE_ALLOCATION]).contexts(SET, "nothing", &[]);
    let (progress, replies) = structured(|sent| refused(sent).go("backup"));
    assert_eq!(has_status(progress), (0, false));
    assert_eq!(replies[2].kind, wire::REP_ERR_UNKNOWN);
}

#[test]
fn context_choice_is_per_export_and_reset_by_tls() {
    let chosen = |sent: Messages| sent.contexts(SET, "backup", &[wire::BASE_ALLOCATION]);
    assert_eq!(has_status(structured(|sent| chosen(sent).go("archive")).0), (1, false));
    let by_name = |sent: Messages| chosen(sent).option(wire::OPT_EXPORT_NAME, b"backup");
    let (progress, _) = run(&by_name(hello().option(wire::OPT_STRUCTURED_REPLY, &[])));
    assert_eq!(has_status(progress), (0, true));
    let mut handshake = start(offers(), TlsMode::Available);
    let before = chosen(hello().option(wire::OPT_STRUCTURED_REPLY, &[])).option(wire::OPT_STARTTLS, &[]);
    assert_eq!(feed(&mut handshake, &before.0).0, Progress::StartTls);
    let after = Messages::default().option(wire::OPT_STRUCTURED_REPLY, &[]).go("backup");
    assert_eq!(has_status(feed(&mut handshake, &after.0).0), (0, false));
}

#[test]
fn invalid_context_options_are_refused() {
    for option in [SET, LIST] {
        let early = hello().contexts(option, "backup", &[wire::BASE_ALLOCATION]);
        assert_eq!(refused(&early), wire::REP_ERR_INVALID, "without structured replies");
        let right = contexts_data("backup", &["base:", wire::BASE_ALLOCATION]);
        let long = [&right[..], &[0]].concat();
        let many = [&right[..10], &u32::MAX.to_be_bytes(), &right[14..]].concat();
        for data in [&right[..right.len() - 1], &long, &many, &right[..10], &right[..3], &[]] {
            let (_, replies) = structured(|sent| sent.option(option, data));
            assert_eq!(kinds(&replies), [wire::REP_ERR_INVALID], "{data:?}");
        }
        let (_, replies) = structured(|sent| sent.contexts(option, &"x".repeat(4097), &[]));
        assert_eq!(kinds(&replies), [wire::REP_ERR_TOO_BIG]);
    }
}

#[test]
fn extended_headers_are_negotiated_and_reset_by_tls() {
    let sent = hello().option(wire::OPT_STRUCTURED_REPLY, &[]).option(wire::OPT_EXTENDED_HEADERS, &[]);
    let sent = sent.option(wire::OPT_STRUCTURED_REPLY, &[]).contexts(SET, "backup", &[wire::BASE_ALLOCATION]);
    let (progress, out) = run(&sent.go("backup"));
    let terms = Terms::new(ReplyForm::Extended).with_block_status();
    assert_eq!(progress, Progress::Negotiated(Negotiated { offer: 0, terms }));
    let kinds = kinds(&client::option_replies(&out));
    assert_eq!(kinds[..3], [wire::REP_ACK, wire::REP_ACK, wire::REP_ERR_EXT_HEADER_REQD]);
    let mut handshake = start(offers(), TlsMode::Available);
    let before = hello().option(wire::OPT_EXTENDED_HEADERS, &[]).option(wire::OPT_STARTTLS, &[]);
    assert_eq!(feed(&mut handshake, &before.0).0, Progress::StartTls);
    assert_eq!(feed(&mut handshake, &Messages::default().go("backup").0).0, negotiated(0, false));
}

#[test]
fn unknown_options_are_skipped_and_answered_as_unsupported() {
    for option in [0, wire::OPT_PEEK_EXPORT, 12, u32::MAX] {
        let (progress, out) = run(&hello().option(option, &[7; 1000]).go("backup"));
        assert_eq!(progress, negotiated(0, false));
        assert_eq!(client::option_replies(&out)[0].kind, wire::REP_ERR_UNSUP);
        assert_eq!(client::option_replies(&out)[0].option, option);
    }
}

#[test]
fn abort_is_acknowledged() {
    let (progress, out) = run(&hello().option(wire::OPT_ABORT, &[]));
    assert_eq!(progress, Progress::Close(Closed::Aborted));
    assert_eq!(kinds(&client::option_replies(&out)), [wire::REP_ACK]);
}

#[test]
fn requests_after_the_handshake_stay_in_the_input() {
    let sent = hello().go("backup").request(wire::CMD_READ, 0, 1, 0, 512);
    let (progress, _, left) = feed(&mut start(offers(), TlsMode::Off), &sent.0);
    assert_eq!((progress, left.len()), (negotiated(0, false), wire::REQUEST_BYTES));
}

#[test]
fn starttls_is_refused_if_tls_is_off() {
    assert_eq!(refused(&hello().option(wire::OPT_STARTTLS, &[])), wire::REP_ERR_POLICY);
}

#[test]
fn starttls_starts_tls_only_once() {
    for mode in [TlsMode::Available, TlsMode::Required] {
        let mut handshake = start(offers(), mode);
        let sent = hello().option(wire::OPT_STARTTLS, &[]).option(wire::OPT_LIST, &[]);
        let (progress, out, left) = feed(&mut handshake, &sent.0);
        assert_eq!((progress, left.len()), (Progress::StartTls, wire::OPTION_HEADER_BYTES));
        assert_eq!(kinds(&client::option_replies(&out)), [wire::REP_ACK]);

        let (progress, out, _) =
            feed(&mut handshake, &Messages::default().option(wire::OPT_STARTTLS, &[]).go("backup").0);
        assert_eq!(progress, negotiated(0, false));
        assert_eq!(client::option_replies(&out)[0].kind, wire::REP_ERR_INVALID);
    }
}

#[test]
fn starttls_resets_negotiated_options() {
    let mut handshake = start(offers(), TlsMode::Available);
    let before = hello().option(wire::OPT_STRUCTURED_REPLY, &[]).option(wire::OPT_STARTTLS, &[]);
    assert_eq!(feed(&mut handshake, &before.0).0, Progress::StartTls);
    assert_eq!(feed(&mut handshake, &Messages::default().go("backup").0).0, negotiated(0, false));
}

#[test]
fn required_tls_allows_only_starttls_and_abort_before_it() {
    let mut sent = hello().go("backup").info(wire::OPT_INFO, "backup", &[]).option(wire::OPT_LIST, &[]);
    sent = sent.option(wire::OPT_STRUCTURED_REPLY, &[]).option(99, &[]).option(wire::OPT_ABORT, &[]);
    let (progress, out, _) = feed(&mut start(offers(), TlsMode::Required), &sent.0);
    assert_eq!(progress, Progress::Close(Closed::Aborted));
    let mut expected = vec![wire::REP_ERR_TLS_REQD; 5];
    expected.push(wire::REP_ACK);
    assert_eq!(kinds(&client::option_replies(&out)), expected);

    let sent = hello().option(wire::OPT_EXPORT_NAME, b"backup");
    let (progress, out, _) = feed(&mut start(offers(), TlsMode::Required), &sent.0);
    assert_eq!((progress, out.len()), (Progress::Close(Closed::TlsRequired), 0));
}

#[test]
fn unknown_client_flags_close_the_connection() {
    for flags in [4, 0x8000_0001] {
        assert_eq!(run(&Messages::flags(flags)).0, Progress::Close(Closed::ClientFlags { flags }));
    }
}

#[test]
fn client_without_fixed_newstyle_cannot_list_exports() {
    let (progress, out) = run(&Messages::flags(0).option(wire::OPT_LIST, &[]));
    assert_eq!((progress, out.len()), (Progress::Close(Closed::NotFixed { option: wire::OPT_LIST }), 0));
}

#[test]
fn wrong_option_magic_closes_the_connection() {
    let mut sent = hello();
    sent.0.extend_from_slice(b"GET / HTTP/1.1\r\n");
    assert!(matches!(run(&sent).0, Progress::Close(Closed::OptionMagic { .. })));
}

#[test]
fn a_closed_handshake_stays_closed() {
    let mut handshake = start(offers(), TlsMode::Off);
    feed(&mut handshake, &hello().option(wire::OPT_ABORT, &[]).0);
    let again = Messages::default().go("backup");
    let (progress, out, left) = feed(&mut handshake, &again.0);
    assert_eq!((progress, out.len(), left.len()), (Progress::Close(Closed::Aborted), 0, again.0.len()));
}

#[test]
fn number_of_options_is_bounded() {
    let mut handshake = start(offers(), TlsMode::Off);
    feed(&mut handshake, &hello().0);
    let option = Messages::default().option(99, &[]).0;
    for _ in 0..OPTIONS_MAX {
        assert_eq!(feed(&mut handshake, &option).0, Progress::NeedMore);
    }
    assert_eq!(feed(&mut handshake, &option).0, Progress::Close(Closed::TooManyOptions));
}

#[test]
fn the_data_of_all_options_is_bounded() {
    let half = vec![0; OPTION_BYTES_MAX as usize / 2];
    let (progress, _) = run(&hello().option(99, &half).option(99, &half).option(wire::OPT_LIST, &[]));
    assert_eq!(progress, Progress::NeedMore);
    // The handshake closes at the header of the option. It does not wait for the rest of the
    // option.
    let mut handshake = start(offers(), TlsMode::Off);
    feed(&mut handshake, &hello().option(99, &half).option(99, &half).0);
    let header = Messages::default().option(99, b"x").0;
    let (progress, ..) = feed(&mut handshake, &header[..wire::OPTION_HEADER_BYTES]);
    assert_eq!(progress, Progress::Close(Closed::TooMuchData));
}

#[test]
fn one_option_is_answered_at_a_time() {
    let mut handshake = start(offers(), TlsMode::Off);
    let sent = hello().option(wire::OPT_LIST, &[]).option(wire::OPT_LIST, &[]).0;
    let (mut input, mut out) = (&sent[..], Vec::new());
    assert_eq!(handshake.advance(&mut input, &mut out), Progress::Replied);
    assert_eq!((input.len(), client::option_replies(&out).len()), (wire::OPTION_HEADER_BYTES, 3));
}
