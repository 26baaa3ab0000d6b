//! One client's connection: from bytes received to operations on the disk, and from answers to bytes to send.

use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use io_uring::{opcode, types};
use iosched::Time;

use super::output::Output;
use super::{Asked, Door};
use crate::disk::{Action, ClientId, Identity, LiveDisk, Operation};
use crate::nbd::{Decoder, Event, Handshake, Negotiated, Progress, Received, Refusal, Replies, Request, Transport};
use crate::ring::Submissions;
use crate::{Buffer, Errno, Messages};

/// Bytes received at once, but for the data of a large write.
const RECEIVED_BYTES: usize = 128 << 10;
/// Plain bytes that TLS gives at once.
const PLAIN_BYTES: usize = 128 << 10;
/// A client that does not take its answers during the handshake is not listened to while more than so many bytes wait for it.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// A write whose data is on its way.
struct Arriving {
    request: Request,
    data: Buffer,
    filled: usize,
}

/// How far a connection is.
enum Stage {
    Handshake(Box<Handshake>),
    Transmission {
        decoder: Box<Decoder>,
        replies: Replies,
        client: ClientId,
    },
    /// It takes no more: what was asked for is answered, and then it ends.
    Over,
}

/// What the kernel receives into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiving {
    No,
    Bytes,
    /// Straight into a write's data.
    Data,
}

pub(super) struct Connection {
    socket: OwnedFd,
    pub(super) peer: Peer,
    stage: Stage,
    transport: Transport,
    /// Until when the handshake has to be over.
    pub(super) deadline: Option<Time>,
    received: Box<[u8]>,
    /// The part of `received` that has not been looked at.
    from: usize,
    to: usize,
    /// What TLS has given and has not been looked at.
    plain: Vec<u8>,
    arriving: Option<Arriving>,
    receiving: Receiving,
    pub(super) output: Output,
    /// Operations that are not answered.
    pub(super) asked: u32,
    /// There may be more to look at, but the disk or the client has no room for more.
    stalled: bool,
    /// It has said that it goes: what it asked for is answered first.
    leaving: bool,
    pub(super) closed: bool,
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) pid: u32,
}

