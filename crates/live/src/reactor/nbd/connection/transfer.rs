//! Operations of a connection and their memory. The connection executes a request as a whole if
//! there is enough memory, and otherwise in pieces.
//!
//! The connection takes memory for a write as its data arrives. If no more memory is free, the
//! connection submits the data that has arrived as a piece, and later submits further pieces. The
//! client gets one answer, after all pieces are complete. If there is not enough memory for a whole
//! read, the connection executes it in pieces, while the client has nothing else in flight. The
//! answer to such a read is also sent in pieces.

use iosched_nbd::{ErrorCode, Refusal, Replies, ReplyTo, Request, RequestKind};
use iosched_system::Segment;

use super::super::account::LEAST_BYTES;
use super::super::output::COPIED_BYTES_MAX;
use super::super::{COOKIES, Part, PendingOperation};
use super::{Connection, ConnectionStage, With};
use crate::disk::{Action, Operation};
use crate::nbd::Transport;
use crate::{Buffer, Errno};

/// Maximum length of a piece, bytes.
const PIECE_BYTES_MAX: u64 = 4 << 20;
/// Minimum length of a read's piece, bytes. The last piece may be shorter.
const PIECE_BYTES_MIN: u64 = LEAST_BYTES / 2;
/// Alignment of the ends of pieces, bytes. It ensures that no block is written twice.
const BLOCK_BYTES: u64 = 4096;

/// A write whose data is arriving.
pub(super) struct Arriving {
    request: Request,
    /// Number of bytes that earlier pieces have submitted to the disk.
    at: u64,
    /// Buffer of the current piece. Its first `filled` bytes contain data. Its first `granted`
    /// bytes may be filled.
    data: Option<Buffer>,
    pub(super) filled: usize,
    granted: usize,
    /// Memory that the write holds, bytes.
    pub(super) held_bytes: u64,
    /// Key of the write in `parted`, if the write is executed in pieces.
    parted: Option<usize>,
}

impl Arriving {
    fn new(request: Request) -> Self {
        Self { request, at: 0, data: None, filled: 0, granted: 0, held_bytes: 0, parted: None }
    }

    /// Returns the free part of the buffer. Returns `None` if the write has no memory yet.
    pub(super) fn room(&mut self) -> Option<&mut [u8]> {
        let (filled, granted) = (self.filled, self.granted);
        self.data.as_mut().map(|data| &mut data[filled..granted])
    }

    /// Lends at most `bytes_max` bytes of the free part of the buffer. Returns `None` if the write
    /// has no memory yet.
    pub(super) fn lend(&mut self, bytes_max: usize) -> Option<Segment> {
        let length = (self.granted - self.filled).min(bytes_max);
        self.data.as_mut().filter(|_| length > 0).map(|data| data.lend(self.filled, length))
    }

    /// Returns the offset of the current piece on the disk.
    fn offset(&self) -> u64 {
        self.request.offset + self.at
    }

    fn left(&self) -> u64 {
        self.request.length - self.at
    }
}

/// A write that the connection executes in pieces.
pub(super) struct Parted {
    to: ReplyTo,
    under_way: u32,
    /// Whether all data of the write has arrived.
    arrived: bool,
    /// First error of the write's pieces.
    result: Result<(), Errno>,
    /// Whether the client already has an answer.
    is_answered: bool,
}

/// A read that the connection executes in pieces.
pub(super) struct Reading {
    request: Request,
    /// Number of bytes that the connection has answered.
    at: u64,
    /// Whether the next piece is in flight.
    is_submitted: bool,
}

impl Reading {
    /// Returns whether the reply has only one header, so that an error can be reported only before
    /// the reply begins.
    fn is_one(&self, replies: Replies) -> bool {
        !self.is_dropped() && (self.request.unfragmented || !replies.may_come_in_pieces())
    }

    /// Returns whether the connection drops the data instead of sending it.
    fn is_dropped(&self) -> bool {
        self.request.kind == RequestKind::Cache
    }
}

/// Returns the largest length, at most `length`, with which a range from `offset` ends at the end
/// of a block.
fn to_block(offset: u64, length: u64) -> u64 {
    length.saturating_sub((offset + length) % BLOCK_BYTES)
}

