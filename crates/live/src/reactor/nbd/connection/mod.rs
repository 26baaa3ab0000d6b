//! One client's connection: from bytes received to operations on the disk, and from answers to bytes to send.

mod progress;
mod receive;
mod status;
mod transfer;

use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use iosched::Time;
use iosched_nbd::{Closed, Decoder, Event, Handshake, Negotiated, Progress, Refusal, Replies, Request};
use iosched_system::Memory;
use rustix::net::Shutdown;
use slab::Slab;

use super::account::Account;
use super::output::Output;
use super::{Catalogue, Door, PendingOperation, Standing};
use crate::Messages;
use crate::disk::{ClientId, Identity, LiveDisk};
use crate::nbd::{Received, Transport};
use crate::ring::Submissions;
use transfer::{Arriving, Parted, Reading};

/// A client that does not take its answers during the handshake is not listened to while more than so many bytes wait
/// for it.
const UNSENT_BYTES_MAX: usize = 16 << 10;

/// How far a connection is.
enum ConnectionStage {
    Handshake(Box<Handshake>),
    Transmission {
        decoder: Box<Decoder>,
        replies: Replies,
        client: ClientId,
        /// Which one of its catalogue's.
        export: usize,
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
    /// What the client may choose of.
    catalogue: Catalogue,
    stage: ConnectionStage,
    transport: Transport,
    /// Until when the handshake has to be over.
    pub(super) deadline: Option<Time>,
    /// The ring has it while it receives [`Receiving::Bytes`].
    received: Vec<u8>,
    /// The part of `received` that has not been looked at.
    from: usize,
    to: usize,
    /// Requests that were in what was received last.
    requests: u32,
    /// How many times in a row little has come.
    small: u32,
    /// What TLS has given and has not been looked at.
    plain: Vec<u8>,
    /// A request that there is no memory for yet.
    next: Option<Request>,
    arriving: Option<Arriving>,
    reading: Option<Reading>,
    /// A request to be told what is allocated.
    status: Option<Request>,
    parted: Slab<Parted>,
    receiving: Receiving,
    pub(super) output: Output,
    /// Operations that are not answered.
    pub(super) pending: u32,
    /// Memory that those hold.
    asked_bytes: u64,
    /// What the account has for it.
    pub(super) charged: u64,
    progress: progress::Progress,
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
    pub(super) account: &'a Account,
    pub(super) pending: &'a mut Slab<PendingOperation>,
    /// Connections that wait to be told what is allocated.
    pub(super) statuses: &'a mut VecDeque<u32>,
    pub(super) messages: &'a Messages,
    /// Bytes that it may keep for what it receives.
    pub(super) kept_bytes: usize,
    /// The disk is about to end.
    pub(super) ending: bool,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, peer: Peer, door: &Door, now: Time) -> Self {
        let mut output = Output::new();
        let handshake = Handshake::new(Arc::clone(&door.catalogue.offers), door.tls_mode, output.raw());
        Self {
            socket,
            peer,
            catalogue: door.catalogue.clone(),
            stage: ConnectionStage::Handshake(Box::new(handshake)),
            transport: Transport::Plain,
            deadline: Some(now + door.limits.handshake_ns),
            received: Vec::new(),
            from: 0,
            to: 0,
            requests: 0,
            small: 0,
            plain: Vec::new(),
            next: None,
            arriving: None,
            reading: None,
            status: None,
            parted: Slab::new(),
            receiving: Receiving::No,
            output,
            pending: 0,
            asked_bytes: 0,
            charged: 0,
            progress: progress::Progress::new(now),
            stalled: false,
            leaving: false,
            closed: false,
        }
    }

    /// Whatever the kernel does on the socket ends.
    pub(super) fn shut_down(&self) {
        // It may be shut already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// Lets the kernel send what there is, if it is not about that already.
    pub(super) fn send(&mut self, id: u32, ring: &mut Submissions<'_>) {
        self.output.send(self.socket.as_fd(), id, ring);
    }

    /// Whether nothing of it is in the kernel or the disk, and it has ended.
    pub(super) fn is_over(&self) -> bool {
        let quiet = self.receiving == Receiving::No && !self.output.is_sending() && self.pending == 0;
        quiet && (self.closed || (matches!(self.stage, ConnectionStage::Over) && self.output.bytes() == 0))
    }

    /// Tells a person what is to be known of it; `kind` is what others like it are told as.
    pub(super) fn tell(&self, kind: &'static str, what: impl fmt::Display, with: &With<'_>) {
        with.messages.note(kind, &format!("{}: {what}", self.peer.name));
    }

    /// Memory that it holds for data on its way, in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        let arriving = self.arriving.as_ref().map_or(0, |arriving| arriving.held_bytes);
        self.asked_bytes + self.output.bytes() as u64 + arriving
    }

