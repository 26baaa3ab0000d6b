//! A connection of a history. Bytes travel in both directions, in pieces of any size and with any
//! delay.
//!
//! The server's side is one end of a real pair of sockets. No bytes go over these sockets. The
//! server's end identifies the connection. Through the pair, each side sees whether the other side
//! has shut down the connection.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use iosched_check::Random;
use iosched_system::{Call, Memory, Piece, Segment};
use rustix::net::Shutdown;

use crate::ring::{Completed, Tag};

/// Memory for the bytes of one receive of the server.
enum Room {
    Some(Vec<u8>, usize),
    All(Segment),
}

struct Receiving {
    tag: Tag,
    room: Room,
}

struct Sending {
    tag: Tag,
    pieces: Vec<Piece>,
    /// Number of bytes that earlier calls have sent.
    sent: usize,
    /// Number of bytes that this call has sent.
    moved: usize,
    all: bool,
}

impl Sending {
    fn left(&self) -> usize {
        let bytes: usize = self.pieces.iter().map(|piece| piece.bytes().len()).sum();
        bytes - self.sent - self.moved
    }

    /// Moves the next bytes into `out`.
    fn move_into(&mut self, out: &mut VecDeque<u8>, count: usize) {
        let mut skipped = self.sent + self.moved;
        let mut left = count;
        for bytes in self.pieces.iter().map(Piece::bytes) {
            let here = skipped.min(bytes.len());
            skipped -= here;
            let take = left.min(bytes.len() - here);
            out.extend(&bytes[here..here + take]);
            left -= take;
        }
        self.moved += count;
    }
}

pub(super) struct Wire {
    /// The client's end of the socket pair.
    end: OwnedFd,
    /// Bytes from the client that are in transit, and bytes that have arrived at the server.
    up: VecDeque<u8>,
    arrived: VecDeque<u8>,
    /// Whether the client has ended its sending side.
    up_ended: bool,
    /// Bytes in transit to the client.
    down: VecDeque<u8>,
    /// Maximum number of bytes in transit to the client.
    window: usize,
    /// Maximum number of bytes that arrive at the same time.
    grain: usize,
    receiving: Option<Receiving>,
    sending: Option<Sending>,
    /// Whether the client has disconnected.
    pub(super) cut: bool,
    /// Whether the server has shut down the connection.
    pub(super) closed: bool,
}

/// Returns how many of the `from` waiting bytes arrive at the same time. The maximum grows with
/// `from`, because otherwise one long operation would take most of a history.
fn some(random: &mut Random, from: usize, grain: usize) -> usize {
    if from == 0 { 0 } else { 1 + random.index(from.min(grain.max(from / 8))) }
}

/// Takes `count` bytes from the front.
fn take(from: &mut VecDeque<u8>, count: usize, mut into: impl FnMut(&[u8])) {
    // Most of a history's time is spent here. The loop therefore copies slices instead of single
    // bytes.
    let (first, second) = from.as_slices();
    let here = count.min(first.len());
    into(&first[..here]);
    into(&second[..count - here]);
    from.drain(..count);
}

impl Wire {
    pub(super) fn new(end: OwnedFd, random: &mut Random) -> Self {
        Self {
            end,
            up: VecDeque::new(),
            arrived: VecDeque::new(),
            up_ended: false,
            down: VecDeque::new(),
            window: random.pick(&[64, 4096, 65_536]),
            grain: random.pick(&[7, 600, 5000, 65_536]),
            receiving: None,
            sending: None,
            cut: false,
            closed: false,
        }
    }

    pub(super) fn end(&self) -> &OwnedFd {
        &self.end
    }

    // ---- the client's side

    pub(super) fn send(&mut self, bytes: &[u8]) {
        if !self.cut && !self.up_ended {
            self.up.extend(bytes);
        }
    }

    /// Delivers some of the bytes that the client has sent. Returns whether bytes are left.
    pub(super) fn carry_up(&mut self, random: &mut Random) -> bool {
        let count = some(random, self.up.len(), self.grain);
        take(&mut self.up, count, |bytes| self.arrived.extend(bytes));
        !self.up.is_empty()
    }