/// Returns the disk's action for a request. Returns `None` for block status, which the back end
/// answers.
const fn action_of(kind: RequestKind) -> Option<Action> {
    match kind {
        RequestKind::Read | RequestKind::Cache => Some(Action::Read),
        RequestKind::Write => Some(Action::Write),
        RequestKind::Flush => Some(Action::Flush),
        RequestKind::Trim => Some(Action::Trim),
        RequestKind::WriteZeroes => Some(Action::WriteZeroes),
        RequestKind::BlockStatus => None,
    }
}

impl Connection {
    pub(super) fn room_bytes(&self, with: &With<'_>) -> u64 {
        with.account.room(self.held_bytes(), self.charged)
    }

    /// Starts a request. Returns whether there was room for it.
    pub(super) fn take(&mut self, request: Request, with: &mut With<'_>) -> bool {
        let Request { kind, offset, length, .. } = request;
        let action = match (kind, action_of(kind)) {
            (RequestKind::Write, _) => {
                self.arriving = Some(Arriving::new(request));
                return true;
            }
            (_, None) => return self.ask_for_extents(request, with),
            (_, Some(action)) => action,
        };
        let held_bytes = with.disk.bytes_of(action, offset, length);
        if held_bytes <= self.room_bytes(with) {
            self.ask(request, None, Part::Whole, with);
            return true;
        }
        if self.held_bytes() > 0 {
            return false;
        }
        if action == Action::Read {
            self.reading = Some(Reading { request, at: 0, is_submitted: false });
            self.go_on_reading(with);
        } else {
            self.ask(request, None, Part::Whole, with);
        }
        true
    }

    // ---- writes

    /// Returns the number of bytes of a write's data that the connection may receive now. If there
    /// is no memory, first submits the data that has arrived. Returns `None` if the write must
    /// wait.
    pub(super) fn make_room(&mut self, with: &mut With<'_>) -> Option<usize> {
        loop {
            let arriving = self.arriving.as_ref()?;
            if arriving.data.is_some() && arriving.filled < arriving.granted {
                return Some(arriving.granted - arriving.filled);
            }
            if self.grant(with) {
                continue;
            }
            match &self.arriving {
                // The system has no memory. The connection skips the data.
                None => return Some(usize::MAX),
                Some(arriving) if arriving.filled == 0 => return None,
                Some(_) => self.hand_over(with),
            }
        }
    }

    /// Takes more memory for the write's data. Returns whether memory was available.
    fn grant(&mut self, with: &mut With<'_>) -> bool {
        let room_bytes = self.room_bytes(with);
        let Some(arriving) = &mut self.arriving else { return false };
        let (offset, left) = (arriving.offset(), arriving.left());
        let whole = arriving.data.as_ref().map_or_else(
            || if left > PIECE_BYTES_MAX { to_block(offset, PIECE_BYTES_MAX) } else { left },
            |data| data.len() as u64,
        );
        let step = with.account.step(arriving.filled as u64);
        let mut granted = whole.min(arriving.granted as u64 + step);
        let bytes_of = |length| with.disk.bytes_of(Action::Write, offset, length);
        loop {
            if granted < whole {
                granted = to_block(offset, granted);
            }
            if granted <= arriving.granted as u64 {
                return false;
            }
            if bytes_of(granted) <= room_bytes + arriving.held_bytes {
                break;
            }
            granted = (arriving.granted as u64 + granted) / 2;
        }
        if arriving.data.is_none() {
            // The buffer occupies memory only after its pages are written.
            arriving.data = with.disk.try_buffer(whole as usize);
        }
        if arriving.data.is_none() {
            self.give_up(with);
            return false;
        }
        arriving.granted = granted as usize;
        arriving.held_bytes = bytes_of(granted);
        true
    }