    // ---- looking at what was received

    /// There may be room for more of what was received.
    pub(super) fn look_if_stalled(&mut self, with: &mut With<'_>) {
        if self.stalled || self.reading.is_some() {
            self.look(with);
        }
    }

    /// Looks at what was received, as far as there is room for what it asks for.
    fn look(&mut self, with: &mut With<'_>) {
        self.stalled = false;
        self.go_on_reading(with);
        if self.receiving == Receiving::Bytes {
            // The ring has it, and it is looked at once more has come.
            return;
        }
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
            let got = self.transport.receive(input, &mut self.plain, with.kept_bytes, self.output.raw());
            let plain = std::mem::take(&mut self.plain);
            let mut rest = &plain[..];
            self.look_at(&mut rest, with);
            let looked_at = plain.len() - rest.len();
            self.plain = plain;
            self.plain.drain(..looked_at);
            if self.plain.is_empty() && self.plain.capacity() > with.kept_bytes {
                self.plain = Vec::new();
            }
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
        match &mut self.stage {
            ConnectionStage::Over => false,
            // Who does not take answers is not listened to.
            ConnectionStage::Handshake(_) if self.output.bytes() > UNSENT_BYTES_MAX => {
                self.stalled = true;
                false
            }
            ConnectionStage::Handshake(handshake) => {
                let mut progress = Progress::NeedMore;
                let written = self.output.write(&mut self.transport, |out| progress = handshake.advance(input, out));
                written.is_ok() && self.shake_hands(progress, with)
            }
            ConnectionStage::Transmission { .. } => match self.take_next(with) {
                None => {
                    self.stalled = true;
                    false
                }
                Some(most) => self.look_at_requests(input, most, with),
            },
        }
    }

    /// Takes what is to be done next, if there is something and room for it; `None` if there is no room. Otherwise at
    /// most so many bytes more may be looked at.
    fn take_next(&mut self, with: &mut With<'_>) -> Option<usize> {
        let ConnectionStage::Transmission { client, .. } = &self.stage else { return None };
        // Who does not take answers is not listened to, not even to be refused.
        let has_room = with.disk.has_room(*client) && self.room_bytes(with) > 0;
        if self.reading.is_some() || self.status.is_some() || (self.arriving.is_none() && !has_room) {
            return None;
        }
        if let Some(request) = self.next.take()
            && !self.take(request, with)
        {
            self.next = Some(request);
            return None;
        }
        if self.reading.is_some() || self.status.is_some() {
            return None;
        }
        if self.arriving.is_some() { self.make_room(with) } else { Some(usize::MAX) }
    }