    /// Delivers some of the bytes that the server has sent.
    pub(super) fn carry_down(&mut self, random: &mut Random) -> Vec<u8> {
        let count = some(random, self.down.len(), self.grain);
        let mut bytes = Vec::with_capacity(count);
        take(&mut self.down, count, |some| bytes.extend_from_slice(some));
        bytes
    }

    pub(super) fn has_down(&self) -> bool {
        !self.down.is_empty()
    }

    /// Ends the client's sending side.
    pub(super) fn end_up(&mut self) {
        self.up_ended = true;
        // An error means that the socket is shut down already.
        let _ = rustix::net::shutdown(&self.end, Shutdown::Write);
    }

    /// Disconnects the client. A random part of the bytes in transit is lost.
    pub(super) fn cut(&mut self, random: &mut Random) {
        let lost = random.index(self.up.len() + 1);
        self.up.truncate(self.up.len() - lost);
        self.arrived.append(&mut self.up);
        self.down.clear();
        (self.cut, self.up_ended) = (true, true);
        // An error means that the socket is shut down already.
        let _ = rustix::net::shutdown(&self.end, Shutdown::Both);
    }

    // ---- the server's side

    pub(super) fn push(&mut self, call: Call, tag: Tag) {
        match call {
            Call::Receive { bytes, from } => self.receiving = Some(Receiving { tag, room: Room::Some(bytes, from) }),
            Call::ReceiveAll(segment) => self.receiving = Some(Receiving { tag, room: Room::All(segment) }),
            Call::Send { pieces, sent, all } => {
                self.sending = Some(Sending { tag, pieces, sent, moved: 0, all });
            }
            _ => unreachable!("a socket has no other operations"),
        }
    }

    /// Completes the calls that can complete now.
    pub(super) fn settle(&mut self, random: &mut Random, ready: &mut Vec<Completed>) {
        if let Some(receiving) = self.receiving.take() {
            self.receiving = self.receive(receiving, random, ready);
        }
        if let Some(sending) = self.sending.take() {
            self.sending = self.transmit(sending, ready);
        }
    }

    fn receive(&mut self, receiving: Receiving, random: &mut Random, ready: &mut Vec<Completed>) -> Option<Receiving> {
        let Receiving { tag, mut room } = receiving;
        let ended = self.closed || (self.up_ended && self.up.is_empty());
        let there = self.arrived.len();
        let count = match &room {
            Room::Some(bytes, from) => some(random, there.min(bytes.len() - from), self.grain),
            // A receive of all bytes may return fewer bytes if it is interrupted.
            Room::All(segment) if there >= segment.len() || ended || random.chance(2) => there.min(segment.len()),
            Room::All(_) => 0,
        };
        if count == 0 && !ended {
            return Some(Receiving { tag, room });
        }
        let mut place = match &mut room {
            Room::Some(bytes, from) => &mut bytes[*from..*from + count],
            Room::All(segment) => &mut segment[..count],
        };
        take(&mut self.arrived, count, |some| {
            let (here, rest) = std::mem::take(&mut place).split_at_mut(some.len());
            here.copy_from_slice(some);
            place = rest;
        });
        let memory = match room {
            Room::Some(bytes, _) => Memory::Bytes(bytes),
            Room::All(segment) => Memory::Segment(segment),
        };
        ready.push(Completed { tag, result: count as i32, memory });
        None
    }

    fn transmit(&mut self, mut sending: Sending, ready: &mut Vec<Completed>) -> Option<Sending> {
        let gone = self.cut || self.closed;
        let count = if gone { 0 } else { sending.left().min(self.window.saturating_sub(self.down.len())) };
        sending.move_into(&mut self.down, count);
        let over = gone || sending.left() == 0 || (!sending.all && sending.moved > 0);
        if !over {
            return Some(sending);
        }
        let Sending { tag, pieces, moved, .. } = sending;
        let result = if gone && moved == 0 { -libc::EPIPE } else { moved as i32 };
        ready.push(Completed { tag, result, memory: Memory::Pieces(pieces) });
        None
    }
}
