//! Entry point for fuzzing. The input is all bytes that a client sends.
//!
//! The first byte selects what the server offers. The second byte selects how the rest is cut into
//! pieces. For every input, the entry point checks that the result does not depend on the pieces,
//! and that every returned request can be executed. It also checks that every call makes progress,
//! and that answers are short.

use std::sync::Arc;

use iosched_nbd::{
    Decoder, Event, Extent, Handshake, LENGTH_MAX, Negotiated, Offer, Progress, Refusal, Replies, Request, RequestKind,
    TlsMode,
};

/// Maximum length of an answer to one option or request, bytes: three names and descriptions with
/// their headers.
const ANSWER_BYTES_MAX: usize = 1024;

/// Requests and answers of a server.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct SessionRecord {
    /// Progress of the handshake.
    pub(crate) progress: Vec<Progress>,
    pub(crate) requests: Vec<Result<Request, Refusal>>,
    /// Data of all writes, concatenated.
    pub(crate) data: Vec<u8>,
    /// Reason why the connection ended, if it did.
    pub(crate) end: Option<String>,
    pub(crate) answers: Vec<u8>,
}

/// Returns the offer and the TLS mode that `choice` selects.
fn setup(choice: u8) -> (Arc<[Offer]>, TlsMode) {
    let bit = |bit: u8| choice & (1 << bit) != 0;
    let mut offer = Offer::new("db", 1 << 20);
    offer.description = "what it is for".into();
    (offer.read_only, offer.rotational, offer.trim) = (bit(0), bit(1), !bit(2));
    (offer.write_zeroes, offer.fast_zero) = (!bit(3), bit(4));
    let tls = match choice >> 6 {
        0 | 3 => TlsMode::Off,
        1 => TlsMode::Available,
        _ => TlsMode::Required,
    };
    let other = Offer::new("backup", u64::MAX);
    (if bit(5) { Arc::new([offer]) } else { Arc::new([offer, other]) }, tls)
}

/// A connection that gets its input piece by piece.
struct Connection {
    handshake: Handshake,
    decoder: Option<(Decoder, Replies, Offer)>,
    /// Bytes of the current write's data that have not arrived yet.
    lacking: u64,
    record: SessionRecord,
}

impl Connection {
    fn new(choice: u8) -> Self {
        let (offers, tls) = setup(choice);
        let mut record = SessionRecord::default();
        let handshake = Handshake::new(offers, tls, &mut record.answers);
        Self { handshake, decoder: None, lacking: 0, record }
    }

    fn feed(&mut self, mut input: &[u8]) {
        while self.record.end.is_none() {
            let before = input.len();
            let more = match self.decoder {
                None => self.shake_hands(&mut input),
                Some(_) => self.request(&mut input),
            };
            if !more {
                assert!(input.is_empty(), "the decoder wants more input before it has used all input");
                return;
            }
            assert!(input.len() < before || self.record.end.is_some() || before == 0, "no input was consumed");
        }
    }

    /// Executes the next step of the handshake. Returns whether the conversation continues.
    fn shake_hands(&mut self, input: &mut &[u8]) -> bool {
        let mut out = Vec::new();
        let progress = self.handshake.advance(input, &mut out);
        assert!(out.len() <= ANSWER_BYTES_MAX, "{} bytes of answer", out.len());
        self.record.answers.extend(out);
        match progress {
            Progress::NeedMore => return false,
            // The test uses the following bytes as decrypted bytes.
            Progress::Replied | Progress::StartTls => {}
            Progress::Negotiated(Negotiated { offer, terms }) => {
                let offer = self.handshake.offers()[offer].clone();
                let decoder = Decoder::new(&offer, terms);
                self.decoder = Some((decoder, Replies::new(terms), offer));
            }
            Progress::Close(closed) => self.record.end = Some(closed.to_string()),
        }
        self.record.progress.push(progress);
        true
    }

    /// Handles the next event of the decoder. Returns whether the conversation continues.
    fn request(&mut self, input: &mut &[u8]) -> bool {
        let Some((decoder, replies, offer)) = &mut self.decoder else { return false };
        let event = decoder.advance(input);
        if !matches!(event, Event::NeedMore | Event::Data(_)) {
            assert_eq!(self.lacking, 0, "{event:?} within the data of a write");
        }
        match event {
            Event::NeedMore => {
                assert_eq!(u64::from(decoder.data_wanted()), self.lacking);
                return false;
            }
            Event::Data(data) => {
                assert!((1..=self.lacking as usize).contains(&data.len()));
                self.lacking -= data.len() as u64;
                self.record.data.extend_from_slice(data);
            }
            Event::Request(request) => {
                assert_possible(&request, offer);
                if request.kind == RequestKind::Write {
                    self.lacking = request.length;
                }
                let (to, length) = (request.reply_to(), request.length);
                match request.kind {
                    RequestKind::Read => replies.data(&mut self.record.answers, to, length),
                    RequestKind::BlockStatus => {
                        replies.extents(&mut self.record.answers, to, [Extent { length, state: 3 }].into_iter());
                    }
                    _ => replies.done(&mut self.record.answers, to),
                }
                self.record.requests.push(Ok(request));
            }
            Event::Refused(refusal) => {
                let before = self.record.answers.len();
                replies.failed(&mut self.record.answers, refusal.to, refusal.code, refusal.message);
                assert!(self.record.answers.len() <= before + ANSWER_BYTES_MAX);
                self.record.requests.push(Err(refusal));
            }
            Event::Disconnect => self.record.end = Some("disconnect".into()),
            Event::Broken(broken) => self.record.end = Some(broken.to_string()),
        }
        true
    }
}

/// Checks that the export can execute a request that the decoder returned.
fn assert_possible(request: &Request, offer: &Offer) {
    let &Request { kind, offset, length, no_hole, .. } = request;
    let end = offset.checked_add(length);
    assert!(end.is_some_and(|end| end <= offer.size_bytes), "{request:?}");
    assert_eq!(length == 0, kind == RequestKind::Flush, "{request:?}");
    assert!(!no_hole || kind == RequestKind::WriteZeroes, "{request:?}");
    match kind {
        RequestKind::Read | RequestKind::Cache => assert!(length <= LENGTH_MAX.into()),
        RequestKind::Write => assert!(length <= LENGTH_MAX.into() && !offer.read_only),
        RequestKind::Flush => assert_eq!(offset, 0),
        RequestKind::BlockStatus => {}
        RequestKind::Trim => assert!(offer.trim && !offer.read_only),
        RequestKind::WriteZeroes => assert!(offer.write_zeroes && !offer.read_only),
    }
}

/// Runs the conversation in `data`, with all bytes in one piece.
pub(crate) fn whole(data: &[u8]) -> SessionRecord {
    let [choice, _, sent @ ..] = data else { return SessionRecord::default() };
    let mut connection = Connection::new(*choice);
    connection.feed(sent);
    connection.record
}

/// Runs the conversation in `data` in pieces of 1 to 64 bytes.
fn in_pieces(data: &[u8]) -> SessionRecord {
    let [choice, pieces, sent @ ..] = data else { return SessionRecord::default() };
    let (mut connection, mut seed, mut rest) = (Connection::new(*choice), u32::from(*pieces), sent);
    while !rest.is_empty() {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at(rest.len().min(1 + (seed >> 26) as usize));
        connection.feed(piece);
        rest = after;
    }
    connection.record
}

/// Runs a conversation with a client that sends `data`.
///
/// # Panics
/// If one of the properties in the module's documentation does not hold.
pub(crate) fn fuzz_nbd(data: &[u8]) {
    assert_eq!(whole(data), in_pieces(data));
}