    fn look_at_requests(&mut self, input: &mut &[u8], most: usize, with: &mut With<'_>) -> bool {
        let ConnectionStage::Transmission { decoder, replies, .. } = &mut self.stage else { return false };
        let replies = *replies;
        let (mut now, later) = input.split_at(input.len().min(most));
        let event = decoder.advance(&mut now);
        *input = &input[input.len() - later.len() - now.len()..];
        match event {
            Event::NeedMore => return false,
            Event::Request(request) => {
                self.requests += 1;
                self.next = Some(request);
            }
            Event::Data(bytes) => {
                if let Some(room) = self.arriving.as_mut().and_then(Arriving::room) {
                    room[..bytes.len()].copy_from_slice(bytes);
                }
                if let Some(arriving) = &mut self.arriving {
                    arriving.filled += bytes.len();
                }
                self.hand_over_if_arrived(with);
            }
            Event::Refused(Refusal { to, code, message }) => {
                self.progress.ended();
                self.say(with, |out| replies.failed(out, to, code, message));
            }
            Event::Disconnect => self.finish(with),
            Event::Broken(broken) => {
                self.tell("broken requests", format_args!("{broken}; the connection is closed"), with);
                self.close(with);
            }
        }
        true
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
                if why != Closed::Aborted {
                    self.tell("bad handshakes", why, with);
                }
                self.finish(with);
            }
        }
        true
    }

    fn begin_transmission(&mut self, negotiated: Negotiated, with: &mut With<'_>) {
        let Negotiated { offer: chosen, terms } = negotiated;
        let Catalogue { exports, offers, .. } = &self.catalogue;
        let (Some(export), Some(offer)) = (exports.as_slice().get(chosen), offers.get(chosen)) else {
            return self.close(with);
        };
        let Some(Standing { ioprio, group, sync }) = self.catalogue.standing(chosen) else { return self.close(with) };
        let named = if export.name.is_empty() { &self.peer.name } else { &export.name };
        let name = if export.name.is_empty() { named.clone() } else { format!("{named} {}", self.peer.name) };
        let identity = Identity { name, pid: self.peer.pid, ioprio, group, read_only: export.read_only, sync };
        match with.disk.connect(with.now, identity) {
            Ok(client) => {
                self.deadline = None;
                let decoder = Box::new(Decoder::new(offer, terms));
                self.stage =
                    ConnectionStage::Transmission { decoder, replies: Replies::new(terms), client, export: chosen };
            }
            Err(error) => {
                self.tell("clients refused", error, with);
                self.close(with);
            }
        }
    }

    /// Exports are declared anew: what has changed of its own is so for it, too, if there still is such an export.
    pub(super) fn follow(&mut self, now: Time, catalogue: &Catalogue, disk: &mut LiveDisk) {
        let ConnectionStage::Transmission { client, export, .. } = &mut self.stage else { return };
        let of_that_name = |name: &str| catalogue.exports.as_slice().iter().position(|other| other.name == name);
        let present = self.catalogue.exports.as_slice().get(*export);
        let Some(position) = present.and_then(|present| of_that_name(&present.name)) else { return };
        let (before, after) = (self.catalogue.standing(*export), catalogue.standing(position));
        if let (Some(before), Some(after)) = (before, after) {
            if after.ioprio != before.ioprio {
                disk.set_client_ioprio(*client, after.ioprio);
            }
            if after.sync != before.sync {
                disk.set_client_sync(*client, after.sync);
            }
            if after.group != before.group {
                disk.set_client_group(now, *client, after.group);
            }
        }
        (self.catalogue, *export) = (catalogue.clone(), position);
    }

    fn say(&mut self, with: &mut With<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        if let Err(error) = self.output.write(&mut self.transport, write) {
            self.tell("failures of TLS", error, with);
            self.close(with);
        }
    }

    /// The kernel has sent, or not.
    pub(super) fn sent(&mut self, result: i32, memory: Memory, with: &mut With<'_>, ring: &mut Submissions<'_>) {
        match usize::try_from(result) {
            Ok(sent) => {
                self.progress.moved(sent);
                self.output.sent(sent, memory, with.kept_bytes, (self.socket.as_fd(), with.id), ring);
                if self.output.bytes() == 0 {
                    self.progress.ended();
                }
            }
            Err(_) => {
                self.output.failed();
                self.close(with);
            }
        }
        self.look_if_stalled(with);
    }

    // ---- the end

    /// Whether it has stood still for so long in the middle of a request, or over its answers.
    pub(super) fn stands_still(&mut self, now: Time, allowed_ns: u64) -> bool {
        let within_request = match &self.stage {
            ConnectionStage::Transmission { decoder, .. } => self.arriving.is_some() || !decoder.between_requests(),
            ConnectionStage::Handshake(_) | ConnectionStage::Over => false,
        };
        let its_turn = self.output.is_sending() || (within_request && self.receiving != Receiving::No);
        self.progress.stands_still(now, its_turn && !self.closed, allowed_ns)
    }

    /// It takes nothing more; what was asked for is still answered.
    pub(super) fn finish(&mut self, with: &mut With<'_>) {
        self.leaving = true;
        self.go_on_reading(with);
        let waits = self.pending > 0 || self.reading.is_some() || self.status.is_some();
        if !waits && !matches!(self.stage, ConnectionStage::Over) {
            self.end_stage(with);
            if self.transport.finish(self.output.raw()).is_err() {
                self.close(with);
            }
        }
    }

    fn end_stage(&mut self, with: &mut With<'_>) {
        if let ConnectionStage::Transmission { client, .. } = std::mem::replace(&mut self.stage, ConnectionStage::Over)
        {
            with.disk.disconnect(with.now, client);
        }
        (self.reading, self.status) = (None, None);
        if self.receiving != Receiving::Data {
            self.arriving = None;
        }
        self.deadline = None;
    }

    /// It ends at once: nobody is there to be answered.
    pub(super) fn close(&mut self, with: &mut With<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            self.end_stage(with);
            self.shut_down();
        }
    }
}
