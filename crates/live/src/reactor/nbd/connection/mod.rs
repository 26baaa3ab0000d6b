//! Connection of one client. It converts received bytes to operations of the disk, and answers to
//! bytes for the client.

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

/// Maximum number of unsent bytes during the handshake. Above this number, the connection stops
/// reading.
const UNSENT_BYTES_MAX: usize = 16 << 10;

/// Stage of a connection.
enum ConnectionStage {
    Handshake(Box<Handshake>),
    Transmission {
        decoder: Box<Decoder>,
        replies: Replies,
        client: ClientId,
        /// Index of the export in the connection's catalogue.
        export: usize,
    },
    /// The connection takes no more requests. It answers its pending requests and then ends.
    Over,
}

/// Destination of the receive call that is in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiving {
    No,
    Bytes,
    /// Directly into the data of a write.
    Data,
}

pub(super) struct Connection {
    socket: OwnedFd,
    pub(super) peer: Peer,
    /// Exports that the client can choose.
    catalogue: Catalogue,
    stage: ConnectionStage,
    transport: Transport,
    /// Deadline of the handshake.
    pub(super) deadline: Option<Time>,
    /// Received bytes. During [`Receiving::Bytes`], the ring holds this buffer.
    received: Vec<u8>,
    /// Range of `received` that the connection has not processed yet.
    from: usize,
    to: usize,
    /// Number of requests in the last received bytes.
    requests: u32,
    /// Number of consecutive receives that returned only a few bytes.
    small: u32,
    /// Decrypted bytes that the connection has not processed yet.
    plain: Vec<u8>,
    /// Decoded request that the connection has not started yet.
    next: Option<Request>,
    arriving: Option<Arriving>,
    reading: Option<Reading>,
    /// Request for block status that waits for its answer.
    status: Option<Request>,
    parted: Slab<Parted>,
    receiving: Receiving,
    pub(super) output: Output,
    /// Number of operations without an answer.
    pub(super) pending: u32,
    /// Memory of these operations, bytes.
    requested_bytes: u64,
    /// Memory that the account has charged to the connection, bytes.
    pub(super) charged: u64,
    progress: progress::Progress,
    /// Whether the connection may have unprocessed input, because the disk or the client has no
    /// room.
    stalled: bool,
    /// Whether the connection takes no more requests. In this case, the connection ends after it
    /// has answered all pending requests.
    leaving: bool,
    pub(super) closed: bool,
}

/// The client at the other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) pid: u32,
}

/// State of the server that a connection uses.
pub(super) struct With<'a> {
    pub(super) id: u32,
    pub(super) now: Time,
    pub(super) disk: &'a mut LiveDisk,
    pub(super) door: &'a Door,
    pub(super) account: &'a Account,
    pub(super) pending: &'a mut Slab<PendingOperation>,
    /// Connections that wait for block status.
    pub(super) statuses: &'a mut VecDeque<u32>,
    pub(super) messages: &'a Messages,
    /// Memory that the connection may keep for receiving, bytes.
    pub(super) kept_bytes: usize,
    /// Whether the disk is about to end.
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
            requested_bytes: 0,
            charged: 0,
            progress: progress::Progress::new(now),
            stalled: false,
            leaving: false,
            closed: false,
        }
    }

    /// Shuts down the socket. This ends all calls of the kernel on the socket.
    pub(super) fn shut_down(&self) {
        // The socket may be shut down already.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// Makes the kernel send pending output, if it is not already sending.
    pub(super) fn send(&mut self, id: u32, ring: &mut Submissions<'_>) {
        self.output.send(self.socket.as_fd(), id, ring);
    }

    /// Returns whether the connection has ended and neither the kernel nor the disk uses it.
    pub(super) fn is_over(&self) -> bool {
        let quiet = self.receiving == Receiving::No && !self.output.is_sending() && self.pending == 0;
        quiet && (self.closed || (matches!(self.stage, ConnectionStage::Over) && self.output.bytes() == 0))
    }

    /// Sends a message to the user. `kind` is the kind of the message, for rate limiting.
    pub(super) fn tell(&self, kind: &'static str, what: impl fmt::Display, with: &With<'_>) {
        with.messages.note(kind, &format!("{}: {what}", self.peer.name));
    }

    /// Returns the memory that the connection holds for data in transit, bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        let arriving = self.arriving.as_ref().map_or(0, |arriving| arriving.held_bytes);
        self.requested_bytes + self.output.bytes() as u64 + arriving
    }

    // ---- processing of input

    /// Processes more input if the connection stopped because there was no room.
    pub(super) fn check_for_stall(&mut self, with: &mut With<'_>) {
        if self.stalled || self.reading.is_some() {
            self.look(with);
        }
    }

    /// Processes received input while there is room for its requests.
    fn look(&mut self, with: &mut With<'_>) {
        self.stalled = false;
        self.go_on_reading(with);
        if self.receiving == Receiving::Bytes {
            // The ring holds the buffer. The next completion processes the input.
            return;
        }
        let received = std::mem::take(&mut self.received);
        let mut input = &received[self.from..self.to];
        if matches!(self.transport, Transport::Plain) {
            self.look_at(&mut input, with);
            self.from = self.to - input.len();
        }
        // The handshake may have started TLS.
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

    /// Processes the next event of the input. Returns whether there may be another event.
    fn look_at_next(&mut self, input: &mut &[u8], with: &mut With<'_>) -> bool {
        match &mut self.stage {
            ConnectionStage::Over => false,
            // The connection stops reading while the client does not receive its answers.
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

    /// Takes the pending request, if there is one and there is room for it. Returns the number of
    /// bytes that the connection may process next, or `None` if there is no room.
    fn take_next(&mut self, with: &mut With<'_>) -> Option<usize> {
        let ConnectionStage::Transmission { client, .. } = &self.stage else { return None };
        // While the client does not receive its answers, the connection reads no more requests, not
        // even to refuse them.
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

    /// Processes the result of a handshake step. Returns whether there may be more input.
    fn shake_hands(&mut self, progress: Progress, with: &mut With<'_>) -> bool {
        match progress {
            Progress::NeedMore => return false,
            Progress::Replied => {}
            Progress::StartTls => {
                match with.door.tls.clone().map(Transport::tls) {
                    Some(Ok(transport)) => self.transport = transport,
                    _ => self.close(with),
                }
                // The rest of the input is encrypted.
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

    /// Adopts the changes of the client's export after somebody has replaced the exports. Does
    /// nothing if the export no longer exists.
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

    /// Handles the result of a send.
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
        self.check_for_stall(with);
    }

    // ---- end of the connection

    /// Returns whether the connection made no progress for `allowed_ns` in the middle of a request
    /// or with unread answers.
    pub(super) fn has_stalled(&mut self, now: Time, allowed_ns: u64) -> bool {
        let within_request = match &self.stage {
            ConnectionStage::Transmission { decoder, .. } => self.arriving.is_some() || !decoder.between_requests(),
            ConnectionStage::Handshake(_) | ConnectionStage::Over => false,
        };
        let its_turn = self.output.is_sending() || (within_request && self.receiving != Receiving::No);
        self.progress.has_stalled(now, its_turn && !self.closed, allowed_ns)
    }

    /// Stops taking requests. Pending requests still get their answers.
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

    /// Ends the connection at once. Pending requests get no answers.
    pub(super) fn close(&mut self, with: &mut With<'_>) {
        if !std::mem::replace(&mut self.closed, true) {
            self.end_stage(with);
            self.shut_down();
        }
    }
}