    /// Gives up a write for which the system has no memory. The connection skips the write's data
    /// and then refuses the write.
    fn give_up(&mut self, with: &mut With<'_>) {
        let Some(arriving) = self.arriving.take() else { return };
        if let Some(parted) = arriving.parted.and_then(|key| self.parted.get_mut(key)) {
            (parted.arrived, parted.is_answered) = (true, true);
        }
        self.forget_if_done(arriving.parted, with);
        if let ConnectionStage::Transmission { decoder, .. } = &mut self.stage {
            let (to, code) = (arriving.request.reply_to(), ErrorCode::OutOfMemory);
            decoder.refuse(Refusal { to, code, message: "the server has no memory left for data" });
        }
    }

    pub(super) fn hand_over_if_arrived(&mut self, with: &mut With<'_>) {
        let is_full = |arriving: &Arriving| arriving.data.as_ref().is_some_and(|data| data.len() == arriving.filled);
        if self.arriving.as_ref().is_some_and(is_full) {
            self.hand_over(with);
        }
    }

    /// Submits the data that has arrived to the disk.
    fn hand_over(&mut self, with: &mut With<'_>) {
        let Some(mut arriving) = self.arriving.take() else { return };
        let Some(mut data) = arriving.data.take() else { return };
        let length = arriving.filled as u64;
        data.narrow(0, arriving.filled);
        let request = arriving.request.part(arriving.offset(), length);
        let is_last = length == arriving.left();
        if is_last {
            self.progress.ended();
            if arriving.at == 0 {
                return self.ask(request, Some(data), Part::Whole, with);
            }
        }
        let to = arriving.request.reply_to();
        let new = Parted { to, under_way: 0, arrived: false, result: Ok(()), is_answered: false };
        let key = arriving.parted.unwrap_or_else(|| self.parted.insert(new));
        if let Some(parted) = self.parted.get_mut(key) {
            parted.under_way += 1;
            parted.arrived = is_last;
        }
        if !is_last {
            let (at, parted) = (arriving.at + length, Some(key));
            self.arriving = Some(Arriving { at, parted, ..Arriving::new(arriving.request) });
        }
        self.ask(request, Some(data), Part::Write(key), with);
    }

    fn piece_written(&mut self, key: usize, result: Result<(), Errno>, with: &mut With<'_>) {
        if let Some(parted) = self.parted.get_mut(key) {
            parted.under_way -= 1;
            parted.result = parted.result.and(result);
        }
        self.forget_if_done(Some(key), with);
    }

    /// Answers a write when all of its pieces are complete.
    fn forget_if_done(&mut self, key: Option<usize>, with: &mut With<'_>) {
        let Some(key) = key else { return };
        if self.parted.get(key).is_none_or(|parted| parted.under_way > 0 || !parted.arrived) {
            return;
        }
        let Parted { to, result, is_answered, .. } = self.parted.remove(key);
        let ConnectionStage::Transmission { replies, .. } = &self.stage else { return };
        let replies = *replies;
        match result {
            _ if is_answered => {}
            Ok(()) => self.say(with, |out| replies.done(out, to)),
            Err(errno) => self.say(with, |out| replies.failed(out, to, errno.into(), &errno.to_string())),
        }
    }

    // ---- reads in pieces

    /// Submits the next piece of a read if there is room for it.
    pub(super) fn go_on_reading(&mut self, with: &mut With<'_>) {
        let (room_bytes, is_free) = (self.room_bytes(with), self.held_bytes() == 0);
        let Some(reading) = self.reading.as_mut().filter(|reading| !reading.is_submitted) else { return };
        let offset = reading.request.offset + reading.at;
        let left = reading.request.length - reading.at;
        let mut length = left.min(PIECE_BYTES_MAX);
        while length > PIECE_BYTES_MIN && with.disk.bytes_of(Action::Read, offset, length) > room_bytes {
            length /= 2;
        }
        if length < left {
            length = to_block(offset, length);
        }
        if !is_free && with.disk.bytes_of(Action::Read, offset, length) > room_bytes {
            return;
        }
        reading.is_submitted = true;
        let request = reading.request.part(offset, length);
        self.ask(request, None, Part::Read, with);
    }

