//! The handshake. It begins with the greeting. It ends when the client has chosen an export, or
//! when the server must close the connection.
//!
//! This module answers each option, and decides which options a client may send before TLS. A
//! client can send at most [`OPTIONS_MAX`] options, with at most [`OPTION_BYTES_MAX`] bytes of data
//! in total. The caller must limit the time of a handshake.

mod option;

use std::sync::Arc;

use crate::offer::{Offer, find};
use crate::terms::{ReplyForm, Terms};
use crate::wire::{self, OptionHeader};
pub(crate) use option::ALLOCATION_ID;
use option::{ContextsRequest, InfoRequest};

/// Maximum number of options of one connection. It is enough for a client that asks for every
/// export of a long list.
pub const OPTIONS_MAX: u32 = 1024;
/// Maximum total data of the options of one connection, bytes.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;

const NO_SUCH_EXPORT: &str = "there is no export with this name; NBD_OPT_LIST lists the exports";

/// The server's use of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum TlsMode {
    /// The server has no TLS: `STARTTLS` gets `ERR_POLICY`.
    #[default]
    Off,
    /// Clients may start TLS.
    Available,
    /// Clients must start TLS. Before TLS, every option except `STARTTLS` and `ABORT` gets
    /// `ERR_TLS_REQD`.
    Required,
}

/// The result of a step of a handshake. A server must handle every result, so adding a result is a
/// breaking change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The handshake has used all the input and needs more.
    NeedMore,
    /// The handshake has answered an option. Call again. If the output is long, send it first.
    Replied,
    /// The caller must send the output and then start TLS. The rest of the input already belongs to
    /// TLS. From now on, feed the handshake with decrypted bytes.
    StartTls,
    /// Send the output. The rest of the input consists of requests.
    Negotiated(Negotiated),
    /// Send the output and close the connection. Later calls return the same result.
    Close(Closed),
}

/// The result of a successful handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Negotiated {
    /// The index of the chosen offer.
    pub offer: usize,
    /// The form of requests and replies.
    pub terms: Terms,
}

/// The reason why a handshake ended without transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Closed {
    /// The client sent `ABORT`.
    #[error("the client ended the handshake")]
    Aborted,
    /// The client set a flag that the server did not offer.
    #[error("the client set flags {flags:#x}, but only bits 0 and 1 were offered")]
    ClientFlags {
        /// The flags.
        flags: u32,
    },
    /// The bytes at the start of an option are not an option.
    #[error("expected the magic number of an option, IHAVEOPT, found {magic:#018x}")]
    OptionMagic {
        /// The number in the input.
        magic: u64,
    },
    /// The client did not agree to fixed newstyle, and sent an option other than `EXPORT_NAME`.
    #[error(
        "the client sent option {option}, but without the fixed newstyle handshake it can only send \
     NBD_OPT_EXPORT_NAME"
    )]
    NotFixed {
        /// The option.
        option: u32,
    },
    /// The client sent more than [`OPTIONS_MAX`] options.
    #[error("the client sent more than {OPTIONS_MAX} options")]
    TooManyOptions,
    /// The client's options have more than [`OPTION_BYTES_MAX`] bytes of data.
    #[error("the options of the client have more than {OPTION_BYTES_MAX} bytes of data")]
    TooMuchData,
    /// The client sent `EXPORT_NAME` without TLS. The server can only close the connection, because
    /// the protocol has no error reply to `EXPORT_NAME`.
    #[error("the client chose an export without TLS, but this server requires TLS")]
    TlsRequired,
    /// The client sent `EXPORT_NAME` with a name that no offer has. The protocol has no error reply
    /// to `EXPORT_NAME`.
    #[error("the client chose an export that does not exist")]
    UnknownExport,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeStage {
    ClientFlags,
    Options,
    Over(Progress),
}