/// What a connection works with.
pub(super) struct With<'a> {
    pub(super) id: u32,
    pub(super) now: Time,
    pub(super) disk: &'a mut LiveDisk,
    pub(super) door: &'a Door,
    pub(super) asked: &'a mut slab::Slab<Asked>,
    pub(super) messages: &'a Messages,
    /// The disk is about to end.
    pub(super) ending: bool,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, peer: Peer, door: &Door, now: Time) -> Self {
        let mut output = Output::new();
        let handshake = Handshake::new(Arc::clone(&door.offers), door.tls_mode, output.raw());
        Self {
            socket,
            peer,
            stage: Stage::Handshake(Box::new(handshake)),
            transport: Transport::Plain,
            deadline: Some(now + door.limits.handshake_ns),
            received: vec![0; RECEIVED_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            plain: Vec::new(),
            arriving: None,
            receiving: Receiving::No,
            output,
            asked: 0,
            stalled: false,
            leaving: false,
            closed: false,
        }
    }

    pub(super) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Whether nothing of it is in the kernel or the disk, and it has ended.
    pub(super) fn is_over(&self) -> bool {
        let quiet = self.receiving == Receiving::No && !self.output.is_sending() && self.asked == 0;
        quiet && (self.closed || (matches!(self.stage, Stage::Over) && self.output.bytes() == 0))
    }

    /// Tells a person what is to be known of it; `kind` is what others like it are told as.
    pub(super) fn tell(&self, kind: &'static str, what: impl fmt::Display, with: &With<'_>) {
        with.messages.note(kind, &format!("{}: {what}", self.peer.name));
    }

    // ---- receiving

    /// Lets the kernel receive, if there is room for more.
    pub(super) fn receive(&mut self, id: u32, ring: &mut Submissions<'_>) {
        if self.receiving != Receiving::No || self.closed || self.stalled || self.leaving {
            return;
        }
        let fd = types::Fd(self.socket.as_raw_fd());
        let direct = matches!(self.transport, Transport::Plain) && self.from == self.to;
        if let (Some(arriving), true) = (&mut self.arriving, direct) {
            let room = &mut arriving.data[arriving.filled..];
            let entry = opcode::Recv::new(fd, room.as_mut_ptr(), room.len() as u32).flags(libc::MSG_WAITALL).build();
            ring.push(entry, id);
            self.receiving = Receiving::Data;
            return;
        }
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.received.len() {
            self.received.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let room = &mut self.received[self.to..];
        if room.is_empty() {
            return;
        }
        ring.push(opcode::Recv::new(fd, room.as_mut_ptr(), room.len() as u32).build(), id);
        self.receiving = Receiving::Bytes;
    }

    /// The kernel has received, or not.
    pub(super) fn received(&mut self, result: i32, with: &mut With<'_>) {
        let was = std::mem::replace(&mut self.receiving, Receiving::No);
        if self.closed {
            return;
        }
        let Some(bytes) = usize::try_from(result).ok().filter(|&bytes| bytes > 0) else {
            if let Stage::Handshake(_) = self.stage {
                self.tell("gone during the handshake", "gone during the handshake", with);
            }
            self.close(with);
            return;
        };
        match was {
            Receiving::Data => self.data_received(bytes, with),
            _ => self.to += bytes,
        }
        self.look(with);
    }

    fn data_received(&mut self, bytes: usize, with: &mut With<'_>) {
        if let Stage::Transmission { decoder, .. } = &mut self.stage {
            decoder.data_received(bytes as u32);
        }
        if let Some(arriving) = &mut self.arriving {
            arriving.filled += bytes;
        }
        self.ask_if_arrived(with);
    }

    // ---- looking at what was received

    /// There may be room for more of what was received.
    pub(super) fn look_if_stalled(&mut self, with: &mut With<'_>) {
        if self.stalled {
            self.look(with);
        }
    }

    /// Looks at what was received, as far as there is room for what it asks for.
    fn look(&mut self, with: &mut With<'_>) {
        self.stalled = false;
        let received = std::mem::take(&mut self.received);
        let mut input = &received[self.from..self.to];
        if matches!(self.transport, Transport::Plain) {
            self.look_at(&mut input, with);
            self.from = self.to - input.len();
        }
        // A handshake may have begun TLS.
        if matches!(self.transport, Transport::Tls(_)) && !self.closed {
            self.look_into_tls(&mut input, with);
            self.from = self.to - input.len();
        }
        self.received = received;
    }

    fn look_into_tls(&mut self, input: &mut &[u8], with: &mut With<'_>) {
        loop {
            let got = self.transport.receive(input, &mut self.plain, PLAIN_BYTES, self.output.raw());
            let plain = std::mem::take(&mut self.plain);
            let mut rest = &plain[..];
            self.look_at(&mut rest, with);
            let looked_at = plain.len() - rest.len();
            self.plain = plain;
            self.plain.drain(..looked_at);
            match got {
                Err(error) => {
                    self.tell("failures of TLS", error, with);
                    return self.finish(with);
                }
                Ok(Received::Closed) => return self.finish(with),
                Ok(Received::Open) if looked_at == 0 || self.closed => return,
                Ok(Received::Open) => {}
            }
        }
    }

    fn look_at(&mut self, input: &mut &[u8], with: &mut With<'_>) {
        while !self.closed && !self.leaving && self.look_at_next(input, with) {}
    }

    /// Looks at what comes next. Whether there may be more.
    fn look_at_next(&mut self, input: &mut &[u8], with: &mut With<'_>) -> bool {
        // Who does not take answers is not listened to.
        let unsent_bytes = self.output.bytes();
        match &mut self.stage {
            Stage::Over => false,
            Stage::Handshake(_) if unsent_bytes > UNSENT_BYTES_MAX => {
                self.stalled = true;
                false
            }
            Stage::Handshake(handshake) => {
                let mut progress = Progress::NeedMore;
                let written = self.output.write(&mut self.transport, |out| progress = handshake.advance(input, out));
                written.is_ok() && self.shake_hands(progress, with)
            }
            Stage::Transmission { decoder, replies, client } => {
                let (client, replies) = (*client, *replies);
                if self.arriving.is_none() && !with.disk.has_room(client, unsent_bytes as u64) {
                    self.stalled = true;
                    return false;
                }
                match decoder.advance(input) {
                    Event::NeedMore => return false,
                    Event::Request(request) if request.action == Action::Write => {
                        let data = with.disk.buffer(request.length as usize);
                        self.arriving = Some(Arriving { request, data, filled: 0 });
                    }
                    Event::Request(request) => self.ask(request, None, with),
                    Event::Data(bytes) => {
                        if let Some(Arriving { data, filled, .. }) = &mut self.arriving {
                            data[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                            *filled += bytes.len();
                        }
                        self.ask_if_arrived(with);
                    }
                    Event::Refused(Refusal { cookie, errno, message }) => {
                        self.say(with, |out| replies.failed(out, cookie, errno, message));
                    }
                    Event::Disconnect => self.finish(with),
                    Event::Broken(broken) => {
                        self.tell("broken requests", format_args!("{broken}; the connection is closed"), with);
                        self.close(with);
                    }
                }
                true
            }
        }
    }

    /// Goes on after a step of the handshake. Whether there may be more to look at.
    fn shake_hands(&mut self, progress: Progress, with: &mut With<'_>) -> bool {
        match progress {
            Progress::NeedMore => return false,
            Progress::Replied => {}
            Progress::StartTls => {
                match with.door.tls.clone().map(Transport::tls) {
                    Some(Ok(transport)) => self.transport = transport,
                    _ => self.close(with),
                }
                // What is left of the input is not plain.
                return false;
            }
            Progress::Negotiated(negotiated) => self.begin_transmission(negotiated, with),
            Progress::Close(why) => {
                if why != crate::nbd::Closed::Aborted {
                    self.tell("bad handshakes", why, with);
                }
                self.finish(with);
            }
        }
        true
    }

    fn begin_transmission(&mut self, negotiated: Negotiated, with: &mut With<'_>) {
        let Negotiated { offer, structured_replies } = negotiated;
        let (Some(export), Some(offer)) = (with.door.exports.as_slice().get(offer), with.door.offers.get(offer)) else {
            return self.close(with);
        };
        let named = if export.name.is_empty() { &self.peer.name } else { &export.name };
        let name = if export.name.is_empty() { named.clone() } else { format!("{named} {}", self.peer.name) };
        let identity = Identity {
            name,
            pid: self.peer.pid,
            ioprio: export.ioprio,
            group: with.door.exports.group(export).map(|(name, _)| name.to_owned()),
            read_only: export.read_only,
        };
        match with.disk.connect(with.now, identity) {
            Ok(client) => {
                self.deadline = None;
                let decoder = Box::new(Decoder::new(offer, structured_replies));
                self.stage = Stage::Transmission { decoder, replies: Replies::new(structured_replies), client };
            }
            Err(error) => {
                self.tell("clients refused", error, with);
                self.close(with);
            }
        }
    }

    // ---- asking the disk

    fn ask_if_arrived(&mut self, with: &mut With<'_>) {
        if let Some(Arriving { request, data, .. }) =
            self.arriving.take_if(|arriving| arriving.filled == arriving.data.len())
        {
            self.ask(request, Some(data), with);
        }
    }

    fn ask(&mut self, request: Request, data: Option<Buffer>, with: &mut With<'_>) {
        let Stage::Transmission { client, replies, .. } = &self.stage else { return };
        let (client, replies) = (*client, *replies);
        let Request { action, cookie, offset, length, fua, no_hole } = request;
        if with.ending {
            let errno = Errno::ESHUTDOWN;
            return self.say(with, |out| replies.failed(out, cookie, errno, "the server is about to end"));
        }
        let key = with.asked.insert(Asked { connection: with.id, cookie, offset, length }) as u64;
        self.asked += 1;
        let operation = Operation { action, offset, length, fua, no_hole, data, cookie: super::COOKIES | key };
        with.disk.submit(with.now, client, operation);
    }

    /// The disk has answered.
    pub(super) fn answer(&mut self, asked: &Asked, result: Result<Option<Buffer>, Errno>, with: &mut With<'_>) {
        self.asked -= 1;
        let Stage::Transmission { replies, .. } = &self.stage else { return };
        let (replies, cookie) = (*replies, asked.cookie);
        match result {
            Ok(None) => self.say(with, |out| replies.done(out, cookie)),
            Ok(Some(data)) => {
                self.say(with, |out| replies.data(out, cookie, asked.offset, asked.length));
                let sent = self.output.data(&mut self.transport, data);
                if sent.is_err() {
                    self.close(with);
                }
            }
            Err(errno) => self.say(with, |out| replies.failed(out, cookie, errno, &errno.to_string())),
        }
        if self.leaving {
            self.finish(with);
        }
    }

    fn say(&mut self, with: &mut With<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        if let Err(error) = self.output.write(&mut self.transport, write) {
            self.tell("failures of TLS", error, with);
            self.close(with);
        }
    }

    // ---- the end

    /// It takes nothing more; what was asked for is still answered.
    pub(super) fn finish(&mut self, with: &mut With<'_>) {
        self.leaving = true;
        if self.asked == 0 && !matches!(self.stage, Stage::Over) {
            self.end_stage(with);
            if self.transport.finish(self.output.raw()).is_err() {
                self.close(with);
            }
        }
    }

    fn end_stage(&mut self, with: &mut With<'_>) {
        if let Stage::Transmission { client, .. } = std::mem::replace(&mut self.stage, Stage::Over) {
            with.disk.disconnect(with.now, client);
        }
        self.deadline = None;
    }

    /// It ends at once: nobody is there to be answered.
    pub(super) fn close(&mut self, with: &mut With<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            self.end_stage(with);
            super::shut_down(self.fd());
        }
    }
}