    fn piece_read(&mut self, length: u64, result: Result<Option<Buffer>, Errno>, with: &mut With<'_>) {
        let ConnectionStage::Transmission { replies, .. } = &self.stage else { return };
        let replies = *replies;
        let Some(mut reading) = self.reading.take() else { return };
        let (to, total) = (reading.request.reply_to(), reading.request.length);
        let (at, is_one) = (reading.at, reading.is_one(replies));
        let data = match result {
            Ok(data) => data,
            Err(errno) if is_one && at > 0 => {
                let what = format!(
                    "connection closed: a read of {total} bytes failed after the server had begun to send the \
                     reply ({errno})"
                );
                self.tell("reads that failed after the server had begun to send the reply", what, with);
                return self.close(with);
            }
            Err(errno) => return self.say(with, |out| replies.failed(out, to, errno.into(), &errno.to_string())),
        };
        (reading.at, reading.is_submitted) = (at + length, false);
        let is_last = reading.at == total;
        let is_dropped = reading.is_dropped();
        if !is_last {
            self.reading = Some(reading);
        }
        if is_dropped {
            if is_last {
                self.say(with, |out| replies.done(out, to));
            }
            return;
        }
        if !is_one {
            self.say(with, |out| replies.piece(out, to, to.offset + at, length, is_last));
        } else if at == 0 {
            self.say(with, |out| replies.data(out, to, total));
        }
        self.send_data(data, with);
    }

    fn send_data(&mut self, data: Option<Buffer>, with: &mut With<'_>) {
        if let Some(data) = data
            && self.output.data(&mut self.transport, data).is_err()
        {
            self.close(with);
        }
    }

    // ---- operations of the disk

    fn ask(&mut self, request: Request, data: Option<Buffer>, part: Part, with: &mut With<'_>) {
        let ConnectionStage::Transmission { client, .. } = &self.stage else { return };
        let client = *client;
        let Request { kind, offset, length, fua, no_hole, .. } = request;
        let to = request.reply_to();
        let Some(action) = action_of(kind) else { return };
        self.progress.ended();
        if with.ending {
            // The request gets no answer, because the client would accept an error as final.
            // Without an answer, the client sends the request again to the next server.
            (self.leaving, self.reading) = (true, None);
            return;
        }
        let held_bytes = with.disk.bytes_of(action, offset, length);
        let key =
            with.pending.insert(PendingOperation { connection: with.id, part, kind, to, length, held_bytes }) as u64;
        self.pending += 1;
        self.requested_bytes += held_bytes;
        let to_send =
            kind == RequestKind::Read && length > COPIED_BYTES_MAX as u64 && matches!(self.transport, Transport::Plain);
        let operation =
            Operation { fua, no_hole, to_send, data, cookie: COOKIES | key, ..Operation::new(action, offset, length) };
        with.disk.submit(with.now, client, operation);
    }

    /// Handles an answer of the disk.
    pub(in super::super) fn answer(
        &mut self,
        operation: &PendingOperation,
        result: Result<Option<Buffer>, Errno>,
        with: &mut With<'_>,
    ) {
        self.pending -= 1;
        self.requested_bytes -= operation.held_bytes;
        match operation.part {
            Part::Whole => self.answer_whole(operation, result, with),
            Part::Write(key) => self.piece_written(key, result.map(drop), with),
            Part::Read => self.piece_read(operation.length, result, with),
        }
        if self.leaving && !self.closed {
            self.finish(with);
        }
    }

    fn answer_whole(
        &mut self,
        operation: &PendingOperation,
        result: Result<Option<Buffer>, Errno>,
        with: &mut With<'_>,
    ) {
        let ConnectionStage::Transmission { replies, .. } = &self.stage else { return };
        let (replies, to) = (*replies, operation.to);
        match result {
            // The client requested only caching, so the server drops the data.
            Ok(Some(_)) if operation.kind == RequestKind::Cache => self.say(with, |out| replies.done(out, to)),
            Ok(None) => self.say(with, |out| replies.done(out, to)),
            Ok(data) => {
                self.say(with, |out| replies.data(out, to, operation.length));
                self.send_data(data, with);
            }
            Err(errno) => self.say(with, |out| replies.failed(out, to, errno.into(), &errno.to_string())),
        }
    }
}