/// The server's side of one handshake.
#[derive(Clone, Debug)]
pub struct Handshake {
    offers: Arc<[Offer]>,
    tls: TlsMode,
    stage: HandshakeStage,
    /// The part of the next option that has arrived.
    pending: Vec<u8>,
    options: u32,
    option_bytes: u32,
    client_flags: u32,
    secure: bool,
    form: ReplyForm,
    /// Index of the offer for which the client chose block status.
    status_of: Option<usize>,
}

impl Handshake {
    /// Starts a handshake that offers `offers`, and appends the greeting to `out`.
    #[must_use]
    pub fn new(offers: Arc<[Offer]>, tls: TlsMode, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&wire::greeting());
        Self {
            offers,
            tls,
            stage: HandshakeStage::ClientFlags,
            pending: Vec::new(),
            options: 0,
            option_bytes: 0,
            client_flags: 0,
            secure: false,
            form: ReplyForm::Simple,
            status_of: None,
        }
    }

    /// Returns the exports that the client can choose.
    #[must_use]
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Takes at most one option from the front of `input` and appends the answer to `out`.
    pub fn advance(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Progress {
        loop {
            let progress = match self.stage {
                HandshakeStage::ClientFlags => self.client_flags(input),
                HandshakeStage::Options => self.option(input, out),
                HandshakeStage::Over(progress) => return progress,
            };
            let Some(progress) = progress else { continue };
            if matches!(progress, Progress::Close(_) | Progress::Negotiated(_)) {
                self.stage = HandshakeStage::Over(progress);
                self.pending = Vec::new();
            }
            return progress;
        }
    }

    /// Moves bytes from `input` until `length` bytes are pending. Returns whether all of these
    /// bytes are pending.
    fn gather(&mut self, input: &mut &[u8], length: usize) -> bool {
        let missing = length.saturating_sub(self.pending.len());
        let (taken, rest) = input.split_at(missing.min(input.len()));
        self.pending.extend_from_slice(taken);
        *input = rest;
        taken.len() == missing
    }

    fn client_flags(&mut self, input: &mut &[u8]) -> Option<Progress> {
        if !self.gather(input, 4) {
            return Some(Progress::NeedMore);
        }
        let flags = wire::Reader(&self.pending).u32().unwrap_or_default();
        self.pending.clear();
        if flags & !(wire::FLAG_C_FIXED_NEWSTYLE | wire::FLAG_C_NO_ZEROES) != 0 {
            return Some(Progress::Close(Closed::ClientFlags { flags }));
        }
        self.client_flags = flags;
        self.stage = HandshakeStage::Options;
        None
    }

    fn option(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Option<Progress> {
        if !self.gather(input, wire::OPTION_HEADER_BYTES) {
            return Some(Progress::NeedMore);
        }
        let header = OptionHeader::read(&self.pending)?;
        if let Err(closed) = self.admit(&header) {
            return Some(Progress::Close(closed));
        }
        if !self.gather(input, wire::OPTION_HEADER_BYTES + header.length as usize) {
            return Some(Progress::NeedMore);
        }
        self.options += 1;
        self.option_bytes += header.length;
        let mut pending = std::mem::take(&mut self.pending);
        let progress = self.answer(header.option, &pending[wire::OPTION_HEADER_BYTES..], out);
        pending.clear();
        self.pending = pending;
        Some(progress)
    }

    /// Checks that the client may send this option now.
    fn admit(&self, header: &OptionHeader) -> Result<(), Closed> {
        let &OptionHeader { magic, option, length } = header;
        if magic != wire::OPTION_MAGIC {
            return Err(Closed::OptionMagic { magic });
        }
        if self.client_flags & wire::FLAG_C_FIXED_NEWSTYLE == 0 && option != wire::OPT_EXPORT_NAME {
            return Err(Closed::NotFixed { option });
        }
        if self.options >= OPTIONS_MAX {
            return Err(Closed::TooManyOptions);
        }
        if length > OPTION_BYTES_MAX - self.option_bytes {
            return Err(Closed::TooMuchData);
        }
        Ok(())
    }

    fn answer(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let needs_tls = self.tls == TlsMode::Required && !self.secure;
        match option {
            wire::OPT_ABORT => {
                reply(out, option, wire::REP_ACK, &[]);
                return Progress::Close(Closed::Aborted);
            }
            wire::OPT_STARTTLS => return self.start_tls(data, out),
            wire::OPT_EXPORT_NAME if needs_tls => return Progress::Close(Closed::TlsRequired),
            _ if needs_tls => {
                refuse(out, option, wire::REP_ERR_TLS_REQD, "this server requires TLS: send NBD_OPT_STARTTLS first")
            }
            wire::OPT_EXPORT_NAME => return self.export_name(data, out),
            wire::OPT_GO | wire::OPT_INFO => return self.info(option, data, out),
            wire::OPT_LIST => self.list(data, out),
            wire::OPT_STRUCTURED_REPLY if !data.is_empty() => {
                refuse(out, option, wire::REP_ERR_INVALID, "NBD_OPT_STRUCTURED_REPLY must have no data");
            }
            wire::OPT_STRUCTURED_REPLY if self.form == ReplyForm::Extended => {
                refuse(out, option, wire::REP_ERR_EXT_HEADER_REQD, "extended headers are already in use");
            }
            wire::OPT_EXTENDED_HEADERS if !data.is_empty() => {
                refuse(out, option, wire::REP_ERR_INVALID, "NBD_OPT_EXTENDED_HEADERS must have no data");
            }
            wire::OPT_EXTENDED_HEADERS => {
                self.form = ReplyForm::Extended;
                reply(out, option, wire::REP_ACK, &[]);
            }
            wire::OPT_STRUCTURED_REPLY => {
                self.form = ReplyForm::Structured;
                reply(out, option, wire::REP_ACK, &[]);
            }
            wire::OPT_LIST_META_CONTEXT | wire::OPT_SET_META_CONTEXT => self.contexts(option, data, out),
            _ => refuse(out, option, wire::REP_ERR_UNSUP, "this server does not know this option"),
        }
        Progress::Replied
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let (error, message) = if !data.is_empty() {
            (wire::REP_ERR_INVALID, "NBD_OPT_STARTTLS must have no data")
        } else if self.tls == TlsMode::Off {
            (wire::REP_ERR_POLICY, "TLS is not configured on this server")
        } else if self.secure {
            (wire::REP_ERR_INVALID, "TLS has already started")
        } else {
            // The handshake drops the state from before TLS, because an attacker could have sent
            // the options that set this state.
            self.secure = true;
            (self.form, self.status_of) = (ReplyForm::Simple, None);
            reply(out, wire::OPT_STARTTLS, wire::REP_ACK, &[]);
            return Progress::StartTls;
        };
        refuse(out, wire::OPT_STARTTLS, error, message);
        Progress::Replied
    }

    fn export_name(&self, name: &[u8], out: &mut Vec<u8>) -> Progress {
        let found = std::str::from_utf8(name).ok().and_then(|name| find(&self.offers, name));
        let Some(offer) = found else { return Progress::Close(Closed::UnknownExport) };
        let Offer { size_bytes, .. } = self.offers[offer];
        out.extend_from_slice(&size_bytes.to_be_bytes());
        out.extend_from_slice(&self.offers[offer].flags(self.terms(offer)).to_be_bytes());
        if self.client_flags & wire::FLAG_C_NO_ZEROES == 0 {
            out.extend_from_slice(&[0; wire::EXPORT_NAME_PADDING_BYTES]);
        }
        Progress::Negotiated(Negotiated { offer, terms: self.terms(offer) })
    }

    /// Answers `GO` or `INFO`. They differ only in the progress after the answer.
    fn info(&self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Progress {
        let request = match InfoRequest::read(data) {
            Ok(request) => request,
            Err((error, message)) => {
                refuse(out, option, error, message);
                return Progress::Replied;
            }
        };
        let Some(offer) = find(&self.offers, request.name) else {
            refuse(out, option, wire::REP_ERR_UNKNOWN, NO_SUCH_EXPORT);
            return Progress::Replied;
        };
        self.describe(option, offer, &request, out);
        reply(out, option, wire::REP_ACK, &[]);
        if option == wire::OPT_INFO {
            return Progress::Replied;
        }
        Progress::Negotiated(Negotiated { offer, terms: self.terms(offer) })
    }

    /// Returns the terms that apply if the client chooses this offer.
    fn terms(&self, offer: usize) -> Terms {
        Terms { form: self.form, block_status: self.status_of == Some(offer) }
    }

    /// Answers `LIST_META_CONTEXT` or `SET_META_CONTEXT`. A new choice of contexts replaces the
    /// previous choice.
    fn contexts(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let sets = option == wire::OPT_SET_META_CONTEXT;
        if sets {
            self.status_of = None;
        }
        if self.form == ReplyForm::Simple {
            return refuse(out, option, wire::REP_ERR_INVALID, "metadata contexts need structured replies");
        }
        let request = match ContextsRequest::read(data) {
            Ok(request) => request,
            Err((error, message)) => return refuse(out, option, error, message),
        };
        let Some(offer) = find(&self.offers, request.name) else {
            return refuse(out, option, wire::REP_ERR_UNKNOWN, NO_SUCH_EXPORT);
        };
        if sets && request.chooses_allocation() {
            self.status_of = Some(offer);
        }
        if if sets { request.chooses_allocation() } else { request.lists_allocation() } {
            let (id, name) = (ALLOCATION_ID.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes());
            reply(out, option, wire::REP_META_CONTEXT, &[&id, name]);
        }
        reply(out, option, wire::REP_ACK, &[]);
    }

    fn describe(&self, option: u32, offer: usize, request: &InfoRequest<'_>, out: &mut Vec<u8>) {
        let terms = self.terms(offer);
        let offer = &self.offers[offer];
        let kind = |kind: u16| kind.to_be_bytes();
        let (size, flags) = (offer.size_bytes.to_be_bytes(), offer.flags(terms).to_be_bytes());
        reply(out, option, wire::REP_INFO, &[&kind(wire::INFO_EXPORT), &size, &flags]);
        if request.for_fact(wire::INFO_NAME) {
            reply(out, option, wire::REP_INFO, &[&kind(wire::INFO_NAME), offer.name.as_bytes()]);
        }
        if request.for_fact(wire::INFO_DESCRIPTION) && !offer.description.is_empty() {
            reply(out, option, wire::REP_INFO, &[&kind(wire::INFO_DESCRIPTION), offer.description.as_bytes()]);
        }
        if request.for_fact(wire::INFO_BLOCK_SIZE) {
            let sizes = [1, offer.preferred_block_bytes, offer.length_max].map(u32::to_be_bytes);
            reply(out, option, wire::REP_INFO, &[&kind(wire::INFO_BLOCK_SIZE), sizes.as_flattened()]);
        }
    }

    fn list(&self, data: &[u8], out: &mut Vec<u8>) {
        if !data.is_empty() {
            return refuse(out, wire::OPT_LIST, wire::REP_ERR_INVALID, "NBD_OPT_LIST must have no data");
        }
        for Offer { name, description, .. } in self.offers.iter() {
            let length = wire::length_of(name.len()).to_be_bytes();
            let parts: [&[u8]; 3] = [&length, name.as_bytes(), description.as_bytes()];
            reply(out, wire::OPT_LIST, wire::REP_SERVER, &parts);
        }
        reply(out, wire::OPT_LIST, wire::REP_ACK, &[]);
    }
}

/// Appends one reply to an option. `data` is a list of parts, which the reply joins.
fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let length = wire::length_of(data.iter().map(|part| part.len()).sum());
    out.extend_from_slice(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    for number in [option, kind, length] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    for part in data {
        out.extend_from_slice(part);
    }
}

/// Appends an error as the reply to an option.
fn refuse(out: &mut Vec<u8>, option: u32, error: u32, message: &str) {
    reply(out, option, error, &[message.as_bytes()]);
}
